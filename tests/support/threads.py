"""Threads of libraries."""

import numpy as np  # noqa: F401, brings BLAS
from threadpoolctl import threadpool_info


def blas_threads():
    """Numbers of threads that BLAS has."""
    return {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"}
