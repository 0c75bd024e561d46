"""Weights of classes: declared, honoured, and paid for by the heaviest."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import normalize
from sklearn.svm import LinearSVC
from support.problems import clusters
from support.releases import transcript

from skdp.linear_model import DPLinearSVC, DPLogisticRegression
from skdp.privacy import BudgetLedger

BOTH = [DPLogisticRegression, DPLinearSVC]
MECHANISMS = ["objective", "output", "gradient"]
every = pytest.mark.parametrize("mechanism", MECHANISMS)
kinds = pytest.mark.parametrize("kind", BOTH)


def problem(n_classes, n_samples=3000):
    X, y = clusters(n_samples, n_classes, 6, seed=1, unit=5.0, n_informative=5, n_each=2)
    return normalize(X), y


@pytest.mark.parametrize("class_weight", [{0: 5.0, 1: 0.5}, {1: 20.0}, {0: 0.01}])
@pytest.mark.parametrize("mechanism", ["objective", "output"])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_without_privacy_it_is_the_weighted_model_of_sklearn(n_classes, mechanism, class_weight):
    X, y = problem(n_classes)
    options = dict(C=0.1, fit_intercept=False, class_weight=class_weight)
    model = DPLogisticRegression(1e8, mechanism=mechanism, slope_cap=None, **options).fit(X, y)
    peer = LogisticRegression(tol=1e-9, max_iter=5000, **options).fit(X, y)
    # Of the noise of the output mechanism, 20 times as much as without weights is left.
    assert_allclose(model.coef_, peer.coef_, atol=0.02 if mechanism == "output" else 1e-4)
    plain = clone(peer).set_params(class_weight=None).fit(X, y)
    assert np.abs(plain.coef_ - peer.coef_).max() > 0.1


@every
@kinds
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("delta", [0.0, 1e-5])
def test_a_heavy_class_is_predicted_more_often(kind, mechanism, n_classes, delta):
    X, y = problem(n_classes)
    counts = [
        (kind(30.0, delta, mechanism=mechanism, class_weight=w, random_state=0).fit(X, y))
        .predict(X)
        .tolist()
        .count(1)
        for w in ({1: 0.1}, None, {1: 10.0})
    ]
    assert counts[0] < 0.8 * counts[1] and counts[1] < 0.9 * counts[2]


@kinds
@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
def test_the_largest_weight_multiplies_the_sensitivity(kind, adjacency):
    X, y = problem(2, 300)
    declared = []
    for class_weight in (None, {0: 8.0}, {0: 8.0, 1: 0.1}, {0: 0.5, 1: 0.25}):
        model = kind(C=0.5, mechanism="output", class_weight=class_weight, adjacency=adjacency)
        (release,), _ = transcript(lambda model=model: model.fit(X, y))
        declared.append(release.sensitivity)
    assert_allclose(np.array(declared) / declared[0], [1.0, 8.0, 8.0, 0.5], rtol=1e-6)


@every
@pytest.mark.parametrize("delta", [0.0, 1e-5])
def test_a_record_moves_a_weighted_sum_by_no_more_than_was_declared(mechanism, delta):
    # Of the first sum of gradients, at zero weights, and of the minimiser.
    X, y = problem(3, 200)
    # Too little for second moments, whose noise would give each world coordinates of its own.
    epsilon = 0.2 if mechanism == "gradient" else 1.0
    model = DPLogisticRegression(
        epsilon, delta, mechanism=mechanism, class_weight={0: 50.0, 2: 0.1}, random_state=0
    )
    X[0], y[0] = 1e6, 0
    other = X.copy()
    other[0] = -1e6
    first, second = (
        [r for r in transcript(lambda rows=rows: clone(model).fit(rows, y))[0]]
        for rows in (X, other)
    )
    if mechanism == "objective":  # what is declared is the error of the solver
        assert first[0].sensitivity == second[0].sensitivity
        return
    wanted = next(k for k, r in enumerate(first) if r.asked.shape == (3, 7))
    moved = np.linalg.norm(first[wanted].asked - second[wanted].asked)
    # Other rows hold a minimiser in its place.
    least = 0.5 if mechanism == "gradient" else 0.0
    assert least < moved / first[wanted].sensitivity <= 1.0


def test_balanced_weights_are_refused_with_the_way_to_declare_them():
    ledger = BudgetLedger(epsilon=9.0)
    X, y = problem(2, 100)
    for kind in BOTH:
        model = kind(class_weight="balanced", ledger=ledger)
        with pytest.raises(ValueError, match=r"^class_weight must not be 'balanced'") as caught:
            model.fit(X, y)
        assert "counts the private labels" in str(caught.value)
        assert "{label: 1 / (n_classes * share)}" in str(caught.value)
    assert not ledger.history()


@pytest.mark.parametrize(
    "class_weight, told",
    [
        ("heavy", r"^class_weight must be None or a dict \{label: weight\}; got 'heavy'"),
        ([1.0, 2.0], "^class_weight must be None or a dict"),
        ({0: 0.0}, r"^class_weight\[0\] must be between 1e-6 and 1e6; got 0.0"),
        ({1: float("nan")}, r"^class_weight\[1\] must be between"),
        ({1: 1e7}, r"^class_weight\[1\] must be between"),
        ({1: True}, r"^class_weight\[1\] must be between"),
        ({2: 3.0}, r"^class_weight must name labels that are among the classes; got \{2: 3.0\}"),
        ({"1": 3.0, 0: 1.0}, "^class_weight must name labels"),
    ],
)
def test_bad_weights_are_refused_before_the_charge(class_weight, told):
    ledger = BudgetLedger(epsilon=9.0)
    X, y = problem(2, 100)
    for kind in BOTH:
        with pytest.raises(ValueError, match=told):
            kind(class_weight=class_weight, ledger=ledger).fit(X, y)
    assert not ledger.history()


def test_labels_are_matched_as_in_sklearn():
    X, codes = problem(3, 300)
    for labels in (np.array(["a", "b", "c"]), np.array([7.0, 8.0, 9.0]), np.array([-1, 0, 1])):
        y = labels[codes]
        by_label = dict(zip(labels.tolist(), (1.0, 5.0, 2.0), strict=True))
        model = DPLogisticRegression(random_state=0, class_weight=by_label).fit(X, y)
        wanted = DPLogisticRegression(random_state=0, class_weight={0: 1, 1: 5, 2: 2})
        assert_array_equal(model.coef_, wanted.fit(X, codes).coef_)
    # A weight too many does no harm where every label has one; scikit-learn takes it, too.
    extra = {0: 1.0, 1: 5.0, 2: 2.0, 3: 100.0}
    model = DPLogisticRegression(random_state=0, class_weight=extra).fit(X, codes)
    assert_array_equal(model.coef_, wanted.coef_)
    LogisticRegression(class_weight=extra).fit(X, codes)
    for kind in (np.float32, np.int64):
        numbers = {0: kind(1), 1: kind(5), 2: kind(2)}
        model = DPLogisticRegression(random_state=0, class_weight=numbers).fit(X, codes)
        assert_array_equal(model.coef_, wanted.coef_)


def test_without_privacy_the_hinge_is_weighted_as_that_of_sklearn():
    X, y = problem(2)
    options = dict(C=0.05, fit_intercept=False, class_weight={0: 4.0})
    model = DPLinearSVC(1e8, mechanism="output", **options).fit(X, y)
    peer = LinearSVC(loss="hinge", tol=1e-8, max_iter=100_000, **options).fit(X, y)
    assert_allclose(model.coef_, peer.coef_, atol=0.05)
