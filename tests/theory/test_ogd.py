"""Leakage against integrated mutual information, regret against learners that are run."""

import itertools
import math

import mpmath
import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import minimize, minimize_scalar
from scipy.special import logsumexp

from skdp.theory.ogd import (
    anytime_bandit_explorations,
    anytime_bandit_regret,
    anytime_bandit_steps,
    anytime_full_regret,
    anytime_full_steps,
    bandit_amplitude,
    bandit_exploration,
    bandit_noise,
    bandit_range,
    bandit_regret,
    bandit_step,
    full_regret,
    full_step,
    gaussian_leakage,
    gaussian_sigma,
    implied_mu,
    implied_mu_of_budget,
    k_norm_leakage,
    k_norm_scale,
    laplace_leakage,
    laplace_scale,
    nats_of,
    noise_energy,
    paper_bandit_leakage,
    pure_leakage,
    regret_of_steps,
    scalar_leakage,
    scalar_sigma,
    vector_leakage,
    vector_sigma,
)

BUDGETS = [1e-14, 1e-6, 0.01, 0.1, 1.0, 20.0, 400.0]
DIMENSIONS = [1, 2, 10, 999, 10**6]


# Mutual information by integration


def information_on_a_line(inputs, weights, log_noise, reach):
    """Of a discrete input plus noise; the density is even around each input."""
    y = np.linspace(-reach, reach, 100_001)
    logs = log_noise(y[:, np.newaxis] - inputs)
    mixture = logsumexp(logs, b=weights, axis=1)
    integrand = np.exp(logs) * (logs - mixture[:, np.newaxis]) @ np.asarray(weights)
    return float(np.trapezoid(integrand, y))


def gaussian(x):
    return -(x**2) / 2 - math.log(2 * math.pi) / 2


def laplace(x):
    return -np.abs(x) - math.log(2)


def information_on_a_sphere(length, noise):
    """Of a direction in three dimensions: entropy of the sum minus that of unit noise."""
    r = np.linspace(1e-9, length + 60.0, 600_001)
    if noise == "gaussian":
        product = r * length
        log_sinh = product + np.log1p(-np.exp(-2 * product)) - math.log(2)
        log_p = -(r**2 + length**2) / 2 + log_sinh - np.log(product)
        log_p -= 1.5 * math.log(2 * math.pi)
        entropy = 1.5 * math.log(2 * math.pi * math.e)
    else:
        # The mean of exp(-s) over the sphere, where s ds = r length d(cosine).
        near = np.abs(r - length)
        gap = r + length - near
        integral = (1 + near) * -np.expm1(-gap) - gap * np.exp(-gap)
        log_p = np.log(integral) - near - np.log(2 * r * length) - math.log(8 * math.pi)
        entropy = math.log(8 * math.pi) + 3
    p = np.exp(log_p)
    return float(np.trapezoid(-4 * math.pi * r**2 * p * log_p, r)) - entropy


PRIORS = [
    ([-1.0, 1.0], [0.5, 0.5]),
    ([-1.0, 1.0], [0.1, 0.9]),
    ([-1.0, 0.0, 1.0], [0.3, 0.4, 0.3]),
    (np.linspace(-1, 1, 21), np.full(21, 1 / 21)),
]


@pytest.mark.parametrize("prior", PRIORS, ids=["ends", "uneven", "three", "uniform"])
@pytest.mark.parametrize("ratio", [0.05, 0.5, 2.0, 10.0])
def test_no_prior_on_a_line_leaks_more(prior, ratio):
    inputs, weights = ratio * np.asarray(prior[0]), np.asarray(prior[1])
    for log_noise, bound in [(gaussian, gaussian_leakage), (laplace, k_norm_leakage)]:
        told = information_on_a_line(inputs, weights, log_noise, reach=ratio + 40.0)
        keyword = "sigma" if bound is gaussian_leakage else "scale"
        assert told <= bound(dimension=1, lipschitz=ratio, **{keyword: 1.0}) * (1 + 1e-7)


@pytest.mark.parametrize("ratio", [0.03, 0.3, 1.0, 3.0, 30.0])
def test_no_direction_in_space_leaks_more(ratio):
    told = information_on_a_sphere(ratio, "gaussian")
    assert told <= gaussian_leakage(dimension=3, lipschitz=ratio, sigma=1.0) * (1 + 1e-4)
    told = information_on_a_sphere(ratio, "k_norm")
    assert told <= k_norm_leakage(dimension=3, lipschitz=ratio, scale=1.0) * (1 + 1e-4)


def test_bounds_are_attained_where_noise_dominates():
    # The error of the bounds is of the order of the ratio.
    ends = np.array([-0.02, 0.02]), np.array([0.5, 0.5])
    told = information_on_a_line(*ends, gaussian, reach=40.0)
    assert_allclose(told, gaussian_leakage(dimension=1, lipschitz=0.02, sigma=1.0), rtol=1e-3)
    told = information_on_a_line(*ends, laplace, reach=40.0)
    assert_allclose(told, k_norm_leakage(dimension=1, lipschitz=0.02, scale=1.0), rtol=0.02)
    told = information_on_a_sphere(0.1, "gaussian")
    assert_allclose(told, gaussian_leakage(dimension=3, lipschitz=0.1, sigma=1.0), rtol=0.01)
    told = information_on_a_sphere(0.1, "k_norm")
    assert_allclose(told, k_norm_leakage(dimension=3, lipschitz=0.1, scale=1.0), rtol=0.05)


@pytest.mark.parametrize("d", [2, 3, 7, 40])
def test_k_norm_leakage_covers_the_growth_of_the_mean_norm(d):
    """Its entropy argument asks for a bound on ``E||v + z||``, sampled here."""
    rng, n = np.random.default_rng(0), 400_000
    r = rng.gamma(d, size=n)
    normal = rng.standard_normal(n)
    cosine = normal / np.sqrt(normal**2 + rng.chisquare(d - 1, n))
    for ratio in [0.3, 1.0, 5.0]:
        growth = np.sqrt(r**2 + ratio**2 + 2 * r * ratio * cosine) - r - ratio * cosine
        sampled = growth.mean() - 5 * growth.std() / math.sqrt(n)
        # Where the entropy of a Gaussian is the lesser bound, nothing follows from this one.
        by_norm = d * math.log1p(sampled / d)
        by_square = d / 2 * math.log(2 * math.pi * math.e * (ratio**2 / d + d + 1))
        by_square -= math.log(2) + d / 2 * math.log(math.pi) + d
        by_square -= math.lgamma(d) - math.lgamma(d / 2)
        bound = k_norm_leakage(dimension=d, lipschitz=ratio, scale=1.0)
        assert bound >= min(by_norm, by_square * (1 - 1e-9))
        assert bound <= by_square * (1 + 1e-9)


def test_k_norm_noise_costs_little_more_than_gaussian_noise():
    for d, nats in itertools.product(DIMENSIONS, [1e-9, 1e-4]):
        sigma = gaussian_sigma(dimension=d, lipschitz=2.0, nats=nats)
        scale = k_norm_scale(dimension=d, lipschitz=2.0, nats=nats)
        ratio = noise_energy(dimension=d, scale=scale, noise="k_norm") / (d * sigma**2)
        assert_allclose(ratio, (d + 1) / d, rtol=0.02)


def test_k_norm_leakage_is_never_more_than_differential_privacy_implies():
    for d, ratio in itertools.product(DIMENSIONS, np.geomspace(1e-8, 500.0, 60)):
        leakage = k_norm_leakage(dimension=d, lipschitz=ratio, scale=1.0)
        assert leakage <= pure_leakage(2 * ratio) * (1 + 2e-10)


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


# Calibration


def test_gaussian_sigma_has_its_known_value():
    assert_allclose(gaussian_sigma(dimension=10, lipschitz=1.0, nats=0.1), 2.224897, rtol=3e-7)
    sigma = gaussian_sigma(dimension=1, lipschitz=3.0, nats=nats_of(0.5, "bits"))
    assert_allclose(sigma, 3.0)  # half a bit: signal and noise have the same power


@pytest.mark.parametrize("d", DIMENSIONS)
@pytest.mark.parametrize("nats", BUDGETS)
def test_scales_meet_the_budget_and_waste_nothing(d, nats):
    for scale_of, leakage_of, keyword in [
        (gaussian_sigma, gaussian_leakage, "sigma"),
        (k_norm_scale, k_norm_leakage, "scale"),
    ]:
        found = scale_of(dimension=d, lipschitz=0.3, nats=nats)
        given = {"dimension": d, "lipschitz": 0.3}
        assert leakage_of(**given, **{keyword: found}) <= nats
        assert leakage_of(**given, **{keyword: found * (1 - 1e-7)}) > nats * (1 - 1e-12)
        assert leakage_of(**given, **{keyword: found}) >= nats * (1 - 1e-7)


@pytest.mark.parametrize("nats", BUDGETS)
def test_scales_for_values_meet_the_budget(nats):
    sigma = scalar_sigma(value_range=3.0, nats=nats)
    assert nats * (1 - 1e-9) <= scalar_leakage(value_range=3.0, sigma=sigma) <= nats
    scale = laplace_scale(value_range=3.0, nats=nats)
    assert nats * (1 - 1e-9) <= laplace_leakage(value_range=3.0, scale=scale) <= nats
    bandit = {"dimension": 7, "value_range": 3.0, "exploration": 0.01}
    sigma = vector_sigma(**bandit, nats=nats)
    assert nats * (1 - 1e-9) <= vector_leakage(**bandit, sigma=sigma) <= nats


def test_budgets_beyond_floating_point_still_have_noise():
    for d in [1, 10]:
        assert 0.0 < gaussian_sigma(dimension=d, lipschitz=1.0, nats=1e9) < 1e-290
        assert 0.0 < k_norm_scale(dimension=d, lipschitz=1.0, nats=1e9) < 1e-290
        assert math.isinf(implied_mu_of_budget(dimension=d, nats=1e9))
    assert gaussian_sigma(dimension=1, lipschitz=1.0, nats=1e-300) > 1e149
    leakage = gaussian_leakage(dimension=2, lipschitz=1.0, sigma=1e-200)
    assert_allclose(leakage, math.log(1e200) * 2 - math.log(2))
    assert_allclose(k_norm_leakage(dimension=1, lipschitz=1.0, scale=1e200), 5e-401, atol=1e-300)


def test_larger_budgets_and_smaller_bounds_need_less_noise():
    budgets = np.geomspace(1e-6, 50.0, 40)
    for scale_of in [gaussian_sigma, k_norm_scale]:
        for d in DIMENSIONS:
            scales = [scale_of(dimension=d, lipschitz=1.0, nats=nats) for nats in budgets]
            assert np.all(np.diff(scales) < 0.0)
            double = scale_of(dimension=d, lipschitz=2.0, nats=0.1)
            assert_allclose(double, 2 * scale_of(dimension=d, lipschitz=1.0, nats=0.1), rtol=1e-9)


@pytest.mark.parametrize("d", DIMENSIONS)
def test_implied_differential_privacy(d):
    for nats in BUDGETS:
        sigma = gaussian_sigma(dimension=d, lipschitz=0.7, nats=nats)
        mu = implied_mu(lipschitz=0.7, sigma=sigma)
        assert_allclose(mu, implied_mu_of_budget(dimension=d, nats=nats), rtol=1e-9)
        assert mu >= math.sqrt(8 * nats) * (1 - 1e-9)


def test_theorem_3_as_printed_is_looser():
    for d, delta, sigma in itertools.product([1, 2, 30], [0.01, 1.0], [0.1, 10.0, 1e4]):
        given = {"dimension": d, "exploration": delta, "sigma": sigma}
        printed = paper_bandit_leakage(value_max=1.5, lipschitz=2.0, **given)
        # What is largest on the ball grows by the slope times the exploration beyond it.
        assert vector_leakage(value_range=1.5 + 2.0 * delta, **given) <= printed
    # d (F/delta + L)^2 = 2 (1/0.5 + 1)^2 = 18 against sigma^2 = 9
    given = {"dimension": 2, "exploration": 0.5, "sigma": 3.0}
    assert_allclose(paper_bandit_leakage(value_max=1.0, lipschitz=1.0, **given), math.log(3.0))


# Learners


def learn(answers, steps, radius):
    """Lazy projection; answers(w, t) of shape (n_runs, d) for the weights of time t."""
    theta, path = 0.0, []
    for t, step in enumerate(steps):
        w = np.atleast_2d(step * theta)
        w = w * np.minimum(1.0, radius / np.maximum(np.linalg.norm(w, axis=1), 1e-300))[:, None]
        path.append(w)
        theta = theta - answers(w, t)
    return path


def draw(rng, noise, scale, n, d):
    direction = rng.standard_normal((n, d))
    if noise == "gaussian":
        return scale * direction
    direction /= np.linalg.norm(direction, axis=1, keepdims=True)
    return scale * rng.gamma(d, size=(n, 1)) * direction


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
        energy = noise_energy(dimension=d, scale=scale, noise=noise)
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


# Loss values


@pytest.mark.parametrize("perturbation", ["scalar", "vector"])
@pytest.mark.parametrize("noise", ["gaussian", "k_norm"])
@pytest.mark.parametrize("nats", [0.05, 1.0])
def test_answers_have_the_energy_of_the_amplitude(perturbation, noise, nats):
    rng, n, d, F, delta = np.random.default_rng(3), 200_000, 4, 2.5, 0.3
    e = rng.standard_normal((n, d))
    e /= np.linalg.norm(e, axis=1, keepdims=True)
    centred = F * rng.integers(0, 2, (n, 1)) - F / 2
    if perturbation == "scalar":
        scale = scalar_sigma(value_range=F, nats=nats)
        if noise == "k_norm":
            scale = laplace_scale(value_range=F, nats=nats)
        answers = d / delta * (centred + draw(rng, noise, scale, n, 1)) * e
    else:
        scale = vector_sigma(dimension=d, value_range=F, exploration=delta, nats=nats)
        if noise == "k_norm":
            scale = k_norm_scale(dimension=d, lipschitz=d * F / (2 * delta), nats=nats)
        answers = d / delta * centred * e + draw(rng, noise, scale, n, d)
    energy = np.sum(answers**2, axis=1)
    relative = bandit_noise(dimension=d, nats=nats, perturbation=perturbation, noise=noise)
    amplitude = bandit_amplitude(dimension=d, value_range=F, relative_noise=relative)
    error = 5 * energy.std() / math.sqrt(n)  # a false alarm in 2 million
    assert_allclose((amplitude / delta) ** 2, energy.mean(), atol=error)


def test_vector_noise_costs_the_dimension():
    for d in [1, 5, 100]:
        one, all_ = (
            bandit_noise(dimension=d, nats=0.1, perturbation=p) for p in ["scalar", "vector"]
        )
        assert_allclose(all_, d * one)
    relative = 1.2**2 / 1.5**2  # noise of 1.2 on values of a range of 3
    amplitude = bandit_amplitude(dimension=6, value_range=3.0, relative_noise=relative)
    assert_allclose(amplitude, 6 * math.sqrt(3.0**2 / 4 + 1.2**2))


BANDITS = [
    {"radius": 1.0, "lipschitz": 1.0, "amplitude": 2.0},
    {"radius": 3.0, "lipschitz": 0.2, "amplitude": 0.5},
    {"radius": 0.5, "lipschitz": 1.0, "amplitude": 40.0},  # capped for long
]


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


def test_a_cap_costs_less_than_a_small_start():
    bandit = BANDITS[2]
    capped = anytime_bandit_regret(10**7, **bandit)
    assert capped < 0.5 * anytime_bandit_regret(10**7, exploration=0.5, **bandit)


@pytest.mark.parametrize("perturbation", ["scalar", "vector"])
@pytest.mark.parametrize("anytime", [False, True])
def test_learners_stay_below_the_bound_with_values(perturbation, anytime):
    rng, n_runs, n_rounds, d, radius = np.random.default_rng(5), 300, 400, 2, 1.0
    nats = 2.0
    relative = bandit_noise(dimension=d, nats=nats, perturbation=perturbation)
    F, _ = bandit_range(
        abs,
        dimension=d,
        relative_noise=relative,
        radius=radius,
        lipschitz=1.0,
        horizon=None if anytime else n_rounds,
    )
    amplitude = bandit_amplitude(dimension=d, value_range=F, relative_noise=relative)
    bandit = {"radius": radius, "lipschitz": 1.0, "amplitude": amplitude}
    times = np.arange(1, n_rounds + 1)
    if anytime:
        explorations = anytime_bandit_explorations(times, **bandit)
        steps = anytime_bandit_steps(times, **bandit)
        bound = anytime_bandit_regret(n_rounds, **bandit)
    else:
        delta = bandit_exploration(n_rounds, **bandit)
        step = bandit_step(n_rounds, radius=radius, amplitude=amplitude, exploration=delta)
        explorations, steps = np.full(n_rounds, delta), np.full(n_rounds, step)
        bound = bandit_regret(n_rounds, **bandit)
    rows = np.outer(np.ones(n_rounds), [0.6, 0.8])
    targets = np.where(times % 4 == 0, -0.5, 1.0)
    paid = []

    def answers(w, t):
        e = rng.standard_normal((n_runs, d))
        e /= np.linalg.norm(e, axis=1, keepdims=True)
        values = np.abs((w + explorations[t] * e) @ rows[t] - targets[t])
        assert values.max() <= F
        paid.append(values.mean())
        centred = (values - F / 2)[:, np.newaxis]
        if perturbation == "scalar":
            centred = centred + scalar_sigma(value_range=F, nats=nats) * rng.standard_normal(
                (n_runs, 1)
            )
            return d / explorations[t] * centred * e
        sigma = vector_sigma(dimension=d, value_range=F, exploration=explorations[t], nats=nats)
        return d / explorations[t] * centred * e + sigma * rng.standard_normal((n_runs, d))

    learn(answers, steps, radius)
    best = np.abs(rows @ np.array([0.6, 0.8]) - targets).sum()  # the median of the targets is 1
    regret = sum(paid) - best
    assert 0.05 * bound < regret < bound


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


# Arguments


def test_units():
    assert nats_of(0.3) == 0.3
    assert_allclose(nats_of(2.0, "bits"), 2 * math.log(2))
    with pytest.raises(ValueError, match="unit must be one of 'nats', 'bits'; got 'shannons'"):
        nats_of(1.0, "shannons")
    with pytest.raises(ValueError, match="budget must be a positive"):
        nats_of(0.0)


def test_bad_arguments_are_named():
    with pytest.raises(ValueError, match=r"dimension must be an integer of at least 1; got 0\."):
        gaussian_leakage(dimension=0, lipschitz=1.0, sigma=1.0)
    with pytest.raises(ValueError, match="dimension must be an integer"):
        k_norm_scale(dimension=True, lipschitz=1.0, nats=1.0)
    with pytest.raises(ValueError, match="nats must be a positive"):
        gaussian_sigma(dimension=1, lipschitz=1.0, nats=-1.0)
    with pytest.raises(ValueError, match="scale must be a positive"):
        k_norm_leakage(dimension=1, lipschitz=1.0, scale=0.0)
    with pytest.raises(ValueError, match="epsilon must be a positive"):
        pure_leakage(0.0)
    with pytest.raises(ValueError, match="horizon must hold integers of at least 1; got 0"):
        full_regret(0, radius=1.0, lipschitz=1.0, noise_energy=0.0)
    with pytest.raises(ValueError, match="times must hold integers"):
        anytime_full_steps([0.5], radius=1.0, lipschitz=1.0, noise_energy=0.0)
    with pytest.raises(ValueError, match="noise_energy must be a non-negative"):
        full_step(1, radius=1.0, lipschitz=1.0, noise_energy=-1.0)
    with pytest.raises(ValueError, match="exploration must be a positive"):
        bandit_regret(5, exploration=0.0, **BANDITS[0])
    with pytest.raises(ValueError, match="perturbation must be one of 'scalar', 'vector'"):
        bandit_noise(dimension=1, nats=1.0, perturbation="both")
    with pytest.raises(ValueError, match="noise must be one of 'gaussian', 'k_norm'"):
        noise_energy(dimension=1, scale=1.0, noise="uniform")
    with pytest.raises(ValueError, match="steps must not increase"):
        regret_of_steps([0.1, 0.2], 1.0, radius=1.0)
    with pytest.raises(ValueError, match="steps must be positive"):
        regret_of_steps([], 1.0, radius=1.0)
    with pytest.raises(ValueError, match="value must be positive at the largest residual"):
        bandit_range(
            lambda r: max(r - 9.0, 0.0), dimension=1, relative_noise=1.0, radius=1.0, lipschitz=1.0
        )
