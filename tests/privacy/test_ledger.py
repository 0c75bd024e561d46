"""The ledger neither forgets a charge nor lets the budget be spent twice."""

import copy
import importlib.util
import math
import os
import pickle
import random
import re
import shutil
import sqlite3
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.model_selection import GridSearchCV

import skdp.privacy._ledger as ledger_module
from skdp.exceptions import BudgetExceededError
from skdp.privacy import (
    ZCDP,
    ApproxDP,
    BoundedRangeDP,
    BudgetLedger,
    GaussianDP,
    compose,
    gaussian_mu,
)

_script = Path(__file__).parents[2] / "benchmarks" / "ledger_stress.py"
_spec = importlib.util.spec_from_file_location("ledger_stress", _script)
ledger_stress = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(ledger_stress)

forks = pytest.mark.skipif(not hasattr(os, "fork"), reason="This system has no fork.")
# Python 3.12 and later warn of what these tests are about.
fork_warning = pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")


@pytest.fixture
def path(tmp_path):
    return tmp_path / "budget #1 100%?.db"  # a name that a URI has to quote


@pytest.fixture(params=["file", "memory"])
def make(request, path):
    """``make(epsilon, delta)``, once in a file and once in memory."""
    place = path if request.param == "file" else None
    return lambda *budget: BudgetLedger(place, *budget)


def small_gaussian_fit():
    mu = gaussian_mu(epsilon=0.1, delta=1e-6)
    return ApproxDP(0.1, 1e-6, refined=GaussianDP(mu))


def refused(ledger, guarantee):
    """Whether the ledger refuses, and leaves nothing behind."""
    before = ledger.history()
    try:
        ledger.charge(guarantee)
    except BudgetExceededError:
        assert ledger.history() == before
        return True
    return False


# What adds up


def test_a_thousand_thousandths_are_exactly_one():
    ledger = BudgetLedger(epsilon=1.0)
    for _ in range(1000):
        ledger.charge(ApproxDP(0.001))
    assert ledger.spent() == ApproxDP(1.0)
    assert ledger.remaining() == ApproxDP(0.0)
    assert refused(ledger, ApproxDP(1e-15))


def test_a_pure_budget_is_kept_to_the_last_bit():
    # The float nearest to the sum is 1.0; the sum is more.
    ledger = BudgetLedger(epsilon=1.0)
    ledger.charge(ApproxDP(1.0 - 2.0**-53))
    ledger.charge(ApproxDP(2.0**-54))
    assert refused(ledger, ApproxDP(2.0**-54 * 1.5))
    assert refused(ledger, ApproxDP(0.0, 1e-300))


@pytest.mark.parametrize("n_fits", [1, 3, 7, 21])
@pytest.mark.parametrize("point", [(1.0, 1e-5), (0.7, 1e-9)])
def test_a_budget_of_n_equal_fits_bears_them(n_fits, point):
    # In floats the sum of the deltas may exceed the number that one writes for the budget.
    epsilon, delta = (float(f"{n_fits * value:.6g}") for value in point)
    ledger = BudgetLedger(None, epsilon, delta)
    for _ in range(n_fits):
        ledger.charge(ApproxDP(*point))
    assert ledger.spent().epsilon <= ledger.epsilon


def test_fifty_small_gaussian_fits_cost_less_than_their_sum(make):
    ledger = make(2.0, 1e-5)
    for _ in range(50):
        ledger.charge(small_gaussian_fit())  # 5 in total, as points
    # Fifty Gaussians in a row are one with sqrt(50) times the signal: a single release that
    # reads sqrt(50) times as far costs the same.
    alone = GaussianDP(math.sqrt(50) * gaussian_mu(epsilon=0.1, delta=1e-6))
    assert ledger.spent().epsilon == pytest.approx(alone.epsilon_at(1e-5), rel=1e-9)
    assert ledger.spent().epsilon < 0.2 * 50 * 0.1
    assert ledger.spent().delta == 1e-5


def make_like(ledger, delta, n_fits):
    other = BudgetLedger(None, ledger.epsilon, delta)
    for record in ledger.history()[:n_fits]:
        other.charge(record.guarantee)
    return other


def test_accepted_charges_compose_to_at_most_the_budget():
    rng = np.random.default_rng(0)
    kinds = [
        lambda scale: ApproxDP(scale),
        lambda scale: ApproxDP(scale, 1e-7),
        lambda scale: GaussianDP(scale / 4),
    ]
    ledger = BudgetLedger(None, 2.0, 1e-5)
    n_refused = 0
    while n_refused < 3:
        n_refused += refused(ledger, kinds[rng.integers(3)](round(rng.uniform(0.05, 0.6), 3)))
    total = compose(record.guarantee for record in ledger.history())
    assert total.delta_at(2.0) <= 1e-5
    assert ledger.spent().epsilon <= 2.0


@pytest.mark.parametrize(
    ("delta", "spent"),
    [
        pytest.param(0.0, [], id="nothing"),
        pytest.param(0.0, [ApproxDP(0.7)], id="pure"),
        pytest.param(0.0, [ApproxDP(0.1)] * 3, id="pure thrice"),
        pytest.param(0.0, [ApproxDP(1 / 3)], id="many digits"),
        pytest.param(1e-5, [], id="nothing, with delta"),
        pytest.param(1e-5, [ApproxDP(0.7)], id="pure, with delta"),
        pytest.param(1e-5, [ApproxDP(0.1)] * 3, id="pure thrice, with delta"),
        pytest.param(1e-5, [ApproxDP(1 / 3)], id="many digits, with delta"),
        pytest.param(1e-5, [ApproxDP(0.3, 1e-6)], id="approximate"),
        pytest.param(1e-5, [GaussianDP(0.15)], id="Gaussian"),
        pytest.param(1e-5, [GaussianDP(0.1), ApproxDP(0.2, 1e-7), ApproxDP(0.05)], id="a mixture"),
    ],
)
def test_what_remains_can_be_charged(delta, spent):
    ledger = BudgetLedger(None, 1.0, delta)
    for guarantee in spent:
        ledger.charge(guarantee)
    left = ledger.remaining()
    assert left.delta == 0.0
    assert left.epsilon == pytest.approx(1.0 - ledger.spent().epsilon, rel=1e-3)
    ledger.charge(left)
    assert refused(ledger, ApproxDP(1.0))


def test_the_refusal_says_what_was_asked_and_spent_and_what_is_left(make):
    ledger = make(1.0)
    ledger.charge(ApproxDP(0.7))
    with pytest.raises(BudgetExceededError) as error:
        ledger.charge(ApproxDP(0.4, mechanism="objective perturbation"))
    assert str(error.value) == (
        "Asked: 0.4-differential privacy (pure). Left: epsilon=0.3 with delta=0, of epsilon=1.0 "
        "(spent: 0.7, charges: 1). Use a smaller epsilon, or data that are not charged yet. "
        "Nothing was charged. Full guarantee: 0.4-differential privacy (pure) when replacing one "
        "record, by objective perturbation."
    )


@pytest.mark.parametrize("charge", [ApproxDP(0.4, 1e-6), GaussianDP(0.1)], ids=str)
def test_a_pure_ledger_says_why_it_refuses_a_delta(make, charge):
    with pytest.raises(BudgetExceededError, match="accepts pure guarantees only"):
        make(1.0).charge(charge)


def test_the_first_charge_fixes_adjacency_and_unit(make):
    ledger = make(10.0)
    ledger.charge(ApproxDP(1.0, adjacency="add-remove", unit="user"))
    with pytest.raises(ValueError, match=r"got replace-one and user.*Never keep two ledgers"):
        ledger.charge(ApproxDP(1.0, unit="user"))
    with pytest.raises(ValueError, match=r"unit 'user', .*; got add-remove and record"):
        ledger.charge(ApproxDP(1.0, adjacency="add-remove"))
    ledger.charge(ApproxDP(2.0, adjacency="add-remove", unit="user"))
    assert ledger.spent() == ApproxDP(3.0, adjacency="add-remove", unit="user")
    assert ledger.remaining() == ApproxDP(7.0, adjacency="add-remove", unit="user")
    assert len(ledger.history()) == 2


@pytest.mark.parametrize("delta", [0.0, 1e-5])
def test_a_question_is_answered_as_the_charge_would_be_and_records_nothing(make, delta):
    ledger = make(1.0, delta)
    ledger.charge(ApproxDP(0.25))
    for epsilon in (0.5, 0.75, 0.750001, 1.5):
        for point in (0.0, delta / 2):
            asked = ApproxDP(epsilon, point)
            trial = BudgetLedger(epsilon=1.0, delta=delta)
            trial.charge(ApproxDP(0.25))
            if ledger.affords(asked):
                trial.charge(asked)
            else:
                with pytest.raises(BudgetExceededError):
                    trial.charge(asked)
    assert len(ledger.history()) == 1
    with pytest.raises(ValueError, match="guarantee must have adjacency 'replace-one'"):
        ledger.affords(ApproxDP(0.1, adjacency="add-remove"))
    with pytest.raises(TypeError, match="guarantee must be a Guarantee"):
        ledger.affords(0.1)


def test_a_ledger_knows_where_charges_may_follow_from_results(make):
    selection = BoundedRangeDP((0.1,))
    ledger = make(1.0)
    assert ledger._is_filter_for(ApproxDP(0.1))
    ledger.charge(selection)  # pure: it adds up
    assert ledger._is_filter_for(ApproxDP(0.1))
    assert not ledger._is_filter_for(GaussianDP(0.1))
    ledger = BudgetLedger(epsilon=1.0, delta=1e-5)
    assert ledger._is_filter_for(GaussianDP(0.1))
    assert not ledger._is_filter_for(ApproxDP(0.1))  # by losses, which is less than its sum
    assert not ledger._is_filter_for(selection)
    assert ledger._is_filter_for(GaussianDP(0.1).to_approx_dp(1e-6))
    # A point that does not follow from what is behind it would be added up beside it.
    assert not ledger._is_filter_for(ApproxDP(0.1, 1e-9, refined=GaussianDP(0.2)))
    ledger.charge(ApproxDP(0.0))
    ledger.charge(GaussianDP(0.1, caveats=("known",)))
    assert ledger._is_filter_for(GaussianDP(0.2))
    ledger.charge(selection)
    assert not ledger._is_filter_for(GaussianDP(0.2))


@pytest.mark.parametrize("wrong", [0.5, (0.5, 1e-5), None])
def test_a_bare_number_is_no_guarantee(make, wrong):
    with pytest.raises(TypeError, match="must be a Guarantee"):
        make(1.0).charge(wrong)


@pytest.mark.parametrize(
    "huge", [ApproxDP(1e3), ApproxDP(1e300), GaussianDP(1e300), ZCDP(1e300)], ids=str
)
def test_charges_beyond_what_a_float_holds_are_refused_as_others_are(make, huge):
    ledger = make(2.0, 1e-6)
    ledger.charge(GaussianDP(0.1))
    with pytest.raises(BudgetExceededError, match=r"Asked: .* Nothing was charged"):
        ledger.charge(huge)


# The file and its budget


def test_caveats_are_kept_with_a_charge_and_cost_nothing(make):
    book, void = make(1.0, 1e-5), GaussianDP(0.1, caveats=["known seed"])
    for guarantee in (GaussianDP(0.1), void, GaussianDP(0.1)):
        book.charge(guarantee)
    assert [entry.guarantee.caveats for entry in book.history()] == [(), ("known seed",), ()]
    plain = make_like(book, 1e-5, 0)
    for _ in range(3):
        plain.charge(GaussianDP(0.1))
    assert book.spent().caveats == ("known seed",) and plain.spent().caveats == ()
    assert book.spent().epsilon == pytest.approx(plain.spent().epsilon, rel=1e-9)


def test_a_second_opener_shares_the_charges(path):
    first = BudgetLedger(path, 1.0, 1e-5)
    second = BudgetLedger(str(path), epsilon=1.0, delta=1e-5)
    third = BudgetLedger(path)
    first.charge(ApproxDP(0.6))
    assert refused(second, ApproxDP(0.6))
    assert (third.epsilon, third.delta) == (1.0, 1e-5)
    assert third.history() == first.history()


def test_the_budget_does_not_change(path):
    ledger = BudgetLedger(path, 1.0, 1e-5)
    for other in [(2.0, 1e-5), (1.0, 1e-4), (1.0,), (0.5, 1e-5)]:
        with pytest.raises(ValueError, match=r"budget of .*, epsilon=1.0, delta=1e-05; got"):
            BudgetLedger(path, *other)
    ledger.epsilon = 100.0
    with pytest.raises(ValueError, match="Another ledger"):
        ledger.charge(ApproxDP(50.0))
    assert BudgetLedger(path).epsilon == 1.0


@pytest.mark.parametrize("epsilon", [0.0, -1.0, math.nan, math.inf, "1"])
def test_a_budget_needs_a_positive_epsilon(make, epsilon):
    with pytest.raises(ValueError, match="epsilon must be a positive"):
        make(epsilon)


def test_a_ledger_needs_a_budget(path):
    with pytest.raises(ValueError, match="epsilon must be given"):
        BudgetLedger()
    with pytest.raises(ValueError, match="epsilon must be given"):
        BudgetLedger(path, delta=1e-5)
    with pytest.raises(FileNotFoundError, match="There is no ledger"):
        BudgetLedger(path)
    assert not path.exists()
    with pytest.raises(OSError, match="no ledger"):
        BudgetLedger(path.parent / "no folder" / "budget.db", 1.0)


def test_a_ledger_that_vanished_is_not_begun_again(path):
    ledger = BudgetLedger(path, 1.0)
    ledger.charge(ApproxDP(1.0))
    path.unlink()
    for attempt in (lambda: ledger.charge(ApproxDP(1.0)), ledger.spent):
        with pytest.raises(FileNotFoundError, match="There is no ledger"):
            attempt()
    assert not path.exists()


def test_another_ledger_in_the_same_place_is_noticed(path):
    ledger = BudgetLedger(path, 1.0)
    path.unlink()
    BudgetLedger(path, 1.0)
    for stale in (ledger, pickle.loads(pickle.dumps(ledger))):
        with pytest.raises(ValueError, match="Another ledger"):
            stale.charge(ApproxDP(1.0))


def test_foreign_and_damaged_files_are_refused_and_left_alone(path):
    path.write_bytes(b"epsilon,delta\n" * 1000)
    with pytest.raises(ValueError, match="damaged or is not a ledger: file is not a database"):
        BudgetLedger(path, 1.0)
    assert path.read_bytes() == b"epsilon,delta\n" * 1000

    path.unlink()
    with sqlite3.connect(path) as db:
        db.execute("CREATE TABLE budget (epsilon)")
    db.close()
    before = path.read_bytes()
    for arguments in [(1.0,), ()]:
        with pytest.raises(ValueError, match="is not a ledger"):
            BudgetLedger(path, *arguments)
    assert path.read_bytes() == before

    path.unlink()
    path.touch()
    with pytest.raises(ValueError, match="is not a ledger"):
        BudgetLedger(path)


def test_removed_charges_are_noticed(path):
    ledger = BudgetLedger(path, 1.0)
    for _ in range(3):
        ledger.charge(ApproxDP(0.1))
    with sqlite3.connect(path) as db:
        db.execute("DELETE FROM charge WHERE id = 3")
    db.close()
    with pytest.raises(ValueError, match="lacks some of its 3 charges"):
        ledger.charge(ApproxDP(0.1))


def test_a_charge_that_cannot_be_recorded_raises(path, monkeypatch):
    monkeypatch.setattr(ledger_module, "_PATIENCE", 0.05)
    ledger = BudgetLedger(path, 1.0)
    with sqlite3.connect(path, isolation_level=None) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(OSError, match="cannot be used: database is locked"):
            ledger.charge(ApproxDP(0.1))
        assert ledger.history() == []  # readers need not wait
        other.execute("COMMIT")
        # The charge is inserted, but a reader forbids the commit.
        other.execute("BEGIN")
        other.execute("SELECT * FROM charge").fetchall()
        with pytest.raises(OSError, match="database is locked"):
            ledger.charge(ApproxDP(0.1))
        other.execute("COMMIT")
    other.close()
    assert ledger.history() == []
    ledger.charge(ApproxDP(0.1))


# Processes and threads


def test_processes_never_spend_more_than_the_budget(path, repetitions):
    n_processes, n_charges = repetitions(8, 4), repetitions(200, 50)
    n_allowed = repetitions(1000, 125)
    won = ledger_stress.compete(str(path), n_processes, n_charges, n_allowed)
    ledger = BudgetLedger(path)
    assert sum(won) == len(ledger.history()) == n_allowed
    assert ledger.spent() == ApproxDP(1.0)


@pytest.mark.skipif(os.name == "nt", reason="There is no kill -9.")
def test_kill_9_never_loses_a_fit_that_started(path, repetitions):
    BudgetLedger(path, 1.0)
    rng = random.Random(0)
    for _ in range(repetitions(50, 2)):
        started, _ = ledger_stress.crash(str(path), rng)
        assert all(started.values())
        assert ledger_stress.missing_fits(path, started) == []


def test_a_journal_left_by_a_crash_is_rolled_back(path, tmp_path):
    # The moment a kill rarely hits: pages of the new charge are in the file, the commit is not.
    ledger = BudgetLedger(path, 1.0)
    ledger.charge(ApproxDP(0.1), label="kept")
    crashed = tmp_path / "crashed.db"
    db = sqlite3.connect(path, isolation_level=None)
    db.execute("PRAGMA cache_size = 1")
    db.execute("PRAGMA cache_spill = 1")
    db.execute("BEGIN IMMEDIATE")
    for k in range(2000):
        row = (f"half {k}", 1, 0)
        db.execute(
            "INSERT INTO charge (time, label, guarantee, pid, digest) VALUES (?, ?, ?, ?, ?)",
            ("now", *row, b""),
        )
    shutil.copy(f"{path}-journal", f"{crashed}-journal")
    shutil.copy(path, crashed)
    db.rollback()
    db.close()
    assert b"half" in crashed.read_bytes()
    assert [record.label for record in BudgetLedger(crashed).history()] == ["kept"]


@pytest.mark.parametrize("n_charges", [100])
def test_threads_never_spend_more_than_the_budget(make, n_charges):
    ledger = make(n_charges * 0.5 / 100)
    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(lambda _: refused_once(ledger), range(n_charges)))
    assert results.count(False) == len(ledger.history()) == 50


def refused_once(ledger):
    try:
        ledger.charge(ApproxDP(0.01))
    except BudgetExceededError:
        return True
    return False


def in_child(function):
    """Run ``function`` in a fork and return the text of its result or error."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            text = str(function())
        except BaseException as error:
            text = f"{type(error).__name__}: {error}"
        os.write(writing, text.encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        text = pipe.read()
    os.waitpid(child, 0)
    return text


@forks
@fork_warning
def test_a_fork_while_other_threads_charge_is_sound(path):
    ledger = BudgetLedger(path, 1.0)
    stop = threading.Event()

    def charge_on():
        while not stop.is_set():
            ledger.charge(ApproxDP(1e-9))
            time.sleep(0.001)  # or they would hardly let go of the lock that a fork waits for

    with ThreadPoolExecutor(2) as pool:
        running = [pool.submit(charge_on) for _ in range(2)]
        answers = [in_child(lambda: ledger.charge(ApproxDP(1e-9), "child")) for _ in range(8)]
        stop.set()
        for thread in running:
            thread.result()
    assert answers == ["None"] * 8
    assert [record.label for record in ledger.history()].count("child") == 8


@forks
@fork_warning
def test_a_ledger_in_memory_says_that_it_belongs_to_one_process():
    ledger = BudgetLedger(epsilon=1.0)
    dump = pickle.dumps(ledger)
    attempts = {
        "charge": lambda: ledger.charge(ApproxDP(0.1)),
        "spent": ledger.spent,
        "remaining": ledger.remaining,
        "history": ledger.history,
        "str": lambda: str(ledger),
        "unpickled": lambda: pickle.loads(dump).charge(ApproxDP(0.1)),
    }
    for attempt in attempts.values():
        assert in_child(attempt).startswith("RuntimeError: A ledger in memory belongs to")
    assert in_child(lambda: repr(pickle.loads(dump))) == "BudgetLedger(epsilon=1.0, delta=0.0)"
    ledger.charge(ApproxDP(0.1))
    assert len(ledger.history()) == 1


# Copies


def test_clones_and_copies_are_the_ledger_itself(make):
    ledger = make(1.0)
    assert clone(ledger) is ledger
    assert copy.copy(ledger) is ledger
    assert copy.deepcopy({"ledger": [ledger]})["ledger"][0] is ledger


def test_a_pickle_shares_the_charges(make):
    ledger = make(1.0, 1e-5)
    other = pickle.loads(pickle.dumps(ledger))
    other.charge(ApproxDP(0.6))
    assert refused(ledger, ApproxDP(0.6))
    assert ledger.history() == other.history()
    assert (other.epsilon, other.delta, other.path) == (1.0, 1e-5, ledger.path)


def test_a_pickle_out_of_reach_can_be_loaded_and_refuses(path):
    ledger = BudgetLedger(path, 1.0)
    dump = pickle.dumps(ledger)
    path.unlink()
    with pytest.raises(FileNotFoundError, match="There is no ledger"):
        pickle.loads(dump).charge(ApproxDP(0.1))

    dump = pickle.dumps(BudgetLedger(epsilon=1.0))
    gone = pickle.loads(dump)
    assert repr(gone) == "BudgetLedger(epsilon=1.0, delta=0.0)"
    with pytest.raises(RuntimeError, match="or the ledger was deleted"):
        gone.charge(ApproxDP(0.1))


@pytest.fixture
def search():
    """``search(ledger, n_jobs)`` fits 4 candidates on 5 folds, and the best once more."""

    class Charging(ClassifierMixin, BaseEstimator):  # local, so that workers get it by value
        def __init__(self, epsilon=1.0, ledger=None):
            self.epsilon = epsilon
            self.ledger = ledger

        def fit(self, X, y):
            self.ledger.charge(ApproxDP(self.epsilon), label="fit")
            self.classes_ = np.unique(y)
            return self

        def predict(self, X):
            return np.full(len(X), self.classes_[0])

    def run(ledger, n_jobs):
        # Candidates of one epsilon: the grid is over something else in real life.
        grid = {"epsilon": [1.0, 1.0, 1.0, 1.0]}
        model = GridSearchCV(Charging(ledger=ledger), grid, n_jobs=n_jobs, error_score="raise")
        return model.fit(np.zeros((20, 1)), np.arange(20) % 2)

    return run


@pytest.mark.parametrize("n_jobs", [None, 1, 2])
def test_a_grid_search_charges_every_fit(path, search, n_jobs):
    ledger = BudgetLedger(path, 21.0)
    model = search(ledger, n_jobs)
    assert len(ledger.history()) == 21
    assert ledger.spent() == ApproxDP(21.0)
    assert model.best_estimator_.ledger is ledger
    with pytest.raises(BudgetExceededError):
        search(ledger, n_jobs)


def test_a_grid_search_in_other_processes_refuses_a_ledger_in_memory(search):
    ledger = BudgetLedger(epsilon=21.0)
    with pytest.raises(RuntimeError, match="Use a path to share a ledger"):
        search(ledger, 2)
    assert len(search(ledger, 1).best_estimator_.ledger.history()) == 21


# Views


def test_the_history_records_each_charge(make):
    ledger = make(1.0, 1e-5)
    guarantees = [ApproxDP(0.1, mechanism="m", source="s"), GaussianDP(0.1), small_gaussian_fit()]
    for k, guarantee in enumerate(guarantees):
        ledger.charge(guarantee, label=f"fit {k} \N{GREEK SMALL LETTER EPSILON}")
    records = ledger.history()
    assert [record.guarantee for record in records] == guarantees
    assert [record.id for record in records] == [1, 2, 3]
    assert {record.pid for record in records} == {os.getpid()}
    assert records[1].label == "fit 1 \N{GREEK SMALL LETTER EPSILON}"
    assert records[0].time.utcoffset() == timedelta(0)
    assert abs(records[0].time.timestamp() - time.time()) < 60
    with pytest.raises(AttributeError):
        records[0].label = "another"


@pytest.mark.parametrize("mu", [0.05, 0.1, 0.2, 0.3])
def test_who_types_in_what_is_left_is_not_refused(mu):
    ledger = BudgetLedger(epsilon=5.0, delta=1e-5)
    ledger.charge(GaussianDP(mu))
    (left,) = re.findall(r"Left: epsilon=(\S+) with", str(ledger))
    assert len(left) <= 7
    assert ledger.affords(ApproxDP(float(left)))
    assert left in ledger._repr_html_()
    for delta, epsilon in re.findall(
        r"<td[^>]*>(5e-06|1e-06)</td><td[^>]*>([^<]+)</td>", ledger._repr_html_()
    ):
        assert ledger.affords(ApproxDP(float(epsilon), float(delta)))


def test_the_html_view_escapes_labels(make):
    ledger = make(1.0)
    ledger.charge(ApproxDP(0.1, mechanism="<i>m</i>"), label="<script>alert('x')</script>")
    view = ledger._repr_html_()
    assert "<script" not in view
    assert "<i>" not in view
    assert "&lt;script&gt;alert(&#x27;x&#x27;)&lt;/script&gt;" in view
