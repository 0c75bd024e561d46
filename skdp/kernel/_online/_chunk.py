"""One release a call, of the rows of that call alone: a stream without end costs one call.

To check the claim: this file for what a call releases, ``rows/_whitening.py`` for the sum of
gradients, none of which is longer than its cap, and ``rows/_blocks.py``, which bounds the rows.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np
from scipy.linalg import solve_triangular

from skdp import _validation as checks
from skdp._defaults import kernel as defaults
from skdp._defaults import linear
from skdp._random._source import NoiseSource
from skdp._recording import with_progress
from skdp.kernel._descent import without_noise
from skdp.kernel._online._base import UserStream
from skdp.learner._descent import release_half, symmetric
from skdp.learner._sequence import divided
from skdp.mechanisms import NoiseLaw, release
from skdp.mechanisms import _additive as additive
from skdp.preprocessing._target_bounds import TargetBounds
from skdp.privacy import ApproxDP, GaussianDP
from skdp.rows import FeatureFunction
from skdp.rows import _whitening as whitened
from skdp.rows._blocks import RowBlocks
from skdp.rows._sums import MOST_ROWS, refuse_rows
from skdp.rows._users import Participants, Users

# Feature of the intercept, over the norm of a row.
_CONSTANT = 0.5
# Half-lives of what was released, in calls, that are compared where none is stated.
_GRID_HALF_LIVES = (math.inf, 10.0, 2.0)
_GRID_LONG = 10.0  # of losses
_TOLERANCE = 1e-12
_LIMIT_PIECES, _LIMIT_PIECE = 50, 1000  # releases of a call, and rows behind one
_LIMIT_BYTES = 80.0  # of a number in matrices that are held together


@dataclass(frozen=True)
class Released:
    """What the calls so far have released, and what follows from it; nothing else is kept.

    Parameters
    ----------
    moments : ndarray of shape (n_memories, size, size)
        Noisy sums of the outer products of the rows, in which older calls weigh less.

    n_rows, noise : ndarray of shape (n_memories,)
        Rows behind them, and sums of the squares of the weights of calls.

    points, gradients : ndarray of shape (n_memories, n_outputs, size)
        Means of the weights at which gradients were taken, and of minus these.

    variances : ndarray of shape (n_memories,)
        Of the noise in such a mean, over that of a whitened row.

    losses, candidates : ndarray of shape (n_memories + 1,) and (n_memories + 1, n_outputs, size)
        The last is zero.

    weights : ndarray of shape (n_outputs, size)

    chosen : int
        Place of the candidate that the weights go to.

    length : float
        What the scores are best multiplied by.

    n_calls : int

    largest : float
        Most rows that a call has had.
    """

    moments: np.ndarray = field(repr=False)
    n_rows: np.ndarray = field(repr=False)
    noise: np.ndarray = field(repr=False)
    points: np.ndarray = field(repr=False)
    gradients: np.ndarray = field(repr=False)
    variances: np.ndarray = field(repr=False)
    losses: np.ndarray = field(repr=False)
    candidates: np.ndarray = field(repr=False)
    weights: np.ndarray = field(repr=False)
    chosen: int = 0
    length: float = 1.0
    n_calls: int = 0
    largest: float = 0.0

    @classmethod
    def nothing(cls, n_memories: int, n_outputs: int, size: int) -> Self:
        """Before the first call."""
        means = np.zeros((n_memories, n_outputs, size))
        candidates = np.zeros((n_memories + 1, n_outputs, size))
        sums, losses = np.zeros(n_memories), np.zeros(n_memories + 1)
        start = np.zeros((n_outputs, size))
        moments = np.zeros((n_memories, size, size))
        return cls(moments, sums, sums, means, means, sums, losses, candidates, start)


@dataclass(frozen=True)
class Curvatures:
    """Directions of the rows, by their released second moments.

    Parameters
    ----------
    vectors : ndarray of shape (size, size)
        Columns are directions.

    divisors : ndarray of shape (size,)
        Squares of what rows are divided by along them.

    supposed : ndarray of shape (size,)
        Mean squares of the rows.
    """

    vectors: np.ndarray
    divisors: np.ndarray
    supposed: np.ndarray

    @classmethod
    def of(cls, moments: np.ndarray, edge: float, row_norm: float) -> Self:
        """By the mean of the outer products of rows, the noise of which has this norm.

        What hidden directions have together is what is missing from the square of the norm. None
        is supposed to be less than half of the mean: rows of later calls may point where there
        were none.
        """
        values, vectors = np.linalg.eigh(moments)
        square = row_norm**2
        least = square / (2.0 * len(values))
        seen = without_noise(values, edge)
        seen *= min(1.0, square / max(float(seen.sum()), least))
        hidden = seen == 0.0
        rest = (square - float(seen.sum())) / max(1, int(np.count_nonzero(hidden)))
        supposed = np.maximum(np.where(hidden, rest, seen), least)
        return cls(vectors, np.maximum(values, max(edge / 2.0, least)), supposed)

    @property
    def stretched(self) -> float:
        """Root mean square of the norm of a row that was divided."""
        return math.sqrt(float((self.supposed / self.divisors).sum()))


@dataclass(frozen=True, kw_only=True)
class ChunkRelease(UserStream):
    """Release, in each call, second moments of its rows and their gradients at released weights.

    Privacy: each call satisfies ``guarantee`` for its own rows, whatever was released before it.
    A row is in one call, which the caller decides without a look at the rows, so that calls before
    it do not know of it, and those after it know what its own released. Hence all calls
    together, without end, satisfy ``guarantee``: the transcript has one law up to the call of the
    row, and is post-processing of its release afterwards. Between calls nothing is kept
    but what was released. Of users who come in several calls so many releases compose.

    Two matrices x x^T are at most root 2 times the square of the norm apart, as their inner
    product is not negative. Two capped gradients are two caps apart. Where rows are added or
    removed, their number is released as well.

    Parameters
    ----------
    time, calls, participation
        See `UserStream`.

    guarantee : ApproxDP

    parts : tuple of (GaussianDP or ApproxDP or None)
        Of the number of rows, if it is released, of second moments, and of gradients.

    loss : Loss

    features : FourierFeatures or NormalisedRows

    noise : NoiseSource

    half_lives : tuple of float
        In calls.

    gamma : float or None, default=None
        Width of the kernel; None for the linear one.

    found : Released

    bounds : TargetBounds or None, default=None
        What the first call learns before all else, in the budget of the guarantee.

    found_range : checks.TargetRange or None, default=None
        What was learned.

    References
    ----------
    McSherry, "Privacy integrated queries", SIGMOD 2009, theorem 4, for disjoint rows; what one
    call releases composes by Dong, Roth and Su, "Gaussian differential privacy", JRSS-B 2022,
    corollary 2.
    """

    guarantee: ApproxDP
    parts: tuple[Any, Any, Any]
    loss: Any
    features: Any = field(repr=False)
    noise: NoiseSource = field(repr=False)
    half_lives: tuple[float, ...]
    gamma: float | None = None
    found: Released = field(repr=False)
    bounds: TargetBounds | None = None
    found_range: checks.TargetRange | None = None

    @classmethod
    @checks.plain_arguments
    def plan(
        cls,
        target: ApproxDP,
        *,
        loss: Any,
        features: Any,
        half_life: Any = "auto",
        calls: int = 1,
        **stream: Any,
    ) -> Self:
        """Begin a stream.

        Parameters
        ----------
        target : ApproxDP
            Of all calls together.

        loss, features, calls, **stream
            As for the class.

        half_life : "auto" or float, default="auto"
            In calls; infinity forgets nothing.
        """
        size = features.n_components + 1
        rule = "n_components, or columns of X with kernel='linear', must be fewer"
        additive.check_memory(
            _LIMIT_BYTES * size * (size + loss.n_outputs), rule, f"; got {size - 1}"
        )
        budget: Any = target if target.delta == 0.0 else target.gaussian_target()
        # Of users who come in several calls all are paid for.
        of_call = divided(budget, 1.0 / calls)[0]
        count = None
        if target.adjacency == "add-remove":
            count, of_call = divided(of_call, linear.ROWS_SHARE)
        # Twice what fits take once: noise of many calls adds up.
        moments, steps = divided(of_call, 2.0 * defaults.SHARE)
        additive.check_noise(_level(moments, size * (size + 1) // 2), size**2)
        additive.check_noise(_level(steps, size * loss.n_outputs), size * loss.n_outputs)
        half_lives = _GRID_HALF_LIVES if checks.is_auto(half_life) else (float(half_life),)
        guarantee = replace(
            target,
            refined=budget if target.delta > 0.0 else None,
            mechanism="second moments and gradients of disjoint calls",
            source="McSherry, SIGMOD 2009, theorem 4, and Dong, Roth and Su, JRSS-B 2022, "
            "corollary 2",
        )
        return cls(
            guarantee=guarantee,
            parts=(count, moments, steps),
            loss=loss,
            features=features,
            half_lives=half_lives,
            calls=calls,
            found=Released.nothing(len(half_lives), loss.n_outputs, size),
            **stream,
        )

    def after(self, bounds: TargetBounds, guarantee: ApproxDP) -> Self:
        """The stream with bounds of the target, of which this is to be what follows."""
        return replace(self, bounds=bounds, guarantee=guarantee)

    def advance(
        self,
        X: Any,
        targets: np.ndarray,
        charge: Callable[..., Any],
        participants: Participants | None = None,
    ) -> tuple[Self, dict[str, Any]]:
        """Release one call; the first one pays for all."""
        # How many rows users have is private, and so is their number where some may be missing.
        relation = self.guarantee.adjacency if participants is None else "add-remove"
        refuse_rows(X.shape[0], MOST_ROWS, relation)
        *_, participation = self.charged(
            charge, lambda account: (self.guarantee, account), participants
        )
        found_range = self.found_range
        if self.bounds is not None and found_range is None:
            users = None if participants is None else participants.users
            found_range = checks.TargetRange.of(self.bounds(targets, self.noise, users))
            checks.warn_of_an_end(found_range, self.bounds.search_range)
        if found_range is not None:
            targets = found_range.scaled(targets)
        users = None
        if participants is not None:
            X, targets, users = _of_newcomers(X, targets, participants, participation, self.calls)
        found, n_before = self.found, self.time
        n_pieces = 1
        if users is None and self.guarantee.adjacency == "replace-one":  # rows have public places
            n_pieces = min(max(X.shape[0] // _LIMIT_PIECE, 1), _LIMIT_PIECES)
        pieces = np.array_split(np.arange(X.shape[0]), n_pieces)
        for rows in with_progress(pieces, "releases of the stream", n_pieces, of="releases"):
            here, own = (X, targets) if n_pieces == 1 else (X[rows], targets[rows])
            found, n_units = self._released(found, here, own, users)
            n_before += n_units
        then = replace(
            self,
            time=n_before,
            participation=participation,
            found=found,
            found_range=found_range,
        )
        fitted = dict(predictor=then.predictor, half_life_=then.half_life, drift_=then.drift)
        return then, {"guarantee_": self.guarantee, **fitted}

    def _released(
        self, found: Released, X: Any, targets: np.ndarray, users: Users | None
    ) -> tuple[Released, int]:
        """One release, of rows that no other one is of; of none it is noise."""
        rows = self.features.transform(X).astype(np.float64, copy=False)
        norm = self.features.row_norm
        data = RowBlocks(
            rows, targets, x_norm=norm, constant=self.constant, users=users if len(rows) else None
        )
        count, moments, steps = self.parts
        n_changed = self.guarantee.n_records_changed
        n_units = max(1.0, float(data.n_units))
        if count is not None:
            noisy = release(
                n_units,
                law=NoiseLaw.meeting(count, size=1),
                sensitivity=1.0,
                error=0.0,
                random_state=self.noise,
                purpose="number of rows of the call",
            )
            n_units = max(1.0, float(noisy))
        options: Any = dict(guarantee=moments, noise=self.noise)
        noisy = release_half(data.second_moments(), data.row_norm, **options)
        deviation = _level(moments, noisy.size) * math.sqrt(n_changed) * data.row_norm**2
        # Of few rows, such as the users of a call who are new, noise is all that there is.
        largest = max(found.largest, n_units)
        part = n_units / largest
        kept = np.array([0.5 ** (1.0 / half_life) for half_life in self.half_lives])
        found = replace(
            found,
            moments=kept[:, np.newaxis, np.newaxis] * found.moments + part * symmetric(noisy),
            n_rows=kept * found.n_rows + part * n_units,
            noise=kept**2 * found.noise + part**2,
            largest=largest,
        )
        # Entries beside the diagonal vary half as much as those on it.
        edges = deviation * np.sqrt(2.0 * data.n_features * found.noise) / found.n_rows
        known = [
            Curvatures.of(total / n_rows, edge, data.row_norm)
            for total, n_rows, edge in zip(found.moments, found.n_rows, edges, strict=True)
        ]
        directions = known[len(known) // 2]
        coordinates = whitened.WhitenedRows(directions.vectors, directions.divisors)
        cap = _usual_residual(self.loss) * directions.stretched
        sums = whitened.CappedSums(data, self.loss, coordinates, cap)
        exact = sums(found.weights)
        noisy = release(
            exact,
            law=NoiseLaw.meeting(steps, size=exact.size),
            sensitivity=n_changed * cap,
            error=whitened.ROUNDING_OF_CAP * cap,
            random_state=self.noise,
            purpose="gradients of the call at released weights",
        )
        deviation = _level(steps, noisy.size) * n_changed * cap / n_units
        # Minus the mean gradient, for rows that are not divided.
        gradient = (
            -solve_triangular(coordinates.matrix, noisy.T, trans="T", lower=True).T / n_units
        )
        found = self._followed(found, gradient, deviation, n_units, known)
        return found, data.n_units if count is None else round(n_units)

    def _followed(
        self,
        found: Released,
        gradient: np.ndarray,
        deviation: float,
        n_units: float,
        known: list[Curvatures],
    ) -> Released:
        """What follows from one more gradient.

        Each memory is a model: weights are normal around 0, as far as targets are supposed to
        differ from the middle, and a gradient is the curvature times what is missing, with
        noise. Its candidate is the mean of the weights, given all gradients, where older ones
        count less, as they do in the curvature. Weights go a part of the way to the candidate
        that has done best, by the loss that released gradients and curvatures tell.
        """
        curvature, here = self.loss.typical_curvature, known[len(known) // 2]
        apart, noisy = (found.candidates - found.weights) @ here.vectors, gradient @ here.vectors
        gained = apart**2 * (curvature * here.supposed / 2.0) - apart * noisy
        part = n_units / found.largest
        losses = 2.0 ** (-1.0 / _GRID_LONG) * found.losses + part**2 * gained.sum(axis=(1, 2))
        new = part * n_units / found.n_rows
        old, now = (1.0 - new)[:, np.newaxis, np.newaxis], new[:, np.newaxis, np.newaxis]
        points = old * found.points + now * found.weights
        gradients = old * found.gradients + now * gradient
        variances = (1.0 - new) ** 2 * found.variances + (new * deviation) ** 2
        likely = (defaults.OFFSET / self.loss.curvature) ** 2
        candidates = np.zeros_like(found.candidates)
        for i, own in enumerate(known):
            shared = (own.vectors.T @ here.vectors) ** 2
            # Rows are no shorter than they are supposed to be here: of a step that is too long
            # rows that drift make a worse one.
            curvatures = curvature * np.maximum(own.supposed, shared @ here.supposed)
            # Noise was as loud as along the directions that rows are divided by now.
            precision = curvatures / (variances[i] * (shared @ here.divisors))
            seen = curvatures * (points[i] @ own.vectors) + gradients[i] @ own.vectors
            expected = precision * seen / (precision * curvatures + 1.0 / likely)
            candidates[i] = expected @ own.vectors.T
        chosen = int(np.argmin(losses))
        weights = found.weights + defaults.CHUNK_STEP * (candidates[chosen] - found.weights)
        vectors, curvatures = known[0].vectors, curvature * known[0].supposed
        # Along the weights as they are, where the loss is least by what is remembered longest.
        along, mean = weights @ vectors, points[0] @ vectors
        pull = float((along * (curvatures * mean + gradients[0] @ vectors)).sum())
        length = pull / max(float((along**2 * curvatures).sum()), _TOLERANCE)
        return replace(
            found,
            points=points,
            gradients=gradients,
            variances=variances,
            losses=losses,
            candidates=candidates,
            weights=weights,
            chosen=chosen,
            length=min(max(length, 0.5), 2.0),
            n_calls=found.n_calls + 1,
        )

    @property
    def constant(self) -> float:
        """Feature of the intercept."""
        return _CONSTANT * float(self.features.row_norm)

    @property
    def coef(self) -> np.ndarray:
        """Weights of the features, of shape (n_outputs, n_components)."""
        return self.found.weights[:, :-1].copy()

    @property
    def intercept(self) -> np.ndarray:
        """What is added to scores, of shape (n_outputs,)."""
        return self.found.weights[:, -1] * self.constant

    @property
    def predictor(self) -> FeatureFunction:
        """Function of one score, or of several classes."""
        coef, intercept = self.coef, self.intercept
        if not self.loss.has_classes:
            return FeatureFunction(self.features, coef[0], float(intercept[0]))
        return FeatureFunction(self.features, coef, intercept)

    @property
    def half_life(self) -> float:
        """Half-life in use, in calls; 0 where nothing that was released is of use."""
        chosen = self.found.chosen
        return self.half_lives[chosen] if chosen < len(self.half_lives) else 0.0

    @property
    def drift(self) -> float:
        """By how much the loss of a row has been lower with this half-life than with the longest.

        In units of the loss, over the latest calls.
        """
        losses = self.found.losses
        weight = (1.0 - 2.0 ** (-self.found.n_calls / _GRID_LONG)) / (
            1.0 - 2.0 ** (-1.0 / _GRID_LONG)
        )
        return float(losses[0] - losses[self.found.chosen]) / max(weight, 1.0)


def _level(part: GaussianDP | ApproxDP, size: int) -> float:
    """Deviation of the noise in a number, for a sensitivity of 1."""
    return NoiseLaw.meeting(part, size=size).level(size)


def _usual_residual(loss: Any) -> float:
    cap = linear.CAP if loss.n_outputs == 1 else linear.CAP_OF_MANY
    return cap * loss.usual_slope * loss.lipschitz


def _of_newcomers(
    X: Any, targets: np.ndarray, participants: Participants, participation: Any, calls: int
) -> tuple[Any, np.ndarray, Users]:
    """Rows of those users who have not come too often, and these."""
    users = participants.users
    is_new = participation.counts(participants) <= calls
    if is_new.all():
        return X, targets, users
    rows = is_new[users.codes]
    places = np.cumsum(is_new) - 1
    codes = places[users.codes[rows]]
    return X[rows], targets[rows], Users(codes, int(is_new.sum()))
