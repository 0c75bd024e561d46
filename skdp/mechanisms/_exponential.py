"""Exponential mechanism with exact sampling, used by every private selection."""

import math
from collections.abc import Hashable, Mapping
from decimal import Decimal
from fractions import Fraction
from itertools import accumulate
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtr

from skdp._grid import UP
from skdp._random._exact import Uniform, precision
from skdp._random._source import NoiseSource, noise_source
from skdp._recording import Kept, Selected, note, recorded
from skdp._validation import plain_arguments, positive, short_repr
from skdp.mechanisms._additive import Lattice, NoiseLaw
from skdp.privacy import random_runs_mean

_MOST = 2**52  # of a utility: differences are whole numbers that floats hold
# Bound on the relative error of a weight that does not vanish. Its exponent is at least -746, of
# which one rounding is less than 2**-43. exp is stated accurate to 2**-52; sixteen times that.
_WEIGHT_ERROR = 2.0**-43 + 2.0**-48


@plain_arguments
def select(
    utilities: ArrayLike,
    *,
    epsilon: float,
    spread: ArrayLike,
    random_state: Any = None,
    purpose: str = "",
) -> np.ndarray:
    """Select candidates with probabilities proportional to ``exp(epsilon / spread * utility)``.

    Privacy: each selection has a bounded range of ``epsilon``, hence it is
    ``epsilon``-differentially private, provided that the changes of any two utilities between
    neighbouring data sets differ by at most ``spread``. ``spread`` is twice the largest change
    of a utility in general, and once if all utilities change in the same direction. Sampling is
    exact: digits of a uniform number are drawn until they determine the candidate, in multiple
    precision if needed.

    Parameters
    ----------
    utilities : array-like of int, shape (n_candidates,) or (n_selections, n_candidates)
        At most ``2**52`` in absolute value. They must not be released in any other way.

    epsilon : float
        Epsilon of each selection.

    spread : int, or array-like of int, shape (n_selections,)
        Largest minus smallest change of a utility between neighbours, in units of utility.

    random_state, purpose
        As for `release`.

    Returns
    -------
    int, or ndarray of int, shape (n_selections,)
        Indices of the selected candidates.

    References
    ----------
    McSherry and Talwar, "Mechanism design via differential privacy", FOCS 2007. Dong, Durfee
    and Rogers, "Optimal differential privacy composition for exponential mechanisms", ICML 2020,
    for the bounded range.

    Examples
    --------
    >>> from skdp.mechanisms import select
    >>> votes = [3, 250, 40]
    >>> int(select(votes, epsilon=1.0, spread=2))
    1
    """
    positive(epsilon=epsilon)
    numbers = np.asarray(utilities)
    if numbers.dtype.kind not in "iu" or numbers.ndim not in (1, 2) or 0 in numbers.shape:
        raise ValueError(
            "utilities must be a non-empty integer array of shape (n_candidates,) or "
            f"(n_selections, n_candidates); got shape {numbers.shape}, dtype {numbers.dtype}."
        )
    rows = np.atleast_2d(numbers)
    if rows.min() < -_MOST or rows.max() > _MOST:
        raise ValueError("utilities must be at most 2**52 in absolute value; got a larger one.")
    spreads = np.broadcast_to(np.asarray(spread), len(rows))
    if spreads.dtype.kind not in "iu" or spreads.min() < 1:
        raise ValueError(
            "spread must be a positive integer, or one for each selection; "
            f"got {short_repr(spread)}."
        )
    rows = rows.astype(np.int64)
    rates = np.array([_rate(float(epsilon), int(one)) for one in spreads])
    drawn = zip(rows, rates.tolist(), noise_source(random_state).uniforms(len(rows)), strict=True)
    chosen = np.array([place(*one) for one in drawn], dtype=np.int64)
    note(purpose, "exponential", 1, float(epsilon), times=len(chosen))
    told: dict[str, Any] = dict(spreads=spreads, rates=rates, epsilon=float(epsilon))
    chosen = recorded(Selected, chosen, utilities=rows, chosen=chosen, **told)
    return chosen if numbers.ndim == 2 else chosen[0]


def _rate(epsilon: float, spread: int) -> float:
    """``epsilon / spread``, rounded down to a float."""
    exact = Fraction(epsilon) / spread
    rate = float(exact)
    return float(np.nextafter(rate, 0.0)) if Fraction(rate) > exact else rate


def place(utilities: np.ndarray, rate: float, uniform: Uniform) -> int:
    """Candidate at which the running sum of weights exceeds a uniform share of their total.

    Parameters
    ----------
    utilities : ndarray of int64, shape (n_candidates,)

    rate : float
        The log-weights are ``rate`` times the utilities, exactly.

    uniform : Uniform

    Returns
    -------
    int
    """
    below = (utilities - utilities.max()).astype(np.float64)
    with np.errstate(over="ignore", under="ignore"):  # such weights are nothing beside 1
        sums = np.cumsum(np.exp(below * rate))
    total = float(sums[-1])
    # Sums of n weights, the product with the total, and weights that vanish; the total errs, too.
    error = (2.0 * _WEIGHT_ERROR + (len(sums) + 8) * 2.0**-51) * total
    target = (uniform.digits + 0.5) * 2.0**-63 * total
    first, last = np.searchsorted(sums, [target - error, target + error], side="right")
    if first == last:
        return int(first)
    return _exact_place(utilities, rate, uniform)


def _exact_place(utilities: np.ndarray, rate: float, uniform: Uniform) -> int:
    """`place` in multiple precision, with as many digits of the uniform number as that takes."""
    levels, where = np.unique(utilities.max() - utilities, return_inverse=True)
    length = 128
    while True:
        uniform.to(length)
        with precision(uniform.length + 96):
            weights = [(-Decimal(rate) * level).exp() for level in levels.tolist()]
            sums = list(accumulate(weights[i] for i in where.tolist()))
            # Each weight and each sum errs by less than 2**-95 of the last known digit.
            error = sums[-1] * (len(sums) + 2) / (1 << (uniform.length + 90))
            share = sums[-1] / (1 << uniform.length)
            least = share * uniform.digits - error
            most = share * (uniform.digits + 1) + error
            first = sum(one <= least for one in sums)
            if first == sum(one < most for one in sums):
                return first
        length *= 2


@plain_arguments
def n_random_runs(*, eta: float, gamma: float, random_state: Any = None) -> int:
    """Draw the number of runs of a mechanism of which only the best run is released.

    Privacy: the number must not be released, and must not be limited after it is drawn. The
    guarantee, a `~skdp.privacy.RandomRunsDP` with the same ``eta`` and ``gamma``, depends on its
    law. Sampling is exact: digits of a uniform number are drawn until they determine the
    number, in multiple precision.

    Parameters
    ----------
    eta : float, larger than -1

    gamma : float in (0, 1)

    random_state : None, int, RandomState, Generator or NoiseSource, default=None
        None draws from the operating system; anything else is for tests.

    Returns
    -------
    int
        At least 1.

    References
    ----------
    Papernot and Steinke, "Hyperparameter tuning with Renyi differential privacy", ICLR 2022,
    definition 1: the truncated negative binomial law.

    Examples
    --------
    >>> from skdp.mechanisms import n_random_runs
    >>> n_random_runs(eta=0.0, gamma=0.02) >= 1
    True
    """
    random_runs_mean(eta, gamma)  # refuses what is no law
    uniform = noise_source(random_state).uniforms(1)[0]
    length = 64
    while True:
        uniform.to(length)
        found = _place(float(eta), float(gamma), uniform)
        if found is not None:
            return found
        length = 2 * uniform.length


def _place(eta: float, gamma: float, uniform: Uniform) -> int | None:
    """Number at which the running sum of probabilities exceeds the uniform number.

    None where its known digits do not tell.
    """
    spare = 96
    if eta != 0.0:  # the first probability cancels digits
        spare += max(0, math.ceil(-math.log2(abs(eta)) - math.log2(-math.log(gamma))))
    with precision(uniform.length + spare):
        least = Decimal(uniform.digits) / (1 << uniform.length)
        most = Decimal(uniform.digits + 1) / (1 << uniform.length)
        left, shape = 1 - Decimal(gamma), Decimal(eta)
        log = Decimal(gamma).ln()
        one = left / -log if eta == 0.0 else left * shape / ((-shape * log).exp() - 1)
        total, count = one, 1
        while True:
            # Each step errs by a few units of the last digit, of all that was summed.
            error = Decimal(16 * count + 64) / (1 << (uniform.length + 90))
            if most <= total - error:
                return count
            if least < total + error:
                return None
            one *= left * (count + shape) / (count + 1)
            total, count = total + one, count + 1


_NDTR = 1.0 + 1e-12  # far above the error of the normal tail that scipy states


@plain_arguments
def escape_probability(threshold: float, *, law: NoiseLaw, lattice: Lattice) -> float:
    """Return the probability, rounded up, that a noisy count of 1 reaches the threshold.

    Parameters
    ----------
    threshold : float
        Multiple of the step of the lattice, above 1.

    law : NoiseLaw
        Gaussian.

    lattice : Lattice

    Returns
    -------
    float
    """
    # Noise that is rounded to the lattice passes a step by half of it.
    far = (threshold - 1.0 - lattice.step / 2.0) / (law.scale * lattice.sensitivity * UP)
    return float(ndtr(-far * (1.0 - 1e-15))) * _NDTR + 5e-324


@plain_arguments
def frequent_names(
    counts: Mapping[Hashable, int],
    *,
    law: NoiseLaw,
    lattice: Lattice,
    threshold: float,
    random_state: NoiseSource | Any = None,
    purpose: str = "",
) -> tuple[Any, ...]:
    """Release the names whose noisy counts reach a threshold, but not the counts.

    Privacy: only names in the data are released. If neighbours have the same names, the result
    satisfies ``law.guarantee`` provided that their counts differ by at most
    ``lattice.sensitivity`` in l2 norm. A name that occurs once, in only one of the neighbours, is
    released with probability at most `escape_probability`. The caller must ensure the bound on
    counts, and an order of the result that does not depend on the data.

    Parameters
    ----------
    counts : mapping of hashable to int
        Number of occurrences of each name, at least 1.

    law : NoiseLaw
        Gaussian law.

    lattice : Lattice
        Lattice with a step of at most 1, so that counts are on it.

    threshold : float
        Multiple of the step, above 1. Public.

    random_state, purpose
        As for `release`.

    Returns
    -------
    tuple
        Names in the order of ``counts``, which may be private.

    References
    ----------
    Korolova, Kenthapadi, Mishra and Ntoulas, "Releasing search queries and clicks privately",
    WWW 2009.
    """
    if law.kind != "gaussian":
        raise ValueError(f"law must be Gaussian; got {short_repr(law)}.")
    if not threshold > 1.0 or threshold % lattice.step or lattice.step > 1.0:
        raise ValueError(
            "threshold must be above 1 and a multiple of the step of the lattice, and the step at "
            f"most 1; got {short_repr(threshold)}."
        )
    asked = np.fromiter(counts.values(), dtype=np.float64, count=len(counts))
    noise = law.draw(noise_source(random_state), 1, len(asked), lattice.sensitivity / lattice.step)
    scale = law.scale * lattice.sensitivity * UP
    bounds: dict[str, Any] = dict(scale=scale, sensitivity=lattice.sensitivity, law=law)
    note(purpose, "threshold", None, **bounds)  # how many names there are is private
    names, noisy = tuple(counts), lattice.release(asked, noise[0])
    bounds |= dict(step=lattice.step, threshold=threshold)
    instead = recorded(Kept, None, asked=asked, released=noisy, names=names, **bounds)
    if instead is None:
        return tuple(names[i] for i in np.flatnonzero(noisy >= threshold))
    # Names that another run released and that are none here stand last.
    found = dict.fromkeys(instead)
    return tuple(dict.fromkeys(name for name in names if name in found) | found)
