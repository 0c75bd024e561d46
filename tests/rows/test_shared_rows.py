"""Sums over users of the means of their rows: no longer than one row's, with certified errors."""

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose
from support.insides import Users
from support.linear import LAYOUTS, LOSSES, exact_gradient, stored_rows

from skdp.learner import LogisticLoss
from skdp.rows._blocks import RowBlocks
from skdp.rows._sums import ROUNDING_SHARE
from skdp.rows._users import TOGETHER, UserCap, agreement_error
from skdp.rows._whitening import CappedSums, PlainRows, WhitenedRows

D = 5
# Users of one row among such of thousands, in the same few rows and in others.
SIZES = {
    "even": [7] * 300,
    "uneven": [1, 6000, 1, 2, 300, *[1] * 90, 2500],
    "one user": [3000],
    "one row": [1],
}


def owned(sizes, rng):
    codes = np.repeat(np.arange(len(sizes)), sizes)
    return Users.of(rng.permutation(codes), len(codes))


def problem(loss, sizes, seed=0, spread=3.0):
    rng = np.random.default_rng(seed)
    users = owned(sizes, rng)
    n = len(users.codes)
    X = spread * rng.normal(size=(n, D)) / math.sqrt(D)
    X[: n // 2] = X[0]  # equal rows make equal errors
    return X, rng.integers(0, max(2, loss.n_outputs), n), users


def whitened(seed=0, low=1e-4):
    rng = np.random.default_rng(seed)
    vectors = np.linalg.qr(rng.normal(size=(D, D)))[0]
    return WhitenedRows(vectors, np.exp(rng.uniform(math.log(low), 0.0, D)))


@pytest.mark.parametrize("exactly", [False, True])
@pytest.mark.parametrize("size", [0.0, 1.0, 1e4])
@pytest.mark.parametrize("layout", ["dense", "csr"])
@pytest.mark.parametrize("sizes", SIZES)
@pytest.mark.parametrize("loss", LOSSES, ids=str)
def test_a_sum_is_that_of_the_means_of_users(loss, sizes, layout, size, exactly):
    X, codes, users = problem(loss, SIZES[sizes])
    data = RowBlocks(LAYOUTS[layout](X), codes, x_norm=1.0, users=users)
    weights = size * np.random.default_rng(1).normal(size=(loss.n_outputs, D))
    found, _ = data.gradient(loss, weights, exactly=exactly)
    expected = means_of_users(loss, data, weights)
    error = float(np.sqrt(((found - expected) ** 2).sum()))
    assert error <= data.rounding_error(loss, weights, exactly=exactly)
    if not exactly:
        assert error <= data.rounding_error(loss, weights, closely=True)


def means_of_users(loss, data, weights):
    # Blocks have the rows in an order of their own.
    rows, codes = stored_rows(data), np.concatenate([labels for _, labels in data.blocks])
    total = np.zeros(weights.shape, np.longdouble)
    for user in range(data.users.n_users):
        own = data.users.codes == user
        total += exact_gradient(loss, rows[own], codes[own], weights) / own.sum()
    return total


@pytest.mark.parametrize("exactly", [False, True])
@pytest.mark.parametrize("loss", LOSSES[::2], ids=str)
def test_how_many_rows_there_are_decides_no_bound(loss, exactly):
    bounds = []
    for times in (1, 40):
        users = owned([times] * 100, np.random.default_rng(0))
        n = len(users.codes)
        data = RowBlocks(np.ones((n, D)), np.zeros(n, dtype=int), x_norm=1.0, users=users)
        assert (data.n_units, data.n_samples) == (100, n)
        weights = np.ones((loss.n_outputs, D))
        bounds.append(data.rounding_error(loss, weights, exactly=exactly))
        bounds.append(CappedSums(data, loss, whitened(), 1.0)._error(weights, exactly=exactly))
    assert bounds[:2] == bounds[2:]


@pytest.mark.parametrize("layout", ["dense", "csr"])
@pytest.mark.parametrize("sizes", SIZES)
def test_moments_are_those_of_the_means_of_users(sizes, layout):
    X, codes, users = problem(LOSSES[0], SIZES[sizes])
    data = RowBlocks(LAYOUTS[layout](X), codes, x_norm=1.5, constant=0.4, users=users)
    rows = stored_rows(data).astype(np.longdouble)
    counts = np.bincount(users.codes)[data.users.codes][:, np.newaxis].astype(np.longdouble)
    error = np.linalg.norm((data.second_moments() - rows.T @ (rows / counts)).astype(float))
    assert error <= 1e-3 * ROUNDING_SHARE * data.row_norm**2
    assert_allclose(data.total(), ((rows / counts).sum(axis=0)).astype(float), atol=1e-11)


def test_an_agreement_errs_as_declared_however_many_rows_add_nothing():
    rng = np.random.default_rng(0)
    X = np.zeros((3000 * TOGETHER + 3, D))
    one, other = rng.uniform(-0.2, 0.2, size=(2, D))
    X[-3:] = one, other, one + other  # gradients that cancel but for rounding
    labels = np.arange(len(X)) == len(X) - 1
    users = Users.of(np.zeros(len(X)), len(X))
    data, loss = RowBlocks(X, labels.astype(int), x_norm=1.0, users=users), LogisticLoss()
    found = UserCap(data, loss, PlainRows(1.0), 1.0).agreements(
        data.residuals(loss, np.zeros((1, D)))
    )
    assert_allclose(found, 1.0 / math.sqrt(1.0 + 2.0**10), atol=agreement_error(D, 1), rtol=0.0)
