"""Kernel ridge regression for users: all rows of one are replaced, and nothing counts them."""

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from support.insides import Users, noise_source
from support.problems import LAYOUTS
from support.problems import feature_blocks as blocks
from support.releases import transcript
from support.statistics import composed, name, strength

from skdp.kernel import DPKernelRidge
from skdp.kernel._descent import FeatureDescent, FeatureStatistics
from skdp.privacy import GaussianDP
from skdp.rows import fourier_features
from skdp.rows._blocks import FeatureBlocks, IntegerFeatureBlocks, NormalisedRows

ADJACENCIES = ["replace-one", "add-remove"]
KINDS = [FeatureBlocks, IntegerFeatureBlocks]
LINEAR = NormalisedRows(6, 2.0)
# More inputs than frequencies: phases can be chosen.
FOURIER = fourier_features("rbf", 40, n_components=12, gamma=0.5, random_state=0)
FEATURES = pytest.mark.parametrize("features", [LINEAR, FOURIER], ids=["linear", "fourier"])
COUNTS = pytest.mark.parametrize("counts", [(1, 1), (1, 50), (50, 7), (13, 13), (2, 3000)])


def users_of(counts):
    """Owners of rows that stand one user after another."""
    return Users.of(np.repeat(np.arange(len(counts)), counts), int(np.sum(counts)))


def row_of(features, kind):
    """A row, far away where features allow it, with features "here", "opposite" or "across"."""
    if features is LINEAR:
        axes = np.linalg.qr(np.random.default_rng(1).normal(size=(6, 6)))[0]
        return {"here": 1e6 * axes[0], "opposite": -1e300 * axes[0], "across": 1e6 * axes[1]}[kind]
    turn = {"here": 0.0, "opposite": math.pi, "across": math.pi / 2}[kind]
    return np.linspace(-1.0, 1.0, 40) + np.linalg.pinv(features.frequencies) @ np.full(6, turn)


def worlds(features, adjacency, counts, *, other="here", target=-1.0, layout="dense", pull=0.0):
    """Three thousand users alike, of one to three rows, and one whose target they do not reach.

    The first user has ``counts[0]`` rows. They are replaced by ``counts[1]`` others, or removed.
    """
    row = row_of(features, "here")
    others = 1 + np.arange(3000) % 3
    n = int(others.sum())

    def world(kind, value, count):
        X = np.vstack([np.tile(row_of(features, kind), (count, 1)), np.tile(row, (n, 1))])
        y = np.append(np.full(count, value), np.full(n, pull))
        sizes = [count, *others] if count else others
        return blocks(features, X, y, layout, users=users_of(sizes))

    if adjacency == "add-remove":
        return world("here", 1.0, counts[0]), world("here", 1.0, 0)
    return world("here", 1.0, counts[0]), world(other, target, counts[1])


def shares_of(here, there, solve, guarantee):
    """What neighbours use up of each release that is declared, given the same outputs so far."""
    first, result = transcript(lambda: solve(here))
    second, same = transcript(lambda: solve(there), replay=first)
    assert_array_equal(result, same)  # nothing but what is released goes in
    assert len(first) == len(second)
    distances, budgets = [], []
    for a, b in zip(first, second, strict=True):
        assert (a.scale, a.law, a.sensitivity, a.step) == (b.scale, b.law, b.sensitivity, b.step)
        assert a.asked.shape == b.asked.shape
        distances.append(np.linalg.norm(a.asked - b.asked) / a.scale)
        budgets.append(strength(a.law.guarantee))
    assert_allclose(composed(budgets, guarantee), strength(guarantee), rtol=1e-9)
    assert (np.array(distances) <= budgets).all()
    assert composed(distances, guarantee) <= strength(guarantee)
    return np.array(distances) / budgets, first


# What is released, and how far all rows of a user move it.


@COUNTS
@FEATURES
@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_all_rows_of_a_user_move_a_descent_as_far_as_declared_and_no_farther(
    adjacency, features, counts
):
    guarantee = GaussianDP(2.0, adjacency=adjacency)
    here, there = worlds(features, adjacency, counts)

    def solve(data):
        return FeatureDescent(guarantee, guarantee, 0.04)(data, noise_source(0))[0]

    shares, releases = shares_of(here, there, solve, guarantee)
    size = here.n_features
    gradients = [s for s, r in zip(shares, releases, strict=True) if r.asked.shape == (size,)]
    assert len(gradients) == 48
    assert min(gradients) > 0.96
    if adjacency == "add-remove":  # the count, cells, targets and second moments move as well
        assert min(shares[[0, 1, 3]]) > 0.96
        assert shares[2] > 0.88  # the centre of the window is nearer to this end of the targets
        assert releases[0].asked == 3001.0  # users, of whom there are 6003 rows and more


@COUNTS
@FEATURES
@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_all_rows_of_a_user_move_noisy_statistics_as_far_as_declared(adjacency, features, counts):
    guarantee = GaussianDP(2.0, adjacency=adjacency)
    here, there = worlds(features, adjacency, counts, other="across")

    def solve(data):
        return FeatureStatistics(guarantee, guarantee, 3.0)(data, noise_source(0))[0]

    (gram, _), _ = shares_of(here, there, solve, guarantee)
    assert gram > 0.98
    here, there = worlds(features, adjacency, counts)  # the same rows, whose targets turn around
    (_, products), _ = shares_of(here, there, solve, guarantee)
    assert products > 0.98


# Sums over users.


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("kind", KINDS)
def test_sums_over_users_are_those_of_the_means_of_their_rows(kind, layout):
    rng = np.random.default_rng(2)
    n = 2600
    ids = rng.integers(0, 90, n)
    X, targets = rng.normal(size=(n, 3)), rng.uniform(-1.0, 1.0, n)
    features = fourier_features("rbf", 3, n_components=10, gamma=0.7, random_state=1)
    data = kind(LAYOUTS[layout](X), targets, features, users=Users.of(ids, n))
    assert (data.n_units, data.n_samples) == (90, n)
    Z = np.vstack([rows for rows, _ in kind(X, targets, features).blocks])
    weights = rng.normal(size=10)

    def mean(rows):
        """Sum over users of the means of their rows, by no way of the code's."""
        return sum(np.mean(rows[ids == user], axis=0) for user in range(90))

    residuals = Z @ weights - targets
    capped, error = data.capped_sum(weights, 0.4)
    exact = mean(Z * np.clip(residuals, -0.4, 0.4)[:, np.newaxis])
    assert np.linalg.norm(capped - exact) <= error + n * 0.4 * 2.0**-24
    scores, error = data.score_sum(weights, 0.3)
    assert abs(scores - mean(np.clip(Z @ weights, -0.3, 0.3))) <= error + n * 0.3 * 2.0**-24
    sums, error = data.target_moments()
    assert_allclose(sums, [mean(targets), mean(targets**2)], atol=error, rtol=0)
    moments, error = data.second_moments()
    products = np.einsum("ij,ik->ijk", Z, Z)
    assert_array_equal(moments, moments.T)
    assert error < 1e-3
    assert np.linalg.norm(moments - mean(products)) <= error + 1e-12
    shift = data.centred(0.25)
    assert_allclose(shift.target_moments()[0][0], sums[0] - 0.25 * 90, rtol=1e-12)
    with pytest.raises(ValueError, match="Rows with owners"):
        next(iter(data.blocks))


# The estimator.


def problem(n_users=400, seed=0):
    rng = np.random.default_rng(seed)
    ids = np.repeat(np.arange(n_users), rng.integers(1, 9, n_users))
    ids = rng.permutation(ids)
    X = rng.uniform(-1.0, 1.0, (len(ids), 2))
    return X, np.sin(3.0 * X[:, 0]) * X[:, 1], ids


@pytest.mark.parametrize("mechanism", ["gradient", "sufficient_statistics"])
@pytest.mark.parametrize("kernel", ["rbf", "linear"])
def test_users_of_equal_rows_count_as_one_row_each(mechanism, kernel):
    X, y, _ = problem()
    model = DPKernelRidge(2.0, 1e-5, kernel=kernel, mechanism=mechanism, y_bounds=(-1.0, 1.0))
    model.set_params(n_components=40, random_state=3)
    alone = model.fit(X, y).coef_
    order = np.random.default_rng(0).permutation(np.repeat(np.arange(len(X)), 3))
    order = np.concatenate([np.arange(len(X)), order])  # first come in the order of the rows
    again = model.fit(X[order], y[order], groups=order)
    assert_allclose(again.coef_, alone, atol=2e-3 * np.linalg.norm(alone))
    assert again.guarantee_.unit == "user"


def test_a_fit_for_users_learns_with_all_of_their_rows():
    X, y, ids = problem(4000)
    there, values, _ = problem(300, seed=1)
    model = DPKernelRidge(1.0, 1e-6, y_bounds=(-1.0, 1.0)).fit(X, y, groups=ids)
    assert model.score(there, values) > 0.85
    # By the rule, from the number of users, which is public, and not of rows.
    rows = DPKernelRidge(1.0, 1e-6, y_bounds=(-1.0, 1.0)).fit(X, y)
    first = DPKernelRidge(1.0, 1e-6, y_bounds=(-1.0, 1.0)).fit(X[:4000], y[:4000])
    assert model.coef_.shape == first.coef_.shape != rows.coef_.shape


@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_bounds_of_the_target_see_one_row_of_each_user(adjacency):
    X, y, ids = problem(4000)
    many = np.full(5000, 90.0)  # of one user, against all others together
    X, y = np.vstack([X, np.zeros((5000, 2))]), np.append(y, many)
    ids = np.append(ids, np.full(5000, 4000))
    model = DPKernelRidge(2.0, 1e-5, y_bounds="auto", adjacency=adjacency, n_components=30)
    model.fit(X, y, groups=ids)
    assert model.y_bounds_[1] < 3.0 and model.guarantee_.unit == "user"
    assert model.guarantee_.epsilon == 2.0
    assert model.guarantee_.delta_at(2.0) <= 1e-5
    model.fit(X, y)  # rows: a user of many has them all
    assert model.y_bounds_[1] > 80.0


def test_rules_read_the_number_of_users():
    X, y, ids = problem(3000)
    rule = DPKernelRidge("auto", 1e-5, y_bounds=(-1.0, 1.0), n_components=10)
    assert (
        rule.fit(X, y, groups=ids).guarantee_.epsilon
        == rule.fit(X[:3000], y[:3000]).guarantee_.epsilon
        != rule.fit(X, y).guarantee_.epsilon
    )


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("loss", ["auto", "huber", "squared"])
def test_the_automatic_mechanism_is_one_for_users(loss, adjacency):
    X, y, ids = problem(40)  # few: for rows it might be output noise
    if (loss, adjacency) == ("squared", "add-remove"):
        return
    model = DPKernelRidge(0.3, 1e-5, y_bounds=(-1.0, 1.0), loss=loss, adjacency=adjacency)
    told = model.fit(X, y, groups=ids).guarantee_.mechanism
    assert (
        told
        in {
            "auto": (
                "noisy gradient descent on random features",
                "noisy sufficient statistics of random features",
            ),
            "huber": ("noisy gradient descent on random features",),
            "squared": ("noisy sufficient statistics of random features",),
        }[loss]
    )


@pytest.mark.parametrize("y_bounds", [(-1.0, 1.0), "auto"])
@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("options", [{}, dict(loss="squared"), dict(kernel="linear")], ids=name)
def test_a_fit_for_users_is_charged_as_planned(options, adjacency, y_bounds):
    if (options.get("loss"), adjacency) == ("squared", "add-remove"):
        return
    X, y, ids = problem(1500)
    model = DPKernelRidge(2.0, 1e-6, adjacency=adjacency, y_bounds=y_bounds, **options)
    planned = model._planned_for_users(2)
    fitted = model.fit(X, y, groups=ids).guarantee_
    assert planned._plain("user") == fitted._plain("user")
    assert planned.unit == fitted.unit == "user"
