"""BLAS has one thread where it is asked to, and all that it had afterwards."""

import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from skdp.solvers.threads import one_blas_thread


def blas_threads():
    return {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"}


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
