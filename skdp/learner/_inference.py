"""Coefficients with covariances of sampling error and noise: moments and Newton steps.

To check it: `release_moments` here and `release_joint` of ``learner/_descent.py`` for the
releases, and the stages for their budgets. Everything else is made of released numbers.
"""

import math
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self, cast

import numpy as np
from scipy import sparse
from scipy.special import chdtri

from skdp._defaults import linear as defaults
from skdp._random._source import NoiseSource
from skdp._validation import plain_arguments
from skdp.learner._descent import (
    Curvature,
    JointSums,
    half_of,
    is_certified,
    release_joint,
    symmetric,
)
from skdp.learner._losses import HuberLoss, Loss
from skdp.learner._sequence import CoefficientNoise, Run, divided
from skdp.learner._sums import exact_sum
from skdp.mechanisms import NoiseLaw, clip_rows, release
from skdp.mechanisms._additive import check_span, row_norms
from skdp.privacy import ApproxDP, GaussianDP
from skdp.rows import _sums as sums
from skdp.rows._blocks import RowBlocks, per_row

# Square of what targets are multiplied by, and of their squares: free under "replace-one".
_THEOREM_SQUARES = {"replace-one": math.sqrt(1.5), "add-remove": 0.5}
_THEOREM_MOMENTS = {"replace-one": 3.0 / math.sqrt(2.0), "add-remove": 1.5}


@dataclass(frozen=True, eq=False)
class Moments:
    """Sums of products of rows and targets, as they were released.

    Parameters
    ----------
    second : ndarray of shape (n_features, n_features)
        Of rows. Eigenvalues may be negative.

    mixed : ndarray of shape (n_features,)
        Of rows and targets.

    squares : float
        Of targets.

    deviation : float
        Standard deviation of the noise of an entry of ``mixed``.

    beside : float
        The same of an entry of ``second`` beside the diagonal.
    """

    second: np.ndarray
    mixed: np.ndarray
    squares: float
    deviation: float
    beside: float

    def merged(self, other: "Moments") -> "Moments":
        """Mean of two releases for the same rows, weighted by their precisions."""
        share = other.deviation**2 / (self.deviation**2 + other.deviation**2)
        smaller = math.sqrt(share)

        def mean(ours: Any, theirs: Any) -> Any:
            return share * ours + (1.0 - share) * theirs

        return Moments(
            mean(self.second, other.second),
            mean(self.mixed, other.mixed),
            mean(self.squares, other.squares),
            smaller * self.deviation,
            smaller * self.beside,
        )


def release_moments(data: RowBlocks, *, guarantee: GaussianDP, noise: NoiseSource) -> Moments:
    """Release sums of moments of rows and targets, in one release.

    Privacy: satisfies ``guarantee``. With R the bound on the norm of a row x, and targets y in
    [-1, 1], a row adds ``(x x' / R^2, x y / R, k y^2)``, where entries beside the diagonal count
    once and times the root of 2. With c the cosine between two rows, the squared distance of
    theirs is at most ``2 - 2 c^2 + 2 - 2 c y y' + k^2 (y^2 - y'^2)^2`` where both are as long as
    they may be: 4.5 at most, at ``c y y' = -1/2``, and no more than that for shorter ones and
    other targets while k^2 is 1.5 at most. A row that comes or goes moves it by the root of
    ``2 + k^2``. Users add the means of their rows.

    Parameters
    ----------
    data : RowBlocks
        With targets in [-1, 1] in place of codes.

    guarantee : GaussianDP

    noise : NoiseSource

    Returns
    -------
    Moments
    """
    norm, adjacency = data.row_norm, guarantee.adjacency
    sensitivity, of_squares = _THEOREM_MOMENTS[adjacency], _THEOREM_SQUARES[adjacency]
    mixed, squares = data.target_moments()
    law = NoiseLaw.of("gaussian", guarantee)
    value = [half_of(data.second_moments()) / norm**2, mixed / norm, [of_squares * squares]]
    released = release(
        np.concatenate(value),
        law=law,
        sensitivity=sensitivity,
        error=sums.ROUNDING_SHARE * sensitivity,
        random_state=noise,
        purpose="moments of rows and targets",
    )
    level = law.level(len(released)) * sensitivity
    d = data.n_features
    second, mixed = symmetric(released[: -d - 1]) * norm**2, released[-d - 1 : -1] * norm
    deviations = level * norm, level * norm**2 / math.sqrt(2.0)
    return Moments(second, mixed, float(released[-1]) / of_squares, *deviations)


@dataclass(frozen=True, eq=False)
class Estimate:
    """Coefficients with their covariances, made of released numbers only.

    Parameters
    ----------
    weights : ndarray of shape (n_features,)

    sampling : ndarray of shape (n_features, n_features)
        Covariance of what other rows would give, without noise.

    noise : ndarray of shape (n_features, n_features)
        Covariance of what fresh noise would give on the same rows.

    values : ndarray of shape (n_features,)
        Eigenvalues of the released curvature.

    vectors : ndarray of shape (n_features, n_features)
        Its eigenvectors, in columns.

    beside : float
        Standard deviation of the noise of an entry of the curvature beside the diagonal.

    is_robust : bool
        Whether the sampling covariance is that of Huber and White, for any law of the errors.
        Otherwise it is for errors of one variance, and of users it is an upper bound.

    has_converged : bool, default=True
        Whether the last Newton step was short enough to be the last.
    """

    weights: np.ndarray
    sampling: np.ndarray
    noise: np.ndarray
    values: np.ndarray
    vectors: np.ndarray
    beside: float
    is_robust: bool
    has_converged: bool = True


@dataclass(frozen=True)
class _Inference:
    """What both stages share."""

    n_features: int
    row_norm: float
    budget: GaussianDP
    guarantee: ApproxDP | GaussianDP

    _mechanism: ClassVar[str]

    @classmethod
    @plain_arguments
    def plan(cls, target: ApproxDP | GaussianDP, **public: Any) -> Self:
        """Release that meets ``target``, from public numbers."""
        named: Any = dict(
            mechanism=cls._mechanism,
            source="Dong, Roth and Su, JRSS-B 2022, theorem 1 and corollary 2",
        )
        public["budget"] = target
        if isinstance(target, ApproxDP):
            public["budget"] = named["refined"] = target.gaussian_target()
        size = public["n_features"] * (public["n_features"] + 2)
        check_span(NoiseLaw.meeting(target, size=size), size, target)
        return cls(**public, guarantee=replace(target, **named))

    def check_n_rows(self, n_samples: int) -> None:
        """Refuse more rows than sums are certified for, before a ledger is charged."""
        sums.refuse_rows(
            n_samples, sums.MOST_ROWS, self.guarantee.adjacency, unit=self.guarantee.unit
        )


@dataclass(frozen=True)
class RegressionMoments(_Inference):
    """Least squares from released moments, with a second look where noise hides no direction.

    Privacy: satisfies ``budget``. The moments of rows and targets are released for a share of
    the squared mu. Then, by what was released, either they are released once more for the rest, or
    the gradient and the squared residuals are, at the released coefficients. Of Gaussian releases
    the squares of mu add up.

    Parameters
    ----------
    n_features : int
        Constant feature included.

    row_norm : float
        Bound on the norm of a row.

    constant : float
        The last feature of each row, 0 if it is one of the rows' own.

    budget : GaussianDP

    guarantee : ApproxDP or GaussianDP
        The same in the terms of what was asked for.

    Notes
    -----
    With A the released products of rows, b those of rows and targets, and theta the coefficients,
    ``b - A theta`` has known noise: that of b, and that of A times theta. A is inverted with its
    eigenvalues raised by what noise does to the mean of an inverse. A second look releases the
    gradient at theta with residuals cut at five times their deviation, or higher up while its
    noise is half of what sampling makes it differ by. That noise is less, and the one of A
    multiplies the last step alone.
    """

    constant: float

    _mechanism: ClassVar[str] = "noisy moments of a regression"

    def learn(self, run: Run, noise: NoiseSource) -> None:
        """Release ``run.found["estimate"]``, and the cap of residuals of a second look."""
        data, n_units = run.data, run.known_n_samples
        first, last = divided(self.budget, float(defaults.BEFORE_THE_LAST))
        moments = self._moments(data, n_units, first, noise)
        curvature = Curvature(moments.second, moments.beside)
        weights = curvature.inverse @ moments.mixed
        looks_twice = curvature.strength >= defaults.SECOND_LOOK_FROM
        if looks_twice:
            spread = math.sqrt(_residual_variance(moments, weights, n_units))
            longest = 1.0 + self.row_norm * float(np.linalg.norm(weights))
            # The noise of the gradient may be half of what sampling makes it differ by.
            steep = math.sqrt(max(float(np.trace(moments.second)), 0.0) / self.n_features)
            room = steep * last.mu / (2.0 * self.row_norm) / 2.0
            cap = min(longest, spread * max(float(defaults.RESIDUAL_CAP), room))
            at = weights[np.newaxis]
            while cap < longest and not is_certified(
                data, HuberLoss(cap), at, last, curvature=False
            ):
                cap = min(longest, 2.0 * cap)  # by public and released numbers
            run.found |= {"cap": cap, "looked_from": weights}
            joint = release_joint(
                data,
                HuberLoss(cap),
                at,
                guarantee=last,
                noise=noise,
                curvature=False,
            )
            change = -curvature.inverse @ joint.gradient
            weights = weights + change
            of_noise = curvature.noise(change, joint.deviation)
            sampling = curvature.sampling(cast(np.ndarray, joint.squares))
        else:
            moments = moments.merged(self._moments(data, n_units, last, noise))
            curvature = Curvature(moments.second, moments.beside)
            weights = curvature.inverse @ moments.mixed
            of_noise = curvature.noise(weights, moments.deviation)
            variance = _residual_variance(moments, weights, n_units)
            sampling = curvature.sampling(variance * curvature.floored)
        parts = weights, sampling, of_noise, curvature.values, curvature.vectors, curvature.beside
        run.weights = weights[np.newaxis]
        run.found["estimate"] = Estimate(*parts, is_robust=looks_twice)

    def _moments(self, data: Any, n_units: float, guarantee: GaussianDP, noise: Any) -> Moments:
        found = release_moments(data, guarantee=guarantee, noise=noise)
        if self.constant and self.guarantee.adjacency == "replace-one" and data.weights is None:
            found.second[-1, -1] = n_units * self.constant**2  # public
        return found


def _residual_variance(moments: Moments, weights: np.ndarray, n_units: float) -> float:
    """Mean squared residual, at least what its noise is."""
    total = moments.squares - 2.0 * moments.mixed @ weights + weights @ moments.second @ weights
    size = 1.0 + float(weights @ weights)
    least = moments.deviation * size
    return max(float(total), least) / n_units


@dataclass(frozen=True)
class JointSteps(_Inference):
    """Newton steps from joint releases of gradient, curvature and squared residuals.

    Privacy: satisfies ``budget``. Each step is one release at a point that was released before,
    for a share of the squared mu that is fixed beforehand. How many there are follows from what
    was released, and the last step has all that is left. Squares of mu add up, whatever a release
    decides of those that follow.

    Parameters
    ----------
    loss : Loss

    n_features : int
        Constant feature included.

    row_norm : float
        Bound on the norm of a row.

    budget : GaussianDP

    guarantee : ApproxDP or GaussianDP
        The same in the terms of what was asked for.

    References
    ----------
    Smith and Thakurta, "Fully adaptive composition for Gaussian differential privacy", 2022.

    Notes
    -----
    With G the inverse of the curvature H and ``q = step' H step``, a step leaves at most
    ``R q |G e| / 2`` along a coefficient e, beyond its noise. That bound is loose by about ten.
    The last step is made when a tenth of it, as predicted by the steps before, is below a fourth
    of the standard error, and the step before is no longer than noise makes it in half of all
    cases. There are intervals where noise makes the last step as long in one case of a thousand:
    rows are the same in all steps, so that only noise tells the last two points apart. Where the
    squared residuals of log-odds are below half of what the curvature says they are, classes are
    separated, and there are none.
    """

    loss: Loss

    _mechanism: ClassVar[str] = "noisy Newton steps"

    def __post_init__(self) -> None:
        if not self.loss.has_joint_curvature and self.loss.curvature > self.loss.lipschitz:
            raise ValueError(
                "loss must have curvature at most lipschitz; got "
                f"{self.loss.curvature:g} and {self.loss.lipschitz:g}."
            )

    def learn(self, run: Run, noise: NoiseSource) -> None:
        """Release ``run.found["estimate"]``."""
        weights = np.zeros(self.n_features)
        spread: Any = None
        most, n_steps = float(defaults.BEFORE_THE_LAST), defaults.N_EARLY_STEPS
        n_shares = n_steps * (n_steps + 1) // 2
        shares = most * np.arange(1.0, n_steps + 1.0) / n_shares
        # Where rows are many, small shares will do until noise is all that is left to see.
        spent, small = 0.0, shares[0] / n_steps
        for _ in range(n_shares):  # which are a fourth of all of it
            step = self._step(run, weights, small, noise)
            spent += small
            if step.curvature.strength < defaults.SECOND_LOOK_FROM:
                break
            weights, before, spread = weights + step.change, spread, step.noise
            if before is not None and step.is_likely(before, _LIMIT_UNLIKELY):
                break
        for share in shares * (1.0 - spent / most):
            step = self._step(run, weights, share, noise)
            weights, before, spread = weights + step.change, spread, step.noise
            spent += share
            is_near = before is not None and step.is_likely(before, _LIMIT_LIKELY)
            if is_near and step.left_next(math.sqrt(share / (1.0 - spent))) <= 1.0:
                break
        step = self._step(run, weights, 1.0 - spent, noise)
        weights = weights + step.change
        seen = step.curvature
        parts = weights, step.sampling, step.noise, seen.values, seen.vectors, seen.beside
        is_near = step.is_likely(spread, _LIMIT_UNLIKELY)
        if not self.loss.has_joint_curvature:
            # The noise of a curvature that is paid for hides what steps leave.
            is_near = is_near and step.curvature.strength >= 0.5
        elif run.data.users is None:
            # Both traces have one mean where scores are log-odds. Where classes are separated, or
            # nearly, and scores are on their way to be long, residuals are too small for them.
            # Squares have the squares of weights, whose sum is no less than the square of the sum
            # of weights over the number of rows.
            least = 0.5
            if run.data.weights is not None and self.guarantee.adjacency == "replace-one":
                least *= min(run.known_n_samples / run.data.n_units, 1.0)
            is_near = is_near and step.ratio >= least
        run.weights, run.has_scale = weights[np.newaxis], True
        deviations = np.sqrt(np.diag(step.noise))
        run.spread = CoefficientNoise("approximation", deviations, step.noise)
        run.found["estimate"] = Estimate(*parts, is_robust=True, has_converged=is_near)

    def _step(self, run: Run, weights: np.ndarray, share: float, noise: NoiseSource) -> "_Step":
        """Step for a share of the squared mu."""
        guarantee = replace(self.budget, mu=math.sqrt(share) * self.budget.mu)
        at = weights[np.newaxis]
        joint = release_joint(run.data, self.loss, at, guarantee=guarantee, noise=noise)
        return _Step(self.row_norm, joint)


# Chance that a step is as long where nothing is left to converge: of one before the last, and of
# the last.
_LIMIT_LIKELY, _LIMIT_UNLIKELY = 0.5, 1e-3


class _Step:
    """One Newton step, and what it leaves."""

    def __init__(self, row_norm: float, joint: JointSums):
        self.row_norm, self.joint = row_norm, joint
        self.curvature = Curvature(cast(np.ndarray, joint.curvature), joint.beside)
        squares, curvature = (np.trace(cast(Any, m)) for m in (joint.squares, joint.curvature))
        self.ratio = float(squares / curvature)
        self.change = -self.curvature.inverse @ joint.gradient
        self.noise = self.curvature.noise(self.change, joint.deviation)
        self.sampling = self.curvature.sampling(cast(np.ndarray, joint.squares))

    def left_next(self, noise: float) -> float:
        """What the next step leaves, over a fourth of a standard error; the largest, as predicted.

        ``noise`` is that of the next step over that of this one.
        """
        floored, inverse = self.curvature.floored, self.curvature.inverse
        length = float(self.change @ floored @ self.change)
        square = (self.row_norm * length / defaults.LOOSENESS) ** 2
        length = float(np.sum(self.noise * floored)) + square * float(np.linalg.norm(inverse, 2))
        variances = np.diag(self.sampling) + noise**2 * np.diag(self.noise)
        left = 2.0 * self.row_norm * length * np.linalg.norm(inverse, axis=0) / defaults.LOOSENESS
        return float((left / np.sqrt(variances)).max())

    def is_likely(self, before: np.ndarray, chance: float) -> bool:
        """Whether noise in the point before, and its own, make the step as long by some chance."""
        square = self.change @ np.linalg.solve(before + self.noise, self.change)
        return bool(square <= chdtri(len(self.change), chance))


@dataclass(frozen=True)
class CutShares:
    """By how much rows were shortened, and how many targets were clipped and residuals cut.

    Privacy: satisfies ``guarantee``. A row adds from 0 to 1 to each of the sums, and a user the
    mean of what their rows add.

    Parameters
    ----------
    guarantee : GaussianDP
    """

    guarantee: GaussianDP

    phrase: ClassVar[str] = "with noisy counts of what was clipped"

    @classmethod
    def planned(cls, budget: Any, n_samples: float) -> tuple[Any, Any]:
        """Stage for its share of a budget, and the rest."""
        part, rest = divided(budget, float(defaults.ROWS_SHARE))
        return cls(part), rest

    def check_n_rows(self, n_samples: int) -> None:
        """Refuse more rows than are added without rounding."""
        sums.refuse_rows(
            n_samples, sums.MOST_ROWS, self.guarantee.adjacency, unit=self.guarantee.unit
        )

    def learn(self, run: Run, noise: NoiseSource) -> None:
        """Release ``run.found["cut"]``, means over rows, and ``run.found["cut_noise"]``."""
        rows = run.rows
        with np.errstate(all="ignore"):  # a warning would tell huge rows from others
            norms = per_row(row_norms, rows.X)
            cut = [1.0 - np.minimum(rows.x_norm / run.norm_scale / norms, 1.0)]
        if rows.beyond is not None:
            cut.append(rows.beyond)
        if "cap" in run.found:
            cut.append(self._cut_residuals(run))
        size = len(cut)
        law = NoiseLaw.of("gaussian", self.guarantee)
        total = release(
            exact_sum(np.column_stack(cut), rows.weights, rows.users, bound=1.0),
            law=law,
            sensitivity=math.sqrt(size),
            random_state=noise,
            purpose="shares of clipped rows, targets and residuals",
        )
        n_units = run.known_n_samples
        run.found |= {"cut": total / n_units, "n_units": n_units}
        run.found["cut_noise"] = law.level(size) * math.sqrt(size) / n_units

    @staticmethod
    def _cut_residuals(run: Run) -> np.ndarray:
        rows = run.rows
        weights, most = run.found["looked_from"], rows.x_norm / run.norm_scale
        factor = run.norm_scale / rows.unit

        def products_of(X: Any) -> np.ndarray:
            X = clip_rows(X, most) * factor
            # The same whatever the other rows are: the entries of a row one after another.
            if sparse.issparse(X):
                products = X.data * weights[X.indices]
                products = sparse.csr_array((products, X.indices, X.indptr), shape=X.shape)
                return np.ravel(products.sum(axis=1))
            scores = np.zeros(len(X))
            for j in range(X.shape[1]):
                scores += X[:, j] * weights[j]
            return scores

        scores = per_row(products_of, rows.X) - rows.codes
        if rows.constant:
            scores = scores + (rows.constant / rows.unit) * weights[-1]
        return np.abs(scores) > run.found["cap"]
