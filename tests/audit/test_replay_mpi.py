"""Replays of networks over several processes: programs of mpi_replays.py under mpiexec."""

import re
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow
PROGRAMS = Path(__file__).with_name("mpi_replays.py")


@pytest.mark.parametrize("size", [2, 4])
def test_processes_replay_together(mpiexec, size, repetitions):
    # One after the other in the same processes, which take as long to start as a program runs.
    programs = "agrees_with_local,clean_runs_pass,users_come_as_near,mutants_are_found,all_raise"
    programs += ",rows_stay"
    if size == 4:  # more processes than cores wait for each other
        programs = repetitions(programs, "users_come_as_near,all_raise")
    status, output, errors = mpiexec(size, "-W", "error", PROGRAMS, programs, size, timeout=400)
    assert status == 0, errors
    assert set(re.findall(r"process (\d) passed", output)) == set(map(str, range(size)))
