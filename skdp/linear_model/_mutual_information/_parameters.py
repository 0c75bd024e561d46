"""Parameters of online regression on messages: checks, and the public numbers that follow."""

import math

import numpy as np

from skdp._defaults import network as defaults
from skdp._grid import CONSTANTS, NOISES, constant_on_grid, residual_slope, row_bound
from skdp._random._source import check_random_state
from skdp._validation import (
    LARGEST,
    LARGEST_RADIUS,
    LEAST,
    TargetRange,
    between,
    boolean,
    int_or_none,
    is_auto,
    number_or_auto,
    one_of,
    positive,
    positive_int,
    short_repr,
)
from skdp.learner import ledger_of
from skdp.local._messages import PERTURBATIONS, UNITS

FEEDBACKS = ("full", "bandit")
_LIMIT_BUDGET = 100.0


def check_parameters(model):
    """Check all parameters of an estimator by name."""
    one_of(UNITS, unit=model.unit)
    one_of(FEEDBACKS, feedback=model.feedback)
    one_of(NOISES, noise=model.noise)
    one_of(PERTURBATIONS, perturbation=model.perturbation)
    positive(mi_budget=model.mi_budget, radius=model.radius, x_norm=model.x_norm)
    between(1.0 / LARGEST_RADIUS, _LIMIT_BUDGET, mi_budget=model.mi_budget)
    between(1.0 / LARGEST_RADIUS, LARGEST_RADIUS, radius=model.radius)
    between(LEAST, LARGEST, x_norm=model.x_norm)
    _check_loss(model)
    number_or_auto(step=model.step)
    if not is_auto(model.step):
        between(LEAST, LARGEST, step=model.step)
    int_or_none(horizon=model.horizon)
    positive_int(contributions_per_user=model.contributions_per_user)
    averaging_power(model)
    boolean(fit_intercept=model.fit_intercept, keep_iterates=model.keep_iterates)
    _check_constant(model)
    check_random_state(model.random_state)
    ledger_of(model)


def _check_loss(model):
    if not is_custom(model):
        residual_slope(model.loss, model.width, TargetRange.of(model.y_bounds))
    elif model.feedback != "full":
        raise ValueError(
            "feedback must be 'full' with loss='custom'; for values use another loss, which "
            "bounds the slope; got 'bandit'."
        )
    number_or_auto(gradient_norm=model.gradient_norm)
    if is_auto(model.gradient_norm):
        return
    between(LEAST, LARGEST, gradient_norm=model.gradient_norm)
    if not is_custom(model):
        raise ValueError(
            "gradient_norm must be 'auto' unless loss='custom', because the loss determines it; "
            f"got {short_repr(model.gradient_norm)}."
        )


def _check_constant(model):
    number_or_auto(intercept_scaling=model.intercept_scaling)
    if is_auto(model.intercept_scaling):
        return
    low, high = CONSTANTS
    if not low <= float(model.intercept_scaling) / float(model.x_norm) <= high:
        raise ValueError(
            f"intercept_scaling must be 'auto' or from 1/{1 / low:g} to {high:g} times x_norm; "
            f"got {short_repr(model.intercept_scaling)} with x_norm={short_repr(model.x_norm)}."
        )


def averaging_power(model):
    """Power of the time that weights have in the mean; None predicts with the latest ones."""
    average = model.average
    if isinstance(average, str) and average in ("uniform", "late"):
        return int(defaults.AVERAGE_POWER) if average == "late" else 0
    if not isinstance(average, bool | np.bool_):
        raise ValueError(
            f"average must be 'uniform', 'late', True or False; got {short_repr(average)}."
        )
    return 0 if average else None


def is_custom(model):
    """Whether users bring gradients of a loss of their own."""
    return isinstance(model.loss, str) and model.loss == "custom"


def target_range(model):
    """Range of the target; scores of a custom loss have no unit."""
    return TargetRange.of(None if is_custom(model) else model.y_bounds)


def constant_of(model):
    """Constant feature of rows in units of ``x_norm``, on their grid; 0 if there is none.

    Noise grows with the norm of a row and its constant, and the reach of the intercept is the
    radius times the constant: a smaller one pays where the radius leaves room.
    """
    if not model.fit_intercept:
        return 0.0
    if not is_auto(model.intercept_scaling):
        return constant_on_grid(float(model.intercept_scaling) / float(model.x_norm))
    return constant_on_grid(min(max(1.0 / math.sqrt(float(model.radius)), 0.5), 1.0))


def row_norm_of(model):
    """Bound on the norm of a row in units of ``x_norm``, with the constant."""
    return row_bound(constant_of(model))


def slope_of(model):
    """Slope of the loss of a residual."""
    return residual_slope(model.loss, model.width, TargetRange.of(model.y_bounds))


def lipschitz_of(model):
    """Largest slope of a loss in the weights."""
    if not is_custom(model):
        return slope_of(model).cap * row_norm_of(model)
    return row_norm_of(model) if is_auto(model.gradient_norm) else float(model.gradient_norm)


def device_options(model):
    """Parameters that a device has in common with the estimator."""
    targets, constant = target_range(model), constant_of(model)
    return dict(
        noise=model.noise,
        loss=model.loss,
        width=model.width,
        x_norm=model.x_norm,
        y_bounds=(targets.low, targets.high),
        fit_intercept=model.fit_intercept,
        **(dict(constant=constant) if constant else {}),
    )
