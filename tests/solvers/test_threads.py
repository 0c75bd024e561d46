"""BLAS has one thread where it is asked to, and all that it had afterwards."""

import os
import subprocess
import sys

import pytest
from support.threads import blas_threads
from threadpoolctl import threadpool_limits

from skdp.solvers.threads import one_blas_thread


def test_blocks_of_several_threads_may_overlap():
    with threadpool_limits(2, user_api="blas"):
        one, other = one_blas_thread(), one_blas_thread()
        one.__enter__()
        other.__enter__()
        one.__exit__(None, None, None)
        assert blas_threads() == {1}
        other.__exit__(None, None, None)
        assert blas_threads() == {2}


def test_an_error_ends_a_block():
    with threadpool_limits(2, user_api="blas"):
        with pytest.raises(ZeroDivisionError), one_blas_thread():
            assert blas_threads() == {1}
            raise ZeroDivisionError
        assert blas_threads() == {2}


FORKING = """
import os, signal, threading, time
from skdp.solvers import threads

def hold():
    with threads._lock:
        held.set()
        time.sleep(0.3)

held = threading.Event()
threading.Thread(target=hold).start()
held.wait()
child = os.fork()
if child == 0:
    signal.alarm(5)
    with threads.one_blas_thread():
        os._exit(0)
print(os.waitpid(child, 0)[1])
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="only where processes fork")
def test_a_fork_while_another_thread_sets_the_limit_is_sound():
    ran = subprocess.run([sys.executable, "-c", FORKING], capture_output=True, text=True)
    assert ran.stdout == "0\n", ran.stderr
