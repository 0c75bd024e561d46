"""The error of the online recursion: the printed theorem fails, the corrected one holds."""

import math

import numpy as np
from numpy.testing import assert_allclose

from skdp.kernel.papers import error_bound, printed_error_bound
from skdp.kernel.papers import online_rate as rate

T0 = 2.0 ** (1.0 / 0.98)


def single_point(n_steps, theta, t0, c=1.0):
    """|f_t - c| after each step on one point with K = 1 and targets c."""
    errors, f = [], 0.0
    for t in range(n_steps):
        X = t + t0
        f -= X**-theta * (f - c) + f / X
        errors.append(abs(f - c))
    return np.array(errors)


def test_the_printed_theorem_is_false_and_the_corrected_one_holds_on_a_single_point():
    theta, failure, many = 0.98, 0.5, 200_000
    errors = single_point(many, theta, T0)
    # No chance is involved, and no noise: the claim is to hold with probability 1/2.
    claimed = printed_error_bound(many, theta=theta, t0=T0, failure=failure, norm=1.0)
    assert errors[-1] > 1.2 * claimed
    law = dict(theta=theta, t0=T0, failure=failure, r=1.5, source=1.0)
    for time in (1, 2, 10, 1000, many):
        assert errors[time - 1] <= error_bound(time, **law)
    # What it misses is the bias, which the corrected bound has; the function lags a little.
    assert_allclose(errors[-1], error_bound(many, part="bias", **law), rtol=0.01)


def test_parts_add_up_and_fall_at_their_rates():
    law = dict(theta=0.8, t0=3.0, failure=0.1, r=1.2, source=0.7, kappa=1.5, noise_scale=0.01)
    law["t0"] = 9.0
    parts = ["start", "sample", "drift", "bias", "noise"]
    whole = sum(error_bound(1000, part=part, **law) for part in parts)
    assert_allclose(error_bound(1000, **law), whole)
    assert_allclose(error_bound(1000, part="noise", **law), 0.01 * math.log(20.0))
    for part, power in [("sample", 0.3), ("drift", 0.14), ("bias", 0.14), ("start", 1.0)]:
        here, there = (error_bound(t, part=part, **law) for t in (10**5, 10**6))
        assert_allclose(math.log10(here / there), power, atol=0.02)
    assert_allclose(rate(0.8, 1.2), 0.14)


def test_parts_are_those_of_the_proof_written_out():
    theta, t0, r, source, kappa, bound, failure = 0.8, 9.0, 1.2, 0.7, 1.5, 2.0, 0.1
    X = [9.0, 10.0, 11.0]
    lam = [x**-0.2 for x in X]
    shrink = [1.0 - 1.0 / x for x in X]
    after = [shrink[1] * shrink[2], shrink[2], 1.0]  # what later steps leave of a step
    norm = kappa**1.4 * source
    jumps = [
        x**-theta * (kappa * bound + (kappa**2 + p) * norm) for x, p in zip(X, lam, strict=True)
    ]
    squares = sum((a * jump) ** 2 for a, jump in zip(after, jumps, strict=True))
    mu = np.linspace(1e-6, kappa**2, 400_001)
    power = [float((mu**0.7 / (mu + p)).max()) for p in lam]
    drift = sum((lam[i - 1] - lam[i]) * power[i] * shrink[i] * after[i] for i in (1, 2))
    expected = {
        "start": math.prod(shrink) * norm,
        "sample": math.sqrt(2.0 * math.log(20.0) * squares),
        "drift": drift * source,
        "bias": lam[2] * power[2] * source,
    }
    law = dict(theta=theta, t0=t0, failure=failure, r=r, source=source)
    for part, size in expected.items():
        found = error_bound(3, part=part, kappa=kappa, y_bound=bound, **law)
        assert_allclose(found, kappa * size, rtol=1e-6)
