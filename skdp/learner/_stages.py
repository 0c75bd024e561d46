"""Stages of a sequence: row norms, counts, means and temperature scaling of scores.

To check the claim of scaling: `release_slope` with `largest_terms`, and ``rows/_sums.py`` for the
sums.
"""

import math
from collections.abc import Sequence as Several
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar, cast

import numpy as np
from scipy import sparse
from scipy.optimize import brentq
from scipy.special import lambertw

from skdp._defaults import linear as defaults
from skdp._grid import TINY
from skdp._random._source import NoiseSource
from skdp._validation import plain_arguments, short_repr
from skdp.learner._losses import SoftmaxLoss
from skdp.learner._sequence import Budget, Planner, Run, divided
from skdp.learner._sums import exact_sum
from skdp.mechanisms import NoiseLaw, release, select
from skdp.mechanisms._additive import check_span
from skdp.privacy import ApproxDP, GaussianDP, n_records_changed
from skdp.rows import _sums as sums
from skdp.rows._blocks import ERROR_SHARE, RowBlocks, certified, per_row
from skdp.rows._users import Users

_MANTISSA = 53
_MOST_BITS = 20
# Relative to the squared length: rows that are as long as a limit, to rounding, are within it.
_LEEWAY = 2.0**-9


def norm_cells(X: Any, most: float, n_cells: int) -> np.ndarray:
    """Return the cell of each row by its norm: up to ``most``, ``most / sqrt(2)``, and so on.

    Entries are rounded to integers whose squares have exact sums in any order. So the cell of a
    row does not depend on other rows or on its position.

    Parameters
    ----------
    X : {ndarray, CSR matrix or array, SourceRows} of shape (n_samples, n_features)
        Finite values, each stored once.

    most : float
        Largest norm; norms above it count as this norm.

    n_cells : int
        Number of cells. Cell k has norms up to ``most / 2**(k / 2)``; the last has all smaller
        norms.

    Returns
    -------
    ndarray of int, shape (n_samples,)
    """
    n_features = X.shape[1]
    bits = min(_MOST_BITS, (_MANTISSA - math.ceil(math.log2(max(n_features, 1)))) // 2)
    # Of squared norms, from the shortest.
    limits = np.floor(2.0 ** (2 * bits - np.arange(n_cells - 1, 0, -1)) * (1.0 + _LEEWAY))

    def cells_of(rows: Any) -> np.ndarray:
        shorter = np.searchsorted(limits, _squares(rows, most, 2.0**bits), side="left")
        return (n_cells - 1 - shorter).astype(np.int8)

    return per_row(cells_of, X)


def _squares(rows: Any, most: float, scale: float) -> np.ndarray:
    """Return squared norms of rows whose entries are rounded to integers up to ``scale``."""
    if not sparse.issparse(rows):
        whole = _integers(rows, most, scale)
        return np.einsum("ij,ij->i", whole, whole)
    squares = sparse.csr_array(
        (np.square(_integers(rows.data, most, scale)), rows.indices, rows.indptr),
        shape=rows.shape,
    )
    return np.asarray(squares.sum(axis=1)).ravel()


def _integers(entries: Any, most: float, scale: float) -> np.ndarray:
    with np.errstate(over="ignore", under="ignore"):
        whole = np.asarray(entries, dtype=np.float64) * (scale / most)
    np.clip(whole, -scale, scale, out=whole)
    return np.rint(whole, out=whole)


# The norm is the bound, that over the root of 2, half of it and so on, to a 128th.
_GRID_CELLS = 15
# Counts are whole numbers of so many parts, those of users too. Of as many rows as are certified
# they stay below 2**52.
_GRID_PARTS = 2**24


@dataclass(frozen=True)
class RowNorm:
    """Stage that selects a clipping norm for the rows from their norms.

    The candidates are the norm bound divided by powers of sqrt(2). The stage selects the smallest
    candidate that few rows exceed. If rows have owners, each row counts with its share of a user.

    Privacy: the norm satisfies ``guarantee``. Whatever its value, later stages are planned for
    rows of the bound, and each row is multiplied by the bound over the norm. A row is in one cell
    of norms, which does not depend on other rows. A user adds at most 1, spread over cells. With
    pure privacy, the norm is selected by minus the number of rows that exceed it. The contribution
    of a row or user to these numbers is monotone over the candidates, from 0 to at most 1. If it
    is replaced, the change is the difference of two such sequences and differs by at most 1
    between two candidates. With Gaussian noise, noisy counts of the cells are released.

    Parameters
    ----------
    guarantee : ApproxDP or GaussianDP

    n_units : float
        Public number of rows or users.

    References
    ----------
    McSherry and Talwar, "Mechanism design via differential privacy", FOCS 2007.
    """

    guarantee: ApproxDP | GaussianDP
    n_units: float

    phrase: ClassVar[str] = "of rows clipped to a norm that is read first"

    @classmethod
    def planned(
        cls, budget: Any, n_samples: float
    ) -> tuple["RowNorm | None", ApproxDP | GaussianDP]:
        """Return the stage for its share of a budget, and the rest.

        Parameters
        ----------
        budget : GaussianDP or pure ApproxDP

        n_samples : float
            Public number of rows or users.

        Returns
        -------
        stage, rest
            The stage is None if noise would dominate the counts.
        """
        part, rest = divided(budget, float(defaults.NORM_SHARE))
        noise = math.sqrt(2.0) / part.mu if isinstance(part, GaussianDP) else 2.0 / part.epsilon
        if noise > defaults.MOST_CLIPPED * n_samples:
            return None, budget
        return cls(part, n_samples), rest

    def check_n_rows(self, n_samples: int) -> None:
        """Any number of rows is counted without error."""

    def learn(self, run: Run, noise: NoiseSource) -> None:
        """Release the norm to which later stages clip the rows."""
        if "data" in vars(run):
            raise ValueError("first must have RowNorm before any stage that uses the rows.")
        rows = run.rows
        run.norm_scale = self.scale(rows.X, rows.x_norm, rows.users, noise)

    def scale(self, X: Any, x_norm: float, users: Users | None, noise: NoiseSource) -> float:
        """Release the factor of the rows.

        Parameters
        ----------
        X : {ndarray, CSR matrix or array} of shape (n_samples, n_features)

        x_norm : float
            Bound on the norm of a row; larger norms count as this norm.

        users : Users or None
            Owners of the rows if the guarantee is for users.

        noise : NoiseSource

        Returns
        -------
        float
            The bound divided by the norm: a power of sqrt(2), from 1 to 128.
        """
        shares = None if users is None else users.shares
        counts = sums.cell_counts(norm_cells(X, x_norm, _GRID_CELLS), _GRID_CELLS, shares)
        place = self._counted if isinstance(self.guarantee, GaussianDP) else self._selected
        return 2.0 ** (place(counts, noise) / 2.0)

    def _selected(self, counts: np.ndarray, noise: NoiseSource) -> int:
        whole = (counts * _GRID_PARTS).astype(np.int64)
        exceed = np.cumsum(whole) - whole
        epsilon = cast(ApproxDP, self.guarantee).epsilon
        # A norm that is smaller by the root of 2 is worth so many rows that are clipped.
        worth = defaults.NORM_WORTH * np.arange(_GRID_CELLS) / epsilon
        worth = np.minimum(worth, defaults.MOST_CLIPPED * self.n_units)
        place = select(
            np.rint(worth * _GRID_PARTS).astype(np.int64) - exceed,
            epsilon=epsilon,
            spread=_GRID_PARTS,
            random_state=noise,
            purpose="row norm for clipping",
        )
        return int(place)

    def _counted(self, counts: np.ndarray, noise: NoiseSource) -> int:
        law = NoiseLaw.of("gaussian", self.guarantee)
        # Two records are in two cells. Counts of users are not negative and add up to 1.
        sensitivity = math.sqrt(self.guarantee.n_records_changed)
        released = release(
            counts,
            law=law,
            sensitivity=sensitivity,
            error=0.0,
            random_state=noise,
            purpose="numbers of rows by row norm",
        )
        exceed = np.cumsum(released)[:-1]  # each norm but the first
        deviations = law.scale * sensitivity * np.sqrt(np.arange(1, _GRID_CELLS))
        most = np.minimum(2.0 * deviations, defaults.MOST_CLIPPED * self.n_units)
        return int(np.flatnonzero(np.append(True, exceed <= most)).max())


# A share that is noise alone, and of which sums are precise.
_LIMIT_SHARE = 1e6


@dataclass(frozen=True)
class RowCount:
    """Stage that releases a private number of rows or users, or the sum of their weights.

    Privacy: a record or user adds 1, or its weight, which is at most 1. So the sum changes by at
    most 1 if one is added, removed or replaced.

    Parameters
    ----------
    guarantee : GaussianDP or pure ApproxDP
    """

    guarantee: GaussianDP | ApproxDP

    phrase: ClassVar[str] = "planned after a noisy count"

    @classmethod
    def planned(cls, budget: Any, n_samples: float) -> tuple["RowCount", Any]:
        """Return the stage for its share of a budget, and the rest; ``n_samples`` is unused."""
        part, rest = divided(budget, float(defaults.ROWS_SHARE))
        return cls(part), rest

    def check_n_rows(self, n_samples: int) -> None:
        """Any number of rows is counted without error."""

    def learn(self, run: Run, noise: NoiseSource) -> None:
        """Release the number, at least 1."""
        run.n_samples = self(run.rows.amount, noise)

    def __call__(self, amount: float, noise: NoiseSource) -> float:
        """Release a number, at least 1."""
        count = release(
            amount,
            law=NoiseLaw.meeting(self.guarantee, size=1),
            sensitivity=1.0,
            error=sums.ROUNDING_SHARE,
            random_state=noise,
            purpose="number of records or users",
        )
        return max(1.0, float(count))


@dataclass(frozen=True)
class TargetMean:
    """Stage that releases the mean of the targets and divides them by it.

    Privacy: a target between 0 and its bound, divided by the bound, adds at most 1 to the sum.

    Parameters
    ----------
    guarantee : GaussianDP or pure ApproxDP

    y_max : float
        Bound on the targets.

    follows_spread : bool, default=False
        Whether the clipping bound of targets grows with the standard deviation of Poisson counts
        of this mean. Intervals need this, because clipping biases coefficients.
    """

    guarantee: GaussianDP | ApproxDP
    y_max: float
    follows_spread: bool = False

    phrase: ClassVar[str] = "of counts over their noisy mean"

    @classmethod
    def planned(
        cls, y_max: float, budget: Any, n_samples: float, *, follows_spread: bool = False
    ) -> tuple[Any, Any]:
        """Return the stage for its share of a budget, and the rest.

        The share is of squared mu or of squared epsilon.
        """
        share = float(defaults.NORM_SHARE)
        part, rest = divided(budget, share if isinstance(budget, GaussianDP) else math.sqrt(share))
        return cls(part, y_max, follows_spread), rest

    def check_n_rows(self, n_samples: int) -> None:
        """Refuse more rows than can be added exactly."""
        sums.refuse_rows(
            n_samples, sums.MOST_ROWS, self.guarantee.adjacency, unit=self.guarantee.unit
        )

    def learn(self, run: Run, noise: NoiseSource) -> None:
        """Release the mean as ``run.total``, and divide the targets by it."""
        rows, law = run.rows, NoiseLaw.meeting(self.guarantee, size=1)
        shares = rows.codes[:, np.newaxis] / self.y_max
        exact = exact_sum(shares, rows.weights, rows.users, bound=1.0)
        total = release(
            exact,
            law=law,
            sensitivity=1.0,  # whether a target comes, goes or is another
            random_state=noise,
            purpose="sum of the targets",
        )
        # Below its noise the mean is not known.
        mean = max(float(total[0]), 2.0 * law.level(1)) / run.known_n_samples
        run.total = np.array([min(mean, 1.0) * self.y_max])
        most = float(defaults.LARGEST_TARGET)
        if self.follows_spread:
            most *= 1.0 + 1.0 / math.sqrt(run.total[0])
            most = max(1.0, min(most, self.y_max / run.total[0]))
        run.found["most"] = most
        codes = rows.codes / run.total[0]
        beyond = None if rows.beyond is None else rows.beyond | (codes > most)
        run.rows = replace(rows, codes=np.minimum(codes, most), beyond=beyond)


def after_count(budget: Any) -> Any:
    """Return the rest of a budget after rows are counted, if their number is private."""
    return budget if budget.adjacency == "replace-one" else RowCount.planned(budget, 1.0)[1]


def counted(data: Any, budget: Any, noise: NoiseSource) -> tuple[float, Any]:
    """Return the number of rows or sum of weights, released if private, and the budget left."""
    if budget.adjacency == "replace-one" and data.weights is None:
        return max(1.0, float(data.n_units)), budget
    stage, rest = RowCount.planned(budget, 1.0)
    return stage(data.amount, noise), rest


@dataclass(frozen=True)
class ClassCounts:
    """Stage that counts three or more classes, to centre the penalty at their log-odds.

    If noise dominates, a penalty centred at zero yields a model with equally likely classes. A
    penalty centred at the log-odds yields a model with the class frequencies.

    Privacy: a record is in one count. If it is replaced, two counts change by 1.

    Parameters
    ----------
    guarantee : ApproxDP
        Pure guarantee.

    loss : SoftmaxLoss
        Loss with the number of classes, their weights and the temperature of scores.
    """

    guarantee: ApproxDP
    loss: SoftmaxLoss

    phrase: ClassVar[str] = "planned after noisy counts of classes"

    @classmethod
    def planner(cls, loss: SoftmaxLoss) -> Planner:
        """Return a planner of the stage, whose share decreases with epsilon times the rows."""
        if loss.n_outputs <= 2:
            raise ValueError(f"loss must have three classes or more; got {short_repr(loss)}.")
        return partial(cls._planned, loss)

    @classmethod
    def _planned(
        cls, loss: SoftmaxLoss, budget: ApproxDP, n_samples: float
    ) -> tuple["ClassCounts", ApproxDP]:
        if not isinstance(budget, ApproxDP):
            raise ValueError(f"budget must be pure to count classes; got {short_repr(budget)}.")
        signal = defaults.COUNT_SIGNAL * math.sqrt(loss.n_outputs)
        signal *= n_records_changed(budget.adjacency) / 2.0
        share = min(signal / max(budget.epsilon * n_samples, TINY), 0.5)
        part, rest = divided(budget, float(share))
        check_span(NoiseLaw.of("laplace", part), loss.n_outputs, budget)
        return cls(part, loss), rest

    def check_n_rows(self, n_samples: int) -> None:
        """Any number of rows is counted without error."""

    def learn(self, run: Run, noise: NoiseSource) -> None:
        """Release the counts, and set the centre to their log-odds and the number of rows."""
        loss, data = self.loss, run.data
        law = NoiseLaw.of("laplace", self.guarantee)
        sensitivity = self.guarantee.n_records_changed
        released = release(
            sums.class_counts(data, loss.n_outputs),
            law=law,
            sensitivity=sensitivity,
            error=0.0,
            random_state=noise,
            purpose="numbers of the classes",
        )
        if run.n_samples is None:
            run.n_samples = max(1.0, float(released.sum()))
        deviation = law.level(1) * sensitivity / run.n_samples
        odds = starting_scores(released / run.n_samples, deviation, loss.weights)
        run.centre = np.zeros((loss.n_outputs, data.n_features))
        run.centre[:, -1] = loss.temperature * odds / data.constant


def james_stein(shares: np.ndarray, deviation: float) -> np.ndarray:
    """Shrink shares of three or more classes towards equal shares.

    This is the positive-part estimator of James and Stein.

    Parameters
    ----------
    shares : ndarray of shape (n_classes,)
        Released shares.

    deviation : float
        Public standard deviation of the noise in each share.

    Returns
    -------
    ndarray of shape (n_classes,)
    """
    equal = 1.0 / len(shares)
    spread = math.hypot(*(shares - equal)) / math.sqrt(len(shares))
    if deviation >= spread:
        return np.full(len(shares), equal)
    return equal + (1.0 - (deviation / spread) ** 2) * (shares - equal)


def starting_scores(
    shares: np.ndarray, deviation: float, weights: Several[float] = ()
) -> np.ndarray:
    """Return initial scores: the estimated log-odds of the classes.

    Parameters
    ----------
    shares : ndarray of shape (n_outputs,)
        Released share of the second of two classes, or of each of several classes.

    deviation : float
        Public standard deviation of the noise in each share.

    weights : sequence of float, default=()
        Public class weights in the loss, for several classes.

    Returns
    -------
    ndarray of shape (n_outputs,)
    """
    if len(shares) == 1:
        least = min(defaults.LEAST_OF_TWO + deviation, 0.5)
        share = np.clip(shares, least, 1.0 - least)
        return np.log(share / (1.0 - share))
    likely = _likely(james_stein(shares, deviation), deviation)
    logs = np.log(np.maximum(likely, defaults.LEAST_SHARE / len(shares)))
    if weights:
        logs += np.log(weights)
    return logs - logs.mean()


def _likely(shares: np.ndarray, deviation: float) -> np.ndarray:
    """Project shares onto the simplex, add the noise deviation to each, and normalise.

    Noise makes some small shares zero. Each of them may be as large as the noise, but not all
    together, because the sum is known.
    """
    shares = np.clip(shares, -_LIMIT_SHARE, _LIMIT_SHARE)
    ordered = np.sort(shares)[::-1]
    beyond = (np.cumsum(ordered) - 1.0) / np.arange(1, len(shares) + 1)
    likely = np.maximum(shares - beyond[ordered >= beyond][-1], 0.0) + deviation
    return likely / likely.sum()


@plain_arguments
def largest_score(n_outputs: int, weights: Several[float] = ()) -> float:
    """Return the largest norm of the initial log-odds for three or more classes.

    Parameters
    ----------
    n_outputs : int

    weights : sequence of float, default=()

    Returns
    -------
    float
    """
    spread = math.log(max(weights) / min(weights)) if weights else 0.0
    return math.sqrt(n_outputs) * (math.log(n_outputs / defaults.LEAST_SHARE) + spread)


# What a row may take off the first sum, beyond the most that it may add: rows that are far on the
# wrong side count no more than that.
_BEYOND = 2.0
# What the second sum is multiplied by where noise is for the sum of both: the first decides.
_CURVATURE_UNIT_PURE = 0.5
# Standard deviation of the logarithm of factors around the likely one, as it is supposed.
_SPREAD = 0.5
# Of the logarithm of a factor, and of a second derivative that is no noise.
_LIMIT_STEP, _TOLERANCE_CURVATURE = 1.5, 0.01
# Largest terms are rounded up to a part of 1; where a root of an equation is below.
_GRID_TERMS, _LIMIT_ROOT = 1e4, 4.0


@dataclass(frozen=True)
class ScoreScale:
    """Stage that rescales scores to increase the likelihood (temperature scaling).

    Slope caps, penalties and noise make scores too large or too small as log-odds. If there is a
    centre, only the difference from it is rescaled.

    Privacy: the guarantee of `release_slope`; everything else follows from its release.

    Parameters
    ----------
    guarantee : GaussianDP, pure ApproxDP or None
        Guarantee of the release. None if noise would dominate; the prior factor is used then.

    n_classes : int
        Number of classes, at least 2.

    likely : float
        Prior factor of the scores.

    temperature : float, default=1.0
        Scores divided by the temperature are logits.

    is_centred : bool, default=False
        Whether an earlier stage releases a centre.
    """

    guarantee: Budget | None
    n_classes: int
    likely: float
    temperature: float = 1.0
    is_centred: bool = False

    @property
    def phrase(self) -> str:
        """Addition to the name of a mechanism."""
        return "" if self.guarantee is None else "with rescaled scores"

    @classmethod
    def planner(cls, loss: Any, is_centred: bool = False) -> Planner:
        """Return a planner of the stage for the scores of a loss."""
        temperature = getattr(loss, "temperature", 1.0)
        return cls(None, max(2, loss.n_outputs), 1.0, temperature, is_centred)._planned

    def _planned(self, budget: Budget, n_samples: float) -> tuple["ScoreScale", Budget]:
        is_pure = isinstance(budget, ApproxDP)
        # Noise makes scores longer. The penalty of a noisy objective makes those of two classes
        # shorter by about as much.
        is_even = is_pure and self.n_classes == 2
        blind = replace(self, likely=1.0 if is_even else float(defaults.LIKELY_SCALE))
        part, rest = divided(budget, float(defaults.SCALE_SHARE))
        noise = _sensitivity(part, self.n_classes) / _strength(part)
        noise *= math.sqrt(2.0) if is_pure else 1.0
        if noise > _SPREAD * n_samples:  # it would tell less than what is supposed
            return blind, budget
        return replace(blind, guarantee=part), rest

    def check_n_rows(self, n_samples: int) -> None:
        """Refuse more rows than `release_slope` can certify for any data."""
        if self.guarantee is None:
            return
        steepest = largest_terms(self.n_classes)[0] + _BEYOND

        def certain(n_samples: int) -> bool:
            error = sums.slopes_error(n_samples, self.n_classes, steepest, self.is_centred)
            return error <= ERROR_SHARE

        unit = self.guarantee.unit
        sums.refuse_rows(
            n_samples, sums.largest_certain(certain), self.guarantee.adjacency, unit=unit
        )

    def learn(self, run: Run, noise: NoiseSource) -> None:
        """Release the slope of the likelihood and rescale the weights."""
        if run.has_scale:
            return
        start = run.centre
        longer = run.weights if start is None else run.weights - start
        if self.guarantee is None:
            factor = self.likely
        else:
            found = release_slope(
                run.data,
                run.weights / self.temperature,
                along=None if start is None else longer / self.temperature,
                n_samples=run.known_n_samples,
                guarantee=self.guarantee,
                noise=noise,
            )
            factor, deviation = factor_of_slope(found, likely=self.likely)
            # A factor at its bound has no noise, and leaves that of the weights.
            run.scale_deviation = deviation or run.scale_deviation
        longer = factor * longer
        run.weights = longer if start is None else start + longer
        run.spread = run.spread.times(factor)


@dataclass(frozen=True)
class ScoreSlope:
    """Derivatives of the mean log-likelihood by the logarithm of the scale of scores.

    Parameters
    ----------
    slope, curvature : float
        Released first derivative, and second derivative up to its sign and the first.

    deviation, curvature_deviation : float
        Public standard deviations of their noise.
    """

    slope: float
    curvature: float
    deviation: float
    curvature_deviation: float


@plain_arguments
def largest_terms(n_classes: int) -> tuple[float, float]:
    """Return the largest terms of a row in the sums of `release_slope`, rounded up.

    Parameters
    ----------
    n_classes : int
        Number of classes K, at least 2.

    Returns
    -------
    slope, curvature : float

    Notes
    -----
    With the score of its class above that of class k by d_k, a row adds to the first sum
    ``sum_k d_k exp(-d_k) / (1 + sum_k exp(-d_k))`` over the K - 1 others. That is at least s where
    ``sum_k (d_k - s) exp(-d_k) >= s``, and each term is at most ``exp(-1 - s)``. So the largest
    value has ``s exp(s) = (K - 1) / e``: Lambert's W there.

    To the second it adds the variance of the scores under their own probabilities, which is that
    of the logarithm of these. Where it is largest, a quadratic equation holds for each logarithm,
    so that there are two of them at most; and of a probability q of those in one of two groups it
    is ``q (1 - q) (logit(q) + l)^2`` for an l that is log(K - 1) at most, for one class in a group
    (Reeb and Wolf, "Tight bound on relative entropy by entropy difference", 2015). With
    ``t = logit(q)`` its slope is zero where ``(t + l) tanh(t / 2) = 2``.
    """
    right = float(lambertw((n_classes - 1) / math.e).real)
    spread = math.log(n_classes - 1)
    at = brentq(lambda t: (t + spread) * math.tanh(t / 2.0) - 2.0, 0.0, _LIMIT_ROOT)
    curvature = ((at + spread) / (2.0 * math.cosh(at / 2.0))) ** 2
    return math.ceil(_GRID_TERMS * right) / _GRID_TERMS, math.ceil(
        _GRID_TERMS * curvature
    ) / _GRID_TERMS


def release_slope(
    data: RowBlocks,
    weights: np.ndarray,
    *,
    n_samples: float,
    guarantee: Budget,
    noise: NoiseSource,
    along: np.ndarray | None = None,
) -> ScoreSlope:
    """Release the derivatives of the likelihood by the scale of scores.

    Privacy: satisfies ``guarantee`` for released weights. Let (a, b) be the `largest_terms` for
    this number of classes. The contributions of a row are clipped to [-(a + 2), a] in the first
    sum and to [0, b] in the second. So removing a row changes the sums by at most the norm of
    (a + 2, b), and replacing it by at most the norm of (2 a + 2, b). Pure noise is Laplace noise
    for the sum of absolute changes, in which the second sum counts half.

    Parameters
    ----------
    data : RowBlocks
        Rows without users.

    weights : ndarray of shape (n_outputs, n_features)
        Released weights. Scores are logits; a single output is for the second of two classes.

    n_samples : float
        Number of rows, public or released.

    guarantee : GaussianDP or pure ApproxDP

    noise : NoiseSource

    along : ndarray of shape (n_outputs, n_features), default=None
        Released weights whose scores are rescaled, for three or more classes. None means all.

    Returns
    -------
    ScoreSlope
    """
    is_pure = isinstance(guarantee, ApproxDP)
    law = NoiseLaw.of("laplace" if is_pure else "gaussian", guarantee)
    n_classes = max(2, len(weights))
    largest = largest_terms(n_classes)
    sensitivity = _sensitivity(guarantee, n_classes)
    slopes = sums.score_slopes(data, weights, largest[0] + _BEYOND, largest, along)
    units = np.array([1.0, _CURVATURE_UNIT_PURE if is_pure else 1.0])
    released = release(
        units * certified(slopes, ERROR_SHARE),
        law=law,
        sensitivity=sensitivity,
        error=ERROR_SHARE,
        random_state=noise,
        purpose="derivatives of the log-likelihood by the scale of the scores",
    )
    slope, curvature = (float(value) / n_samples for value in released / units)
    deviation = law.level(1) * sensitivity / n_samples
    return ScoreSlope(slope, curvature, deviation, deviation / float(units[1]))


def _strength(guarantee: Budget) -> float:
    return guarantee.epsilon if isinstance(guarantee, ApproxDP) else guarantee.mu


def _sensitivity(guarantee: Budget, n_classes: int) -> float:
    """Return the sensitivity of both sums."""
    right, curvature = largest_terms(n_classes)
    slope = right + _BEYOND + (right if guarantee.adjacency == "replace-one" else 0.0)
    if isinstance(guarantee, ApproxDP):
        return slope + _CURVATURE_UNIT_PURE * curvature
    return math.hypot(slope, curvature)


@plain_arguments
def factor_of_slope(found: ScoreSlope, *, likely: float) -> tuple[float, float]:
    """Return the factor of scores, from released values.

    Parameters
    ----------
    found : ScoreSlope

    likely : float
        Prior factor.

    Returns
    -------
    factor : float
        Result of one step of Fisher scoring towards the posterior mode, from 0.22 to 4.5. The
        prior of the log factor is normal around ``log(likely)`` with standard deviation 0.5.

    deviation : float
        Standard deviation of the noise in the log factor, to first order; 0 if it is clipped.
    """
    curvature = max(found.curvature, found.deviation, _TOLERANCE_CURVATURE)
    doubt = (found.deviation / _SPREAD) ** 2
    certainty = curvature**2 + doubt
    step = (found.slope * curvature + math.log(likely) * doubt) / certainty
    if abs(step) >= _LIMIT_STEP:
        return math.exp(math.copysign(_LIMIT_STEP, step)), 0.0
    by_curvature = found.slope - 2.0 * step * curvature if curvature == found.curvature else 0.0
    moved = math.hypot(found.deviation * curvature, found.curvature_deviation * by_curvature)
    return math.exp(step), moved / certainty
