"""What the private linear classifiers share: check, charge, solve, store."""

from abc import ABC, abstractmethod
from dataclasses import replace

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin

from skdp._fitting import (
    LinearPredictions,
    LinkedDocumentation,
    additive_refinement,
    charge,
    check_budget,
    unchanged_on_error,
)
from skdp._inputs import checked_data, encode_labels
from skdp._random import noise_source
from skdp._validation import boolean, one_of, positive
from skdp.mechanisms import noise_level
from skdp.privacy import ApproxDP, GaussianDP, compose, gaussian_mu
from skdp.solvers.erm import (
    RowBlocks,
    gradient_descent,
    objective_perturbation,
    output_perturbation,
)
from skdp.theory.objective_perturbation import CALIBRATIONS, calibrate

MECHANISMS = ("auto", "objective", "output", "gradient")

# Share of epsilon for masking the solver's error. At the solver's tolerance the noise it
# buys is lost beside that of the objective.
_SOLVER_SHARE = 0.002


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
            constant = float(self.intercept_scaling) if self.fit_intercept else 0.0
            guarantee, solve = self._plan(len(classes), X.shape[1] + (constant != 0.0), constant)
            charge(self, guarantee)

            data = RowBlocks(X, codes, x_norm=self.x_norm, constant=constant)
            weights = solve(data, noise_source(self.random_state))
        if constant:
            coef, intercept = weights[:, :-1].copy(), constant * weights[:, -1]
        else:
            coef, intercept = weights, np.zeros(len(weights))
        self.classes_ = classes
        self.coef_, self.intercept_ = coef, intercept
        self.guarantee_ = guarantee
        return self

    def _check_parameters(self):
        check_budget(self)
        positive(x_norm=self.x_norm)
        if not 1e-50 < self.x_norm < 1e50:
            raise ValueError(f"x_norm must be between 1e-50 and 1e50; got {self.x_norm!r}.")
        one_of(MECHANISMS, mechanism=self.mechanism)
        one_of(CALIBRATIONS, calibration=self.calibration)
        boolean(fit_intercept=self.fit_intercept)
        if self.fit_intercept:
            positive(intercept_scaling=self.intercept_scaling)
        if self.C != "auto":
            if isinstance(self.C, str):
                raise ValueError(f"C must be 'auto' or a positive number; got {self.C!r}.")
            positive(C=self.C)
            # Beyond these floating point could no longer certify a minimiser.
            if not 1e-12 <= self.C * self.x_norm**2 <= 1e9:
                raise ValueError(
                    f"C must be between {1e-12 / self.x_norm**2:g} and {1e9 / self.x_norm**2:g} "
                    f"with x_norm={self.x_norm!r}; got {self.C!r}."
                )

    def _plan(self, n_classes, n_features, constant):
        """Turn public numbers into a guarantee and a function of the data that meets it."""
        target = ApproxDP(float(self.epsilon), float(self.delta), adjacency=self.adjacency)
        row_norm = RowBlocks.norm_bound(self.x_norm, constant, n_features)
        mechanism = self._resolved_mechanism()
        loss = self._loss(n_classes)
        size = loss.n_outputs * n_features
        if mechanism == "gradient":
            return self._plan_gradient(target, loss)
        penalty = self._penalty(mechanism, loss, row_norm, size)
        if mechanism == "output":
            return self._plan_output(target, loss, penalty, size)

        solver = replace(target, epsilon=_SOLVER_SHARE * target.epsilon, delta=0.0)
        share = replace(target, epsilon=target.epsilon - solver.epsilon)
        law = calibrate(
            loss,
            x_norm=row_norm,
            penalty=penalty,
            guarantee=share,
            calibration=self.calibration,
        )
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
            refined=additive_refinement(target, size),
            mechanism="output perturbation",
            source="Chaudhuri, Monteleoni and Sarwate, JMLR 2011, theorem 6",
        )

        def solve(data, noise):
            return output_perturbation(
                loss, data, penalty=penalty, guarantee=guarantee, noise=noise
            )

        return guarantee, solve

    def _plan_gradient(self, target, loss):
        budget = target
        if target.delta > 0.0:
            mu = gaussian_mu(epsilon=target.epsilon, delta=target.delta)
            budget = GaussianDP(mu, adjacency=target.adjacency)
        guarantee = replace(
            target,
            refined=budget if target.delta > 0.0 else None,
            mechanism="noisy gradient descent",
            source="Bassily, Smith and Thakurta, FOCS 2014, composed by Dong, Roth and Su, "
            "JRSS-B 2022, corollary 2",
        )

        penalty = 0.0 if self.C == "auto" else 1.0 / self.C

        def solve(data, noise):
            clip_norm = self._clip_norm(loss)
            return gradient_descent(
                loss, data, clip_norm=clip_norm, guarantee=budget, noise=noise, penalty=penalty
            )

        return guarantee, solve

    def _penalty(self, mechanism, loss, row_norm, size):
        """Strength of the penalty: 1/C, or a rule of public numbers found by experiment."""
        if self.C != "auto":
            return 1.0 / self.C
        records = 2.0 if self.adjacency == "replace-one" else 1.0
        if mechanism == "output":
            # The noise moves the score of a row by a standard deviation of about 1/3.
            target = ApproxDP(self.epsilon, self.delta)
            return 3.0 * row_norm**2 * records * loss.lipschitz * noise_level(size, target)
        if loss.n_outputs > 1:
            return 6.0 * (1.0 - 1.0 / loss.n_outputs) * row_norm**2 / self.epsilon
        factor = 2.0 if self.delta == 0.0 else records
        return factor * row_norm**2 / self.epsilon

    def _resolved_mechanism(self):
        published = self.calibration != "tight"
        if self.mechanism == "auto":
            return "objective" if published or self.delta == 0.0 else "gradient"
        if published and self.mechanism != "objective":
            raise ValueError(
                f"calibration must be 'tight' with mechanism={self.mechanism!r}: the others "
                f"calibrate objective perturbation; got {self.calibration!r}."
            )
        return self.mechanism
