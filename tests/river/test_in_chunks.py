"""Rows one by one, as river gives them."""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose
from river import evaluate, metrics
from sklearn.base import clone

from skdp import config_context
from skdp.kernel import DPOnlineClassifier, DPOnlineKernelRegressor
from skdp.river import RiverClassifier, RiverRegressor

COLUMNS = ["age", "height"]


def rows(n=3000, seed=0):
    X = np.random.default_rng(seed).uniform(-0.7, 0.7, (n, 2))
    return X, X[:, 0] - X[:, 1]


def dicts(X):
    return (dict(zip(reversed(COLUMNS), row[::-1], strict=True)) for row in X.tolist())


def regressor(**options):
    return DPOnlineKernelRegressor(
        delta=1e-6, kernel="linear", y_bounds=(-1.0, 1.0), random_state=0, **options
    )


def test_chunks_are_calls_of_the_stream():
    X, y = rows(1300)
    model = RiverRegressor(regressor(), COLUMNS)
    assert model.predict_one({"age": 0.0, "height": 0.0}) == 0.0
    with config_context(known_seeds=True):
        for x, target in zip(dicts(X), y.tolist(), strict=True):
            model.learn_one(x, target)
        same = clone(model.model)
        for start in (0, 500):
            same.partial_fit(X[start : start + 500], y[start : start + 500])
    assert_allclose([model.predict_one(x) for x in dicts(X[:5])], same.predict(X[:5]), rtol=1e-12)
    assert model.fitted.guarantee_ == same.guarantee_ and not hasattr(model.model, "guarantee_")


def test_rivers_own_evaluation_and_clones():
    X, y = rows()
    labels = np.where(y > 0.0, "up", "down").tolist()
    inner = DPOnlineClassifier(epsilon=2.0, delta=1e-6, classes=["down", "up"])
    model = RiverClassifier(inner, COLUMNS, size=300)
    assert model.predict_one({"age": 0.0, "height": 0.0}) is None
    score = evaluate.progressive_val_score(
        zip(dicts(X), labels, strict=True), model, metrics.Accuracy()
    )
    assert score.get() > 0.75
    assert set(model.predict_proba_one({"age": 0.5, "height": 0.0})) == {"down", "up"}
    fresh = model.clone()
    assert not hasattr(fresh.fitted, "guarantee_") and fresh.size == 300


def test_waiting_rows_are_in_no_pickle():
    model = RiverClassifier(DPOnlineClassifier(classes=["no", "yes"]), COLUMNS)
    model.learn_one({"age": 0.123456789, "height": 0.5}, "yes")
    for text in (pickle.dumps(model), pickle.dumps(model.clone())):
        assert np.float64(0.123456789).tobytes()[::-1] not in text
    assert "0.1234" not in repr(model)


def test_chunks_end_by_a_count_that_is_public():
    with pytest.raises(ValueError, match="adjacency of the model must be 'replace-one'"):
        RiverRegressor(regressor(adjacency="add-remove"), COLUMNS)
    with pytest.raises(ValueError, match="size"):
        RiverRegressor(regressor(), COLUMNS, size=0)
    model = RiverRegressor(regressor(), COLUMNS)
    for x in ({"age": 1.0}, {"age": 1.0, "height": np.inf}):
        with pytest.raises(ValueError, match="x must have a finite number for each"):
            model.learn_one(x, 0.0)
