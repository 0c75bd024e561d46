"""Weighted prefix sums with noise, by factors of exponentials, so that few vectors hold the state.

Wanted are all sums ``G_t = sum_{s <= t} w_s g_s`` of a stream, for weights that do not decrease.
With ``D = diag(w)`` and the lower triangular matrix P of ones, ``P D = B C``, where

    C = D^{-1} M D,    B = P M^{-1} D,    M lower triangular and Toeplitz.

``y = C g`` is what is released with noise, and ``B`` makes all sums of it. ``M_{t,s}`` is
``c_{t-s}``, close to the binomial coefficients ``binom(2k, k) / 4^k`` of ``1 / sqrt(1 - x)``, for
which M is a square root of P. They are the moments of the law ``d lam / (pi sqrt(lam (1 - lam)))``
on [0, 1], hence nearly a short sum of exponentials,

    c_k = sum_j a_j l_j^k,    a_j > 0,    sum_j a_j = 1,    0 = l_1 < ... < l_r < 1.

``M g`` then follows from r - 1 vectors, ``e_j <- l_j e_j + w_t g_t``. The generating function of
``P M^{-1}``, one over ``(1 - x) sum_j a_j / (1 - l_j x)``, has one pole between any two of the
``1 / l_j`` and one at 1, with positive residues: its coefficients are a sum of r exponentials,
too. So G is made of r vectors ``d_j <- m_j d_j + w_t y_t``, whose errors never grow.

No function here reads data. Bounds are rounded up.

References
----------
Fichtenberger, Henzinger and Upadhyay, "Constant matters: fine-grained error bound on
differentially private continual observation", ICML 2023, for the square root; Denisov, McMahan,
Rush, Smith and Guha Thakurta, "Improved differential privacy for SGD via optimal private linear
operators on adaptive streams", NeurIPS 2022, for why g may depend on earlier releases; McMahan,
Xu and Zhang, "A hassle-free algorithm for strong differential privacy in federated learning
systems", 2024, for sums of exponentials.
"""

import math
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np
from scipy.signal import lfilter

from skdp.kernel._online._recursion import Recursion, mean_gradient

__all__ = [
    "LONGEST",
    "NoisyPrefix",
    "PrefixFactors",
    "calls_norm",
    "calls_sum",
    "column_norm",
    "encoding_error",
    "prefix_factors",
    "run_matrix",
]

LONGEST = 2**23  # rows up to which rounding errors stay a few percent of the sensitivity

_N_EXPONENTIALS = 8
# The law is cut where it has hardly any mass, and where decays are slower than any horizon.
_FIRST, _BEYOND = -2.0, 2.0
_EXACT = 2**20  # rows up to which all columns are computed
_UNIT = 2.0**-53
_ROWS = 128  # whose noise is drawn at a time


@dataclass(frozen=True, eq=False)
class PrefixFactors:
    """Exponentials of both factors for a public horizon.

    Parameters
    ----------
    horizon : int

    amounts, decays, gaps : ndarray of shape (r,)
        Of C: ``a_j``, ``l_j`` in increasing order, of which the first is 0, and ``1 - l_j``.

    back_amounts, back_decays : ndarray of shape (r,)
        Of B, the first decay being 1.
    """

    horizon: int
    amounts: np.ndarray = field(repr=False)
    decays: np.ndarray = field(repr=False)
    gaps: np.ndarray = field(repr=False)
    back_amounts: np.ndarray = field(repr=False)
    back_decays: np.ndarray = field(repr=False)


@lru_cache(maxsize=64)
def prefix_factors(horizon):
    """Factors for a horizon.

    Parameters
    ----------
    horizon : int

    Returns
    -------
    PrefixFactors

    Notes
    -----
    The trapezoidal rule in ``u = log(lam / (1 - lam))``, where the law has the density
    ``sqrt(lam (1 - lam)) / pi``; what is left of its mass is put at 0. With eight exponentials the
    root mean square of the noise of all sums is within 0.3 % of that of the square root itself, at
    any horizon.

    Examples
    --------
    >>> factors = prefix_factors(1000)
    >>> [float((factors.amounts * factors.decays**k).sum().round(3)) for k in range(4)]
    [1.0, 0.493, 0.37, 0.308]
    """
    places, step = np.linspace(
        _FIRST, math.log(horizon) + _BEYOND, _N_EXPONENTIALS - 1, retstep=True
    )
    gaps = np.concatenate([[1.0], 1.0 / (1.0 + np.exp(places))])
    decays = np.concatenate([[0.0], 1.0 / (1.0 + np.exp(-places))])
    amounts = step * np.sqrt(decays * gaps) / math.pi
    amounts[0] = 1.0 - amounts.sum()
    # sum_j a_j / (m - l_j) has a zero between any two of the l_j, by the gap 1 - m.
    low, high = gaps[1:].copy(), gaps[:-1].copy()
    for _ in range(200):
        middle = np.sqrt(low * high)
        value = (amounts / (gaps - middle[:, np.newaxis])).sum(axis=1)
        # It falls with m from plus to minus infinity, hence rises with the gap.
        low, high = np.where(value > 0.0, low, middle), np.where(value > 0.0, middle, high)
    middle = np.sqrt(low * high)
    slopes = (amounts / (gaps - middle[:, np.newaxis]) ** 2).sum(axis=1)
    back_amounts = 1.0 / ((1.0 - middle) * middle * slopes)
    return PrefixFactors(
        horizon,
        amounts,
        decays,
        gaps,
        np.concatenate([[1.0 / (amounts / gaps).sum()], back_amounts]),
        np.concatenate([[1.0], 1.0 - middle]),
    )


def column_norm(horizon, recursion):
    """Bound on the l2 norm of every column of C: how far one ``g_s`` of norm 1 moves ``y``.

    Parameters
    ----------
    horizon : int

    recursion : Recursion
        Of the weights.

    Returns
    -------
    float

    Notes
    -----
    The squared norm of column s is ``w_s^2 sum_k c_k^2 / w_{s+k}^2`` over ``s + k < horizon``, and
    ``c_k^2`` a sum of exponentials, so that all columns follow from one backward pass for each
    pair of them. All terms are positive: after n steps a sum has a relative error of 3 n units in
    the last place at most. Beyond a million rows the weights are left out, which are in the ratio
    of at most 1; that costs a few percent.

    Examples
    --------
    >>> from skdp.kernel._online._recursion import Recursion
    >>> round(column_norm(1000, Recursion(0.6, 2.0)), 3)
    1.641
    """
    return _column_norm(horizon, recursion.theta, recursion.t0)


@lru_cache(maxsize=64)
def _column_norm(horizon, theta, t0):
    factors = prefix_factors(horizon)
    i, j = np.triu_indices(len(factors.amounts))
    shares = np.where(i == j, 1.0, 2.0) * factors.amounts[i] * factors.amounts[j]
    if horizon <= _EXACT:
        inverse = Recursion(theta, t0).weights(0, horizon)[::-1] ** -2.0
        total = np.zeros(horizon)
        for share, decay in zip(shares, factors.decays[i] * factors.decays[j], strict=True):
            total += share * lfilter([1.0], [1.0, -decay], inverse)
        largest = float((total / inverse).max())
    else:
        gaps = factors.gaps[i] + factors.gaps[j] * factors.decays[i]
        with np.errstate(divide="ignore"):  # of decay 0
            largest = float((shares * -np.expm1(horizon * np.log1p(-gaps)) / gaps).sum())
    return math.sqrt(largest) * (1.0 + 4.0 * _UNIT * horizon + 1e-12)


def calls_norm(horizon, recursion, calls):
    """Bound on the l2 norm of the sum of several columns of C: of who takes several steps.

    Parameters
    ----------
    horizon : int

    recursion : Recursion

    calls : int
        Number of steps.

    Returns
    -------
    float
        Below ``calls`` times `column_norm`, which it is for one step.

    Notes
    -----
    Gradients of norm 1 at steps ``s_1 < ... < s_m`` move y by at most the root of
    ``sum_ij <C[:, s_i], C[:, s_j]>``: entries of C are positive, so that gradients in one
    direction are the worst. The product of two columns j or more apart is at most
    ``sum_k c_k c_{k+j}``, as weights do not decrease and the ``c_k`` do not increase, and at most
    the squared norm of the longest. So it is most where all steps follow each other.

    Examples
    --------
    >>> from skdp.kernel._online._recursion import Recursion
    >>> round(calls_norm(1000, Recursion(0.6, 2.0), 4) / column_norm(1000, Recursion(0.6, 2.0)), 2)
    3.72
    """
    factors, squared = prefix_factors(horizon), column_norm(horizon, recursion) ** 2
    steps = min(calls, horizon)
    gaps = np.minimum(factors.gaps + factors.gaps[:, np.newaxis] * factors.decays, 1.0)
    with np.errstate(divide="ignore"):  # of decay 0
        sums = -np.expm1(horizon * np.log1p(-gaps)) / gaps
    shares = factors.amounts * (factors.amounts @ sums)
    apart = np.arange(1, steps)
    products = np.minimum(factors.decays ** apart[:, np.newaxis] @ shares, squared)
    total = steps * squared + 2.0 * float((steps - apart) @ products)
    return math.sqrt(total) * (1.0 + 4.0 * _UNIT * steps + 1e-12)


def calls_sum(horizon, calls):
    """Bound on the sum of several entries of a row of C: how far they move one number.

    Parameters
    ----------
    horizon : int

    calls : int
        Number of entries.

    Returns
    -------
    float
        ``c_0 + c_1 + ...``, the largest ones; weights only make them smaller.
    """
    factors = prefix_factors(horizon)
    lags = np.arange(min(calls, horizon))
    kept = factors.decays ** lags[:, np.newaxis] @ factors.amounts
    return float(kept.sum()) * (1.0 + 4.0 * _UNIT * len(lags) + 1e-12)


def encoding_error(horizon):
    """Bound on the l2 norm of all rounding errors of `run_matrix` up to the horizon.

    Parameters
    ----------
    horizon : int

    Returns
    -------
    float
        In units of the largest norm of a gradient.

    Notes
    -----
    With ``n_j = min(horizon, 1 / (1 - l_j))``, a vector ``e_j`` is at most ``w_t n_j`` long, as
    weights do not decrease. A step rounds it by at most ``(2 n_j + 3) w_t`` units in the last
    place, and keeps the error of earlier ones to a share of ``l_j``: together at most
    ``5 n_j^2 w_t``. Adding up and dividing by ``w_t`` costs 12 units of what is added up.

    Examples
    --------
    >>> encoding_error(1000) < 1e-9 and encoding_error(2**23) < 0.03
    True
    """
    factors = prefix_factors(horizon)
    spans = np.minimum(float(horizon), 1.0 / factors.gaps)
    each = float((factors.amounts * (5.0 * spans**2 + 12.0 * spans)).sum())
    return 1.01 * _UNIT * each * math.sqrt(horizon)


@dataclass(frozen=True, eq=False)
class NoisyPrefix:
    """What a stream of noisy weighted sums of gradients keeps.

    Parameters
    ----------
    exact : ndarray of shape (r - 1, n_components)
        Sums of weighted gradients that decay, one for each exponential but the one that is
        forgotten at once. Private.

    noisy : ndarray of shape (r, n_components)
        The like of what was released.
    """

    exact: np.ndarray = field(repr=False)
    noisy: np.ndarray = field(repr=False)

    @classmethod
    def start(cls, n_components, factors):
        """Nothing yet."""
        r = len(factors.amounts)
        return cls(np.zeros((r - 1, n_components)), np.zeros((r, n_components)))


def run_matrix(rows, targets, prefix, time, recursion, *, factors, grid, noise, others=None):
    """Continue the recursion with gradients taken at noisy prefix sums.

    A row's gradient, taken at a point that earlier releases determine, enters all later
    ``y_t = sum_s C_{t,s} g_s``. Each is rounded to the grid and released with noise, and what is
    gathered is a function of what was released.

    Parameters
    ----------
    rows, targets, time, recursion
        As for `skdp.kernel._online._recursion.run_features`; the cap must be finite.

    prefix : NoisyPrefix
        After ``time`` steps. It is left alone.

    factors : PrefixFactors

    grid : GridNoise
        Of one ``y_t``.

    noise : NoiseSource

    others : dict, default=None
        As for `skdp.kernel._online._recursion.run_noisy`.

    Returns
    -------
    prefix : NoisyPrefix

    gathered : ndarray of shape (n_components,)
        Released.
    """
    exact, noisy = prefix.exact.copy(), prefix.noisy.copy()
    at_once, amounts = float(factors.amounts[0]), factors.amounts[1:]
    decays, back_decays = factors.decays[1:, np.newaxis], factors.back_decays[:, np.newaxis]
    cap, radius, step = recursion.cap, recursion.radius, grid.step
    gathered, change = factors.back_amounts @ noisy, np.empty(rows.shape[1])
    for start in range(0, len(rows), _ROWS):
        Z = np.asarray(rows[start : start + _ROWS], dtype=np.float64)
        weights = recursion.weights(time + start, len(Z)).tolist()
        y = targets[start : start + _ROWS].tolist()
        times = (np.arange(time + start, time + start + len(Z)) - 1.0 + recursion.t0).tolist()
        drawn = grid.draw(noise, len(Z))
        each = zip(Z, y, weights, times, drawn, strict=True)
        for i, (z, target, weight, before, own) in enumerate(each, start):
            score, shrink = -float(gathered @ z) / before if before > 0.0 else 0.0, 1.0
            if radius < math.inf:
                norm = math.sqrt(float(gathered @ gathered))
                shrink = min(1.0, radius * before / norm) if norm > 0.0 else 1.0
                score *= shrink
            residual = min(max(score - target, -cap), cap)
            if others is not None and i in others:
                point = gathered * (-shrink / before if before > 0.0 else 0.0)
                np.multiply(mean_gradient(z, target, point, cap, *others[i]), weight, out=change)
            else:
                np.multiply(z, residual * weight, out=change)
            exact *= decays
            exact += change
            total = amounts @ exact
            change *= at_once
            total += change
            total *= 1.0 / (weight * step)
            np.rint(total, out=total)
            total *= step
            noisy *= back_decays
            noisy += np.multiply(grid.release(total, own), weight, out=change)
            gathered = factors.back_amounts @ noisy
    return NoisyPrefix(exact, noisy), -gathered
