"""The integer noise has exactly the law of a rounded continuous variable."""

import json
import os
import subprocess
import sys
from decimal import Decimal, Inexact, localcontext
from itertools import pairwise

import mpmath
import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy import stats
from scipy.special import gammainc, ndtri, roots_legendre
from support.insides import NoiseSource, noise_source

from skdp._random import _exact, _source
from skdp._random import _source as _words
from skdp._random._source import seed_sequence

# Each statistical test below raises a false alarm with this probability; there are less than a
# hundred, so that all together stay below 1e-7 for a seed drawn at random.
ALARM = 1e-9
LAWS = {"normal": stats.norm, "laplace": stats.laplace}
ALL_BITS = 2**64 - 1


def chi_square(counts, probabilities, least=20.0):
    """p-value of ``counts``; neighbouring cells are pooled until ``least`` are expected."""
    counts = np.append(counts, 0.0)
    probabilities = np.append(probabilities, max(0.0, 1.0 - np.sum(probabilities)))
    n = counts.sum()
    pools, expected, observed = [], 0.0, 0.0
    for p, count in zip(probabilities, counts, strict=True):
        expected, observed = expected + n * p, observed + count
        if expected >= least:
            pools.append([expected, observed])
            expected = observed = 0.0
    pools[-1][0] += expected
    pools[-1][1] += observed
    expected, observed = np.transpose(pools)
    return stats.chi2.sf(((observed - expected) ** 2 / expected).sum(), len(pools) - 1)


def integer_cells(draws, cdf, scale):
    """Counts and exact probabilities of ``rint(scale * Y)`` in at most 400 cells of integers."""
    last = int(np.ceil(12 * scale))
    edges = np.unique(np.linspace(-last, last, 400).astype(np.int64))
    counts = np.bincount(np.searchsorted(edges, draws), minlength=len(edges) + 1)
    ends = np.concatenate([[0.0], cdf((edges + 0.5) / scale), [1.0]])
    return counts, np.diff(ends)  # the cell of the integer e ends at e + 1/2


class Tape:
    """Words in a given order, then zeros; or, for the digits drawn later, a constant."""

    def __init__(self, *words, later=None):
        self.words, self.later = list(words), later

    def __call__(self, n):
        taken, self.words = self.words[:n], self.words[n:]
        taken += [self.later or 0] * (n - len(taken))
        return np.array(taken, dtype=np.uint64)


def reference(law, u):
    """``|Y|`` where a uniform number is ``u``, without anything of the package."""
    return -mpmath.log(u) if law == "laplace" else mpmath.sqrt(2) * mpmath.erfinv(1 - u)


def uniform_of(law, magnitude):
    """The uniform number of that ``|Y|``."""
    if law == "laplace":
        return mpmath.exp(-magnitude)
    return mpmath.erfc(magnitude / mpmath.sqrt(2))


def nearest(value):
    return int(mpmath.floor(value + 0.5))


@pytest.fixture
def everything_exact(monkeypatch):
    """Settle every draw in multiple precision, as if no float could be trusted."""
    monkeypatch.setattr(_source, "_FEW_BITS", 2.0**64)


# The law


@pytest.mark.parametrize("scale", [0.3, 1.0, 7.5, 128.0, 1e4, 3e9])
@pytest.mark.parametrize("law", LAWS)
def test_integers_have_the_law_of_a_rounded_variable(law, scale, repetitions):
    n = repetitions(4_000_000, 200_000)
    draws = getattr(noise_source(1), law)(n, scale)
    assert draws.dtype == np.int64
    assert draws.shape == (n,)
    assert chi_square(*integer_cells(draws, LAWS[law].cdf, scale)) > ALARM


@pytest.mark.parametrize("law", LAWS)
def test_the_operating_system_gives_the_same_law(law):
    draws = getattr(noise_source(), law)(100_000, 7.5)
    assert chi_square(*integer_cells(draws, LAWS[law].cdf, 7.5)) > ALARM


@pytest.mark.parametrize("scale", [0.4, 2.0, 50.0])
def test_k_norm_noise_of_one_coordinate_is_laplace(scale, repetitions):
    draws = noise_source(4).k_norms(repetitions(2_000_000, 200_000), 1, scale).ravel()
    assert chi_square(*integer_cells(draws, stats.laplace.cdf, scale)) > ALARM


@pytest.mark.parametrize("size", [2, 3, 50])
def test_k_norm_noise_has_a_gamma_norm_and_a_uniform_direction(size, repetitions):
    n = repetitions(500_000, 50_000)
    noise = noise_source(5).k_norms(n, size, 1e7) / 1e7
    norms = np.linalg.norm(noise, axis=1)
    levels = gammainc(size, norms)  # uniform under the claim; the rounding is invisible
    cells = np.full(40, 1 / 40)
    assert chi_square(np.histogram(levels, 40, (0, 1))[0], cells) > ALARM

    rotation = stats.ortho_group.rvs(size, random_state=6)
    for directions in (noise / norms[:, None], noise @ rotation / norms[:, None]):
        along = directions[:, 0]
        assert abs(np.sum(np.sign(along))) < 6.5 * np.sqrt(n)
        angle = stats.beta.cdf(along**2, 0.5, (size - 1) / 2)
        assert chi_square(np.histogram(angle, 40, (0, 1))[0], cells) > ALARM
        signs = (directions[:, :2] > 0) @ [1, 2]
        assert chi_square(np.bincount(signs, minlength=4), np.full(4, 0.25)) > ALARM
        # The direction says nothing about the norm.
        table = np.histogram2d(levels, angle, 5, ((0, 1), (0, 1)))[0]
        assert chi_square(table.ravel(), np.full(25, 1 / 25)) > ALARM


def test_small_k_norm_noise_has_the_integrals_of_the_density_over_squares(repetitions):
    # exp(-||y|| / scale) / (2 pi scale^2) over the unit squares around the integers of a plane.
    scale, reach = 0.8, 9
    nodes, weights = roots_legendre(60)
    corners = np.arange(-2 * reach - 1, 2 * reach + 1) / 2  # halves: the kink is at a corner
    points = (corners[:, None] + 0.25 + nodes / 4).ravel()
    weights = np.tile(weights / 4, len(corners))
    density = np.exp(-np.hypot(points[:, None], points) / scale) / (2 * np.pi * scale**2)
    mass = weights[:, None] * density * weights
    side = 2 * reach + 1
    probabilities = mass.reshape(side, -1, side, len(points) // side).sum(axis=(1, 3))
    assert 1 - 1e-3 < probabilities.sum() < 1 + 1e-6

    draws = noise_source(7).k_norms(repetitions(2_000_000, 200_000), 2, scale)
    inside = (np.abs(draws) <= reach).all(axis=1)
    flat = (draws[inside] + reach) @ [side, 1]
    counts = np.append(np.bincount(flat, minlength=side**2), np.sum(~inside))
    probabilities = np.append(probabilities, 1 - probabilities.sum())
    assert chi_square(counts, probabilities) > ALARM


def pairs_of(n, n_pairs, scale, seed):
    source = noise_source(seed)
    return np.array([source.k_norm_pairs(n_pairs, scale) for _ in range(n)])


@pytest.mark.parametrize("n_pairs", [1, 2, 7])
def test_noise_of_pairs_has_a_gamma_maximum_and_is_uniform_in_discs(n_pairs, repetitions):
    n, cells = repetitions(20_000, 4_000), np.full(40, 1 / 40)
    noise = pairs_of(n, n_pairs, 1e7, 20) / 1e7
    lengths = np.hypot(noise[:, :n_pairs], noise[:, n_pairs:])
    longest = lengths.max(axis=1)
    levels = gammainc(2 * n_pairs, longest)
    assert chi_square(np.histogram(levels, 40, (0, 1))[0], cells) > ALARM
    angles = np.arctan2(noise[:, n_pairs], noise[:, 0]) / (2 * np.pi) + 0.5
    assert chi_square(np.histogram(angles, 40, (0, 1))[0], cells) > ALARM
    # All pairs are as often the longest; others are uniform within what that one reaches.
    often = np.bincount(lengths.argmax(axis=1), minlength=n_pairs)
    assert n_pairs == 1 or chi_square(often, np.full(n_pairs, 1 / n_pairs)) > ALARM
    others = lengths[:, 0] < longest
    areas = (lengths[others, 0] / longest[others]) ** 2
    if n_pairs > 1:
        assert chi_square(np.histogram(areas, 40, (0, 1))[0], cells) > ALARM
        table = np.histogram2d(levels[others], areas, 5, ((0, 1), (0, 1)))[0]
        assert (
            chi_square(
                table.ravel(), np.outer(table.mean(axis=1), np.ones(5)).ravel() / table.sum()
            )
            > ALARM
        )
    signs = (noise[:, [0, -1]] > 0) @ [1, 2]
    assert chi_square(np.bincount(signs, minlength=4), np.full(4, 0.25)) > ALARM


@pytest.mark.parametrize("scale", [3.0, 2.0**39, 2.0**47])
def test_noise_of_pairs_is_rounded_exactly_at_all_scales(scale):
    # Words near 1 make for radii of which floats keep few digits; all later digits are zeros.
    n_pairs = 12
    for near in (0, 2**44, 2**62):
        shared = [2**63 - 1 - near - 977 * i for i in range(2 * n_pairs + 1)]
        rng = np.random.default_rng(0)
        points = [
            int(word) for word in rng.integers(2**61, 2**62, 2 * (n_pairs + n_pairs // 2 + 8))
        ]
        tape = Tape(*(word << 1 for word in shared), *points)
        found = NoiseSource(tape, lambda n: np.zeros(n, dtype=np.uint64)).k_norm_pairs(
            n_pairs, scale
        )
        with mpmath.workprec(600):
            uniforms = [mpmath.ldexp(mpmath.mpf(word), -63) for word in shared]
            gamma = mpmath.fsum(reference("laplace", u) for u in uniforms)
            x, y = points[0 : 2 * n_pairs : 2], points[1 : 2 * n_pairs : 2]
            numbers = [mpmath.ldexp(mpmath.mpf(word), -63) for word in [*x, *y]]
            expected = [nearest(mpmath.mpf(scale) * gamma * u) for u in numbers]
        assert_array_equal(found, expected)


@pytest.mark.parametrize("size", [1, 4, 30])
def test_vectors_drawn_together_do_not_depend_on_each_other(size):
    n = 100_000 // size
    noise = noise_source(11).k_norms(n, size, 1e6) / 1e6
    norms = np.linalg.norm(noise, axis=1)
    together = _source._BLOCK // (size // 2 + 1 + size)
    for values in (noise[:, 0], noise[:, -1], norms):
        values = (values - values.mean()) / values.std()
        for lag in (1, 2, together - 1, together, together + 1):
            correlation = np.mean(values[lag:] * values[:-lag])
            assert abs(correlation) * np.sqrt(n - lag) < 6.5


# Float where it is certain, multiple precision where it is not


def grid_of_digits():
    """63-digit numbers that the float path may see: extremes, powers of two, joints of ndtri."""
    factors = (1.0, 1.0 + 2.0**-40, 1.1, 1.25, 1.4, 1.6, 1.8, 2.0 - 2.0**-40)
    digits = {int(2.0**k * factor) for k in range(45, 63) for factor in factors}
    digits |= {2**63 - 1 - j for j in (0, 1, 2, 1000, 2**20, 2**40, 2**50, 2**55)}
    digits |= {2**45 + j for j in (0, 1, 2, 2**10)}
    for probability in (np.exp(-2.0), 0.075):  # where ndtri and inv_cdf change approximations
        joint = int(2 * probability * 2.0**63)
        digits |= {joint + j * 2**k for j in (-1, 1) for k in range(10, 40, 5)}
    return sorted(digits)


@pytest.fixture(params=["scipy", "no scipy"])
def quantile(request, monkeypatch):
    """The normal quantile function of scipy or, as where that is missing, another."""
    _source._ndtri.cache_clear()
    if request.param == "no scipy":
        monkeypatch.setitem(sys.modules, "scipy.special", None)
        assert _source._ndtri() is not ndtri
    else:
        assert _source._ndtri() is ndtri
    yield request.param
    _source._ndtri.cache_clear()


@pytest.mark.parametrize("law", LAWS)
def test_the_float_error_bounds_the_distance_from_the_whole_interval(law, quantile):
    in_float = {"laplace": _source._minus_laplace, "normal": _source._minus_normal}[law]
    for digits in grid_of_digits():
        value = mpmath.mpf(-float(in_float(np.array([np.int64(digits) + 0.5]))[0]))
        with mpmath.workprec(160):
            for end in (digits, digits + 1):  # further digits lie anywhere in between
                error = abs(value - reference(law, mpmath.ldexp(mpmath.mpf(end), -63)))
                # Another half is left for scaling, which rounds once more.
                assert error < _source._FLOAT_ERROR / 2


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("extra_words", [0, 1, 3, 6])
@pytest.mark.parametrize(
    ("law", "scale", "whole"),
    [
        ("normal", 0.3, 0),
        ("normal", 0.3, 2),
        ("normal", 10.0, 7),
        ("normal", 1e4, 44_000),
        ("normal", 2.0**43, 5),
        ("normal", 1e6, 0),
        ("normal", 100.0, 850),
        ("laplace", 0.3, 0),
        ("laplace", 10.0, 7),
        ("laplace", 1e4, 200_001),
        ("laplace", 2.0**43, 3),
    ],
)
def test_words_beside_a_rounding_boundary_are_settled(law, scale, whole, extra_words, sign):
    # The uniform number at which the noise is exactly whole + 1/2, to all digits; then one unit
    # more or less in the last word, 63 + 64 * extra_words binary places behind the point.
    places = 63 + 64 * extra_words
    with mpmath.workprec(places + 300):
        boundary = uniform_of(law, (mpmath.mpf(whole) + 0.5) / mpmath.mpf(scale))
        digits = int(mpmath.floor(mpmath.ldexp(boundary, places)))
    for beside, expected in ((digits - 1, whole + 1), (digits + 1, whole)):
        flip = 0 if sign > 0 else ALL_BITS  # the sign bit, and with it the meaning of the rest
        words = [(beside >> (64 * k)) & ALL_BITS for k in range(extra_words, -1, -1)]
        words[0] ^= flip
        assert getattr(NoiseSource(Tape(*words)), law)(1, scale) == [sign * expected]


@pytest.mark.parametrize("later", [0, ALL_BITS, 0xAAAAAAAAAAAAAAAA])
@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize(
    "words",
    [
        [0],
        [1],
        [5],
        [2**30 + 7],
        [2**44],
        [2**45 - 1],
        [0, 0, 0],
        [0] * 5,
        [2**63 - 1] + [ALL_BITS] * 5,
    ],
    ids=str,
)
def test_words_of_few_digits_are_settled_by_further_ones(words, law, later):
    # Later digits: one random-looking word, so that the number is not 0, then the constant.
    words = [*words, 0x123456789ABCDEF0]
    with mpmath.workprec(1200):
        u = mpmath.mpf(later) / ALL_BITS  # 0.llll... in base 2**64
        for word in reversed(words):
            u = mpmath.ldexp(word + u, -64)
        for scale in (0.7, 1e3, 1e9):
            expected = nearest(mpmath.mpf(scale) * reference(law, 2 * u))
            source = NoiseSource(Tape(*words, later=later))
            assert getattr(source, law)(1, scale) == [expected]


@pytest.mark.parametrize("size", [1, 2, 3, 8, 60])
@pytest.mark.parametrize("scale", [0.9, 500.0, 1e7])
def test_k_norm_words_beside_a_rounding_boundary_are_settled(size, scale):
    # The shared words come first; all further digits are zeros, whatever order they come in.
    n_exponentials, half = divmod(size + 1, 2)
    rng = np.random.default_rng(size)
    shared = [int(word) for word in rng.integers(2**60, 2**63, n_exponentials + half)]
    with mpmath.workprec(500):
        uniforms = [mpmath.ldexp(mpmath.mpf(w >> 1), -63) for w in shared]
        gamma = mpmath.fsum(reference("laplace", u) for u in uniforms[:n_exponentials])
        if half:
            gamma += reference("normal", uniforms[-1]) ** 2 / 2
        root = mpmath.mpf(scale) * mpmath.sqrt(2 * gamma)
        for whole in {0, 1, nearest(root / 3), nearest(4 * root)}:
            boundary = uniform_of("normal", (whole + mpmath.mpf(0.5)) / root)
            below = int(mpmath.floor(mpmath.ldexp(boundary, 63)))
            words = [*shared, *([below] * size)]
            assert_array_equal(NoiseSource(Tape(*words)).k_norm(size, scale), [whole + 1] * size)
            words = [*shared, *([below + 1] * size)]
            assert_array_equal(NoiseSource(Tape(*words)).k_norm(size, scale), [whole] * size)


def mp_radius(shared, size, tail=0):
    """``sqrt(2 G)`` from 63-digit numbers, each with ``tail`` units of the last digit more."""
    uniforms = [mpmath.ldexp(mpmath.mpf(digits) + tail, -63) for digits in shared]
    n_exponentials = (size + 1) // 2
    gamma = mpmath.fsum(reference("laplace", u) for u in uniforms[:n_exponentials])
    for u in uniforms[n_exponentials:]:
        gamma += reference("normal", u) ** 2 / 2
    return mpmath.sqrt(2 * gamma)


def seldom(words, rng):
    """Replace some words by others of few digits, of either sign, or next to one."""
    words = words.copy()
    odd = np.flatnonzero(rng.random(words.size) < 0.004)
    words[odd] >>= rng.integers(17, 64, odd.size).astype(np.uint64)
    flip = rng.random(odd.size) < 0.5
    words[odd[flip]] ^= np.uint64(ALL_BITS)
    return words


@pytest.mark.parametrize("size", [65, 66, 1001, 4096])
def test_the_near_radius_keeps_within_its_bound_of_all_digits(size):
    rng = np.random.default_rng(size)
    for least in (2**21, 2**46, 2**62):
        digits = rng.integers(0, 2**63, size // 2 + 1).astype(np.uint64)
        digits[[0, -1]] = least, 2**63 - 1  # close to 0, and to 1
        second = rng.integers(0, 2**64, digits.size, dtype=np.uint64)
        near, relative_error = _exact.near_radius(digits, second, size, 1000.0)
        for later in (0, 2**64 - 1):
            uniforms = [_exact.Uniform(int(d), lambda: 0) for d in digits]
            for uniform, word in zip(uniforms, second, strict=True):
                uniform.append(int(word))
            words = lambda n, later=later: np.full(n, later, dtype=np.uint64)  # noqa: E731
            with _exact.precision(256):
                whole = _exact.Radius(uniforms, words, size, 1000.0).at(192)
                error = abs(near / whole - 1)
            assert error <= relative_error
        assert relative_error < (2.0**-80 if least > 2**40 else 2.0**-50)


@pytest.mark.parametrize("law", ["normal", "laplace"])
def test_the_close_errors_bound_each_magnitude(law):
    rng = np.random.default_rng(5)
    digits = np.concatenate([2.0 ** rng.uniform(46, 63, 300), 2.0**63 - 2.0 ** np.arange(10, 60)])
    float_law = {"normal": _source._minus_normal, "laplace": _source._minus_laplace}[law]
    scale = 2.0**30
    values = -scale * float_law(digits.copy())
    bounds = _source._close_errors(np.abs(np.rint(values)), digits, np.full(len(digits), scale))
    magnitude = {"normal": _exact.normal_magnitude, "laplace": _exact.laplace_magnitude}[law]
    for word, value, bound in zip(digits, values, bounds, strict=True):
        # The midpoint is rounded to a float; the number is within half a unit of it.
        for shift in ("-0.5", "0.5"):
            with _exact.precision(192):
                u = min((Decimal(word) + Decimal(shift)) / 2**63, Decimal(1) - Decimal(2) ** -80)
                whole = magnitude(u, Decimal(scale))
            assert abs(Decimal(value) - whole) <= Decimal(bound)
    assert bounds.max() < 2.0**-10


@pytest.mark.parametrize("size", [1, 2, 3, 4, 9, 55, 400])
def test_the_float_radius_keeps_within_its_bound(size, quantile):
    n_shared = size // 2 + 1
    rng = np.random.default_rng(size)
    words = np.random.PCG64(size).random_raw((1_500 // size + 20) * n_shared)
    words = words.reshape(-1, n_shared)
    words[::3] |= np.uint64(ALL_BITS) << rng.integers(40, 64, words[::3].shape).astype(np.uint64)
    words[1::3, -1] >>= rng.integers(0, 16, len(words[1::3])).astype(np.uint64)
    radii, errors, certain = _source._float_radii(words, size)
    assert np.mean(certain) > 0.5
    quantiles = np.array([0.0, 0.1, 1.0, reference("normal", mpmath.ldexp(1, -18))])
    with mpmath.workprec(160):
        for row in np.flatnonzero(certain):
            for tail in (0, 1):
                exact = mp_radius((words[row] >> np.uint64(1)).tolist(), size, tail)
                for z in quantiles:
                    # The float quantile is off by half of the float error at most.
                    further = abs(float(radii[row])) * (z + _source._FLOAT_ERROR / 2) - exact * z
                    assert abs(further) < errors[row]


@pytest.mark.parametrize("block", [4, 1 << 13])  # less than a vector, more than all
@pytest.mark.parametrize("scale", [30.0, 2.0**20, 2.0**46])
@pytest.mark.parametrize("size", [1, 2, 5, 10])
def test_vectors_drawn_together_are_settled_by_the_digits_of_their_own(
    size, scale, block, monkeypatch
):
    monkeypatch.setattr(_source, "_BLOCK", block)
    # Some words have few digits or settle a rounding; all later digits are those of one word.
    n, n_shared, later = 120 // size, size // 2 + 1, 0xF0F0F0F0F0F0F0F0
    rng = np.random.default_rng(size)
    words = seldom(np.random.PCG64(size).random_raw(n * (n_shared + size)), rng)
    words[rng.integers(words.size)] = 5
    source = NoiseSource(Tape(*words.tolist()), Tape(later=later))
    draws = source.k_norms(n, size, scale)
    with mpmath.workprec(700):
        tail = mpmath.mpf(later) / ALL_BITS
        for vector, draw in zip(words.reshape(n, -1).tolist(), draws, strict=True):
            radius = scale * mp_radius([w >> 1 for w in vector[:n_shared]], size, tail)
            for word, found in zip(vector[n_shared:], draw.tolist(), strict=True):
                sign, digits = (1, word) if word < 2**63 else (-1, ALL_BITS - word)
                u = mpmath.ldexp(digits + tail, -63)
                assert found == sign * nearest(radius * reference("normal", u))


@pytest.mark.parametrize("traps", [[], [Inexact]])
def test_a_decimal_context_of_the_caller_changes_nothing(traps, everything_exact):
    expected = three_kinds(noise_source(12))
    with localcontext(prec=2, Emin=-1, Emax=1, traps=traps):
        assert three_kinds(noise_source(12)) == expected


@pytest.mark.parametrize("law", [*LAWS, "k_norm"])
@pytest.mark.parametrize("scale", [2.0**59, 1e300, np.inf, np.nan])
def test_noise_beyond_the_integers_is_refused(law, scale):
    with pytest.raises(ValueError, match="lattice steps"):
        getattr(noise_source(0), law)(3, scale)


@pytest.mark.parametrize("law", LAWS)
def test_the_largest_scale_does_not_leave_the_integers(law):
    # The smallest word gives a quantile of 9 (normal) and 44 (Laplace), with more digits a
    # larger one; whatever scale is allowed must leave room for it.
    scales = 2.0 ** np.arange(40, 60)
    for scale in scales:
        for word in (0, ALL_BITS):
            source = NoiseSource(Tape(word, 1, later=1))
            try:
                draw = getattr(source, law)(1, scale)
            except ValueError:  # the documented refusal, and from then on
                assert scale > 2.0**48
                break
            assert np.sign(draw) == (1 if word == 0 else -1)


# Fresh where it must be, reproducible where it may be


def three_kinds(source):
    draws = [source.normal(4, 1e12), source.laplace(4, 1e12), source.k_norm(4, 1e12)]
    return [int(draw) for draw in np.concatenate(draws)]


def test_noise_without_a_seed_never_comes_twice():
    source = noise_source()
    draws = [*three_kinds(source), *three_kinds(source), *three_kinds(noise_source(None))]
    assert len(set(draws)) == len(draws)  # two numbers of 40 bits agree once in 1e12


@pytest.mark.parametrize("cipher", [True, False], ids=["cipher", "no cipher"])
@pytest.mark.parametrize("law", [*LAWS, "k_norm"])
def test_each_draw_takes_fresh_bytes_of_the_operating_system(law, cipher, monkeypatch):
    asked = []

    def urandom(n, original=os.urandom):
        asked.append(n)
        return original(n)

    if not cipher:
        monkeypatch.setattr(_words, "key_stream", lambda: None)
    monkeypatch.setattr(os, "urandom", urandom)
    source = noise_source()
    for _ in range(3):  # no buffer is kept from call to call
        asked.clear()
        getattr(source, law)(20_000, 5.0)
        if cipher:  # a key of 256 bits and a start of 128
            assert sum(asked) >= 48
            assert set(asked) >= {32, 16}
        else:
            assert sum(asked) >= 8 * 20_000


def test_long_draws_are_the_key_stream_of_aes_in_counter_mode(monkeypatch):
    # NIST SP 800-38A, F.5.5: the key stream is the plaintext xor the ciphertext.
    key = "603deb1015ca71be2b73aef0857d77811f352c073b6108d72d9810a30914dff4"
    start = "f0f1f2f3f4f5f6f7f8f9fafbfcfdfeff"
    plain = "6bc1bee22e409f96e93d7e117393172aae2d8a571e03ac9c9eb76fac45af8e51"
    cipher = "601ec313775789a5b7a7f504bbf3d228f443e3ca4d62b59aca84e990cacaf5c5"
    given = {32: bytes.fromhex(key), 16: bytes.fromhex(start)}
    monkeypatch.setattr(os, "urandom", given.__getitem__)
    words = noise_source()._words(1000).tobytes()
    expected = int(plain, 16) ^ int(cipher, 16)
    assert words[:32].hex() == f"{expected:064x}"
    assert len(words) == 8000


def test_forked_processes_draw_other_noise():
    # In a process of its own: forking beside the threads of other tests would be unsafe.
    script = """
import json, os, numpy as np
from multiprocessing import get_context
from skdp._random import noise_source

source = noise_source()
source.normal(5, 1e12)

def draw(_):
    return [int(x) for x in source.normal(4, 1e12)]

draws = []
for _ in range(3):
    read, write = os.pipe()
    if os.fork() == 0:
        os.write(write, json.dumps(draw(0)).encode())
        os._exit(0)
    draws += json.loads(os.read(read, 10_000))
    os.wait()
with get_context("fork").Pool(2) as pool:
    for some in pool.map(draw, range(4), chunksize=1):
        draws += some
print(json.dumps(draws + draw(0)))
"""
    draws = json.loads(python(script))
    assert len(draws) == 32
    assert len(set(draws)) == 32


def test_the_global_seed_of_numpy_has_no_influence_and_stays_as_it_is():
    for random_state in (None, 0):
        draws = []
        for _ in range(2):
            np.random.seed(0)  # noqa: NPY002
            before = np.random.get_state()[1].copy()  # noqa: NPY002
            draws.append(three_kinds(noise_source(random_state)))
            assert_array_equal(np.random.get_state()[1], before)  # noqa: NPY002
        assert (draws[0] == draws[1]) == (random_state == 0)


@pytest.mark.parametrize(
    "make", [lambda s: s, np.int64, np.random.RandomState, np.random.default_rng]
)
def test_a_seed_makes_the_noise_reproducible(make):
    assert three_kinds(noise_source(make(3))) == three_kinds(noise_source(make(3)))
    assert three_kinds(noise_source(make(3))) != three_kinds(noise_source(make(4)))


@pytest.mark.parametrize("make", [np.random.RandomState, np.random.default_rng])
def test_a_generator_moves_on_so_that_the_next_source_differs(make):
    generator = make(3)
    draws = [*three_kinds(noise_source(generator)), *three_kinds(noise_source(generator))]
    assert len(set(draws)) == len(draws)


@pytest.mark.parametrize(
    "random_state",
    [True, False, np.True_, -1, np.int64(-3), "0", 1.0, np.float64(2.0), [1, 2], b"1", np.random],
)
def test_other_seeds_are_refused(random_state):
    for function in (noise_source, seed_sequence):
        with pytest.raises(ValueError, match="random_state must be None, a non-negative int"):
            function(random_state)


def test_seeded_noise_does_not_depend_on_how_it_is_cut_into_draws():
    # Among this many draws some need more digits than they began with.
    whole = noise_source(0).normal(2_000_000, 6000.0)
    source = noise_source(0)
    parts = [source.normal(size, 6000.0) for size in (1, 999_999, 20_000, 980_000)]
    assert (whole == np.concatenate(parts)).all()


class SeldomSeeded:
    """Reproducible words of which some have few digits, the same however they are cut."""

    def __init__(self, seed):
        rng = np.random.default_rng(seed)
        self.words = seldom(np.random.PCG64(seed).random_raw(40_000), rng)
        self.taken = 0

    def __call__(self, n):
        self.taken += n
        return self.words[self.taken - n : self.taken]


@pytest.mark.parametrize("scale", [50.0, 2.0**30])
@pytest.mark.parametrize(("size", "n"), [(1, 700), (2, 300), (9, 120), (55, 30), (5000, 2)])
def test_vectors_are_the_same_alone_and_in_any_parts(size, n, scale, monkeypatch):
    def source():
        return NoiseSource(SeldomSeeded(size), _words.SeededWords(np.random.PCG64(1)))

    monkeypatch.setattr(_source, "_BLOCK", 1 << 9)
    alone, together, parts = source(), source(), source()
    expected = np.array([alone.k_norm(size, scale) for _ in range(n)])
    assert_array_equal(together.k_norms(n, size, scale), expected)
    ends = sorted({0, 1, n // 3, n // 3 + 1, n})
    cut = [parts.k_norms(end - start, size, scale) for start, end in pairwise(ends)]
    assert_array_equal(np.concatenate(cut), expected)
    # Afterwards all have used up as many words of both kinds.
    for law in (*LAWS, "k_norm"):
        draws = [getattr(one, law)(3, 1e12).tolist() for one in (alone, together, parts)]
        assert draws[0] == draws[1] == draws[2]
    later = {int(one._more_words(1)[0]) for one in (alone, together, parts)}
    assert len(later) == 1


# A device may have numpy and nothing else


def many_kinds(source):
    """Numbers of every law, among which some have been settled in multiple precision."""
    draws = [source.normal(3000, 1e5), source.laplace(3000, 1e5)]
    draws += [source.k_norms(100, 4, 1e9).ravel(), source.k_norm(5, 2.0**40)]
    return np.concatenate(draws).tolist()


def test_numpy_alone_draws_the_same_noise():
    script = """
import sys

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("scipy", "mpmath", "cryptography", "sklearn", "joblib"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Missing())
import json, numpy as np
from skdp._random import noise_source

source = noise_source(14)
draws = [source.normal(3000, 1e5), source.laplace(3000, 1e5)]
draws += [source.k_norms(100, 4, 1e9).ravel(), source.k_norm(5, 2.0**40)]
print(json.dumps(np.concatenate(draws).tolist()))
assert np.count_nonzero(noise_source().k_norms(200, 55, 1e6)) > 10_000
"""
    assert json.loads(python(script)) == many_kinds(noise_source(14))


def python(script):
    """Output of a script in a process of its own."""
    environment = {"PYTHONPATH": os.pathsep.join(sys.path), "OPENBLAS_NUM_THREADS": "1"}
    run = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, **environment},
    )
    return run.stdout
