"""A smaller norm that rows are clipped to: what it costs, and that it costs no more."""

import itertools
import math
from fractions import Fraction
from unittest import mock

import numpy as np
import pytest
from scipy import sparse
from support.insides import Users, noise_source

from skdp.audit import replay
from skdp.linear_model import DPLinearSVC, DPLogisticRegression
from skdp.losses import LogisticLoss
from skdp.privacy import ApproxDP, GaussianDP
from skdp.releases import NormedRelease, OutputPerturbation, _row_norm, split_for_norm
from skdp.solvers import certificates
from skdp.solvers.hits import cell_counts
from skdp.solvers.row_lengths import length_cells

N_CELLS, ROOT, N_UNITS = _row_norm.N_CELLS, math.sqrt(2.0), 200


def length_counts(X, most, n_cells):
    """Numbers of rows by their cells."""
    return np.bincount(length_cells(X, most, n_cells), minlength=n_cells)


def exact_cell(row, most):
    """By rational arithmetic, but for lengths within a thousandth of a limit, which are None."""
    square = sum(Fraction(float(x)) ** 2 for x in row) / Fraction(most) ** 2
    near = [abs(float(square * 2**k) - 1.0) < 4e-3 for k in range(N_CELLS)]
    if any(near):
        return None
    return max([k for k in range(N_CELLS) if square <= Fraction(1, 2**k)], default=0)


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("most", [1.0, 3e-50, 7.3, 1e50])
@pytest.mark.parametrize("n_features", [1, 3, 700])
def test_rows_are_counted_by_their_length(kind, most, n_features):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, n_features)) * np.geomspace(1e-4, 4.0, 60)[:, np.newaxis]
    X[::7, 1:] = 0.0
    X = X / math.sqrt(n_features) * most
    cells = [exact_cell(row, most) for row in X]
    sure = [i for i, cell in enumerate(cells) if cell is not None]
    counts = length_counts(kind(X[sure]), most, N_CELLS)
    expected = np.bincount([cells[i] for i in sure], minlength=N_CELLS)
    np.testing.assert_array_equal(counts, expected)
    assert len(sure) > 50 and (expected > 0).sum() > 8


def test_rows_as_long_as_a_limit_are_within_it():
    rows = np.random.default_rng(0).normal(size=(500, 9))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    for place in range(N_CELLS):
        counts = length_counts(rows / ROOT**place, 1.0, N_CELLS)
        assert counts[place] == 500


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


def test_absurd_entries_count_as_long_and_zeros_as_short():
    X = np.array([[1e308, -1e308], [5e-324, 0.0], [0.0, 0.0], [1e-300, -1e300]])
    with np.errstate(all="raise"):
        counts = length_counts(X, 1e-50, N_CELLS)
    assert counts[0] == 2 and counts[-1] == 2
    assert length_counts(np.zeros((0, 2)), 1.0, N_CELLS).sum() == 0


def probabilities(counts, reading):
    """Of the cells, by the law that `select` states."""
    given = {}

    def kept(utilities, **named):
        given.update(named, utilities=np.asarray(utilities))
        return 0

    release = NormedRelease(reading, None, N_UNITS, reading)
    with mock.patch.object(_row_norm, "select", kept):
        release._selected(np.array(counts, dtype=float), None)
    exponents = given["epsilon"] / given["spread"] * given["utilities"]
    weights = np.exp(exponents - exponents.max())
    return weights / weights.sum()


@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
def test_worst_neighbours_cost_the_reading_and_no_more(adjacency):
    epsilon, worst = 0.7, 0.0
    reading = ApproxDP(epsilon, adjacency=adjacency)
    for n_rows in range(1, 10):
        # Rows in three cells, with empty ones between them: all that ranks can be.
        for a, b in itertools.product(range(n_rows + 1), repeat=2):
            if a + b > n_rows:
                continue
            counts = np.zeros(N_CELLS, dtype=np.int64)
            counts[[0, 6, 13]] = a, b, n_rows - a - b
            here = probabilities(counts, reading)
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
                    ratio = np.abs(np.log(here / probabilities(other, reading))).max()
                    worst = max(worst, ratio)
    assert 0.9 * epsilon < worst <= epsilon * (1.0 + 1e-9)


@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
def test_noisy_counts_move_by_as_much_as_is_claimed(adjacency):
    given = {}

    def kept(value, **named):
        given.update(named, value=value)
        return value

    reading = GaussianDP(0.3, adjacency=adjacency)
    normed = NormedRelease(reading, None, N_UNITS, reading)
    rows = np.random.default_rng(0).normal(size=(20, 3)) * 0.2
    long, none = np.full((1, 3), 9.0), np.zeros((0, 3))
    with mock.patch.object(_row_norm, "release", kept):
        normed.longer(rows, 1.0, None, None)
        first = given["value"]
        for last in [long] if adjacency == "replace-one" else [none]:
            normed.longer(np.vstack([rows[:-1], last]), 1.0, None, None)
    moved = np.linalg.norm(first - given["value"])
    assert moved == pytest.approx(given["sensitivity"], rel=1e-12)
    assert given["law"].scale == pytest.approx(1.0 / 0.3)
    assert given["error"] == 0.0


@pytest.mark.parametrize("reading", [ApproxDP(30.0), GaussianDP(30.0)])
@pytest.mark.parametrize("x_norm", [1.0, 0.37, 1e-50, 1e50])
def test_no_row_is_clipped_where_noise_is_small(reading, x_norm):
    normed = NormedRelease(reading, None, N_UNITS, reading)
    lengths = np.append(np.linspace(0.0, 0.2, 199), 1.0)
    for length in np.geomspace(2.0**-10, 4.0, 40):
        X = x_norm * length * lengths[:, np.newaxis] * np.array([[0.6, -0.8]])
        longer = normed.longer(X, x_norm, None, noise_source(0))
        power = round(2.0 * math.log2(longer))
        assert longer == 2.0 ** (power / 2.0) and 0 <= power < N_CELLS
        longest = np.linalg.norm(X / x_norm, axis=1).max()
        assert power == 0 or longest <= 1.003 / longer
        # Of noisy counts, one in forty keeps a norm that no row exceeds from being found.
        further = 1 if isinstance(reading, ApproxDP) else 3
        assert power == N_CELLS - 1 or longest > 0.997 / (ROOT**further * longer)


@pytest.mark.parametrize("reading", [ApproxDP(0.4), GaussianDP(0.4)])
def test_few_rows_are_clipped_and_a_part_of_them_never(reading):
    normed = NormedRelease(reading, None, 10_000, reading)
    for n_long in (0, 3, 500):
        X = np.full((10_000, 1), 0.125)
        X[:n_long] = 1.0
        norms = [1.0 / normed.longer(X, 1.0, None, noise_source(seed)) for seed in range(200)]
        assert min(norms) == (1.0 if n_long == 500 else 0.125)
        assert np.mean(norms) < 0.2 or n_long == 500


def test_users_count_alike_however_many_rows_they_have():
    # Fifty users have one short row each, and another has a hundred long ones.
    codes = np.concatenate([np.arange(50), np.full(100, 50)])
    X = np.where(codes < 50, 0.1, 0.9)[:, np.newaxis]
    given = []
    normed = NormedRelease(ApproxDP(1.0, unit="user"), None, 51, ApproxDP(1.0, unit="user"))
    with mock.patch.object(
        NormedRelease, "_selected", lambda self, *args: given.append(args) or 0
    ):
        normed.longer(X, 1.0, Users(codes, 51), noise_source(0))
        normed.longer(X, 1.0, None, noise_source(0))
    (of_users, _), (of_rows, _) = given
    assert of_rows[0] == 100.0 and of_users[0] == pytest.approx(1.0, abs=1e-5)
    assert of_rows[6] == of_users[6] == 50.0


@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
def test_a_user_moves_what_is_read_by_no_more_than_a_row_does(adjacency):
    rng = np.random.default_rng(0)
    reading = ApproxDP(0.7, adjacency=adjacency, unit="user")
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
            cells = length_cells(X, 1.0, N_CELLS)
            found.append(cell_counts(cells, N_CELLS, users.shares))
        here, there = (probabilities(counts, reading) for counts in found)
        worst = max(worst, np.abs(np.log(here / there)).max())
        moved = max(moved, np.linalg.norm(found[0] - found[1]))
    assert 0.9 * 0.7 < worst <= 0.7 * (1.0 + 1e-9)
    assert 0.9 < moved / math.sqrt(reading.n_records_changed) <= 1.0


def test_parts_of_the_budget_add_up():
    for n_samples in (1000, 5000, 10**6):
        reading, rest = split_for_norm(ApproxDP(1.0), n_samples=n_samples)
        assert reading.epsilon + rest.epsilon <= 1.0
        assert 0.01 <= reading.epsilon <= 0.04
        reading, rest = split_for_norm(GaussianDP(0.5), n_samples=n_samples)
        assert math.hypot(reading.mu, rest.mu) == pytest.approx(0.5, rel=1e-14)
        assert 0.005 <= (reading.mu / 0.5) ** 2 <= 0.04 * (1.0 + 1e-9)
    # Where noise would be all that is read, and where the number of rows is private.
    for guarantee, n_samples in (
        (ApproxDP(1.0), 999),
        (GaussianDP(0.1), 1999),
        (ApproxDP(1.0, adjacency="add-remove"), None),
        (GaussianDP(1.0, adjacency="add-remove"), None),
    ):
        assert split_for_norm(guarantee, n_samples=n_samples) == (None, guarantee)


def test_a_release_whose_profile_the_reading_is_not_in_is_refused():
    target = ApproxDP(1.0, 1e-5)
    public = dict(loss=LogisticLoss(), n_features=3, row_norm=1.0, penalty=1.0)
    tight = OutputPerturbation.plan(target, **public)
    NormedRelease.plan(target, reading=GaussianDP(0.01), release=tight, n_units=9)
    with pytest.raises(ValueError, match="profile"):
        NormedRelease.plan(ApproxDP(1.0), reading=ApproxDP(0.1), release=tight, n_units=9)


def test_a_private_number_of_rows_is_refused():
    target = ApproxDP(1.0, 1e-5, adjacency="add-remove")
    public = dict(loss=LogisticLoss(), n_features=3, row_norm=1.0, penalty=1.0)
    release = OutputPerturbation.plan(target, **public)
    with pytest.raises(ValueError, match="n_units is public"):
        NormedRelease.plan(target, reading=GaussianDP(0.01), release=release, n_units=9)


def test_utilities_of_as_many_rows_as_are_certified_are_whole_numbers():
    # With the most that a norm may be worth: a tenth of the rows, and 14 times 0.3 over the least
    # epsilon of the reading, which is 40 over their number.
    most = certificates.MOST_ROWS * (1.0 + 0.1 + 14 * 0.3 / 40.0)
    assert most * _row_norm._PARTS < 2**52


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


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("kind, options", MODELS)
def test_the_reading_and_what_follows_cost_the_claim(kind, options, n_classes):
    model = kind(epsilon=3.0, **options)
    planned = model._plan(range(n_classes), 6, 3000)
    behind, guarantee = planned.release, planned.guarantee
    if model.delta > 0.0:
        total = math.hypot(planned.reading.mu, behind.budget.mu)
        assert total == pytest.approx(guarantee.refined.mu, rel=1e-14)
        assert guarantee.refined.epsilon_at(1e-5) <= 3.0 * (1.0 + 1e-9)
        assert 0.004 < (planned.reading.mu / total) ** 2 < 0.03
    else:
        total = planned.reading.epsilon + behind.guarantee.epsilon
        assert 3.0 * (1.0 - 1e-12) < total <= 3.0
        assert 0.009 < planned.reading.epsilon / 3.0 < 0.03
    assert (guarantee.epsilon, guarantee.delta) == (3.0, model.delta)


@pytest.mark.parametrize("x_norm", [1e-50, 1.7e-20, 0.3, 0.99999, 3.1, 1e50])
@pytest.mark.parametrize("delta", [0.0, 1e-5])
def test_units_decide_nothing(x_norm, delta):
    X, y = problem(scale=0.2)
    model = DPLogisticRegression(3.0, delta, x_norm=x_norm, random_state=0).fit(X * x_norm, y)
    assert x_norm / 4.001 < model.x_norm_ < x_norm / 1.9
    assert model.score(X * x_norm, y) > 0.9


def test_predictions_are_clipped_to_the_norm_that_was_read():
    X, y = problem(scale=0.2)
    model = DPLogisticRegression(3.0, random_state=0).fit(X, y)
    assert model.x_norm_ == 0.25
    np.testing.assert_allclose(model.decision_function(5 * X), model.decision_function(1.25 * X))
    expected = 0.25 / 0.2 * X @ model.coef_[0] + model.intercept_
    np.testing.assert_allclose(model.decision_function(5 * X), expected, rtol=1e-6)


@pytest.mark.parametrize(
    "options",
    [
        dict(C=1.0),
        dict(intercept_scaling=0.1),
        dict(mechanism="output", delta=1e-5),
        dict(mechanism="objective", delta=1e-5),
        dict(calibration="jmlr2011"),
        dict(epsilon=0.1),
        dict(epsilon=0.03, delta=1e-5),
        dict(adjacency="add-remove"),
        dict(adjacency="add-remove", delta=1e-5),
    ],
)
def test_what_is_given_by_hand_or_cannot_be_read_is_as_it_is_given(options):
    X, y = problem(scale=0.1)
    model = DPLogisticRegression(**{"epsilon": 3.0, "random_state": 0, **options}).fit(X, y)
    assert model.x_norm_ == 1.0
    assert "norm that is read" not in model.guarantee_.mechanism


@pytest.mark.parametrize("delta", [0.0, 1e-5])
def test_short_rows_of_users_are_learned_from(delta):
    X, y = problem(scale=0.1)
    model = DPLogisticRegression(8.0, delta, random_state=0)
    model.fit(X, y, groups=np.arange(len(X)) // 2)
    assert model.x_norm_ <= 0.25
    assert model.guarantee_.unit == "user"
    assert model.score(X, y) > 0.85


@pytest.mark.parametrize("of_users", [False, True])
@pytest.mark.parametrize("options", [{}, dict(delta=1e-4), dict(mechanism="gradient")])
def test_a_replay_finds_the_reading_and_nothing_more(options, of_users):
    X, y = problem(n_rows=60, scale=0.2)
    groups = np.arange(60) // 2 if of_users else None
    model = DPLogisticRegression(60.0, **options)
    report = replay(model, X, y, groups=groups, n=80, random_state=0)
    assert report.passed, str(report)
    assert "_row_norm" in str(report), str(report)
