"""Users who come in several calls of a stream: what is moved, and what it costs together."""

from itertools import combinations, product

import numpy as np
import pytest
from numpy.testing import assert_allclose

from skdp.kernel._online import _base as _stream_calls
from skdp.kernel._online._base import ReleaseAccount
from skdp.kernel._online._sensitivity import created_distances
from skdp.privacy import GaussianDP

STREAMS = [
    dict(theta=0.75, t0=3.0, y_bound=1.0, residual="huber", width=0.4),
    dict(theta=0.6, t0=2.5, y_bound=1.0, residual="plain", adjacency="add-remove"),
    dict(theta=0.9, t0=9.0, y_bound=1.0, residual="ball", radius=0.7),
    dict(theta=0.75, t0=3.0, y_bound=1.0, bound="paper"),
]
EVERY = pytest.mark.parametrize("stream", STREAMS, ids=lambda stream: stream.get("residual"))
NOISES = pytest.mark.parametrize("noise", ["gaussian", "k-norm"])


def start(calls, stream, noise):
    return ReleaseAccount(calls=calls, noise=noise, **stream)


def size_of(guarantee):
    return guarantee.mu if isinstance(guarantee, GaussianDP) else guarantee.epsilon


def cost_of(steps, releases, created, t0, noise):
    """What whoever takes these steps pays for all releases, by the bound at each of them."""
    total = 0.0
    for time, scale, slack in releases:
        before = [s for s in steps if s < time]
        if before:
            moved = sum(created[s] * (s + t0) for s in before)
            cost = (moved / (time - 1 + t0) + slack) / scale
            total += cost**2 if noise == "gaussian" else cost
    return np.sqrt(total) if noise == "gaussian" else total


def brute_force(calls, releases, stream, noise):
    """Largest over all calls that somebody may come in, and all places in them."""
    ends = [time for time, *_ in releases]
    created = created_distances(np.arange(ends[-1]), **stream).tolist()
    places = [range(a, b) for a, b in zip([0, *ends], ends, strict=False)]
    return max(
        cost_of(steps, releases, created, stream["t0"], noise)
        for n in range(1, calls + 1)
        for chosen in combinations(places, n)
        for steps in product(*chosen)
    )


@EVERY
@NOISES
@pytest.mark.parametrize("calls", [1, 2, 3])
def test_an_account_is_the_largest_total_over_all_calls_and_places(calls, noise, stream):
    rng = np.random.default_rng(calls)
    for trend in (-2.0, 0.0, 2.0):  # early, all or late releases matter
        account, releases, time = start(calls, stream, noise), [], 0
        assert size_of(account.guarantee) == 0.0
        for _ in range(5):
            time += int(rng.integers(1, 3))
            scale = 0.1 * time**trend * 10.0 ** rng.uniform(-0.5, 0.5)
            releases.append((time, scale, rng.choice([0.0, 0.01])))
            account = account.after(time, scale, slack=releases[-1][2])
            expected = brute_force(calls, releases, stream, noise)
            assert_allclose(size_of(account.guarantee), expected, rtol=1e-11)
            assert size_of(account.guarantee) >= expected * (1.0 - 1e-14)
        assert (account.time, account.n_releases) == (time, 5)


@EVERY
@NOISES
def test_many_candidates_are_rounded_up_by_little(stream, noise, monkeypatch):
    rng, sizes = np.random.default_rng(1), {}
    times = np.cumsum(rng.integers(1, 4, size=40)).tolist()
    scales = 10.0 ** rng.uniform(-0.5, 0.5, size=40)
    for most in (10**6, 3):
        monkeypatch.setattr(_stream_calls, "_MOST", most)
        account, sizes[most] = start(3, stream, noise), []
        for time, scale in zip(times, scales, strict=True):
            account = account.after(time, scale)
            sizes[most].append(size_of(account.guarantee))
    exact, rounded = (np.array(each) for each in sizes.values())
    assert (rounded >= exact * (1.0 - 1e-12)).all()
    assert (rounded <= exact * (1.0 + 1.0 / 128.0) ** 3).all()


@EVERY
def test_the_sensitivity_is_that_of_the_latest_calls(stream):
    account = start(3, stream, "gaussian")
    times, found = [2, 3, 7, 8, 12], []
    for i, time in enumerate(times):
        found.append(account.sensitivity(time))
        steps = np.array(times[max(0, i - 2) : i + 1]) - 1
        moved = created_distances(steps, **stream) * (steps + stream["t0"])
        expected = moved.sum() / (time - 1 + stream["t0"])
        assert_allclose(found[-1], expected, rtol=1e-10)
        account = account.after(time, 1.0)
    with pytest.raises(ValueError, match="time must not be less than at the last release, 12"):
        account.after(11, 1.0)
