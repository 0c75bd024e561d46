"""Regression on features: what is released, with how much noise, and what it tends to."""

import inspect
import math
from types import SimpleNamespace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import Ridge
from support.insides import noise_source
from support.problems import LAYOUTS
from support.problems import feature_blocks as blocks
from support.releases import let_the_solver_err, transcript
from support.statistics import composed, strength

from skdp.exceptions import SolverError
from skdp.kernel._descent import FeatureDescent, FeatureStatistics
from skdp.kernel._pure import FeatureOutput
from skdp.kernel._ridge_problem import ridge_sensitivity
from skdp.mechanisms import NoiseLaw
from skdp.privacy import ApproxDP, GaussianDP, gaussian_delta
from skdp.rows import fourier_features
from skdp.rows._blocks import NormalisedRows

ADJACENCIES = ["replace-one", "add-remove"]

# More inputs than frequencies: phases can be chosen.
FOURIER = fourier_features("rbf", 40, n_components=12, gamma=0.5, random_state=0)
LINEAR = NormalisedRows(6, 2.0)


def row_of(features, kind):
    """A row, far away where features allow it, with features "here", "opposite" or "across"."""
    if features is LINEAR:
        # Not along an axis, so that second moments are off the diagonal as well.
        axes = np.linalg.qr(np.random.default_rng(1).normal(size=(6, 6)))[0]
        return {"here": 1e6 * axes[0], "opposite": -1e300 * axes[0], "across": 1e6 * axes[1]}[kind]
    turn = {"here": 0.0, "opposite": math.pi, "across": math.pi / 2}[kind]
    here = np.linspace(-1.0, 1.0, 40)
    return here + np.linalg.pinv(features.frequencies) @ np.full(6, turn)


def neighbours(
    features, adjacency, layout="dense", *, other="here", target=-1.0, n=3000, pull=0.0
):
    """Many rows that are all alike, and a record whose target they do not reach.

    It is replaced by a record with features ``other`` and the given target, or removed.
    """
    row = row_of(features, "here")
    rows, targets = np.tile(row, (n, 1)), np.full(n, pull)
    here = [np.vstack([row, rows]), np.append(1.0, targets)]
    if adjacency == "add-remove":
        there = [rows, targets]
    else:
        there = [np.vstack([row_of(features, other), rows]), np.append(target, targets)]
    return [blocks(features, *each, layout) for each in (here, there)]


def descent(data, guarantee, *, clip_norm=0.25, penalty=0.0, seed=0, noise=None):
    noise = noise_source(seed) if noise is None else noise
    return FeatureDescent(guarantee, guarantee, clip_norm, penalty)(data, noise)[0]


def sufficient_statistics(data, *, guarantee, noise, penalty=3.0):
    return FeatureStatistics(guarantee, guarantee, penalty)(data, noise)[0]


def spent(here, there, solve, guarantee):
    """Distance of exact values in units of the noise, and budget, of each release.

    Also checks that the noise does not depend on the data and that nothing but the releases
    is used.
    """
    first, result = transcript(lambda: solve(here))
    second, same = transcript(lambda: solve(there), replay=first)
    assert_array_equal(result, same)
    assert len(first) == len(second)
    distances, budgets = [], []
    for a, b in zip(first, second, strict=True):
        assert (a.scale, a.step) == (b.scale, b.step)
        assert a.law == b.law and a.law.guarantee.adjacency == guarantee.adjacency
        distances.append(np.linalg.norm(a.asked - b.asked) / a.scale)
        budgets.append(strength(a.law.guarantee))
    assert composed(distances, guarantee) <= strength(guarantee)
    assert_allclose(composed(budgets, guarantee), strength(guarantee), rtol=1e-9)
    assert (np.array(distances) <= budgets).all()
    return np.array(distances), np.array(budgets), first


@pytest.mark.parametrize("mechanism", ["gradient", "sufficient_statistics"])
@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_errors_that_pass_are_part_of_the_sensitivity(adjacency, mechanism):
    data = blocks(LINEAR, np.ones((3000, 6)), np.ones(3000))
    guarantee = GaussianDP(2.0, adjacency=adjacency)
    records = guarantee.n_records_changed
    # Of each sum the size, and how far a record moves it.
    sums = {"second_moments": (21, math.sqrt(records))}
    if mechanism == "gradient":
        sums["target_moments"] = 2, 2.0 if records == 2 else math.sqrt(2.0)
        sums["whitened_sum"] = 6, records * 0.25
    else:
        sums["capped_sum"] = 6, records

    def solve():
        if mechanism == "gradient":
            return descent(data, guarantee)
        return sufficient_statistics(data, guarantee=guarantee, noise=noise_source(0))

    for name, (size, exact) in sums.items():
        compute, error, found = getattr(data, name), 1.0, None
        while found is None:  # the largest that passes, to a tenth
            error *= 0.9
            setattr(data, name, lambda *given, c=compute, e=error: (c(*given)[0], e))
            try:
                found = [r.sensitivity for r in transcript(solve)[0] if r.asked.shape == (size,)]
            except SolverError:
                continue
        setattr(data, name, compute)
        assert found and min(found) >= exact + 2.0 * error


# Neighbours: given the same outputs so far, how far apart are the next exact values?


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("features", [LINEAR, FOURIER], ids=["linear", "fourier"])
@pytest.mark.parametrize("penalty", [0.0, 7.0])
def test_a_descent_spends_its_budget_where_a_record_is_removed(penalty, features, layout):
    # The number of rows, targets, second moments, gradients: all move as far as they can.
    guarantee = GaussianDP(2.0, adjacency="add-remove")
    here, there = neighbours(features, "add-remove", layout)

    def solve(data):
        return descent(data, guarantee, penalty=penalty)

    distances, budgets, releases = spent(here, there, solve, guarantee)
    size = here.n_features
    shapes = [release.asked.shape for release in releases]
    assert shapes[:4] == [(), (2,), (size * (size + 1) // 2,), (size,)]
    assert releases[-1].asked.shape == ()  # predictions of weights that are noise
    distances, budgets = distances[:-1], budgets[:-1]
    assert (distances > 0.96 * budgets).all()
    assert composed(distances, guarantee) > 0.97 * composed(budgets, guarantee)


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("features", [LINEAR, FOURIER], ids=["linear", "fourier"])
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_predictions_are_limited_in_their_mean_and_spend_its_budget(sign, features, adjacency):
    guarantee = GaussianDP(2.0, adjacency=adjacency)
    here, there = neighbours(features, adjacency, other="opposite", target=1.0)
    odd = features.transform(row_of(features, "here")[np.newaxis])[0].astype(np.float64)
    noisy, _ = transcript(lambda: descent(here, guarantee))
    # Steps whose noise leads far along the features of the odd record.
    far = [
        SimpleNamespace(released=sign * 1e6 * odd if r.asked.shape == odd.shape else r.released)
        for r in noisy
    ]
    (*_, first), _ = transcript(lambda: descent(here, guarantee), replay=far)
    (*_, second), _ = transcript(lambda: descent(there, guarantee), replay=far)
    assert first.asked.shape == ()
    assert 0.98 < abs(first.asked - second.asked) / first.sensitivity <= 1.0
    assert first.scale * first.law.guarantee.mu >= first.sensitivity


def test_means_of_predictions_are_right_where_targets_are_skewed():
    # One of twenty targets is far from the others: their median is at 0, their mean at 0.05.
    rng = np.random.default_rng(3)
    X = 1.0 + 0.1 * rng.normal(size=(4000, 6))
    y = np.where(np.arange(4000) % 20 == 0, 1.0, 0.0)
    data, guarantee = blocks(LINEAR, X, y), GaussianDP(5.0)
    weights, level = FeatureDescent(guarantee, guarantee)(data, noise_source(1))
    predicted = LINEAR.transform(X) @ weights + level
    assert abs(predicted.mean() - 0.05) < 0.005  # 0.001 the deviation of the noise
    assert abs((predicted - level).mean()) > 0.015  # what the cap alone would have


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("features", [LINEAR, FOURIER], ids=["linear", "fourier"])
@pytest.mark.parametrize("other, target", [("here", -1.0), ("opposite", 1.0)])
@pytest.mark.parametrize("clip_norm", [0.25, 0.04])
def test_the_gradients_of_a_descent_turn_around_where_a_record_does(
    clip_norm, other, target, features, layout
):
    # Opposite targets, or opposite features: in one block of data, no outer product changes.
    guarantee = GaussianDP(2.0)
    here, there = neighbours(features, "replace-one", layout, other=other, target=target)

    def solve(data):
        return descent(data, guarantee, clip_norm=clip_norm)

    distances, budgets, releases = spent(here, there, solve, guarantee)
    steps = np.array([release.asked.shape == (here.n_features,) for release in releases])
    assert (distances[steps] > 0.96 * budgets[steps]).all()
    # Targets, second moments and the mean at the end.
    assert steps.sum() == len(steps) - 3
    assert (distances[0] > 0.96 * budgets[0]) == (target == -1.0)  # from end to end
    assert distances[1] < 0.01


@pytest.mark.parametrize("features", [LINEAR, FOURIER], ids=["linear", "fourier"])
def test_second_moments_move_most_between_orthogonal_features(features):
    guarantee = GaussianDP(2.0)
    here, there = neighbours(features, "replace-one", other="across")
    for solve in (
        lambda data: descent(data, guarantee),
        lambda data: sufficient_statistics(data, guarantee=guarantee, noise=noise_source(0)),
    ):
        distances, budgets, releases = spent(here, there, solve, guarantee)
        size = here.n_features * (here.n_features + 1) // 2
        (place,) = (i for i, release in enumerate(releases) if release.asked.shape == (size,))
        assert distances[place] > 0.96 * budgets[place]


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("features", [LINEAR, FOURIER], ids=["linear", "fourier"])
@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_sufficient_statistics_spend_their_budget(adjacency, features, layout):
    guarantee = GaussianDP(2.0, adjacency=adjacency)

    def solve(data):
        return sufficient_statistics(data, guarantee=guarantee, noise=noise_source(0))

    here, there = neighbours(features, adjacency, layout, other="opposite", target=1.0)
    distances, budgets, _ = spent(here, there, solve, guarantee)
    assert len(distances) == 2
    assert distances[1] > 0.96 * budgets[1]  # products with the targets
    if adjacency == "add-remove":
        assert distances[0] > 0.96 * budgets[0]
        assert composed(distances, guarantee) > 0.97 * 2.0


def output(data, guarantee, noise, *, clip_norm=0.25, penalty=1e3, distance=None):
    if distance is None:
        distance = ridge_sensitivity(
            loss="huber",
            huber_width=clip_norm,
            penalty=penalty,
            y_bound=1.0,
            adjacency=guarantee.adjacency,
        )
    law = NoiseLaw.meeting(guarantee, size=data.n_features)
    return FeatureOutput(guarantee, law, penalty, clip_norm, distance)(data, noise)[0]


def moved(solve, here, there):
    """How far apart the one release of each of two worlds is, with its scale and its law."""
    ((a,), x), ((b,), z) = (transcript(lambda data=data: solve(data)) for data in (here, there))
    assert (a.scale, a.law) == (b.scale, b.law)
    return np.linalg.norm(x - z), a.scale, a.law  # same noise: it cancels


@pytest.mark.parametrize("features", [LINEAR, FOURIER], ids=["linear", "fourier"])
@pytest.mark.parametrize("epsilon, delta", [(1.0, 0.0), (1.0, 1e-5), (0.1, 1e-2)])
@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_worst_minimisers_are_as_far_apart_as_declared(adjacency, epsilon, delta, features):
    # A large penalty keeps scores small and the residual of the odd record capped.
    guarantee = ApproxDP(epsilon, delta, adjacency=adjacency)
    here, there = neighbours(features, adjacency, other="opposite", target=1.0, n=20, pull=1.0)
    shift, scale, law = moved(lambda data: output(data, guarantee, noise_source(0)), here, there)
    gaussian = law.kind == "gaussian"
    assert gaussian == (epsilon == 0.1 and delta > 0.0)
    attained = (
        gaussian_delta(epsilon, shift / scale) / delta if gaussian else shift / scale / epsilon
    )
    # Features that are rounded to integers are half a percent longer at most.
    assert (0.75 if gaussian else 0.95) < attained <= 1.0


@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_output_noise_covers_neighbours_and_errors_that_add_up(adjacency, monkeypatch):
    # The first unit vector, so that errors of the solver are along the shift of minimisers.
    guarantee = ApproxDP(1.0, adjacency=adjacency)
    rows, targets = 1e6 * np.eye(1, 6).repeat(21, axis=0), np.append(1.0, -np.ones(20))
    if adjacency == "replace-one":
        worst = (rows, targets), (rows, -np.ones(21))
    else:
        worst = (rows, targets), (rows[1:], targets[1:])
    releases = []
    for each, sign in zip(worst, (1.0, -1.0), strict=True):
        data = blocks(LINEAR, *each)
        let_the_solver_err(monkeypatch, inspect.getmodule(FeatureOutput), sign)
        (release,), _ = transcript(lambda data=data: output(data, guarantee, noise_source(0)))
        releases.append(release)
    here, there = releases
    exact = guarantee.n_records_changed * 0.25 / 1e3  # cap over penalty
    error = (here.sensitivity - exact * data.row_norm**3) / 2.0
    distance = np.linalg.norm(here.asked - there.asked)
    # The error is a small part of the sensitivity, and the comparison resolves it.
    assert 0.0 < error < 1e-5 * exact
    assert abs(distance - exact - 2.0 * error) < 0.3 * error
    assert distance <= here.sensitivity


# Lattices and laws of the noise.


def test_every_release_draws_its_own_noise():
    rng = np.random.default_rng(8)
    n_features = 300
    X = rng.normal(size=(4000, n_features))
    data = blocks(NormalisedRows(n_features, 1.0), X, 0.0 * X[:, 0])
    guarantee = GaussianDP(1.0, adjacency="add-remove")
    releases, _ = transcript(lambda: descent(data, guarantee))
    noises = np.array(
        [
            (release.released - release.asked) / release.scale
            for release in releases
            if release.asked.shape == (n_features,)
        ]
    )
    assert len(noises) > 10
    # Independent ones correlate by 0.4, seven standard deviations, with a chance of 3e-12 a pair.
    assert np.abs(np.corrcoef(noises) - np.eye(len(noises))).max() < 0.4
    # Root mean squares of 300 numbers, six standard deviations.
    assert_allclose(np.sqrt((noises**2).mean(axis=1)), 1.0, atol=6.0 / math.sqrt(600))


# Without privacy.


def smooth_problem(n=1500, seed=9):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2.0, 2.0, size=(n, 2))
    return X, np.clip(np.sin(2.0 * X[:, 0]) * X[:, 1] / 2 + 0.2 * rng.normal(size=n), -1.0, 1.0)


SOME = fourier_features("rbf", 2, n_components=16, gamma=1.0, random_state=9)


@pytest.mark.parametrize("penalty", [20.0, 300.0])
@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("mechanism", ["gradient", "sufficient_statistics", "output"])
def test_without_privacy_all_are_kernel_ridge_where_no_residual_is_capped(
    mechanism, adjacency, penalty
):
    X, targets = smooth_problem()
    data = blocks(SOME, X, targets)
    guarantee = GaussianDP(1e6, adjacency=adjacency)
    if mechanism == "gradient":
        weights = descent(data, guarantee, clip_norm=3.0, penalty=penalty)
    elif mechanism == "sufficient_statistics":
        weights = sufficient_statistics(
            data, guarantee=guarantee, noise=noise_source(0), penalty=penalty
        )
    else:
        free = ApproxDP(1e8, adjacency=adjacency)
        weights = output(data, free, noise_source(0), clip_norm=3.0, penalty=penalty)
    Z = np.vstack([rows for rows, _ in data.blocks])
    if mechanism == "gradient":  # whose offset is the mean
        targets = targets - targets.mean()
    ridge = Ridge(alpha=penalty, fit_intercept=False, tol=1e-12).fit(Z, targets)
    # What is left is the lattice, a hundredth of a record's influence.
    atol = 2e-3 if mechanism == "output" else 5e-4
    assert_allclose(weights, ridge.coef_, atol=atol * np.abs(ridge.coef_).max())
    kernel = KernelRidge(alpha=penalty, kernel="precomputed").fit(Z @ Z.T, targets)
    assert_allclose(Z @ weights, kernel.predict(Z @ Z.T), atol=atol)


def test_statistics_take_the_public_penalty_and_survive_negative_eigenvalues():
    # Two rows: the noisy second moments have eigenvalues of both signs.
    data = blocks(SOME, [[0.0, 0.0], [1.0, 1.0]], [1.0, -1.0])
    for penalty in (None, 40.0):
        plan = FeatureStatistics.plan(ApproxDP(2.0, 1e-5), n_components=16, penalty=penalty)
        (moments, products), (weights, _) = transcript(
            lambda plan=plan: plan(data, noise_source(0))
        )
        lower = np.tril_indices(16, -1)
        matrix = np.diag(moments.released[:16])
        matrix[lower] = moments.released[16:] / math.sqrt(2.0)
        matrix = np.tril(matrix) + np.tril(matrix, -1).T
        values, vectors = np.linalg.eigh(matrix)
        assert values[0] < 0.0 < values[-1]
        repaired = (vectors * np.maximum(values, 0.0)) @ vectors.T
        # Twice the deviation of an entry times the root of the size: the norm of such noise.
        used = penalty or 2.0 * math.sqrt(16.0) * moments.scale / math.sqrt(2.0)
        expected = np.linalg.solve(repaired + used * np.eye(16), products.released)
        # The lattice, which the penalty does not count, adds a few percent to the scale.
        rtol = 0.05 if penalty is None else 1e-9
        assert np.linalg.norm(weights - expected) <= rtol * np.linalg.norm(expected)
