"""What a privacy profile means against an attacker, in numbers that err on the side of caution."""

import math

import numpy as np

__all__ = ["PRIORS", "best_guess", "excess_loss", "largest_posterior", "power_of_tests"]

PRIORS = (0.01, 0.1, 0.5)
_GRID = 240  # points of a search for the best epsilon, each of which gives a valid bound


def largest_posterior(guarantee, prior, except_with=0.0):
    """Largest probability that a suspicion has after the release, and how rarely it is exceeded.

    Parameters
    ----------
    guarantee : Guarantee

    prior : float in (0, 1)
        Probability of the suspicion before, to somebody who knows all other units.

    except_with : float, default=0.0
        Probability with which the bound may fail. 0 is a bound that never does, and exists for
        pure guarantees only.

    Returns
    -------
    float
    """
    loss = excess_loss(guarantee, except_with)
    # Odds are multiplied by the ratio of the likelihoods, exp(loss) at most.
    odds = math.exp(min(loss, 700.0)) * prior / (1.0 - prior)
    return min(1.0, odds / (1.0 + odds) * (1.0 + 1e-12)) if odds < 1e300 else 1.0


def excess_loss(guarantee, probability):
    """Bound on the privacy loss that is exceeded with at most a given probability.

    Let ``L = log p/q`` be the loss between the laws ``p`` and ``q`` of the release for two
    neighbours, under ``p``. For every ``epsilon < t``

    ``delta(epsilon) >= E max(1 - exp(epsilon - L), 0) >= P[L > t] (1 - exp(epsilon - t))``,

    so that ``P[L > t] <= delta(epsilon) / (1 - exp(epsilon - t))``. That is ``probability`` for
    ``t = epsilon - log(1 - delta(epsilon) / probability)``, of which the least is taken over
    epsilon. Under ``q`` the event is rarer still, by a factor of at least ``exp(t)``. Mixtures of
    such laws, which are what somebody expects who does not know the record, have no larger
    profile.

    Parameters
    ----------
    guarantee : Guarantee

    probability : float
        0 asks for a bound that holds always.

    Returns
    -------
    float
        Infinite where there is none.
    """
    if probability == 0.0:
        return guarantee.epsilon_at(0.0)
    start = guarantee.epsilon_at(min(0.999 * probability, 1.0 - 1e-9))
    if math.isinf(start):
        return math.inf

    def losses(epsilons):
        deltas = np.minimum(guarantee.delta_at(epsilons) / probability, 1.0)
        with np.errstate(divide="ignore"):
            return epsilons - np.log1p(-deltas)

    # A larger epsilon has a smaller delta and pays less for the tail. Any one is valid.
    width = max(4.0, start)
    coarse = start + np.linspace(0.0, 1.0, _GRID) ** 2 * width
    best = coarse[int(np.argmin(losses(coarse)))]
    step = 3.0 * math.sqrt(width * max(best - start, width / _GRID**2)) / _GRID
    fine = np.maximum(best + step * np.linspace(-1.0, 1.0, _GRID), start)
    found = min(losses(coarse).min(), losses(fine).min(), guarantee.epsilon_at(0.0))
    return float(found) * (1.0 + 1e-12)


def best_guess(guarantee, prior):
    """Largest probability with which somebody says rightly whether the suspicion is true.

    Of all rules, that of the largest posterior: ``1 - p + p delta(log((1 - p) / p))`` for
    ``p <= 1/2``, as ``delta(epsilon)`` is the largest of ``P[S] - exp(epsilon) Q[S]``.

    Parameters
    ----------
    guarantee : Guarantee

    prior : float in (0, 1/2]

    Returns
    -------
    float
    """
    odds = math.log((1.0 - prior) / prior)
    gain = prior * guarantee.delta_at(max(odds * (1.0 - 1e-15), 0.0))
    return min(1.0, (1.0 - prior + gain) * (1.0 + 1e-15))


def power_of_tests(guarantee, level):
    """Largest power of a test at a level, of one value of a unit against another.

    For every epsilon the power is at most ``exp(epsilon) level + delta(epsilon)`` and, from the
    event that is not rejected, ``1 - exp(-epsilon) (1 - level - delta(epsilon))`` (Kairouz, Oh and
    Viswanath, 2015): the least of them over epsilon is what is returned.

    Parameters
    ----------
    guarantee : Guarantee

    level : float in (0, 1)

    Returns
    -------
    float
    """
    most = min(_finite(guarantee.epsilon_at(0.0)), -math.log(level) + 40.0)
    coarse = most * np.linspace(0.0, 1.0, _GRID) ** 2
    best = coarse[int(np.argmin(_powers(guarantee, level, coarse)))]
    step = 2.5 * math.sqrt(most * max(best, most / _GRID**2)) / _GRID
    fine = np.clip(best + step * np.linspace(-1.0, 1.0, _GRID), 0.0, most)
    found = min(_powers(guarantee, level, coarse).min(), _powers(guarantee, level, fine).min())
    return float(min(max(found * (1.0 + 1e-12), level), 1.0))


def _powers(guarantee, level, epsilons):
    deltas = guarantee.delta_at(epsilons)
    with np.errstate(over="ignore"):
        directly = np.exp(epsilons) * level + deltas
    return np.minimum(directly, 1.0 - np.exp(-epsilons) * np.maximum(1.0 - level - deltas, 0.0))


def _finite(value):
    return value if math.isfinite(value) else 1e9
