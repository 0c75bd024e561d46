"""What a fit will be charged, before there are rows."""

from dataclasses import replace
from types import SimpleNamespace

from skdp._defaults import kernel as defaults
from skdp._validation import is_auto
from skdp.kernel._queries import QueryPlan
from skdp.mechanisms import NoiseLaw
from skdp.preprocessing._target_bounds import TargetBounds

__all__ = ["planned_guarantee", "planned_of_stream"]

_LIMIT_ROWS = 2**30  # rows, on which the cost of bounds does not depend


def planned_guarantee(model, target, n_features):
    """Guarantee of a fit of `DPKernelRidge`, at most.

    Parameters
    ----------
    model : DPKernelRidge

    target : ApproxDP
        Whose unit is that of the fit.

    n_features : int or None

    Returns
    -------
    ApproxDP
        With what stands behind it, where that is the same for any number of rows.
    """
    if not is_auto(model.y_bounds):
        return _of_the_fit(model, target, n_features)
    public = _LIMIT_ROWS if target.adjacency == "replace-one" else None
    try:
        bounds = TargetBounds.plan(target, n_samples=public, search_range=model.y_search_range)
    except ValueError:  # the fit will say so
        return target

    def planned(rest):
        return SimpleNamespace(guarantee=_of_the_fit(model, rest, n_features))

    then = bounds.before(planned).guarantee
    is_known = target.delta == 0.0 or then.refined is not None
    return bounds.guarantee(then) if is_known else target


def _of_the_fit(model, target, n_features):
    if model.release == "query" and model.n_queries is not None:
        return QueryPlan.plan(target, n_queries=int(model.n_queries)).guarantee
    if target.delta == 0.0 or not _is_gaussian(model, target, n_features):
        return target
    return replace(target, refined=target.gaussian_target())


def _is_gaussian(model, target, n_features):
    if model.mechanism != "output":
        return True
    if model.kernel == "linear":
        size = n_features or 1
    elif is_auto(model.n_components):
        size = int(defaults.FEWEST_FEATURES)
    else:
        size = int(model.n_components)
    # Of more features it is Gaussian as well.
    return NoiseLaw.meeting(target, size=size).kind == "gaussian"


def planned_of_stream(target, *, release, n_queries):
    """Guarantee of the first release of a stream, at most.

    Parameters
    ----------
    target : ApproxDP

    release : str
        Kind of the release.

    n_queries : int or None

    Returns
    -------
    ApproxDP
    """
    if release == "query" and n_queries is not None:
        return QueryPlan.plan(target, n_queries=int(n_queries)).guarantee
    if target.delta == 0.0 or release == "query":
        return target
    return replace(target, refined=target.gaussian_target())
