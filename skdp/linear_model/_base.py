"""What the private linear classifiers share: check, charge, solve, store."""

import math
from abc import ABC, abstractmethod
from dataclasses import replace

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin

from skdp._inputs import checked_data, encode_labels
from skdp._random import noise_source
from skdp._validation import between, boolean, one_of, positive, shown
from skdp.estimators import (
    LinearPredictions,
    LinkedDocumentation,
    charge,
    check_budget,
    unchanged_on_error,
)
from skdp.mechanisms import NoiseLaw
from skdp.privacy import ApproxDP, compose, n_records_changed
from skdp.solvers.certificates import check_n_rows, descent_tolerance, solver_tolerance
from skdp.solvers.erm import gradient_descent, objective_perturbation, output_perturbation
from skdp.solvers.rows import RowBlocks
from skdp.theory.objective_perturbation import CALIBRATIONS, calibrate

MECHANISMS = ("auto", "objective", "output", "gradient")

# Share of epsilon for masking the solver's error. At the solver's tolerance the noise it
# buys is lost beside that of the objective.
_SOLVER_SHARE = 0.002

# Largest second derivative of the loss of a record over the penalty, where it is minimised:
# Newton steps across kinks that are sharper need not end.
_SHARPEST = 1e8


class BaseDPLinearClassifier(
    LinearPredictions, LinkedDocumentation, ClassifierMixin, BaseEstimator, ABC
):
    """Private linear classifier; a subclass chooses the loss."""

    @abstractmethod
    def _loss(self, n_classes):
        """Loss for the number of classes; checks the subclass's own parameters."""

    def _clip_norm(self, loss):
        """Norm to which the gradient mechanism clips residuals."""
        return loss.lipschitz

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.classifier_tags.poor_score = True  # noise is a promise and accuracy is not
        return tags

    def fit(self, X, y):
        """Fit the model under ``(epsilon, delta)``-differential privacy.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows longer than ``x_norm`` are scaled back onto the ball.

        y : array-like of shape (n_samples,)
            Labels.

        Returns
        -------
        self : object

        Raises
        ------
        ValueError
            If a parameter or the input is invalid.
        BudgetExceededError
            If the ledger cannot pay; the old model stays.
        SolverError
            If the solution could not be certified; the ledger stays charged.
        """
        with unchanged_on_error(self):
            self._check_parameters()
            X, y = checked_data(self, X, y)
            classes, codes = encode_labels(y, self.classes)
            unit = self._unit()
            n_features = X.shape[1] + bool(self.fit_intercept)
            guarantee, solve, numbers = self._plan(len(classes), n_features, unit)
            check_n_rows(n_samples=X.shape[0], adjacency=self.adjacency, **numbers)
            noise = noise_source(self.random_state)
            charge(self, guarantee)

            data = RowBlocks(
                X, codes, x_norm=float(self.x_norm), constant=self._constant(), unit=unit
            )
            weights = solve(data, noise)
        self.classes_ = classes
        self.coef_, self.intercept_ = self._in_units(weights, unit)
        self.guarantee_ = guarantee
        return self

    def _constant(self):
        """Feature whose coefficient is the intercept, or 0."""
        return float(self.intercept_scaling) if self.fit_intercept else 0.0

    def _unit(self):
        """Power of two near the norm of a row, in which everything is computed.

        So units of the rows decide nothing, and dividing by it rounds nothing.
        """
        return 2.0 ** (math.frexp(math.hypot(float(self.x_norm), self._constant()))[1] - 1)

    def _in_units(self, weights, unit):
        """Coefficients and intercepts for rows as they were given."""
        constant = self._constant()
        if constant:
            return weights[:, :-1] / unit, (constant / unit) * weights[:, -1]
        return weights / unit, np.zeros(len(weights))

    def _check_parameters(self):
        check_budget(self)
        positive(x_norm=self.x_norm)
        between(1e-50, 1e50, x_norm=self.x_norm)  # squares stay within the range of floats
        one_of(MECHANISMS, mechanism=self.mechanism)
        one_of(CALIBRATIONS, calibration=self.calibration)
        boolean(fit_intercept=self.fit_intercept)
        if self.fit_intercept:
            positive(intercept_scaling=self.intercept_scaling)
            between(1e-50, 1e50, intercept_scaling=self.intercept_scaling)
        if not (isinstance(self.C, str) and self.C == "auto"):
            if isinstance(self.C, str):
                raise ValueError(f"C must be 'auto' or a positive number; got {shown(self.C)}.")
            positive(C=self.C)
            # Beyond these floating point could no longer certify a minimiser.
            square = math.hypot(float(self.x_norm), self._constant()) ** 2
            if not 1e-12 <= float(self.C) * square <= 1e9:
                others = ""
                if self.fit_intercept:
                    others = f" and intercept_scaling={shown(self.intercept_scaling)}"
                raise ValueError(
                    f"C must be between {1e-12 / square:g} and {1e9 / square:g} with "
                    f"x_norm={shown(self.x_norm)}{others}; got {shown(self.C)}."
                )

    def _plan(self, n_classes, n_features, unit):
        """Turn public numbers into a guarantee and a function of the data that meets it.

        Also into what decides how many rows can be certified. Norms are in units of ``unit``.
        """
        target = ApproxDP(float(self.epsilon), float(self.delta), adjacency=self.adjacency)
        row_norm = RowBlocks.norm_bound(float(self.x_norm), self._constant(), n_features) / unit
        mechanism = self._resolved_mechanism()
        loss = self._loss(n_classes)
        size = loss.n_outputs * n_features
        numbers = dict(loss=loss, n_features=n_features, row_norm=row_norm)
        if mechanism == "gradient":
            # A hundred steps at most, and a twentieth for the number of rows.
            self._check_noise(200.0 * NoiseLaw.meeting(target, size=size).level(size), size)
            numbers["tolerance"] = descent_tolerance(self._clip_norm(loss), row_norm)
            return *self._plan_gradient(target, loss, unit), numbers
        penalty = self._penalty(mechanism, loss, row_norm, size, unit)
        numbers["tolerance"] = solver_tolerance(loss, row_norm)
        if mechanism == "output":
            self._check_sharpness(loss, penalty, row_norm, unit)
            self._check_noise(NoiseLaw.meeting(target, size=size).level(size), size)
            numbers["penalty"] = penalty
            return *self._plan_output(target, loss, penalty, size), numbers
        solver = replace(target, epsilon=_SOLVER_SHARE * target.epsilon, delta=0.0)
        self._check_noise(NoiseLaw.meeting(solver, size=size).level(size), size)
        law = calibrate(
            loss,
            x_norm=row_norm,
            penalty=penalty,
            guarantee=replace(target, epsilon=target.epsilon - solver.epsilon),
            calibration=self.calibration,
        )
        self._check_sharpness(loss, law.penalty, row_norm, unit)
        norm = law.norm_bound(size)
        # Beyond, adding the linear term rounds a gradient by too much to certify any solution.
        self._check_span(norm / numbers["tolerance"] * 2.0**4, size)
        numbers.update(penalty=law.penalty, noise_norm=norm)
        return *self._plan_objective(target, loss, law, solver), numbers

    def _plan_objective(self, target, loss, law, solver):
        refined = None if target.delta == 0.0 else compose([law.guarantee, solver])
        guarantee = replace(law.guarantee, epsilon=target.epsilon, refined=refined)

        def solve(data, noise):
            return objective_perturbation(
                loss, data, law=law, solver_guarantee=solver, noise=noise
            )

        return guarantee, solve

    def _plan_output(self, target, loss, penalty, size):
        guarantee = replace(
            target,
            refined=NoiseLaw.meeting(target, size=size).refining(target),
            mechanism="output perturbation",
            source="Chaudhuri, Monteleoni and Sarwate, JMLR 2011, theorem 6",
        )

        def solve(data, noise):
            return output_perturbation(
                loss, data, penalty=penalty, guarantee=guarantee, noise=noise
            )

        return guarantee, solve

    def _plan_gradient(self, target, loss, unit):
        budget = target
        if target.delta > 0.0:
            budget = target.gaussian_target()
        guarantee = replace(
            target,
            refined=budget if target.delta > 0.0 else None,
            mechanism="noisy gradient descent",
            source="Bassily, Smith and Thakurta, FOCS 2014, composed by Dong, Roth and Su, "
            "JRSS-B 2022, corollary 2",
        )

        penalty = 0.0 if self.C == "auto" else self._own_penalty(unit)

        def solve(data, noise):
            clip_norm = self._clip_norm(loss)
            return gradient_descent(
                loss, data, clip_norm=clip_norm, guarantee=budget, noise=noise, penalty=penalty
            )

        return guarantee, solve

    def _own_penalty(self, unit):
        """Strength of the penalty on weights of rows that were divided by ``unit``."""
        return 1.0 / (float(self.C) * unit) / unit

    def _penalty(self, mechanism, loss, row_norm, size, unit):
        """Strength of the penalty: 1/C, or a rule of public numbers found by experiment."""
        if self.C != "auto":
            return self._own_penalty(unit)
        return max(
            self._automatic_penalty(mechanism, loss, row_norm, size),
            loss.curvature * row_norm**2 / _SHARPEST,
        )

    def _automatic_penalty(self, mechanism, loss, row_norm, size):
        epsilon = float(self.epsilon)
        records = n_records_changed(self.adjacency)
        if mechanism == "output":
            # The noise moves the score of a row by a standard deviation of about 1/3.
            target = ApproxDP(epsilon, float(self.delta))
            return (
                3.0
                * row_norm**2
                * records
                * loss.lipschitz
                * NoiseLaw.meeting(target, size=size).level(size)
            )
        if loss.n_outputs > 1:
            return 6.0 * (1.0 - 1.0 / loss.n_outputs) * row_norm**2 / epsilon
        factor = 2.0 if self.delta == 0.0 else records
        return factor * row_norm**2 / epsilon

    def _check_sharpness(self, loss, penalty, row_norm, unit):
        """Check that the curvature of the loss is not out of proportion to the penalty."""
        least = loss.curvature * row_norm**2 / _SHARPEST
        if penalty < least * (1 - 1e-9):
            raise ValueError(
                f"C must be at most {1.0 / (least * unit) / unit:g} for the solver to get along "
                f"with the curvature of the loss; got {shown(self.C)}."
            )

    def _check_noise(self, level, size):
        """Check that additive noise of a level at sensitivity 1 fits its lattice."""
        # Steps are at least 1 / (200 sqrt(size)), and no norm of the noise is expected beyond.
        norm = level * (math.sqrt(size) + 60.0)
        self._check_span(200.0 * math.sqrt(size) * norm, size)

    def _check_span(self, n_steps, size):
        if not n_steps < 2.0**51:
            raise ValueError(
                f"epsilon must be larger for {size} coefficients: the noise would not fit into "
                f"the 53 bits of a float; got {shown(self.epsilon)}."
            )

    def _resolved_mechanism(self):
        published = self.calibration != "tight"
        if self.mechanism == "auto":
            return "objective" if published or self.delta == 0.0 else "gradient"
        if published and self.mechanism != "objective":
            raise ValueError(
                f"calibration must be 'tight' with mechanism={shown(self.mechanism)}: the others "
                f"calibrate objective perturbation; got {shown(self.calibration)}."
            )
        return self.mechanism
