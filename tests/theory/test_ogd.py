"""Regret with gradients against learners that are run; what differential privacy implies."""

import itertools
import math

import mpmath
import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import minimize_scalar
from support.learners import draw, learn

from skdp.releases import gaussian_leakage, gaussian_sigma, local_law
from skdp.theory.ogd import (
    anytime_full_regret,
    anytime_full_steps,
    full_regret,
    full_step,
    pure_leakage,
    regret_of_steps,
)


@pytest.mark.parametrize("epsilon", [0.3, 1.0, 3.0])
def test_pure_leakage_is_approached_by_subset_selection(epsilon):
    """Inputs 0 .. 17; the answer is a subset, likelier by e^epsilon if the input is in it."""
    best = 0.0
    for size in range(1, 10):
        subsets = list(itertools.combinations(range(18), size))
        member = np.array([[k in subset for subset in subsets] for k in range(18)])
        channel = np.where(member, math.exp(epsilon), 1.0)
        channel /= channel.sum(axis=1, keepdims=True)
        best = max(best, float((channel * np.log(channel / channel.mean(0))).sum(1).mean()))
    assert best <= pure_leakage(epsilon) <= 1.02 * best


def test_pure_leakage_keeps_its_digits():
    with mpmath.workdps(60):
        for epsilon in [1e-8, 1e-3, 0.0999, 0.1001, 0.5, 1.0, 30.0, 1000.0]:
            e = mpmath.mpf(epsilon)
            exact = e / mpmath.expm1(e) - 1 + mpmath.log(mpmath.expm1(e) / e)
            assert_allclose(pure_leakage(epsilon), float(exact), rtol=1e-12)
            assert pure_leakage(epsilon) <= epsilon**2 / 8 * (1 + 1e-15)


@pytest.mark.parametrize("adversary", ["follow", "constant", "random", "alternate"])
def test_no_adversary_exceeds_the_regret_of_any_steps(adversary):
    rng, n_rounds, radius = np.random.default_rng(7), 60, 1.5
    for _ in range(30):
        steps = np.sort(rng.gamma(0.5, size=n_rounds))[::-1] + 1e-3
        sizes = rng.uniform(0.1, 2.0, n_rounds)
        given = []

        def answers(w, t, sizes=sizes, given=given):
            z = {
                "follow": w + 1e-9,
                "constant": np.array([[0.6, 0.8]]),
                "random": rng.standard_normal((1, 2)),
                "alternate": np.array([[(-1.0) ** t, 0.1]]),
            }[adversary]
            given.append(z * sizes[t] / np.linalg.norm(z))
            return given[-1]

        path = learn(answers, steps, radius)
        total = np.sum(given, axis=0)
        paid = sum(float(np.sum(w * z)) for w, z in zip(path, given, strict=True))
        regret = paid + radius * float(np.linalg.norm(total))
        assert regret <= regret_of_steps(steps, sizes**2, radius=radius) + 1e-9


def test_the_regret_of_one_round_is_attained():
    # From 0 the other end of the ball is better by B G, and the best step is B / G.
    assert_allclose(regret_of_steps([2.0 / 3.0], 9.0, radius=2.0), 6.0)
    assert_allclose(regret_of_steps([2.0 / 3.0], [9.0], radius=2.0, slack=[0.5]), 6.5)
    for bound in (full_regret, lambda *a, **k: anytime_full_regret(*a, **k) / math.sqrt(2)):
        assert_allclose(bound(1, radius=2.0, lipschitz=3.0, noise_energy=0.0), 6.0)


@pytest.mark.parametrize("noise", ["gaussian", "k_norm"])
@pytest.mark.parametrize("anytime", [False, True])
def test_learners_stay_below_the_bound_with_gradients(noise, anytime):
    rng, n_runs, n_rounds, d = np.random.default_rng(1), 600, 200, 3
    for scale in [0.2, 1.5]:
        energy = local_law(noise, scale).energy(d)
        bounds = {"radius": 1.0, "lipschitz": 1.0, "noise_energy": energy}
        if anytime:
            steps = anytime_full_steps(np.arange(1, n_rounds + 1), **bounds)
            bound = anytime_full_regret(n_rounds, **bounds)
        else:
            steps = np.full(n_rounds, full_step(n_rounds, **bounds))
            bound = full_regret(n_rounds, **bounds)
        signs = rng.choice([-1.0, 1.0], n_rounds) * (rng.random(n_rounds) < 0.9)
        worst = 0.0
        for losses in (np.ones(n_rounds), signs, np.cos(np.arange(n_rounds) / 9)):
            z = np.outer(losses, [0.0, 0.6, 0.8])
            noisy = z[:, np.newaxis] + [draw(rng, noise, scale, n_runs, d) for _ in z]
            path = learn(lambda w, t, noisy=noisy: noisy[t], steps, 1.0)
            paid = sum(np.sum(w * g, axis=1) for w, g in zip(path, z, strict=True))
            worst = max(worst, paid.mean() + np.linalg.norm(z.sum(axis=0)))
        # 600 runs: their mean is known to a few percent of the bound.
        assert 0.2 * bound < worst < bound


def test_the_steps_are_the_best_ones():
    given = {"radius": 1.7, "lipschitz": 0.4, "noise_energy": 5.0}
    found = minimize_scalar(
        lambda x: full_regret(300, step=math.exp(x), **given), bounds=(-20, 5), method="bounded"
    )
    assert_allclose(found.fun, full_regret(300, **given), rtol=1e-9)
    assert_allclose(math.exp(found.x), full_step(300, **given), rtol=1e-3)
    found = minimize_scalar(
        lambda x: anytime_full_regret(300, step=math.exp(x), **given),
        bounds=(-20, 5),
        method="bounded",
    )
    assert_allclose(found.fun, anytime_full_regret(300, **given), rtol=1e-9)
    assert_allclose(math.exp(found.x), anytime_full_steps(1, **given), rtol=1e-3)


def test_closed_forms_are_the_sums_rounded_up():
    given = {"radius": 1.7, "lipschitz": 0.4, "noise_energy": 5.0}
    for n in [1, 10, 1000, 100_000]:
        energy = 0.4**2 + 5.0
        steps = np.full(n, full_step(n, **given))
        summed = regret_of_steps(steps, energy, radius=1.7)
        assert_allclose(full_regret(n, **given), summed, rtol=1e-9)
        summed = regret_of_steps(
            anytime_full_steps(np.arange(1, n + 1), **given), energy, radius=1.7
        )
        assert summed <= anytime_full_regret(n, **given) <= summed * (1 + 1 / math.sqrt(n))


def test_the_figures_of_the_paper():
    times = np.array([1, 25, 400])
    ours = full_regret(times, radius=1.0, lipschitz=1.0, noise_energy=1.0)
    assert_allclose(ours, np.sqrt(2.0 * times))
    assert_allclose(gaussian_leakage(dimension=1, lipschitz=1.0, sigma=1.0), math.log(2) / 2)
    for nats in [0.05, 0.3, 1.0]:
        sigma = gaussian_sigma(dimension=1, lipschitz=1.0, nats=nats)
        regret = full_regret(25, radius=1.0, lipschitz=1.0, noise_energy=sigma**2)
        assert_allclose(regret, 5 * math.sqrt(1 + 1 / math.expm1(2 * nats)))


def test_bad_arguments_are_named():
    with pytest.raises(ValueError, match="epsilon must be a positive"):
        pure_leakage(0.0)
    with pytest.raises(ValueError, match="horizon must hold integers of at least 1; got 0"):
        full_regret(0, radius=1.0, lipschitz=1.0, noise_energy=0.0)
    with pytest.raises(ValueError, match="times must hold integers"):
        anytime_full_steps([0.5], radius=1.0, lipschitz=1.0, noise_energy=0.0)
    with pytest.raises(ValueError, match="noise_energy must be a non-negative"):
        full_step(1, radius=1.0, lipschitz=1.0, noise_energy=-1.0)
    with pytest.raises(ValueError, match="steps must not increase"):
        regret_of_steps([0.1, 0.2], 1.0, radius=1.0)
    with pytest.raises(ValueError, match="steps must be positive"):
        regret_of_steps([], 1.0, radius=1.0)
