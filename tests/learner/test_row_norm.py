"""A smaller norm that rows are clipped to: what it costs, and that it costs no more."""

import itertools
import math

import numpy as np
import pytest
from scipy import sparse
from support.insides import Users, noise_source

from skdp.audit import recording, replay
from skdp.learner import RowNorm
from skdp.learner._stages import norm_cells
from skdp.linear_model import DPLinearSVC, DPLogisticRegression
from skdp.privacy import ApproxDP, GaussianDP

N_CELLS, ROOT, N_UNITS = 15, math.sqrt(2.0), 200


def length_counts(X, most, n_cells):
    """Numbers of rows by their cells."""
    return np.bincount(norm_cells(X, most, n_cells), minlength=n_cells)


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
def test_no_row_has_a_say_in_where_another_counts(kind):
    # At the limit the last bit decides: whatever stands before a row, it counts alike.
    rng = np.random.default_rng(1)
    X = rng.normal(size=(3000, 37))
    limit = ROOT / 2.0 * math.sqrt(1.0 + 2.0**-9)
    X *= limit / np.linalg.norm(X, axis=1, keepdims=True)
    alone = np.array([length_counts(kind(row[None]), 1.0, N_CELLS) for row in X])
    assert 0 < alone[:, 1].sum() < 3000
    for order in (np.arange(3000), rng.permutation(3000)):
        for start in range(9):
            counts = length_counts(kind(X[order][start:]), 1.0, N_CELLS)
            np.testing.assert_array_equal(counts, alone[order][start:].sum(axis=0))
    for view in (np.asfortranarray(X), X[:, ::-1]):
        np.testing.assert_array_equal(length_counts(kind(view), 1.0, N_CELLS), alone.sum(axis=0))


def read(X, reading, users=None):
    """Record of the release that reads a norm from rows of norms up to one."""
    with recording() as records:
        RowNorm(reading, N_UNITS).scale(X, 1.0, users, noise_source(0))
    (record,) = records
    return record


def log_probabilities(X, reading, users=None):
    """Of the cells, by the law that is recorded of the selection."""
    record = read(X, reading, users)
    exponents = record.rates[0] * record.utilities[0]
    return exponents - np.logaddexp.reduce(exponents)


def in_cells(counts):
    """Rows of one feature, as many in each cell as are asked for."""
    return 0.9 * ROOT ** -np.repeat(np.arange(N_CELLS), counts)[:, np.newaxis]


@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
def test_worst_neighbours_cost_the_reading_and_no_more(adjacency):
    epsilon, worst = 0.7, 0.0
    reading = ApproxDP(epsilon, adjacency=adjacency)
    for n_rows in (1, 2, 4):
        # Rows in three cells, with empty ones between them: all that ranks can be.
        for a, b in itertools.product(range(n_rows + 1), repeat=2):
            if a + b > n_rows:
                continue
            counts = np.zeros(N_CELLS, dtype=np.int64)
            counts[[0, 6, 13]] = a, b, n_rows - a - b
            here = log_probabilities(in_cells(counts), reading)
            for place in range(N_CELLS):
                if adjacency == "add-remove":
                    more = counts.copy()
                    more[place] += 1
                    others = [more]
                else:
                    others = []
                    for taken in np.flatnonzero(counts):
                        moved = counts.copy()
                        moved[taken] -= 1
                        moved[place] += 1
                        others.append(moved)
                for other in others:
                    there = log_probabilities(in_cells(other), reading)
                    worst = max(worst, np.abs(here - there).max())
    assert 0.9 * epsilon < worst <= epsilon * (1.0 + 1e-9)


@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
def test_noisy_counts_move_by_as_much_as_is_claimed(adjacency):
    reading = GaussianDP(0.3, adjacency=adjacency)
    rows = np.random.default_rng(0).normal(size=(20, 3)) * 0.2
    last = np.full((1, 3), 9.0) if adjacency == "replace-one" else np.zeros((0, 3))
    here, there = (read(X, reading) for X in (rows, np.vstack([rows[:-1], last])))
    moved = np.linalg.norm(here.asked - there.asked)
    assert 0.99 * here.sensitivity < moved <= here.sensitivity
    assert here.law.scale == pytest.approx(1.0 / 0.3)
    assert here.scale >= here.law.scale * moved


@pytest.mark.parametrize("reading", [ApproxDP(30.0), GaussianDP(30.0)])
@pytest.mark.parametrize("x_norm", [1.0, 0.37, 1e-50, 1e50])
def test_no_row_is_clipped_where_noise_is_small(reading, x_norm):
    normed = RowNorm(reading, N_UNITS)
    lengths = np.append(np.linspace(0.0, 0.2, 199), 1.0)
    for length in np.geomspace(2.0**-10, 4.0, 40):
        X = x_norm * length * lengths[:, np.newaxis] * np.array([[0.6, -0.8]])
        scale = normed.scale(X, x_norm, None, noise_source(0))
        power = round(2.0 * math.log2(scale))
        assert scale == 2.0 ** (power / 2.0) and 0 <= power < N_CELLS
        longest = np.linalg.norm(X / x_norm, axis=1).max()
        assert power == 0 or longest <= 1.003 / scale
        # Of noisy counts, one in forty keeps a norm that no row exceeds from being found.
        further = 1 if isinstance(reading, ApproxDP) else 3
        assert power == N_CELLS - 1 or longest > 0.997 / (ROOT**further * scale)


@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
def test_a_user_moves_what_is_read_by_no_more_than_a_row_does(adjacency):
    rng = np.random.default_rng(0)
    reading = ApproxDP(0.7, adjacency=adjacency, unit="user")
    noisy = GaussianDP(0.7, adjacency=adjacency, unit="user")
    worst, moved = 0.0, 0.0
    for draw in range(300):
        n_users = int(rng.integers(1, 6))
        n_rows = rng.choice([1, 2, 3, 7, 50], size=n_users + 1)
        codes = np.repeat(np.arange(n_users + 1), n_rows)
        rows = 2.0 ** -rng.uniform(0.0, 8.0, size=(len(codes), 1)) * (0.3 if draw % 2 else 1.0)
        rows[codes == n_users] = rng.choice([0.001, 1.0], size=(n_rows[-1], 1))
        others = rows.copy()
        others[codes == 0] = rng.choice([0.001, 1.0], size=(n_rows[0], 1))
        data = [(rows, codes), (others, codes)]
        if adjacency == "add-remove":
            kept = codes < n_users
            data[1] = rows[kept], codes[kept]
        found = []
        for X, of_users in data:
            users = Users(of_users, int(of_users.max()) + 1)
            found.append((log_probabilities(X, reading, users), read(X, noisy, users).asked))
        (here, counts), (there, others) = found
        worst = max(worst, np.abs(here - there).max())
        moved = max(moved, np.linalg.norm(counts - others))
    assert 0.9 * 0.7 < worst <= 0.7 * (1.0 + 1e-9)
    assert 0.9 < moved / math.sqrt(reading.n_records_changed) <= 1.0


def test_parts_of_the_budget_add_up():
    for n_samples in (1000, 5000, 10**6):
        stage, rest = RowNorm.planned(ApproxDP(1.0), n_samples)
        assert stage.guarantee.epsilon + rest.epsilon <= 1.0
        assert stage.guarantee.epsilon == pytest.approx(0.02)
        stage, rest = RowNorm.planned(GaussianDP(0.5), n_samples)
        assert math.hypot(stage.guarantee.mu, rest.mu) == pytest.approx(0.5, rel=1e-14)
        assert (stage.guarantee.mu / 0.5) ** 2 == pytest.approx(0.02)
    # Where noise would be all that is read.
    for budget, n_samples in ((ApproxDP(1.0), 999), (GaussianDP(0.1), 990)):
        assert RowNorm.planned(budget, n_samples) == (None, budget)


def test_a_private_number_of_rows_leaves_the_bound():
    X, y = problem(scale=0.2)
    for options in ({}, dict(delta=1e-5)):
        model = DPLogisticRegression(3.0, adjacency="add-remove", random_state=0, **options)
        assert model.fit(X, y).x_norm_ == 1.0


def problem(n_rows=3000, n_classes=2, scale=1.0, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, 6))
    X *= scale / np.linalg.norm(X, axis=1, keepdims=True)
    return X, np.argmax(X[:, :n_classes], axis=1)


MODELS = [
    (DPLogisticRegression, {}),
    (DPLogisticRegression, dict(delta=1e-5)),
    (DPLogisticRegression, dict(mechanism="gradient")),
    (DPLogisticRegression, dict(mechanism="output")),
    (DPLinearSVC, {}),
    (DPLinearSVC, dict(delta=1e-5)),
]


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("kind, options", MODELS)
def test_short_rows_are_learned_from_like_long_ones(kind, options, n_classes):
    X, y = problem(n_classes=n_classes)
    for power in (0, 1, 4, 7):
        short = kind(epsilon=3.0, random_state=1, **options).fit(X / 2.0**power, y)
        assert 2.0**-power <= 1.001 * short.x_norm_ <= 2.0 ** (2.1 - power)
        assert short.score(X / 2.0**power, y) > (0.9 if n_classes == 2 else 0.75)
        assert short.guarantee_.epsilon == 3.0
        assert "norm that is read" in short.guarantee_.mechanism


def test_predictions_are_clipped_to_the_norm_that_was_read():
    X, y = problem(scale=0.2)
    model = DPLogisticRegression(3.0, random_state=0).fit(X, y)
    assert model.x_norm_ == 0.25
    np.testing.assert_allclose(model.decision_function(5 * X), model.decision_function(1.25 * X))
    expected = 0.25 / 0.2 * X @ model.coef_[0] + model.intercept_
    np.testing.assert_allclose(model.decision_function(5 * X), expected, rtol=1e-6)


@pytest.mark.parametrize("of_users", [False, True])
@pytest.mark.parametrize("options", [{}, dict(delta=1e-4)])
def test_a_replay_finds_the_reading_and_nothing_more(options, of_users):
    X, y = problem(n_rows=60, scale=0.2)
    groups = np.arange(60) // 2 if of_users else None
    model = DPLogisticRegression(60.0, **options)
    report = replay(model, X, y, groups=groups, n=80, random_state=0)
    assert report.passed, str(report)
    assert "RowNorm." in str(report), str(report)
