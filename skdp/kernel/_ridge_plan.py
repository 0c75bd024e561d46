"""Public numbers of kernel ridge regression, and the release that follows from them."""

from skdp._defaults import kernel as defaults
from skdp._validation import (
    between,
    is_auto,
    number_or_auto,
    one_of,
    positive,
    positive_int,
    shown,
)
from skdp.kernel._choices import (
    LOSSES,
    MECHANISMS,
    check_loss,
    check_mechanism,
    check_paper,
)
from skdp.kernel._descent import FeatureDescent
from skdp.kernel._exact_queries import ExactQueries
from skdp.kernel._objective import CentredObjective
from skdp.kernel._output import FeatureOutput
from skdp.kernel._pure import CentredOutput, pure_components
from skdp.kernel._rules import automatic_components
from skdp.kernel._statistics import FeatureStatistics
from skdp.learner import check_budget
from skdp.mechanisms import NoiseLaw
from skdp.mechanisms._limits import check_memory, check_noise
from skdp.preprocessing._target_bounds import TargetBounds
from skdp.privacy import ApproxDP
from skdp.rows._certificates import MOST_ROWS, refuse_rows
from skdp.theory.kernel_ridge import epsilon_rule, penalty_rule

__all__ = ["check_ridge_parameters", "ridge_plan", "ridge_size"]

RELEASES = ("features", "query")
BOUNDS = ("tight", "paper")

# Where targets span [-1, 1].
_CAP = float(defaults.CAP)

_LIMIT_PENALTIES = 1e-6, 1e12
_LIMIT_GROWTH = 30.0  # noise of the last of 48 steps, which has a third of an even share
# Bytes of matrices that are held together, by the squares of their sizes and by their products.
_LIMIT_BYTES_OF_SQUARES = 48.0
_LIMIT_BYTES_OF_FREQUENCIES = 16.0
_LIMIT_BYTES_OF_GRAM = 32.0
_LIMIT_BYTES_OF_ROWS = 8.0


def check_ridge_parameters(model):
    one_of(RELEASES, release=model.release)
    one_of(MECHANISMS, mechanism=model.mechanism)
    one_of(LOSSES, loss=model.loss)
    one_of(BOUNDS, sensitivity=model.sensitivity)
    check_budget(model, epsilon=1.0 if is_auto(model.epsilon) else None)
    model._check_kernel_parameters()
    positive(source_smoothness=model.source_smoothness)
    _check_penalty(model)
    model._cap(_CAP)
    if is_auto(model.epsilon) and model.adjacency == "add-remove":
        raise ValueError(
            "epsilon must be a number under adjacency='add-remove': the rule reads the "
            "number of rows, which is private there; got 'auto'."
        )
    check_loss(model)
    check_paper(model)
    if model.release == "query":
        _check_queries(model)
        return
    check_mechanism(model)


def _check_penalty(model):
    number_or_auto(alpha=model.alpha)
    if is_auto(model.alpha):
        return
    unit = _scaled(model, 1.0)
    between(*(limit / unit for limit in _LIMIT_PENALTIES), alpha=model.alpha)


def _check_queries(model):
    n = model.n_queries
    if n is None:
        raise ValueError(
            "n_queries must be given with release='query': every predicted row costs "
            "budget. Use release='features' for predictions without end; got None."
        )
    positive_int(n_queries=n)
    if model.mechanism != "auto":
        raise ValueError(
            f"mechanism must be 'auto' with release='query'; got {shown(model.mechanism)}."
        )


def _scaled(model, alpha):
    """Penalty in units where features have norm one."""
    return float(alpha) / (model.x_norm**2 if model.kernel == "linear" else 1.0)


def ridge_plan(model, n_samples, n_features, *, unit="record"):
    """Turn public numbers into releases: of the bounds of the target, or None, and then the fit.

    Parameters
    ----------
    model : DPKernelRidge

    n_samples : int
        Number of rows, or of their owners if the unit is a user.

    n_features : int

    unit : str, default="record"

    Returns
    -------
    TargetBounds or None

    Release
    """
    epsilon = model.epsilon
    if is_auto(epsilon):
        epsilon = epsilon_rule(n_samples, float(model.source_smoothness))
    target = ApproxDP(float(epsilon), float(model.delta), adjacency=model.adjacency, unit=unit)
    plan = _plan_queries if model.release == "query" else _plan_features
    penalty = None if is_auto(model.alpha) else _scaled(model, model.alpha)

    def planned(budget):
        return plan(model, budget, n_samples, n_features, penalty)

    if not is_auto(model.y_bounds):
        return None, planned(target)
    public = n_samples if model.adjacency == "replace-one" else None
    bounds = TargetBounds.plan(target, n_samples=public, search_range=model.y_search_range)
    return bounds, bounds.before(planned)


def _plan_features(model, target, n_samples, n_features, penalty):
    size = ridge_size(model, target, n_samples, n_features)
    if model.kernel == "linear":
        rule = "X must have fewer columns, of which the linear kernel takes the square"
    else:
        rule = "n_components must be smaller"
    check_memory(
        _LIMIT_BYTES_OF_SQUARES * size**2 + _LIMIT_BYTES_OF_FREQUENCIES * size * n_features,
        rule,
        f"; got {size}",
    )
    level = NoiseLaw.meeting(target, size=size).level(size)
    check_noise(level, size)
    refuse_rows(n_samples, MOST_ROWS, model.adjacency)
    match _resolved(model, target):
        case "gradient":
            check_noise(_LIMIT_GROWTH * level, size)
            cap = model._cap(None)
            return FeatureDescent.plan(target, clip_norm=cap, penalty=penalty or 0.0)
        case "sufficient_statistics":
            return FeatureStatistics.plan(target, n_components=size, penalty=penalty)
        case "objective":
            pairs = model.kernel != "linear"
            cap = model._cap(None)
            release = CentredObjective.plan(target, cap=cap, penalty=penalty, pairs=pairs)
        case _:
            release = _plan_output(model, target, n_samples, size, penalty)
    release.check_n_rows(n_samples, size)
    return release


def _plan_output(model, target, n_samples, size, penalty):
    if target.delta == 0.0 and model.loss != "squared":
        return CentredOutput.plan(target, cap=model._cap(None), penalty=penalty)
    return FeatureOutput.plan(
        target,
        n_samples=n_samples,
        n_components=size,
        squared=model.loss == "squared",
        cap=model._cap(_CAP),
        penalty=penalty,
    )


def _resolved(model, target):
    """Mechanism, from public numbers."""
    if model.mechanism != "auto":
        return model.mechanism
    if model.loss == "squared":
        return "output" if target.delta == 0.0 else "sufficient_statistics"
    return "objective" if target.delta == 0.0 else "gradient"


def _plan_queries(model, target, n_samples, n_features, penalty):
    if penalty is None and is_auto(model.epsilon):
        penalty = penalty_rule(n_samples, target.epsilon, float(model.source_smoothness))
    if model.sensitivity == "paper" and penalty is not None and penalty > n_samples:
        unit = " times x_norm^2" if model.kernel == "linear" else ""
        raise ValueError(
            f"alpha must be at most the number of rows, {n_samples},{unit} with "
            f"sensitivity='paper', whose lemma asks for lam <= 1; got {shown(model.alpha)}."
        )
    release = ExactQueries.plan(
        target,
        n_samples=n_samples,
        n_features=n_features,
        n_queries=int(model.n_queries),
        squared=_is_squared(model),
        cap=model._cap(_CAP),
        penalty=penalty,
        automatic=is_auto(model.alpha),
        bound=model.sensitivity,
    )
    release.check_n_rows(n_samples, given=shown(model.alpha))
    check_memory(
        _LIMIT_BYTES_OF_GRAM * n_samples**2 + _LIMIT_BYTES_OF_ROWS * n_samples * n_features,
        "X must have fewer rows with release='query', which holds their kernel matrix",
        f"; got {n_samples}" if model.adjacency == "replace-one" else None,
    )
    return release


def _is_squared(model):
    """Whether queries are about the squared loss."""
    by_rule = is_auto(model.epsilon) or model.sensitivity == "paper"
    return model.loss == "squared" or (model.loss == "auto" and by_rule)


def ridge_size(model, target, n_samples, n_features):
    """Length of a row of features; a private number of rows has no part in it."""
    rows = n_samples if target.adjacency == "replace-one" else None
    if target.delta > 0.0:
        automatic = automatic_components(n_samples=rows, guarantee=target.gaussian_target())
    else:
        automatic = pure_components(n_samples=rows, epsilon=target.epsilon)
    return model._n_components(n_features, automatic)
