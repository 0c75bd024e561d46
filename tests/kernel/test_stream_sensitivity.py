"""Bounds of the online recursion against streams that are run, accounts against every position.

Records are vectors of norm up to kappa with a target: the linear kernel in three dimensions,
where a later record can be orthogonal to all that happened before.
"""

import itertools
import math

import numpy as np
import pytest
from numpy.testing import assert_allclose

from skdp.kernel._online._base import ReleaseAccount
from skdp.kernel._online._fed_back import sgd_noise
from skdp.kernel._online._sensitivity import (
    automatic_t0,
    created_distances,
    norm_bounds,
    step_sensitivity,
    stream_sensitivities,
    stream_sensitivity,
)
from skdp.privacy import ApproxDP, GaussianDP

ADJACENCIES = ["replace-one", "add-remove"]
MODES = [
    {"residual": "plain"},
    {"residual": "ball", "radius": 0.4},
    {"residual": "ball", "radius": 2.0},
    {"residual": "huber", "width": 0.3},
    {"residual": "huber", "width": 2.5},
]
PAPER = {"theta": 0.75, "t0": 2.0 ** (4 / 3), "y_bound": 1.0}
NULL = math.nan  # the target of a record that contributes nothing


def run(points, targets, *, theta, t0, residual="plain", radius=None, width=None, **_):
    """Functions f_0 .. f_n of a stream, or of many at once along leading axes."""
    points, targets = np.asarray(points, dtype=float), np.asarray(targets, dtype=float)
    f = np.zeros(points.shape[:-2] + points.shape[-1:])
    path = [f]
    for t in range(points.shape[-2]):
        x, y, eta = points[..., t, :], targets[..., t], (t + t0) ** -theta
        error = np.sum(f * x, axis=-1) - y
        if residual == "huber":
            error = np.clip(error, -width, width)
        gradient = np.where(np.isnan(y), 0.0, error)[..., np.newaxis] * x
        f = f - eta * (gradient + (t + t0) ** (theta - 1.0) * f)
        if residual == "ball":
            norm = np.linalg.norm(f, axis=-1, keepdims=True)
            f = f * np.minimum(1.0, radius / np.maximum(norm, 1e-300))
        path.append(f)
    return np.array(path)


def norms_by_recursion(n_steps, *, theta, t0, y_bound, kappa=1.0):
    energy, line, bounds = 0.0, 0.0, [0.0]
    for t in range(n_steps):
        shrink, eta = 1.0 - 1.0 / (t + t0), (t + t0) ** -theta
        energy = shrink**2 * energy + shrink * eta * y_bound**2
        line = shrink * line + eta * kappa * y_bound
        bounds.append(min(math.sqrt(energy), line))
    return np.array(bounds)


def streams(kappa):
    for theta in (0.55, 0.75, 0.95):
        t0 = automatic_t0(theta, kappa)
        yield {"theta": theta, "t0": t0, "y_bound": 1.5, "kappa": kappa}
        yield {"theta": theta, "t0": t0 + 3.0, "y_bound": 0.2, "kappa": kappa}


# Steps and norms


@pytest.mark.parametrize("theta", [0.51, 0.75, 0.99])
@pytest.mark.parametrize("kappa", [1e-9, 0.1, 1.0, 20.0])
def test_automatic_t0_is_the_least_that_keeps_steps_from_spreading_differences(theta, kappa):
    t0 = automatic_t0(theta, kappa)

    def least_factor(t0):
        """Of the first step along a record of norm kappa."""
        return 1.0 - 1.0 / t0 - kappa**2 / t0**theta

    assert -1e-15 <= least_factor(t0) < 1e-11
    assert least_factor(t0 * (1.0 - 1e-10)) < least_factor(t0)
    assert t0 <= (kappa**2 + 1.0) ** (1.0 / theta) * (1.0 + 2e-12)
    assert np.isfinite(stream_sensitivity(1, theta=theta, t0=t0, y_bound=1.0, kappa=kappa))
    if kappa > 0.01:
        with pytest.raises(ValueError, match="t0 must be at least automatic_t0"):
            norm_bounds(3, theta=theta, t0=0.999 * t0, y_bound=1.0, kappa=kappa)


@pytest.mark.parametrize("kappa", [0.1, 1.0, 4.0])
def test_norm_bounds_are_the_recursions_rounded_up(kappa):
    for stream in streams(kappa):
        expected = norms_by_recursion(3000, **stream)
        ratio = norm_bounds(np.arange(1, 3001), **stream) / expected[1:]
        assert ratio.min() >= 1.0
        assert ratio.max() <= 1.0 + 2e-12
        assert norm_bounds(0, **stream) == 0.0


# Sensitivities


def test_sensitivities_have_their_known_values():
    def rounded(time, **mode):
        return float(f"{stream_sensitivity(time, **PAPER, **mode):.4g}")

    assert rounded(100, bound="paper") == 0.3970
    assert rounded(10_000, bound="paper") == 0.0400
    assert rounded(100, residual="huber", width=1.0) == 0.06253
    # A simpler bound, step (norm + 2), has known values that contain the norm.
    for time, value in [(100, 0.0994992), (10_000, 0.00410766)]:
        step = (time - 1 + PAPER["t0"]) ** -0.75
        assert_allclose(step * (norm_bounds(time - 1, **PAPER) + 2.0), value, rtol=2e-6)
        assert 0.86 * value < stream_sensitivity(time, **PAPER) < 0.89 * value
    # For the ball of radius 1 the simple value is .09380; the worst angle saves 1 - sqrt(3)/2.
    exact = stream_sensitivity(100, residual="ball", radius=1.0, **PAPER)
    assert_allclose(exact, 0.09380 * math.sqrt(0.75), rtol=1e-4)


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("mode", MODES, ids=str)
@pytest.mark.parametrize("kappa", [0.3, 1.0, 3.0])
def test_no_pair_of_streams_differs_by_more_than_declared(mode, kappa, adjacency):
    rng = np.random.default_rng(1)
    count, length = 1000, 7
    for stream in streams(kappa):
        claimed = created_distances(np.arange(length), adjacency=adjacency, **stream, **mode)
        for position in range(length):
            # Records in few directions, most of full length, so that norms get large.
            points = rng.standard_normal((count, length + 1, 3)) * [1.0, 0.3, 0.1]
            lengths = kappa * rng.choice([1.0, 1.0, 0.7, 0.1], (count, length + 1, 1))
            points *= lengths / np.linalg.norm(points, axis=2, keepdims=True)
            targets = stream["y_bound"] * rng.choice([-1, 1, 1, 0.2], (count, length + 1))
            here, there = points[:, :length], points[:, :length].copy()
            y, z = targets[:, :length], targets[:, :length].copy()
            there[:, position] = points[:, length]
            z[:, position] = targets[:, length] if adjacency == "replace-one" else NULL
            gap = run(here, y, **stream, **mode) - run(there, z, **stream, **mode)
            gap = np.linalg.norm(gap, axis=2).max(axis=1)
            assert np.all(gap[: position + 1] == 0.0)
            times = np.arange(position + 1, length + 1)
            share = (position + stream["t0"]) / (times - 1 + stream["t0"])
            assert np.all(gap[position + 1 :] <= claimed[position] * share)
            over_all = stream_sensitivities(times, adjacency=adjacency, **stream, **mode)
            assert np.all(gap[position + 1 :] <= over_all)


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("bound", ["tight", "paper"])
@pytest.mark.parametrize("mode", MODES, ids=str)
@pytest.mark.parametrize("kappa", [0.1, 1.0, 5.0])
def test_the_last_record_is_the_worst_one_of_the_whole_stream(kappa, mode, bound, adjacency):
    for stream in streams(kappa):
        stream |= mode | {"bound": bound, "adjacency": adjacency}
        positions = np.arange(2000)
        weights = created_distances(positions, **stream) * (positions + stream["t0"])
        times = np.array([1, 2, 7, 150, 2000])
        worst = np.maximum.accumulate(weights)[times - 1] / (times - 1 + stream["t0"])
        assert_allclose(stream_sensitivities(times, **stream), worst, rtol=1e-12)
        # Alone and among its neighbours in time, whose powers are taken together.
        alone = stream_sensitivities(150, **stream)
        assert_allclose(stream_sensitivity(150, **stream), alone, rtol=1e-15)


def test_the_constant_of_the_paper_is_valid_and_loose():
    for kappa, theta in itertools.product([0.1, 0.3, 1.0, 3.0, 20.0], [0.51, 0.75, 0.99]):
        stream = {"theta": theta, "y_bound": 0.7, "kappa": kappa}
        times = np.array([1, 2, 10, 1000, 10**6, 10**9])
        for t0 in (automatic_t0(theta, kappa), (kappa**2 + 1.0) ** (1.0 / theta) * 1.000001):
            late = (times - 1 + t0) ** (2 * theta - 1)
            in_17 = 2 * kappa**2 * (kappa**2 + 1) * 0.7 / late
            paper = stream_sensitivities(times, t0=t0, bound="paper", **stream)
            assert_allclose(kappa * paper, in_17, rtol=1e-11)
            tight = stream_sensitivities(times, t0=t0, **stream)
            assert np.all(tight <= paper)
            # (12) lacks a factor kappa, which its proof does not excuse. It is large enough.
            assert np.all(kappa * tight <= 0.66 * in_17 / kappa)


# Accounts


def brute_force(releases, created, t0, noise):
    """Total of every position, for the largest."""
    totals = np.zeros(len(created))
    for time, scale, slack in releases:
        for position in range(time):
            moved = created[position] * (position + t0) / (time - 1 + t0) + slack
            totals[position] += (moved / scale) ** (2 if noise == "gaussian" else 1)
    return math.sqrt(totals.max()) if noise == "gaussian" else totals.max()


def size_of(guarantee):
    return guarantee.mu if isinstance(guarantee, GaussianDP) else guarantee.epsilon


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("noise", ["gaussian", "k-norm"])
@pytest.mark.parametrize("mode", MODES, ids=str)
def test_an_account_is_the_largest_total_over_all_positions(mode, noise, adjacency):
    rng = np.random.default_rng(2)
    for stream in streams(1.0):
        stream |= mode | {"adjacency": adjacency}
        created = created_distances(np.arange(80), **stream)
        account, releases = ReleaseAccount(noise=noise, **stream), []
        assert size_of(account.guarantee) == 0.0
        trend = rng.choice([-2.0, 0.0, 2.0])  # early, all or late releases matter
        for time in np.sort(rng.integers(1, 80, 25)).tolist():
            scale = 0.1 * time**trend * 10.0 ** rng.uniform(-1, 1)
            slack = rng.choice([0.0, 0.01])
            releases.append((time, scale, slack))
            account = account.after(time, scale, slack=slack)
            expected = brute_force(releases, created, stream["t0"], noise)
            assert_allclose(size_of(account.guarantee), expected, rtol=1e-11)
            assert size_of(account.guarantee) >= expected * (1.0 - 1e-15)
        kind = GaussianDP if noise == "gaussian" else ApproxDP
        assert type(account.guarantee) is kind
        assert account.guarantee.adjacency == adjacency
        assert (account.n_releases, account.time) == (25, releases[-1][0])


def test_accounts_refuse_what_cannot_be_accounted_for():
    start = ReleaseAccount(**PAPER)
    late = start.after(10, 1.0)
    with pytest.raises(ValueError, match="not be less than at the last release, 10; got 9"):
        late.after(9, 1.0)
    with pytest.raises(ValueError, match="scale must be a positive"):
        start.after(3, 0.0)
    with pytest.raises(ValueError, match="slack must be a non-negative"):
        start.after(3, 1.0, slack=-1e-3)
    for time in (0, 1.5, True, math.nan, "3"):
        with pytest.raises(ValueError, match="time must hold integers of at least 1"):
            start.after(time, 1.0)
    with pytest.raises(ValueError, match="noise must be one of"):
        ReleaseAccount(noise="laplace", **PAPER)


# Noise that is fed back, and the matrix mechanism


@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_one_clipped_gradient_moves_by_its_sensitivity_at_most(adjacency):
    rng = np.random.default_rng(3)
    kappa, width = 2.0, 0.7
    w = 3.0 * rng.standard_normal((20_000, 2))
    gradients = []
    for _ in range(2):
        x = rng.standard_normal(w.shape)
        x *= kappa / np.linalg.norm(x, axis=1, keepdims=True)
        r = np.clip(np.sum(w * x, axis=1) - rng.uniform(-1, 1, len(w)), -width, width)
        gradients.append(r[:, np.newaxis] * x)
    if adjacency == "add-remove":
        gradients[1] = 0.0
    largest = np.linalg.norm(gradients[0] - gradients[1], axis=1).max()
    claimed = step_sensitivity(width=width, kappa=kappa, adjacency=adjacency)
    assert 0.999 * claimed < largest <= claimed * (1.0 + 1e-12)


@pytest.mark.parametrize("theta", [0.55, 0.75, 0.95])
def test_fed_back_noise_has_the_variance_of_its_recursion(theta):
    variance, expected = 0.0, []
    for t in range(2000):
        variance = (1.0 - 1.0 / (t + 2.5)) ** 2 * variance + ((t + 2.5) ** -theta * 0.3) ** 2
        expected.append(math.sqrt(variance))
    found = sgd_noise(np.arange(1, 2001), theta=theta, t0=2.5, scale=0.3)
    assert_allclose(found, expected, rtol=1e-11)


def test_arguments_out_of_range_are_named():
    cases = [
        (lambda: automatic_t0(1.0), "theta must be less than 1; got 1.0"),
        (lambda: norm_bounds([3, -1], **PAPER), "times must hold integers of at least 0"),
        (lambda: stream_sensitivity(0, **PAPER), "times must hold integers of at least 1"),
        (lambda: stream_sensitivity(3, residual="ball", **PAPER), "radius must be a positive"),
        (lambda: stream_sensitivity(3, residual="clip", **PAPER), "residual must be one of"),
        (lambda: stream_sensitivity(3, bound="loose", **PAPER), "bound must be one of"),
    ]
    for call, message in cases:
        with pytest.raises(ValueError, match=message):
            call()


@pytest.mark.parametrize("mode", MODES, ids=str)
@pytest.mark.parametrize("kappa", [0.3, 1.0, 3.0])
def test_no_adversary_exceeds_the_norm_bounds(mode, kappa):
    rng = np.random.default_rng(0)
    for stream in streams(kappa):
        # The adversary sees the function: of many records it takes what makes it longest.
        n, points, targets = 12, np.zeros((0, 3)), np.zeros(0)
        for _ in range(n):
            fresh = rng.standard_normal((500, 1, 3))
            fresh *= kappa / np.linalg.norm(fresh, axis=2, keepdims=True)
            fresh[::4] *= rng.uniform(size=(125, 1, 1))
            y = stream["y_bound"] * rng.choice([-1.0, 1.0, 0.5], (500, 1))
            tried = np.concatenate([np.broadcast_to(points, (500, *points.shape)), fresh], axis=1)
            aims = np.concatenate([np.broadcast_to(targets, (500, targets.size)), y], axis=1)
            ends = np.linalg.norm(run(tried, aims, **stream, **mode)[-1], axis=1)
            points, targets = tried[np.argmax(ends)], aims[np.argmax(ends)]
        path = np.linalg.norm(run(points, targets, **stream, **mode), axis=1)
        bounds = norm_bounds(np.arange(n + 1), **stream, **mode)
        assert np.all(path <= bounds)
        assert np.all(path[1:] >= 0.6 * bounds[1:])
