"""The exponential mechanism, whose law is exact: the one call through which selections pass."""

from decimal import Decimal
from fractions import Fraction
from itertools import accumulate
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from skdp._facts import note
from skdp._random._exact import Uniform, precision
from skdp._random._source import NoiseSource, noise_source
from skdp._recording import selected
from skdp._validation import plain_arguments, positive, shown

__all__ = ["select"]

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
    ``epsilon``-differentially private, provided that between neighbouring data sets the change of
    its utilities differs by at most ``spread`` from one candidate to another. That is twice the
    largest change where utilities go up and down, and once where they all go the same way. The
    law is exact: digits of a uniform number are drawn until they tell the candidate, in
    multiple precision where floats do not tell.

    Parameters
    ----------
    utilities : array-like of int, shape (n_candidates,) or (n_selections, n_candidates)
        At most ``2**52`` in absolute value. They must not be released in any other way.

    epsilon : float
        Of each selection.

    spread : int, or array-like of int, shape (n_selections,)
        Largest change of a utility between neighbours less the least one, in the same units.

    random_state : None, int, RandomState, Generator or NoiseSource, default=None
        None draws from the operating system; anything else is for tests.

    purpose : str, default=""
        What is selected, in words, for the account of the fit. Public.

    Returns
    -------
    int, or ndarray of int, shape (n_selections,)
        Places of the candidates.

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
            "utilities must be whole numbers of shape (n_candidates,) or (n_selections, "
            f"n_candidates), not empty; got shape {numbers.shape}, dtype {numbers.dtype}."
        )
    rows = np.atleast_2d(numbers)
    if rows.min() < -_MOST or rows.max() > _MOST:
        raise ValueError(
            "utilities must be at most 2**52 in absolute value; a larger one was given."
        )
    spreads = np.broadcast_to(np.asarray(spread), len(rows))
    if spreads.dtype.kind not in "iu" or spreads.min() < 1:
        raise ValueError(
            f"spread must be a positive int, or one a selection; got {shown(spread)}."
        )
    rows = rows.astype(np.int64)
    rates = np.array([_rate(float(epsilon), int(one)) for one in spreads])
    chosen = _selected(rows, rates, noise_source(random_state))
    note(purpose, "exponential", 1, float(epsilon), times=len(chosen))
    chosen = selected(rows, chosen, spreads=spreads, rates=rates, epsilon=float(epsilon))
    return chosen if numbers.ndim == 2 else chosen[0]


def _rate(epsilon: float, spread: int) -> float:
    """``epsilon / spread``, rounded down to a float."""
    exact = Fraction(epsilon) / spread
    rate = float(exact)
    return float(np.nextafter(rate, 0.0)) if Fraction(rate) > exact else rate


def _selected(utilities: np.ndarray, rates: np.ndarray, source: NoiseSource) -> np.ndarray:
    uniforms = source.uniforms(len(utilities))
    rows = zip(utilities, rates.tolist(), uniforms, strict=True)
    return np.array([place(row, rate, uniform) for row, rate, uniform in rows], dtype=np.int64)


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
