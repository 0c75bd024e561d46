"""Losses of rows: scikit-learn's scores from their means, and nothing that a value could break."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import get_scorer

from skdp.kernel import DPKernelRidge
from skdp.linear_model import DPLinearSVC, DPLogisticRegression
from skdp.metrics import default_scoring, row_loss
from skdp.preprocessing import RowNormClipper


def classified(load):
    X, y = load(return_X_y=True)
    X = X / np.maximum(X.max(axis=0), 1e-9)
    return LogisticRegression(C=0.1).fit(X, y), X, y


@pytest.mark.parametrize("load", [load_breast_cancer, load_digits])
@pytest.mark.parametrize("scoring", ["accuracy", "neg_log_loss", "neg_brier_score"])
def test_the_mean_loss_of_a_classifier_is_its_score(load, scoring):
    model, X, y = classified(load)
    loss = row_loss(scoring, model)
    found = loss.score(loss(model, X, y).mean())
    assert_allclose(found, get_scorer(scoring)(model, X, y), rtol=1e-10)


@pytest.mark.parametrize(
    "scoring",
    ["neg_mean_squared_error", "neg_root_mean_squared_error", "neg_mean_absolute_error"],
)
def test_the_mean_loss_of_a_regressor_is_its_score(scoring):
    X, y = load_diabetes(return_X_y=True)
    model = Ridge().fit(X, y)
    loss = row_loss(scoring, model, y_bounds=(-100.0, 600.0))
    found = loss.score(loss(model, X, y).mean())
    assert_allclose(found, get_scorer(scoring)(model, X, y), rtol=1e-10)


class Broken(DummyClassifier):
    """Says of its rows what they hold."""

    def predict_proba(self, X):
        return np.column_stack([1.0 - X[:, 0], X[:, 0]])

    def predict(self, X):
        return np.where(X[:, 0] > 0.5, 1.0, X[:, 0])


@pytest.mark.parametrize("scoring", ["accuracy", "neg_log_loss", "neg_brier_score"])
def test_whatever_a_row_holds_its_loss_is_between_0_and_1(scoring):
    X = np.array([[np.nan], [np.inf], [-np.inf], [7.0], [-1e300], [0.0], [1.0]])
    model = Broken().fit([[0.0], [1.0]], [0, 1])
    for y in (np.ones(7), np.full(7, np.nan), np.array(["?"] * 7), np.array([None] * 7)):
        losses = row_loss(scoring, model)(model, X, y)
        assert np.all((losses >= 0.0) & (losses <= 1.0))
    assert_array_equal(losses, 1.0)  # labels that are no classes
    assert row_loss(scoring, model)(model, X, np.ones(7))[-1] == 0.0


@pytest.mark.parametrize(
    ("scoring", "model", "message"),
    [
        ("roc_auc", DPLogisticRegression(), "Choose by 'accuracy' or 'neg_log_loss'"),
        ("f1", DPLogisticRegression(), "Choose by 'accuracy'"),
        ("max_error", Ridge(), "scoring must have a bounded range, for a regressor one of"),
        ("r2", DPLogisticRegression(), "for a classifier one of 'accuracy'"),
        ("neg_log_loss", DPLinearSVC(), "without predict_proba"),
        ("neg_mean_squared_error", Ridge(), "y_bounds must be"),
        (len, DPLogisticRegression(), "scoring must have a bounded range"),
        (np.zeros(2), DPLogisticRegression(), "scoring must have a bounded range"),
    ],
)
def test_scorings_that_rows_do_not_have_are_refused(scoring, model, message):
    with pytest.raises(ValueError, match=message):
        row_loss(scoring, model)


def test_the_default_is_that_of_the_score_method():
    assert default_scoring(DPLogisticRegression()) == "accuracy"
    assert default_scoring(DPKernelRidge()) == "r2"
    with pytest.raises(ValueError, match="a classifier or a regressor"):
        default_scoring(RowNormClipper())
