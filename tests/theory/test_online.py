"""Rates of the online recursion, and the matrix mechanism for its sequence."""

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose

from skdp.releases import automatic_t0, sgd_noise, step_sensitivity
from skdp.theory.online import (
    best_theta,
    matrix_noise,
    matrix_sensitivity,
    prefix_root,
    rate,
    step_sizes,
)

ADJACENCIES = ["replace-one", "add-remove"]
PAPER = {"theta": 0.75, "t0": 2.0 ** (4 / 3)}


def test_step_sizes_continue_where_the_stream_stopped():
    whole = step_sizes(50, 0.7, 2.5)
    assert_allclose(
        np.concatenate([step_sizes(20, 0.7, 2.5), step_sizes(30, 0.7, 2.5, 20)]), whole
    )
    assert_allclose(whole[9], 11.5**-0.7)


def test_noise_of_the_ways_to_release_a_sequence_has_its_known_values():
    scale = step_sensitivity(width=1.0)
    fed_back = sgd_noise(10_000, **PAPER, scale=scale)
    assert_allclose(fed_back, 0.163, atol=5e-4)
    scale = matrix_sensitivity(10_000, **PAPER, step_sensitivity=scale)
    assert_allclose(matrix_noise(10_000, t0=PAPER["t0"], scale=scale), 0.0071, atol=5e-5)


@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_the_matrix_mechanism_protects_every_iterate_by_one_noisy_vector(adjacency):
    n, theta, t0, kappa, width = 40, 0.7, 3.0, 2.0, 0.5
    column = prefix_root(n)
    root = np.array([[column[i - j] if i >= j else 0.0 for j in range(n)] for i in range(n)])
    assert_allclose(root @ root, np.tri(n), atol=1e-14)

    rng = np.random.default_rng(4)
    gradients = kappa * width * rng.choice([-1.0, 1.0], n)
    weights = (np.arange(n) + t0) ** (1.0 - theta)
    w, path = 0.0, []
    for t in range(n):
        w = (1.0 - 1.0 / (t + t0)) * w - (t + t0) ** -theta * gradients[t]
        path.append(w)
    averages = 1.0 / (np.arange(n) + t0)
    assert_allclose(-averages * np.cumsum(weights * gradients), path, rtol=1e-12)

    moved = []
    for position in range(n):
        other = gradients.copy()
        other[position] = -other[position] if adjacency == "replace-one" else 0.0
        moved.append(np.linalg.norm(root @ (weights * (gradients - other))))
    change = step_sensitivity(width=width, kappa=kappa, adjacency=adjacency)
    claimed = matrix_sensitivity(n, theta=theta, t0=t0, step_sensitivity=change)
    assert max(moved) <= claimed <= max(moved) * (1.0 + 1e-11)
    assert 0 < np.argmax(moved) < n - 1  # neither end of the stream
    spread = 1.3 * averages * np.linalg.norm(root, axis=1)
    assert_allclose(matrix_noise(np.arange(1, n + 1), t0=t0, scale=1.3), spread, rtol=1e-12)


# Convergence


def test_the_rate_claimed_by_the_paper_fails_on_a_single_point():
    # K(x, x) = 1 and y = 1: no noise at all, and f_rho is as smooth as can be.
    theta, f, error = 0.9, 0.0, {}
    for t in range(100_000):
        f -= (t + 2.5) ** -theta * (f - 1.0) + f / (t + 2.5)
        error[t + 1] = abs(f - 1.0)
    claimed = {t: error[t] * t ** (theta - 0.5) for t in (10**3, 10**4, 10**5)}
    assert_allclose(list(claimed.values()), [5.4, 11.6, 24.5], rtol=0.02)
    # The error is lam / (1 + lam).
    odds = {t: error[t] / (1.0 - error[t]) for t in error}
    exponent = math.log10(odds[10**4] / odds[10**5])
    assert_allclose(exponent, rate(theta, 1.5), rtol=0.1)


@pytest.mark.parametrize(("theta", "r"), [(0.9, 1.0), (0.8, 0.75), (0.75, 1.25), (0.6, 1.0)])
def test_the_expected_function_approaches_no_faster_than_the_rate_of_the_bias(theta, r):
    # Eigenvalues of L_K; f_rho = L^r g has RKHS coefficients mu^(r - 1/2) g. The noise of the
    # sample adds theta - 1/2, as in the variance of fed-back noise.
    eigenvalues = 40.0 * np.exp(-np.arange(0.0, 25.0, 0.25))
    target = eigenvalues ** (r - 0.5) * 0.2
    f, errors, t0 = np.zeros_like(target), {}, automatic_t0(theta, math.sqrt(40.0))
    for t in range(30_000):
        f = f - (t + t0) ** -theta * eigenvalues * (f - target) - f / (t + t0)
        errors[t + 1] = np.linalg.norm(f - target)
    bias = math.log(errors[3000] / errors[30_000]) / math.log(10)
    late = sgd_noise(np.array([10**8, 10**9]), theta=theta, t0=3.0, scale=1.0)
    noise = math.log10(late[0] / late[1])
    assert_allclose(min(bias, noise), rate(theta, r), atol=0.01)


@pytest.mark.parametrize("r", [0.6, 1.0, 1.5])
def test_the_best_theta_balances_noise_and_bias(r):
    best = best_theta(r)
    others = [rate(theta, r) for theta in np.linspace(0.501, 0.999, 400)]
    assert max(others) <= rate(best, r) <= max(others) + 2e-3
    assert_allclose(rate(best, r), (2 * r - 1) / (4 * r + 2))


def test_arguments_out_of_range_are_named():
    cases = [
        (lambda: rate(0.5, 1.0), "theta must be more than 1/2; got 0.5"),
        (lambda: rate(0.75, 0.5), "r must be more than 1/2 and at most 3/2; got 0.5"),
        (lambda: best_theta(1.6), "r must be more than 1/2"),
        (lambda: prefix_root(0), "n must hold integers of at least 1"),
    ]
    for call, message in cases:
        with pytest.raises(ValueError, match=message):
            call()
