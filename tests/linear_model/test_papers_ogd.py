"""Regret with gradients against learners that are run; what differential privacy implies."""

import itertools
import math

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import minimize_scalar
from support.learners import learn

from skdp.linear_model.papers import (
    anytime_full_regret,
    anytime_full_steps,
    full_regret,
    full_step,
    pure_leakage,
    regret_of_steps,
)
from skdp.local._messages import gaussian_leakage, gaussian_sigma


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


def test_the_figures_of_the_paper():
    times = np.array([1, 25, 400])
    ours = full_regret(times, radius=1.0, lipschitz=1.0, noise_energy=1.0)
    assert_allclose(ours, np.sqrt(2.0 * times))
    assert_allclose(gaussian_leakage(dimension=1, lipschitz=1.0, sigma=1.0), math.log(2) / 2)
    for nats in [0.05, 0.3, 1.0]:
        sigma = gaussian_sigma(dimension=1, lipschitz=1.0, nats=nats)
        regret = full_regret(25, radius=1.0, lipschitz=1.0, noise_energy=sigma**2)
        assert_allclose(regret, 5 * math.sqrt(1 + 1 / math.expm1(2 * nats)))
