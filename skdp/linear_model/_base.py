"""What the private linear classifiers share: check, charge, release, store."""

import math
from abc import ABC, abstractmethod

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin

from skdp._inputs import checked_data, encode_labels
from skdp._random import noise_source
from skdp._validation import between, boolean, is_auto, number_or_auto, one_of, positive, shown
from skdp.estimators import (
    LinearPredictions,
    LinkedDocumentation,
    NoisyPredictions,
    StatedGuarantee,
    charge,
    check_budget,
    unchanged_on_error,
)
from skdp.mechanisms import NoiseLaw
from skdp.privacy import ApproxDP, n_records_changed
from skdp.releases import (
    CALIBRATIONS,
    NoisyDescent,
    ObjectivePerturbation,
    OutputPerturbation,
)
from skdp.solvers.rows import RowBlocks

MECHANISMS = ("auto", "objective", "output", "gradient")

# Largest second derivative of the loss of a record over the penalty, where it is minimised:
# Newton steps across kinks that are sharper need not end.
_SHARPEST = 1e8


class BaseDPLinearClassifier(
    StatedGuarantee,
    LinearPredictions,
    LinkedDocumentation,
    NoisyPredictions,
    ClassifierMixin,
    BaseEstimator,
    ABC,
):
    """Private linear classifier; a subclass chooses the loss."""

    @abstractmethod
    def _loss(self, n_classes):
        """Loss for the number of classes; checks the subclass's own parameters."""

    def _clip_norm(self, loss):
        """Norm to which the gradient mechanism clips residuals, or None for a rule."""
        return None

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
            release = self._plan(len(classes), X.shape[1])
            release.check_n_rows(X.shape[0])
            noise = noise_source(self.random_state)
            charge(self, release.guarantee)
            weights = release(self._rows(X, codes), noise)
            coef, intercept = self._in_units(weights)
        self.classes_, self.guarantee_ = classes, self._stated(release.guarantee)
        self.coef_, self.intercept_ = coef, intercept
        return self

    def _plan(self, n_classes, n_features):
        """Release for the parameters, from public numbers. Norms are in units of `_unit`."""
        target = ApproxDP(float(self.epsilon), float(self.delta), adjacency=self.adjacency)
        mechanism = self._resolved_mechanism()
        loss = self._loss(n_classes)
        n_features += bool(self.fit_intercept)
        row_norm = RowBlocks.norm_bound(float(self.x_norm), self._constant(), n_features)
        public = dict(loss=loss, n_features=n_features, row_norm=row_norm / self._unit())
        if mechanism == "gradient":
            public["penalty"] = 0.0 if is_auto(self.C) else self._own_penalty()
            return NoisyDescent.plan(target, clip_norm=self._clip_norm(loss), **public)
        public["penalty"] = self._penalty(mechanism, **public)
        release: OutputPerturbation | ObjectivePerturbation
        if mechanism == "output":
            release = OutputPerturbation.plan(target, **public)
        else:
            release = ObjectivePerturbation.plan(target, calibration=self.calibration, **public)
        self._check_sharpness(release)
        return release

    def _rows(self, X, codes):
        """Rows, clipped, in units of `_unit`."""
        options = dict(constant=self._constant(), unit=self._unit())
        return RowBlocks(X, codes, x_norm=float(self.x_norm), **options)

    def _constant(self):
        """Feature whose coefficient is the intercept, or 0."""
        return float(self.intercept_scaling) if self.fit_intercept else 0.0

    def _unit(self):
        """Power of two near the norm of a row, in which everything is computed.

        So units of the rows decide nothing, and dividing by it rounds nothing.
        """
        return 2.0 ** (math.frexp(math.hypot(float(self.x_norm), self._constant()))[1] - 1)

    def _in_units(self, weights):
        """Coefficients and intercepts for rows as they were given."""
        constant, unit = self._constant(), self._unit()
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
        number_or_auto(C=self.C)
        if not is_auto(self.C):
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

    def _own_penalty(self):
        """Strength of the penalty on weights of rows in units of `_unit`."""
        unit = self._unit()
        return 1.0 / (float(self.C) * unit) / unit

    def _penalty(self, mechanism, loss, n_features, row_norm):
        """Strength of the penalty: 1/C, or a rule of public numbers found by experiment."""
        if not is_auto(self.C):
            return self._own_penalty()
        return max(
            self._automatic_penalty(mechanism, loss, row_norm, loss.n_outputs * n_features),
            _least_penalty(loss, row_norm),
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

    def _check_sharpness(self, release):
        """Check that the curvature of the loss is not out of proportion to the penalty."""
        least, unit = _least_penalty(release.loss, release.row_norm), self._unit()
        if release.penalty < least * (1 - 1e-9):
            raise ValueError(
                f"C must be at most {1.0 / (least * unit) / unit:g} for the solver to get along "
                f"with the curvature of the loss; got {shown(self.C)}."
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


def _least_penalty(loss, row_norm):
    return loss.curvature * row_norm**2 / _SHARPEST
