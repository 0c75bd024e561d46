"""An expansion that grows: what a chunk costs, and who may append."""

import math
import pickle
import tracemalloc
from copy import deepcopy

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from support.problems import noisy_surface as stream

from skdp.features import kernel_matrix
from skdp.solvers import online_kernel
from skdp.solvers.online import Recursion
from skdp.solvers.online_kernel import StreamExpansion, run_kernel

BALL = Recursion(0.75, 2 ** (4 / 3), radius=0.4)
HUBER = Recursion(0.75, 2 ** (4 / 3), cap=0.3)


def rbf(A, B):
    return kernel_matrix("rbf", A, B, gamma=1.0)


class Counted:
    """The kernel, and how many values it was asked for."""

    def __init__(self):
        self.values, self.largest = 0, 0

    def __call__(self, A, B):
        self.values += len(A) * len(B)
        self.largest = max(self.largest, len(A) * len(B))
        return rbf(A, B)


@pytest.mark.parametrize("recursion", [BALL, HUBER], ids=["ball", "huber"])
def test_a_chunk_asks_for_the_kernel_between_its_rows_and_all_and_no_other(recursion):
    X, y = stream(1500)
    kernel = Counted()
    function = run_kernel(X[:1400], y[:1400], StreamExpansion(kernel, 3), 0, recursion)
    before, kernel.values = kernel.values, 0
    run_kernel(X[1400:1410], y[1400:1410], function, 1400, recursion)
    assert kernel.values == 10 * 1400 + 10 * 10
    # The chunks of 128 rows before it did the same.
    assert before == sum(n * (start + n) for start, n in steps(1400))


def steps(n_rows, length=128):
    return [(start, min(length, n_rows - start)) for start in range(0, n_rows, length)]


@pytest.mark.parametrize("recursion", [BALL, HUBER], ids=["ball", "huber"])
def test_what_a_chunk_takes_does_not_grow_with_the_stream(recursion, monkeypatch):
    monkeypatch.setattr(online_kernel, "_BYTES", 64 * 24)
    X, y = stream(4000)
    function = run_kernel(X[:3990], y[:3990], StreamExpansion(rbf, 3), 0, recursion)
    tracemalloc.start()
    later = run_kernel(X[3990:], y[3990:], function, 3990, recursion)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    # One row of the kernel of 3990 rows alone has 32 kB, all rows 96 kB.
    assert peak < 30_000
    whole = [block for block, length in function._blocks if length == 64]
    assert len(whole) == 3990 // 64
    assert all(a is b for a, (b, _) in zip(whole, later._blocks, strict=False))
    held = sum(block.rows.nbytes + block.coef.nbytes for block, _ in later._blocks)
    assert held <= 8 * 4 * (4000 + 64)


def test_of_two_that_go_on_from_one_each_has_its_own_rows():
    X, y = stream(60)
    common = run_kernel(X[:20], y[:20], StreamExpansion(rbf, 3), 0, HUBER)
    left = run_kernel(X[20:40], y[20:40], common, 20, HUBER)
    right = run_kernel(X[40:], y[40:], common, 20, HUBER)
    alone = run_kernel(X[40:], y[40:], deepcopy(common), 20, HUBER)
    assert_array_equal(left.rows, X[:40])
    assert_array_equal(right.rows, np.concatenate([X[:20], X[40:]]))
    assert_array_equal(right.coef, alone.coef)
    assert_array_equal(common.rows, X[:20])
    assert len(common) == 20 and len(left) == len(right) == 40


def test_a_pickle_holds_the_rows_of_the_function_and_no_later_ones():
    X, y = stream(40)
    function = run_kernel(X[:20], y[:20], StreamExpansion(rbf, 3), 0, HUBER)
    run_kernel(X[20:], y[20:], function, 20, HUBER)
    text = pickle.dumps(function)
    assert X[19].tobytes() in text and X[20].tobytes() not in text and len(text) < 2500
    back = pickle.loads(text)
    assert_array_equal(back.coef, function.coef)
    assert_array_equal(back(X), function(X))


def test_coefficients_do_not_overflow_however_often_the_function_shrinks():
    X, _ = stream(30)
    function = StreamExpansion(rbf, 3)
    for row in X:
        function = function.extended(row[None], np.ones(1), shrunk=2.0**-90)
    expected = 2.0 ** (-90.0 * np.arange(29, -1, -1))
    assert_allclose(function.coef, expected, rtol=1e-14)
    assert np.isfinite(function(X)).all() and math.isfinite(function.scale)
    assert_array_equal(function.rows, X)
