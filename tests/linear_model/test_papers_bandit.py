"""Regret with loss values against learners that are run."""

import itertools
import math

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import minimize

from skdp.linear_model.papers import (
    anytime_bandit_explorations,
    anytime_bandit_regret,
    anytime_bandit_steps,
    bandit_amplitude,
    bandit_exploration,
    bandit_range,
    bandit_regret,
    bandit_step,
    paper_bandit_leakage,
    regret_of_steps,
)
from skdp.local._messages import vector_leakage

BANDITS = [
    {"radius": 1.0, "lipschitz": 1.0, "amplitude": 2.0},
    {"radius": 3.0, "lipschitz": 0.2, "amplitude": 0.5},
    {"radius": 0.5, "lipschitz": 1.0, "amplitude": 40.0},  # capped for long
]


def test_theorem_3_as_printed_is_looser():
    for d, delta, sigma in itertools.product([1, 2, 30], [0.01, 1.0], [0.1, 10.0, 1e4]):
        given = {"dimension": d, "exploration": delta, "sigma": sigma}
        printed = paper_bandit_leakage(value_max=1.5, lipschitz=2.0, **given)
        # What is largest on the ball grows by the slope times the exploration beyond it.
        assert vector_leakage(value_range=1.5 + 2.0 * delta, **given) <= printed
    # d (F/delta + L)^2 = 2 (1/0.5 + 1)^2 = 18 against sigma^2 = 9
    given = {"dimension": 2, "exploration": 0.5, "sigma": 3.0}
    assert_allclose(paper_bandit_leakage(value_max=1.0, lipschitz=1.0, **given), math.log(3.0))


@pytest.mark.parametrize("bandit", BANDITS, ids=["plain", "wide", "capped"])
@pytest.mark.parametrize("n", [1, 100, 10**6, 10**9])
def test_exploration_and_step_are_the_best_ones(bandit, n):
    radius = bandit["radius"]

    def bound(x):
        return bandit_regret(
            n, exploration=min(math.exp(x[0]), radius), step=math.exp(x[1]), **bandit
        )

    exploration = bandit_exploration(n, **bandit)
    step = bandit_step(n, radius=radius, amplitude=bandit["amplitude"], exploration=exploration)
    start = np.log([exploration, step])
    assert_allclose(bound(start), bandit_regret(n, **bandit), rtol=1e-12)
    for shift in itertools.product([-0.3, 0.3], repeat=2):
        found = minimize(
            bound, start + shift, method="Nelder-Mead", options={"xatol": 1e-7, "fatol": 0}
        )
        assert_allclose(found.fun, bandit_regret(n, **bandit), rtol=1e-6)
    if exploration < radius:
        closed = 2 * math.sqrt(2 * radius * bandit["lipschitz"] * bandit["amplitude"]) * n**0.75
        assert_allclose(bandit_regret(n, **bandit), closed)


@pytest.mark.parametrize("bandit", BANDITS, ids=["plain", "wide", "capped"])
def test_bandit_bounds_are_the_sums_rounded_up(bandit):
    radius, lipschitz, amplitude = bandit["radius"], bandit["lipschitz"], bandit["amplitude"]
    for n in [1, 30, 3000, 300_000]:
        times = np.arange(1, n + 1)
        explorations = anytime_bandit_explorations(times, **bandit)
        assert explorations.max() <= radius
        steps = anytime_bandit_steps(times, **bandit)
        energies, slack = (amplitude / explorations) ** 2, 2 * lipschitz * explorations
        summed = regret_of_steps(steps, energies, radius=radius, slack=slack)
        assert summed <= anytime_bandit_regret(n, **bandit) * (1 + 1e-12)
        assert anytime_bandit_regret(n, **bandit) <= summed * (1 + 1.1 * n**-0.25)
        explorations, steps = 0.7 * times**-0.25, 0.02 * times**-0.75
        energies, slack = (amplitude / explorations) ** 2, 2 * lipschitz * explorations
        summed = regret_of_steps(steps, energies, radius=radius, slack=slack)
        powers = anytime_bandit_regret(n, exploration=0.7, step=0.02, **bandit)
        assert summed <= powers <= summed * (1 + 1.1 * n**-0.25)
        delta = bandit_exploration(n, **bandit)
        step = bandit_step(n, radius=radius, amplitude=amplitude, exploration=delta)
        energies, slack = (amplitude / delta) ** 2, 2 * lipschitz * delta
        summed = regret_of_steps(np.full(n, step), energies, radius=radius, slack=slack)
        assert_allclose(bandit_regret(n, **bandit), summed, rtol=1e-9)


def test_anytime_explorations_and_steps_are_the_best_powers():
    bandit = BANDITS[0]

    def bound(x):
        return anytime_bandit_regret(
            1000, exploration=math.exp(x[0]), step=math.exp(x[1]), **bandit
        )

    found = minimize(
        bound, [-1.0, -3.0], method="Nelder-Mead", options={"xatol": 1e-7, "fatol": 0}
    )
    assert_allclose(found.fun, anytime_bandit_regret(1000, **bandit), rtol=1e-8)
    assert_allclose(math.exp(found.x[0]), anytime_bandit_explorations(1, **bandit), rtol=1e-3)
    assert_allclose(math.exp(found.x[1]), anytime_bandit_steps(1, **bandit), rtol=1e-3)
    ratio = anytime_bandit_regret(1000, **bandit) / bandit_regret(1000, **bandit)
    assert_allclose(ratio, 4 / 3**0.75 / math.sqrt(2))


@pytest.mark.parametrize("horizon", [None, 10, 10**6])
@pytest.mark.parametrize("relative_noise", [0.0, 4.0, 1000.0])
def test_the_range_covers_the_exploration_that_it_causes(horizon, relative_noise):
    values = {
        "absolute": (abs, 1.0),
        "huber": (lambda r: r * r / 2 if r < 1.5 else 1.5 * r - 1.125, 1.5),
        "insensitive": (lambda r: max(r - 0.3, 0.0), 1.0),
    }
    for value, cap in values.values():
        for radius, row_norm in [(1.0, 1.0), (0.2, math.sqrt(2.0)), (30.0, 1.0)]:
            lipschitz = cap * row_norm
            F, delta = bandit_range(
                value,
                dimension=5,
                relative_noise=relative_noise,
                radius=radius,
                lipschitz=lipschitz,
                row_norm=row_norm,
                horizon=horizon,
            )
            assert 0.0 < delta <= radius
            assert_allclose(F, value((radius + delta) * row_norm + 1.0), rtol=1e-10)
            amplitude = bandit_amplitude(dimension=5, value_range=F, relative_noise=relative_noise)
            given = {"radius": radius, "lipschitz": lipschitz, "amplitude": amplitude}
            used = (
                anytime_bandit_explorations(1, **given)
                if horizon is None
                else bandit_exploration(horizon, **given)
            )
            assert_allclose(used, delta, rtol=1e-9)
            assert value((radius + used) * row_norm + 1.0) <= F
