"""Calibration, thresholds, sets and intervals: what they promise, and that they work."""

import math
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import expit
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import balanced_accuracy_score, f1_score, log_loss
from sklearn.model_selection import GridSearchCV
from sklearn.utils.estimator_checks import parametrize_with_checks
from support.insides import noise_source

from skdp import config_context
from skdp.audit import recording, replay
from skdp.calibration import (
    DPCalibratedClassifier,
    DPConformalClassifier,
    DPConformalRegressor,
    DPThresholdClassifier,
)
from skdp.calibration._classifiers import SlopeSteps, _binary, _several
from skdp.calibration._conformal import RankSelection, ranks_for_noise
from skdp.exceptions import BudgetExceededError, PrivacyWarning
from skdp.inspection import privacy_report
from skdp.kernel import DPKernelRidge
from skdp.linear_model import (
    DPLinearRegression,
    DPLinearSVC,
    DPLogisticRegression,
    DPPoissonRegressor,
)
from skdp.model_selection import DPGridSearch
from skdp.pipeline import DPPipeline, guarantee_of
from skdp.preprocessing import DPQuantileScaler, make_private_preprocessor
from skdp.privacy import ApproxDP, BudgetLedger, GaussianDP

DELTA = 1e-6
CLASSIFIERS = (DPCalibratedClassifier, DPThresholdClassifier, DPConformalClassifier)
EVERY = (*CLASSIFIERS, DPConformalRegressor)


@pytest.fixture(autouse=True)
def known_seeds():
    with config_context(known_seeds=True):
        yield


def rows(n=4_000, seed=0, shift=0.0):
    """Rows of norm 1, and labels by a logistic model."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1.0, 1.0, size=(n, 3)) / math.sqrt(3.0)
    y = (rng.random(n) < expit(6.0 * X[:, 0] - shift)).astype(int)
    return X, y


def around(kind, inner=None, **options):
    if inner is None:
        inner = DPKernelRidge(y_bounds=(-2.0, 2.0)) if kind is DPConformalRegressor else None
    return kind(DPLogisticRegression() if inner is None else inner, random_state=0, **options)


class Steep(ClassifierMixin, BaseEstimator):
    """Scores of a known model, times a factor; it learns nothing."""

    def __init__(self, factor=3.0, classes=(0, 1)):
        self.factor, self.classes = factor, classes

    def fit(self, X, y):
        self.classes_ = np.asarray(self.classes)
        return self

    def predict_proba(self, X):
        chance = expit(self.factor * 6.0 * np.asarray(X)[:, 0])
        return np.column_stack([1.0 - chance, chance])

    def predict(self, X):
        return self.classes_[self.predict_proba(X).argmax(axis=1)]


def steep(**options):
    X, y = rows()
    return FrozenEstimator(Steep(**options).fit(X, y))


def _checked():
    for kind in CLASSIFIERS:
        yield kind(DPLogisticRegression(), epsilon=50.0, **_for_few_rows(kind))
    inner = DPKernelRidge(y_bounds=(-100.0, 100.0), n_components=20)
    yield DPConformalRegressor(inner, epsilon=50.0, **_for_few_rows(DPConformalRegressor))


def _for_few_rows(kind):
    return {"level": 0.05, "holdout": 0.5} if "Conformal" in kind.__name__ else {}


def _not_for(estimator):
    if not isinstance(estimator, DPThresholdClassifier):
        return {}
    # As of scikit-learn's own.
    return {"check_classifiers_train": "the threshold is not a probability of 1/2"}


@parametrize_with_checks(list(_checked()), expected_failed_checks=_not_for)
def test_sklearn_conventions(estimator, check):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyWarning)
        check(estimator)


@pytest.mark.parametrize("delta", [0.0, DELTA])
@pytest.mark.parametrize("holdout", [None, 0.4])
@pytest.mark.parametrize("kind", EVERY)
def test_one_budget_pays_for_model_and_what_follows(kind, holdout, delta):
    X, y = rows()
    ledger = BudgetLedger(epsilon=2.0, delta=1e-5)
    model = around(kind, epsilon=1.0, delta=delta, holdout=holdout, ledger=ledger)
    with pytest.warns(PrivacyWarning, match="random_state is set"):
        model.fit(X, y)
    (entry,) = ledger.history()
    for guarantee in (entry.guarantee, model.guarantee_, guarantee_of(model)):
        assert (guarantee.epsilon, guarantee.delta) == (1.0, delta)
        assert guarantee.delta_at(1.0) <= delta
    # The parts fit into the whole; each row is in one part of a division.
    inner = model.estimator_.guarantee_
    assert inner.epsilon == 1.0 if holdout else inner.epsilon < 1.0
    assert "around" in str(model.guarantee_)
    assert model.estimator_.ledger is None
    ledger = BudgetLedger(epsilon=0.5, delta=1e-5)
    before = model.estimator_
    with pytest.raises(BudgetExceededError):
        model.set_params(ledger=ledger, random_state=None).fit(X, y)
    assert ledger.history() == [] and model.estimator_ is before


@pytest.mark.parametrize("kind", CLASSIFIERS)
def test_a_frozen_model_was_paid_before(kind):
    X, y = rows()
    inner = DPLogisticRegression(0.7, DELTA, random_state=0).fit(X, y)
    model = around(kind, FrozenEstimator(inner), epsilon=0.3, delta=DELTA, holdout=None)
    model.fit(X, y)
    assert model.estimator_ is inner
    whole = model.guarantee_
    assert 0.3 < whole.epsilon_at(2.0 * DELTA) <= 1.0
    with pytest.raises(ValueError, match="adjacency must be"):
        clone(model).set_params(adjacency="add-remove").fit(X, y)


def test_a_model_that_was_not_private_is_refused_unless_it_is_declared_public():
    X, y = rows()
    plain = LogisticRegression().fit(X, y)
    for kind in CLASSIFIERS:
        with pytest.raises(ValueError, match="is not known to have a guarantee"):
            around(kind, FrozenEstimator(plain), holdout=None).fit(X, y)
        with pytest.raises(ValueError, match="estimator must be an estimator of skdp"):
            around(kind, LogisticRegression()).fit(X, y)
        model = around(kind, FrozenEstimator(plain), holdout=None, public=("estimator",))
        assert any("declared public" in one for one in model.fit(X, y).guarantee_.caveats)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (dict(estimator=DPLogisticRegression(epsilon=2.0)), "epsilon of estimator must be the"),
        (dict(estimator=DPLogisticRegression(ledger=BudgetLedger(epsilon=1.0))), "ledger of"),
        (dict(estimator=DPKernelRidge(y_bounds=(-1, 1))), "estimator must be a classifier"),
        (dict(estimator=DPLogisticRegression), "estimator must be a classifier"),
        (dict(holdout=0.0), "holdout must be"),
        (dict(holdout=0.5, adjacency="add-remove"), "holdout must be None under 'add-remove'"),
        (dict(share=0.0), "share must be"),
        (dict(estimator=steep(), public=("estimator",), share=0.5), "share must be 'auto' for a"),
        (dict(public=("model",)), "public must be"),
        (dict(public=("estimator",)), "public must be ()"),
        (dict(method="platt"), "method must be"),
        (dict(method="isotonic", epsilon=0.1), "method must be 'sigmoid' for 4000 rows"),
    ],
)
def test_what_is_wrong_is_named_before_a_charge(change, words):
    X, y = rows()
    ledger = BudgetLedger(epsilon=9.0)
    model = DPCalibratedClassifier(DPLogisticRegression(), ledger=ledger).set_params(**change)
    with pytest.raises(ValueError, match=words.replace("(", r"\(").replace(")", r"\)")):
        model.fit(X, y)
    assert ledger.history() == []


def test_sets_need_rows_and_a_public_number_of_them():
    X, y = rows(200)
    with pytest.raises(ValueError, match=r"level must be lower for 60 held-out rows .* needs"):
        DPConformalClassifier(DPLogisticRegression(), level=0.95, epsilon=0.5).fit(X, y)
    with pytest.raises(ValueError, match="adjacency must be 'replace-one': the cov"):
        around(DPConformalClassifier, adjacency="add-remove", holdout=None).fit(X, y)
    three = np.arange(200) % 3
    with pytest.raises(ValueError, match="Only binary classification is supported"):
        around(DPThresholdClassifier).fit(X, three)
    with pytest.raises(ValueError, match="method must be 'sigmoid' for 3 classes"):
        around(DPCalibratedClassifier, method="isotonic", epsilon=1e3).fit(X, three)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.DataConversionWarning")
def test_a_column_of_targets_is_one_target_a_row():
    X, _ = rows()
    y = X[:, 0] + 0.1 * np.random.default_rng(0).standard_normal(len(X))
    for holdout in (0.3, None):
        model = around(DPConformalRegressor, DPLinearRegression(y_bounds=(-1, 1)), delta=DELTA,
                       holdout=holdout)  # fmt: skip
        expected = clone(model).fit(X, y).half_width_
        for column in (y[:, np.newaxis], pd.DataFrame({"t": y})):
            assert clone(model).fit(X, column).half_width_ == expected
    with pytest.raises(ValueError, match="y should be a 1d array"):
        model.fit(X, np.column_stack([y, y]))


def test_what_was_frozen_deeper_is_not_forgotten():
    """Its guarantee counts, or it is refused before a charge."""
    X, y = rows()
    ledger = BudgetLedger(epsilon=9.0, delta=1e-3)
    inner = FrozenEstimator(DPLogisticRegression(5.0, DELTA, random_state=0).fit(X, y))
    around_frozen = DPCalibratedClassifier(inner)
    for outer in (
        DPThresholdClassifier(around_frozen, ledger=ledger),
        DPPipeline([("m", around_frozen)], ledger=ledger),
        DPGridSearch(around_frozen, {"method": ["sigmoid"]}, ledger=ledger),
        DPCalibratedClassifier(DPGridSearch(DPPipeline([("m", inner)]), {"shares": ["auto"]})),
    ):
        with pytest.raises(ValueError, match="FrozenEstimator"):
            outer.fit(X, y)
    assert ledger.history() == []
    # A step of a pipeline that was fitted before counts.
    scaler = FrozenEstimator(DPQuantileScaler(epsilon=2.0, random_state=0).fit(X))
    pipe = DPPipeline([("s", scaler), ("m", DPLogisticRegression())])
    model = around(DPThresholdClassifier, pipe, epsilon=0.5, delta=DELTA).fit(X, y)
    assert 1.5 < model.guarantee_.epsilon_at(2.0 * DELTA) <= 2.5


def test_models_that_answer_by_query_are_refused():
    X, y = rows()
    ledger = BudgetLedger(epsilon=9.0)
    inner = DPKernelRidge(y_bounds=(-1, 1), release="query", n_queries=9_000)
    with pytest.raises(ValueError, match="estimator must not use release='query'"):
        around(DPConformalRegressor, inner, ledger=ledger).fit(X, y.astype(float))
    assert ledger.history() == []


def test_another_fit_is_another_model():
    X, y = rows()
    target = X[:, 0]
    wide = around(DPConformalRegressor, DPLinearRegression(y_bounds=(-10, 10)), delta=DELTA)
    narrow = DPLinearRegression(y_bounds=(-1, 1))
    again = clone(wide).fit(X, target).set_params(estimator=narrow).fit(X, target)
    fresh = clone(wide).set_params(estimator=narrow).fit(X, target)
    assert again.half_width_ == fresh.half_width_
    named = around(DPCalibratedClassifier).fit(pd.DataFrame(X, columns=list("abc")), y)
    assert not hasattr(named.fit(X, y), "feature_names_in_")
    curved = named.set_params(method="isotonic")
    assert curved.predict_proba(X).shape == (len(X), 2)  # by what was fitted


def test_bad_rows_of_either_part_are_refused_before_the_charge():
    X, y = rows()
    ledger = BudgetLedger(epsilon=9.0)
    held = DPCalibratedClassifier(DPLogisticRegression(), holdout=0.3, ledger=ledger)
    held_out = held._blocks().parts(X, len(y))[1][0]
    for bad in (np.nan, np.inf):
        other = X.copy()
        other[held_out, 0] = bad
        with pytest.raises(ValueError, match="X"):
            clone(held).fit(other, y)
    targets = X[:, 0].astype(object)
    targets[held_out] = "secret-diagnosis"
    model = DPConformalRegressor(DPKernelRidge(y_bounds=(-1, 1)), ledger=ledger)
    with pytest.raises(ValueError) as told:
        model.fit(X, targets)
    assert "secret" not in str(told.value)
    inner = DPLogisticRegression(1.0, DELTA, random_state=0).fit(X, y)
    with pytest.raises(ValueError, match="do not compose"):
        DPCalibratedClassifier(FrozenEstimator(inner), delta=DELTA, ledger=ledger).fit(
            X, y, groups=np.arange(len(y))
        )
    assert ledger.history() == []


def test_levels_that_no_budget_shows_say_what_helps():
    X, y = rows()
    for delta, epsilon in ((DELTA, 30.0), (0.0, 20.0)):
        with pytest.raises(ValueError, match=r"needs .* rows, or a holdout"):
            around(DPConformalClassifier, epsilon=epsilon, delta=delta, holdout=None).fit(X, y)


# What rows add to the sums, and how far replacing one moves them.


def test_no_row_adds_a_vector_longer_than_one():
    rng = np.random.default_rng(0)
    scores = np.concatenate([np.linspace(-12, 12, 2001), rng.uniform(-6, 6, 20_000)])[:, None]
    longest = 0.0
    for place in ([0.0, 1.0], [0.3, 1.2], [-8.0, 20.0], [8.0, 0.05], [2.0, 0.5]):
        for label in (0, 1):
            codes = np.full(len(scores), label)
            made = _binary(scores, codes, np.array(place))
            longest = max(longest, np.linalg.norm(made, axis=1).max())
            assert not _binary(scores, codes - 2, np.array(place)).any()
    assert 0.95 < longest <= 1.0
    longest = 0.0
    for n_classes in (3, 5):
        scores = rng.choice([-12.0, -8.0, -4.0, -1.0, 0.0], size=(20_000, n_classes))
        for slope in (0.05, 0.5, 1.0, 20.0):
            for label in range(n_classes):
                codes = np.full(len(scores), label)
                made = _several(scores, codes, np.array([slope]))
                longest = max(longest, np.linalg.norm(made, axis=1).max())
    assert 0.95 < longest <= 1.0


def test_the_weight_of_the_curvature_is_as_large_as_it_may_be():
    """Without rows being cut back: the bound is attained."""
    from skdp.calibration import _classifiers as inside

    e = np.linspace(0.0, 1.0, 100_001)
    lengths = np.sqrt(e**2 + (inside._THEOREM_CURVATURE * e * (1.0 - e)) ** 2)
    assert 1.0 - 1e-6 < lengths.max() <= 1.0
    assert np.sqrt(e**2 + (1.01 * inside._THEOREM_CURVATURE * e * (1.0 - e)) ** 2).max() > 1.0


@pytest.mark.parametrize("options", [{}, {"holdout": 0.5}], ids=["same rows", "held out"])
@pytest.mark.parametrize("delta", [0.0, 1e-4])
@pytest.mark.parametrize("kind", CLASSIFIERS)
def test_neighbours_are_as_near_as_claimed(kind, delta, options):
    X, y = rows(200)
    level = {"level": 0.3} if kind is DPConformalClassifier else {}
    model = kind(DPLogisticRegression(), epsilon=2.0, delta=delta, **level | options)
    report = replay(model, X, y, n=25, random_state=0)
    assert not report.findings
    assert report.share <= 1.0 + 1e-6


@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
@pytest.mark.parametrize("kind", [DPCalibratedClassifier, DPThresholdClassifier])
def test_the_worst_neighbours_use_the_claim(kind, adjacency):
    """A row in a corner of the counts, or with the longest vector, and another opposite."""
    X = np.zeros((40, 3))
    X[:, 0] = np.linspace(-0.5, 0.5, 40)
    y = np.arange(40) % 2
    # At a score far out the residual of either label is 1 or 0.
    inner = FrozenEstimator(Steep(10.0).fit(X, y))
    model = kind(inner, epsilon=1.0, delta=1e-4, adjacency=adjacency, public=("estimator",))
    moved = []
    for place in (-0.5, 0.5):
        for label in (0, 1):
            other, labels = X.copy(), y.copy()
            other[0, 0], labels[0] = place, label
            moved.append((other, labels))
    X[0, 0], y[0] = 0.5, 0
    if adjacency == "add-remove":
        moved = [(X[1:], y[1:])]
    report = replay(model, X, y, neighbours=moved, n=len(moved), random_state=0)
    assert not report.findings
    # Residuals of 1 and of -1 are at other scores, so that their rows are not opposite.
    least = 0.65 if kind is DPCalibratedClassifier and adjacency == "replace-one" else 0.9
    assert least < report.share <= 1.0 + 1e-6


def test_half_of_a_sensitivity_is_found(monkeypatch):
    from skdp.calibration import _classifiers as inside

    X, y = rows(40)
    X[0], y[0] = [0.57, 0.0, 0.0], 0
    other, labels = X.copy(), y.copy()
    other[0], labels[0] = [-0.57, 0.0, 0.0], 1
    release = inside.release

    def quieter(value, **options):
        options["sensitivity"] /= 2.0
        return release(value, **options)

    inner = FrozenEstimator(Steep(10.0).fit(X, y))
    model = DPCalibratedClassifier(inner, epsilon=1.0, delta=1e-4, public=("estimator",))
    assert replay(model, X, y, neighbours=[(other, labels)], n=1, random_state=0).findings == ()
    monkeypatch.setattr(inside, "release", quieter)
    assert replay(model, X, y, neighbours=[(other, labels)], n=1, random_state=0).findings


# What comes out.


def test_scores_that_are_too_steep_are_corrected():
    X, y = rows()
    before = log_loss(*reversed(_told(steep().estimator)))
    for seed in range(20):
        model = DPCalibratedClassifier(
            steep(), epsilon=0.5, delta=DELTA, public=("estimator",), random_state=seed
        ).fit(X, y)
        assert log_loss(*reversed(_told(model))) < before - 0.05
        assert 0.15 < model.slope_ < 0.6


def _told(model):
    X_new, y_new = rows(20_000, seed=1)
    return model.predict_proba(X_new)[:, 1], y_new


def test_scores_that_are_fine_stay_as_they_are():
    X, y = rows()
    before = log_loss(*reversed(_told(steep(factor=1.0).estimator)))
    changes = []
    for seed in range(20):
        model = DPCalibratedClassifier(
            steep(factor=1.0), epsilon=0.2, delta=DELTA, public=("estimator",), random_state=seed
        ).fit(X, y)
        changes.append(log_loss(*reversed(_told(model))) - before)
    assert max(changes) < 0.005 and np.mean(changes) < 0.001


def test_margins_become_probabilities():
    X, y = rows(20_000)
    X_new, y_new = rows(20_000, seed=1)
    for method in ("sigmoid", "isotonic"):
        model = around(DPCalibratedClassifier, DPLinearSVC(), method=method, delta=DELTA,
                       epsilon=3.0).fit(X, y)  # fmt: skip
        chances = model.predict_proba(X_new)
        assert_allclose(chances.sum(axis=1), 1.0)
        assert_allclose(np.log(chances), model.predict_log_proba(X_new))
        assert_array_equal(model.predict(X_new), model.classes_[chances.argmax(axis=1)])
        # As good as the model that the labels follow, nearly.
        best = log_loss(y_new, expit(6.0 * X_new[:, 0]))
        assert log_loss(y_new, chances[:, 1]) < best + 0.02


def test_a_temperature_is_learned_for_several_classes():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(20_000, 3)) / math.sqrt(3.0)
    chances = np.exp(8.0 * X)
    chances /= chances.sum(axis=1, keepdims=True)
    y = (chances.cumsum(axis=1) > rng.random((20_000, 1))).argmax(axis=1)

    class Known(Steep):
        def predict_proba(self, X):
            odds = np.exp(24.0 * X)
            return odds / odds.sum(axis=1, keepdims=True)

    inner = FrozenEstimator(Known(classes=(0, 1, 2)).fit(X, y))
    model = DPCalibratedClassifier(
        inner, epsilon=0.5, delta=DELTA, public=("estimator",), random_state=0
    ).fit(X, y)
    assert_allclose(model.slope_, 1.0 / 3.0, atol=0.05)
    assert log_loss(y, model.predict_proba(X)) < log_loss(y, inner.predict_proba(X)) - 0.1


@pytest.mark.parametrize(
    ("metric", "score"),
    [("balanced_accuracy", balanced_accuracy_score), ("f1", f1_score)],
)
def test_thresholds_are_near_the_best(metric, score):
    X, y = rows(20_000, shift=3.0)
    X_new, y_new = rows(20_000, seed=1, shift=3.0)
    for holdout in (None, 0.3):
        model = around(
            DPThresholdClassifier, metric=metric, epsilon=1.0, delta=DELTA, holdout=holdout
        ).fit(X, y)
        chances = model.predict_proba(X_new)[:, 1]
        assert_array_equal(model.predict(X_new), (chances >= model.threshold_).astype(int))
        best = max(score(y_new, chances >= one) for one in np.linspace(0.01, 0.9, 90))
        assert score(y_new, model.predict(X_new)) > best - 0.02
        assert model.best_score_ == pytest.approx(best, abs=0.05)
    half = score(y_new, model.estimator_.predict(X_new))
    assert score(y_new, model.predict(X_new)) > half + 0.05


@pytest.mark.parametrize("holdout", [0.3, None])
def test_sets_hold_the_label_as_often_as_stated(holdout):
    covered, sizes = [], []
    for seed in range(15):
        X, y = rows(4_000, seed=seed)
        X_new, y_new = rows(4_000, seed=100 + seed)
        options = dict(epsilon=1.0, delta=DELTA, holdout=holdout)
        model = DPConformalClassifier(DPLogisticRegression(), random_state=seed, **options)
        inside = model.fit(X, y).predict_set(X_new)
        assert inside.dtype == bool and inside.shape == (4_000, 2)
        covered.append(inside[np.arange(4_000), y_new].mean())
        sizes.append(inside.sum(axis=1).mean())
    # Fifteen means of coverage with a deviation of 0.008 each.
    assert 0.9 - 0.008 < np.mean(covered) < (0.93 if holdout else 0.975)


def test_intervals_hold_the_target_as_often_as_stated():
    rng = np.random.default_rng(0)
    covered = []
    for seed in range(10):
        X = rng.uniform(-1, 1, size=(8_000, 2)) / math.sqrt(2.0)
        y = X[:, 0] + 0.2 * rng.standard_t(5, size=8_000)
        model = DPConformalRegressor(
            DPLinearRegression(y_bounds=(-2.0, 2.0)), epsilon=1.0, delta=DELTA, random_state=seed
        ).fit(X[:4_000], y[:4_000])
        ends = model.predict_interval(X[4_000:])
        assert_allclose(ends[:, 1] - ends[:, 0], 2.0 * model.half_width_)
        covered.append(np.mean((ends[:, 0] <= y[4_000:]) & (y[4_000:] <= ends[:, 1])))
    assert 0.892 < np.mean(covered) < 0.93


def test_the_rank_covers_for_its_noise():
    """Exact laws of small cases: the mean coverage of a row that is left out."""
    rng = np.random.default_rng(0)
    least = 1.0
    for _ in range(300):
        m, n_cells = int(rng.integers(8, 30)), int(rng.integers(2, 9))
        level, epsilon = rng.uniform(0.3, 0.6), rng.uniform(0.5, 2.0)
        edges = (*range(n_cells), math.inf)
        target = ApproxDP(epsilon)
        try:
            selection = RankSelection.plan(target, edges=edges, n_units=m, level=level)
        except ValueError:
            continue
        scores = rng.choice(
            np.arange(n_cells + 1) - 0.5, size=m + 1, p=rng.dirichlet(np.ones(n_cells + 1))
        )
        covered = 0.0
        for out in range(m + 1):
            known = np.delete(scores, out)
            below = np.array([np.sum(known < edge) for edge in edges])
            below[0] = 0
            far = np.maximum(
                np.maximum(below[:-1] - selection.rank, selection.rank - below[1:]), 0
            )
            law = np.exp(-selection.epsilon * far / 2.0)
            covered += (law / law.sum()) @ (scores[out] <= np.array(edges[1:])) / (m + 1)
        least = min(least, covered - level)
    assert least >= -1e-12
    # 13.8 of the notes on mathematics.
    assert math.exp(0.25) * ranks_for_noise(0.5, 128) == pytest.approx(14.4, abs=0.05)


def test_a_selection_follows_its_law():
    selection = RankSelection.plan(
        ApproxDP(1.0), edges=(0.0, 1.0, 2.0, 3.0, math.inf), n_units=60, level=0.5
    )
    scores = np.repeat([0.5, 1.5, 2.5, 3.5], [20, 15, 15, 10])
    found = [selection(scores, None, noise_source(seed)) for seed in range(4_000)]
    below = np.array([0, 20, 35, 50, 60])
    far = np.maximum(np.maximum(below[:-1] - selection.rank, selection.rank - below[1:]), 0)
    law = np.exp(-far / 2.0)
    counts = np.array([found.count(edge) for edge in (1.0, 2.0, 3.0, math.inf)])
    expected = 4_000 * law / law.sum()
    # Chi-square with 3 degrees of freedom exceeds 35 with a probability of 1e-7.
    assert np.sum((counts - expected) ** 2 / expected) < 35.0


# Where rows come from, and what is around.


@pytest.mark.parametrize("kind", EVERY)
def test_users_are_protected(kind):
    X, y = rows(3_000)
    groups = np.arange(3_000) // 2
    options = {"level": 0.7} if "Conformal" in kind.__name__ else {}
    model = around(kind, epsilon=2.0, delta=DELTA, **options).fit(X, y, groups=groups)
    assert model.guarantee_.unit == model.estimator_.guarantee_.unit == "user"


@pytest.mark.parametrize("kind", CLASSIFIERS)
def test_neighbouring_users_are_as_near_as_claimed(kind):
    X, y = rows(160)
    level = {"level": 0.3, "holdout": 0.5} if kind is DPConformalClassifier else {}
    model = kind(DPLogisticRegression(), epsilon=2.0, delta=1e-4, **level)
    report = replay(model, X, y, groups=np.arange(160) // 2, n=15, random_state=0)
    assert not report.findings and report.share <= 1.0 + 1e-6


@pytest.mark.parametrize("kind", CLASSIFIERS)
def test_raw_frames_and_pipelines(kind):
    X, y = rows(4_000)
    frame = pd.DataFrame(X * 50.0 + 100.0, columns=["a", "b", "c"])
    prepare = make_private_preprocessor()
    inside = DPPipeline([("prepare", prepare), ("model", DPLogisticRegression())])
    model = around(kind, inside, epsilon=4.0, delta=DELTA).fit(frame, y)
    assert model.guarantee_.epsilon == 4.0
    assert np.mean(model.predict(frame) == y) > 0.75
    # The other way round.
    last = kind(DPLogisticRegression())
    outside = DPPipeline(
        [("prepare", clone(prepare)), ("model", last)], epsilon=4.0, delta=DELTA, random_state=0
    ).fit(frame, y)
    assert outside.guarantee_.epsilon == guarantee_of(outside).epsilon == 4.0
    assert outside.guarantee_.delta_at(4.0) <= DELTA
    assert np.mean(outside.predict(frame) == y) > 0.75
    assert hasattr(outside, "predict_set") == (kind is DPConformalClassifier)
    if kind is DPConformalClassifier:
        sets = outside.predict_set(frame)
        assert sets.shape == (4_000, 2) and sets[np.arange(4_000), y].mean() > 0.88
    assert "guarantee" in privacy_report(model)._repr_html_().lower()


def test_a_pipeline_has_intervals_where_its_last_step_has():
    X, y = rows()
    steps = [("scale", DPQuantileScaler()), ("model", around(DPConformalRegressor))]
    steps[-1][1].set_params(random_state=None)
    pipeline = DPPipeline(steps, epsilon=4.0, delta=DELTA, random_state=0).fit(X, y)
    low, high = pipeline.predict_interval(X).T
    assert np.mean((low <= y) & (y <= high)) > 0.85 and not hasattr(pipeline, "predict_set")


def test_intervals_are_in_units_of_bounds_that_the_model_has_learned():
    X, y = rows()
    inner = DPKernelRidge()
    model = DPConformalRegressor(inner, epsilon=4.0, delta=DELTA, random_state=0)
    found = model.fit(X, 1e7 * y)
    low, high = found.predict_interval(X).T
    assert np.mean((low <= 1e7 * y) & (1e7 * y <= high)) > 0.85
    assert 1e6 < found.half_width_ < 1e8
    pipeline = DPPipeline([("scale", DPQuantileScaler()), ("model", DPKernelRidge())])
    found = clone(model).set_params(estimator=pipeline).fit(X, 1e7 * y)
    assert 1e6 < found.half_width_ < 1e8
    counts = np.random.default_rng(0).poisson(3.0, len(X))
    poisson = DPPoissonRegressor(y_max=20.0)
    assert 1.0 < clone(model).set_params(estimator=poisson).fit(X, counts).half_width_ < 20.0


def test_columns_are_prepared_as_for_the_model_within():
    X, y = rows()
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    widths = []
    for last in (DPKernelRidge(y_bounds=(-1, 1)), DPConformalRegressor(DPKernelRidge())):
        steps = [("prepare", make_private_preprocessor()), ("model", last)]
        pipeline = DPPipeline(steps, epsilon=8.0, delta=DELTA, random_state=0).fit(frame, y)
        widths.append(pipeline.steps_[-1][1].n_features_in_)
    assert widths == [3, 3]


def test_rows_of_a_source(tmp_path):
    X, y = rows(4_000)
    frame = pd.DataFrame(X, columns=["a", "b", "c"]).assign(y=y)
    frame.to_parquet(tmp_path / "rows.parquet")
    rows_there = pl.scan_parquet(tmp_path / "rows.parquet")
    for kind in CLASSIFIERS:
        model = around(kind, epsilon=2.0, delta=DELTA)
        here = clone(model).fit(frame[["a", "b", "c"]], y)
        there = clone(model).fit(rows_there, "y")
        assert_array_equal(
            there.predict(frame[["a", "b", "c"]]), here.predict(frame[["a", "b", "c"]])
        )
        names = [n for n in ("offset_", "slope_", "threshold_") if hasattr(here, n)]
        assert names and all(getattr(there, n) == getattr(here, n) for n in names)


def test_what_leaves_is_released():
    X, y = rows()
    for kind in CLASSIFIERS:
        with recording() as transcript:
            around(kind, epsilon=2.0, delta=DELTA).fit(X, y)
        assert len(transcript) >= 2
    search = GridSearchCV(
        around(DPCalibratedClassifier, epsilon=8.0), {"share": [0.05, 0.2]}, cv=2
    )
    with pytest.raises(ValueError, match="The scores of the search"):
        guarantee_of(search.fit(X, y))


def test_budgets_of_steps_add_up():
    for target in (ApproxDP(1.0), ApproxDP(1.0, DELTA), GaussianDP(0.3)):
        for n_outputs in (2, 4):
            steps = SlopeSteps.plan(target, n_outputs=n_outputs)
            parts = [law.guarantee for law in steps.laws]
            if isinstance(target, ApproxDP) and target.delta == 0.0:
                assert sum(part.epsilon for part in parts) == pytest.approx(1.0)
            else:
                mu = target.mu if isinstance(target, GaussianDP) else target.gaussian_target().mu
                assert math.hypot(*(part.mu for part in parts)) == pytest.approx(mu)


def test_scores_without_probabilities_that_noise_leaves_alone_are_told():
    X, y = rows(600)
    options = dict(epsilon=1.0, delta=DELTA, random_state=0)
    with pytest.warns(UserWarning, match="too large to calibrate the scores: slope_ is 1"):
        model = DPCalibratedClassifier(DPLinearSVC(), **options).fit(X, y)
    expected = expit(np.clip(4.0 * model.estimator_.decision_function(X), -12.0, 12.0))
    assert_allclose(model.predict_proba(X)[:, 1], expected, rtol=1e-9)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # these have probabilities before
        DPCalibratedClassifier(DPLogisticRegression(), **options).fit(X, y)
        DPCalibratedClassifier(DPLinearSVC(), **options).fit(*rows(20_000))
