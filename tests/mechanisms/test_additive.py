"""The noise is what the guarantee asks for: neither less nor more."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats
from support.insides import noise_source

from skdp.mechanisms import (
    Lattice,
    NoiseLaw,
    additive_mechanism,
    gaussian_mechanism,
    k_norm_mechanism,
    laplace_mechanism,
)
from skdp.privacy import ZCDP, ApproxDP, GaussianDP, gaussian_delta

# False alarms: each tolerance is at least six standard deviations of its estimate, 2e-9, and the
# seeds are fixed. A bound that forgets the rounding is off by one percent, twice as much.


def worst_neighbours(size, order=2, error=0.0):
    """Two values that rounding moves apart as far as it can, and their exact distance.

    Every coordinate changes by a hundred steps and a hair, from just below one tie to just above
    another. A computation may push them further apart by ``error`` on either side.
    """
    spread = size ** (1 / order)
    step = 2.0**-9
    here = np.full(size, 0.5 - 1e-4) * step
    there = here + 100.0002 * step
    sensitivity = 100.0002 * step * spread
    assert Lattice.for_sensitivity(sensitivity, size=size, order=order).step == step
    whole_steps = np.rint(error / spread / step)
    return here - whole_steps * step, there + whole_steps * step, sensitivity


@pytest.mark.parametrize("error", [0.0, 0.25])
@pytest.mark.parametrize(
    "guarantee",
    [ApproxDP(1.0, 1e-5), ApproxDP(0.1, 1e-6), ApproxDP(5.0, 1e-3), GaussianDP(0.7)],
    ids=str,
)
def test_gaussian_noise_just_hides_the_worst_neighbours(guarantee, error):
    here, there, sensitivity = worst_neighbours(2**18)
    error *= sensitivity
    here, there, sensitivity = worst_neighbours(2**18, error=error)

    def release(value, seed):
        return gaussian_mechanism(
            value,
            l2_sensitivity=sensitivity,
            guarantee=guarantee,
            error=error,
            random_state=seed,
        )

    shift = np.linalg.norm(release(there, 0) - release(here, 0))  # the noise cancels
    spread = np.sqrt(np.mean([np.var(release(here, seed)) for seed in range(4)]))
    mu = shift / spread  # sd 0.05 percent from 2**20 draws; a forgotten rounding makes 1 percent
    if isinstance(guarantee, GaussianDP):
        assert_allclose(mu, guarantee.mu, rtol=4e-3)
    else:
        assert gaussian_delta(guarantee.epsilon, mu * 0.996) < guarantee.delta
        assert gaussian_delta(guarantee.epsilon, mu * 1.004) > guarantee.delta


@pytest.mark.parametrize("error", [0.0, 0.25])
@pytest.mark.parametrize("epsilon", [0.02, 1.0, 8.0])
@pytest.mark.parametrize(
    ("mechanism", "order", "size"), [(laplace_mechanism, 1, 2**13), (k_norm_mechanism, 2, 2**10)]
)
def test_pure_noise_just_hides_the_worst_neighbours(mechanism, order, size, epsilon, error):
    here, there, sensitivity = worst_neighbours(size, order)
    error *= sensitivity
    here, there, sensitivity = worst_neighbours(size, order, error=error)

    def release(value, seed):
        return mechanism(
            value,
            **{f"l{order}_sensitivity": sensitivity},
            guarantee=ApproxDP(epsilon),
            error=error,
            random_state=seed,
        )

    shift = release(there, 0) - release(here, 0)  # the noise cancels
    # Log density ratio of exp(-||noise|| / scale), attained along the shift.
    shift = np.linalg.norm(shift, ord=order)
    norms = [np.linalg.norm(release(here, seed) - here, ord=order) for seed in range(1, 601)]
    scale = np.mean(norms) / size  # of ||noise||, which is Gamma(size) in either norm
    deviation = 1 / np.sqrt(600 * size)
    assert_allclose(shift / scale, epsilon, rtol=1e-3 + 6.5 * deviation)
    assert_allclose(np.std(norms) / np.sqrt(size), scale, rtol=0.25)


@pytest.mark.parametrize("size", [1, 4, 60])
def test_noise_follows_its_textbook_law(size):
    # K-norm: a Gamma norm, so that no coordinate is Laplace beyond one dimension.
    laws = {
        laplace_mechanism: ("l1", 1, lambda lattice: stats.laplace(scale=lattice.sensitivity)),
        gaussian_mechanism: ("l2", 2, lambda lattice: stats.norm(scale=lattice.sensitivity)),
    }
    for mechanism, (norm, order, law) in laws.items():
        guarantee = ApproxDP(1.0) if order == 1 else GaussianDP(1.0)
        noise = np.concatenate(
            [
                mechanism(
                    np.zeros(size),
                    **{f"{norm}_sensitivity": 2.5},
                    guarantee=guarantee,
                    random_state=seed,
                )
                for seed in range(3_000 // size)
            ]
        )
        lattice = Lattice.for_sensitivity(2.5, size=size, order=order)
        assert stats.kstest(noise, law(lattice).cdf).pvalue > 1e-9

    noise = [
        k_norm_mechanism(
            np.zeros(size), l2_sensitivity=2.5, guarantee=ApproxDP(1.0), random_state=seed
        )
        for seed in range(2_000)
    ]
    scale = Lattice.for_sensitivity(2.5, size=size).sensitivity
    norms = np.linalg.norm(noise, axis=1)
    assert stats.kstest(norms, stats.gamma(size, scale=scale).cdf).pvalue > 1e-9


# The choice of the law


def root_mean_square(mechanism, size, guarantee):
    source = noise_source(3)
    releases = [
        mechanism(np.zeros(size), l2_sensitivity=1.0, guarantee=guarantee, random_state=source)
        for _ in range(200)
    ]
    return np.sqrt(np.mean(np.square(releases)))


@pytest.mark.parametrize(
    ("guarantee", "size", "law"),
    [
        (ApproxDP(1.0, 1e-5), 1, "k_norm"),
        (ApproxDP(1.0, 1e-5), 8, "k_norm"),
        (ApproxDP(1.0, 1e-5), 20, "gaussian"),
        (ApproxDP(1.0, 1e-5), 200, "gaussian"),
        (ApproxDP(0.1, 0.05), 1, "gaussian"),
        (ApproxDP(1.0, 1e-15), 30, "k_norm"),
    ],
    ids=str,
)
def test_the_chosen_noise_is_the_quieter(guarantee, size, law):
    assert NoiseLaw.meeting(guarantee, size=size).kind == law
    k_norm = root_mean_square(k_norm_mechanism, size, guarantee)
    gaussian = root_mean_square(gaussian_mechanism, size, guarantee)
    assert (k_norm < gaussian) == (law == "k_norm")


@pytest.mark.parametrize(("size", "mechanism"), [(3, k_norm_mechanism), (40, gaussian_mechanism)])
def test_additive_noise_is_that_of_the_chosen_law(size, mechanism):
    promise = {"l2_sensitivity": 0.7, "guarantee": ApproxDP(1.0, 1e-5), "error": 0.01}
    value = np.linspace(-1, 1, size)
    assert_array_equal(
        additive_mechanism(value, **promise, random_state=5),
        mechanism(value, **promise, random_state=5),
    )


# Refusals


@pytest.mark.parametrize("delta", [0.0, 1e-5])
def test_pure_noise_needs_a_positive_epsilon(delta):
    promise = {"guarantee": ApproxDP(0.0, delta)}
    for mechanism, name in ((laplace_mechanism, "l1"), (k_norm_mechanism, "l2")):
        with pytest.raises(ValueError, match="epsilon must be a positive, finite number; got 0"):
            mechanism([1.0], **{f"{name}_sensitivity": 1.0}, **promise)


@pytest.mark.parametrize("guarantee", [GaussianDP(0.0), ZCDP(0.5)], ids=str)
def test_a_guarantee_without_a_calibration_is_refused_in_words(guarantee):
    for mechanism in (gaussian_mechanism, additive_mechanism):
        with pytest.raises((ValueError, TypeError), match="must be"):
            mechanism([1.0], l2_sensitivity=1.0, guarantee=guarantee)
