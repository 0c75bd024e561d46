"""The online recursion, in blocks and step by step."""

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose
from support.problems import noisy_surface as stream

from skdp.features import fourier_features, kernel_matrix
from skdp.solvers.online import Recursion, run_features
from skdp.solvers.online_kernel import StreamExpansion, run_kernel

MODES = {
    "plain": dict(),
    "huber": dict(cap=0.3),
    "ball": dict(radius=0.4),
    "both": dict(cap=0.3, radius=0.4),
}


def rbf(A, B):
    return kernel_matrix("rbf", A, B, gamma=1.0)


def step_by_step(Z, y, recursion):
    """The recursion as it is written, on explicit features."""
    w = np.zeros(Z.shape[1])
    for t, (z, target) in enumerate(zip(Z, y, strict=True)):
        eta = (t + recursion.t0) ** -recursion.theta
        lam = (t + recursion.t0) ** (recursion.theta - 1.0)
        slope = np.clip(w @ z - target, -recursion.cap, recursion.cap)
        w = w - eta * (slope * z + lam * w)
        w *= min(1.0, recursion.radius / max(np.linalg.norm(w), 1e-300))
    return w


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    "theta, t0", [(0.6, 3.2), (0.75, 2 ** (4 / 3)), (0.95, 1.0), (0.75, 50.0)]
)
def test_blocks_are_the_plain_recursion(mode, theta, t0):
    X, y = stream(700)
    recursion = Recursion(theta, t0, **MODES[mode])
    Z = fourier_features("rbf", 3, n_components=40, gamma=1.0, random_state=0).transform(X)
    gathered = run_features(Z, y, np.zeros(40), 0, recursion)
    w = step_by_step(Z.astype(np.float64), y, recursion)
    assert_allclose(gathered / (len(y) - 1 + t0), w, atol=1e-12)
    # A linear kernel of the features takes the other way to the same function.
    Z = Z.astype(np.float64)
    function = StreamExpansion(lambda A, B: A @ B.T, Z.shape[1])
    coef = run_kernel(Z, y, function, 0, recursion).coef
    assert_allclose(coef @ Z / (len(y) - 1 + t0), w, atol=1e-12)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("chunk", [1, 7, 128, 300])
def test_any_chunks_give_the_same_function(mode, chunk):
    X, y = stream(500)
    recursion = Recursion(0.75, 2 ** (4 / 3), **MODES[mode])
    nothing = parts = StreamExpansion(rbf, 3)
    whole = run_kernel(X, y, nothing, 0, recursion)
    for start in range(0, 500, chunk):
        stop = min(start + chunk, 500)
        parts = run_kernel(X[start:stop], y[start:stop], parts, start, recursion)
    assert_allclose(parts.coef, whole.coef, atol=1e-11)
    assert parts.rows.tobytes() == whole.rows.tobytes() == X.tobytes()
    Z = fourier_features("rbf", 3, n_components=40, gamma=1.0, random_state=0).transform(X)
    whole, parts = run_features(Z, y, np.zeros(40), 0, recursion), np.zeros(40)
    for start in range(0, 500, chunk):
        parts = run_features(
            Z[start : start + chunk], y[start : start + chunk], parts, start, recursion
        )
    assert_allclose(parts, whole, atol=1e-10)


def test_the_ball_is_never_left():
    X, y = stream(600)
    recursion = Recursion(0.6, 3.2, radius=0.3)
    function = StreamExpansion(rbf, 3)
    for start in range(0, 600, 50):
        stop = start + 50
        function = run_kernel(X[start:stop], y[start:stop], function, start, recursion)
        coef = function.coef
        norm = coef @ rbf(X[:stop], X[:stop]) @ coef
        assert_allclose(function.squared_norm, norm, rtol=1e-11)
        norm = math.sqrt(coef @ rbf(X[:stop], X[:stop]) @ coef) / (stop - 1 + recursion.t0)
        assert norm <= 0.3 + 1e-12
    assert norm > 0.25  # the bound is at work


@pytest.mark.parametrize("mode", MODES)
def test_a_difference_contracts_as_the_theory_says(mode):
    # Whatever the rows, a step multiplies distances by at most 1 - 1/(t + t0).
    X, y = stream(200)
    recursion = Recursion(0.75, 2 ** (4 / 3), **MODES[mode])
    Z = fourier_features("rbf", 3, n_components=40, gamma=1.0, random_state=0).transform(X)
    rng = np.random.default_rng(1)
    here, there = 5 * rng.normal(size=(2, 40))
    if recursion.radius < math.inf:
        here, there = (v * recursion.radius * 10 / np.linalg.norm(v) for v in (here, there))
    start = np.linalg.norm(here - there)
    ends = [run_features(Z, y, v, 60, recursion) for v in (here, there)]
    # In units of what is gathered, the contraction is no growth.
    assert np.linalg.norm(ends[0] - ends[1]) <= start * (1 + 1e-12)
