"""Nodes in several processes: programs of mpi_programs.py under a real mpiexec."""

import re
import sys
from pathlib import Path

import pytest
from engines.mpi_programs import classifier, clone, rows_of
from support.mpi import run

from skdp.engines import LocalEngine, MPIEngine
from skdp.privacy import BudgetLedger
from skdp.topology import make_topology

PROGRAMS = Path(__file__).with_name("mpi_programs.py")
ROOT = Path(__file__).parents[2]


def pytest_generate_tests(metafunc):
    """Most take two processes; three are neither one each nor as many as there are nodes."""
    if "size" in metafunc.fixturenames:
        full = metafunc.config.getoption("--full")
        several = (
            metafunc.function is test_processes_do_what_one_process_does_and_send_what_is_released
        )
        metafunc.parametrize("size", [2, 3, 4] if full else [3] if several else [2])


def test_processes_do_what_one_process_does_and_send_what_is_released(mpiexec, size):
    programs = ",".join(
        [
            "agrees_with_local",
            "is_an_engine",
            "collects",
            "raises_together",
            "estimators_agree",
            "estimators_raise_together",
            "estimator_transcript",
            "users_agree",
        ]
    )
    status, output, errors = mpiexec(size, "-W", "error", PROGRAMS, programs, size)
    assert status == 0, errors
    assert set(re.findall(r"process (\d) passed", output)) == set(map(str, range(size)))


@pytest.mark.parametrize("program", ["ledgers_are_asked_first", "each_ledger_is_charged_once"])
def test_nobody_pays_where_one_cannot_and_who_shares_a_ledger_pays_once(
    mpiexec, tmp_path, size, program
):
    status, output, errors = mpiexec(size, "-W", "error", PROGRAMS, program, size, tmp_path)
    assert status == 0, errors
    assert output.count("passed") == size


def test_what_differs_between_processes_is_named(mpiexec, size):
    status, output, errors = mpiexec(size, "-W", "error", PROGRAMS, "differences_are_named", size)
    assert status == 0, errors
    assert output.count("passed") == size


@pytest.mark.every(2)
@pytest.mark.parametrize("where", ["nodes", "fit"])
def test_too_many_processes_are_one_message(mpiexec, where):
    status, _, errors = mpiexec(4, PROGRAMS, "too_many", 4, where, timeout=30)
    assert status != 0
    assert errors.count("n_nodes must be at least the number of processes, 4; got 3.") == 1
    assert errors.count("Traceback") == errors.count("skdp: ") == 1
    assert "An error occurred in process" not in errors


@pytest.mark.every(2)
@pytest.mark.parametrize("where", ["inside", "before"])
def test_a_stopped_process_is_named(mpiexec, where):
    status, output, errors = mpiexec(4, PROGRAMS, "fails", 4, "stops", where, timeout=30)
    assert status != 0 and "passed" not in output
    assert "skdp: process 0 of 4 has waited 3 s for process 1; the job ends" in errors
    assert errors.count("the job ends") == 1


@pytest.mark.every(2)
@pytest.mark.parametrize(
    ("how", "where", "prefix", "message"),
    [
        ("kill", "inside", [], None),
        ("raise", "inside", [], "process 1 of 2 failed with ValueError"),
        ("exit", "inside", [], "process 1 of 2 stopped inside fit with SystemExit"),
        ("leave", "between fits", [], "process 0 of 2 waits for process 1, which has ended"),
        ("leave", "after a question", [], "process 0 of 2 waits for process 1, which has ended"),
        ("raise", "before", ["-m", "mpi4py"], None),
        ("stays away", "before", [], "process 0 of 2 has waited 3 s for process 1"),
    ],
)
def test_job_ends_everywhere_when_a_process_fails(mpiexec, how, where, prefix, message):
    command = [*prefix, PROGRAMS, "fails", 2, how, where]
    status, output, errors = mpiexec(2, *command, timeout=20)
    assert output.count("started") == 2, errors
    assert status != 0
    assert "passed" not in output
    assert errors.count("the job ends") == (message is not None), errors
    if message is not None:
        assert f"skdp: {message}; the job ends" in errors
    if how == "raise":
        assert errors.count("ValueError: a message that its own process shows") == 1


@pytest.mark.parametrize("trust", ["nodes", "sums"])
def test_a_job_that_was_killed_goes_on(mpiexec, tmp_path, trust):
    size = 4 if trust == "nodes" else 2  # on a ring some do not wait for each other
    arguments = [PROGRAMS, "resumes", size, tmp_path, trust]
    for killed in (2, 9):
        status, output, errors = mpiexec(size, *arguments, killed, timeout=60)
        assert status != 0 and "passed" not in output, errors
    status, output, errors = mpiexec(size, *arguments, 0)
    assert status == 0, errors
    assert output.count("passed") == size
    kept = tmp_path / "fit" / "process-1"
    for name in ("done", "result-8", "own-8", "drawn-3"):
        (kept / f"{name}.step").unlink(missing_ok=True)
    status, _, errors = mpiexec(size, *arguments, 0)
    assert status != 0 and "Process 1 of the job has lost its part of the checkpoint" in errors


def test_a_checkpoint_of_one_process_is_checked_too(tmp_path):
    X, y, node = rows_of(range(2))
    options = dict(whitened=True, n_nodes=2, classes=[0, 1], delta=1e-4)

    class Stopped(MPIEngine):
        def _exchanged(self, messages):
            raise KeyboardInterrupt

    ledger = BudgetLedger(epsilon=5.0, delta=1e-3)
    model = classifier(**options).set_params(ledger=ledger, epsilon=0.1)
    with pytest.raises(KeyboardInterrupt):
        model.set_params(engine=Stopped(checkpoint=tmp_path)).fit(X, y, node)
    assert [entry.guarantee.epsilon for entry in ledger.history()] == [0.1]
    model.set_params(engine=MPIEngine(checkpoint=tmp_path))
    with pytest.raises(ValueError, match="checkpoint must be the folder of this fit"):
        clone(model).set_params(epsilon=2.0, ledger=ledger).fit(X, y, node)
    # Another ledger pays, and the one that has paid does not pay again.
    other = BudgetLedger(epsilon=5.0, delta=1e-3)
    clone(model).set_params(ledger=other).fit(X, y, node)
    assert len(ledger.history()) == len(other.history()) == 1
    with pytest.raises(ValueError, match="checkpoint must be an empty folder for another fit"):
        model.fit(X, y, node)


@pytest.mark.parametrize("checkpoint", [3, b"folder", ["folder"]])
def test_a_checkpoint_is_a_path(checkpoint):
    with pytest.raises(ValueError, match="checkpoint must be a path or None"):
        MPIEngine(checkpoint=checkpoint)


@pytest.mark.every(2)
@pytest.mark.parametrize(
    ("where", "then", "message"),
    [
        ("exchange", "fits", "process 1 of 2 stopped inside fit with MemoryError and went on"),
        ("collect", "fits", "process 1 of 2 stopped inside fit with MemoryError and went on"),
        ("exchange", "lives on", "process 0 of 2 waits for process 1, which has failed"),
        ("agree", "lives on", "process 0 of 2 waits for process 1, which has failed"),
    ],
)
def test_job_ends_when_a_process_catches_its_own_error(mpiexec, where, then, message):
    status, output, errors = mpiexec(2, PROGRAMS, "caught", 2, where, then, timeout=20)
    assert status != 0 and "passed" not in output
    said = f"{message}; the job ends, and nothing was charged."
    assert re.findall("skdp: (.*)", errors) == [said], errors
    assert "Traceback" not in errors


def test_processes_that_only_ask_end_well(mpiexec):
    status, output, errors = mpiexec(2, "-W", "error", PROGRAMS, "asks", 2, timeout=20)
    assert (status, errors) == (0, "")
    assert output.count("passed") == 2


def test_process_without_a_launcher_is_alone(mpiexec):
    status, output, errors = run(sys.executable, "-W", "error", PROGRAMS, "alone", 1)
    assert (status, output) == (0, "process 0 passed\n"), errors


def test_launcher_of_another_library_is_noticed(mpiexec):
    environment = {"OMPI_COMM_WORLD_SIZE": "2"}
    status, _, errors = run(sys.executable, PROGRAMS, "alone", 1, **environment)
    assert status != 0
    assert "The launcher started 2 processes (OMPI_COMM_WORLD_SIZE)" in errors


@pytest.mark.every(2)
@pytest.mark.parametrize("missing", ["mpi4py", "library"])
def test_what_is_missing_is_said_with_the_command_that_installs_it(mpiexec, missing):
    program = "from skdp.engines import MPIEngine; e = MPIEngine(); print(e); e.agree(None)"
    environment = {}
    if missing == "mpi4py":
        program = f"import sys; sys.modules['mpi4py'] = None; {program}"
    else:
        environment["MPI4PY_LIBMPI"] = "libno_such_library.so"
    status, output, errors = run(sys.executable, "-c", program, **environment)
    assert output == "MPIEngine(patience=120.0)\n"
    assert status != 0
    assert errors.splitlines()[-1].startswith("ImportError: ")
    assert 'pip install "skdp[mpi]" && pip install mpich' in errors.splitlines()[-1]


def test_mpi_does_not_start_before_it_is_used():
    program = "import sys, skdp.distributed; assert 'mpi4py' not in sys.modules"
    status, _, errors = run(sys.executable, "-c", program)
    assert status == 0, errors


@pytest.mark.parametrize("patience", [0.0, -1.0, "long", float("inf"), True])
def test_patience_is_a_number_of_seconds(patience):
    with pytest.raises(ValueError, match="patience must be a positive, finite number"):
        MPIEngine(patience=patience)


def test_local_engine_runs_all_nodes():
    engine = LocalEngine()
    engine.open(make_topology("ring", 4), 2)
    assert engine.mine.tolist() == engine.heard.tolist() == [0, 1, 2, 3]
    assert not engine.is_distributed
    assert engine.collect([1, 2, 3, 4]).tolist() == [1, 2, 3, 4]
    engine.agree(None, "token")
    with pytest.raises(KeyError):
        engine.agree(KeyError("mine"))
    engine.close()


def test_scripts_of_the_guide_run_as_they_stand(mpiexec, tmp_path, monkeypatch):
    text = (ROOT / "doc" / "distributed_mpi.rst").read_text(encoding="utf-8")
    blocks = re.findall(r"\.\. code-block:: python\n\n((?:   .*\n|\n)+)", text)
    assert len(blocks) == 2
    monkeypatch.chdir(tmp_path)
    for name, block in zip(["learn.py", "sites.py"], blocks, strict=True):
        Path(name).write_text(re.sub("^   ", "", block, flags=re.MULTILINE))
        assert f"python -m mpi4py {name}" in text
        status, _, errors = mpiexec(4, "-m", "mpi4py", name)
        assert status == 0, errors
    assert len(list(tmp_path.glob("*.joblib"))) == 4


def test_example_runs(mpiexec, size):
    example = ROOT / "examples" / "distributed_mpi.py"
    status, output, errors = mpiexec(size, "-m", "mpi4py", example, SKDP_DATA="")
    assert status == 0, errors
    assert output.count("accuracy") == 1
