"""Steps and rates of the online recursion."""

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose

from skdp.kernel._online._fed_back import sgd_noise
from skdp.kernel._online._sensitivity import automatic_t0
from skdp.kernel.papers import best_theta, step_sizes
from skdp.kernel.papers import online_rate as rate


def test_step_sizes_continue_where_the_stream_stopped():
    whole = step_sizes(50, 0.7, 2.5)
    assert_allclose(
        np.concatenate([step_sizes(20, 0.7, 2.5), step_sizes(30, 0.7, 2.5, 20)]), whole
    )
    assert_allclose(whole[9], 11.5**-0.7)


# Convergence


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
