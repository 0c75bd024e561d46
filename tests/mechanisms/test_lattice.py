"""Releases live on a public lattice, so that no low bit of a float tells anything."""

import math

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from skdp.mechanisms import Lattice, gaussian_mechanism, k_norm_mechanism, laplace_mechanism
from skdp.privacy import ApproxDP, GaussianDP

LARGEST = 2.0**53
GUARANTEE = ApproxDP(1.0, 1e-5)


def laplace(value, random_state=None, sensitivity=1.0):
    return laplace_mechanism(
        value, l1_sensitivity=sensitivity, guarantee=GUARANTEE, random_state=random_state
    )


def k_norm(value, random_state=None, sensitivity=1.0):
    return k_norm_mechanism(
        value, l2_sensitivity=sensitivity, guarantee=GUARANTEE, random_state=random_state
    )


def gaussian(value, random_state=None, sensitivity=1.0):
    return gaussian_mechanism(
        value, l2_sensitivity=sensitivity, guarantee=GaussianDP(0.5), random_state=random_state
    )


mechanisms = pytest.mark.parametrize("mechanism", [laplace, k_norm, gaussian])


def units(values):
    """The largest power of two of which all ``values`` are multiples."""
    return min(2.0 ** (math.frexp(v)[1] - 53 + trailing_zeros(v)) for v in np.ravel(values) if v)


def trailing_zeros(value):
    mantissa = int(abs(math.frexp(value)[0]) * 2**53)
    return (mantissa & -mantissa).bit_length() - 1


# The step and the sensitivity


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("size", [1, 2, 7, 1000, 10**6])
@pytest.mark.parametrize("sensitivity", [1e-100, 0.003, 1.0, 2 / 3, 12345.0, 1e100])
def test_the_step_is_a_power_of_two_and_costs_about_one_percent(sensitivity, size, order):
    lattice = Lattice.for_sensitivity(sensitivity, size=size, order=order)
    assert math.frexp(lattice.step)[0] == 0.5
    rounding = lattice.step * size ** (1 / order)
    assert sensitivity + rounding <= lattice.sensitivity <= 1.01001 * sensitivity


@pytest.mark.parametrize("order", [1, 2])
def test_an_error_of_the_value_counts_on_both_sides(order):
    without = Lattice.for_sensitivity(1.0, size=9, order=order)
    lattice = Lattice.for_sensitivity(1.0, size=9, order=order, error=0.25)
    assert lattice.step == without.step  # or else the data could be guessed from it
    assert lattice.sensitivity == pytest.approx(without.sensitivity + 0.5, rel=1e-9)
    assert lattice.sensitivity >= without.sensitivity + 0.5


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("size", [1, 3, 50])
def test_rounded_neighbours_are_no_further_apart_than_declared(size, order):
    rng = np.random.default_rng(0)
    for _ in range(300):
        sensitivity = 10.0 ** rng.uniform(-6, 6)
        lattice = Lattice.for_sensitivity(sensitivity, size=size, order=order)
        change = rng.normal(size=size) * (rng.random(size) < rng.random())
        change *= sensitivity / max(np.linalg.norm(change, ord=order), 1e-300)
        # Just below a tie, where a neighbour can round the other way.
        here = (rng.integers(-5, 5, size) + 0.5 - 1e-9 * np.sign(change)) * lattice.step
        none = np.zeros(size, dtype=np.int64)
        shift = lattice.release(here + change, none) - lattice.release(here, none)
        assert np.linalg.norm(shift, ord=order) <= lattice.sensitivity


@pytest.mark.parametrize("sensitivity", [0.0, -1.0, math.nan, math.inf, None, "1", True])
@mechanisms
def test_a_sensitivity_must_be_positive(mechanism, sensitivity):
    with pytest.raises(ValueError, match="sensitivity must be a positive, finite number; got "):
        mechanism([1.0], sensitivity=sensitivity)


@pytest.mark.parametrize("sensitivity", [5e-324, 1e-320, 1e-310, 1e-300, 1e300, 1.7e308])
@mechanisms
def test_an_extreme_sensitivity_is_served_or_refused_by_name(mechanism, sensitivity):
    try:
        released = mechanism([0.5], sensitivity=sensitivity)
    except ValueError as error:
        assert "sensitivity" in str(error)
    else:
        assert np.isfinite(released).all()
        assert abs(released[0]) > 0 or sensitivity < 1e-290


# The release


@mechanisms
def test_releases_are_multiples_of_a_step_that_ignores_the_value(mechanism):
    rng = np.random.default_rng(1)
    steps = set()
    for value in (0.0, 1 / 3, np.pi * 1e6, -1e-12, rng.normal(size=1)[0]):
        released = [mechanism([value], seed)[0] for seed in range(60)]
        steps.add(units(released))
    assert steps == {Lattice.for_sensitivity(1.0, size=1).step}


@pytest.mark.parametrize("mechanism", [laplace_mechanism, k_norm_mechanism])
def test_neighbours_share_their_support(mechanism):
    # So little noise that each multiple of the step within reach is seen, in both worlds. The
    # values are apart by some steps and a third: plain floats would never meet.
    name = "l1_sensitivity" if mechanism is laplace_mechanism else "l2_sensitivity"
    step = Lattice.for_sensitivity(1.0, size=1).step
    seen = []
    for value in (0.0, 2.3 * step):
        draws = [
            mechanism([value], **{name: 1.0}, guarantee=ApproxDP(100.0), random_state=seed)[0]
            for seed in range(2_000)
        ]
        wholes = np.array(draws) / step
        assert_array_equal(wholes, np.rint(wholes))
        seen.append(set(wholes))
    assert {-2.0, -1.0, 0.0, 1.0, 2.0, 3.0, 4.0} <= seen[0] & seen[1]


def test_the_noise_of_one_seed_does_not_depend_on_the_value():
    for mechanism in (laplace, k_norm, gaussian):
        zero = mechanism(np.zeros(5), 0)
        for value in (1.0, 1 / 3, 1e9, -3.0e-4):
            shift = mechanism(np.full(5, value), 0) - zero
            lattice = Lattice.for_sensitivity(1.0, size=5, order=1 if mechanism is laplace else 2)
            assert_array_equal(shift, np.rint(value / lattice.step) * lattice.step)


@pytest.mark.parametrize("value", [1e20, 1e100, 1e300, 1e308, np.finfo(float).max])
@mechanisms
def test_values_beyond_the_lattice_are_clamped_without_a_warning(mechanism, value):
    lattice = Lattice.for_sensitivity(1.0, size=2, order=1 if mechanism is laplace else 2)
    for seed in range(20):
        released = mechanism([value, -value], seed)
        assert (np.abs(released) <= LARGEST * lattice.step).all()
        assert (np.abs(released) > 0.999 * LARGEST * lattice.step).all()
        assert_array_equal(np.sign(released), [1, -1])
    # The clamp covers the noise as well: what lies beyond cannot be told apart.
    assert_array_equal(mechanism([value, 0.0], 5), mechanism([value / 2, 0.0], 5))


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
@mechanisms
def test_a_value_that_is_not_finite_is_refused_without_being_shown(mechanism, bad):
    with pytest.raises(ValueError, match="value must be finite") as error:
        mechanism([12345.678, bad])
    assert "12345" not in str(error.value)
    assert repr(bad) not in str(error.value)


@mechanisms
def test_each_coordinate_has_its_own_noise(mechanism):
    released = mechanism(np.zeros((40, 50)), 0)
    assert len(np.unique(released)) > 1000
