"""An expansion that grows: what a chunk costs, and who may append."""

import math
import pickle
from copy import deepcopy

import numpy as np
from numpy.testing import assert_allclose, assert_array_equal
from support.problems import noisy_surface as stream

from skdp.kernel._online._recursion import Recursion, StreamExpansion, run_kernel
from skdp.rows import kernel_matrix

HUBER = Recursion(0.75, 2 ** (4 / 3), cap=0.3)


def rbf(A, B):
    return kernel_matrix("rbf", A, B, gamma=1.0)


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
