"""Programs under a real mpiexec."""

import os
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

# What Open MPI wants in containers; MPICH does not mind.
ENVIRONMENT = {
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
}


def run(*command, timeout=60, **environment):
    """Exit status, output and errors of a program, which is ended with all that it has started."""
    process = subprocess.Popen(
        list(map(str, command)),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        stdin=subprocess.DEVNULL,
        text=True,
        env={**os.environ, **ENVIRONMENT, **environment},
    )
    try:
        output, errors = process.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        process.terminate()  # a launcher passes this on
        try:
            output, errors = process.communicate(timeout=10)
        except subprocess.TimeoutExpired:
            process.kill()
            output, errors = process.communicate()
        pytest.fail(f"{command} hangs\n{output}\n{errors}")
    return process.returncode, output, errors


@cache
def unable():
    """Why no MPI job can be run here, or None."""
    here = Path(sys.executable).with_name("mpiexec")
    launcher = str(here) if here.exists() else shutil.which("mpiexec")
    if launcher is None:
        return None, "there is no mpiexec: pip install mpi4py mpich"
    hello = "from mpi4py import MPI; print('hello')"
    status, output, errors = run(launcher, "-n", 2, sys.executable, "-c", hello)
    if status or output.count("hello") != 2:
        return None, f"mpiexec cannot run two processes here: {output} {errors}"
    return launcher, None


@pytest.fixture
def mpiexec():
    """Run a program in so many processes."""
    launcher, reason = unable()
    if launcher is None:
        if os.environ.get("SKDP_REQUIRE_MPI"):
            pytest.fail(reason)
        pytest.skip(reason)
    return lambda size, *command, **options: run(
        launcher, "-n", size, sys.executable, *command, **options
    )
