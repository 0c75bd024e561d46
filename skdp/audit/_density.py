"""Density of the output of objective perturbation, recomputed from the rows.

The minimiser ``W`` of ``sum_i loss(W x_i, y_i) + penalty/2 ||W||^2 + <B + P, W>``, with a pull P
that both data sets share, maps back to the linear term
``B = -(gradient of the losses + penalty W + P)``. So its density is that of the noise at
``B`` times the determinant of the Hessian, and the privacy loss at an output is the difference of
the logarithms of two such densities. Nothing here calls the solver: gradients come from residuals,
and curvatures from differences of residuals.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Self

import numpy as np
from scipy import sparse, stats
from scipy.special import ndtr, rel_entr

from skdp._recording import Kept, OneOfRuns, Perturbed, Released, Selected
from skdp.audit._claims import TOLERANCE
from skdp.audit._findings import Finding
from skdp.audit._neighbouring_runs import Distances, NeighbourRun, on_lattice
from skdp.exceptions import SolverError
from skdp.privacy import BoundedRangeDP, compose

# Of the scores, for a derivative of residuals.
_STEP = 1e-5
# Residuals and entries of Hessians that are computed at once.
_CHUNK = 400_000
_MOST_STEPS = 300
# Of the minimisers whose densities are audited.
MOST_COORDINATES = 20


@dataclass(frozen=True, eq=False)
class NeighbouringObjectives:
    """Penalised losses of neighbouring data sets in few coordinates, at many points at once.

    Weights outside the span of the rows meet the penalty alone, the same in each run. Gaussian
    densities do not differ along them, nor along what moves the scores of all classes alike. Norms
    of one row differ by less where there are such weights; of several classes, they can take rows
    out of the sum of norms, which added less than a hundredth where it was looked for.

    Parameters
    ----------
    loss : LogisticLoss, HuberHingeLoss or SoftmaxLoss

    penalty : float

    law : ObjectiveNoise

    rows : ndarray of shape (n_rows, rank)
        Different rows of all runs.

    codes : ndarray of shape (n_rows,)

    counts : ndarray of shape (n_runs, n_rows)
        How often each run has a row.

    inputs : ndarray of shape (n_features, rank)
        Orthonormal coordinates of weights in the span of the rows; all of them where noise is for
        pairs of numbers.

    outputs : ndarray of shape (n_outputs, n_scores)
        And of the scores.

    pull : ndarray of shape (n_scores, rank)
        Linear term of public and of released numbers.
    """

    loss: Any
    penalty: float
    law: Any
    rows: np.ndarray
    codes: np.ndarray
    counts: np.ndarray
    inputs: np.ndarray
    outputs: np.ndarray
    pull: np.ndarray

    @classmethod
    def of(cls, *records: Perturbed) -> Self:
        """Objectives of records that have loss, penalty, law and pull in common."""
        first = records[0]
        parts = [_labelled_rows(record.data) for record in records]
        different, places = np.unique(np.concatenate(parts), axis=0, return_inverse=True)
        ends = np.cumsum([len(part) for part in parts])[:-1]
        counts = np.array(
            [
                np.bincount(p, _weights_of(record.data), minlength=len(different))
                for p, record in zip(np.split(places.ravel(), ends), records, strict=True)
            ]
        )
        rows, codes = different[:, :-1], different[:, -1]
        if first.loss.has_classes:
            codes = codes.astype(np.int64)
        _, singular, basis = np.linalg.svd(rows, full_matrices=False)
        inputs = basis[singular > 1e-13 * singular.max(initial=0.0)].T
        if first.law.pairs:  # a norm that is another in other coordinates
            inputs = np.eye(rows.shape[1])
        outputs = np.eye(first.loss.n_outputs)
        if len(outputs) > 1 and first.law.gaussian:
            # Residuals of several scores add up to zero. What moves all scores alike leaves
            # differences of squared norms as they are, and of norms not.
            outputs = np.linalg.svd(outputs - 1.0 / len(outputs))[0][:, :-1]
        public = first.loss, first.penalty, first.law
        pull = outputs.T @ first.pull @ inputs
        return cls(*public, rows @ inputs, codes, counts.astype(float), inputs, outputs, pull)

    @property
    def shape(self) -> tuple[int, int]:
        """Of a point."""
        return self.outputs.shape[1], self.rows.shape[1]

    @property
    def size(self) -> int:
        """Number of coordinates."""
        return self.shape[0] * self.shape[1]

    def _residuals(self, scores: np.ndarray) -> np.ndarray:
        """Of scores of shape (n_points, n_rows, n_outputs)."""
        flat = scores.reshape(-1, scores.shape[2])
        return self.loss.residuals(flat, np.tile(self.codes, len(scores))).reshape(scores.shape)

    def _scores(self, points: np.ndarray) -> np.ndarray:
        return np.swapaxes(points @ self.rows.T, 1, 2) @ self.outputs.T

    def linear(self, points: np.ndarray) -> np.ndarray:
        """Linear terms whose minimisers are the points.

        Parameters
        ----------
        points : ndarray of shape (n_points, n_scores, rank)

        Returns
        -------
        ndarray of shape (n_runs, n_points, n_scores, rank)
        """
        residuals = self._residuals(self._scores(points)) @ self.outputs
        sums = np.einsum("ki,mis,ir->kmsr", self.counts, residuals, self.rows, optimize=True)
        return -sums - self.penalty * points - self.pull

    def hessians(self, points: np.ndarray) -> np.ndarray:
        """Second derivatives, of shape (n_runs, n_points, size, size)."""
        scores = self._scores(points)
        columns = []
        for output in self.outputs.T:
            up, down = scores + _STEP * output, scores - _STEP * output
            moved = ((up - down) * output).sum(axis=2, keepdims=True)
            change = self._residuals(up) - self._residuals(down)
            columns.append(change / moved @ self.outputs)
        products = self.rows[:, :, np.newaxis] * self.rows[:, np.newaxis]
        blocks = np.einsum("tmis,ki,irj->kmsrtj", columns, self.counts, products, optimize=True)
        hessians = blocks.reshape(len(self.counts), len(points), self.size, self.size)
        return (hessians + np.swapaxes(hessians, 2, 3)) / 2 + self.penalty * np.eye(self.size)

    def log_densities(self, points: np.ndarray) -> np.ndarray:
        """Up to a constant of the law, of shape (n_runs, n_points)."""
        found = []
        for part in self._parts(points):
            noise = log_law(self.law, self.outputs @ self.linear(part))
            found.append(noise + np.linalg.slogdet(self.hessians(part))[1])
        return np.concatenate(found, axis=1)

    def losses(self, points: np.ndarray) -> np.ndarray:
        """Privacy losses, of shape (n_points,): log ratios of the first run to the second."""
        one, other = self.log_densities(points)
        return one - other

    def minimisers(self, linear: np.ndarray, run: int) -> np.ndarray:
        """Minimisers for linear terms of shape (n_points, n_scores, rank), by Newton's method."""
        kept = self.counts[run] > 0
        counts = self.counts[[run]][:, kept]
        alone = replace(self, rows=self.rows[kept], codes=self.codes[kept], counts=counts)
        zero = np.zeros((1, *self.shape))
        start = alone._minimisers(zero, zero)
        return np.concatenate([alone._minimisers(part, start) for part in self._parts(linear)])

    def _minimisers(self, linear: np.ndarray, start: np.ndarray) -> np.ndarray:
        points = np.repeat(start, len(linear), axis=0)
        # Sums of gradients at zero weights stand for their size where they cancel.
        gradient = np.linalg.norm(self.linear(np.zeros((1, *self.shape)))[0])
        enough = 1e-9 * (self.law.scale + gradient + np.linalg.norm(linear, axis=(1, 2)))
        open_ = np.arange(len(linear))
        gap = linear - self.linear(points)[0]
        for _ in range(_MOST_STEPS):
            open_ = open_[np.linalg.norm(gap[open_], axis=(1, 2)) > enough[open_]]
            if not len(open_):
                return points
            here, missing = points[open_], gap[open_].reshape(len(open_), -1)
            steps = -np.linalg.solve(self.hessians(here)[0], missing[:, :, np.newaxis])[:, :, 0]
            slopes = (missing * steps).sum(axis=1)  # of the objective, negative
            for _ in range(60):
                there = here + steps.reshape(here.shape)
                found = linear[open_] - self.linear(there)[0]
                beyond = (found.reshape(missing.shape) * steps).sum(axis=1) > -0.5 * slopes
                if not beyond.any():
                    break
                steps[beyond] /= 2.0
                slopes[beyond] /= 2.0
            points[open_], gap[open_] = there, found
        raise SolverError("No minimiser of the recorded objective was found.")

    def _parts(self, points: np.ndarray) -> list[np.ndarray]:
        each = len(self.rows) * self.loss.n_outputs**2 + len(self.counts) * self.size**2 + 1
        return np.array_split(points, max(1, math.ceil(len(points) * each / _CHUNK)))


def log_law(law: Any, linear: np.ndarray) -> Any:
    """Log density of the noise of linear terms, up to a constant.

    Parameters
    ----------
    law : ObjectiveNoise

    linear : ndarray of shape (..., n_outputs, n_features)

    Returns
    -------
    ndarray of shape (...)
    """
    norm = _norm(law, linear) / law.scale
    return -np.square(norm) / 2.0 if law.gaussian else -norm


def _norm(law: Any, linear: np.ndarray) -> Any:
    """Norms of linear terms that their noise goes by.

    K-norm noise is that of each output, or that of the longest pair of a number in the first half
    of the inputs and one in the second.
    """
    if law.gaussian:
        return np.linalg.norm(linear, axis=(-2, -1))
    if law.pairs:
        halves = np.split(linear[..., 0, :], 2, axis=-1)
        return np.hypot(*halves).max(axis=-1)
    return np.linalg.norm(linear, axis=-1).sum(axis=-1)


def _labelled_rows(data: Any) -> np.ndarray:
    """Rows with the label as the last entry, of shape (n_samples, n_features + 1)."""
    blocks = [np.zeros((0, data.n_features + 1))]
    for rows, codes in data.blocks:
        dense = rows.toarray() if sparse.issparse(rows) else rows
        blocks.append(np.column_stack([dense, codes]))
    return np.concatenate(blocks) + 0.0  # no negative zeros


def _weights_of(data: Any) -> np.ndarray | None:
    """Weights of the rows, one after another; None if they have none."""
    return None if data.shares is None else np.concatenate([np.zeros(0), *data.shares])


def _gradient(perturbed: Perturbed, weights: np.ndarray) -> tuple[np.ndarray, float]:
    """Gradient of all but the linear term, and a bound on its rounding error."""
    data, total = perturbed.data, np.zeros(weights.shape)
    size = perturbed.penalty * np.linalg.norm(weights) + np.linalg.norm(perturbed.pull)
    for i, (rows, codes) in enumerate(data.blocks):
        residuals = perturbed.loss.residuals(rows @ weights.T, codes)
        if data.shares is not None:
            residuals = residuals * data.shares[i][:, np.newaxis]
        total += (rows.T @ residuals).T
        largest = math.sqrt((rows * rows).sum(axis=1).max(initial=0.0))
        size += np.linalg.norm(residuals, axis=1).sum() * largest
        # Scores are rounded before residuals are taken of them.
        size += len(codes) * largest**2 * perturbed.loss.curvature * np.linalg.norm(weights)
    longest = data.n_samples + data.n_features + 16
    return total + perturbed.penalty * weights + perturbed.pull, 2.0**-52 * longest * float(size)


def linear_of(perturbed: Perturbed, weights: np.ndarray) -> np.ndarray:
    """Linear term whose exact minimiser on the recorded rows is ``weights``.

    Parameters
    ----------
    perturbed : Perturbed

    weights : ndarray of shape (n_outputs, n_features)

    Returns
    -------
    ndarray of shape (n_outputs, n_features)
    """
    return -_gradient(perturbed, weights)[0]


def log_determinant(perturbed: Perturbed, weights: np.ndarray) -> float:
    """Log determinant of the Hessian of the penalised losses at ``weights``."""
    own = NeighbouringObjectives.of(perturbed)
    point = own.outputs.T @ weights @ own.inputs
    inside = np.linalg.slogdet(own.hessians(point[np.newaxis])[0])[1].sum()
    return float(inside + (weights.size - own.size) * math.log(perturbed.penalty))


def forced_linear(perturbed: Perturbed, weights: np.ndarray) -> np.ndarray:
    """Linear term that makes this run release the exact minimiser of another, near enough.

    What the solver then returns is within ``(tolerance + rounding) / penalty`` of ``weights``,
    so that the masking of its error compares what two solvers make of one minimiser.

    Parameters
    ----------
    perturbed : Perturbed
        Of this run; what is returned goes on in place of its linear term.

    weights : ndarray of shape (n_outputs, n_features)
        What the masking was asked for in the other run.

    Returns
    -------
    ndarray of shape (n_outputs, n_features)
        On the lattice of the linear term.
    """
    return perturbed.step * np.rint(linear_of(perturbed, weights) / perturbed.step)


def minimiser_findings(perturbed: Perturbed, masking: Released) -> list[Finding]:
    """Is the recorded objective what was minimised, and its solver's error what is masked?

    Parameters
    ----------
    perturbed : Perturbed

    masking : Released
        The release that follows it, of what the solver returned.

    Returns
    -------
    list of Finding
    """
    findings = []
    weights, linear = masking.asked, perturbed.linear
    gradient, error = _gradient(perturbed, weights)
    error += 2.0**-50 * float(np.linalg.norm(linear))
    gap = float(np.linalg.norm(gradient + linear))
    if not gap <= perturbed.tolerance + error:
        times = gap / perturbed.tolerance
        what = f"the gradient of the recorded objective is {times:.3g} times the tolerance"
        findings.append(Finding("outcome", what, perturbed.where))
    if not np.array_equal(linear, perturbed.step * np.rint(linear / perturbed.step)):
        what = "the linear term is not on its lattice"
        findings.append(Finding("noise", what, perturbed.where))
    # Two points of a ball are a diameter apart.
    rounding = perturbed.step / 2 * math.sqrt(linear.size)
    least = 2.0 * (perturbed.tolerance + rounding) / perturbed.penalty
    if masking.sensitivity < least * (1 - 1e-12):
        share = masking.sensitivity / least
        what = f"the masking declares {share:.3g} of what two solvers may differ by"
        findings.append(Finding("sensitivity", what, masking.where))
    return findings


def linear_findings(records: list[Perturbed], *, alarm: float = 1e-7) -> list[Finding]:
    """Do the norms of linear terms that were drawn add up to what their laws say?

    Parameters
    ----------
    records : list of Perturbed

    alarm : float, default=1e-7
        Probability at most of a finding where they do.

    Returns
    -------
    list of Finding
    """
    findings = []
    for gaussian in (False, True):
        drawn = [record for record in records if record.law.gaussian == gaussian]
        size = sum(record.linear.size for record in drawn)
        if not size:
            continue
        scales = np.array([r.law.scale for r in drawn])
        norms = np.array([_norm(r.law, r.linear) for r in drawn]) / scales
        # Rounding to the lattice moves a norm by no more.
        summed = np.array([r.linear.size * (1 if gaussian else len(r.linear)) for r in drawn])
        moved = np.array([r.step for r in drawn]) / 2 * np.sqrt(summed) / scales
        power, law = (2, stats.chi2(size)) if gaussian else (1, stats.gamma(size))
        most = ((norms + moved) ** power).sum()
        least = (np.maximum(norms - moved, 0.0) ** power).sum()
        if law.cdf(most) < alarm / 4 or law.sf(least) < alarm / 4:
            what = f"the norms of {len(drawn)} linear terms do not have the law of their noise"
            findings.append(Finding("noise", what, drawn[0].where))
    return findings


# Of epsilon, where the profile of a Gaussian claim is looked at.
_POINTS = np.array([0.15, 0.4, 0.7, 1.0, 1.5])
_ALARM = 1e-7
# Standard deviations of the noise beyond which less than 1e-18 of it lies.
_REACH = 9.0
# Relative error of differences of residuals, and of quadrature in two dimensions.
_ROUNDING = 1e-6
_QUADRATURE = 0.01
# Sweeps along lines through the best outputs, and what one must gain for others to follow, up to
# two dimensions and with more.
_SWEEPS = ((60, 1e-5), (15, 1e-3))


@dataclass(frozen=True)
class DensityAudit:
    """What the densities of the minimiser on two neighbouring data sets say of its claim.

    Parameters
    ----------
    findings : list of Finding

    share : float
        Privacy loss over the claim: the largest loss that was found over epsilon (pure), or the
        epsilon at the claimed delta over the claimed epsilon (Gaussian; with samples, by lower
        confidence bounds).

    dimension : int
        Coordinates of the minimiser in which the two differ.
    """

    findings: list[Finding]
    share: float
    dimension: int


def density_audit(
    one: Perturbed, other: Perturbed, *, n: int = 2000, rng: Any = None
) -> DensityAudit:
    """Does the exact minimiser keep its claim on these two neighbouring data sets?

    Only samples, for Gaussian claims in more than two dimensions, can err where it does, with a
    probability of at most 1e-7.

    Parameters
    ----------
    one, other : Perturbed
        As heard of in two runs, in whichever order.

    n : int, default=2000
        Samples in each order, in more than two dimensions.

    rng : None, int or Generator, default=None
        Where to search, and for the samples.

    Returns
    -------
    DensityAudit
    """
    rng = np.random.default_rng(rng)
    public = ("loss", "penalty", "law", "step", "tolerance")
    differ = [name for name in public if getattr(one, name) != getattr(other, name)]
    if differ:
        what = f"{', '.join(differ)} of the perturbed objective depend on the rows"
        return DensityAudit([Finding("law", what, one.where)], math.inf, 0)
    objectives, law = NeighbouringObjectives.of(one, other), one.law
    size, findings = objectives.size, []
    if size == 0 or np.array_equal(*objectives.counts):
        return DensityAudit([], 0.0, size)
    if not law.gaussian:
        share = largest_loss(objectives, n=n, rng=rng) / law.guarantee.epsilon
        if share <= 1.0 + _ROUNDING:
            return DensityAudit([], min(share, 1.0), size)
        what = f"the log ratio of two densities of the minimiser is {share:.4g} times epsilon"
        return DensityAudit([Finding("sensitivity", what, one.where)], share, size)
    claim, epsilons = law.guarantee, law.guarantee.epsilon * _POINTS
    if size > 2:
        delta = sampled_profile(objectives, epsilons, n, rng)
    else:
        delta = exact_profile(objectives)
    least = np.array([delta(epsilon) for epsilon in epsilons.tolist()])
    # Rounding of sums of probabilities.
    excess = (least - 1e-12) / np.maximum(claim.delta_at(epsilons), 1e-300)
    if excess.max() > 1.0 + {1: _ROUNDING, 2: _QUADRATURE}.get(size, 0.0):
        place = int(excess.argmax())
        what = (
            f"delta of the minimiser at {_POINTS[place]:g} times epsilon is at least "
            f"{excess[place]:.4g} times the claim"
        )
        findings = [Finding("sensitivity", what, one.where)]
    return DensityAudit(findings, _epsilon_at(delta, claim) / claim.epsilon, size)


def _epsilon_at(delta: Callable[[float], float], claim: Any) -> float:
    """Smallest epsilon at the claimed delta, by bisection."""
    low, high = 0.0, claim.epsilon
    if delta(0.0) <= claim.delta:
        return 0.0
    while delta(high) > claim.delta and high < 50.0 * claim.epsilon:
        low, high = high, 2.0 * high
    for _ in range(30):
        middle = (low + high) / 2.0
        low, high = (middle, high) if delta(middle) > claim.delta else (low, middle)
    return high


def _scaled(directions: np.ndarray, norm: float = 1.0) -> np.ndarray:
    """Points with a norm, in the directions of those that are given."""
    norms = np.linalg.norm(directions, axis=(-2, -1), keepdims=True)
    return directions * (norm / np.maximum(norms, 1e-300))


# Pure claims.


def largest_loss(objectives: NeighbouringObjectives, *, n: int = 2000, rng: Any = None) -> float:
    """Largest absolute privacy loss over outputs that was found.

    A grid of directions and distances, from where a record's margin is small to where all slopes
    are those at infinity; minimisers of typical and of huge linear terms; and from the best of
    these, sweeps along lines, with steps down to a millionth, that stop on either side of a kink.
    """
    rng = np.random.default_rng(rng)
    unit = 1.0 / np.linalg.norm(objectives.rows, axis=1).max()
    points = np.concatenate([_grid(objectives, unit, n, rng), *_answers(objectives, rng)])
    losses = np.abs(objectives.losses(points))
    best = losses.argsort()[-6:]
    points, losses = points[best], losses[best]
    lengths = np.geomspace(1e-7, 1.0, 40 if objectives.size <= 2 else 20)
    steps = np.concatenate([-lengths, lengths])[:, np.newaxis, np.newaxis]
    still, (most, gain) = 0, _SWEEPS[objectives.size > 2]
    for _ in range(most):
        before = losses.max()
        for direction in _lines(objectives, points[losses.argmax()], rng):
            reach = unit + np.linalg.norm(points, axis=(1, 2), keepdims=True)[:, np.newaxis]
            there = points[:, np.newaxis] + steps * direction * reach
            found = np.abs(objectives.losses(there.reshape(-1, *objectives.shape)))
            found = found.reshape(len(points), -1)
            best = found.argmax(axis=1)
            better = found.max(axis=1) > losses
            points[better] = there[better, best[better]]
            losses[better] = found[better, best[better]]
        still = 0 if losses.max() > (1.0 + gain) * before else still + 1
        if still == 3:
            break
    return float(losses.max())


def _grid(objectives: NeighbouringObjectives, unit: float, n: int, rng: Any) -> np.ndarray:
    """Points in many directions, at distances from far below ``unit`` to far above it."""
    if objectives.size == 1:
        directions = np.array([[[1.0]], [[-1.0]]])
        distances = np.concatenate([np.geomspace(1e-4, 1e6, 3000), np.linspace(0.0, 8.0, 4001)])
    else:
        if objectives.size == 2:
            angles = np.arange(240) * (np.pi / 120)
            directions = np.stack([np.cos(angles), np.sin(angles)], axis=1)
            distances = np.geomspace(1e-3, 1e6, 120)
        else:
            directions = rng.normal(size=(max(20, n // 20), objectives.size))
            distances = np.geomspace(1e-2, 1e6, 20)
        changes = _changes(objectives)
        directions = directions.reshape(-1, *objectives.shape)
        directions = _scaled(np.concatenate([directions, -changes, changes]))
    grid = directions[:, np.newaxis] * (unit * distances)[:, np.newaxis, np.newaxis]
    return grid.reshape(-1, *objectives.shape)


def _changes(objectives: NeighbouringObjectives) -> np.ndarray:
    """Directions of the gradients of changed records, at zero weights."""
    residuals = objectives.loss.residuals(
        np.zeros((len(objectives.rows), objectives.loss.n_outputs)), objectives.codes
    )
    changed = objectives.counts[0] != objectives.counts[1]
    directions = np.einsum(
        "is,ir->isr", residuals[changed] @ objectives.outputs, objectives.rows[changed]
    )
    return directions[np.linalg.norm(directions, axis=(1, 2)) > 0.0]


def _answers(objectives: NeighbouringObjectives, rng: Any) -> Iterator[np.ndarray]:
    """Minimisers for linear terms of both runs."""
    random = rng.normal(size=(40, *objectives.shape))
    directions = np.concatenate([random, _changes(objectives)])
    directions = _scaled(np.concatenate([directions, -directions]))
    lengths = objectives.law.scale * np.geomspace(0.1, 30.0 * objectives.size, 8)
    linear = directions[:, np.newaxis] * lengths[:, np.newaxis, np.newaxis]
    for run in (0, 1):
        yield objectives.minimisers(linear.reshape(-1, *objectives.shape), run)


def _lines(
    objectives: NeighbouringObjectives, point: np.ndarray, rng: Any
) -> Iterator[np.ndarray]:
    """Directions of norm 1 to look along from the best points."""
    lines = [point, *_changes(objectives)[:4], *rng.normal(size=(3, *objectives.shape))]
    if not objectives.law.gaussian and len(objectives.outputs) > 1:
        # Norms of rows: of one class after the other, and of all alike.
        steps = rng.normal(size=(2, objectives.shape[1]))
        lines += [row[:, np.newaxis] * steps[0] for row in np.eye(len(objectives.outputs))]
        lines.append(np.ones((len(objectives.outputs), 1)) * steps[1])
    yield from map(_scaled, lines[: 1 if objectives.size == 1 else None])


# Gaussian claims.


def _profile(*orders: tuple[np.ndarray, np.ndarray]) -> Callable[[float], float]:
    """Profile of losses that come with probabilities, the larger of both orders."""

    def delta(epsilon: float) -> float:
        return max(
            float((mass * -np.expm1(np.minimum(epsilon - loss, 0.0))).sum())
            for mass, loss in orders
        )

    return delta


def exact_profile(objectives: NeighbouringObjectives) -> Callable[[float], float]:
    """Profile of a Gaussian claim where the objectives differ in one or two coordinates.

    In one, the line is cut into cells whose probabilities are exact. Cells forget, so that the
    result is never above the truth, and it is exact but for the cells in which the densities
    cross. In two, the noise is cut into squares, with an error of less than a hundredth.

    Parameters
    ----------
    objectives : NeighbouringObjectives

    Returns
    -------
    callable
        Delta at an epsilon, the larger of both orders.
    """
    if objectives.size == 1:
        return _profile(*_line(objectives))
    return _profile(*(_plane(objectives, run) for run in (0, 1)))


def _line(objectives: NeighbouringObjectives) -> list[tuple[np.ndarray, np.ndarray]]:
    """Probabilities of cells, of both runs, and there the log ratio to the other."""
    scale = objectives.law.scale
    noise = np.linspace(-_REACH, _REACH, 4001)[:, np.newaxis, np.newaxis] * scale
    nodes = np.unique(np.concatenate([objectives.minimisers(noise, run) for run in (0, 1)]))
    linear = -objectives.linear(nodes[:, np.newaxis, np.newaxis])[:, :, 0, 0] / scale
    p, q = (_cells(each) for each in linear)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.nan_to_num(np.log(p) - np.log(q), nan=0.0)
    return [(p, ratio), (q, -ratio)]


def _cells(noise: np.ndarray) -> np.ndarray:
    """Probabilities of a standard normal between neighbouring points, exact in both tails."""
    low, high = noise[:-1], np.maximum(noise[1:], noise[:-1])
    return np.where(low > 0.0, ndtr(-low) - ndtr(-high), ndtr(high) - ndtr(low))


def _plane(objectives: NeighbouringObjectives, run: int) -> tuple[np.ndarray, np.ndarray]:
    """Masses of squares of the noise of one run, and there its log ratio to the other."""
    # Beyond is less than a thousandth of the delta that is claimed.
    reach = math.sqrt(2.0 * math.log(1e4 / objectives.law.guarantee.delta))
    axis = np.linspace(-reach, reach, 241)
    noise = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
    noise = noise[np.linalg.norm(noise, axis=1) <= reach]
    _, losses = _answers_to(objectives, run, noise.reshape(-1, *objectives.shape))
    masses = np.exp(-np.square(noise).sum(axis=1) / 2.0) * (axis[1] - axis[0]) ** 2 / (2 * np.pi)
    return masses, losses


def sampled_profile(
    objectives: NeighbouringObjectives, epsilons: np.ndarray, n: int, rng: np.random.Generator
) -> Callable[[float], float]:
    """Lower confidence bounds on a profile, from samples for given epsilons in both orders.

    For each epsilon, linear terms are drawn around the likeliest one at which the loss is beyond
    it, and weighed by the ratio of the two normal densities. Where a weight is above a bound that
    is fixed before the draw it is cut to it, which makes delta smaller.

    Parameters
    ----------
    objectives : NeighbouringObjectives

    epsilons : ndarray

    n : int
        Samples in each order, for each epsilon.

    rng : Generator

    Returns
    -------
    callable
        Delta at an epsilon, from the samples for the nearest one. Those for the epsilons that
        samples were drawn for hold together.
    """
    alarm, drawn = _ALARM / 2 / len(epsilons), []
    for run in (0, 1):
        direction = _steepest(objectives, run, rng)
        drawn.append([_sample(objectives, run, e, direction, n, rng) for e in epsilons])

    def delta(epsilon: float) -> float:
        nearest, found = int(np.abs(epsilons - epsilon).argmin()), [0.0]
        for losses, weights, most in (order[nearest] for order in drawn):
            if most > 0.0:
                terms = weights * -np.expm1(np.minimum(epsilon - losses, 0.0))
                mean = float(np.minimum(terms / most, 1.0).mean())
                found.append(most * _least_mean(mean, n, alarm))
        return max(found)

    return delta


def _answers_to(
    objectives: NeighbouringObjectives, run: int, noise: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Minimisers of one run for noise of unit scale, and its log ratios to the other there."""
    points = objectives.minimisers(objectives.law.scale * noise, run)
    return points, objectives.losses(points) * (1 - 2 * run)


def _steepest(
    objectives: NeighbouringObjectives, run: int, rng: np.random.Generator
) -> np.ndarray:
    """Direction of the noise at which the loss grows fastest, as found along a few."""
    changes = _changes(objectives)
    noise = rng.normal(size=(60, *objectives.shape))
    noise = _scaled(np.concatenate([noise, changes, -changes, [changes.sum(axis=0)]]), 4.0)
    for _ in range(3):
        points, losses = _answers_to(objectives, run, noise)
        best = losses.argsort()[-20:]
        here, there = objectives.linear(points[best])[[run, 1 - run]]
        moved = _scaled(there - here, 4.0)
        noise = _scaled(np.concatenate([noise[best], moved, noise[best[-1:]] + moved]), 4.0)
    return noise[_answers_to(objectives, run, noise)[1].argmax()] / 4.0


def _sample(
    objectives: NeighbouringObjectives,
    run: int,
    epsilon: float,
    direction: np.ndarray,
    n: int,
    rng: np.random.Generator,
) -> tuple[np.ndarray, np.ndarray, float]:
    """Losses and weights of samples that are drawn for an epsilon, and the largest weight."""
    along = np.linspace(0.0, _REACH, 91)
    _, losses = _answers_to(objectives, run, along[:, np.newaxis, np.newaxis] * direction)
    gain = -np.expm1(np.minimum(epsilon - losses, 0.0))
    shift = along[(np.exp(-np.square(along) / 2.0) * gain).argmax()]
    most = 1.5 * float((np.exp(-along * shift + shift**2 / 2.0) * gain).max())
    noise = rng.normal(size=(n, *objectives.shape)) + shift * direction
    projected = (noise * direction).sum(axis=(1, 2))
    _, losses = _answers_to(objectives, run, noise)
    return losses, np.exp(-projected * shift + shift**2 / 2.0), most


def _least_mean(mean: float, n: int, alarm: float) -> float:
    """Lower confidence bound on the mean of numbers in [0, 1] (Hoeffding 1963, theorem 1)."""
    low, high = 0.0, mean
    for _ in range(60):
        middle = (low + high) / 2.0
        distance = rel_entr(mean, middle) + rel_entr(1.0 - mean, 1.0 - middle)
        low, high = (low, middle) if n * distance <= -math.log(alarm) else (middle, high)
    return low


_N_OUTPUTS = 8
_N_AUDITS = 3
_N_SAMPLES = 300
_MOVED = 1e-9  # part of its claim that a minimiser loses if it moves at all


class ObjectivePairs:
    """Runs of one release after another, compared at a few outputs that all could have had.

    The densities of two runs at these are a lower bound on what the pair loses. The best pairs
    are then audited by `~skdp.audit._density.density_audit`, which takes its time. Of more than
    `MOST_COORDINATES` coordinates no densities are audited.

    Parameters
    ----------
    rng : Generator
    """

    def __init__(self, rng: np.random.Generator) -> None:
        self.rng = rng
        self._outputs: list[np.ndarray] = []
        self._seen: dict[NeighbourRun, tuple[np.ndarray, np.ndarray, np.ndarray]] = {}
        self._best: list[tuple[float, Perturbed, Perturbed, str]] = []

    def not_checked(self, first: NeighbourRun) -> Iterator[str]:
        """Which densities of a run are not audited, in words."""
        if len(first.perturbed) > 1:
            yield "densities of minimisers of perturbed objectives after the first"
        if any(record.linear.size > MOST_COORDINATES for record in first.perturbed[:1]):
            yield f"densities of more than {MOST_COORDINATES} coordinates"

    def begin(self, base: NeighbourRun) -> list[Finding]:
        """Start with another transcript; findings about its solver."""
        self._outputs, self._seen, found = [], {}, []
        for i, (record, masking) in enumerate(_minimised(base)):
            found += minimiser_findings(record, masking)
            if i == 0:
                reaches = np.append(0.0, np.geomspace(1.0, 1e3, _N_OUTPUTS - 1))
                pushes = self.rng.standard_normal((len(reaches), *masking.asked.shape))
                pushes *= reaches[:, np.newaxis, np.newaxis] * record.law.scale / record.penalty
                self._outputs = list(masking.asked + pushes)
        return found

    def compare(
        self, one: NeighbourRun, other: NeighbourRun, distances: Distances, pair: str
    ) -> tuple[float, list[Finding]]:
        """Part of the claim that the pair consumes at least, at one of the outputs, and findings.

        In many coordinates it is what the noise alone consumes, without the determinants.
        """
        if not self._outputs:
            return 0.0, []
        record = one.perturbed[0]
        here, there = (self._terms(run) for run in (one, other))
        change, moved, determinants = (a - b for a, b in zip(here, there, strict=True))
        losses = np.abs(change)
        if record.law.gaussian:
            # A Gaussian log ratio has no bound; how far apart the linear terms are has.
            apart = np.linalg.norm(moved, axis=(1, 2)) / record.law.scale
            losses = apart + np.abs(determinants)
        found = float(losses.max())
        found = found if math.isfinite(found) else math.inf
        if record.linear.size <= MOST_COORDINATES:
            self._best.append((found, record, other.perturbed[0], pair))
            self._best.sort(key=lambda entry: -entry[0])
            del self._best[_N_AUDITS:]
        score = found / record.law.guarantee.epsilon
        return score, split_findings(one, distances, pair) if score > _MOVED else []

    def _terms(self, run: NeighbourRun) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Log densities, linear terms and log determinants at the outputs."""
        if run not in self._seen:
            record = run.perturbed[0]
            linear = np.array([linear_of(record, weights) for weights in self._outputs])
            determinants = np.zeros(len(linear))
            if record.linear.size <= MOST_COORDINATES:
                determinants = np.array([log_determinant(record, w) for w in self._outputs])
            self._seen[run] = log_law(record.law, linear) + determinants, linear, determinants
        return self._seen[run]

    def audits(self) -> Iterator[tuple[DensityAudit, Perturbed, str]]:
        """The best pairs, as their densities have it."""
        for _, one, other, pair in self._best:
            yield density_audit(one, other, n=_N_SAMPLES, rng=self.rng), one, pair


def split_findings(one: NeighbourRun, distances: Distances, pair: str) -> list[Finding]:
    """Whether all that two runs move beside a minimiser shares the claim with it.

    Of blocks that share no row a pair moves one, and each may have the whole claim.
    """
    claim = one.run.claim
    if claim is None or len(pairs := _minimised(one)) != 1:
        return []
    record, masking = pairs[0]
    moved = [record.law.guarantee, masking.law.guarantee]
    shares = zip(one.releases, distances.shares, strict=True)
    moved += [r.law.guarantee for r, share in shares if share > 0.0 and r is not masking]
    for selected, ranges in distances.of_selections(one.selected):
        if ranges.any():
            most = (selected.epsilon,) * len(ranges)
            moved.append(BoundedRangeDP(most, adjacency=claim.adjacency))
    epsilon = claim.epsilon_at(getattr(claim, "delta", 0.0))
    delta = claim.delta_at(epsilon)
    if compose(moved).delta_at(epsilon * (1 + TOLERANCE)) <= delta * (1 + TOLERANCE) + 1e-15:
        return []
    what = f"what moves is promised more than guarantee_ says, for {pair}"
    if len(moved) > 2:
        what = f"with all other releases, {what}"
    return [Finding("total", f"the minimiser and the masking of its error: {what}", record.where)]


def _minimised(run: NeighbourRun) -> list[tuple[Perturbed, Released]]:
    """Each linear term with the masking that follows."""
    return [
        (one, other)
        for one, other in pairwise(run.run.transcript)
        if isinstance(one, Perturbed) and isinstance(other, Released)
    ]


class Passthrough:
    """Lets pass what is released, and keeps it."""

    def __init__(self) -> None:
        self.values: list[Any] = []

    def __call__(self, record: Any) -> Any:
        if isinstance(record, OneOfRuns | Perturbed):
            self.values.append(() if isinstance(record, OneOfRuns) else None)
            return None
        if isinstance(record, Selected):
            self.values.append(np.array(self.choice(record)))
            return self.values[-1].copy()
        if self.values and self.values[-1] is None:
            # What another run's linear term must lead to: the minimiser of this one.
            self.values[-1] = np.array(record.asked)
        value = np.array(self.value(record))
        self.values.append(record.above(value) if isinstance(record, Kept) else value)
        return _copied(self.values[-1])

    def value(self, record: Released) -> np.ndarray:
        """What goes on."""
        return record.released

    def choice(self, record: Selected) -> np.ndarray:
        """What goes on of selections."""
        return record.chosen


class Adversary(Passthrough):
    """Moves all that is released far in one direction.

    A guarantee holds for every transcript. Far from its usual values a mechanism takes gradients
    where slopes are steepest, and adversaries of a stream may be anywhere.

    Parameters
    ----------
    rng : Generator

    size : float
        How far, in root mean squares of the noise.
    """

    def __init__(self, rng: np.random.Generator, size: float) -> None:
        super().__init__()
        self.rng, self.size = rng, size
        self._directions: dict[int, np.ndarray] = {}

    def value(self, record: Released) -> np.ndarray:
        """See `Passthrough`."""
        n = record.released.size
        if n not in self._directions:
            direction = self.rng.standard_normal(n)
            self._directions[n] = direction / max(float(np.linalg.norm(direction)), 1e-300)
        length = self.size * record.scale * record.law.level(n) / record.law.scale * np.sqrt(n)
        length = min(length, 2.0**48 * record.step)
        push = (length * self._directions[n]).reshape(record.released.shape)
        return record.released + on_lattice(push, record.step)

    def choice(self, record: Selected) -> np.ndarray:
        """Any candidate: each has a chance."""
        return self.rng.integers(record.utilities.shape[1], size=len(record.chosen))


class Replayer:
    """Plays the values of another run.

    Parameters
    ----------
    values : sequence
        What went on in the other run; None where that decides for itself.
    """

    def __init__(self, values: Sequence[Any]) -> None:
        self.values, self._place = values, 0

    def __call__(self, record: Any) -> Any:
        place, self._place = self._place, self._place + 1
        value = self.values[place] if place < len(self.values) else None
        if value is None or isinstance(record, OneOfRuns):
            return None
        if isinstance(record, Kept) or isinstance(value, tuple):
            return value if isinstance(record, Kept) and isinstance(value, tuple) else None
        names = {Perturbed: "linear", Selected: "chosen", Released: "released"}
        if np.shape(value) != np.shape(getattr(record, names[type(record)])):
            return None
        if isinstance(record, Perturbed):
            return forced_linear(record, value)
        return value.copy() if isinstance(record, Selected) else _copied(value)


def _copied(value: Any) -> Any:
    """A copy; of a single number a scalar, as mechanisms return it; names are what they are."""
    return value if isinstance(value, tuple) else value.copy()[()]
