"""Noisy gradient descent on the losses of linear models: sums of clipped gradients, with noise.

To check it: this file, ``releases/_moments.py`` for the number and the second moments of the rows,
``releases/_curvature_step.py`` for the step that may follow,
``releases/_score_length.py`` for what is read in the end, and ``solvers/whitening.py``, which caps
the gradients of rows and certifies their sum.
"""

import math
from dataclasses import dataclass, replace
from typing import Any, Self, cast

import numpy as np

from skdp._defaults import linear as defaults
from skdp._progress import told
from skdp._random import NoiseSource
from skdp._validation import plain_arguments
from skdp.losses import LogisticLoss, SoftmaxLoss
from skdp.mechanisms import NoiseLaw, release
from skdp.privacy import ApproxDP, GaussianDP
from skdp.releases._coefficient_noise import (
    CoefficientNoise,
    descent_noise,
    descent_variances,
)
from skdp.releases._curvature_step import curvature_step
from skdp.releases._descent_rules import (
    DescentPlan,
    plan_descent,
)
from skdp.releases._limits import check_span
from skdp.releases._mean_row import can_read_mean, denoised, release_mean_row, release_spread
from skdp.releases._moments import (
    eigenvectors,
    release_agreement,
    release_n_samples,
    release_second_moments,
    split_budget,
    split_for_agreement,
    split_mu,
)
from skdp.releases._protocol import LinearLoss
from skdp.releases._score_length import (
    blind_factor,
    held_against,
    share_for_slope,
    slope_is_certain,
)
from skdp.solvers.certificates import largest_certain, refuse_rows, rounding_error
from skdp.solvers.rows import RowBlocks
from skdp.solvers.user_norms import agreement_error
from skdp.solvers.whitening import (
    CAP_SHARE,
    CappedSums,
    DirectedRows,
    PlainRows,
    WhitenedRows,
    capped_error,
)

__all__ = ["NoisyDescent"]

# Stretch of a row with its rounding; of noise, by the number of steps; rows of a sparse block.
_LIMIT_STRETCH, _LIMIT_GROWTH, _BLOCK_ROWS = 1.02, 200.0, 4096


@dataclass(frozen=True)
class NoisyDescent:
    """Full-batch descent along noisy sums of gradients, capped in whitened coordinates.

    Privacy: satisfies ``budget`` for any rows; for any users where its unit is the user, whose
    rows then count by their means in every release, and whose number stands for that of rows in
    every rule. The data are used in at most ``n_steps + 4`` releases: the number of rows where it
    is private, the second moments of the rows (or, of many features, their mean and how far they
    reach beside it), how far the gradients of users' rows agree, one sum of gradients a step, each
    at a released point, and how the likelihood changes with the length of the released weights or,
    of two classes whose directions all show, gradient and curvature at the released weights.
    Gaussian releases compose by the root of summed squares, pure ones by their sum.

    Parameters
    ----------
    loss : LogisticLoss, HuberHingeLoss or SoftmaxLoss

    n_features : int
        Constant feature included.

    row_norm : float
        Bound on the norm of a row.

    clip_norm : float or None
        Residuals of rows of typical norm are clipped to this norm, over all outputs together, and
        those of other rows in proportion. None is a rule of public numbers.

    penalty : float
        Strength of ``penalty/2 ||W||^2``. It is public and needs no noise; without it the
        shortness of the descent is what keeps the weights small.

    budget : GaussianDP or pure ApproxDP
        What all releases together satisfy.

    guarantee : ApproxDP or GaussianDP
        The same in the terms of what was asked for.

    References
    ----------
    Bassily, Smith and Thakurta, "Private empirical risk minimization", FOCS 2014; Dong, Roth
    and Su, "Gaussian differential privacy", JRSS-B 2022, corollary 2.
    """

    loss: LinearLoss
    n_features: int
    row_norm: float
    clip_norm: float | None
    penalty: float
    budget: GaussianDP | ApproxDP
    guarantee: GaussianDP | ApproxDP

    @classmethod
    @plain_arguments
    def plan(
        cls,
        target: ApproxDP,
        *,
        loss: LinearLoss,
        n_features: int,
        row_norm: float,
        clip_norm: float | None = None,
        penalty: float = 0.0,
    ) -> Self:
        """Release that meets ``target``, from public numbers."""
        size = loss.n_outputs * n_features
        # Steps are at most 150, and a fiftieth is for the number of rows.
        check_span(NoiseLaw.meeting(target, size=size), size, target.epsilon, growth=_LIMIT_GROWTH)
        budget = target if target.delta == 0.0 else target.gaussian_target()
        guarantee = replace(
            target,
            refined=None if target.delta == 0.0 else budget,
            mechanism="noisy gradient descent",
            source="Bassily, Smith and Thakurta, FOCS 2014, composed by Dong, Roth and Su, "
            "JRSS-B 2022, corollary 2",
        )
        return cls(loss, n_features, row_norm, clip_norm, penalty, budget, guarantee)

    @property
    def _is_for_users(self) -> bool:
        return self.guarantee.unit == "user"

    @property
    def _n_classes(self) -> int:
        return max(2, self.loss.n_outputs)

    @property
    def _is_checked(self) -> bool:
        """Whether the weights are held against the rows in the end.

        Where scores give probabilities, and rows count alike.
        """
        loss = self.loss
        if isinstance(loss, LogisticLoss):
            gives_odds = loss.slope_cap == 1.0
        else:
            gives_odds = isinstance(loss, SoftmaxLoss) and loss.margin == 0.0
        if not gives_odds or loss.weights:
            return False
        return isinstance(self.budget, GaussianDP) and not (self._is_for_users or self.penalty)

    def check_n_rows(self, n_samples: int) -> None:
        """Refuse more rows than can be certified whatever they are, before a ledger is charged.

        Where the guarantee is for users, it is their number: that of rows decides nothing.
        """
        adjacency, unit = self.guarantee.adjacency, self.guarantee.unit
        refuse_rows(n_samples, self._most_rows(), adjacency, unit=unit)

    def _most_rows(self) -> int:
        """Number of rows up to which sums are certified at small weights; public."""

        def is_certain(n_samples: int) -> bool:
            if self._is_checked and not slope_is_certain(n_samples, self._n_classes):
                return False
            if self._is_for_users and isinstance(self.budget, GaussianDP):
                # Caps are least, and coordinates stretch most, where rows agree least.
                error = n_samples * agreement_error(self.n_features, self.loss.n_outputs)
                plan = self._planned(n_samples, defaults.LEAST_AGREEMENT)
                return error <= CAP_SHARE and self._certifies(plan, n_samples)
            return self._certifies(self._planned(n_samples), n_samples)

        return largest_certain(is_certain)

    def _certifies(self, plan: DescentPlan, n_samples: float) -> bool:
        """Whether sums over as many rows are certified at small weights, whatever the rows are."""
        ridge = self.penalty / n_samples
        # The coordinates that stretch most, and the rows whose cap is least in them.
        floor = plan.floor + ridge
        steepest = plan.steepest + ridge
        stretch = _LIMIT_STRETCH / math.sqrt(floor)
        error = rounding_error(
            self.loss,
            0.0,
            n_samples=n_samples,
            n_features=self.n_features,
            length=_BLOCK_ROWS,
            n_terms=self.n_features,
            row_norm=self.row_norm,
            exactly=True,
            shared=self._is_for_users,
        )
        cap = plan.cap_share * plan.clip_norm * self.row_norm / math.sqrt(steepest)
        norm_error, map_error = 0.0, 0.0
        if plan.mean_guarantee is not None:
            norm_error, map_error = DirectedRows.errors(self.n_features, steepest, floor)
        error = capped_error(
            error,
            loss=self.loss,
            n_samples=n_samples,
            n_features=self.n_features,
            row_norm=self.row_norm,
            cap=cap,
            stretch=stretch,
            size=math.sqrt(self.n_features) * stretch,
            norm_error=norm_error,
            map_error=map_error,
            of_users=self._is_for_users,
        )
        return error <= CAP_SHARE * cap / 2

    def _planned(
        self, n_samples: float, agreement: float = 1.0, spread: float | None = None
    ) -> DescentPlan:
        public: Any = dict(
            n_samples=n_samples,
            n_features=self.n_features,
            loss=self.loss,
            clip_norm=self.clip_norm,
            row_norm=self.row_norm,
            guarantee=self._after_check(n_samples)[1],
        )
        # Means of users' rows are capped in coordinates where images of rows are exact.
        if not self._is_for_users and can_read_mean(n_samples, self.n_features):
            # Directions are flattest, and stretch most, where rows reach least beside their mean.
            flattest = plan_descent(**public, mean_row=True, spread=0.0)
            if self._certifies(flattest, n_samples):
                return plan_descent(**public, mean_row=True, spread=spread)
        return plan_descent(**public, agreement=agreement)

    def _after_check(self, n_samples: float) -> tuple[GaussianDP | None, GaussianDP | ApproxDP]:
        """For what is held against the rows, if anything is, and for the descent."""
        rest = self._budgets()[2]
        if not self._is_checked:
            return None, rest
        share = share_for_slope(rest, n_samples=n_samples, n_classes=self._n_classes)
        return (None, rest) if share == 0.0 else split_mu(cast(GaussianDP, rest), share)

    def _budgets(self) -> tuple[Any, GaussianDP | None, GaussianDP | ApproxDP]:
        """For the number of rows, for how far those of users agree, and for what is left."""
        counting, rest = split_budget(self.budget)
        if self._is_for_users and isinstance(rest, GaussianDP):
            return counting, *split_for_agreement(rest)
        return counting, None, rest

    def __call__(self, data: RowBlocks, noise: NoiseSource) -> np.ndarray:
        """Release the last point of the descent: the first that `with_noise` returns."""
        return self.with_noise(data, noise)[0]

    def with_noise(
        self, data: RowBlocks, noise: NoiseSource
    ) -> tuple[np.ndarray, CoefficientNoise]:
        """Release the last point of the descent, with how much of it is noise.

        Parameters
        ----------
        data : RowBlocks
            Clipped to ``row_norm``. With owners of the rows if the guarantee is for users.

        noise : NoiseSource

        Returns
        -------
        weights : ndarray of shape (n_outputs, n_features)

        spread : CoefficientNoise
            A function of what was released.
        """
        data.check_norm(self.row_norm)
        if (data.users is not None) != self._is_for_users:
            raise ValueError(
                "data must have users where, and only where, the guarantee is theirs."
            )
        counting = self._budgets()[0]
        n_samples = release_n_samples(data.n_units, guarantee=counting, noise=noise)
        plan, coordinates, cap = self._coordinates(data, n_samples, noise)
        last = self._last_step(plan, coordinates, n_samples)
        if last is not None:
            plan = plan.with_part(defaults.DESCENT_SHARE)
        capped_sum = CappedSums(data, self.loss, coordinates, cap)
        weights, deviation = self._descend(plan, capped_sum, n_samples, noise)
        ridge = self.penalty / n_samples
        variances = descent_variances(plan, self.loss, weights, coordinates, ridge, deviation)
        spread = descent_noise(variances, coordinates.vectors)
        if last is not None:
            found = curvature_step(data, self.loss, weights, guarantee=last, noise=noise)
            return (weights, spread) if found is None else found
        return self._held(data, weights, spread, n_samples, noise)

    def _last_step(
        self, plan: DescentPlan, coordinates: PlainRows, n_samples: float
    ) -> GaussianDP | None:
        """Budget of a Newton step in the end, where the noise hides no direction.

        It has that of a check of the scores, too, since its scores need none.
        """
        if not (self._is_checked and self._n_classes == 2 and coordinates.vectors is not None):
            return None
        if self.clip_norm is not None and self.clip_norm < self.loss.lipschitz:
            return None  # a cap of gradients is asked for, and the step has none
        # Steps are divided by the floor at least, which may be far above the edge.
        shown = plan.curvature * plan.edge * defaults.GATE
        if plan.floor > shown or coordinates.curvatures.min() <= shown:
            return None
        check, _ = self._after_check(n_samples)
        part = plan.n_steps * cast(GaussianDP, plan.step_guarantee).mu ** 2
        rest = (1.0 - defaults.DESCENT_SHARE) * part + (0.0 if check is None else check.mu**2)
        return replace(cast(GaussianDP, plan.step_guarantee), mu=math.sqrt(rest))

    def _descend(
        self, plan: DescentPlan, capped_sum: CappedSums, n_samples: float, noise: NoiseSource
    ) -> tuple[np.ndarray, float]:
        """Mean of the last points, and the deviation of the noise in a mean gradient."""
        weights = np.zeros((self.loss.n_outputs, self.n_features))
        velocity, mean = np.zeros_like(weights), np.zeros_like(weights)
        # No record's gradient is longer than the cap. Replacing it moves the sum by two caps.
        sensitivity = self.budget.n_records_changed * capped_sum.cap
        law = NoiseLaw.meeting(plan.step_guarantee, size=weights.size)
        for step_number in told(range(plan.n_steps), "noisy gradient steps", plan.n_steps):
            ahead = weights + plan.momentum * velocity
            gradient = capped_sum(ahead)
            released = release(
                gradient,
                law=law,
                sensitivity=sensitivity,
                error=CAP_SHARE * capped_sum.cap,
                random_state=noise,
                purpose="sum of the gradients at a released point, one step of a descent",
            )
            step = capped_sum.coordinates.back(released)
            if self.penalty > 0.0:
                step = step + capped_sum.coordinates.divide(self.penalty * ahead)
            velocity = plan.momentum * velocity - step / n_samples
            weights = weights + velocity
            if step_number >= plan.n_steps - plan.n_averaged:
                mean += weights / plan.n_averaged
        weights = mean
        if len(weights) > 1:  # what all classes have in common is noise, and decides nothing
            weights = weights - weights.mean(axis=0)
        return weights, law.level(weights.size) * sensitivity / n_samples

    def _held(
        self,
        data: RowBlocks,
        weights: np.ndarray,
        spread: CoefficientNoise,
        n_samples: float,
        noise: NoiseSource,
    ) -> tuple[np.ndarray, CoefficientNoise]:
        """Weights as long as the rows say, where it is read how long they should be."""
        if not self._is_checked:
            return weights, spread
        check = self._after_check(n_samples)[0]
        if check is None:
            factor = blind_factor(self.budget, self._n_classes)
            return weights * factor, spread.times(factor)
        return held_against(
            data,
            weights,
            spread,
            n_samples=n_samples,
            guarantee=check,
            noise=noise,
            temperature=getattr(self.loss, "temperature", 1.0),
        )

    def _coordinates(
        self, data: RowBlocks, n_samples: float, noise: NoiseSource
    ) -> tuple[DescentPlan, PlainRows, float]:
        """Where gradients are capped and released, and the cap; functions of what is released."""
        plan = self._planned(n_samples)
        ridge = self.penalty / n_samples
        values, vectors = np.zeros(1), None
        if plan.mean_guarantee is not None:
            return self._along_mean(plan, data, n_samples, noise)
        if plan.gram_guarantee is not None:
            released = release_second_moments(
                data.second_moments(), self.row_norm, guarantee=plan.gram_guarantee, noise=noise
            )
            released /= n_samples
            values, vectors = eigenvectors(released)
        found = self._capped(plan, values, vectors, ridge)
        reading = self._budgets()[1]
        if reading is None:
            return plan, *found
        total = CappedSums(data, self.loss, *found).agreement()
        agreement = release_agreement(total, n_samples, guarantee=reading, noise=noise)
        plan = self._planned(n_samples, agreement)
        return plan, *self._capped(plan, values, vectors, ridge)

    def _along_mean(
        self, plan: DescentPlan, data: RowBlocks, n_samples: float, noise: NoiseSource
    ) -> tuple[DescentPlan, PlainRows, float]:
        """As `_coordinates`, by the mean row: it is most of what second moments would show."""
        mean, deviation = release_mean_row(
            data,
            self.row_norm,
            n_samples,
            guarantee=cast(GaussianDP, plan.mean_guarantee),
            noise=noise,
        )
        direction, square = denoised(mean, deviation)
        spread = release_spread(
            data,
            self.row_norm,
            n_samples,
            direction,
            guarantee=cast(GaussianDP, plan.spread_guarantee),
            noise=noise,
        )
        plan = self._planned(n_samples, spread=spread)
        ridge = self.penalty / n_samples
        curvatures, cap = plan.metric(np.array([square]), ridge)
        along, curvature = float(curvatures[0]), plan.floor + ridge
        if direction is None or along <= curvature:
            return plan, *self._capped(plan, np.zeros(1), None, ridge)
        most = self.loss.lipschitz * self.row_norm / math.sqrt(curvature)
        return plan, DirectedRows(direction, along, curvature), min(cap, most)

    def _capped(
        self, plan: DescentPlan, values: np.ndarray, vectors: np.ndarray | None, ridge: float
    ) -> tuple[PlainRows, float]:
        curvatures, cap = plan.metric(values, ridge)
        if vectors is None:
            curvature = plan.floor + ridge
            cap *= math.sqrt(curvature)
            return PlainRows(curvature), min(cap, self.loss.lipschitz * self.row_norm)
        # Beyond that no gradient is.
        most = self.loss.lipschitz * self.row_norm / math.sqrt(curvatures.min())
        return WhitenedRows(vectors, curvatures), min(cap, most)
