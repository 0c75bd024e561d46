"""How far rows reach beside a direction: what a row moves, rounding, and what is estimated."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from support.linear import LAYOUTS, stored_rows

from skdp.solvers.exact_sums import on_lattice
from skdp.solvers.rows import RowBlocks
from skdp.solvers.sketches import SKETCH_REACH, public_vectors, sketch_error, sketched_spread


def blocks(X, layout="dense", **options):
    return RowBlocks(LAYOUTS[layout](X), np.zeros(len(X), dtype=int), x_norm=1.0, **options)


def direction_of(vector):
    return on_lattice(vector / np.linalg.norm(vector))


def base_rows(rng, n=200, d=30):
    return rng.normal(size=(n, d)) / np.sqrt(d)


@pytest.mark.parametrize("beside", [False, True])
def test_a_row_moves_it_by_no_more_than_it_says_and_by_as_much_at_worst(beside):
    rng = np.random.default_rng(0)
    X, direction = base_rows(rng), direction_of(rng.normal(size=30)) if beside else None
    vectors = public_vectors(30)
    # Along a public vector all of a row's length counts, and the product is cut.
    hostile = [*vectors.T, *-vectors.T, *(10.0 * np.eye(30)), *rng.normal(size=(50, 30))]
    if beside:
        hostile += [direction, *(vectors.T - np.outer(vectors.T @ direction, direction))]
    moved = []
    for base in (X, np.vstack([X] + 50 * [vectors[:, :1].T])):
        here = sketched_spread(blocks(base), 1.0, direction)
        for row in hostile:
            there = sketched_spread(blocks(np.vstack([base, row])), 1.0, direction)
            moved.append(abs(there - here))
    assert 0.9 * SKETCH_REACH < max(moved) <= SKETCH_REACH * (1 + 1e-9)


@pytest.mark.parametrize("layout", ["dense", "csr"])
@pytest.mark.parametrize("n, d, constant", [(9000, 3, 0.0), (300, 80, 0.3)])
def test_its_rounding_error_is_bounded(n, d, constant, layout):
    rng = np.random.default_rng(1)
    X = np.tile(rng.normal(size=d), (n, 1))  # equal rows make equal errors
    X[: n // 2] = rng.normal(size=(n // 2, d)) * 10.0 ** rng.uniform(-9, 3, (n // 2, 1))
    data = blocks(X, layout, constant=constant)
    norm, direction = data.row_norm, direction_of(rng.normal(size=data.n_features))
    found = sketched_spread(data, norm, direction)
    # Anew, row by row, in extended precision: coarse rows, less what they have along, cut.
    rows, v = stored_rows(data).astype(np.longdouble), direction.astype(np.longdouble)
    step = np.longdouble(2.0 ** (np.ceil(np.log2(norm)) - 25))
    high = np.rint(rows / step) * step
    z = public_vectors(data.n_features).astype(np.longdouble)
    products = (high @ z - np.outer(high @ v, v @ z)) / norm
    images = (rows / norm).T @ np.clip(products, -2.0, 2.0)
    images -= np.outer(v, v @ images)
    exact = np.sqrt((images**2).sum(axis=0)).max()
    assert abs(found - exact) <= n * sketch_error(data.n_features)
    # A bound that is far from what happens would cost noise for nothing.
    assert n * sketch_error(data.n_features) < 1e-6 * SKETCH_REACH


@pytest.mark.parametrize("layout", ["dense", "csr"])
def test_it_is_about_the_largest_second_moment_beside_the_direction(layout):
    rng = np.random.default_rng(3)
    n, d = 4000, 120
    for sizes in (np.ones(d), np.arange(1, d + 1) ** -1.0, np.r_[1.0, np.full(d - 1, 0.05)]):
        vectors = np.linalg.qr(rng.normal(size=(d, d)))[0]
        X = rng.normal(size=(n, d)) * np.sqrt(sizes / sizes.sum() / 4.0) @ vectors.T
        mean = 0.6 * vectors[:, 3]
        data = blocks(X + mean, layout)
        spread = sketched_spread(data, 1.0, direction_of(mean)) / n
        rows = stored_rows(data)
        rows = rows - np.outer(rows @ vectors[:, 3], vectors[:, 3])
        values = np.linalg.eigvalsh(rows.T @ rows / n)
        assert 0.65 * values[-1] < spread < 2.5 * np.sqrt((values**2).sum())
        # Beside nothing it is that of the mean.
        assert sketched_spread(data, 1.0) / n > 0.2


def test_vectors_are_the_same_for_all():
    vectors = public_vectors(1000)
    assert vectors.shape == (1000, 8)
    assert_array_equal(vectors, public_vectors(1000))
    assert_array_equal(vectors[:300], public_vectors(300))
    # Products with coarse rows have no rounding error: 25 bits, six, and ten for the features.
    assert_array_equal(4.0 * vectors, np.rint(4.0 * vectors))
    assert abs(vectors).max() <= 8.0
    # Five standard deviations of sums of 1,000.
    assert abs(vectors.sum(axis=0)).max() < 160
    assert abs(vectors.T @ vectors - 1000 * np.eye(8)).max() < 230
