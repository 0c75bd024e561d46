"""Users' mean gradients, shortened to one bound by a certified factor, whoever the others are."""

import math
from fractions import Fraction

import numpy as np
import pytest
from support.insides import Users
from support.linear import LAYOUTS, LOSSES

from skdp.learner import LogisticLoss
from skdp.rows._blocks import RowBlocks
from skdp.rows._users import REACH, TOGETHER
from skdp.rows._whitening import CappedSums, PlainRows, WhitenedRows

D = 4
KINDS = ["alike", "hostile", "random", "zero"]
COUNTS = [1, 2, 50, TOGETHER, TOGETHER + 1, 300]


def whitened(seed=0, low=1e-3):
    rng = np.random.default_rng(seed)
    vectors = np.linalg.qr(rng.normal(size=(D, D)))[0]
    return WhitenedRows(vectors, np.exp(rng.uniform(math.log(low), 0.0, D)))


COORDINATES = {"plain": lambda: PlainRows(0.3), "whitened": whitened}


def rows_of(kind, n_rows, rng):
    if kind == "alike":
        return np.repeat(rng.normal(size=(1, D)), n_rows, axis=0)
    if kind == "hostile":
        signs = rng.choice([-1.0, 1.0], (n_rows, D))
        return signs * 10.0 ** rng.choice([300.0, 150.0, 0.0, -300.0], (n_rows, 1))
    return (kind == "random") * rng.normal(size=(n_rows, D))


def blocks(kinds, counts, layout, rng, n_classes=2):
    rows = [rows_of(kind, count, rng) for kind, count in zip(kinds, counts, strict=True)]
    groups = np.repeat(np.arange(len(counts)), counts)
    labels = rng.integers(0, n_classes, len(groups))
    users = Users.of(groups, len(groups))
    with np.errstate(over="ignore"):
        return RowBlocks(LAYOUTS[layout](np.vstack(rows)), labels, x_norm=1.0, users=users)


def stored(data):
    dense = [rows.toarray() if data.is_sparse else rows for rows, _ in data.blocks]
    return np.vstack(dense), np.concatenate([labels for _, labels in data.blocks])


exact = np.vectorize(Fraction, otypes=[object])


@pytest.mark.parametrize("coordinates", COORDINATES)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n_rows", COUNTS)
@pytest.mark.parametrize("loss", LOSSES[::3], ids=str)
def test_no_user_adds_more_than_the_cap_in_exact_arithmetic(loss, n_rows, kind, coordinates):
    rng = np.random.default_rng(n_rows)
    data = blocks([kind], [n_rows], "dense", rng, max(2, loss.n_outputs))
    coordinates = COORDINATES[coordinates]()
    rows, _ = stored(data)
    # The matrix of the map, entry by entry: exact in both coordinates.
    matrix = exact(coordinates.forward(np.eye(D)))
    for cap in (1e-3, 0.2, 5.0):
        sums = CappedSums(data, loss, coordinates, cap)
        weights = rng.normal(size=(loss.n_outputs, D))
        residuals = data.residuals(loss, weights, caps=sums.caps)
        residuals = residuals * sums._users.factors(residuals)[:, np.newaxis]
        square = Fraction(0)
        for column in residuals.T:
            total = exact(column) @ exact(rows)
            square += ((total @ matrix) ** 2).sum()
        assert square <= Fraction(cap) ** 2 * (1 + Fraction(1, 2**45))


@pytest.mark.parametrize("layout", ["dense", "csr"])
@pytest.mark.parametrize("coordinates", COORDINATES)
@pytest.mark.parametrize("loss", LOSSES, ids=str)
def test_the_error_of_a_sum_is_certified(loss, coordinates, layout):
    rng = np.random.default_rng(3)
    counts = rng.integers(1, TOGETHER + 1, 40)
    data = blocks(rng.choice(KINDS, 40), counts, layout, rng, max(2, loss.n_outputs))
    coordinates = COORDINATES[coordinates]()
    weights = 3.0 * rng.normal(size=(loss.n_outputs, D))
    for cap in (0.05, 0.3, 100.0):
        sums = CappedSums(data, loss, coordinates, cap)
        expected, kept = ideal_sum(data, loss, coordinates, cap, weights)
        assert cap == 100.0 or kept < 1.0
        error = np.linalg.norm((sums(weights) - expected).astype(float))
        assert error <= sums._error(weights, exactly=False)


def ideal_sum(data, loss, coordinates, cap, weights):
    """Of users' means, in extended precision, and what share of them keeps its length."""
    rows, labels = stored(data)
    images = np.vstack([coordinates.images(part, data.row_norm) for part, _ in dense(data)])
    norms = np.concatenate([coordinates.norms(part, data.row_norm) for part, _ in data.blocks])
    long = np.longdouble
    scores = rows.astype(long) @ weights.T.astype(long)
    residuals = loss.residuals(scores, labels)
    lengths = np.sqrt((residuals**2).sum(axis=1))
    with np.errstate(divide="ignore", invalid="ignore"):
        caps = loss.weights_of(labels) * REACH * cap / norms.astype(long)
        residuals = residuals * np.fmin(caps / lengths, 1.0)[:, np.newaxis]
    total, kept, users = 0.0, [], data.users
    matrix = coordinates.forward(np.eye(D)).astype(long)
    for user in range(users.n_users):
        own = users.codes == user
        parts = residuals[own] * users.shares[own][:, np.newaxis].astype(long)
        gradient = parts.T @ rows[own].astype(long) @ matrix
        seen = ((parts.T @ images[own].astype(long)) ** 2).sum()
        rest = coordinates.rest(data.row_norm) * np.sqrt((parts**2).sum(axis=1)).sum()
        norm = np.sqrt((1 + 2.0**-20) * seen + (1 + 2.0**20) * rest**2)
        most = cap * min(1.0, (loss.weights_of(labels[own]) * users.shares[own]).sum())
        kept.append(norm <= most)
        total = total + gradient * (1.0 if norm <= most else most / norm)
    return total, np.mean(kept)


def dense(data):
    return [(r.toarray() if data.is_sparse else r, codes) for r, codes in data.blocks]


@pytest.mark.parametrize("layout", ["dense", "csr"])
@pytest.mark.parametrize("n_rows", COUNTS)
@pytest.mark.parametrize("coordinates", COORDINATES)
def test_two_caps_are_what_a_user_can_move_a_sum_by(coordinates, n_rows, layout):
    rng = np.random.default_rng(1)
    coordinates, loss, cap = COORDINATES[coordinates](), LogisticLoss(), 0.1
    X, groups = rng.normal(size=(300, D)), np.repeat(np.arange(30), 10)
    y, found = rng.integers(0, 2, 300), []
    for sign, count in ((1e300, n_rows), (-1e300, 50)):
        rows = np.vstack([np.full((count, D), sign), X])
        labels = np.concatenate([np.zeros(count, dtype=int), y])
        users = Users.of(np.concatenate([np.full(count, -1), groups]), len(labels))
        with np.errstate(over="ignore"):
            data = RowBlocks(LAYOUTS[layout](rows), labels, x_norm=1.0, users=users)
        sums = CappedSums(data, loss, coordinates, cap)
        found.append(sums(np.zeros((1, D))))
    moved, error = (
        np.linalg.norm(found[0] - found[1]),
        sums._error(np.zeros((1, D)), exactly=False),
    )
    assert 0.999 * 2 * cap <= moved <= 2 * cap + 2 * error
