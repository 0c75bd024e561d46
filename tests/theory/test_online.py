"""Steps and rates of the online recursion."""

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose

from skdp.releases import automatic_t0, sgd_noise
from skdp.theory.online import best_theta, rate, step_sizes


def test_step_sizes_continue_where_the_stream_stopped():
    whole = step_sizes(50, 0.7, 2.5)
    assert_allclose(
        np.concatenate([step_sizes(20, 0.7, 2.5), step_sizes(30, 0.7, 2.5, 20)]), whole
    )
    assert_allclose(whole[9], 11.5**-0.7)


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
        (lambda: step_sizes(-1, 0.6, 3.0), "n_steps must hold integers of at least 0"),
    ]
    for call, message in cases:
        with pytest.raises(ValueError, match=message):
            call()
