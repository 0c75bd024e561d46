"""Regression on features of bounded norm without a delta: the minimiser on centred targets.

To check the claim: this file for what is released before and after the minimiser,
`FeatureOutput`, which releases that, and ``rows/_blocks.py``, which bounds the rows.
"""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np

from skdp._defaults import kernel as defaults
from skdp._grid import TINY
from skdp._random._source import NoiseSource
from skdp._validation import plain_arguments
from skdp.kernel._ridge_problem import RidgeProblem, check_planned_rows, ridge_sensitivity
from skdp.learner import HuberLoss, ObjectivePerturbation
from skdp.learner._newton import minimise
from skdp.learner._stages import after_count, counted
from skdp.mechanisms import NoiseLaw, release
from skdp.mechanisms._additive import least_level
from skdp.privacy import ApproxDP
from skdp.rows._blocks import ERROR_SHARE, MOST_ROW_NORM, FeatureBlocks, certified
from skdp.rows._sums import MOST_ROWS, UNIT_ROUNDOFF, check_n_rows


@dataclass(frozen=True)
class FeatureOutput:
    """Release the minimiser with the quieter of K-norm and Gaussian noise.

    Privacy: satisfies ``guarantee`` for any rows and targets, if ``distance`` bounds that of the
    exact minimisers of neighbours whose features have norm one; rows that are longer by
    rounding, and the certified error of the solver, are added here.

    Parameters
    ----------
    guarantee : ApproxDP

    law : NoiseLaw

    penalty : float

    cap : float
        Cap of the residuals. With squared loss it is out of reach: no minimiser gets there.

    distance, most_rows : float
        See `RidgeProblem`.

    References
    ----------
    Chaudhuri, Monteleoni and Sarwate, JMLR 2011, algorithm 1.
    """

    guarantee: ApproxDP
    law: NoiseLaw
    penalty: float
    cap: float
    distance: float
    most_rows: float = math.inf

    @classmethod
    @plain_arguments
    def plan(cls, target: ApproxDP, *, n_components: int, **problem: Any) -> Self:
        """Noise on the minimiser that meets a target.

        Parameters
        ----------
        target : ApproxDP

        n_components : int

        **problem
            ``squared``, ``cap``, ``n_samples`` and ``penalty`` of `RidgeProblem.plan`.

        Returns
        -------
        FeatureOutput
        """
        law = NoiseLaw.meeting(target, size=n_components)
        found = RidgeProblem.plan(
            adjacency=target.adjacency, level=law.level(n_components), **problem
        )
        cap, source = found.cap, "Chaudhuri, Monteleoni and Sarwate, JMLR 2011, theorem 6"
        if cap == math.inf:  # the loss is squared
            cap = 1.01 * math.sqrt(found.most_rows / found.penalty) + 1.0
            source = "Nie and Wang, J. Appl. Math. Phys. 5, 2017, lemma 2, sharpened"
        guarantee = replace(
            target,
            refined=law.refining(target),
            mechanism="output perturbation on random features",
            source=source,
        )
        return cls(guarantee, law, found.penalty, cap, found.distance, found.most_rows)

    @staticmethod
    def is_gaussian(target: ApproxDP, n_components: int) -> bool:
        """Whether the noise that meets a target is Gaussian."""
        return NoiseLaw.meeting(target, size=n_components).kind == "gaussian"

    def check_n_rows(self, n_samples: int, n_components: int) -> None:
        """Refuse more rows than can be certified, before a ledger is charged."""
        check_n_rows(
            HuberLoss(self.cap),
            n_samples=n_samples,
            adjacency=self.guarantee.adjacency,
            n_features=n_components,
            row_norm=MOST_ROW_NORM,
            tolerance=self._tolerance(self.distance),
            penalty=self.penalty,
        )

    def __call__(self, data: FeatureBlocks, noise: NoiseSource) -> tuple[np.ndarray, float]:
        """Weights of the features, and what is added to their products with them."""
        check_planned_rows(data.n_samples, self.most_rows)
        # Strong convexity turns the gradient of the records that neighbours differ by, at most
        # `cap` times the norm of a row each, into a distance; with squared loss that gradient is
        # bounded at the minimiser, which is not long. Features exceed norm one by rounding, and
        # distances grow with its cube at most.
        l2_sensitivity = self.distance * data.row_norm**3
        tolerance = self._tolerance(l2_sensitivity)
        loss = HuberLoss(self.cap)
        weights = minimise(loss, data, penalty=self.penalty, tolerance=tolerance)
        released = release(
            weights[0],
            law=self.law,
            sensitivity=l2_sensitivity,
            error=tolerance / self.penalty,
            random_state=noise,
            purpose="weights: the minimiser of an objective",
        )
        return released, 0.0

    def _tolerance(self, l2_sensitivity: float) -> float:
        """Bound on the gradient norm of a solve: its error costs 1e-5 of the sensitivity."""
        return 0.5e-5 * self.penalty * l2_sensitivity


# Least and largest variance of a target in [-1, 1] that a rule goes by.
_LIMIT_VARIANCES = (0.01, 1.0)

_THEOREM_MOMENTS = 2.25
_THEOREM_CENTRED = 4.0
_TOLERANCE_SCORE = 4  # roundings of a score
_TOLERANCE_SUM = 8  # and of a sum
_LIMIT_SCORES = 8.0  # how much less than certified scores err, for twice as many rows


@dataclass(frozen=True)
class PurePlan:
    """Public numbers of one pure release, for targets in [-1, 1].

    Parameters
    ----------
    n_samples : float
        Number of rows, public or released.

    moments, weights, level : ApproxDP
        Guarantees of mean and mean square of the targets, of the weights, and of the mean of what
        these leave over.
    """

    n_samples: float
    moments: ApproxDP
    weights: ApproxDP
    level: ApproxDP

    @property
    def epsilon(self) -> float:
        """Of all together."""
        return self.moments.epsilon + self.weights.epsilon + self.level.epsilon

    def residual_cap(self, variance: float) -> float:
        """Cap of the residuals: half a standard deviation of the targets."""
        return math.sqrt(variance) / 2.0

    def level_trust(self, variance: float) -> float:
        """Share of the released mean of residuals that is added to predictions.

        Noise is in it, and what it is about is noise in the mean of the targets, and what a cap
        does, which is supposed to be a share of their variance.
        """
        records = self.level.n_records_changed
        noise, offset = records / self.level.epsilon, records / self.moments.epsilon
        supposed = defaults.LEVEL * variance + 2.0 * (offset / self.n_samples) ** 2
        return supposed / (supposed + 2.0 * (noise / self.n_samples) ** 2)

    def penalty(self, variance: float, cap: float, n_components: int) -> float:
        """Penalty at which the noise of a prediction has the variance that is allowed."""
        # The minimiser has the sensitivity `records * cap / penalty`, and K-norm noise this level
        # in each direction; features have norm one.
        records = self.weights.n_records_changed
        level = NoiseLaw.of("k_norm", self.weights).level(n_components)
        level = max(level, least_level(n_components))
        return records * cap * level / math.sqrt(defaults.ALLOWED * variance)

    def objective_penalty(self, variance: float, cap: float, n_components: int) -> float:
        """Penalty of an objective with a random linear term.

        Parameters
        ----------
        variance : float
            That of the targets.

        cap : float
            Cap of the residuals.

        n_components : int

        Returns
        -------
        float
            That at which weights of noise alone would have the deviation of the targets times the
            root of the number of rows times epsilon over a number that was chosen, or twice that
            of the number of features where this is less: there the noise that masks the solver's
            error is a hundredth of that deviation. Noise passes through the inverse of the second
            derivatives, so that it moves weights the less the more rows there are.
        """
        rows = max(self.n_samples * self.epsilon, TINY)
        strength = math.sqrt(defaults.PURE_ROWS / rows)
        strength = max(strength, 1.0 / (2.0 * math.sqrt(n_components + 1.0)))
        records = self.weights.n_records_changed
        # Noise has about the level `records * cap / epsilon * sqrt(n_components)` a direction.
        return strength * records * cap * n_components / self.weights.epsilon / math.sqrt(variance)


@plain_arguments
def plan_pure(*, n_samples: float, guarantee: ApproxDP) -> PurePlan:
    """Split a pure budget between the level of the targets and the weights of features.

    Parameters
    ----------
    n_samples : float
        Number of rows, public or released.

    guarantee : ApproxDP

    Returns
    -------
    PurePlan

    Notes
    -----
    The share of mean and mean square of the targets falls with the number of rows times epsilon,
    q, to the power 2/3: their noise has a variance in proportion to ``1 / (share q)^2``, and what
    they take costs the weights in proportion to the share. Capped residuals draw predictions from
    the mean of a skewed target to its median, so that a share of the rest sets their mean right in
    the end.
    """
    few, rows = defaults.PURE_TARGET_ROWS, n_samples * guarantee.epsilon
    # Weights keep a part, whose noise has to fit into floats.
    share = min(math.cbrt(few / (few + rows)) ** 2, 1.0 - float(defaults.SHARE))
    parts = share, (1.0 - share) * (1.0 - defaults.SHARE)
    moments, weights, level = (
        replace(guarantee, refined=None, epsilon=guarantee.epsilon * part)
        for part in (*parts, 1.0 - sum(parts))
    )
    return PurePlan(n_samples, moments, weights, level)


@plain_arguments
def pure_components(*, n_samples: float | None, epsilon: float) -> int:
    """Number of features without a delta.

    Parameters
    ----------
    n_samples : float or None
        Public number of rows. None, where it is private, takes a typical one: features are
        drawn before anything is released.

    epsilon : float

    Returns
    -------
    int
        In proportion to the number of rows times epsilon to the power 2/3, even, between a least
        and a largest number: noise grows with the root of it, and so does the penalty that keeps
        it small.
    """
    rows = float(defaults.TYPICAL_ROWS if n_samples is None else n_samples) * epsilon
    wanted = max(defaults.PURE_FEATURES * math.cbrt(rows) ** 2, defaults.PURE_FEWEST_FEATURES)
    return 2 * round(min(wanted, defaults.MOST_FEATURES) / 2.0)


@dataclass(frozen=True)
class CentredRelease(ABC):
    """Release mean and variance of the targets, then a minimiser on what the mean leaves.

    Subclasses say how the minimiser is released.

    Parameters
    ----------
    guarantee : ApproxDP

    cap, penalty : float, default=None
        Cap of the residuals and strength of ``penalty/2 ||w||^2``, public. None follows from the
        released variance of the targets and from the noise.
    """

    guarantee: ApproxDP
    cap: float | None = None
    penalty: float | None = None

    _mechanism: ClassVar[str]
    _source: ClassVar[str]

    @classmethod
    @plain_arguments
    def plan(cls, target: ApproxDP, **options: Any) -> Self:
        """Release that meets a target without a delta; the options are those of the class."""
        if target.delta > 0.0:
            raise ValueError(f"target must have delta 0; got {target}.")
        guarantee = replace(target, refined=None, mechanism=cls._mechanism, source=cls._source)
        return cls(guarantee, **options)

    def check_n_rows(self, n_samples: int, n_components: int) -> None:
        """Refuse more rows than can be certified, before a ledger is charged."""
        # Of the fewest rows the weights have the least, for which noise has to fit into floats.
        rest = after_count(self._budget)
        least = plan_pure(n_samples=1.0, guarantee=rest)
        for variance in _LIMIT_VARIANCES:
            self._minimiser(least, variance, n_components)
        plan = plan_pure(n_samples=MOST_ROWS, guarantee=rest)  # least penalty
        for variance in _LIMIT_VARIANCES:
            # Centred targets reach 2 instead of 1, where Huber's loss is up to four times as
            # large: so may the squared norm of the minimiser be, which the penalty bounds.
            found = self._minimiser(plan, variance, n_components)
            self._check_minimiser(found, _THEOREM_CENTRED, n_samples, n_components)

    @property
    def _budget(self) -> ApproxDP:
        return ApproxDP(self.guarantee.epsilon, adjacency=self.guarantee.adjacency)

    def __call__(self, data: FeatureBlocks, noise: NoiseSource) -> tuple[np.ndarray, float]:
        """Weights of the features, and what is added to their products with them."""
        n_samples, rest = counted(data, self._budget, noise)
        plan = plan_pure(n_samples=n_samples, guarantee=rest)
        offset, variance = release_scale(data, plan, noise)
        centred = data.centred(offset)
        weights = self._minimiser(plan, variance, data.n_features)(centred, noise)[0]
        level = plan.level_trust(variance) * release_level(centred, weights, plan, noise)
        return weights, min(max(offset + level, -1.0), 1.0)

    def _cap(self, plan: PurePlan, variance: float) -> float:
        return plan.residual_cap(variance) if self.cap is None else self.cap

    @abstractmethod
    def _minimiser(self, plan: PurePlan, variance: float, n_components: int) -> Any:
        """Release of the minimiser: called with data and noise, the weights come first."""

    @abstractmethod
    def _check_minimiser(self, found: Any, larger: float, *sizes: int) -> None:
        """Check that it is certified where its squared norm may be that much larger."""


class CentredOutput(CentredRelease):
    """Release mean and variance of the targets, then the minimiser on what the mean leaves.

    Privacy: satisfies the pure ``guarantee`` for any rows and targets. The data are used in at
    most four releases whose epsilons add up to it: the number of rows where it is private,
    mean and mean square of the targets, the weights, and the mean of the residuals at these.

    Parameters
    ----------
    guarantee : ApproxDP

    cap, penalty : float, default=None
        Cap of the residuals and strength of ``penalty/2 ||w||^2``, public. None follows from the
        released variance of the targets and from the noise.

    References
    ----------
    Chaudhuri, Monteleoni and Sarwate, JMLR 2011, algorithm 1.
    """

    _mechanism = "output perturbation on random features"
    _source = "Chaudhuri, Monteleoni and Sarwate, JMLR 2011, theorem 6"

    def _minimiser(self, plan: PurePlan, variance: float, n_components: int) -> FeatureOutput:
        cap, penalty = self._cap(plan, variance), self.penalty
        if penalty is None:
            penalty = plan.penalty(variance, cap, n_components)
        distance = ridge_sensitivity(
            penalty=penalty,
            y_bound=1.0,
            loss="huber",
            huber_width=cap,
            adjacency=self.guarantee.adjacency,
        )
        law = NoiseLaw.of("k_norm", plan.weights)
        return FeatureOutput(self.guarantee, law, penalty, cap, distance)

    def _check_minimiser(self, found: Any, larger: float, *sizes: int) -> None:
        penalty, distance = found.penalty / larger, found.distance * larger
        replace(found, penalty=penalty, distance=distance).check_n_rows(*sizes)


def release_scale(data: FeatureBlocks, plan: PurePlan, noise: NoiseSource) -> tuple[float, float]:
    """Mean and variance of the targets, from one release."""
    # A target y in [-1, 1] adds (y, y^2). Two of them are |y - z| (1 + |y + z|) apart in l1
    # norm, which is largest, 9/4, at y = 1 and z = -1/2. One alone is 2 at most.
    sensitivity = _THEOREM_MOMENTS if plan.weights.adjacency == "replace-one" else 2.0
    sums, error = data.target_moments()
    first, second = release(
        certified((sums, 2.0 * error), ERROR_SHARE * sensitivity),  # in l1 norm
        law=NoiseLaw.of("laplace", plan.moments),
        sensitivity=sensitivity,
        error=ERROR_SHARE * sensitivity,
        random_state=noise,
        purpose="mean and mean square of the target",
    )
    mean = min(max(float(first) / plan.n_samples, -1.0), 1.0)
    variance = float(second) / plan.n_samples - mean**2
    return mean, min(max(variance, _LIMIT_VARIANCES[0]), _LIMIT_VARIANCES[1])


def release_level(
    data: FeatureBlocks, weights: np.ndarray, plan: PurePlan, noise: NoiseSource
) -> float:
    """Mean of the residuals at released weights, these cut at 1.

    It is 0, and nothing is released, where weights are too long for its sum to be certified: by
    released and public numbers, and for many more rows than there are.
    """
    sensitivity = float(plan.level.n_records_changed)
    longest = (data.n_features + _TOLERANCE_SCORE) * data.row_norm * float(np.linalg.norm(weights))
    if UNIT_ROUNDOFF * plan.n_samples * longest > ERROR_SHARE * sensitivity / _LIMIT_SCORES:
        return 0.0
    (total,) = data.sums_of(partial(_level_part, weights), ())
    # Scores are rounded, and each sum of at most 1 a record.
    score = (data.n_terms + _TOLERANCE_SCORE) * data.row_norm * float(np.linalg.norm(weights))
    chain = data.length + len(data.blocks) + _TOLERANCE_SUM
    error = UNIT_ROUNDOFF * data.n_samples * (2 * score + chain)
    released = release(
        certified((total, error), ERROR_SHARE * sensitivity),
        law=NoiseLaw.of("laplace", plan.level),
        sensitivity=sensitivity,
        error=ERROR_SHARE * sensitivity,
        random_state=noise,
        purpose="mean of the residuals at released weights",
    )
    return float(released) / plan.n_samples


def _level_part(
    weights: np.ndarray, data: FeatureBlocks, i: int, rows: np.ndarray, targets: np.ndarray
) -> tuple[np.ndarray]:
    left = np.clip(targets - rows @ weights, -1.0, 1.0)
    return ((left if data.shares is None else left * data.shares[i]).sum(),)


@dataclass(frozen=True)
class CentredObjective(CentredRelease):
    """Release mean and variance of the targets, then the minimiser of a noisy objective.

    Privacy: satisfies the pure ``guarantee`` for any rows and targets. The data are used in at
    most five releases whose epsilons add up to it: the number of rows where it is private,
    mean and mean square of the targets, the exact minimiser, the error that the solver makes of
    it, and the mean of the residuals at the weights. Cap and penalty follow from those before,
    so that all but the minimiser's own release are those of `CentredOutput`.

    Huber's loss has a kink in its slope, where it has no second derivative. Its slope is
    Lipschitz, and so is the map from a linear term to its minimiser, in both directions:
    densities change by the determinant almost everywhere, as they do for the Huberised hinge.

    Parameters
    ----------
    guarantee : ApproxDP

    cap, penalty : float, default=None
        Cap of the residuals and strength of ``penalty/2 ||w||^2``, public. None follows from the
        released variance of the targets and from the noise. A penalty is raised where the
        budget could not pay for the curvature.

    pairs : bool, default=False
        Whether features are cosines and sines of frequencies, a half of them each. Noise is then
        for the longest pair: with many of them it has half the mean square.

    References
    ----------
    Chaudhuri, Monteleoni and Sarwate, JMLR 2011, algorithm 2; Kifer, Smith and Thakurta, COLT
    2012.
    """

    pairs: bool = False

    _mechanism = "objective perturbation on random features"
    _source = (
        "same-point determinant bound, after Chaudhuri, Monteleoni and Sarwate, JMLR 2011, "
        "theorem 9"
    )

    def _minimiser(
        self, plan: PurePlan, variance: float, n_components: int
    ) -> ObjectivePerturbation:
        cap, penalty = self._cap(plan, variance), self.penalty
        if penalty is None:
            penalty = plan.objective_penalty(variance, cap, n_components)
        return ObjectivePerturbation.plan(
            plan.weights,
            loss=HuberLoss(cap),
            n_features=n_components,
            row_norm=MOST_ROW_NORM,
            penalty=penalty,
            pair_norm=MOST_ROW_NORM / math.sqrt(n_components / 2.0) if self.pairs else None,
        )

    def _check_minimiser(self, found: Any, larger: float, *sizes: int) -> None:
        law = replace(found.law, penalty=found.law.penalty / larger)
        replace(found, law=law).check_n_rows(sizes[0])
