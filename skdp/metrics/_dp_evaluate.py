"""Scores of a fitted model on private rows, as one release."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.base import is_regressor
from sklearn.utils.validation import check_is_fitted

from skdp._inputs import encode_labels
from skdp._random import noise_source
from skdp.estimators import StatedGuarantee, charge, check_budget
from skdp.metrics._evaluation import Evaluation
from skdp.metrics._plan import EvaluationPlan
from skdp.metrics._row_losses import public_range
from skdp.privacy import ApproxDP

__all__ = ["dp_evaluate"]


@dataclass
class _Request(StatedGuarantee):
    epsilon: Any
    delta: Any
    adjacency: Any
    ledger: Any
    random_state: Any


def dp_evaluate(
    estimator: Any,
    X: Any,
    y: Any,
    epsilon: float,
    delta: float = 0.0,
    *,
    scoring: Any = "auto",
    classes: Any = None,
    y_bounds: Any = None,
    adjacency: str = "replace-one",
    ledger: Any = None,
    random_state: Any = None,
) -> Evaluation:
    """Score a fitted model on private rows, within a budget."""
    request = _Request(epsilon, delta, adjacency, ledger, random_state)
    check_budget(request)
    check_is_fitted(estimator)
    point = ApproxDP(epsilon, delta, adjacency=adjacency)
    target = point if delta == 0.0 else point.gaussian_target()
    if is_regressor(estimator):
        y_bounds = public_range(estimator, y_bounds)
        plan = EvaluationPlan.of(scoring, target, y_bounds=(y_bounds.low, y_bounds.high))
    else:
        classes = estimator.classes_ if classes is None else classes
        plan = EvaluationPlan.of(scoring, target, classes=classes)
        encode_labels(np.asarray(y), plan.classes)
    plan.names(estimator)
    guarantee = point if delta == 0.0 else replace(point, refined=target)
    charge(request, guarantee)
    found = plan(estimator, X, y, noise_source(random_state))
    return replace(found, guarantee_=request._stated(guarantee))
