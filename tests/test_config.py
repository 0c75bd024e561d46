"""Settings, and the warning of a fit whose noise can be recomputed."""

import subprocess
import sys
import threading
import warnings

import pytest
from sklearn.base import clone, is_classifier
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from support.configurations import CONFIGURATIONS, model, problem

import skdp
from skdp import DPKernelRidge, DPLogisticRegression, RowNormClipper
from skdp.exceptions import PrivacyWarning
from skdp.privacy import BudgetLedger


def fresh(known_seeds=False):
    return skdp.config_context(known_seeds=known_seeds)


def seed_warnings(call):
    """Warnings of known seeds, of a call."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call()
    return [w for w in caught if w.category is PrivacyWarning and "random_state" in str(w.message)]


def calls_that_learn(estimator, X, y):
    """Calls, each of which may draw noise."""
    yield lambda: estimator.fit(X, y)
    if hasattr(estimator, "partial_fit"):
        learned = clone(estimator)
        options = {"classes": [0, 1]} if is_classifier(estimator) else {}
        yield lambda: learned.partial_fit(X, y, **options)
        again = {"refresh": True} if hasattr(estimator, "transform") else {}
        yield lambda: learned.partial_fit(X, y, **again)
    if getattr(estimator, "release", "") == "query":
        yield lambda: estimator.predict(X[:2])


@pytest.mark.parametrize("name", CONFIGURATIONS)
def test_every_call_that_draws_noise_of_a_seed_warns_once_at_the_users_line(name):
    X, y = problem(name)
    estimator = model(name, random_state=0)
    for call in calls_that_learn(estimator, X, y):
        with fresh():
            (warning,) = seed_warnings(call)
        assert warning.filename == __file__
        assert "config_context(known_seeds=True)" in str(warning.message)
    for call in calls_that_learn(estimator, X, y):
        with fresh(True):
            assert seed_warnings(call) == []
    for call in calls_that_learn(model(name), X, y):
        with fresh():
            assert seed_warnings(call) == []


@pytest.mark.parametrize("known_seeds", [False, True])
@pytest.mark.parametrize("name", CONFIGURATIONS)
def test_nothing_silences_a_seeded_fit_that_has_a_ledger(name, known_seeds):
    X, y = problem(name)
    ledger = BudgetLedger(epsilon=1e6, delta=0.5)
    estimator = model(name, random_state=0, ledger=ledger)
    for call in calls_that_learn(estimator, X, y):
        with fresh(known_seeds):
            (warning,) = seed_warnings(call)
        assert "buys no privacy" in str(warning.message)
        assert warning.filename == __file__


def test_a_warning_that_is_an_error_leaves_the_old_model_and_charges_nothing():
    X, y = problem("DPLogisticRegression")
    ledger = BudgetLedger(epsilon=3.0)
    estimator = DPLogisticRegression(ledger=ledger).fit(X, y)
    before = estimator.coef_
    with pytest.raises(PrivacyWarning):
        estimator.set_params(random_state=0).fit(X[:, :2], y)
    assert estimator.coef_ is before
    assert len(ledger.history()) == 1


def test_wrappers_of_scikit_learn_leave_the_warning_at_the_users_line():
    X, y = problem("DPLogisticRegression")
    pipeline = make_pipeline(RowNormClipper(), DPLogisticRegression(random_state=0))
    search = GridSearchCV(pipeline, {"dplogisticregression__epsilon": [1.0, 2.0]}, cv=2)
    with fresh():
        (warning,) = seed_warnings(lambda: pipeline.fit(X, y))
        several = seed_warnings(lambda: search.fit(X, y))
    assert warning.filename == __file__
    assert len(several) == 5 and {w.filename for w in several} == {__file__}


def test_contexts_nest_and_end_with_errors():
    def now():
        return skdp.get_config()["known_seeds"]

    outside = now()
    with skdp.config_context(known_seeds=False):
        assert not now()
        with skdp.config_context(known_seeds=True):
            assert now()
            with skdp.config_context():
                assert now()
            with pytest.raises(RuntimeError), skdp.config_context(known_seeds=False):
                assert not now()
                raise RuntimeError
            assert now()
            skdp.set_config(known_seeds=False)
            assert not now()
        assert not now()
    assert now() == outside
    skdp.get_config()["known_seeds"] = not outside  # a copy
    assert now() == outside


def test_a_setting_is_the_processs_and_a_context_the_threads():
    before, seen = skdp.get_config()["known_seeds"], {}

    def look(name):
        thread = threading.Thread(
            target=lambda: seen.update({name: skdp.get_config()["known_seeds"]})
        )
        thread.start()
        thread.join()

    try:
        for value in (False, True):
            skdp.set_config(known_seeds=value)
            skdp.set_config()
            with skdp.config_context(known_seeds=not value):
                look(value)
    finally:
        skdp.set_config(known_seeds=before)
    assert seen == {False: False, True: True}


@pytest.mark.parametrize(
    "value, expected", [("1", True), ("0", False), ("", False), (None, False)]
)
def test_a_process_begins_with_the_environment_variable(value, expected, monkeypatch):
    if value is None:
        monkeypatch.delenv("SKDP_KNOWN_SEEDS")
    else:
        monkeypatch.setenv("SKDP_KNOWN_SEEDS", value)
    code = "import skdp; print(skdp.get_config())"
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert told.stdout.strip() == str({"known_seeds": expected})


def test_seeded_queries_warn_when_they_are_answered_by_the_seed_of_their_fit():
    X, y = problem("DPKernelRidge")
    estimator = DPKernelRidge(release="query", n_queries=5, random_state=0, y_bounds=(-1, 1))
    estimator.fit(X, y).set_params(random_state=None)
    with fresh():
        assert len(seed_warnings(lambda: estimator.predict(X[:1]))) == 1
