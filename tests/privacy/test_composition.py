"""Compositions against exact laws of the privacy loss, computed here by other means."""

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import signal, stats
from scipy.special import log_ndtr, ndtr

from skdp.privacy import (
    ZCDP,
    ApproxDP,
    ComposedDP,
    GaussianDP,
    ShiftedGaussianDP,
    compose,
)

EPSILONS = [0.0, 1e-3, 0.05, 0.123456789, 0.3, 0.7, 1.0, 1.5, 2.0, 3.0, 5.0]


def gaussian_profile(epsilon, mu):
    """Profile of two normals, at negative epsilon as well."""
    return ndtr(mu / 2 - epsilon / mu) - np.exp(epsilon + log_ndtr(-mu / 2 - epsilon / mu))


def coin_losses(points):
    """Values and probabilities of the summed loss of coins; and what is given away whole.

    ``points`` are ``(epsilon, delta, count)``. Randomised response, told with probability delta
    that it tells the truth, is the worst (epsilon, delta)-private release.
    """
    losses, masses, honest = np.zeros(1), np.ones(1), 1.0
    for epsilon, delta, count in points:
        heads = np.arange(count + 1)
        law = stats.binom.pmf(heads, count, 1 / (1 + math.exp(-epsilon)))
        losses = np.add.outer(losses, epsilon * (2 * heads - count)).ravel()
        masses = np.multiply.outer(masses, law).ravel()
        honest *= (1 - delta) ** count
    return losses, masses, 1 - honest


def exact_delta(epsilon, points, mu=0.0):
    """Exact profile of the worst releases: coins, and one Gaussian that stands for all."""
    losses, masses, given_away = coin_losses(points)
    rest = epsilon - losses
    profile = gaussian_profile(rest, mu) if mu else np.maximum(0.0, -np.expm1(np.minimum(rest, 0)))
    return given_away + (1 - given_away) * np.sum(masses * profile)


def parts_of(points, mu=0.0):
    coins = [ApproxDP(e, d) for e, d, count in points for _ in range(count)]
    return [*coins, GaussianDP(mu)] if mu else coins


# Closed forms


@pytest.mark.parametrize("mus", [[0.3, 0.4], [1e-3] * 400, [5.0, 12.0], [0.1, 0.0, 0.2]])
def test_gaussians_compose_exactly(mus):
    composed = compose([GaussianDP(mu) for mu in mus])
    assert isinstance(composed, GaussianDP)
    total = math.sqrt(math.fsum(mu * mu for mu in mus))
    assert total <= composed.mu <= total * (1 + 1e-14)


def test_pure_parts_add_up_as_the_decimals_that_they_are():
    assert compose([ApproxDP(0.001)] * 1000).epsilon == 1.0
    assert compose([ApproxDP(0.1)] * 3).epsilon == 0.3
    assert compose([ApproxDP(0.1), ApproxDP(0.2), ApproxDP(0.7)]).epsilon == 1.0
    assert compose([ApproxDP(1e-17)] * 10 + [ApproxDP(1.0)]).epsilon >= 1.0
    nested = compose([compose([ApproxDP(0.001)] * 500), compose([ApproxDP(0.0005)] * 1000)])
    assert nested.epsilon == 1.0
    assert nested.epsilon_at(0.0) == 1.0
    assert (nested.delta, nested.delta_at(1.0)) == (0.0, 0.0)


def test_giving_all_away_with_small_probability_adds_up():
    composed = compose([ApproxDP(0.0, 1e-6)] * 3)
    for epsilon in (0.0, 0.5, 30.0):
        assert_allclose(composed.delta_at(epsilon), 1 - (1 - 1e-6) ** 3, rtol=1e-6)
    assert composed.epsilon_at(1e-5) == 0.0
    assert composed.epsilon_at(2e-6) == math.inf
    with_coin = compose([ApproxDP(0.0, 1e-6), ApproxDP(0.5)])
    assert_allclose(with_coin.delta_at(0.2), exact_delta(0.2, [(0.5, 1e-6, 1)]), rtol=1e-6)


# Unlike parts, against the exact law of the loss

COINS = {
    "two coins": [(0.5, 0.0, 1), (0.3, 0.0, 1)],
    "odd coins": [(0.1234567, 0.0, 9), (0.7654321, 0.0, 2), (0.01, 0.0, 1)],
    "many coins": [(0.1, 0.0, 60)],
    "points": [(0.2, 1e-7, 5), (0.4, 1e-6, 2)],
    "fifty points": [(0.1, 1e-8, 50)],
    "big points": [(3.0, 1e-4, 2), (2.0, 0.0, 1)],
    "likely points": [(0.5, 0.05, 3)],
}


@pytest.mark.parametrize("mu", [0.0, 0.05, 0.5, 2.0])
@pytest.mark.parametrize("points", COINS.values(), ids=COINS)
def test_claimed_delta_is_just_above_the_exact_one(points, mu):
    composed = compose(parts_of(points, mu))
    claimed = composed.delta_at(np.array(EPSILONS))
    for epsilon, delta in zip(EPSILONS, claimed, strict=True):
        true = exact_delta(epsilon, points, mu)
        assert delta >= true * (1 - 1e-9) - 1e-16  # 1e-16: the error of the reference
        assert delta <= true * (1 + 1e-3) + 3e-12


@pytest.mark.slow
def test_random_compositions_are_never_below_the_exact_law(repetitions):
    rng = np.random.default_rng(0)
    for _ in range(repetitions(300, 12)):
        points = [
            (
                float(rng.choice([0.01, 0.1, 0.25, 1.0, 10 ** rng.uniform(-2.5, 0.5)])),
                float(rng.choice([0.0, 1e-9, 1e-6, 1e-3])),
                int(rng.integers(1, 8)),
            )
            for _ in range(rng.integers(1, 4))
        ]
        mu = float(rng.choice([0.0, 0.1, 1.0, 3.0]))
        epsilons = np.append(rng.uniform(0, 4, 6), 0.0)
        claimed = compose([ApproxDP(0.0), *parts_of(points, mu)]).delta_at(epsilons)
        true = np.array([exact_delta(epsilon, points, mu) for epsilon in epsilons])
        assert (claimed >= true * (1 - 1e-9) - 1e-15).all()
        assert (claimed <= true * 1.01 + 1e-9).all()


@pytest.mark.slow
def test_the_error_of_the_transform_is_covered_however_many_the_parts(repetitions):
    # A power k of a Fourier transform has k times its rounding error.
    count, part = repetitions((10**6, 3e-4), (10**5, 1e-3))
    epsilons = np.array([0.5, 1.0, 1.5, 2.0])
    claimed = ComposedDP(((ApproxDP(part), count),)).delta_at(epsilons)
    true = [exact_delta(epsilon, [(part, 0.0, count)]) for epsilon in epsilons]
    assert (claimed >= true).all()
    assert_allclose(claimed, true, rtol=0.01, atol=1e-9)


@pytest.mark.parametrize(
    ("mu", "count"), [(0.1, 100), (0.02, 30), (0.3, 10), (2.0, 3), (0.001, 5000)]
)
def test_loss_distributions_cost_gaussians_next_to_nothing(mu, count):
    # `compose` would use the closed form; here the parts go through their laws of the loss.
    composed = ComposedDP(((GaussianDP(mu), count),))
    exact = GaussianDP(mu * math.sqrt(count))
    for delta in (1e-2, 1e-5, 1e-8):
        claimed, true = composed.epsilon_at(delta), exact.epsilon_at(delta)
        assert true * (1 - 1e-9) <= claimed <= 1.01 * true + 1e-6
    for epsilon in (0.0, 0.2, 1.0):
        true = exact.delta_at(epsilon)
        assert true * (1 - 1e-9) <= composed.delta_at(epsilon) <= 1.01 * true + 2e-12


@pytest.mark.parametrize("delta", [1e-13, 1e-15, 1e-30, 1e-100, 1e-300])
def test_tiny_deltas_are_safe_and_not_absurd(delta):
    # Beyond the reach of Fourier transforms: pure parts add, zCDP adds, points share.
    composed = compose([GaussianDP(0.3), ApproxDP(0.2), ApproxDP(0.1)])
    claimed = composed.epsilon_at(delta)
    alone = GaussianDP(0.3).epsilon_at(delta)
    assert alone <= claimed <= alone + 0.3 + 1e-9
    assert exact_delta(claimed, [(0.2, 0, 1), (0.1, 0, 1)], 0.3) <= delta * (1 + 1e-9)
    true = exact_delta(alone, [(0.2, 0, 1), (0.1, 0, 1)], 0.3)
    assert true * (1 - 1e-9) <= composed.delta_at(alone) <= 1.1 * true + 2e-12


@pytest.mark.parametrize(
    "parts",
    [
        [ApproxDP(1000.0), GaussianDP(0.1)],
        [ApproxDP(400.0, 1e-6), ApproxDP(400.0, 1e-6)],
        [GaussianDP(60.0), ApproxDP(1.0)],
        [ZCDP(1000.0), ApproxDP(0.1)],
        [ShiftedGaussianDP(900.0, ((1.0, 1.0),)), ApproxDP(0.1)],
        [ApproxDP(1e-12, 1e-15), GaussianDP(1e-9)],
    ],
    ids=lambda parts: str(parts[0]),
)
def test_extreme_budgets_compose_without_a_warning(parts):
    composed = compose(parts)
    epsilon = composed.epsilon_at(1e-5)
    assert max(part.epsilon_at(1e-5) for part in parts) <= epsilon < math.inf
    assert composed.delta_at(epsilon) <= 1e-5 * (1 + 1e-9)
    for far in (700.0, 1e3, 1e5, math.inf):
        assert 0 <= composed.delta_at(far) <= 1


@pytest.mark.parametrize(
    "points",
    [[(400.0, 1e-6, 2)], [(400.0, 0.0, 1), (399.0, 1e-6, 1)], [(2.0, 1e-12, 408)]],
    ids=["two", "unlike", "many"],
)
def test_losses_beyond_what_an_exponential_holds_are_not_forgotten(points):
    composed = ComposedDP(tuple((ApproxDP(e, d), count) for e, d, count in points))
    for epsilon in (650.0, 699.0, 701.0, 750.0, 790.0, 798.0):
        true = exact_delta(epsilon, points)
        assert true * (1 - 1e-9) <= composed.delta_at(epsilon) <= true * (1 + 1e-3) + 1e-11
    for delta in (1e-2, 1e-5):
        assert exact_delta(composed.epsilon_at(delta), points) <= delta * (1 + 1e-9)


@pytest.mark.parametrize("delta", [0.01, 0.5])
def test_what_gives_all_away_for_certain_promises_nothing(delta):
    composed = compose({ApproxDP(0.001, delta): 10_000, ApproxDP(0.1): 3})
    assert composed.delta_at(0.5) == 1.0
    assert composed.epsilon_at(0.5) == math.inf


@pytest.mark.parametrize(
    "part",
    [ApproxDP(1e200), ApproxDP(1e200, 1e-9), GaussianDP(1e200), ShiftedGaussianDP(490.0, ())],
    ids=str,
)
def test_absurd_parts_promise_nothing_and_do_not_fail(part):
    for other in (ApproxDP(0.1), GaussianDP(0.1), ShiftedGaussianDP(450.0, ((1.0, 2.0),))):
        composed = compose({part: 2, other: 1})
        assert composed.delta_at(1.0) == 1.0
        assert composed.epsilon_at(1e-5) >= part.epsilon_at(1e-5)


@pytest.mark.parametrize("scale", [0.003, 0.05])
def test_many_kinds_cost_what_their_exact_law_says(scale):
    # All losses are multiples of one step, so that the law of their sum is an exact convolution.
    step, mu = 1e-4, 0.2
    points = [(round(scale * (1 + k / 10), 9), 1e-9 * (k % 3), 5 + 7 * k) for k in range(12)]
    law, honest = np.ones(1), 1.0
    for epsilon, delta, count in points:
        heads = np.zeros(2 * round(epsilon / step) * count + 1)
        probability = 1 / (1 + math.exp(-epsilon))
        heads[:: 2 * round(epsilon / step)] = stats.binom.pmf(range(count + 1), count, probability)
        law = np.maximum(signal.fftconvolve(law, heads), 0.0)
        honest *= (1 - delta) ** count
    losses_of = step * (np.arange(len(law)) - len(law) // 2)
    composed = compose(parts_of(points, mu))
    for epsilon in (0.2, 0.5, 1.0):
        true = 1 - honest + honest * np.sum(law * gaussian_profile(epsilon - losses_of, mu))
        assert true * (1 - 1e-9) - 1e-12 <= composed.delta_at(epsilon) <= true * 1.001 + 1e-11


# The shifted Gaussian, between a release that it allows and its dominating variable


def shifted_losses(shift, mu, n=120_001):
    """Loss ``shift + max(0, V)`` on a fine grid, as a mixture of points."""
    v = np.linspace(mu * mu / 2 - 10 * mu, mu * mu / 2 + 10 * mu, n)
    masses = stats.norm.pdf(v, mu * mu / 2, mu)
    return shift + np.maximum(v, 0.0), masses / masses.sum()


@pytest.mark.parametrize("other", [0.05, 0.5, 1.0])
@pytest.mark.parametrize(("shift", "mu"), [(0.1, 0.5), (0.5, 0.2), (0.02, 1.0), (0.0, 0.7)])
def test_a_shifted_gaussian_is_composed_between_its_bounds(shift, mu, other):
    composed = compose([ShiftedGaussianDP(shift, ((mu, 1.0),)), GaussianDP(other)])
    losses, masses = shifted_losses(shift, mu)
    together = math.hypot(mu, other)
    for epsilon in (0.0, 0.3, 1.0, 2.0, 3.0):
        claimed = composed.delta_at(epsilon)
        # A coin of odds exp(shift) beside a Gaussian has a loss of at most shift + max(0, V).
        allowed = exact_delta(epsilon, [(shift, 0.0, 1)], together)
        dominating = np.sum(masses * gaussian_profile(epsilon - losses, other))
        assert allowed * (1 - 1e-9) <= claimed <= dominating * (1 + 1e-3) + 2e-12


def test_shifted_gaussians_compose_with_each_other():
    shift, mu, count = 0.05, 0.1, 8
    composed = compose([ShiftedGaussianDP(shift, ((mu, 1.0),))] * count)
    # The sum of dominating losses by convolution on a grid, each rounded up to it.
    step = 1e-4
    losses, masses = shifted_losses(shift, mu)
    cells = np.ceil(losses / step - 1e-9).astype(int)
    law = np.bincount(cells, masses)
    total = np.ones(1)
    for _ in range(count):
        total = np.maximum(signal.fftconvolve(total, law), 0.0)
    sums = step * np.arange(len(total))
    for epsilon in (0.0, 0.4, 0.6, 1.0, 1.5):
        claimed = composed.delta_at(epsilon)
        dominating = np.sum(total * np.maximum(0.0, -np.expm1(np.minimum(epsilon - sums, 0.0))))
        allowed = exact_delta(epsilon, [(shift, 0.0, count)], mu * math.sqrt(count))
        assert allowed * (1 - 1e-9) <= claimed <= dominating * 1.01 + 2e-12


# What composition must not depend on


def mixed_parts():
    return [
        ApproxDP(0.3),
        ApproxDP(0.1, 1e-6),
        GaussianDP(0.4),
        ZCDP(0.01),
        ShiftedGaussianDP(0.05, ((0.1, 2.0),)),
    ]


def test_the_order_of_the_parts_does_not_matter():
    orders = list(itertools.permutations(mixed_parts()))[::17]
    composed = [compose(order) for order in orders]
    assert len(set(composed)) == 1
    assert len({one.delta_at(0.5) for one in composed}) == 1


def test_composing_by_and_by_is_composing_at_once():
    parts = mixed_parts()
    at_once = compose(parts)
    by_and_by = parts[0]
    for part in parts[1:]:
        by_and_by = compose([by_and_by, part])
    halves = compose([compose(parts[:2]), compose(parts[2:])])
    for other in (by_and_by, halves):
        for epsilon in (0.1, 0.8, 2.0):
            assert_allclose(other.delta_at(epsilon), at_once.delta_at(epsilon), rtol=1e-9)


@pytest.mark.parametrize("part", mixed_parts(), ids=str)
def test_more_parts_never_cost_less(part):
    for others in ([], [ApproxDP(0.2, 1e-7)]):
        before_epsilon, before_delta = 0.0, 0.0
        for count in (1, 2, 3, 6):
            composed = compose([*others, *[part] * count])
            epsilon, delta = composed.epsilon_at(1e-5), composed.delta_at(0.5)
            assert epsilon >= before_epsilon * (1 - 1e-6)
            assert delta >= before_delta * (1 - 1e-6)
            before_epsilon, before_delta = epsilon, delta


def test_a_composition_speaks_of_the_neighbours_of_its_parts():
    context = {"adjacency": "add-remove", "unit": "user"}
    for parts in (
        [ApproxDP(0.1, **context)] * 2,
        [GaussianDP(0.1, **context)] * 2,
        [ApproxDP(0.0, **context)] * 2,
        [ApproxDP(0.1, 1e-6, **context), GaussianDP(0.1, **context)],
    ):
        composed = compose(parts)
        assert (composed.adjacency, composed.unit) == ("add-remove", "user")
        assert "adding or removing one user" in str(composed)
        assert composed.to_replace_one().adjacency == "replace-one"


def test_unlike_neighbours_are_refused():
    one = ApproxDP(0.1)
    for other in (replace(one, adjacency="add-remove"), replace(one, unit="user")):
        with pytest.raises(ValueError, match="guarantees must share adjacency and unit; got"):
            compose([one, other])
        with pytest.raises(ValueError, match="guarantees must share adjacency and unit; got"):
            compose([other, GaussianDP(0.1)])
        nested = compose([other, replace(other, epsilon=0.2)])
        with pytest.raises(ValueError, match="guarantees must share adjacency and unit; got"):
            compose([nested, one])


def test_nothing_to_compose_is_refused():
    with pytest.raises(ValueError, match="at least one guarantee; got none"):
        compose([])


def test_an_interrupt_while_guarantees_are_composed_leaves_no_trace(monkeypatch):
    """At whichever hash of a part: sums that are kept by it must stay a whole."""
    plain, calls, stop = ApproxDP.__hash__, 0, 0

    def interrupted(guarantee):
        nonlocal calls
        calls += 1
        if calls == stop:
            raise KeyboardInterrupt
        return plain(guarantee)

    n_stopped = 0
    for stop in range(1, 130):  # of 129 calls
        calls, parts = 0, [ApproxDP(0.1 + k / 100 + stop / 1e4, 1e-7) for k in range(6)]
        with monkeypatch.context() as patch:
            patch.setattr(ApproxDP, "__hash__", interrupted)
            try:
                compose(parts).delta_at(1.0)
            except KeyboardInterrupt:
                n_stopped += 1
        assert 0.0 < compose(parts).delta_at(1.0) < 1.0
    assert n_stopped > 50
