"""The best weights in a ball against grids, linear programs and a general-purpose optimiser."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse
from scipy.optimize import linprog
from support.problems import outliers as problem

from skdp.learner import AbsoluteLoss, EpsilonInsensitiveLoss, HuberLoss
from skdp.linear_model._comparator import best_in_ball

LOSSES = [AbsoluteLoss(), EpsilonInsensitiveLoss(0.15), HuberLoss(0.3), HuberLoss(2.0)]


def losses_of(residuals, loss):
    """Written out again; a sum over the first axis."""
    size = np.abs(residuals)
    if isinstance(loss, AbsoluteLoss):
        return size.sum(axis=0)
    if isinstance(loss, EpsilonInsensitiveLoss):
        return np.maximum(size - loss.width, 0.0).sum(axis=0)
    return np.where(size < loss.width, size**2 / 2, loss.width * (size - loss.width / 2)).sum(0)


def check(rows, targets, loss, radius, tolerance, weights, value, gap):
    dense = rows.toarray() if sparse.issparse(rows) else rows
    assert np.linalg.norm(weights) <= radius * (1.0 + 1e-12)
    here = losses_of(dense @ weights[0] - targets, loss)
    assert_allclose(value, here, rtol=1e-10, atol=1e-10)
    assert 0.0 <= gap <= tolerance * len(targets)


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
@pytest.mark.parametrize("radius", [0.05, 0.5, 3.0])
@pytest.mark.parametrize("seed", [0, 1])
def test_one_feature_agrees_with_a_grid(loss, radius, seed):
    rows, targets = problem(60, 1, seed)
    weights, value, gap = best_in_ball(rows, targets, loss, radius=radius, tolerance=1e-5)
    check(rows, targets, loss, radius, 1e-5, weights, value, gap)
    grid = np.linspace(-radius, radius, 60_001)
    best = losses_of(rows * grid - targets[:, np.newaxis], loss).min()
    assert value - gap <= best + 1e-9
    assert value <= best + gap + 1e-9


@pytest.mark.parametrize("width", [0.0, 0.15])
def test_in_a_wide_ball_it_is_a_linear_program(width):
    rows, targets = problem(120, 4, seed=5)
    n, d = rows.shape
    identity = np.eye(n)
    program = linprog(
        np.concatenate([np.zeros(d), np.ones(n)]),
        A_ub=np.block([[rows, -identity], [-rows, -identity]]),
        b_ub=np.concatenate([targets + width, width - targets]),
        bounds=[(None, None)] * d + [(0.0, None)] * n,
    )
    loss = EpsilonInsensitiveLoss(width) if width else AbsoluteLoss()
    weights, value, gap = best_in_ball(rows, targets, loss, radius=50.0, tolerance=1e-7)
    check(rows, targets, loss, 50.0, 1e-7, weights, value, gap)
    assert_allclose(value, program.fun, atol=2e-7 * n)
    assert value - gap <= program.fun + 1e-8


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
@pytest.mark.parametrize("radius", [0.2, 1.0, 10.0])
def test_sparse_rows_find_the_same_minimum(loss, radius):
    rng = np.random.default_rng(2)
    rows = sparse.random_array((400, 90), density=0.1, random_state=rng, format="csr")
    targets = np.clip(rows @ rng.standard_normal(90) + 0.2 * rng.standard_normal(400), -1, 1)
    found = [best_in_ball(rows.toarray(), targets, loss, radius=radius, tolerance=1e-4)]
    found.append(best_in_ball(rows, targets, loss, radius=radius, tolerance=1e-4))
    for result in found:
        check(rows, targets, loss, radius, 1e-4, *result)
    highest = min(value for _, value, _ in found)
    assert max(value - gap for _, value, gap in found) <= highest + 1e-9


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_extreme_data_are_certified_too(loss):
    columns = np.random.default_rng(6).standard_normal((300, 6))
    cases = [
        (np.zeros((20, 3)), np.linspace(-1, 1, 20), 1.0),
        (np.ones((20, 2)), np.repeat([0.0, 1.0], 10), 1.0),  # all directions but one are flat
        (np.ones((20, 2)), np.zeros(20), 1.0),
        (np.eye(5) * 1e-6, np.ones(5), 1.0),
        (columns * np.geomspace(1.0, 1e-4, 6), np.sign(columns.sum(axis=1)), 100.0),
        (columns, np.sign(columns[:, 0]), 1e6),
        (np.array([[0.5]]), np.array([1.0]), 1.0),
    ]
    for rows, targets, radius in cases:
        result = best_in_ball(rows, targets, loss, radius=radius, tolerance=1e-4)
        check(rows, targets, loss, radius, 1e-4, *result)
