"""The private linear classifiers, as their users meet them."""

import numpy as np
import pytest
from joblib import Parallel, delayed
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import normalize
from sklearn.utils.estimator_checks import parametrize_with_checks
from support.configurations import failing_checks
from support.problems import clusters

from skdp.linear_model import DPLinearSVC, DPLogisticRegression
from skdp.privacy import BudgetLedger
from skdp.rows import _sums as certificates

MECHANISMS = ["objective", "output", "gradient"]
BOTH = [DPLogisticRegression, DPLinearSVC]

ESTIMATORS = [
    kind(epsilon=epsilon, delta=delta, mechanism=mechanism)
    for kind in BOTH
    for epsilon, delta, mechanism in [
        (1.0, 0.0, "auto"),
        (1.0, 1e-5, "auto"),
        (1.0, 0.0, "output"),
    ]
]


@parametrize_with_checks(ESTIMATORS, expected_failed_checks=failing_checks)
@pytest.mark.filterwarnings("ignore:max_sample_weight is not given")
def test_sklearn_conventions(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def binary():
    return clusters(4000, 2, 8, unit=5.0, n_informative=5, n_each=2)


@pytest.fixture(scope="module")
def three_classes():
    return clusters(3000, 3, 6, seed=1, unit=5.0, n_informative=5, n_each=2)


@pytest.mark.parametrize("mechanism", ["objective", "output"])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_without_privacy_it_is_the_model_of_sklearn(binary, three_classes, mechanism, n_classes):
    X, y = binary if n_classes == 2 else three_classes
    X = normalize(X)
    model = DPLogisticRegression(
        1e8, C=0.1, slope_cap=None, fit_intercept=False, mechanism=mechanism
    ).fit(X, y)
    peer = LogisticRegression(C=0.1, fit_intercept=False, tol=1e-8, max_iter=1000).fit(X, y)
    assert_allclose(model.coef_, peer.coef_, atol=2e-4)
    assert_allclose(model.predict_proba(X), peer.predict_proba(X), atol=1e-3)
    assert_allclose(model.predict_log_proba(X), peer.predict_log_proba(X), atol=5e-3)
    assert_array_equal(model.predict(X), model.classes_[model.predict_proba(X).argmax(axis=1)])


@pytest.mark.parametrize("kind", BOTH)
@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("delta", [0.0, 1e-5])
def test_a_large_budget_learns(binary, kind, mechanism, delta):
    X, y = binary
    peer = LogisticRegression().fit(X, y).score(X, y)
    assert (
        kind(100.0, delta, mechanism=mechanism, random_state=0).fit(X, y).score(X, y) > peer - 0.03
    )


@pytest.mark.parametrize("kind", BOTH)
@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_the_automatic_constant_is_a_share_of_the_norm(binary, kind, mechanism):
    X, y = binary
    # With a constant given, rows are clipped to the norm that is given; so they are with C.
    options = dict(mechanism=mechanism, x_norm=4.0, C=10.0, random_state=0)
    automatic = kind(**options).fit(X, y)
    assert_array_equal(
        automatic.coef_, kind(intercept_scaling=0.3 * 4.0, **options).fit(X, y).coef_
    )
    other = kind(intercept_scaling=1.0, **options).fit(X, y)
    assert (automatic.coef_ != other.coef_).any()


@pytest.mark.parametrize("kind", BOTH)
@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("delta", [0.0, 1e-5])
@pytest.mark.parametrize("container", [sparse.csr_matrix, sparse.csr_array, sparse.coo_array])
def test_sparse_rows_give_the_model_of_dense_rows(binary, kind, mechanism, delta, container):
    X, y = binary
    X = np.where(np.abs(X) > 0.1, X, 0.0)
    model = kind(1.0, delta, mechanism=mechanism, random_state=0)
    dense = model.fit(X, y).coef_
    sparse_model = clone(model).fit(container(X), y)
    # The lattice may turn a difference in the last bits into one step.
    assert_allclose(sparse_model.coef_, dense, atol=1e-4 * np.abs(dense).max() + 1e-6)
    assert_allclose(sparse_model.predict(container(X)), sparse_model.predict(X))


def test_labels_may_be_strings_and_classes_public(binary):
    X, y = binary
    words = np.array(["no", "yes"])[y]
    model = DPLogisticRegression(random_state=0).fit(X, words)
    assert_array_equal(model.classes_, ["no", "yes"])
    listed = DPLogisticRegression(random_state=0, classes=["maybe", "no", "yes"]).fit(X, words)
    assert_array_equal(listed.classes_, ["maybe", "no", "yes"])
    assert listed.coef_.shape == (3, 8)
    objects = DPLogisticRegression(random_state=0, classes=[0, 1]).fit(X, y.astype(object))
    assert_array_equal(objects.classes_, [0, 1])
    only_no = DPLogisticRegression(random_state=0, classes=["no", "yes"])
    assert only_no.fit(X[y == 0], words[y == 0]).coef_.shape == (1, 8)


@pytest.mark.parametrize("kind", BOTH)
@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"epsilon": 0}, "epsilon must be a positive, finite number; got 0"),
        ({"delta": 1.0}, "delta must be .*; got 1.0"),
        ({"C": 1e14}, r"C must be between .* with x_norm=1.0 and intercept_scaling='auto'; got"),
        ({"calibration": "kst2012", "delta": 1e-5}, "calibration must be one of"),
        (
            {"calibration": "jmlr2011", "delta": 1e-5},
            "delta must be 0 for calibration='jmlr2011'; got 1e-05",
        ),
        ({"calibration": "jmlr2011", "mechanism": "output"}, "calibration must be 'tight'"),
        ({"intercept_scaling": 1e51}, "intercept_scaling must be between 1e-50 and 1e50; got"),
        ({"classes": [0]}, "classes must"),
        ({"x_norm": 1e160}, "x_norm must be between"),
        ({"classes": [0, 0, 1]}, "classes must hold distinct labels"),
        ({"classes": [0, 2]}, "classes must list every label of y"),
    ],
)
def test_bad_parameters_are_named(binary, kind, parameters, message):
    X, y = binary
    with pytest.raises(ValueError, match=message):
        kind(**parameters).fit(X, y)


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_the_bound_on_c_counts_the_constant_feature(binary, mechanism):
    X, y = binary
    for C in (2e-18, 4e2):
        DPLogisticRegression(C=C, intercept_scaling=1e3, mechanism=mechanism).fit(X[:50], y[:50])
    # Fine for rows alone, whose norm is 1.
    for kind in BOTH:
        model = kind(C=2e3, intercept_scaling=1e3, mechanism=mechanism)
        with pytest.raises(ValueError, match=r"C must be between 9\.99999e-19 and 999\.999 with"):
            model.fit(X, y)
        model.set_params(fit_intercept=False).fit(X[:50], y[:50])


def test_losses_too_sharp_for_the_solver_are_refused_before_the_charge(binary):
    X, y = binary
    ledger = BudgetLedger(epsilon=9.0)
    for width in (1e-4, 1e7):
        with pytest.raises(ValueError, match=r"huber_width must be between 0\.001 and 1e6; got"):
            DPLinearSVC(huber_width=width, ledger=ledger).fit(X, y)
    with pytest.raises(ValueError, match="slope_cap must be at least 1e-6; got 1e-07"):
        DPLogisticRegression(slope_cap=1e-7, ledger=ledger).fit(X, y)
    sharp = DPLinearSVC(
        1.0, C=3e6, huber_width=0.01, fit_intercept=False, mechanism="output", ledger=ledger
    )
    with pytest.raises(ValueError, match=r"C must be at most 2e\+06 for the solver"):
        sharp.fit(X, y)
    with pytest.raises(ValueError, match=r"C must be at most 2e\+06 for the solver"):
        sharp.set_params(mechanism="objective", epsilon=100.0).fit(X, y)
    sharp.set_params(mechanism="output")
    assert not ledger.history()
    # The rule for C keeps away from there.
    for epsilon in (1.0, 1e12):
        sharp.set_params(epsilon=epsilon, C="auto", ledger=None).fit(X[:50], y[:50])


@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
@pytest.mark.parametrize("delta", [0.0, 1e-5])
@pytest.mark.parametrize("mechanism", ["objective", "output", "gradient"])
def test_too_many_rows_are_refused_before_the_charge(mechanism, delta, adjacency, monkeypatch):
    monkeypatch.setattr(certificates, "MOST_ROWS", 20)
    ledger = BudgetLedger(epsilon=9.0, delta=1e-3)
    model = DPLogisticRegression(
        1.0, delta, mechanism=mechanism, adjacency=adjacency, ledger=ledger
    )
    X, y = np.eye(21, 2), np.arange(21) % 2
    model.fit(X[:20], y[:20])
    with pytest.raises(ValueError, match="X must have at most 20 rows") as caught:
        model.fit(X, y)
    # Under add-remove the number of rows is private.
    assert ("21" in str(caught.value)) == (adjacency == "replace-one")
    assert len(ledger.history()) == 1


@pytest.mark.parametrize(
    "mechanism, delta",
    [
        ("objective", 0.0),
        ("objective", 1e-5),
        ("output", 0.0),
        ("output", 1e-5),
        ("gradient", 1e-5),
    ],
)
def test_noise_is_independent_of_all_other_noise(mechanism, delta):
    # With 800 features and next to no signal the coefficients are noise. Independent ones
    # correlate by 0.25, seven standard deviations, with a chance of 2e-12 a pair.
    rng = np.random.default_rng(16)
    X, y = 1e-3 * rng.normal(size=(9, 800)), np.arange(9) % 3
    model = DPLogisticRegression(
        0.1, delta, mechanism=mechanism, C=0.1, fit_intercept=False, random_state=None
    )
    fits = [model.fit(X, y).coef_ for _ in range(2)]  # repeated
    fits += [clone(model).fit(X, y).coef_ for _ in range(2)]
    for backend in ("loky", "threading"):
        fitted = Parallel(n_jobs=2, backend=backend)(
            delayed(clone(model).fit)(X, y) for _ in range(3)
        )
        fits += [each.coef_ for each in fitted]
    rows = np.vstack(fits)  # every class of every fit
    assert rows.shape == (30, 800)
    found, fit = np.corrcoef(rows), np.arange(30) // 3
    if mechanism == "gradient":  # three classes without what they have in common
        found += 0.5 * ((fit[:, np.newaxis] == fit) - np.eye(30))
    assert np.abs(found - np.eye(30)).max() < 0.25


def test_digits_are_learned_at_epsilon_3():
    X, y = load_digits(return_X_y=True)
    X, X_test, y, y_test = train_test_split(normalize(X), y, test_size=0.3, random_state=0)
    scores = [
        DPLogisticRegression(3.0, 1e-5, fit_intercept=False, random_state=seed)
        .fit(X, y)
        .score(X_test, y_test)
        for seed in range(10)
    ]
    assert np.mean(scores) > 0.87  # one-vs-rest with a divided budget gets 0.16
