"""Compositions against those of dp-accounting, another's code for laws of the privacy loss.

Its optimistic estimates are below the exact delta, its pessimistic ones above. Ours must lie above
the former, always, and not far above the latter.
"""

import math
import subprocess
import sys
from functools import reduce

import numpy as np
import pytest

from skdp.privacy import ZCDP, ApproxDP, GaussianDP, ShiftedGaussianDP, compose

distributions = pytest.importorskip("dp_accounting.pld.privacy_loss_distribution")


def laws(coins, mu, interval, is_pessimistic):
    """Law of coins ``(epsilon, delta, count)``, the worst of their kind, beside one Gaussian."""
    options = dict(pessimistic_estimate=is_pessimistic, value_discretization_interval=interval)
    found = []
    for epsilon, delta, count in coins:
        heads = math.log1p(-delta) - math.log1p(math.exp(-epsilon))
        upper, lower = {0: heads, 1: heads - epsilon}, {0: heads - epsilon, 1: heads}
        if delta > 0.0:
            upper[2] = lower[3] = math.log(delta)
        law = distributions.from_two_probability_mass_functions(lower, upper, **options)
        found.append(law.self_compose(count) if count > 1 else law)
    if mu:
        options["use_connect_dots"] = is_pessimistic  # it has no optimistic estimate
        found.append(distributions.from_gaussian_mechanism(1.0, sensitivity=mu, **options))
    return reduce(lambda one, other: one.compose(other), found)


def estimates(epsilons, coins, mu=0.0):
    """Optimistic and pessimistic delta at each epsilon."""
    spread = math.sqrt(sum(count * e * e for e, _, count in coins) + mu * mu)
    interval = spread / 5000 / max(1.0, spread / 20)
    found = [laws(coins, mu, interval, is_pessimistic) for is_pessimistic in (False, True)]
    return [np.array([law.get_delta_for_epsilon(e) for e in epsilons]) for law in found]


def around(coins, mu=0.0):
    """Epsilons from the middle of the summed loss to far above it."""
    mean = sum(count * e * math.tanh(e / 2) for e, _, count in coins) + mu * mu / 2
    spread = math.sqrt(sum(count * e * e for e, _, count in coins) + mu * mu)
    return np.maximum(0.0, mean + spread * np.array([-1.0, 0.0, 1.0, 2.0, 3.0, 4.0, 5.0]))


def drawn(seed):
    """Coins of 1 to 20 kinds, from tiny to large."""
    rng = np.random.default_rng(seed)
    scale = 10 ** rng.uniform(-5, 1)
    coins = []
    for _ in range(rng.choice([1, 2, 3, 8, 20])):
        count = int(10 ** rng.uniform(0, rng.choice([0.5, 2, 4])))
        epsilon = min(20.0, scale * 10 ** rng.uniform(-1.5, 0.5) / math.sqrt(count))
        delta = rng.choice([0.0, 10 ** rng.uniform(-12, -5), 10 ** rng.uniform(-5, -2)])
        coins.append((float(epsilon), float(delta) / count, count))
    mu = float(rng.choice([0.0, scale * 10 ** rng.uniform(-1.5, 0.3)]))
    return coins, min(mu, 10.0)


NAMED = {
    "pure": ([(0.1, 0.0, 100)], 0.0),
    "many": ([(0.001, 0.0, 100_000)], 0.0),
    "many points": ([(0.002, 1e-10, 100_000)], 0.0),
    "points": ([(0.5, 1e-6, 8), (0.1, 1e-12, 30)], 0.0),
    "large": ([(20.0, 1e-9, 2), (3.0, 0.0, 4)], 0.0),
    "tiny": ([(1e-6, 1e-12, 50), (3e-6, 0.0, 5)], 1e-6),
    "unlike": ([(2.0, 0.0, 1), (0.003, 0.0, 1000)], 0.3),
    "likely": ([(0.3, 0.1, 2)], 0.5),
}


def check(coins, mu, claimed, epsilons, upper=True):
    optimistic, pessimistic = estimates(epsilons, coins, mu)
    count = sum(count for _, _, count in coins)
    # What dp-accounting cuts off, and what we add for rounding.
    assert (claimed >= optimistic * (1 - 1e-9) - 1e-13).all()
    if upper:
        assert (claimed <= 1.05 * pessimistic + 3e-12 + 3e-15 * count).all()


@pytest.mark.parametrize(("coins", "mu"), NAMED.values(), ids=NAMED)
def test_named_mixes_are_between_the_estimates_of_dp_accounting(coins, mu):
    parts = {ApproxDP(e, d): count for e, d, count in coins}
    epsilons = around(coins, mu)
    composed = compose({**parts, GaussianDP(mu): 1})
    check(coins, mu, composed.delta_at(epsilons), epsilons)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(25))
def test_random_mixes_are_between_the_estimates_of_dp_accounting(seed):
    coins, mu = drawn(seed)
    parts = {ApproxDP(e, d): count for e, d, count in coins}
    epsilons = around(coins, mu)
    composed = compose({**parts, GaussianDP(mu): 1})
    check(coins, mu, composed.delta_at(epsilons), epsilons)
    for delta in (1e-8, 1e-5, 1e-2):
        epsilon = composed.epsilon_at(delta)
        if math.isfinite(epsilon):
            optimistic, _ = estimates([epsilon], coins, mu)
            assert optimistic[0] <= delta * (1 + 1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(8))
def test_other_kinds_are_never_below_releases_that_they_allow(seed):
    # A Gaussian is as loud as zCDP allows, and a coin beside one as a shifted Gaussian allows.
    coins, mu = drawn(seed)
    parts = {ApproxDP(e, d): count for e, d, count in coins}
    shift, ratio, count = min(0.5, coins[0][0]), 0.3 * min(1.0, coins[0][0]), 20
    parts[ShiftedGaussianDP(shift, ((ratio, 2.0),))] = count
    parts[ZCDP(ratio**2)] = count
    allowed = math.sqrt(mu**2 + count * ratio**2 + 2 * count * ratio**2)
    coins = [*coins, (shift, 0.0, count)]
    epsilons = around(coins, allowed)
    composed = compose({**parts, GaussianDP(mu): 1})
    check(coins, allowed, composed.delta_at(epsilons), epsilons, upper=False)


def test_the_package_does_without_dp_accounting():
    code = (
        "import sys; sys.modules['dp_accounting'] = None\n"
        "from skdp.privacy import *\n"
        "parts = [ApproxDP(0.1, 1e-8), GaussianDP(0.2), ZCDP(0.1)]\n"
        "assert 0 < compose(parts).epsilon_at(1e-5) < 9"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)
