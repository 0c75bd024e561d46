"""Noisy gradient descent on the losses of linear models: sums of clipped gradients, with noise.

To check it: this file, ``learner/_moments.py`` for the second moments of the rows,
``learner/_curvature_step.py`` for the step that may follow, and ``rows/_whitening.py``, which
caps the gradients of rows and certifies their sum.
"""

import math
from dataclasses import dataclass, replace
from typing import Any, Self, cast

import numpy as np

from skdp._defaults import linear as defaults
from skdp._progress import told
from skdp._random._source import NoiseSource
from skdp._validation import plain_arguments, shown
from skdp.learner._coefficient_noise import CoefficientNoise, descent_noise, descent_variances
from skdp.learner._curvature_step import curvature_step
from skdp.learner._descent_rules import DescentPlan, plan_descent
from skdp.learner._losses._margin import LogisticLoss
from skdp.learner._moments import eigenvectors, release_agreement, release_second_moments
from skdp.learner._protocol import LinearLoss
from skdp.learner._sequence import Run, divided
from skdp.mechanisms import NoiseLaw, release
from skdp.mechanisms._limits import check_span
from skdp.privacy import ApproxDP, GaussianDP
from skdp.rows._blocks import RowBlocks
from skdp.rows._certificates import largest_certain, refuse_rows, rounding_error
from skdp.rows._user_norms import agreement_error
from skdp.rows._whitening import CAP_SHARE, CappedSums, PlainRows, WhitenedRows, capped_error

__all__ = ["NoisyDescent"]

# Stretch of a row with its rounding; of noise, by the number of steps; rows of a sparse block.
_LIMIT_STRETCH, _LIMIT_GROWTH, _BLOCK_ROWS = 1.02, 200.0, 4096


@dataclass(frozen=True)
class NoisyDescent:
    """Full-batch descent along noisy sums of gradients, capped in whitened coordinates.

    Privacy: satisfies ``budget`` for any rows; for any users where its unit is the user, whose
    rows then count by their means in every release, and whose number stands for that of rows in
    every rule. The data are used in at most ``n_steps + 3`` releases: the second moments of the
    rows, how far the gradients of users' rows agree, one sum of gradients a step, each at a
    released point, and, of two classes whose directions all show, gradient and curvature at the
    released weights. Gaussian releases compose by the root of summed squares, pure ones by their
    sum.

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
        # Steps are at most 150, and other stages of a sequence take less than a tenth.
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

    def within(self, budget: GaussianDP | ApproxDP) -> "NoisyDescent":
        """The same release for a part of its budget, which is Gaussian or pure."""
        if isinstance(budget, ApproxDP) and budget.delta > 0.0:
            raise ValueError(f"budget must have delta=0; got {shown(budget.delta)}.")
        names: Any = dict(mechanism=self.guarantee.mechanism, source=self.guarantee.source)
        return replace(self, budget=budget, guarantee=replace(budget, **names))

    def check_n_rows(self, n_samples: int) -> None:
        """Refuse more rows than can be certified whatever they are, before a ledger is charged.

        Where the guarantee is for users, it is their number: that of rows decides nothing.
        """
        adjacency, unit = self.guarantee.adjacency, self.guarantee.unit
        refuse_rows(n_samples, self._most_rows(), adjacency, unit=unit)

    def _most_rows(self) -> int:
        """Number of rows up to which sums are certified at small weights; public."""

        def is_certain(n_samples: int) -> bool:
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
        error = capped_error(
            error,
            loss=self.loss,
            n_samples=n_samples,
            n_features=self.n_features,
            row_norm=self.row_norm,
            cap=cap,
            stretch=stretch,
            size=math.sqrt(self.n_features) * stretch,
            of_users=self._is_for_users,
        )
        return error <= CAP_SHARE * cap / 2

    def _planned(self, n_samples: float, agreement: float = 1.0) -> DescentPlan:
        return plan_descent(
            n_samples=n_samples,
            n_features=self.n_features,
            loss=self.loss,
            clip_norm=self.clip_norm,
            row_norm=self.row_norm,
            guarantee=self._parts()[1],
            agreement=agreement,
        )

    def _parts(self) -> tuple[GaussianDP | None, GaussianDP | ApproxDP]:
        """For how far the rows of users agree, and for what is left."""
        if self._is_for_users and isinstance(self.budget, GaussianDP):
            return divided(self.budget, float(defaults.ROWS_SHARE))
        return None, self.budget

    def __call__(
        self, data: RowBlocks, noise: NoiseSource, n_samples: float | None = None
    ) -> np.ndarray:
        """Release the last point of the descent.

        Parameters
        ----------
        data : RowBlocks
            Clipped to ``row_norm``. With owners of the rows if the guarantee is for users.

        noise : NoiseSource

        n_samples : float, default=None
            Released number of rows, or of users, where it is private; None where it is public.

        Returns
        -------
        ndarray of shape (n_outputs, n_features)
        """
        return self._released(data, noise, n_samples)[0]

    def learn(self, run: Run, noise: NoiseSource) -> None:
        """Release the last point of the descent, as a stage of a sequence."""
        n_samples = run.known_n_samples if self._has_private_rows else None
        found = self._released(run.data, noise, n_samples)
        run.weights, run.spread, run.has_length = found

    @property
    def _has_private_rows(self) -> bool:
        return self.guarantee.adjacency == "add-remove"

    def _released(
        self, data: RowBlocks, noise: NoiseSource, n_samples: float | None
    ) -> tuple[np.ndarray, CoefficientNoise, bool]:
        """Weights, how much of them is noise, and whether they end with a Newton step."""
        data.check_norm(self.row_norm)
        if (data.users is not None) != self._is_for_users:
            raise ValueError(
                "data must have users where, and only where, the guarantee is theirs."
            )
        if (n_samples is not None) != self._has_private_rows:
            raise ValueError(
                "n_samples must be released under 'add-remove', where it is private, and None "
                f"elsewhere; got {shown(n_samples)}."
            )
        n_samples = float(data.n_units) if n_samples is None else n_samples
        plan, coordinates, cap = self._coordinates(data, n_samples, noise)
        last = self._last_step(plan, coordinates)
        if last is not None:
            plan = plan.with_part(defaults.DESCENT_SHARE)
        capped_sum = CappedSums(data, self.loss, coordinates, cap)
        weights, deviation = self._descend(plan, capped_sum, n_samples, noise)
        if last is not None:
            found = curvature_step(data, self.loss, weights, guarantee=last, noise=noise)
            if found is not None:
                return *found, True
        ridge = self.penalty / n_samples
        variances = descent_variances(plan, self.loss, weights, coordinates, ridge, deviation)
        return weights, descent_noise(variances, coordinates.vectors), False

    def _last_step(self, plan: DescentPlan, coordinates: PlainRows) -> GaussianDP | None:
        """Budget of a Newton step in the end, where the noise hides no direction."""
        loss = self.loss
        if not isinstance(loss, LogisticLoss) or loss.slope_cap < 1.0 or loss.weights:
            return None
        if self._is_for_users or self.penalty or coordinates.vectors is None:
            return None
        if self.clip_norm is not None and self.clip_norm < loss.lipschitz:
            return None  # a cap of gradients is asked for, and the step has none
        # Steps are divided by the floor at least, which may be far above the edge.
        shown_from = plan.curvature * plan.edge * defaults.GATE
        if plan.floor > shown_from or coordinates.curvatures.min() <= shown_from:
            return None
        step = cast(GaussianDP, plan.step_guarantee)
        return replace(step, mu=math.sqrt(plan.n_steps * (1.0 - defaults.DESCENT_SHARE)) * step.mu)

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

    def _coordinates(
        self, data: RowBlocks, n_samples: float, noise: NoiseSource
    ) -> tuple[DescentPlan, PlainRows, float]:
        """Where gradients are capped and released, and the cap; functions of what is released."""
        plan = self._planned(n_samples)
        ridge = self.penalty / n_samples
        values, vectors = np.zeros(1), None
        if plan.gram_guarantee is not None:
            released = release_second_moments(
                data.second_moments(), self.row_norm, guarantee=plan.gram_guarantee, noise=noise
            )
            released /= n_samples
            values, vectors = eigenvectors(released)
        found = self._capped(plan, values, vectors, ridge)
        reading = self._parts()[0]
        if reading is None:
            return plan, *found
        total = CappedSums(data, self.loss, *found).agreement()
        agreement = release_agreement(total, n_samples, guarantee=reading, noise=noise)
        plan = self._planned(n_samples, agreement)
        return plan, *self._capped(plan, values, vectors, ridge)

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
