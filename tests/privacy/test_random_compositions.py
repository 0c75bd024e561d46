"""Random sets of selections, Gaussians, categories and pure releases against exact enumeration.

What is enumerated is a pair of distributions that a data set can have: losses on a lattice, whose
sums are convolved exactly, beside one Gaussian in closed form. A claim below it would be wrong.
"""

import math
from dataclasses import dataclass

import numpy as np
import pytest
from scipy.special import log_ndtr
from scipy.stats import norm

from skdp.privacy import ApproxDP, BoundedRangeDP, GaussianDP, compose

STEP = 1e-3  # of epsilons; losses of selections are multiples of half of it


@dataclass(frozen=True)
class Case:
    """Ranges of selections and epsilons of pure releases in steps, and the other releases."""

    ranges: tuple[int, ...]
    pure: tuple[int, ...]
    mus: tuple[float, ...]
    failures: tuple[float, ...]

    def guarantees(self):
        """Those of all that follows the selections."""
        found = [GaussianDP(mu) for mu in self.mus]
        found += [ApproxDP(STEP * k) for k in self.pure]
        return found + [ApproxDP(0.0, p) for p in self.failures]

    def selections(self):
        return BoundedRangeDP(tuple(STEP * k for k in self.ranges))

    def scale(self):
        squares = sum(k * k / 4 for k in self.ranges) + sum(k * k for k in self.pure)
        return math.sqrt(STEP**2 * squares + sum(mu * mu for mu in self.mus))


def drawn(seed):
    rng = np.random.default_rng(seed)
    scale = 10 ** rng.uniform(0.8, 2.3)
    n = int(rng.choice([1, 2, 5, 20, 60]))
    kinds = rng.integers(1, 4)
    ranges = np.maximum(1, scale / math.sqrt(n) * rng.uniform(0.3, 2.0, kinds)).astype(int)
    ranges = tuple(int(k) for k in np.sort(rng.choice(ranges, n)))
    pure = np.maximum(1, scale * rng.uniform(0.02, 1.0, rng.integers(0, 4))).astype(int)
    mus = STEP * scale * rng.uniform(0.2, 3.0, rng.integers(1, 4))
    failures = 10 ** rng.uniform(-8, -6, rng.integers(0, 4))
    return Case(ranges, tuple(map(int, pure)), tuple(map(float, mus)), tuple(map(float, failures)))


def gaussian(epsilon, mu):
    with np.errstate(over="ignore"):
        second = np.exp(np.minimum(epsilon + log_ndtr(-mu / 2 - epsilon / mu), 0.0))
    return norm.cdf(mu / 2 - epsilon / mu) - second


def exact(case, e, shrink=1.0):
    """Largest delta of pairs of which all selections lose the same share of their range."""
    return np.max(
        [attained(case, e, share, shrink) for share in (0.2, 0.35, 0.5, 0.65, 0.8, 0.9)], axis=0
    )


def attained(case, e, share, shrink):
    mass, lowest = np.ones(1), 0  # at lowest + k half steps
    pairs = [(2 * k, min(max(1, round(share * 2 * k)), 2 * k - 1)) for k in case.ranges]
    pairs += [(4 * k, 2 * k) for k in case.pure]
    for width, t in pairs:  # losses of t and t - width half steps; the odds are those of losses
        high = math.exp(t * STEP / 2) * math.expm1((width - t) * STEP / 2)
        high /= math.expm1(width * STEP / 2)
        wider = np.zeros(len(mass) + width)
        wider[: len(mass)] += (1 - high) * mass
        wider[width:] += high * mass
        mass, lowest = wider, lowest - (width - t)
    loss = STEP / 2 * (lowest + np.arange(len(mass)))
    kept = math.prod(1 - p for p in case.failures)
    mu = shrink * math.hypot(*case.mus)
    return 1 - kept + kept * (gaussian(np.subtract.outer(e, loss), mu) @ mass)


@pytest.mark.parametrize("seed", range(36))
def test_claims_are_above_what_is_attained_and_near(seed):
    case = drawn(seed)
    e = case.scale() * np.array([0.0, 0.5, 1.0, 2.0, 3.0, 4.0])
    found, rest = exact(case, e), case.guarantees()
    whole = case.selections().followed_by(compose(rest)).delta_at(e)
    parts = compose([case.selections(), *rest]).delta_at(e)
    # Adversaries who adapt reach more than those enumerated; in any order they reach most.
    for claimed, slack in ((whole, 0.03), (parts, 0.05)):
        near = exact(case, np.maximum(0.0, e - slack * case.scale()))
        assert (claimed >= found * (1 - 1e-9) - 1e-13).all()
        assert (claimed <= near * 1.1 + 1e-8).all()
    # Negative control: what is attained with Gaussians 3 % stronger is above the claims.
    assert (exact(case, e, 1.03) > whole).any()


@pytest.mark.parametrize("seed", range(36, 42))
def test_epsilons_of_random_sets_are_the_inverse(seed):
    case = drawn(seed)
    total = case.selections().followed_by(compose(case.guarantees()))
    lost = 1 - math.prod(1 - p for p in case.failures)
    for delta in (lost + 1e-7, lost + 1e-5, 1e-2):
        epsilon = total.epsilon_at(delta)
        assert total.delta_at(epsilon) <= delta * (1 + 1e-9)
        if epsilon > 0:
            assert total.delta_at(epsilon * (1 - 1e-6)) > delta * (1 - 1e-9)
            assert exact(case, np.array([epsilon]))[0] <= delta * (1 + 1e-9)


@pytest.mark.parametrize("n_columns", [1, 3, 20])
@pytest.mark.parametrize("p", [1e-7, 5e-7])
@pytest.mark.parametrize("sigma", [2.0, 8.0])
def test_categories_above_a_threshold(n_columns, p, sigma):
    # Counts of one column under replace-one: two of them move, or one does and another appears.
    e = np.linspace(0.0, 6.0, 13) / sigma * math.sqrt(n_columns)
    column = [GaussianDP(math.sqrt(2) / sigma), ApproxDP(0.0, p)]
    claimed = compose(column * n_columns)
    mu, lost = math.sqrt(2 * n_columns) / sigma, -math.expm1(n_columns * math.log1p(-p))
    expected = lost + (1 - lost) * gaussian(e, mu)
    np.testing.assert_allclose(claimed.delta_at(e), expected, rtol=1e-9)
    assert (claimed.delta_at(e) >= expected * (1 - 1e-12)).all()
    if n_columns == 1:
        true = np.maximum(gaussian(e, mu), p + gaussian(e, 1 / sigma))
        assert (true <= claimed.delta_at(e)).all()
    epsilon = claimed.epsilon_at(1e-5)
    alone = GaussianDP(mu).epsilon_at((1e-5 - lost) / (1 - lost))
    assert epsilon == pytest.approx(alone, rel=1e-9)
    assert claimed.delta_at(epsilon) <= 1e-5 * (1 + 1e-12)
    assert claimed.epsilon_at(0.9 * lost) == math.inf
