"""Base of the private linear classifiers: check, charge, release, store."""

import math
from abc import abstractmethod
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin

from skdp import _validation as checks
from skdp._defaults import linear as defaults
from skdp._validation import LARGEST, LEAST, is_auto, short_repr
from skdp.learner import (
    CALIBRATIONS,
    ClassCounts,
    LinearPredictions,
    NoisyDescent,
    ObjectivePerturbation,
    OutputPerturbation,
    RowCount,
    RowNorm,
    Rows,
    ScoreScale,
    Sequence,
    largest_score,
)
from skdp.learner._estimator import Weighted
from skdp.linear_model._rules import (
    AUTOMATIC_CONSTANT,
    objective_margin,
    objective_penalty,
    objective_slope_cap,
    output_penalty,
)
from skdp.rows._blocks import RowBlocks

_LIMIT = 1e6


def check_class_weight(class_weight):
    """Check the parameter without knowing the classes."""
    if class_weight is None:
        return
    if isinstance(class_weight, str) and class_weight == "balanced":
        raise ValueError(
            "class_weight must not be 'balanced', which counts the private labels. Declare the "
            "known or assumed share of each class and pass {label: 1 / (n_classes * share)}; "
            "got 'balanced'."
        )
    if not isinstance(class_weight, dict):
        raise ValueError(
            f"class_weight must be None or a dict {{label: weight}}; got "
            f"{short_repr(class_weight)}."
        )
    for label, weight in class_weight.items():
        checks.between(1.0 / _LIMIT, _LIMIT, **{f"class_weight[{short_repr(label)}]": weight})


def with_class_weight(loss, class_weight, classes):
    """Loss with class weights divided by the largest, and the largest weight.

    Labels without an entry have weight 1, as in scikit-learn. The loss keeps its bounds, and the
    penalty is divided by the largest weight, as the whole objective is.

    Parameters
    ----------
    loss : LogisticLoss, HuberHingeLoss or SoftmaxLoss

    class_weight : dict or None
        Checked.

    classes : ndarray

    Returns
    -------
    loss : same type

    heaviest : float

    Raises
    ------
    ValueError
        If there are labels without a weight, and weights without a label.
    """
    named = class_weight or {}
    weights = [float(named.get(label, 1.0)) for label in classes]
    n_named = sum(label in named for label in classes)
    if n_named < len(classes) and n_named < len(named):
        raise ValueError(
            "class_weight must name labels that are among the classes; got "
            f"{short_repr(class_weight)}."
        )
    heaviest = max(weights)
    if min(weights) == heaviest:
        return loss, heaviest
    return replace(loss, weights=tuple(weight / heaviest for weight in weights)), heaviest


MECHANISMS = ("auto", "objective", "output", "gradient")

# Largest second derivative of the loss of a record over the penalty, where it is minimised:
# Newton steps across kinks that are sharper need not end.
_LIMIT_SHARPEST = 1e8

# Constant feature over the norm of a row from which on it can carry the log-odds of the classes.
_LIMIT_CONSTANT = 1e-3

# C over the squared norm of a row.
_LIMIT_C, _TOLERANCE = (1e-12, 1e9), 1e-9


class LinearRows:
    """Mixin: rows of a linear model, clipped to ``x_norm``, with a constant for the intercept."""

    x_norm: Any
    fit_intercept: Any
    intercept_scaling: Any
    n_features_in_: int

    _dtypes = (np.float64, np.float32)

    def _check_row_parameters(self):
        checks.positive(x_norm=self.x_norm)
        checks.between(
            LEAST, LARGEST, x_norm=self.x_norm
        )  # squares stay within the range of floats
        checks.boolean(fit_intercept=self.fit_intercept)
        if self.fit_intercept:
            checks.number_or_auto(intercept_scaling=self.intercept_scaling)
            if not is_auto(self.intercept_scaling):
                checks.between(LEAST, LARGEST, intercept_scaling=self.intercept_scaling)

    def _sizes(self, n_features):
        """Number of features and bound on the norm of a row, in units of `_unit`."""
        n_features += bool(self.fit_intercept)
        row_norm = RowBlocks.norm_bound(float(self.x_norm), self._constant(), n_features)
        return dict(n_features=n_features, row_norm=row_norm / self._unit())

    def _rows(self, data, codes):
        """Rows with these targets, not clipped yet, in units of `_unit`."""
        sizes = float(self.x_norm), self._constant(), self._unit()
        return Rows(data.X, codes, *sizes, data.users, weights=data.weights)

    def _constant(self):
        """Feature whose coefficient is the intercept, or 0."""
        if not self.fit_intercept:
            return 0.0
        if is_auto(self.intercept_scaling):
            return AUTOMATIC_CONSTANT * float(self.x_norm)
        return float(self.intercept_scaling)

    def _unit(self):
        """Power of two near the norm of a row, in which everything is computed.

        So units of the rows decide nothing, and dividing by it rounds nothing.
        """
        return 2.0 ** (math.frexp(math.hypot(float(self.x_norm), self._constant()))[1] - 1)

    def _scales(self, longer):
        """What weights are multiplied by for `_in_units`; that of an intercept is the last."""
        constant, unit = self._constant(), self._unit()
        scales = np.full(self.n_features_in_, longer / unit)
        return np.append(scales, constant / unit) if constant else scales

    def _in_units(self, weights, longer):
        """Coefficients and intercepts for rows as they were given, not yet ``longer``."""
        scaled = weights * self._scales(longer)
        if self._constant():
            return scaled[:, :-1].copy(), scaled[:, -1].copy()
        return scaled, np.zeros(len(weights))


class BaseDPLinearClassifier(LinearRows, LinearPredictions, ClassifierMixin, Weighted):
    """Private linear classifier; a subclass chooses the loss."""

    # Whether scores are log-odds of the classes.
    _has_odds = False

    @abstractmethod
    def _loss(self, n_classes, mechanism, rule):
        """Loss for the number of classes; checks the subclass's own parameters.

        ``rule`` is what "auto" stands for: the cap of the slope of two classes, or the margin of
        more.
        """

    def _clip_norm(self, loss):
        """Norm to which the gradient mechanism clips residuals, or None for a rule."""
        return None

    def plan(self, public):
        """Releases for the parameters, from public numbers, in units of `_unit`."""
        sizes = public.classes, public.n_features, public.n_samples
        most = self._most_weight if public.is_weighted else None
        return self._plan(*sizes, public.unit, most)

    def learn(self, data, run):
        """Release the coefficients, with the norm and the scale that go with them."""
        unit = "record" if data.users is None else "user"
        found = run(self._rows(data, data.y))
        self.x_norm_ = float(self.x_norm) / found.norm_scale
        self.coef_, self.intercept_ = self._in_units(found.weights, found.norm_scale)
        spread = found.spread.along(found.weights, found.scale_deviation)
        self.coef_noise_ = self._stated_noise(spread, self._unit() / found.norm_scale, unit)
        return found

    # Whether the model of scores behind the noise of descents is one of this loss.
    _knows_slopes = False

    def _stated_noise(self, spread, length, unit):
        """What is known of the noise in coefficients; None without a model or tight bounds."""
        mechanism = self._resolved_mechanism(unit)
        is_modelled = mechanism == "gradient" and self._knows_slopes and unit == "record"
        if not (mechanism == "output" or is_modelled) or spread.kind == "bound":
            return None
        return spread.of_features(self.n_features_in_, length)

    def _planned_guarantee(self, n_features):
        target = self._target()
        if target.delta == 0.0 or self._resolved_mechanism() != "gradient":
            return target
        return replace(target, refined=target.gaussian_target())

    def _plan(self, classes, n_features, n_samples, unit="record", most=None):
        """Sequence of releases for the parameters, from public numbers, in units of `_unit`.

        ``n_samples``, of rows or of users as ``unit`` says, is None where it is private, and
        ``most`` the largest weight of a row, None where rows have no weights.
        """
        is_weighted = most is not None
        target = self._target(unit)
        mechanism = self._resolved_mechanism(unit)
        by_rules = self.calibration == "tight" and is_auto(self.C)
        # Budgets of papers and of a given penalty stay whole, but for a count that descents need.
        is_divided = by_rules and (mechanism == "gradient" or target.delta == 0.0)
        before: list[Any] = []
        after: list[Any] = []
        # What is given by hand is meant for rows of the norm that is given.
        has_usual_constant = not self.fit_intercept or is_auto(self.intercept_scaling)
        if n_samples is not None and is_divided and has_usual_constant:
            before.append(RowNorm.planned)
        loss = self._weighted_loss(classes, mechanism, _usual_rule(classes), most)[0]
        is_centred = mechanism == "objective" and is_divided and self._starts_at_odds(classes)
        if is_centred:
            before.append(ClassCounts.planner(loss))
        elif (n_samples is None or is_weighted) and (
            mechanism == "gradient" or (is_divided and mechanism == "objective")
        ):
            before.append(RowCount.planned)
        is_counted = is_weighted and before[-1:] != [RowNorm.planned]
        if is_divided and unit == "record" and self._is_scaled(loss, mechanism):
            after.append(ScoreScale.planner(loss, is_centred))
        release = partial(self._release, mechanism, classes, n_features, is_centred, most)
        options = dict(n_samples=n_samples, before=before, after=after)
        return Sequence.plan(target, release=release, is_counted=is_counted, **options)

    def _is_scaled(self, loss, mechanism):
        """Whether scores are log-odds, and are made as long as rows that count alike ask."""
        is_pure = self.delta == 0.0
        return self._has_odds and not loss.weights and is_pure == (mechanism == "objective")

    def _release(self, mechanism, classes, n_features, is_centred, most, budget, n_samples):
        """Release of the weights for a part of the budget and a number of rows."""
        public = self._sizes(n_features)
        n_features = public["n_features"]
        if mechanism == "objective":
            options = dict(is_centred=is_centred, most=most)
            return self._objective(classes, budget, n_samples, **options, **public)
        loss, heaviest = self._weighted_loss(classes, mechanism, _usual_rule(classes), most)
        if mechanism == "gradient":
            public["penalty"] = 0.0 if is_auto(self.C) else self._own_penalty(heaviest)
            public["clip_norm"] = self._clip_norm(loss)
            return NoisyDescent.plan(budget, loss=loss, **public)
        rule = output_penalty(
            budget, lipschitz=loss.lipschitz, n_outputs=loss.n_outputs, n_features=n_features
        )
        penalty = self._penalty(loss, heaviest, public["row_norm"], rule)
        release = OutputPerturbation.plan(budget, loss=loss, penalty=penalty, **public)
        self._check_sharpness(release, heaviest)
        return release

    def _starts_at_odds(self, classes):
        """Whether penalties are around the log-odds of the classes, which the constant scores."""
        if len(classes) == 2:
            return False
        return self._constant() >= _LIMIT_CONSTANT * float(self.x_norm)

    def _objective(
        self, classes, target, n_samples, *, n_features, row_norm, is_centred=False, most=None
    ):
        """Objective perturbation, by the rules for a number of rows."""
        sizes = dict(n_features=n_features, n_samples=n_samples)
        if len(classes) == 2:
            automatic = objective_slope_cap(target, **sizes)
        else:
            automatic = objective_margin(target, n_outputs=len(classes), **sizes)
        loss, heaviest = self._weighted_loss(classes, "objective", automatic, most)
        rule = objective_penalty(target, loss=loss, **sizes)
        longest = 0.0
        if is_centred:
            longest = loss.temperature * largest_score(loss.n_outputs, loss.weights)
            longest *= self._unit() / self._constant()
        release = ObjectivePerturbation.plan(
            target,
            loss=loss,
            n_features=n_features,
            row_norm=row_norm,
            penalty=self._penalty(loss, heaviest, row_norm, rule),
            calibration=self.calibration,
            centre_norm=longest,
        )
        self._check_sharpness(release, heaviest)
        return release

    def _weighted_loss(self, classes, mechanism, rule, most=None):
        """Loss with weights of at most 1, and what the largest was, of a row and its class."""
        loss = self._loss(len(classes), mechanism, rule)
        loss, heaviest = with_class_weight(loss, self.class_weight, classes)
        heaviest *= most or 1.0
        self._check_penalty(heaviest)
        return loss, heaviest

    def _penalty(self, loss, heaviest, row_norm, rule):
        """Strength of the penalty: 1/C, or that of a rule for rows of norm 1."""
        if not is_auto(self.C):
            return self._own_penalty(heaviest)
        return max(rule * row_norm**2, _least_penalty(loss, row_norm))

    def check_parameters(self):
        self._check_row_parameters()
        checks.one_of(MECHANISMS, mechanism=self.mechanism)
        checks.one_of(CALIBRATIONS, calibration=self.calibration)
        checks.number_or_auto(C=self.C)
        check_class_weight(self.class_weight)

    def _check_penalty(self, heaviest):
        """Refuse a penalty beyond which floating point could no longer certify a minimiser."""
        square = heaviest * math.hypot(float(self.x_norm), self._constant()) ** 2
        if is_auto(self.C) or _LIMIT_C[0] <= float(self.C) * square <= _LIMIT_C[1]:
            return
        others = ""
        if self.fit_intercept:
            others = f" and intercept_scaling={short_repr(self.intercept_scaling)}"
        if heaviest != 1.0:
            others += f" and a maximum weight of {heaviest:g}"
        raise ValueError(
            f"C must be between {_LIMIT_C[0] / square:g} and {_LIMIT_C[1] / square:g} with "
            f"x_norm={short_repr(self.x_norm)}{others}; got {short_repr(self.C)}."
        )

    def _own_penalty(self, heaviest):
        """Strength of the penalty for rows in units of `_unit` and classes of weight 1."""
        unit = self._unit()
        return 1.0 / (float(self.C) * unit) / unit / heaviest

    def _check_sharpness(self, release, heaviest):
        """Check that the curvature of the loss is not out of proportion to the penalty."""
        least, unit = _least_penalty(release.loss, release.row_norm), self._unit()
        if release.penalty < least * (1 - _TOLERANCE):
            raise ValueError(
                f"C must be at most {1.0 / (least * heaviest * unit) / unit:g} for the solver to "
                f"handle the curvature of the loss; got {short_repr(self.C)}."
            )

    def _resolved_mechanism(self, unit="record"):
        published = self.calibration != "tight"
        if unit == "user":
            for name, allowed in (
                ("mechanism", ("auto", "gradient")),
                ("calibration", ("tight",)),
            ):
                if getattr(self, name) not in allowed:
                    raise ValueError(
                        f"{name} must be {' or '.join(map(repr, allowed))} with groups: objective "
                        "and output perturbation bound the effect of one row, not of all rows of "
                        "a user. skdp.preprocessing.bound_contributions limits the rows of each "
                        f"user; got {short_repr(getattr(self, name))}."
                    )
            return "gradient"
        if self.mechanism == "auto":
            return "objective" if published or self.delta == 0.0 else "gradient"
        if published and self.mechanism != "objective":
            raise ValueError(
                f"calibration must be 'tight' with mechanism={short_repr(self.mechanism)}: the "
                "other option is for objective perturbation; got "
                f"{short_repr(self.calibration)}."
            )
        return self.mechanism


def _usual_rule(classes):
    """What a loss is made with where no rule of an objective is: a cap, or a margin of none."""
    return float(defaults.SLOPE_CAP) if len(classes) == 2 else 0.0


def _least_penalty(loss, row_norm):
    return loss.curvature * row_norm**2 / _LIMIT_SHARPEST
