"""Who records releases hears of all of them, and what was fitted meanwhile is void."""

import copy
import io
import pickle
import threading
from pathlib import Path

import joblib
import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy import sparse
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from support.configurations import CONFIGURATIONS, EVERYTHING, fitted, model, outcome, problem

from skdp.audit import Transcript, recording
from skdp.kernel import ReleasedKernelRegressor
from skdp.linear_model import DPLogisticRegression, MIPrivateSGDRegressor
from skdp.mechanisms import Released, gaussian_mechanism, laplace_mechanism
from skdp.preprocessing._base import PrivateTransformer
from skdp.privacy import ApproxDP, BudgetLedger

EVERY = pytest.mark.parametrize("name", CONFIGURATIONS)
STREAMS = [name for name, kind in CONFIGURATIONS.items() if hasattr(kind, "partial_fit")]
QUERIES = [name for name in CONFIGURATIONS if "release=query" in name]
VOID = ("recorded: void",)


def begun(estimator, X, y, method="fit"):
    """The estimator, fitted by the method that begins a model."""
    if method == "partial_fit" and "classes" in estimator.get_params():
        estimator.set_params(classes=[0, 1])
    return getattr(estimator, method)(X, y)


def beginnings(name):
    return ("fit", "partial_fit") if name in STREAMS else ("fit",)


def is_refused(estimator):
    """Whether every way out of the process is closed; none, or all are."""

    def refuses(write):
        try:
            write()
        except pickle.PicklingError as error:
            return "recorded" in str(error) and "Fit it again" in str(error)
        return False

    ways = [lambda p=protocol: pickle.dumps(estimator, p) for protocol in range(6)]
    ways += [
        lambda: joblib.dump(estimator, io.BytesIO()),
        lambda: pickle.dumps({"within": [estimator]}),
        lambda: joblib.hash(estimator),
    ]
    found = set(map(refuses, ways))
    assert len(found) == 1
    return found.pop()


# Models


@EVERY
def test_a_model_fitted_under_recording_says_so_and_is_charged_as_ever(name):
    X, y = problem(name)
    for method in beginnings(name):
        charged, models = [], []
        for recorded in (False, True):
            estimator = model(name, ledger=BudgetLedger(epsilon=1e6, delta=0.5))
            with recording() as transcript:
                if recorded:
                    outcome(begun(estimator, X, y, method), X)
            if not recorded:
                outcome(begun(estimator, X, y, method), X)
            assert bool(len(transcript)) == recorded
            history = estimator.ledger.history()
            charged.append([(entry.label, entry.guarantee) for entry in history])
            models.append(estimator.guarantee_)
        plain, void = models
        assert charged[0] == charged[1] and charged[0][-1][1] == plain
        assert plain.caveats == () and void.caveats == VOID
        assert void == plain.with_caveats(*VOID) != plain
        assert str(void) == f"{plain} Caveat: recorded: void."


@pytest.mark.parametrize("name", [*CONFIGURATIONS, ReleasedKernelRegressor.__name__])
def test_a_model_fitted_under_recording_stays_in_its_process(name):
    X, y = problem(name)
    with recording():
        void = fitted(name, X, y)
    told = outcome(void, X)
    assert void.guarantee_.caveats == VOID and is_refused(void)
    # Within the process it can be copied, and the copies say the same.
    for copied in (copy.copy(void), copy.deepcopy(void)):
        assert copied.guarantee_ == void.guarantee_ and is_refused(copied)
        assert_array_equal(outcome(copied, X), told)
        assert vars(copied).keys() == vars(void).keys()


@EVERY
def test_a_clone_and_a_fresh_fit_have_nothing_of_a_recording(name):
    X, y = problem(name)
    with recording():
        void = model(name).fit(X, y)
        again = clone(void)
        assert not is_refused(again)  # as workers are sent it
    assert vars(again).keys() == again.get_params(deep=False).keys()
    for estimator in (again, void):
        assert estimator.fit(X, y).guarantee_.caveats == ()
        assert not is_refused(estimator)
        told = outcome(pickle.loads(pickle.dumps(estimator)), X)
        assert_array_equal(told, outcome(estimator, X))


def test_a_failed_fit_under_recording_leaves_the_old_model():
    X, y = problem("DPLogisticRegression")
    estimator = DPLogisticRegression().fit(X, y)
    before = estimator.guarantee_
    with recording() as transcript, pytest.raises(ValueError, match="epsilon must"):
        estimator.set_params(epsilon=-1.0).fit(X, y)
    assert len(transcript) == 0 and estimator.guarantee_ is before and not is_refused(estimator)


# Streams


@pytest.mark.parametrize("name", STREAMS)
def test_a_stream_that_was_ever_recorded_stays_void(name):
    if isinstance(EVERYTHING[name], PrivateTransformer):
        return steps_stay_void(name)
    options = {"n_passes": 1} if "n_passes" in EVERYTHING[name].get_params() else {}
    X, y = problem(name)
    for recorded in range(3):
        estimator, told = model(name, **options), []
        for call, rows in enumerate((slice(20), slice(20, 40), slice(40, 60))):
            if call == recorded:
                with recording() as transcript:
                    begun(estimator, X[rows], y[rows], "partial_fit")
                    estimator.predict(X[:1])
                assert len(transcript)
            else:
                begun(estimator, X[rows], y[rows], "partial_fit")
            told.append(estimator.guarantee_.caveats)
        assert told == [()] * recorded + [VOID] * (3 - recorded)
        assert is_refused(estimator)
    assert estimator.fit(X, y).guarantee_.caveats == ()


def steps_stay_void(name):
    """A step, of which only calls that learn are recorded."""
    X, _ = problem(name)
    estimator = model(name).partial_fit(X[:20])
    with recording():
        assert estimator.partial_fit(X[20:40]).guarantee_.caveats == ()
        estimator.partial_fit(X[20:40], refresh=True)
    assert estimator.partial_fit(X[40:], refresh=True).guarantee_.caveats == VOID
    assert is_refused(estimator)


@pytest.mark.parametrize("options", [{}, {"feedback": "bandit", "perturbation": "vector"}])
def test_a_learner_of_messages_is_void_if_it_learned_under_recording(options):
    estimator = MIPrivateSGDRegressor(**options, y_bounds=(-1.0, 1.0)).partial_fit_noised(
        np.ones((3, 4))
    )
    assert estimator.guarantee_.caveats == ()
    with recording():
        estimator.partial_fit_noised(np.ones((3, 4)))
    assert estimator.partial_fit_noised(np.ones((3, 4))).guarantee_.caveats == VOID
    assert is_refused(estimator)
    with recording():
        begun = MIPrivateSGDRegressor(**options, y_bounds=(-1.0, 1.0)).partial_fit_noised(
            np.ones((3, 4))
        )
    assert begun.guarantee_.caveats == VOID


# Queries


@pytest.mark.parametrize("name", QUERIES)
def test_an_answer_that_was_recorded_makes_its_model_void(name):
    X, y = problem(name)
    estimator = model(name).fit(X, y)
    estimator.predict(X[:5])
    assert estimator.guarantee_.caveats == () and not is_refused(estimator)
    with recording() as transcript:
        estimator.predict(X[:8])
    assert len(transcript) == 3  # of the others the answers are known
    assert estimator.guarantee_.caveats == VOID and is_refused(estimator)
    estimator.predict(X[:9])
    assert estimator.guarantee_.caveats == VOID
    if name in STREAMS:
        assert estimator.partial_fit(X, y).guarantee_.caveats == VOID
    assert estimator.fit(X, y).guarantee_.caveats == ()


def test_a_search_within_a_recording_is_as_void_as_its_model():
    X, y = problem("DPLogisticRegression")
    with recording() as transcript:
        search = GridSearchCV(DPLogisticRegression(), {"C": [0.5, 1.0]}, cv=2)
        assert not is_refused(search)  # workers are sent what is not fitted
        search.fit(X, y)
    assert sum(isinstance(one, Released) for one in transcript) == 5  # of the fits
    assert search.best_estimator_.guarantee_.caveats == VOID
    assert is_refused(search)


# Transcripts


def told(value=0.1234567891, seed=None):
    return laplace_mechanism(
        [value], l1_sensitivity=1.0, guarantee=ApproxDP(0.5), random_state=seed
    )


def test_a_transcript_holds_what_was_asked_and_what_was_released():
    with recording() as transcript:
        first = told(2.0)
        second = gaussian_mechanism([3.0, 4.0], l2_sensitivity=5.0, guarantee=ApproxDP(1.0, 1e-5))
    told(3.0)
    assert isinstance(transcript, Transcript) and len(transcript) == 2
    one, two = transcript
    assert (one.law.kind, two.law.kind) == ("laplace", "gaussian")
    assert (one.sensitivity, two.sensitivity) == (1.0, 5.0)
    assert one.law.guarantee.epsilon == 0.5
    for record, asked, released in ((one, [2.0], first), (two, [3.0, 4.0], second)):
        np.testing.assert_allclose(record.asked, asked, atol=record.step)
        assert_array_equal(record.released, released)
        assert record.where.startswith(f"{__name__}:")
    assert one.where.endswith(" told")
    assert two.where.endswith(" test_a_transcript_holds_what_was_asked_and_what_was_released")


def test_a_transcript_shows_no_private_value_and_stays_in_its_process():
    with recording() as transcript:
        released = told(0.1234567891, seed=0)
    record = transcript[0]
    for view in (repr(transcript), str(transcript), repr(record), str(record), f"{transcript}"):
        assert "0.12" not in view and str(released[0])[:5] not in view
    assert repr(transcript) == "<Transcript of 1 releases>"
    for write in (pickle.dumps, copy.deepcopy, copy.copy):
        with pytest.raises(pickle.PicklingError, match="private values"):
            write(transcript)


def test_a_recording_hears_its_own_thread_only():
    X, y = problem("DPLogisticRegression")
    heard, models, inside, done = [], [], threading.Event(), threading.Event()

    def other():
        with recording() as transcript:
            inside.set()
            assert done.wait(30)
        heard.append(len(transcript))

    thread = threading.Thread(target=other)
    thread.start()
    assert inside.wait(30)
    models.append(DPLogisticRegression().fit(X, y))  # while another thread records
    done.set()
    thread.join()
    with recording() as transcript:
        thread = threading.Thread(target=lambda: models.append(DPLogisticRegression().fit(X, y)))
        thread.start()
        thread.join()
    assert heard == [0] and len(transcript) == 0
    assert [estimator.guarantee_.caveats for estimator in models] == [(), ()]


def wide_rows():
    """Rows of more columns than second moments are read of."""
    X, y = np.random.default_rng(0).normal(size=(5000, 4)) / 20.0, np.arange(5000) % 2
    wide = sparse.csr_array(X)
    wide.resize(5000, 1100)
    return wide, y


@pytest.mark.parametrize("name", [*CONFIGURATIONS, "wide rows"])
def test_whatever_a_fit_releases_stands_in_the_table_of_claims(name):
    page = Path(__file__).parents[2] / "doc" / "claims.rst"
    table = page.read_text(encoding="utf-8").split(".. claims-begin")[1].split(".. claims-end")[0]
    with recording() as transcript:
        if name == "wide rows":
            DPLogisticRegression(delta=1e-5).fit(*wide_rows())
        else:
            outcome(fitted(name, *problem(name)), problem(name)[0])
    places = {record.where for record in transcript if hasattr(record, "where")}
    modules = {place.split(":")[0].removeprefix("skdp.").replace(".", "/") for place in places}
    assert modules and all(f"``{module}.py``" in table for module in modules), modules
