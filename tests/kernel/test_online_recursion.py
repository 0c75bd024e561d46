"""The online recursion, in blocks and step by step."""

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose
from support.problems import noisy_surface as stream

from skdp.kernel._online._recursion import Recursion, StreamExpansion, run_features, run_kernel
from skdp.rows import fourier_features, kernel_matrix

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
