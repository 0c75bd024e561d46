"""The private linear classifiers, as their users meet them."""

import pickle
import subprocess
import sys
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from joblib import Parallel, delayed
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import normalize
from sklearn.svm import LinearSVC
from sklearn.utils.estimator_checks import parametrize_with_checks
from support.problems import clusters

from skdp.exceptions import BudgetExceededError, PrivacyWarning, SolverError
from skdp.linear_model import DPLinearSVC, DPLogisticRegression
from skdp.preprocessing import RowNormClipper
from skdp.privacy import BudgetLedger, GaussianDP
from skdp.releases import ObjectivePerturbation, _objective
from skdp.solvers import certificates

MECHANISMS = ["objective", "output", "gradient"]
BOTH = [DPLogisticRegression, DPLinearSVC]

ESTIMATORS = [
    kind(epsilon=epsilon, delta=delta, mechanism=mechanism)
    for kind in BOTH
    for epsilon, delta, mechanism in [
        (1.0, 0.0, "auto"),
        (1.0, 1e-5, "auto"),
        (1e6, 0.0, "auto"),
        (1e3, 1e-5, "auto"),
        (1.0, 0.0, "output"),
        (1.0, 1e-5, "objective"),
        (1.0, 0.0, "gradient"),
    ]
]


@parametrize_with_checks(ESTIMATORS)
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


@pytest.mark.parametrize("kind", [DPLogisticRegression, DPLinearSVC])
@pytest.mark.parametrize("mechanism", ["objective", "output", "gradient"])
def test_rules_of_huge_budgets_round_no_weights_away(binary, kind, mechanism):
    X, y = binary
    usual, huge = (kind(e, mechanism=mechanism, random_state=0).fit(X, y) for e in (1e3, 1e8))
    assert huge.score(X, y) > usual.score(X, y) - 0.01


def test_without_privacy_the_output_mechanism_has_the_hinge_of_sklearn(binary):
    X, y = binary
    X = normalize(X)
    model = DPLinearSVC(1e8, C=0.1, fit_intercept=False, mechanism="output").fit(X, y)
    peer = LinearSVC(C=0.1, loss="hinge", fit_intercept=False, tol=1e-8, max_iter=100_000)
    assert_allclose(model.coef_, peer.fit(X, y).coef_, atol=0.02)


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
@pytest.mark.parametrize("delta", [0.0, 1e-5])
@pytest.mark.parametrize("mechanism", ["auto", *MECHANISMS])
def test_plans_see_the_number_of_rows_only_where_it_is_public(
    three_classes, monkeypatch, kind, delta, mechanism
):
    X, y = three_classes
    seen = []
    plan = kind._plan

    def watched(self, *numbers):
        seen.append((len(numbers[0]), *numbers[1:]))
        return plan(self, *numbers)

    monkeypatch.setattr(kind, "_plan", watched)
    for adjacency in ("replace-one", "add-remove"):
        kind(1.0, delta, mechanism=mechanism, adjacency=adjacency).fit(X[:90], y[:90])
    assert seen == [(3, 6, 90, "record"), (3, 6, None, "record")]


@pytest.mark.parametrize("kind", BOTH)
def test_rules_have_no_units(kind):
    for n_classes, delta in ((2, 0.0), (2, 1e-5), (4, 0.0)):
        for mechanism in ("objective", "output"):
            plans = [
                kind(1.0, delta, mechanism=mechanism, x_norm=unit)._plan(range(n_classes), 8, 700)
                for unit in (1.0, 1024.0, 1.75)
            ]
            assert plans[0] == plans[1]
            plans = [getattr(plan, "release", plan) for plan in plans]  # behind the norm
            plans = [getattr(plan, "plans", (plan,))[0] for plan in plans]
            # Norms are in units of a power of two: these are the same penalties.
            strengths = [plan.penalty / plan.row_norm**2 for plan in plans]
            assert_allclose(strengths, strengths[0], rtol=1e-12)
            assert plans[0].row_norm != plans[2].row_norm


@pytest.mark.parametrize("kind", BOTH)
def test_several_classes_are_one_release(three_classes, kind):
    X, y = three_classes
    model = kind(20.0, 1e-5, random_state=0).fit(X, y)
    assert model.coef_.shape == (3, 6)
    assert model.intercept_.shape == (3,)
    assert model.decision_function(X).shape == (3000, 3)
    assert model.guarantee_.epsilon == 20.0
    assert model.score(X, y) > LogisticRegression().fit(X, y).score(X, y) - 0.06


def test_the_gradient_mechanism_honours_the_penalty(binary):
    X, y = binary
    X = normalize(X)
    norms = [
        np.linalg.norm(DPLogisticRegression(100.0, 1e-5, C=C, random_state=0).fit(X, y).coef_)
        for C in (1e-5, 1e-3, 1e-1, "auto")
    ]
    assert norms[0] < 0.05 * norms[2]
    assert norms == sorted(norms)
    peer = LogisticRegression(C=1e-3, tol=1e-8).fit(X, y)
    assert_allclose(norms[1], np.linalg.norm(peer.coef_), rtol=0.2)


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


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_wide_sparse_rows_are_never_made_dense(mechanism):
    rng = np.random.default_rng(0)
    n, d = 2000, 200_000  # 3.2 GB if dense
    X = sparse.random_array((n, d), density=1e-4, random_state=rng, format="csr")
    y = np.asarray(X[:, :1000].sum(axis=1) > X[:, 1000:2000].sum(axis=1)).astype(int)
    model = DPLogisticRegression(1.0, 1e-5, mechanism=mechanism).fit(X, y)
    assert model.coef_.shape == (1, d)


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_frames_bring_feature_names(binary, frame):
    X, y = binary
    names = [f"x{i}" for i in range(X.shape[1])]
    table = frame(dict(zip(names, X.T, strict=True)))
    model = DPLogisticRegression(random_state=0).fit(table, y)
    assert_array_equal(model.feature_names_in_, names)
    assert_allclose(model.coef_, DPLogisticRegression(random_state=0).fit(X, y).coef_)
    with pytest.raises(ValueError, match="feature names"):
        model.predict(
            table.rename(columns={"x0": "z"})
            if frame is pd.DataFrame
            else table.rename({"x0": "z"})
        )


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


def test_intercept_is_penalised_and_scaled(binary):
    X, y = binary
    model = DPLogisticRegression(1e8, C=0.01, slope_cap=None, intercept_scaling=2.0).fit(X, y)
    wide = np.column_stack(
        [X / np.maximum(1, np.linalg.norm(X, axis=1))[:, None], np.full(len(X), 2.0)]
    )
    peer = LogisticRegression(C=0.01, fit_intercept=False, tol=1e-9).fit(wide, y)
    assert_allclose(model.coef_, peer.coef_[:, :-1], atol=1e-4)
    assert_allclose(model.intercept_, 2.0 * peer.coef_[:, -1], atol=1e-4)
    bare = DPLogisticRegression(fit_intercept=False).fit(X, y)
    assert_array_equal(bare.intercept_, [0.0])


def test_the_guarantee_names_everything(binary):
    X, y = binary
    guarantee = DPLogisticRegression(0.5, 1e-6, adjacency="add-remove").fit(X, y).guarantee_
    assert (guarantee.epsilon, guarantee.delta) == (0.5, 1e-6)
    assert guarantee.adjacency == "add-remove"
    assert isinstance(guarantee.to_gdp(), GaussianDP)
    assert guarantee.epsilon_at(1e-6) <= 0.5
    assert "adding or removing one record" in str(guarantee)
    pure = DPLogisticRegression(0.5).fit(X, y).guarantee_
    assert pure.epsilon_at(0.0) == 0.5
    assert pure.to_zcdp().rho == 0.125


@pytest.mark.parametrize("calibration", ["jmlr2011", "kst2012", "redberg2023"])
@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
def test_published_calibrations_add_more_noise(binary, calibration, adjacency):
    X, y = binary
    delta = 0.0 if calibration == "jmlr2011" else 1e-5
    common = {"C": 0.5, "mechanism": "objective", "adjacency": adjacency, "delta": delta}

    def spread(calibration):
        fits = [
            DPLogisticRegression(1.0, calibration=calibration, random_state=i, **common).fit(X, y)
            for i in range(40)
        ]
        return np.std([fit.coef_ for fit in fits])

    assert spread(calibration) > spread("tight")


@pytest.mark.parametrize("kind", BOTH)
@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"epsilon": 0}, "epsilon must be a positive, finite number; got 0"),
        ({"epsilon": float("nan")}, "epsilon must be .*; got nan"),
        ({"epsilon": "1"}, "epsilon must be .*; got '1'"),
        ({"epsilon": True}, "epsilon must be .*; got True"),
        ({"delta": 1.0}, "delta must be .*; got 1.0"),
        ({"delta": -1e-9}, "delta must be .*; got -1e-09"),
        ({"C": 0.0}, "C must be .*; got 0.0"),
        ({"C": 1e14}, r"C must be between .* with x_norm=1.0 and intercept_scaling='auto'; got"),
        ({"C": "scale"}, "C must be 'auto' or a positive number; got 'scale'"),
        ({"x_norm": np.inf}, "x_norm must be .*; got inf"),
        ({"mechanism": "laplace"}, "mechanism must be one of .*; got 'laplace'"),
        ({"calibration": "loose"}, "calibration must be one of .*; got 'loose'"),
        ({"calibration": "kst2012"}, "needs a positive delta; got delta=0"),
        ({"calibration": "jmlr2011", "delta": 1e-5}, "needs delta=0; got delta=1e-05"),
        ({"calibration": "jmlr2011", "mechanism": "output"}, "calibration must be 'tight'"),
        ({"adjacency": "bounded"}, "adjacency must be one of .*; got 'bounded'"),
        ({"intercept_scaling": 0}, "intercept_scaling must be .*; got 0"),
        ({"random_state": -1}, "random_state must be .*; got -1"),
        ({"random_state": "0"}, "random_state must be .*; got '0'"),
        ({"classes": [0]}, "classes must"),
        ({"classes": 2}, "classes must be a list of labels or None; got 2"),
        ({"classes": "01"}, "classes must be a list of labels or None; got '01'"),
        ({"x_norm": 1e160}, "x_norm must be between"),
        ({"classes": [0, 0, 1]}, "classes must hold distinct labels"),
        ({"classes": [0, 2]}, "classes must list every label of y"),
        ({"ledger": "budget.db"}, "ledger must be None, a BudgetLedger"),
    ],
)
def test_bad_parameters_are_named(binary, kind, parameters, message):
    X, y = binary
    with pytest.raises(ValueError, match=message):
        kind(**parameters).fit(X, y)


@pytest.mark.parametrize("cap", ["full", 0.0, 1.5, -1, np.nan])
def test_bad_slope_caps_are_named(binary, three_classes, cap):
    for X, y in (binary, three_classes):
        with pytest.raises(ValueError, match="slope_cap"):
            DPLogisticRegression(slope_cap=cap, delta=1e-5).fit(X, y)


def test_bad_huber_width_is_named(binary):
    for width in (0, "wide", np.nan):
        with pytest.raises(ValueError, match=f"huber_width must be .*; got .*{width}"):
            DPLinearSVC(huber_width=width).fit(*binary)


def test_published_calibrations_are_binary(three_classes):
    with pytest.raises(ValueError, match="'tight' with more than two classes"):
        DPLogisticRegression(calibration="jmlr2011").fit(*three_classes)


def test_weights_are_not_offered(binary):
    X, y = binary
    with pytest.raises(TypeError):
        DPLogisticRegression().fit(X, y, sample_weight=np.ones(len(y)))


def test_a_failed_fit_leaves_the_old_model_and_the_charge(binary, monkeypatch):
    X, y = binary
    ledger = BudgetLedger(epsilon=10.0)
    model = DPLogisticRegression(1.0, ledger=ledger).fit(X, y)
    before = {name: value for name, value in vars(model).items() if name.endswith("_")}
    with pytest.raises(ValueError, match="slope_cap"):
        model.set_params(slope_cap=7.0).fit(X[:, :3], y)
    assert len(ledger.history()) == 1
    model.set_params(slope_cap="auto")

    def fail(*args, **kwargs):
        raise SolverError("no certificate")

    monkeypatch.setattr(_objective, "minimise", fail)
    with pytest.raises(SolverError):
        model.fit(X, 1 - y)
    assert len(ledger.history()) == 2
    after = {name: value for name, value in vars(model).items() if name.endswith("_")}
    assert before.keys() == after.keys()
    for name, value in before.items():
        assert after[name] is value


def test_a_refused_charge_leaves_the_old_model(binary):
    X, y = binary
    model = DPLogisticRegression(1.0, ledger=BudgetLedger(epsilon=1.5)).fit(X, y)
    coef = model.coef_
    with pytest.raises(BudgetExceededError, match=r"0\.5"):
        model.fit(X[:, :3], y)
    assert model.coef_ is coef
    assert model.predict(X).shape == y.shape


def test_a_seed_with_a_ledger_warns(binary):
    with pytest.warns(PrivacyWarning, match="random_state"):
        DPLogisticRegression(ledger=BudgetLedger(epsilon=2.0), random_state=0).fit(*binary)


@pytest.mark.parametrize("n_jobs", [None, 1, 2])
def test_grid_search_charges_every_fit(binary, tmp_path, n_jobs):
    X, y = binary
    ledger = BudgetLedger(tmp_path / "budget.db", 1000.0)
    model = make_pipeline(RowNormClipper(), DPLogisticRegression(1.0, ledger=ledger))
    grid = {"dplogisticregression__C": [0.1, 0.2, 0.5, 1.0]}
    GridSearchCV(model, grid, cv=5, n_jobs=n_jobs).fit(X[:500], y[:500])
    assert len(ledger.history()) == 21
    assert ledger.spent().epsilon == 21.0


def test_grid_search_over_epsilon_and_other_utilities_work(binary):
    X, y = binary
    model = make_pipeline(RowNormClipper(), DPLogisticRegression(delta=1e-5))
    search = GridSearchCV(model, {"dplogisticregression__epsilon": [0.01, 10.0]}, n_jobs=2)
    assert search.fit(X, y).best_params_["dplogisticregression__epsilon"] == 10.0
    assert cross_val_score(model.set_params(dplogisticregression__epsilon=10.0), X, y).min() > 0.7
    calibrated = CalibratedClassifierCV(DPLinearSVC(10.0, 1e-5)).fit(X, y)
    assert calibrated.predict_proba(X).shape == (len(y), 2)
    restored = pickle.loads(pickle.dumps(search))
    assert_array_equal(restored.predict(X), search.predict(X))


def test_the_html_view_links_to_the_documentation(binary):
    model = DPLogisticRegression().fit(*binary)
    html = model._repr_html_()
    assert "skdp.linear_model.DPLogisticRegression.html" in html


@pytest.mark.parametrize("delta", [0.0, 1e-5])
@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_noise_is_new_in_each_fit_clone_and_worker(binary, three_classes, mechanism, delta):
    X, y = binary
    model = DPLogisticRegression(1.0, delta, mechanism=mechanism)
    fits = [model.fit(X, y).coef_.copy(), model.fit(X, y).coef_, clone(model).fit(X, y).coef_]
    search = GridSearchCV(model, {"epsilon": [1.0, 1.0]}, cv=[(range(4000), range(9))], n_jobs=2)
    fits.append(search.fit(X, y).best_estimator_.coef_)
    for i, first in enumerate(fits):
        for second in fits[i + 1 :]:
            assert (first != second).mean() > 0.5
    # One-vs-rest with a shared generator would add the same vector to every class.
    X, y = three_classes
    coef = DPLogisticRegression(0.01, delta, mechanism=mechanism).fit(X, y).coef_
    correlations = np.corrcoef(coef - coef.mean(axis=0))
    assert len(np.unique(coef)) == coef.size or delta == 0.0
    assert not np.allclose(coef[0], coef[1])
    assert correlations.shape == (3, 3)


def test_numpy_seeds_far_away_do_not_make_the_noise_known(binary):
    X, y = binary
    np.random.seed(0)  # noqa: NPY002
    first = DPLogisticRegression().fit(X, y).coef_
    np.random.seed(0)  # noqa: NPY002
    assert (first != DPLogisticRegression().fit(X, y).coef_).any()


def test_adding_a_row_far_outside_the_ball_moves_nothing_more(binary):
    X, y = binary
    model = DPLogisticRegression(1.0, mechanism="output", C=1.0, random_state=0)
    base = model.fit(X, y).coef_
    far = X.copy()
    far[0] = 1e12 * np.ones(X.shape[1])
    moved = np.linalg.norm(clone(model).fit(far, y).coef_ - base)
    assert moved <= 2 * 0.5 * np.sqrt(2.0) * 1.05  # 2 L R C, and the lattice


@pytest.mark.parametrize("delta", [0.0, 1e-5])
@pytest.mark.parametrize("calibration", ["tight", "published"])
def test_the_two_stages_of_objective_perturbation_share_the_budget(
    binary, monkeypatch, delta, calibration
):
    seen = []

    def record(release, rows, noise):
        seen.append((release.law.guarantee, release.masking.guarantee))
        return np.zeros((1, rows.n_features))

    monkeypatch.setattr(ObjectivePerturbation, "__call__", record)
    if calibration == "published":
        calibration = "redberg2023" if delta else "jmlr2011"
    options = dict(mechanism="objective", calibration=calibration, intercept_scaling=0.3)
    model = DPLogisticRegression(0.1, delta, **options)  # reads no norm
    model.fit(*binary)
    ((law, solver),) = seen
    assert solver.delta == 0.0
    assert law.delta == delta
    assert_allclose(law.epsilon + solver.epsilon, 0.1, rtol=1e-12)
    assert solver.epsilon > 0.0


def test_repeated_sparse_entries_that_cancel_do_not_spoil_the_sums():
    ones = [1.0] * 50
    plain = sparse.csr_array(([*ones, 0.0], [0] * 51, range(52)), shape=(51, 1))
    evil = sparse.csr_array(([*ones, 1e300, -1e300], [0] * 52, [*range(51), 52]), shape=(51, 1))
    y = np.ones(51, dtype=int)
    fits = [
        DPLogisticRegression(classes=[0, 1], random_state=0).fit(X, y).coef_ for X in (plain, evil)
    ]
    assert_array_equal(*fits)


def test_every_penalty_and_budget_finds_finite_noise(binary):
    X, y = binary
    common = {"mechanism": "objective", "slope_cap": None, "delta": 1e-6}
    for epsilon in (1e-3, 1.0, 12.0, 300.0):
        for C in (1e-6, 1.0, 1e4):
            for adjacency in ("add-remove", "replace-one"):
                model = DPLogisticRegression(epsilon, C=C, adjacency=adjacency, **common)
                assert np.isfinite(model.fit(X[:200], y[:200]).coef_).all()


def test_no_warning_depends_on_the_data(binary):
    X, y = binary
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        DPLogisticRegression().fit(np.zeros_like(X), y)
        DPLogisticRegression(delta=1e-5).fit(1e300 * X, y)
        DPLinearSVC().fit(1e-300 * X, y)
        DPLogisticRegression(classes=range(9)).fit(X[:9], np.arange(9))


def test_import_is_light():
    code = "import sys, skdp, skdp.linear_model; print('dp_accounting' in sys.modules)"
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert result.stdout.strip() == "False"


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


@pytest.mark.parametrize("name", ["x_norm", "intercept_scaling"])
def test_norms_beyond_what_floats_can_square_are_refused(binary, name):
    for value in (1e-51, 1e51):
        with pytest.raises(ValueError, match=f"{name} must be between 1e-50 and 1e50; got"):
            DPLogisticRegression(**{name: value}).fit(*binary)


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("delta", [0.0, 1e-5])
@pytest.mark.parametrize("kind", BOTH)
def test_numbers_of_single_precision_are_those_numbers(binary, kind, delta, mechanism):
    # C=np.float32(10) at epsilon .5 was once a search without end.
    X, y = binary
    X, y = X[:300], y[:300]
    given = {"epsilon": 0.5, "C": 10.0, "x_norm": 1.25, "intercept_scaling": 0.5}
    given["huber_width" if kind is DPLinearSVC else "slope_cap"] = 0.75
    for dtype in (np.float16, np.float32, np.longdouble):
        numbers = {name: dtype(value) for name, value in given.items()}
        fits = [
            kind(delta=delta, mechanism=mechanism, random_state=0, **each).fit(X, y)
            for each in (numbers, given)
        ]
        assert_array_equal(fits[0].coef_, fits[1].coef_)
        assert_array_equal(fits[0].intercept_, fits[1].intercept_)
        assert fits[0].guarantee_ == fits[1].guarantee_


def test_a_bad_random_state_is_refused_before_the_charge(binary):
    ledger = BudgetLedger(epsilon=2.0)
    with pytest.raises(ValueError, match="random_state must be"):
        DPLogisticRegression(ledger=ledger, random_state=-1).fit(*binary)
    assert not ledger.history()


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
    "mechanism, epsilon", [("objective", 1e-9), ("output", 1e-12), ("gradient", 1e-10)]
)
def test_noise_that_no_lattice_holds_is_refused_before_the_charge(mechanism, epsilon):
    for adjacency in ("replace-one", "add-remove"):
        ledger = BudgetLedger(epsilon=9.0)
        model = DPLogisticRegression(
            epsilon, mechanism=mechanism, adjacency=adjacency, ledger=ledger
        )
        with pytest.raises(ValueError, match="epsilon must be larger for 51 coefficients"):
            model.fit(np.eye(50), np.arange(50) % 2)
        assert not ledger.history()


@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
def test_a_linear_term_beside_which_no_gradient_counts_is_refused_by_epsilon(adjacency):
    refused = []
    for epsilon in 10.0 ** np.arange(-9, -5, 0.25):
        ledger = BudgetLedger(epsilon=9.0)
        model = DPLogisticRegression(epsilon, adjacency=adjacency, ledger=ledger)
        try:
            model.fit(np.eye(3), [0, 1, 0])
        except ValueError as error:
            assert "epsilon must be larger for 4 coefficients" in str(error)
            assert not ledger.history()
            refused.append(epsilon)
    assert 1e-8 < max(refused) < 1e-6


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
