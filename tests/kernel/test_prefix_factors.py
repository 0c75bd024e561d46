"""Factors of weighted prefix sums, beside linear algebra that makes no use of exponentials."""

import math
from itertools import combinations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.linalg import toeplitz
from scipy.signal import fftconvolve

from skdp.kernel._online._matrix import (
    calls_norm,
    calls_sum,
    column_norm,
    encoding_error,
    prefix_factors,
)
from skdp.kernel._online._recursion import Recursion

HORIZONS = (1, 2, 3, 10, 100, 1000)
RECURSIONS = [Recursion(0.6, 2.2), Recursion(0.75, 2.3), Recursion(0.55, 300.0)]


def coefficients(amounts, decays, horizon):
    return sum(a * m ** np.arange(horizon) for a, m in zip(amounts, decays, strict=True))


def square_root(horizon):
    """Coefficients of 1 / sqrt(1 - x)."""
    even = 2.0 * np.arange(1, horizon)
    return np.cumprod(np.concatenate([[1.0], (even - 1.0) / even]))


def matrices(horizon, recursion):
    """C and B of the module, as matrices."""
    factors, weights = prefix_factors(horizon), recursion.weights(0, horizon)
    forth = coefficients(factors.amounts, factors.decays, horizon)
    back = coefficients(factors.back_amounts, factors.back_decays, horizon)
    below = np.zeros(horizon)
    C = toeplitz(forth, below) * weights / weights[:, np.newaxis]
    return C, toeplitz(back, below) * weights


def deviations(forth, back, weights):
    """Of the noise of each prefix sum, where one gradient moves by 1 and mu is 1; by FFT."""
    squares = fftconvolve(weights**-2.0, (forth**2)[::-1])[len(weights) - 1 :]
    norm = math.sqrt((weights**2 * squares).max())
    return norm * np.sqrt(fftconvolve(weights**2, back**2)[: len(weights)])


def tree_deviations(weights):
    """The same of the binary tree: a node a binary digit, weighted by its last step."""
    horizon = len(weights)
    levels, times, variances = horizon.bit_length(), np.arange(1, horizon + 1), 0.0
    for level in range(levels):
        last = np.maximum((times >> level) << level, 1) - 1
        variances = variances + ((times >> level) & 1) * weights[last] ** 2
    return np.sqrt(levels * variances)


@pytest.mark.parametrize("recursion", RECURSIONS, ids=lambda r: f"{r.theta}-{r.t0}")
@pytest.mark.parametrize("horizon", HORIZONS)
def test_the_factors_make_the_weighted_prefix_sums(horizon, recursion):
    C, B = matrices(horizon, recursion)
    wanted = np.tril(np.ones((horizon, horizon))) * recursion.weights(0, horizon)
    assert_allclose(B @ C, wanted, rtol=1e-10, atol=1e-10)
    assert_allclose(np.diag(C), 1.0, rtol=1e-14)
    norms = np.linalg.norm(C, axis=0)
    bound = column_norm(horizon, recursion)
    assert norms.max() <= bound <= norms.max() * (1.0 + 1e-9)


@pytest.mark.parametrize("theta", [0.6, 0.75])
@pytest.mark.parametrize("horizon", [1000, 16_384, 131_072])
def test_noise_is_that_of_the_square_root_and_far_below_that_of_a_tree(horizon, theta):
    recursion = Recursion(theta, 2.2)
    weights, factors = recursion.weights(0, horizon), prefix_factors(horizon)
    forth = coefficients(factors.amounts, factors.decays, horizon)
    back = coefficients(factors.back_amounts, factors.back_decays, horizon)
    ours, root = deviations(forth, back, weights), square_root(horizon)
    full, tree = deviations(root, root, weights), tree_deviations(weights)
    mean = [math.sqrt(np.mean(values**2)) for values in (ours, full, tree)]
    # Rounding to the lattice costs at most a 512th of the sensitivity more.
    assert mean[0] * (1.0 + 1 / 512) < 1.005 * mean[1]
    assert mean[0] * (1.0 + 1 / 512) < mean[2] / 2.4
    assert (ours * (1.0 + 1 / 512) < 1.1 * tree).all()
    # Of the function, which is a sum over its time, early sums count for more.
    times = np.arange(horizon) + recursion.t0
    mean = [math.sqrt(np.mean((values / times) ** 2)) for values in (ours, full, tree)]
    assert mean[0] < mean[1] and mean[0] < mean[2] / 2.1


@pytest.mark.parametrize("horizon", [30, 3000])
def test_the_rounding_of_sums_is_below_its_bound(horizon):
    """All gradients alike, where sums are longest, beside sums in extended precision."""
    recursion, factors = Recursion(0.6, 2.2), prefix_factors(horizon)
    weights = recursion.weights(0, horizon)
    gradients = np.full(horizon, 1.0 / 3.0)
    sums, exact, found = np.zeros(8), np.zeros(8, dtype=np.longdouble), 0.0
    amounts, decays = factors.amounts, factors.decays
    for weight, gradient in zip(weights, gradients, strict=True):
        sums = decays * sums + weight * gradient
        exact = decays.astype(np.longdouble) * exact + np.longdouble(weight) * gradient
        off = amounts @ sums / weight - (amounts * exact).sum() / np.longdouble(weight)
        found += float(off) ** 2
    assert 0.0 < math.sqrt(found) < encoding_error(horizon) / 3.0


@pytest.mark.parametrize("recursion", RECURSIONS, ids=str)
def test_no_columns_in_several_calls_are_longer_together(recursion):
    for horizon, calls in [(1, 3), (3, 2), (10, 2), (10, 3), (10, 5), (10, 10), (10, 40)]:
        C, _ = matrices(horizon, recursion)
        chosen = [list(c) for c in combinations(range(horizon), min(calls, horizon))]
        longest = max(np.linalg.norm(C[:, c].sum(axis=1)) for c in chosen)
        largest = max(C[:, c].sum(axis=1).max() for c in chosen)
        # Weights that grow fast within so short a horizon are not used.
        assert 0.78 < longest / calls_norm(horizon, recursion, calls) <= 1.0
        assert largest <= calls_sum(horizon, calls)
        assert calls_norm(horizon, recursion, calls) <= (1 + 1e-9) * calls * column_norm(
            horizon, recursion
        )
