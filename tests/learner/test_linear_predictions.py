"""Rows are clipped when they are predicted as they were when they were learned."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone
from sklearn.preprocessing import StandardScaler
from support.networks import network

from skdp.kernel import DPKernelRidge, DPOnlineKernelRegressor
from skdp.linear_model import DPLinearSVC, DPLogisticRegression, MIPrivateSGDRegressor
from skdp.mechanisms import clip_rows, row_norms

METHODS = ("decision_function", "predict_proba", "predict_log_proba", "predict")
NETWORK = dict(n_nodes=4, batch_size=20)
MODELS = {
    "pure": DPLogisticRegression(5.0),
    "output": DPLogisticRegression(5.0, mechanism="output", fit_intercept=False),
    "gradient": DPLogisticRegression(5.0, 1e-5),
    "units": DPLogisticRegression(5.0, 1e-5, x_norm=2.5, intercept_scaling=7.0),
    "hinge": DPLinearSVC(5.0),
    "network": network(5.0, 1e-5, **NETWORK),
    "node": network(5.0, 1e-5, output_node=2, **NETWORK),
    "sparse network": network(5.0, sparsity=0.1, x_norm=0.5, **NETWORK),
}
every = pytest.mark.parametrize("name", MODELS)
classes = pytest.mark.parametrize("n_classes", [2, 3])


def standardised(n_classes, n=800):
    """What ``StandardScaler`` makes of 25 columns: rows of norm 5, where ``x_norm`` is 1."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, n_classes, n)
    X = rng.normal(size=(n, 25)) * rng.uniform(0.1, 50.0, 25) + 3.0 * y[:, np.newaxis]
    return StandardScaler().fit_transform(X), y


def fitted(name, X, y, **changes):
    return clone(MODELS[name]).set_params(random_state=0, **changes).fit(X, y)


def answers(model, X):
    return {method: getattr(model, method)(X) for method in METHODS if hasattr(model, method)}


def assert_same(found, wanted, rtol=1e-11):
    assert found.keys() == wanted.keys()
    for method, values in found.items():
        if method == "predict":
            assert_array_equal(values, wanted[method])
        else:
            assert_allclose(values, wanted[method], rtol=rtol, atol=1e-13)


def by_hand(model, X, norm):
    """Scores of rows that are clipped here."""
    X = np.asarray(X, dtype=float)
    X = X * np.minimum(1.0, norm / np.linalg.norm(X, axis=1, keepdims=True))
    scores = X @ model.coef_.T + model.intercept_
    return scores[:, 0] if scores.shape[1] == 1 else scores


@every
@classes
def test_standardised_rows_are_clipped_as_in_the_fit(name, n_classes):
    X, y = standardised(n_classes)
    norm = MODELS[name].x_norm
    assert np.median(row_norms(X)) > 4.5 and row_norms(X).min() > norm
    model = fitted(name, X, y)
    assert model.x_norm_ == norm and type(model.x_norm_) is float
    found = answers(model, X)
    assert len(found) >= 2
    assert_allclose(found["decision_function"], by_hand(model, X, norm), rtol=1e-11, atol=1e-13)
    assert_same(found, answers(model, clip_rows(X, norm)))
    # Without that they are several times as large.
    raw = X @ model.coef_.T + model.intercept_
    assert np.abs(raw - by_hand(model, X, norm).reshape(raw.shape)).max() > 0.01
    # Rows that are clipped beforehand make the same model.
    assert_same(answers(fitted(name, clip_rows(X, norm), y), X), found, rtol=1e-6)


@every
@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
def test_hostile_rows_are_predicted_by_their_direction(name, kind):
    X, y = standardised(2)
    model = fitted(name, X, y)
    rows = np.eye(8, 25)
    rows *= np.array([0.0, 5e-324, 1e-200, 1e160, 1.7e308, 2.0, 1e9, 1.0])[:, np.newaxis]
    rows[4, 9] = -1.7e308
    found = model.decision_function(kind(rows))
    inside = np.zeros_like(rows)
    inside[3, 3] = inside[6, 6] = model.x_norm_
    inside[4, [4, 9]] = np.array([1.0, -1.0]) * model.x_norm_ / np.sqrt(2.0)
    inside[5, 5], inside[7, 7] = min(2.0, model.x_norm_), min(1.0, model.x_norm_)
    scores = (inside @ model.coef_.T + model.intercept_)[:, 0]
    assert_allclose(found, scores, rtol=1e-12, atol=1e-200)
    assert np.isfinite(model.predict(kind(rows))).all()


@pytest.mark.parametrize(
    "model",
    [
        DPKernelRidge(5.0, 1e-5, y_bounds=(-1.0, 1.0)),
        DPKernelRidge(1e6, release="query", n_queries=20_000, alpha=300.0, y_bounds=(-1.0, 1.0)),
        DPOnlineKernelRegressor(5.0, 1e-5, y_bounds=(-1.0, 1.0)),
        DPOnlineKernelRegressor(1e6, release="query", n_queries=20_000, y_bounds=(-1.0, 1.0)),
    ],
    ids=["ridge", "ridge query", "online", "online query"],
)
def test_linear_kernels_clip_by_the_norm_of_the_fit_too(model):
    X, y = standardised(2)
    model = clone(model).set_params(kernel="linear", x_norm=1.5, random_state=0)
    model.fit(X, y - 0.5)
    inside = clip_rows(X, 1.5)
    model.set_params(x_norm=100.0)
    # Queries have noise, which hardly counts at this budget.
    query = model.release == "query"
    far, near = model.predict(X), model.predict(inside)
    assert_allclose(far, near, atol=0.01 if query else 1e-6)
    assert np.abs(model.predict(X / 10.0) - near).max() > (0.1 if query else 0.01)
    if hasattr(model, "released") and not query:
        assert_array_equal(model.released().predict(X), far)


def test_the_regressor_of_users_does_not_clip_what_it_predicts():
    X, y = standardised(2)
    model = MIPrivateSGDRegressor(y_bounds=(-500.0, 500.0), random_state=0).fit(X, y)
    assert row_norms(X).min() > 2.0
    scores = X @ model.coef_ + model.intercept_
    assert_allclose(model.predict(X), np.clip(scores, -500.0, 500.0), rtol=1e-12)
