"""Pipelines over rows that are read block by block."""

from typing import Any

from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import FeatureUnion, Pipeline

from skdp._validation import short_repr
from skdp.learner import StatedGuarantee
from skdp.pipeline._walk import passes
from skdp.pipeline._wrappers import Schema, is_wrapper
from skdp.preprocessing._base import PrivateTransformer
from skdp.rows._source_frames import SourceFrame


def check_steps_of_source(steps: Any, public: Any) -> None:
    """Refuse, before a charge, steps that would see a part of the rows of a source alone."""
    if public:
        raise ValueError(
            "public must be () for rows of a source, as such steps would get only the first "
            f"block: fit and freeze them first; got {short_repr(public)}."
        )
    for name, step in steps:
        if passes(step):
            continue
        if isinstance(step, FeatureUnion) or is_wrapper(step):
            raise ValueError(
                f"Step {name!r} must not be a {type(step).__name__} for rows of a source: it "
                "needs rows in memory."
            )
        if getattr(step, "sparse_output", False):
            raise ValueError(
                f"sparse_output of step {name!r} must be False for rows of a source, which are "
                "dense."
            )
        if isinstance(step, ColumnTransformer):
            parts = [(part, one) for part, one, _ in step.transformers]
            check_steps_of_source([*parts, ("remainder", step.remainder)], ())
        elif isinstance(step, Pipeline):
            check_steps_of_source(step.steps, ())
        elif isinstance(step, StatedGuarantee) and not isinstance(step, PrivateTransformer):
            raise ValueError(
                f"Step {name!r}, a {type(step).__name__}, must be the last one for rows of a "
                "source."
            )


def fit_step(step: Any, X: SourceFrame, groups: Any) -> SourceFrame:
    """Fit a step that prepares to rows of a source, and return what it makes of them.

    Steps that learn nothing are shown the first block alone.

    Parameters
    ----------
    step : estimator or "passthrough"

    X : SourceFrame

    groups : ndarray or None
        Owners of the rows, for steps that learn.

    Returns
    -------
    SourceFrame
    """
    if step is None or isinstance(step, str):
        return X
    if isinstance(step, Pipeline):
        for _, part in step.steps:
            X = fit_step(part, X, groups)
        return X
    if isinstance(step, ColumnTransformer):
        _fit_columns(step, X, groups)
    elif isinstance(step, PrivateTransformer):
        step.fit(X, groups=groups)
    else:
        step.fit(X.first, None)
    return X.mapped(step.transform)


def _fit_columns(step: Any, X: SourceFrame, groups: Any) -> None:
    """Fit the parts of a ColumnTransformer, and then, to the first block, the whole of them."""
    given, remainder, fitted = step.transformers, step.remainder, {}
    schema, taken = Schema.of(X), set()
    parts = []
    for name, part, columns in given:
        places = schema.positions(columns, name)
        taken |= set(places)
        parts.append((name, part, places))
    parts.append(("remainder", remainder, [i for i in range(X.shape[1]) if i not in taken]))
    for name, part, places in parts:
        if isinstance(part, str) or not places:
            continue
        part = clone(part)
        fit_step(part, X.of_places(places), groups)
        fitted[name] = part

    def frozen(name: str, part: Any) -> Any:
        return FrozenEstimator(fitted[name]) if name in fitted else part

    step.transformers = [(name, frozen(name, part), columns) for name, part, columns in given]
    step.remainder = frozen("remainder", remainder)
    try:
        step.fit(X.first)
    finally:
        step.transformers, step.remainder = given, remainder
    step.transformers_ = [
        (name, fitted.get(name, part), columns) for name, part, columns in step.transformers_
    ]
