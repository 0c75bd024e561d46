"""Density of what objective perturbation releases, written anew from the rows.

The minimiser ``W`` of ``sum_i loss(W x_i, y_i) + penalty/2 ||W||^2 + <B + P, W>``, with a pull P
that all worlds share, maps back to the linear term
``B = -(gradient of the losses + penalty W + P)``. So its density is that of the noise at
``B`` times the determinant of the Hessian, and the privacy loss at an output is the difference of
the logarithms of two such densities. Nothing here calls the solver: gradients come from residuals,
and curvatures from differences of residuals.
"""

import math
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from scipy import sparse, stats

from skdp._recording import Perturbed, Released
from skdp._validation import fraction
from skdp.audit._findings import Finding
from skdp.exceptions import SolverError
from skdp.learner import HuberLoss
from skdp.mechanisms import NoiseLaw

__all__ = [
    "Worlds",
    "forced_linear",
    "linear_findings",
    "linear_noise",
    "linear_of",
    "log_density",
    "log_determinant",
    "log_ratio",
    "minimiser_findings",
]

# Of the scores, for a derivative of residuals.
_STEP = 1e-5
# Residuals and entries of Hessians that are computed at once.
_CHUNK = 400_000
_MOST_STEPS = 300


@dataclass(frozen=True, eq=False)
class Worlds:
    """Penalised losses of neighbouring data sets in few coordinates, at many points at once.

    Weights outside the span of the rows meet the penalty alone, the same in each world. Gaussian
    densities do not differ along them, nor along what moves the scores of all classes alike. Norms
    of one row differ by less where there are such weights; of several classes, they can take rows
    out of the sum of norms, which added less than a hundredth where it was looked for.

    Parameters
    ----------
    loss : LogisticLoss, HuberHingeLoss or SoftmaxLoss

    penalty : float

    law : ObjectiveNoise

    rows : ndarray of shape (n_rows, rank)
        Different rows of all worlds.

    codes : ndarray of shape (n_rows,)

    counts : ndarray of shape (n_worlds, n_rows)
        How often each world has a row.

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
        """Worlds of records that have loss, penalty, law and pull in common."""
        first = records[0]
        parts = [_labelled_rows(record.data) for record in records]
        different, places = np.unique(np.concatenate(parts), axis=0, return_inverse=True)
        ends = np.cumsum([len(part) for part in parts])[:-1]
        counts = np.array(
            [np.bincount(p, minlength=len(different)) for p in np.split(places.ravel(), ends)]
        )
        rows, codes = different[:, :-1], different[:, -1]
        if not isinstance(first.loss, HuberLoss):  # labels of classes
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
        common = (first.loss, first.penalty, first.law)
        pull = outputs.T @ first.pull @ inputs
        return cls(*common, rows @ inputs, codes, counts.astype(float), inputs, outputs, pull)

    @property
    def shape(self) -> tuple[int, int]:
        """Of a point."""
        return self.outputs.shape[1], self.rows.shape[1]

    @property
    def size(self) -> int:
        """Number of coordinates."""
        return self.shape[0] * self.shape[1]

    def at(self, weights: np.ndarray) -> np.ndarray:
        """Coordinates of weights, of shape (1, n_scores, rank)."""
        return (self.outputs.T @ weights @ self.inputs)[np.newaxis]

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
        ndarray of shape (n_worlds, n_points, n_scores, rank)
        """
        residuals = self._residuals(self._scores(points)) @ self.outputs
        sums = np.einsum("ki,mis,ir->kmsr", self.counts, residuals, self.rows, optimize=True)
        return -sums - self.penalty * points - self.pull

    def hessians(self, points: np.ndarray) -> np.ndarray:
        """Second derivatives, of shape (n_worlds, n_points, size, size)."""
        scores, n = self._scores(points), len(points)
        columns = []
        for output in self.outputs.T:
            up, down = scores + _STEP * output, scores - _STEP * output
            moved = ((up - down) * output).sum(axis=2, keepdims=True)
            change = self._residuals(up) - self._residuals(down)
            columns.append(change / moved @ self.outputs)
        # Of shape (n_worlds, n_points, n_scores, n_scores, n_rows), then without the axis of rows.
        weights = np.transpose(np.array(columns), (1, 3, 0, 2)) * self.counts[:, None, None, None]
        q, r = self.shape
        flat = weights.reshape(len(self.counts) * n * q * q, len(self.rows))
        sums = np.zeros((len(flat), r * r))
        length = max(1, _CHUNK // max(1, r * r))
        for start in range(0, len(self.rows), length):
            part = self.rows[start : start + length]
            products = (part[:, :, np.newaxis] * part[:, np.newaxis]).reshape(len(part), -1)
            sums += flat[:, start : start + length] @ products
        hessians = np.swapaxes(sums.reshape(len(self.counts), n, q, q, r, r), 3, 4)
        hessians = hessians.reshape(len(self.counts), n, self.size, self.size)
        return (hessians + np.swapaxes(hessians, 2, 3)) / 2 + self.penalty * np.eye(self.size)

    def log_densities(self, points: np.ndarray) -> np.ndarray:
        """Up to a constant of the law, of shape (n_worlds, n_points)."""
        found = []
        for part in np.array_split(points, self._n_parts(len(points))):
            linear = self.outputs @ self.linear(part)
            noise = log_law(self.law, linear)
            found.append(noise + np.linalg.slogdet(self.hessians(part))[1])
        return np.concatenate(found, axis=1)

    def losses(self, points: np.ndarray) -> np.ndarray:
        """Privacy losses, of shape (n_points,): log ratios of the first world to the second."""
        one, other = self.log_densities(points)
        return one - other

    def minimisers(self, linear: np.ndarray, world: int) -> np.ndarray:
        """Minimisers for linear terms of shape (n_points, n_scores, rank), by Newton's method."""
        alone, zero = self._only(world), np.zeros((1, *self.shape))
        start = alone._minimisers(zero, zero)
        parts = np.array_split(linear, self._n_parts(len(linear)))
        return np.concatenate([alone._minimisers(part, start) for part in parts])

    def _only(self, world: int) -> "Worlds":
        counts = self.counts[[world]]
        kept = counts[0] > 0
        return Worlds(
            self.loss,
            self.penalty,
            self.law,
            self.rows[kept],
            self.codes[kept],
            counts[:, kept],
            self.inputs,
            self.outputs,
            self.pull,
        )

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
        raise SolverError("Minimisers of the recorded objective were not found.")

    def _n_parts(self, n_points: int) -> int:
        each = len(self.rows) * self.loss.n_outputs**2 + len(self.counts) * self.size**2 + 1
        return max(1, math.ceil(n_points * each / _CHUNK))


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
    if law.gaussian:
        return -np.square(linear).sum(axis=(-2, -1)) / (2.0 * law.scale**2)
    return -_norm(law, linear) / law.scale


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


def _gradient(perturbed: Perturbed, weights: np.ndarray) -> tuple[np.ndarray, float]:
    """Gradient of all but the linear term, and a bound on its rounding error."""
    data, total = perturbed.data, np.zeros(weights.shape)
    size = perturbed.penalty * float(np.linalg.norm(weights))
    size += float(np.linalg.norm(perturbed.pull))
    for rows, codes in data.blocks:
        residuals = perturbed.loss.residuals(rows @ weights.T, codes)
        total += (rows.T @ residuals).T
        largest = math.sqrt(float((rows * rows).sum(axis=1).max(initial=0.0)))
        size += float(np.linalg.norm(residuals, axis=1).sum()) * largest
        # Scores are rounded before residuals are taken of them.
        size += len(codes) * largest**2 * perturbed.loss.curvature * np.linalg.norm(weights)
    longest = data.n_samples + data.n_features + 16
    return total + perturbed.penalty * weights + perturbed.pull, 2.0**-52 * longest * size


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
    world = Worlds.of(perturbed)
    inside = float(np.linalg.slogdet(world.hessians(world.at(weights))[0])[1].sum())
    return inside + (weights.size - world.size) * math.log(perturbed.penalty)


def log_density(perturbed: Perturbed, weights: np.ndarray) -> float:
    """Log density of the exact minimiser at ``weights``, up to a constant of the law."""
    density = float(log_law(perturbed.law, linear_of(perturbed, weights)))
    return density + log_determinant(perturbed, weights)


def log_ratio(one: Perturbed, other: Perturbed, weights: np.ndarray) -> float:
    """Privacy loss at an output: log ratio of its densities in two worlds."""
    return log_density(one, weights) - log_density(other, weights)


def forced_linear(perturbed: Perturbed, weights: np.ndarray) -> np.ndarray:
    """Linear term that makes this world release the exact minimiser of another, near enough.

    What the solver then returns is within ``(tolerance + rounding) / penalty`` of ``weights``,
    so that the masking of its error compares what two solvers make of one minimiser.

    Parameters
    ----------
    perturbed : Perturbed
        Of this world; what is returned goes on in place of its linear term.

    weights : ndarray of shape (n_outputs, n_features)
        What the masking was asked for in the other world.

    Returns
    -------
    ndarray of shape (n_outputs, n_features)
        On the lattice of the linear term.
    """
    return perturbed.step * np.rint(linear_of(perturbed, weights) / perturbed.step)


def linear_noise(perturbed: Perturbed) -> list[Released]:
    """The linear term as noise over zero, for tests of its law.

    One for each row where that is K-norm noise for itself. The guarantee of the law is that of the
    minimiser, for rows that move the term by one; no claim of additive noise follows from it.
    """
    law, linear = perturbed.law, perturbed.linear
    if law.pairs:
        raise ValueError("law must be one of additive noise, and not that of pairs.")
    noise = NoiseLaw(law.kind, law.scale, law.guarantee)
    public = noise, law.scale, perturbed.step
    parts = [linear] if law.gaussian else [row[np.newaxis] for row in linear]
    return [Released(np.zeros_like(part), 1.0, *public, part, perturbed.where) for part in parts]


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
    fraction(alarm=alarm)
    findings = []
    for gaussian in (False, True):
        drawn = [record for record in records if record.law.gaussian == gaussian]
        size = sum(record.linear.size for record in drawn)
        if not size:
            continue
        norms = np.array([_norm(r.law, r.linear) / r.law.scale for r in drawn])
        # Rounding to the lattice moves a norm by no more.
        moved = [
            r.step
            / 2
            * math.sqrt(r.linear.size * (1 if gaussian else len(r.linear)))
            / r.law.scale
            for r in drawn
        ]
        power = 2 if gaussian else 1
        low, high = (
            float((np.maximum(norms + sign * np.array(moved), 0.0) ** power).sum())
            for sign in (1.0, -1.0)
        )
        law = stats.chi2(size) if gaussian else stats.gamma(size)
        if law.cdf(low) < alarm / 4 or law.sf(high) < alarm / 4:
            what = f"the norms of {len(drawn)} linear terms do not have the law of their noise"
            findings.append(Finding("noise", what, drawn[0].where))
    return findings
