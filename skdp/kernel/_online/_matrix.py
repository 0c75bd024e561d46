"""A stream of noisy sums of gradients up to a public horizon, whose noise cancels in prefix sums.

To check the claim: this file; `run_matrix` for what is released,
how far one gradient moves all of it (`column_norm`), and what rounding adds (`encoding_error`);
and `step_sensitivity` in `_sensitivity`.
"""

import math
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from typing import Any

import numpy as np
from scipy.signal import lfilter

from skdp._grid import GridNoise
from skdp._random._source import NoiseSource
from skdp._validation import short_repr
from skdp.kernel._online._base import Run, TranscriptRelease
from skdp.kernel._online._recursion import (
    Block,
    NoisyTree,
    Recursion,
    gradient_within,
    run_tree,
)
from skdp.mechanisms import Lattice, NoiseLaw
from skdp.mechanisms._additive import check_noise

LONGEST = 2**23  # rows up to which rounding errors stay a few percent of the sensitivity

_N_EXPONENTIALS = 8
# The law is cut where it has hardly any mass, and where decays are slower than any horizon.
_FIRST, _BEYOND = -2.0, 2.0
_EXACT = 2**20  # rows up to which all columns are computed
_UNIT = 2.0**-53


@dataclass(frozen=True, eq=False)
class PrefixFactors:
    """Exponentials of both factors for a public horizon.

    Parameters
    ----------
    amounts, decays, gaps : ndarray of shape (r,)
        Of C: ``a_j``, ``l_j`` in increasing order, of which the first is 0, and ``1 - l_j``.

    back_amounts, back_decays : ndarray of shape (r,)
        Of B, the first decay being 1.
    """

    amounts: np.ndarray = field(repr=False)
    decays: np.ndarray = field(repr=False)
    gaps: np.ndarray = field(repr=False)
    back_amounts: np.ndarray = field(repr=False)
    back_decays: np.ndarray = field(repr=False)


@lru_cache(maxsize=64)
def prefix_factors(horizon: int) -> PrefixFactors:
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
        amounts,
        decays,
        gaps,
        np.concatenate([[1.0 / (amounts / gaps).sum()], back_amounts]),
        np.concatenate([[1.0], 1.0 - middle]),
    )


@lru_cache(maxsize=64)
def column_norm(horizon: int, recursion: Recursion) -> float:
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
    >>> from skdp.kernel import Recursion
    >>> round(column_norm(1000, Recursion(0.6, 2.0)), 3)
    1.641
    """
    factors = prefix_factors(horizon)
    i, j = np.triu_indices(len(factors.amounts))
    shares = np.where(i == j, 1.0, 2.0) * factors.amounts[i] * factors.amounts[j]
    if horizon <= _EXACT:
        inverse = recursion.weights(0, horizon)[::-1] ** -2.0
        total = np.zeros(horizon)
        for share, decay in zip(shares, factors.decays[i] * factors.decays[j], strict=True):
            total += share * lfilter([1.0], [1.0, -decay], inverse)
        largest = float((total / inverse).max())
    else:
        gaps = factors.gaps[i] + factors.gaps[j] * factors.decays[i]
        with np.errstate(divide="ignore"):  # of decay 0
            largest = float((shares * -np.expm1(horizon * np.log1p(-gaps)) / gaps).sum())
    return math.sqrt(largest) * (1.0 + 4.0 * _UNIT * horizon + 1e-12)


def calls_norm(horizon: int, recursion: Recursion, calls: int) -> float:
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
    >>> from skdp.kernel import Recursion
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


def calls_sum(horizon: int, calls: int) -> float:
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


def encoding_error(horizon: int) -> float:
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


def run_matrix(
    block: Block,
    prefix: NoisyPrefix,
    *,
    recursion: Recursion,
    factors: PrefixFactors,
    grid: GridNoise,
    noise: NoiseSource,
) -> tuple[NoisyPrefix, np.ndarray]:
    """Continue the recursion with gradients taken at noisy prefix sums.

    A row's gradient, taken at a point that earlier releases determine, enters all later
    ``y_t = sum_s C_{t,s} g_s``. Each is rounded to the grid and released with noise, and what is
    gathered is a function of what was released.

    Parameters
    ----------
    block, recursion
        As for `run_tree`.

    prefix : NoisyPrefix
        After the steps before. It is left alone.

    factors : PrefixFactors

    grid : GridNoise
        Of one ``y_t``.

    noise : NoiseSource

    Returns
    -------
    prefix : NoisyPrefix

    gathered : ndarray of shape (n_components,)
        Released.
    """
    exact, noisy = prefix.exact.copy(), prefix.noisy.copy()
    at_once, amounts = float(factors.amounts[0]), factors.amounts[1:]
    decays, back_decays = factors.decays[1:, np.newaxis], factors.back_decays[:, np.newaxis]
    gathered, step = factors.back_amounts @ noisy, grid.step
    for i, z, target, weight, before, own in block.steps(recursion, lambda n: grid.draw(noise, n)):
        change = gradient_within(z, target, gathered, before, recursion, block.others.get(i))
        change *= weight
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


@dataclass(frozen=True, kw_only=True)
class TreeRelease(TranscriptRelease):
    """Release sums of gradients over dyadic intervals of time, each once, when it is complete.

    Privacy: all sums up to the horizon satisfy ``guarantee``, which is paid at the first row.

    Parameters
    ----------
    target, recursion, kappa, gamma, features, noise, time, calls, guarantee, horizon
        See `TranscriptRelease`.

    law : NoiseLaw
        Of one sum, with what the sums of one level satisfy.

    tree : NoisyTree
        Its exact sums are private.
    """

    tree: NoisyTree = field(default_factory=NoisyTree, repr=False)

    _mechanism = "binary tree of noisy gradient sums"
    _source = "Bassily, Smith and Thakurta, FOCS 2014"
    _state = ("tree",)

    def _laws(self, together: NoiseLaw) -> tuple[NoiseLaw, Any]:
        # A record is in one interval of each level: the levels compose.
        law = together.repeated(int(self.horizon).bit_length())
        return law, together.refining(self.target)

    def _run(self) -> Run:
        """Take gradients at noisy prefix sums."""
        size, law, recursion = self.features.n_components, self.law, self.recursion
        # Later sums are on the lattice of the first step.
        growth = ((self.horizon + recursion.t0) / recursion.t0) ** (1.0 - recursion.theta)
        check_noise(law.scale * growth * self.calls, size)
        change = self._change
        first = change * float(recursion.weights(0, 1)[0])
        lattice = Lattice.for_sensitivity(first, size=size, error=1e-9 * first)
        rounding = lattice.sensitivity - first

        def released(total: np.ndarray, weight: float) -> np.ndarray:
            # Of the record, the sum holds the gradient times its weight, which is at most that
            # of the last step of the interval, rounded to the lattice. Of a user it may hold one
            # of each call. Where calls fall into several intervals of a level, n_i of them into
            # each, those cost shares n_i / calls of what one release costs: in sum, and in sum of
            # squares, at most the whole of it.
            sensitivity = (change * weight * (1 + 1e-12) + rounding) * self.calls
            told = dict(step=lattice.step, sensitivity=sensitivity)
            return law.release(total, self.noise, **told, purpose="sum of gradients of the stream")

        return partial(run_tree, recursion=recursion, step=lattice.step, released=released)


_FINENESS = 512.0  # rounding costs at most a part of this


@dataclass(frozen=True, kw_only=True)
class MatrixRelease(TranscriptRelease):
    """Release one noisy sum of the gradients so far a row, of which all prefix sums are made.

    Privacy: all sums up to the horizon satisfy ``guarantee``, which is paid at the first row.

    Parameters
    ----------
    target, recursion, kappa, gamma, features, noise, time, calls, guarantee, horizon
        See `TranscriptRelease`. The target has a positive delta, and the horizon is at most
        8,388,608.

    law : NoiseLaw
        Of one sum, with what it satisfies alone.

    prefix : NoisyPrefix
        Its exact sums are private.
    """

    prefix: NoisyPrefix = field(repr=False)

    _mechanism = "matrix mechanism on noisy gradient sums"
    _source = "Denisov, McMahan, Rush, Smith and Guha Thakurta, NeurIPS 2022"
    _state = ("prefix",)

    def _laws(self, together: NoiseLaw) -> tuple[NoiseLaw, Any]:
        target, horizon, recursion = self.target, self.horizon, self.recursion
        if target.delta == 0.0:
            raise ValueError(
                "delta must be positive with release='matrix', whose noise is Gaussian; use "
                f"'tree' for delta=0; got {short_repr(target.delta)}."
            )
        if horizon > LONGEST:
            raise ValueError(
                f"horizon must be at most {LONGEST} with release='matrix', whose rounding errors "
                f"grow with it; use 'tree' for longer streams; got {short_repr(horizon)}."
            )
        budget = target.gaussian_target()
        # A record moves all sums from its own on: together as far as the longest column says.
        one = replace(budget, mu=budget.mu / column_norm(horizon, recursion))
        if self.calls > 1:
            # A user moves them by a column a call, at worst all in one direction, and one of them
            # by as many entries of a row. Where a gradient of the user is taken depends on what
            # was released before, but the distance of all sums is bounded whatever that was.
            share = calls_sum(horizon, self.calls) / calls_norm(horizon, recursion, self.calls)
            one = replace(budget, mu=budget.mu * share)
        return NoiseLaw("gaussian", 1.0 / one.mu, one), budget

    @classmethod
    def _start(cls, size: int, horizon: Any) -> dict[str, Any]:
        r = len(prefix_factors(horizon).amounts)
        return dict(prefix=NoisyPrefix(np.zeros((r - 1, size)), np.zeros((r, size))))

    @property
    def factors(self) -> PrefixFactors:
        """Factors of the sums."""
        return prefix_factors(self.horizon)

    def _run(self) -> Run:
        """Take gradients at noisy prefix sums."""
        size, recursion, horizon = self.features.n_components, self.recursion, self.horizon
        # Of the record, all sums up to the horizon hold a column of C times its gradient. On
        # either side each was computed with an error, and rounded to the lattice.
        norm, most, change = column_norm(horizon, recursion), 1.0, self._change
        if self.calls > 1:
            norm = calls_norm(horizon, recursion, self.calls)
            most = calls_sum(horizon, self.calls)
        error = encoding_error(horizon) * recursion.cap * self.kappa
        spread = math.sqrt(float(size) * horizon)
        step = 2.0 ** math.floor(math.log2(change * norm / (_FINENESS * spread)))
        together = (change * norm + 2.0 * error + step * spread) * (1.0 + 1e-12)
        # The noise of one sum is that for the whole column: its law is of a part of mu.
        lattice = Lattice(step, together / norm * most)
        check_noise(8.0 * self.law.scale, size * horizon)
        grid = self.law.on(lattice, size, "sum of gradients of the stream")

        return partial(
            run_matrix, recursion=recursion, factors=self.factors, grid=grid, noise=self.noise
        )
