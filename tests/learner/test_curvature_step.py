"""Newton steps whose curvature comes with the gradient, for free."""

import math
from functools import partial

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse
from scipy.special import expit
from sklearn.linear_model import LogisticRegression
from support.insides import noise_source
from support.releases import transcript

from skdp.learner import HuberLoss, LogisticLoss, Users
from skdp.learner._descent import curvature_step, release_joint
from skdp.learner._inference import release_moments
from skdp.linear_model import DPLogisticRegression
from skdp.linear_model._poisson import PoissonLoss, SteadyPoissonLoss
from skdp.privacy import GaussianDP
from skdp.rows._blocks import RowBlocks

ADJACENCIES = ["replace-one", "add-remove"]


def asked(rows, codes, weights, guarantee, *, loss=None, users=None, **parts):
    data = RowBlocks(rows, codes, x_norm=1.0, users=users)
    options = dict(squares=False) | parts
    at = weights[np.newaxis]
    run = partial(release_joint, data, loss or LogisticLoss(), at, guarantee=guarantee, **options)
    (record,), _ = transcript(lambda: run(noise=noise_source(0)))
    return record


def direction(angle):
    return np.array([math.cos(angle), math.sin(angle)])


@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_a_record_moves_gradient_and_curvature_as_far_as_declared_and_no_farther(adjacency):
    guarantee = GaussianDP(1.0, adjacency=adjacency)
    base, labels = np.zeros((3, 2)), np.array([0, 1, 1])
    farthest = 0.0
    # Of long weights, rows on either side of their boundary are wrong for sure.
    angles = [*np.linspace(0.0, 2.0 * math.pi, 25), 0.5 * math.pi + 0.01, 0.5 * math.pi - 0.01]
    for size in (0.0, 0.5, 1.0, 2.0, 4.0, 3000.0):
        weights = np.array([size, 0.0])
        found = []
        for angle in angles:
            for code in (0, 1):
                rows = np.vstack([base, direction(angle)])
                found.append(asked(rows, np.append(labels, code), weights, guarantee))
        points = np.array([one.asked for one in found])
        if adjacency == "add-remove":
            gaps = points - asked(base, labels, weights, guarantee).asked
        else:
            gaps = points[:, np.newaxis] - points
        farthest = max(farthest, np.linalg.norm(gaps, axis=-1).max())
    sensitivity = found[0].sensitivity
    assert 0.99 * sensitivity < farthest <= sensitivity
    assert found[0].scale >= sensitivity * (1.0 - 1e-9)


def farthest_apart(points, base):
    gaps = points[:, np.newaxis] - points if base is None else points - base
    return np.linalg.norm(gaps, axis=-1).max()


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("kind", ["logistic", "huber"])
def test_squared_residuals_cost_what_is_declared(adjacency, kind):
    guarantee = GaussianDP(1.0, adjacency=adjacency)
    base, labels = np.zeros((3, 2)), np.array([0.0, 1.0, 1.0])
    options = dict(squares=True, curvature=kind == "logistic")
    loss = None if kind == "logistic" else HuberLoss(0.7)
    found = []
    for size in (0.0, 0.5, 1.0, 2.0, 4.0, 3000.0):
        weights = np.array([size, 0.0])
        for angle in np.linspace(0.0, 2.0 * math.pi, 25):
            for code in (0.0, 1.0) if kind == "logistic" else (-1.0, 0.0, 1.0):
                rows, codes = np.vstack([base, direction(angle)]), np.append(labels, code)
                record = asked(rows, codes, weights, guarantee, loss=loss, **options)
                found.append((size, record.asked))
    sensitivity, farthest = record.sensitivity, 0.0
    for size in {size for size, _ in found}:
        points = np.array([point for other, point in found if other == size])
        empty = None
        if adjacency == "add-remove":
            at = np.array([size, 0.0])
            empty = asked(base, labels, at, guarantee, loss=loss, **options).asked
        farthest = max(farthest, farthest_apart(points, empty))
    assert 0.99 * sensitivity < farthest <= sensitivity


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("loss", [LogisticLoss(), HuberLoss(0.7), SteadyPoissonLoss(4.0)], ids=str)
def test_no_two_users_are_farther_apart_than_declared(adjacency, loss):
    """Users of one to four rows, whose mean gradients and curvatures differ as they may."""
    guarantee = GaussianDP(1.0, adjacency=adjacency)
    options = dict(squares=True, curvature=not isinstance(loss, HuberLoss), loss=loss)
    rng = np.random.default_rng(0)
    largest = 4.0 if isinstance(loss, PoissonLoss) else 1.0
    for size in (0.0, 1.0, 3.0, 3000.0):
        weights, points = np.array([size, 0.0]), []
        for _ in range(150):
            n = rng.integers(1, 5)
            angles = rng.choice(np.linspace(0.0, 2.0 * math.pi, 9), n)
            rows = np.array([direction(angle) for angle in angles]) * rng.choice([0.7, 1.0])
            codes = largest * rng.integers(0, 2, n)
            owners = Users(np.zeros(n, dtype=int), 1)
            record = asked(rows, codes, weights, guarantee, users=owners, **options)
            points.append(record.asked)
        empty = 0.0 * record.asked if adjacency == "add-remove" else None
        assert farthest_apart(np.array(points), empty) <= record.sensitivity


@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_a_row_moves_the_moments_of_a_regression_as_far_as_declared(adjacency):
    guarantee = GaussianDP(1.0, adjacency=adjacency)
    base, targets = np.zeros((3, 2)), np.zeros(3)

    def moments(rows, targets):
        data = RowBlocks(rows, targets, x_norm=1.0)
        run = partial(release_moments, data, guarantee=guarantee, noise=noise_source(0))
        (record,), _ = transcript(run)
        return record

    points = []
    for angle in np.linspace(0.0, 2.0 * math.pi, 25):
        for length in (0.5, 1.0):
            for target in np.linspace(-1.0, 1.0, 9):
                rows = np.vstack([base, length * direction(angle)])
                points.append(moments(rows, np.append(targets, target)).asked)
    record = moments(base, targets)
    farthest = farthest_apart(
        np.array(points), record.asked if adjacency == "add-remove" else None
    )
    assert 0.99 * record.sensitivity < farthest <= record.sensitivity


@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_no_pair_of_residuals_and_rows_is_farther_apart(adjacency):
    """As the code releases them, on a dense grid: (e x, a w x x') for rows of norm 1."""
    rows = np.array([direction(0.7)])
    record = asked(
        rows, np.array([1]), np.array([0.8, -0.3]), GaussianDP(1.0, adjacency=adjacency)
    )
    chance = expit(rows @ [0.8, -0.3])[0]
    # The weight of the curvature, from what is released.
    unit = record.asked[2] / (chance * (1.0 - chance) * rows[0, 0] ** 2)
    residuals = np.linspace(-1.0, 1.0, 401)
    weights = np.abs(residuals) * (1.0 - np.abs(residuals))
    if adjacency == "add-remove":
        assert np.hypot(residuals, unit * weights).max() <= 1.0 + 1e-9
        return
    for cosine in np.linspace(0.0, 1.0, 101):
        first, second = residuals[:, np.newaxis], residuals
        heavy, light = weights[:, np.newaxis], weights
        square = first**2 + second**2 - 2.0 * first * second * cosine
        square = square + unit**2 * (heavy**2 + light**2 - 2.0 * heavy * light * cosine**2)
        assert square.max() <= 4.0 + 1e-9


def problem(n=20_000, d=4):
    rng = np.random.default_rng(0)
    X = rng.uniform(-1.0, 1.0, (n, d)) / math.sqrt(d)
    y = rng.uniform(size=n) < expit(X @ np.linspace(-4.0, 4.0, d) + 0.3)
    return X, y.astype(int)


@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_clear_descents_end_with_a_step_that_all_of_the_rest_pays_for(adjacency):
    X, y = problem()
    model = DPLogisticRegression(1.0, 1e-6, adjacency=adjacency, random_state=0)
    records, _ = transcript(partial(model.fit, X, y))
    # Five numbers of the gradient, and fifteen of the curvature.
    assert records[-1].asked.shape == (20,)
    squares = [record.law.guarantee.mu**2 for record in records]
    # What is left is what a check of the scores would have had.
    assert 0.965 < sum(squares) / model.guarantee_.refined.mu**2 <= 1.0
    assert squares[-1] > 0.6 * sum(squares)


def test_the_step_comes_as_near_to_the_best_model_as_noise_allows():
    X, y = problem()
    best = LogisticRegression(C=1e6).fit(X, y)
    fits = [DPLogisticRegression(1.0, 1e-6, random_state=i).fit(X, y) for i in range(100)]
    errors = np.array([fit.coef_[0] - best.coef_[0] for fit in fits])
    claimed = np.mean([fit.coef_noise_.deviations for fit in fits], axis=0)
    # Of 100 fits a deviation errs by 7 %, and a mean by a tenth of a deviation.
    assert_allclose(errors.std(axis=0), claimed, rtol=0.35)
    assert (np.abs(errors.mean(axis=0)) < 0.5 * claimed).all()


def test_directions_that_noise_hides_leave_the_descent():
    X, y = problem()
    twice = np.column_stack([X, X[:, 0]]) / 2.0  # of two columns alike the difference is hidden
    model = DPLogisticRegression(1.0, 1e-6, random_state=0)
    records, _ = transcript(partial(model.fit, twice, y))
    assert [record.asked.shape for record in records].count((27,)) == 0


def test_weights_that_are_too_long_leave_the_descent_whatever_the_rows_are():
    guarantee, loss = GaussianDP(1.0), LogisticLoss()
    for rows in (np.eye(300)[:200], np.full((200, 300), 1.0 / math.sqrt(300))):
        data = RowBlocks(sparse.csr_array(rows), np.arange(200) % 2, x_norm=1.0)
        for size, steps in ((1e-3, True), (1e6, False)):
            point = np.full((1, 300), size / math.sqrt(300))
            run = partial(curvature_step, data, loss, point, guarantee=guarantee)
            records, _ = transcript(lambda run=run: run(noise=noise_source(0)))
            assert bool(records) == steps


def test_a_cap_that_is_asked_for_is_kept():
    X, y = problem()
    for cap, steps in ((None, 1), (0.3, 0)):
        model = DPLogisticRegression(1.0, 1e-6, slope_cap=cap, random_state=0)
        records, _ = transcript(partial(model.fit, X, y))
        assert [record.asked.shape for record in records].count((20,)) == steps
