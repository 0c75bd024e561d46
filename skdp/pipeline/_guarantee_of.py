"""Guarantees of scikit-learn pipelines and searches."""

from collections import Counter
from dataclasses import replace

from sklearn import model_selection
from sklearn.base import clone, is_classifier
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.utils.metadata_routing import get_routing_for_object
from sklearn.utils.validation import check_is_fitted

from skdp._validation import is_whole, short_repr
from skdp.learner import StatedGuarantee
from skdp.pipeline._division import Sequence, check_one_unit
from skdp.pipeline._walk import CONTAINERS, UNKNOWN, Walk, declared, is_private
from skdp.pipeline._wrappers import Schema, instead_of, is_stateless, is_wrapper
from skdp.privacy import ApproxDP, compose
from skdp.privacy._budget import covers

# Halving searches are compared by name: to import them is an experiment that must be enabled.
_SEARCHES = ("GridSearchCV", "RandomizedSearchCV", "HalvingGridSearchCV", "HalvingRandomSearchCV")
# Which rows go where depends neither on labels nor on groups, but on how many rows there are.
_SPLITS = (
    *(model_selection.KFold, model_selection.RepeatedKFold, model_selection.ShuffleSplit),
    *(model_selection.TimeSeriesSplit, model_selection.LeaveOneOut, model_selection.LeavePOut),
    model_selection.PredefinedSplit,
)


def guarantee_of(fitted, public=()):
    """Return the guarantee of everything that a fitted estimator learned from its rows.

    Parameters
    ----------
    fitted : estimator
        An estimator of this package, or a `~sklearn.pipeline.Pipeline`,
        `~sklearn.compose.ColumnTransformer`, `~sklearn.pipeline.FeatureUnion`,
        `~sklearn.frozen.FrozenEstimator`, `~sklearn.model_selection.FixedThresholdClassifier`,
        `~sklearn.compose.TransformedTargetRegressor`, `~sklearn.feature_selection.SelectFromModel`
        or scikit-learn search that contains such estimators.

    public : tuple of str, default=()
        Steps, named as in ``set_params``, that the caller declares to learn nothing, or only from
        public data. For a search, "scores" covers its exact scores and the choice based on them,
        and "splits" covers folds that depend on labels, groups, or a private number of rows. Each
        is listed as a caveat of the guarantee.

    Returns
    -------
    Guarantee
        Composition of the guarantees of the steps in order. For a search it composes all fits:
        each candidate on each split, as planned from its parameters, and the refit on all rows.

    Raises
    ------
    ValueError
        If a part has no guarantee; the message names it.

    Notes
    -----
    **Privacy.** The guarantee holds for the fitted attributes if all steps read the same rows
    once. It does not cover other uses of the rows: earlier fits, scores that were viewed, or other
    estimators. A ledger counts its own charges.

    Steps fitted with ``groups`` have a guarantee for users, which does not compose with guarantees
    for records. A search whose fits had groups raises an error, because its folds depend on the
    number of rows of each user.

    See Also
    --------
    DPPipeline : Pipeline that divides one budget among its steps.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import Normalizer
    >>> from skdp.linear_model import DPLogisticRegression
    >>> from skdp.pipeline import guarantee_of
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, size=(1000, 3))
    >>> model = make_pipeline(Normalizer(), DPLogisticRegression(epsilon=0.5))
    >>> print(guarantee_of(model.fit(X, X[:, 0] > 0)))
    0.5-differential privacy (pure) when replacing one record, by ...
    """
    if isinstance(public, str):
        raise ValueError(f"public must be a tuple of steps; got {short_repr(public)}.")
    check_is_fitted(fitted)
    found = guarantee_or_none(fitted, public=tuple(public))
    return ApproxDP(0.0, mechanism="nothing was learned") if found is None else found


def guarantee_or_none(fitted, *, public=(), path=""):
    """Guarantee of a fitted estimator, None if it learned nothing from the rows."""
    if type(fitted) is FrozenEstimator:
        return guarantee_or_none(fitted.estimator, public=public, path=path)
    if _is_search(fitted):
        return _of_search(fitted, public)
    if isinstance(fitted, StatedGuarantee):
        return fitted.guarantee_
    if type(fitted) in CONTAINERS or is_wrapper(fitted):
        return _of_steps(fitted, public, lambda leaf: leaf.estimator.guarantee_)
    if is_stateless(fitted):
        return None
    name = type(fitted).__name__
    what = f"Step {path!r}, a {name}," if path else name
    raise ValueError(f"{what} {UNKNOWN}{instead_of(fitted)}")


def frozen_guarantee(estimator, path):
    """Guarantee of an estimator that was fitted before; None if it learned nothing."""
    try:
        check_is_fitted(estimator)
    except NotFittedError:
        raise ValueError(f"Step {path!r} is frozen and must already be fitted.") from None
    return guarantee_or_none(estimator, path=path)


def _of_steps(container, public, guarantee_of_leaf):
    node, caveats = _walked(container, public)

    def of(leaf):
        return None if leaf.guarantee is not None else guarantee_of_leaf(leaf)

    check_one_unit([(leaf.path, leaf.guarantee or of(leaf)) for leaf in node.leaves])
    # What is frozen was released before, wherever it stands: others may have been chosen by it.
    total = node.with_frozen(node.composed(of))
    return total if total is None else total.with_caveats(*caveats)


def _walked(container, public):
    """Node of the steps of a container, and caveats."""
    walk = Walk(public, frozen_guarantee)
    names = getattr(container, "feature_names_in_", None)
    names = None if names is None else tuple(names)
    columns = Schema(getattr(container, "n_features_in_", None), names)
    # Parts are named without what stands alone, as the steps of a pipeline are.
    node, _ = (walk.wrapper if is_wrapper(container) else walk.container)(container, columns)
    walk.finish()
    return node or Sequence(), walk.caveats


def _is_search(fitted):
    """Whether this is a search of scikit-learn's own; what a subclass of one does is unknown."""
    kind = type(fitted)
    return kind.__name__ in _SEARCHES and kind.__module__.startswith("sklearn.")


def _of_search(search, public):
    """All fits of a search: of every candidate on every split, and the last."""
    public, own = tuple(p for p in public if p not in ("scores", "splits")), set(public)
    if "scores" not in own:
        raise ValueError(
            "The scores of the search (cv_results_, best_score_) and the choice by them "
            "(best_params_, best_estimator_) are exact functions of private rows without any "
            "guarantee. Pass public=('scores',) to take responsibility for them."
        )
    best = getattr(search, "best_estimator_", None)
    _check_for_records(search.estimator, best, public)
    fits = [(params, search.n_splits_) for params in search.cv_results_["params"]]
    if best is not None:
        fits.append((search.best_params_, 1))
    schema = getattr(best, "_schema", None)
    if schema is None:
        schema = Schema(getattr(search, "n_features_in_", None))
    counts: Counter = Counter()
    frozen: dict = {}
    caveats = [declared("scores")]
    for params, count in fits:
        candidate = clone(search.estimator).set_params(**clone(params, safe=False))
        planned, before, of_steps = _planned(candidate, schema, public)
        caveats += of_steps
        frozen |= before
        if planned is not None:
            counts[planned] += count
    counts.update(frozen.values())
    if not counts:
        return None
    if best is not None:
        last = [*([] if planned is None else [planned]), *before.values()]
        total, spent = compose(last), guarantee_or_none(best, public=public)
        caveats += () if spent is None else spent.caveats
        if spent is not None and not covers(total, spent):
            raise ValueError(
                "The parameters of the search have changed since it was fitted: the plan by its "
                f"parameters costs less than its best estimator spent. Planned: {total} Spent: "
                f"{spent}"
            )
    if not _splits_are_public(search, next(iter(counts)).adjacency):
        if "splits" not in own:
            raise ValueError(
                "The splits of the search depend on labels, groups or the number of rows, so one "
                "record can move others between folds. Pass cv=KFold(...) to the search if "
                "records are replaced, cv=PredefinedSplit(...) if they are added or removed, and "
                "a number for min_resources of a halving search; or pass public=('splits',) to "
                "take responsibility."
            )
        caveats.append(declared("splits"))
    return compose(counts).with_caveats(*caveats)


def _check_for_records(estimator, best, public):
    """Refuse a search whose fits had groups, or may have had: they ask for them as metadata."""
    parts = [estimator, *estimator.get_params(deep=True).values()]
    routed = [
        get_routing_for_object(part).fit.requests.get("groups")
        for part in parts
        if isinstance(part, StatedGuarantee)
    ]
    # Metadata of another name may take its place.
    asks = any(asked is True or isinstance(asked, str) for asked in routed)
    last = None if best is None else guarantee_or_none(best, public=public)
    if asks or (last is not None and last.unit != "record"):
        raise ValueError(
            "The fits of the search use groups and protect users. The folds depend on the number "
            "of rows of each user, so one user can move the rows of all others, which no "
            "guarantee covers. Search without groups, on rows bounded per user with "
            "skdp.preprocessing.bound_contributions."
        )


def _planned(estimator, schema, public):
    """Guarantee that a fit with the parameters of an estimator is charged.

    Also those of frozen estimators within, which were fitted once, and caveats.
    """
    if hasattr(estimator, "_planned_fit"):  # a DPPipeline
        plan = estimator._planned_fit(schema)
        total = plan.division.total
        if total is not None and schema.n_columns is None:
            # How it is divided may depend on the columns, and so does what is behind the point.
            total = replace(total, refined=None)
        return total, plan.node.frozen_guarantees(), plan.caveats
    if is_private(estimator):
        return estimator._planned_guarantee(schema.n_columns), {}, []
    if type(estimator) in CONTAINERS or is_wrapper(estimator):

        def of(leaf):
            learns = leaf.guarantee is None
            return leaf.estimator._planned_guarantee(leaf.n_features) if learns else None

        node, caveats = _walked(estimator, public)
        return node.composed(of), node.frozen_guarantees(), caveats
    return guarantee_or_none(estimator, public=public), {}, []


def _splits_are_public(search, adjacency):
    """Whether one record moves no others from fold to fold, nor the number of candidates."""
    if not is_whole(getattr(search, "min_resources", 0)):
        return False
    if adjacency == "add-remove":
        return type(search.cv) is model_selection.PredefinedSplit
    if type(search.cv) in _SPLITS:
        return True
    is_count = search.cv is None or isinstance(search.cv, int)
    return is_count and not is_classifier(search.estimator)
