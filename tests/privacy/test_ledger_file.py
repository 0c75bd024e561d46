"""What stands on disk: who may read it, what is damage, older files, and who waits for whom."""

import copy
import os
import pickle
import shutil
import sqlite3
import stat
import subprocess
import sys
import threading
import time

import pytest
from sklearn.base import clone

import skdp.privacy._ledger_file as file
from skdp.exceptions import BudgetExceededError
from skdp.privacy import ApproxDP, BudgetLedger, GaussianDP

forks = pytest.mark.skipif(not hasattr(os, "fork"), reason="This system has no fork.")
fork_warning = pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
posix = pytest.mark.skipif(os.name == "nt", reason="Windows has no such permissions.")


@pytest.fixture
def path(tmp_path):
    return tmp_path / "budget.db"


def others_in(path):
    return sorted(set(os.listdir(path.parent)) - {path.name})


# The file and its making


@posix
@pytest.mark.parametrize(("options", "mode"), [({}, 0o600), ({"mode": 0o660}, 0o660)])
def test_a_file_is_for_its_owner_or_for_a_group_that_is_asked_for(path, options, mode):
    before = os.umask(0o077)
    try:
        BudgetLedger(path, 1.0, **options).charge(ApproxDP(0.1))
    finally:
        os.umask(before)
    assert stat.S_IMODE(path.stat().st_mode) == mode
    assert others_in(path) == []


def test_an_emptied_file_is_an_error_and_stays_empty(path):
    ledger = BudgetLedger(path, 1.0)
    ledger.charge(ApproxDP(1.0))
    path.write_bytes(b"")
    for attempt in (
        lambda: ledger.charge(ApproxDP(1.0)),
        lambda: BudgetLedger(path, 1.0),
        lambda: BudgetLedger(path),
        ledger.spent,
        ledger.history,
    ):
        with pytest.raises(
            ValueError, match=r"is empty and is not a ledger.*needs a path without a file"
        ):
            attempt()
    assert path.read_bytes() == b""
    assert others_in(path) == []


def test_of_two_makers_the_second_gets_the_file_of_the_first(path, monkeypatch):
    put = file._put

    def late(name, place):
        monkeypatch.setattr(file, "_put", put)
        BudgetLedger(path, 1.0).charge(ApproxDP(0.6))
        put(name, place)

    monkeypatch.setattr(file, "_put", late)
    ledger = BudgetLedger(path, 1.0)
    assert ledger.spent() == ApproxDP(0.6)
    assert others_in(path) == []

    path.unlink()
    monkeypatch.setattr(file, "_put", late)
    with pytest.raises(ValueError, match=r"must equal the fixed budget .*; got epsilon=2\.0"):
        BudgetLedger(path, 2.0)
    assert others_in(path) == []


def test_a_file_is_made_where_hard_links_are_missing(path, monkeypatch):
    def no_link(source, target):
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr(os, "link", no_link)
    BudgetLedger(path, 1.0).charge(ApproxDP(0.6))
    assert BudgetLedger(path, 1.0).spent() == ApproxDP(0.6)
    assert others_in(path) == []


def test_many_makers_at_once_make_one_ledger(path):
    made, start = [], threading.Barrier(8)

    def make():
        start.wait()
        made.append(BudgetLedger(path, 1.0))

    threads = [threading.Thread(target=make) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({ledger.identity for ledger in made}) == 1
    assert len(made) == 8
    assert others_in(path) == []


# Damage


@pytest.mark.parametrize(
    "edit",
    [
        "UPDATE charge SET label = 'another' WHERE id = 2",
        "UPDATE charge SET guarantee = 1 WHERE id = 2",
        "UPDATE charge SET stream = 'a', version = '1' WHERE id = 1",
        "UPDATE charge SET team = 'B' WHERE id = 3",
        "UPDATE charge SET digest = x'00' WHERE id = 3",
        "UPDATE guarantee SET body = replace(body, '0.2', '0.15') WHERE id = 2",
    ],
)
def test_edited_charges_are_noticed(path, edit):
    ledger = BudgetLedger(path, 1.0, label="A")
    for epsilon in (0.1, 0.2, 0.3):
        ledger.charge(ApproxDP(epsilon))
    with sqlite3.connect(path) as db:
        db.execute(edit)
    db.close()
    dump = pickle.dumps(ledger)
    with pytest.raises(ValueError, match=r"damaged: charge . or one before it was edited"):
        ledger.history()
    del ledger
    with pytest.raises(ValueError, match=r"damaged: charge . or one before it was edited"):
        pickle.loads(dump).charge(ApproxDP(0.1))


@pytest.mark.parametrize("number", [1, 2, 3])
def test_a_removed_step_of_a_stream_is_noticed(path, number):
    ledger = BudgetLedger(path, 1.0)
    for k in range(3):
        ledger.charge_stream(
            ApproxDP(0.1 * (k + 1)), stream="a", version=k, continues=k - 1 if k else None
        )
    with sqlite3.connect(path) as db:
        db.execute("DELETE FROM charge WHERE id = ?", (number,))
    db.close()
    with pytest.raises(ValueError, match="lacks some of its 3 charges"):
        ledger.charge(ApproxDP(0.1))


@pytest.mark.parametrize("use", ["spent", "history", "charge", "another handle"])
def test_an_older_copy_in_its_place_is_noticed(path, tmp_path, use):
    ledger = BudgetLedger(path, 1.0)
    ledger.charge(ApproxDP(0.3))
    shutil.copy(path, tmp_path / "older")
    ledger.charge(ApproxDP(0.6))
    shutil.copy(tmp_path / "older", path)
    with pytest.raises(ValueError, match="an older or edited copy"):
        if use == "charge":
            ledger.charge(ApproxDP(0.7))
        elif use == "another handle":
            BudgetLedger(path).spent()
        else:
            getattr(ledger, use)()
    with sqlite3.connect(path) as db:
        assert db.execute("SELECT COUNT(*) FROM charge").fetchone() == (1,)
    db.close()


# Format 1


def first_format(path, budget, charges):
    """A file as it was before streams had one entry."""
    with sqlite3.connect(path) as db:
        for statement in file._SCHEMA:
            db.execute(statement)
        db.execute("INSERT INTO budget VALUES ('key', ?, ?)", budget)
        for guarantee, label in charges:
            body = file.to_json(guarantee)
            db.execute("INSERT OR IGNORE INTO guarantee (body) VALUES (?)", (body,))
            db.execute(
                "INSERT INTO charge (time, label, guarantee, pid) VALUES (?, ?, "
                "(SELECT id FROM guarantee WHERE body = ?), 1)",
                ("2026-01-01T00:00:00+00:00", label, body),
            )
    db.close()


def increments(n_chunks):
    """What a pure stream charged: its first release, and how much the worst record lost more."""
    epsilons = [0.3, *[0.15] * (n_chunks - 1)]
    return [
        (ApproxDP(epsilon, mechanism="output perturbation"), "DPOnlineKernelRegressor")
        for epsilon in epsilons
    ]


def version_of(path):
    with sqlite3.connect(path) as db:
        version = db.execute("PRAGMA user_version").fetchone()[0]
    db.close()
    return version


def test_a_file_of_format_1_is_read_as_it_is_and_migrates_at_the_first_charge(path):
    charges = [(ApproxDP(0.1), "fit"), (GaussianDP(0.1), "fit 2"), *increments(3)]
    first_format(path, (2.0, 1e-6), charges)
    ledger = BudgetLedger(path)
    before, spent = ledger.history(), ledger.spent()
    assert [record.guarantee for record in before] == [guarantee for guarantee, _ in charges]
    with pytest.raises(BudgetExceededError):
        ledger.charge(ApproxDP(2.0))
    assert version_of(path) == 1

    ledger.charge(ApproxDP(0.0), "new")
    assert version_of(path) == 2
    *migrated, new = BudgetLedger(path).history()
    assert migrated == before
    assert (new.id, new.label) == (6, "new")
    assert ledger.spent() == spent
    assert ledger.identity == "key"


def test_an_older_process_that_still_has_the_file_cannot_write_after_the_migration(path):
    first_format(path, (2.0, 1e-6), [(ApproxDP(0.1), "fit")])
    ledger = BudgetLedger(path)
    ledger.charge(ApproxDP(0.2))
    older = sqlite3.connect(path)
    with pytest.raises(sqlite3.IntegrityError, match="open it with a newer version of skdp"):
        older.execute(
            "INSERT INTO charge (time, label, guarantee, pid) "
            "VALUES ('2026-01-01T00:00:00+00:00', '', 1, 1)"
        )
    older.close()
    ledger.charge(ApproxDP(0.3))
    assert len(ledger.history()) == 3


@pytest.mark.parametrize("is_migrated", [False, True])
def test_increments_of_format_1_are_summed_plainly(path, is_migrated):
    # As they were composed, 0.3 + 51 * 0.15 = 7.95 passed for less than 6 at 1e-6.
    first_format(path, (9.0, 1e-6), increments(52))
    ledger = BudgetLedger(path)
    if is_migrated:
        ledger.charge(ApproxDP(0.0))
    assert 7.9 < ledger.spent().epsilon <= 7.95
    assert ledger.remaining().epsilon < 1.1
    with pytest.raises(BudgetExceededError):
        ledger.charge(ApproxDP(1.2))


def test_a_file_of_a_newer_version_is_refused(path):
    BudgetLedger(path, 1.0)
    with sqlite3.connect(path) as db:
        db.execute("PRAGMA user_version = 4")
    db.close()
    with pytest.raises(ValueError, match="newer version of skdp"):
        BudgetLedger(path)


# Labels


def test_labels_cannot_steer_a_terminal(path):
    ledger = BudgetLedger(path, 1.0, label="team\x1b[31m A\n")
    hostile = "\x1b[2Jfit\r\n1\x00 \u202etxt\u202c \x1b]0;title\x07end\u2028\x9b31m"
    ledger.charge(ApproxDP(0.1, mechanism="m\x1b[1mn\u202e"), label=hostile)
    (record,) = ledger.history()
    assert (record.label, record.team) == ("fit 1 txt end 31m", "team A")
    for view in (str(ledger), ledger._repr_html_()):
        assert not set(view) & set("\x1b\x00\r\u202e\u2028\x9b")
    assert "by mn." in ledger._repr_html_()


def test_teams_are_told_apart(path):
    first = BudgetLedger(path, 1.0, label="team A")
    second = BudgetLedger(path, label="team B")
    first.charge(ApproxDP(0.1), "fit")
    second.charge(ApproxDP(0.1), "fit")
    pickle.loads(pickle.dumps(first)).charge(ApproxDP(0.1))
    copy.deepcopy(clone(first)).charge(ApproxDP(0.1))
    BudgetLedger(path).charge(ApproxDP(0.1))
    assert [r.team for r in second.history()] == ["team A", "team B", "team A", "team A", ""]
    assert str(first).splitlines()[1].split() == ["#", "UTC", "team", "label", "guarantee", "pid"]
    assert ">team B</td>" in first._repr_html_()
    assert repr(first) == "BudgetLedger('budget.db', epsilon=1.0, delta=0.0, label='team A')"


# Who waits for whom


_HOLD = """
import sqlite3, sys
db = sqlite3.connect(sys.argv[1], isolation_level=None)
db.execute("BEGIN IMMEDIATE")
print("held", flush=True)
sys.stdin.readline()
db.execute("ROLLBACK")
"""


@pytest.fixture
def waiting(path):
    """A ledger of which a thread waits for another process; call it to end that."""
    ledger = BudgetLedger(path, 1.0)
    command = [sys.executable, "-c", _HOLD, str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout.readline().strip() == b"held"
        thread = threading.Thread(target=ledger.charge, args=(ApproxDP(0.1), "waited"))
        thread.start()
        time.sleep(0.1)

        def release():
            if other.poll() is None:
                other.communicate(b"\n")
            thread.join(60)
            assert [r.label for r in ledger.history()].count("waited") == 1

        yield ledger, release
        release()


def ends(action):
    """Whether ``action`` ends although the other thread goes on waiting."""
    thread = threading.Thread(target=action, daemon=True)
    thread.start()
    thread.join(20)
    return not thread.is_alive()


def test_who_waits_for_one_file_does_not_stop_a_charge_to_another(waiting, path):
    elsewhere = BudgetLedger(path.parent / "other.db", 1.0)
    in_memory = BudgetLedger(epsilon=1.0)
    for ledger in (elsewhere, in_memory):
        assert ends(lambda ledger=ledger: ledger.charge(ApproxDP(0.1)))
        assert len(ledger.history()) == 1
    assert ends(waiting[0].history)  # readers need not wait


@forks
@fork_warning
def test_a_fork_does_not_wait_for_who_waits(waiting, path):
    other = BudgetLedger(path.parent / "other.db", 1.0)

    def fork():
        child = os.fork()
        if child == 0:
            try:
                other.charge(ApproxDP(0.1), "child")
            finally:
                os._exit(0)
        os.waitpid(child, 0)

    assert ends(fork)
    assert [record.label for record in other.history()] == ["child"]


def test_a_charge_that_fails_halfway_is_undone(path, monkeypatch):
    ledger, append = BudgetLedger(path, 1.0), file.append

    def failing(*args, **options):
        append(*args, **options)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(file, "append", failing)
        with pytest.raises(KeyboardInterrupt):
            ledger.charge(ApproxDP(0.1))
    assert not ledger.history()
