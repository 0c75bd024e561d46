"""Regression on features: what is released, with how much noise, and what it tends to."""

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import optimize
from scipy.special import huber
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import Ridge
from support.insides import noise_source
from support.problems import LAYOUTS
from support.problems import feature_blocks as blocks
from support.releases import let_the_solver_err, listening, transcript
from support.statistics import composed, strength

from skdp.exceptions import SolverError
from skdp.features import fourier_features
from skdp.kernel import DPKernelRidge, _ridge_plan
from skdp.mechanisms import NoiseLaw
from skdp.privacy import ApproxDP, BudgetLedger, GaussianDP, gaussian_delta
from skdp.releases import (
    FeatureDescent,
    FeatureOutput,
    FeatureStatistics,
    _feature_output,
    plan_features,
    ridge_sensitivity,
)
from skdp.releases._feature_descent import _release_level, release_target_scale
from skdp.releases._feature_statistics import statistics_penalty
from skdp.solvers import certificates
from skdp.solvers.feature_rows import FeatureBlocks, IntegerFeatureBlocks, NormalisedRows

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


def sufficient_statistics(data, *, guarantee, noise, penalty=None):
    if penalty is None:
        penalty = statistics_penalty(n_components=data.n_features, guarantee=guarantee)
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
        assert a.scale == b.scale
        assert a.law == b.law and a.law.guarantee.adjacency == guarantee.adjacency
        distances.append(np.linalg.norm(a.asked - b.asked) / a.scale)
        budgets.append(strength(a.law.guarantee))
    assert composed(distances, guarantee) <= strength(guarantee)
    assert_allclose(composed(budgets, guarantee), strength(guarantee), rtol=1e-9)
    assert (np.array(distances) <= budgets).all()
    return np.array(distances), np.array(budgets), first


# Features, block by block.

KINDS = [FeatureBlocks, IntegerFeatureBlocks]


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("kind", KINDS)
def test_features_are_the_same_whether_they_are_kept_or_made_anew(kind, layout):
    rng = np.random.default_rng(1)
    X, targets = rng.normal(size=(2500, 4)), rng.uniform(-1.0, 1.0, 2500)
    features = fourier_features("laplacian", 4, n_components=20, gamma=1.0, random_state=2)
    kept, anew = (
        kind(LAYOUTS[layout](X), targets, features, cache_size=size) for size in (2**29, 0)
    )
    for guarantee in (GaussianDP(2.0), GaussianDP(2.0, adjacency="add-remove")):
        assert_array_equal(descent(kept, guarantee), descent(anew, guarantee))
    for (rows, y), (others, z) in zip(kept.blocks, anew.blocks, strict=True):
        assert_array_equal(rows, others)
        assert_array_equal(y, z)
        assert rows.dtype == others.dtype == np.float64
    # A visit that ends early does not leave the rest out.
    halfway = kind(LAYOUTS[layout](X), targets, features)
    next(iter(halfway.blocks))
    assert_array_equal(halfway.second_moments()[0], anew.second_moments()[0])


class ManyBlocks:
    """Stands for 100 million rows where only their number matters."""

    def __len__(self):
        return 97_657

    def __iter__(self):
        return iter(())


@pytest.mark.parametrize("kind", KINDS)
def test_a_hundred_million_rows_can_be_certified(kind):
    features = fourier_features("rbf", 10, n_components=100, gamma=0.5, random_state=0)
    data = kind(np.zeros((1, 10)), np.zeros(1), features)
    data.n_samples, data.blocks = 100_000_000, ManyBlocks()
    # Weights of a norm that the noise alone makes of 2,000 features, and far larger ones.
    for size in (1.0, 1e6):
        weights = np.full(100, size * 1.5 * math.sqrt(0.015 * 2000) / 10)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(kind, "_made", lambda self: iter(()))
            patch.setattr(kind, "__len__", lambda self: 97_657)
            errors = data.capped_sum(weights, 0.25)[1], data.second_moments()[1]
        # Shares of the largest sum of one record: they cost noise.
        assert errors[0] <= 1e-3 * 0.25
        assert errors[1] <= 1e-3
    for adjacency in ADJACENCIES:
        guarantee = ApproxDP(1.0, adjacency=adjacency)
        law = NoiseLaw.meeting(guarantee, size=100)
        release = FeatureOutput(guarantee, law, penalty=1.0, cap=0.25, distance=0.25)
        release.check_n_rows(100_000_000, 100)
        with pytest.raises(ValueError, match="X must have at most 100000000 rows"):
            release.check_n_rows(100_000_001, 100)


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize(
    "options",
    [{}, {"delta": 1e-6}, {"mechanism": "sufficient_statistics", "delta": 1e-6}],
    ids=str,
)
def test_too_many_rows_are_refused_before_the_charge(options, adjacency, monkeypatch):
    monkeypatch.setattr(_ridge_plan, "MOST_ROWS", 20)
    monkeypatch.setattr(certificates, "MOST_ROWS", 20)
    ledger = BudgetLedger(epsilon=9.0, delta=1e-3)
    model = DPKernelRidge(
        1.0, kernel="linear", adjacency=adjacency, ledger=ledger, **options, y_bounds=(-1.0, 1.0)
    )
    X = np.eye(21, 2)
    model.fit(X[:20], X[:20, 0])
    with pytest.raises(ValueError, match="X must have at most 20 rows") as caught:
        model.fit(X, X[:, 0])
    assert ("21" in str(caught.value)) == (adjacency == "replace-one")
    assert len(ledger.history()) == 1


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("mechanism", ["gradient", "sufficient_statistics", "output"])
@pytest.mark.parametrize("uncertain", ["capped_sum", "second_moments"])
def test_nothing_is_released_of_more_rows_than_can_be_certified(uncertain, mechanism, adjacency):
    data = blocks(LINEAR, np.ones((3000, 6)), np.ones(3000))
    guarantee = GaussianDP(2.0, adjacency=adjacency)
    if mechanism == "gradient" and uncertain == "capped_sum":
        uncertain = "whitened_sum"
    computed = getattr(data, uncertain)
    for error, passes in ((1e-4, True), (0.5, False)):
        setattr(data, uncertain, lambda *options, error=error: (computed(*options)[0], error))
        if not passes and uncertain != "second_moments":
            data.rounding_error = lambda *numbers, **options: 0.5
        releases = []

        def solve():
            if mechanism == "gradient":
                return descent(data, guarantee)
            if mechanism == "sufficient_statistics":
                return sufficient_statistics(data, guarantee=guarantee, noise=noise_source(0))
            free = ApproxDP(1.0, adjacency=adjacency)
            return output(data, free, noise_source(0))

        with listening(lambda record, releases=releases: releases.append(record.asked.shape)):
            if passes or (mechanism == "output" and uncertain == "second_moments"):
                solve()
                assert (6,) in releases
            else:
                with pytest.raises(SolverError):
                    solve()
                # The number of rows may be known by then, or the other sum.
                assert (6,) not in releases
                assert uncertain != "second_moments" or (21,) not in releases


@pytest.mark.parametrize("mechanism", ["gradient", "sufficient_statistics"])
@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_errors_that_pass_are_part_of_the_sensitivity(adjacency, mechanism):
    data = blocks(LINEAR, np.ones((3000, 6)), np.ones(3000))
    guarantee = GaussianDP(2.0, adjacency=adjacency)
    gradient = mechanism == "gradient"
    names = ("target_moments", "second_moments", "whitened_sum", "score_sum")
    names = names if gradient else ("capped_sum", "second_moments")
    sums = {name: getattr(data, name) for name in names}

    def solve():
        if gradient:
            return descent(data, guarantee)
        return sufficient_statistics(data, guarantee=guarantee, noise=noise_source(0))

    def released(name, compute, error):
        """Releases with an error of a sum, if it passes."""
        setattr(data, name, lambda *options: (compute(*options)[0], error))
        try:
            return transcript(solve)[0]
        except SolverError:
            return None

    for name, compute in sums.items():
        # The largest error that passes, to a few percent.
        error, beyond = 1.0, 2.0
        while (releases := released(name, compute, error)) is None:
            error, beyond = error / 2.0, error
        while beyond > 1.05 * error:
            middle = math.sqrt(error * beyond)
            if (found := released(name, compute, middle)) is None:
                beyond = middle
            else:
                error, releases = middle, found
        sizes = {"second_moments": (21,), "target_moments": (4,), "score_sum": ()}
        found = [r.sensitivity for r in releases if r.asked.shape == sizes.get(name, (6,))]
        # Without an error: of outer products, of products with targets, of targets, of gradients.
        records = guarantee.n_records_changed
        exact = {
            "second_moments": math.sqrt(records),
            "capped_sum": records,
            "target_moments": 2.0 if records == 2 else math.sqrt(2.0),
            "whitened_sum": records * 0.25,
            "score_sum": 0.0,
        }[name]
        if name == "score_sum":  # the number of rows, where it is released, comes first
            found = found[-1:]
            plan = plan_features(n_samples=6.0, n_components=6, guarantee=guarantee)
            # All targets are in the last cell, and the window is two cells wider.
            exact = records * plan.prediction_cap(0.004 * (3.0 / 32.0) ** 2)
        assert found and min(found) >= exact + 2.0 * error * (1.0 - 1e-9)
        setattr(data, name, compute)


# Neighbours: given the same outputs so far, how far apart are the next exact values?


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("features", [LINEAR, FOURIER], ids=["linear", "fourier"])
@pytest.mark.parametrize("clip_norm", [0.25, 0.04])
@pytest.mark.parametrize("penalty", [0.0, 7.0])
def test_a_descent_spends_its_budget_where_a_record_is_removed(
    penalty, clip_norm, features, layout
):
    # The number of rows, cells of targets, targets, second moments, gradients: all move as far as
    # they can.
    guarantee = GaussianDP(2.0, adjacency="add-remove")
    here, there = neighbours(features, "add-remove", layout)

    def solve(data):
        return descent(data, guarantee, clip_norm=clip_norm, penalty=penalty)

    distances, budgets, releases = spent(here, there, solve, guarantee)
    size = here.n_features
    shapes = [release.asked.shape for release in releases]
    assert shapes[:5] == [(), (32,), (4,), (size * (size + 1) // 2,), (size,)]
    assert releases[-1].asked.shape == ()  # predictions of weights that are noise
    distances, budgets = distances[:-1], budgets[:-1]
    # The centre of the window is nearer to the end at which the target is than to the other.
    assert distances[2] > 0.88 * budgets[2]
    assert (np.delete(distances, 2) > 0.96 * np.delete(budgets, 2)).all()
    assert composed(distances, guarantee) > 0.97 * composed(budgets, guarantee)


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("features", [LINEAR, FOURIER], ids=["linear", "fourier"])
def test_predictions_are_limited_in_their_mean_and_spend_its_budget(features, adjacency):
    guarantee = GaussianDP(2.0, adjacency=adjacency)
    here, there = neighbours(features, adjacency, other="opposite", target=1.0)
    odd = features.transform(row_of(features, "here")[np.newaxis])[0].astype(np.float64)
    plan = plan_features(n_samples=1000.0, n_components=len(odd), guarantee=guarantee)
    for size in (3.0, -3.0):

        def level(data, weights=size * odd):
            return _release_level(data, weights, plan, 0.5, noise_source(0))

        (first,), _ = transcript(lambda level=level: level(here))
        (second,), _ = transcript(lambda level=level: level(there))
        assert first.law.guarantee == plan.level_guarantee
        distance = abs(first.asked - second.asked)
        exact = 0.5 * guarantee.n_records_changed
        assert exact * 0.99 < distance <= exact * (1 + 1e-9) <= first.sensitivity


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
    # Cells, targets, second moments and the mean at the end.
    assert steps.sum() == len(steps) - 4
    assert (distances[:2] > 0.96 * budgets[:2]).all() == (target == -1.0)  # from end to end
    assert distances[2] < 0.01


@pytest.mark.parametrize("features", [LINEAR, FOURIER], ids=["linear", "fourier"])
@pytest.mark.parametrize("pull", [-1.0, 1.0])
@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_residuals_stay_capped_where_others_pull_as_hard_as_they_can(adjacency, pull, features):
    # All others pull to one side, so that the residual of the odd record is near zero or two.
    guarantee = GaussianDP(2.0, adjacency=adjacency)
    here, there = neighbours(features, adjacency, other="opposite", target=1.0, pull=pull)
    distances, budgets, releases = spent(
        here, there, lambda data: descent(data, guarantee), guarantee
    )
    steps = np.array([release.asked.shape == (here.n_features,) for release in releases])
    attained = distances[steps] / budgets[steps]
    # The odd target is that of the others, and so the offset, if they pull to one.
    assert attained[0] > 0.96 if pull == -1.0 else attained[0] < 0.01
    if pull == -1.0 and adjacency == "add-remove":
        assert attained.min() > 0.96  # a residual of two


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
@pytest.mark.parametrize("penalty", [None, 3.0])
@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_sufficient_statistics_spend_their_budget(adjacency, penalty, features, layout):
    guarantee = GaussianDP(2.0, adjacency=adjacency)

    def solve(data):
        return sufficient_statistics(
            data, guarantee=guarantee, noise=noise_source(0), penalty=penalty
        )

    here, there = neighbours(features, adjacency, layout, other="opposite", target=1.0)
    distances, budgets, _ = spent(here, there, solve, guarantee)
    assert len(distances) == 2
    assert distances[1] > 0.96 * budgets[1]  # products with the targets
    if adjacency == "add-remove":
        assert distances[0] > 0.96 * budgets[0]
        assert composed(distances, guarantee) > 0.97 * 2.0


@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_mean_and_mean_square_of_targets_move_as_far_as_declared_and_no_further(adjacency):
    planned = plan_features(
        n_samples=5.0, n_components=6, guarantee=GaussianDP(1.0, adjacency=adjacency)
    )

    def asked(targets):
        data = blocks(LINEAR, np.ones((len(targets), 6)), targets)
        (release,), scale = transcript(
            lambda: release_target_scale(data, planned, noise_source(0))
        )
        assert release.law.guarantee == planned.target_guarantee and len(scale) == 3
        return release

    others = [0.3, -0.9, 0.0, 1.0]
    grid = np.linspace(-1.2, 1.2, 25)  # beyond the bounds as well
    ends = [None] if adjacency == "add-remove" else grid
    distances = []
    for y in grid:
        here = asked([y, *others])
        for z in ends:
            there = asked(others if z is None else [z, *others])
            distances.append(np.linalg.norm(here.asked - there.asked))
            assert here.sensitivity == there.sensitivity
    exact = 2.0 if adjacency == "replace-one" else math.sqrt(2.0)
    assert max(distances) == pytest.approx(exact)
    assert exact < here.sensitivity < 1.003 * exact


def test_offset_and_caps_follow_the_targets_and_a_given_cap_stays():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(4000, 6))
    guarantee = GaussianDP(3.0)
    caps = {}
    for cap in (None, 0.3):
        for size in (0.05, 0.3):
            targets = 0.5 + size * rng.choice([-1.0, 1.0], 4000)
            data = blocks(LINEAR, X, targets)
            found = FeatureDescent(guarantee, guarantee, cap)
            releases, (_, offset) = transcript(lambda f=found, d=data: f(d, noise_source(1)))
            assert offset == pytest.approx(0.5, abs=0.03)
            caps[cap, size] = releases[-2].sensitivity / 2.0  # before the mean of predictions
    # A row of norm one in a direction whose curvature is one has the cap as its limit.
    assert caps[None, 0.3] > 2.5 * caps[None, 0.05]
    assert 0.5 < caps[0.3, 0.3] / caps[0.3, 0.05] < 2.0


@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_any_neighbours_are_within_the_budget(adjacency):
    rng = np.random.default_rng(5)
    guarantee = GaussianDP(3.0, adjacency=adjacency)
    features = fourier_features("matern", 2, n_components=8, gamma=1.0, random_state=5)
    for _ in range(25):
        n = int(rng.choice([0, 1, 5, 40]))
        X = rng.standard_cauchy((n + 1, 2)) * 10.0 ** rng.uniform(-3, 300)
        X = np.clip(X, -1e300, 1e300)
        targets = rng.choice([-1.0, -0.5, 0.0, 1.0], n + 1)
        others, labels = X[1:], targets[1:]
        if adjacency == "replace-one":
            others, labels = X.copy(), targets.copy()
            others[0], labels[0] = rng.normal(size=2), rng.choice([-1.0, 1.0])
        here, there = blocks(features, X, targets), blocks(features, others, labels)
        clip_norm = 10.0 ** rng.uniform(-2, 1)
        spent(here, there, lambda data: descent(data, guarantee, clip_norm=clip_norm), guarantee)  # noqa: B023
        spent(
            here,
            there,
            lambda data: sufficient_statistics(data, guarantee=guarantee, noise=noise_source(0)),
            guarantee,
        )


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


def test_minimisers_of_squared_loss_get_as_far_apart_as_declared():
    # The tight pair: many short rows make room for a record that turns around. Nearly all of
    # the distance comes from the norm of the weights, not from the targets.
    n, penalty = 50_000, 50.0
    rows = np.tile([0.0, math.sqrt(penalty / n)], (n, 1))
    targets = np.ones(n)
    others, labels = rows.copy(), targets.copy()
    # Targets beyond their bounds, and a record beyond the ball.
    rows[0], targets[0] = [4.0, 4.0], -300.0
    others[0], labels[0] = [3.0, -3.0], 200.0
    here, there = (
        blocks(NormalisedRows(2, 1.0), *each) for each in ((rows, targets), (others, labels))
    )
    options = {
        "clip_norm": 1.01 * math.sqrt(n / penalty) + 1.0,  # out of reach
        "penalty": penalty,
        "distance": ridge_sensitivity(
            loss="squared", penalty=penalty, y_bound=1.0, adjacency="replace-one", n_samples=n
        ),
    }
    guarantee = ApproxDP(1.0)
    shift, scale, _ = moved(
        lambda data: output(data, guarantee, noise_source(0), **options), here, there
    )
    assert 0.8 < shift / scale <= 1.0


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
        let_the_solver_err(monkeypatch, _feature_output, sign)
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


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("n", [10_000, 200_000])
def test_minimisers_of_many_rows_can_be_certified(n, adjacency):
    rng = np.random.default_rng(6)
    X = rng.normal(size=(n, 3))
    features = fourier_features("rbf", 3, n_components=16, gamma=0.5, random_state=6)
    data = blocks(features, X, np.clip(2.0 * np.sin(X[:, 0]), -1.0, 1.0))
    weights = output(data, ApproxDP(1.0, adjacency=adjacency), noise_source(0), penalty=30.0)
    assert np.isfinite(weights).all()


# Lattices and laws of the noise.


@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_releases_live_on_lattices_that_do_not_depend_on_data(adjacency):
    guarantee = GaussianDP(0.7, adjacency=adjacency)
    rng = np.random.default_rng(7)
    for solve in (
        lambda data: descent(data, guarantee),
        lambda data: sufficient_statistics(data, guarantee=guarantee, noise=noise_source(0)),
        lambda data: output(data, ApproxDP(0.7, adjacency=adjacency), noise_source(0)),
    ):
        steps, first = [], None
        for spread in (0.1, 30.0):
            X = spread * rng.normal(size=(50, 6))
            data = blocks(LINEAR, X, rng.uniform(-1.0, 1.0, 50))
            # Released numbers decide on later lattices.
            releases, _ = transcript(lambda data=data, solve=solve: solve(data), replay=first)
            first = releases if first is None else first
            steps.append([])
            for release in releases:
                # A public power of two, about a hundredth of the sensitivity in norm.
                length = release.step * math.sqrt(release.asked.size)
                assert 0.0049 * release.sensitivity < length <= 0.01 * release.sensitivity
                whole = release.released / release.step
                assert math.log2(release.step) % 1.0 == 0.0
                assert_array_equal(whole, np.rint(whole))
                steps[-1].append((release.scale, release.step))
        assert steps[0] == steps[1]


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


@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_without_privacy_capped_residuals_leave_a_huber_regression(adjacency):
    X, targets = smooth_problem()
    targets[:100] = 1.0  # outliers
    data = blocks(SOME, X, targets)
    Z = np.vstack([rows for rows, _ in data.blocks])

    def objective(weights):
        residuals = Z @ weights - targets
        gradient = Z.T @ np.clip(residuals, -0.25, 0.25) + 20.0 * weights
        return huber(0.25, residuals).sum() + 10.0 * weights @ weights, gradient

    exact = optimize.minimize(
        objective, np.zeros(16), jac=True, method="L-BFGS-B", options={"gtol": 1e-9, "ftol": 0.0}
    ).x
    ridge = Ridge(alpha=20.0, fit_intercept=False).fit(Z, targets).coef_
    free = ApproxDP(1e8, adjacency=adjacency)
    weights = output(data, free, noise_source(0), penalty=20.0)
    error = np.linalg.norm(weights - exact)
    assert error < 0.01 * np.linalg.norm(exact)
    assert error < 0.2 * np.linalg.norm(ridge - exact)


@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_without_privacy_a_descent_ends_where_limited_residuals_balance(adjacency, monkeypatch):
    X, targets = smooth_problem()
    targets[:100] = 1.0  # outliers
    data, found = blocks(SOME, X, targets), []
    Z = np.vstack([rows for rows, _ in data.blocks])
    limits_of = FeatureBlocks.residual_limits

    def listening_to_limits(*arguments):
        found.append(limits_of(*arguments))
        return found[0]

    monkeypatch.setattr(FeatureBlocks, "residual_limits", listening_to_limits)
    weights = descent(data, GaussianDP(1e6, adjacency=adjacency), penalty=20.0)
    most = found[0].whole * found[0].unit
    residuals = Z @ weights - (targets - targets.mean())
    assert 0.02 < (np.abs(residuals) > most).mean() < 0.9
    gradient = Z.T @ np.clip(residuals, -most, most) + 20.0 * weights
    assert np.linalg.norm(gradient) < 0.01 * 20.0 * np.linalg.norm(weights)


def test_statistics_take_the_public_penalty_and_survive_negative_eigenvalues():
    # Two rows: the noisy second moments have eigenvalues of both signs.
    data = blocks(SOME, [[0.0, 0.0], [1.0, 1.0]], [1.0, -1.0])
    guarantee = GaussianDP(0.5)
    for penalty in (None, 40.0):
        options = {"guarantee": guarantee, "penalty": penalty}
        (moments, products), weights = transcript(
            lambda options=options: sufficient_statistics(data, noise=noise_source(0), **options)
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


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("n", [0, 1, 5])
@pytest.mark.parametrize("features", [SOME, NormalisedRows(2, 1.0)], ids=["fourier", "linear"])
def test_few_rows_are_enough(features, n, adjacency):
    data = blocks(features, np.ones((n, 2)), np.ones(n))
    for mu in (1e-3, 1.0, 1e3):
        guarantee = GaussianDP(mu, adjacency=adjacency)
        fits = [
            descent(data, guarantee),
            sufficient_statistics(data, guarantee=guarantee, noise=noise_source(0)),
            output(data, ApproxDP(mu, adjacency=adjacency), noise_source(0)),
        ]
        for weights in fits:
            assert weights.shape == (features.n_components,)
            assert np.isfinite(weights).all()


@pytest.mark.parametrize("n_features", [1, 3])
def test_a_descent_is_the_mean_of_its_last_iterates(n_features):
    # One curvature and no second moments: the recursion by hand.
    data = blocks(NormalisedRows(n_features, 1.0), np.eye(2, n_features), [0.5, 0.5])
    guarantee = GaussianDP(0.01)
    releases, weights = transcript(lambda: descent(data, guarantee, clip_norm=100.0))
    plan = plan_features(n_samples=2.0, n_components=n_features, guarantee=guarantee)
    assert plan.gram_guarantee is None and len(releases) == 1 + plan.n_steps
    law = releases[0].law
    mean, square = releases[0].released / [2.0, 2.0 * math.sqrt(2.0)]
    deviations = law.scale, law.scale / math.sqrt(2.0)  # of a sensitivity of 2, over 2 rows
    _, variance = plan.target_scale(mean, square, deviations=deviations)
    chosen = plan.schedule(np.zeros(n_features), variance=variance, cap=100.0)
    iterates, ahead = [np.zeros(n_features)], np.zeros(n_features)
    for release in releases[1:]:
        iterates.append(ahead - release.released / (2.0 * math.sqrt(chosen.floor)))
        ahead = iterates[-1] + chosen.momentum * (iterates[-1] - iterates[-2])
    assert_allclose(weights, np.mean(iterates[-plan.n_averaged :], axis=0), rtol=1e-9)


@pytest.mark.parametrize("cap", [0.25, 2.0])
@pytest.mark.parametrize("p, n, mu", [(100, 3100, 4.0), (400, 25_600, 4.0), (20, 10, 0.1)])
def test_descents_do_not_diverge_where_curvatures_hide_in_the_noise(p, n, mu, cap):
    # All curvatures are equal, and as large as the noise that hides them.
    X = np.tile(np.eye(p), (math.ceil(n / p), 1))
    data = blocks(NormalisedRows(p, 1.0), X, np.zeros(len(X)))
    weights = descent(data, GaussianDP(mu), clip_norm=cap)
    # The variance of a prediction, six standard deviations up; targets without any are taken to
    # have the least.
    allowed = plan_features(n_samples=len(X), n_components=p, guarantee=GaussianDP(mu)).allowed
    most = allowed * (0.004 if n > 10 else 0.2)  # of few rows noise decides
    assert np.mean(weights**2) <= most * (1 + 6.0 * math.sqrt(2.0 / p))
