"""Replays of networks over several processes: programs of mpi_replays.py under mpiexec."""

import re
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow
PROGRAMS = Path(__file__).with_name("mpi_replays.py")


@pytest.mark.every(2)
@pytest.mark.parametrize("size", [2, 4])
def test_processes_replay_together(mpiexec, size, repetitions):
    # One after the other in the same processes, which take as long to start as a program runs.
    some = {2: ["agrees_with_local", "mutants_are_found", "rows_stay", "all_raise"]}
    some[4] = ["clean_runs_pass", "users_come_as_near"]  # more than cores, and wait for each other
    few = repetitions([], ["few"])  # of configurations and of slips
    programs = ",".join(repetitions(some[2] + some[4], some[size]))
    arguments = ["-W", "error", PROGRAMS, programs, size, *few]
    status, output, errors = mpiexec(size, *arguments, timeout=400)
    assert status == 0, errors
    assert set(re.findall(r"process (\d) passed", output)) == set(map(str, range(size)))
