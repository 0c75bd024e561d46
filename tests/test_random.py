"""The integer noise has exactly the law of a rounded continuous variable."""

import json
import os
import subprocess
import sys

import mpmath
import numpy as np
import pytest
from joblib import Parallel, delayed
from numpy.testing import assert_array_equal
from scipy import stats
from scipy.special import gammainc, roots_legendre

from skdp import _random
from skdp._random import NoiseSource, noise_source, seed_sequence

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
    monkeypatch.setattr(_random, "_FEW_BITS", 2.0**64)


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


@pytest.mark.parametrize("law", LAWS)
def test_the_exact_path_alone_has_the_law(law, everything_exact, repetitions):
    draws = getattr(noise_source(2), law)(repetitions(20_000, 1_500), 2.5)
    assert chi_square(*integer_cells(draws, LAWS[law].cdf, 2.5)) > ALARM


@pytest.mark.parametrize("law", LAWS)
def test_draws_do_not_depend_on_each_other(law):
    n = 200_000
    draws = getattr(noise_source(3), law)(n, 1e6) / 1e6
    for values in (draws, np.abs(draws)):
        values = (values - values.mean()) / values.std()
        for lag in (1, 2, 3, 4, 1 << 12, 1 << 13, 1 << 14):  # 2**13 draws are made at a time
            correlation = np.mean(values[lag:] * values[:-lag])
            assert abs(correlation) * np.sqrt(n - lag) < 6.5  # a normal passes 6.1 one in 1e9


@pytest.mark.parametrize("scale", [0.4, 2.0, 50.0])
def test_k_norm_noise_of_one_coordinate_is_laplace(scale, repetitions):
    source = noise_source(4)
    draws = np.concatenate([source.k_norm(1, scale) for _ in range(repetitions(200_000, 10_000))])
    assert chi_square(*integer_cells(draws, stats.laplace.cdf, scale)) > ALARM


@pytest.mark.parametrize("size", [2, 3, 50])
def test_k_norm_noise_has_a_gamma_norm_and_a_uniform_direction(size, repetitions):
    n = repetitions(100_000, 6_000)
    source = noise_source(5)
    noise = np.array([source.k_norm(size, 1e7) for _ in range(n)]) / 1e7
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

    source = noise_source(7)
    draws = np.array([source.k_norm(2, scale) for _ in range(repetitions(200_000, 15_000))])
    inside = (np.abs(draws) <= reach).all(axis=1)
    flat = (draws[inside] + reach) @ [side, 1]
    counts = np.append(np.bincount(flat, minlength=side**2), np.sum(~inside))
    probabilities = np.append(probabilities, 1 - probabilities.sum())
    assert chi_square(counts, probabilities) > ALARM


# Float where it is certain, multiple precision where it is not


def grid_of_digits():
    """63-digit numbers that the float path may see: extremes, powers of two, joints of ndtri."""
    factors = (1.0, 1.0 + 2.0**-40, 1.1, 1.25, 1.4, 1.6, 1.8, 2.0 - 2.0**-40)
    digits = {int(2.0**k * factor) for k in range(45, 63) for factor in factors}
    digits |= {2**63 - 1 - j for j in (0, 1, 2, 1000, 2**20, 2**40, 2**50, 2**55)}
    digits |= {2**45 + j for j in (0, 1, 2, 2**10)}
    joint = int(2 * np.exp(-2.0) * 2.0**63)  # ndtri changes its approximation at exp(-2)
    digits |= {joint + j * 2**k for j in (-1, 1) for k in range(10, 40, 5)}
    return sorted(digits)


@pytest.mark.parametrize("law", LAWS)
def test_the_float_error_bounds_the_distance_from_the_whole_interval(law):
    in_float = {"laplace": _random._minus_laplace, "normal": _random._minus_normal}[law]
    for digits in grid_of_digits():
        value = mpmath.mpf(-float(in_float(np.array([np.int64(digits) + 0.5]))[0]))
        with mpmath.workprec(160):
            for end in (digits, digits + 1):  # further digits lie anywhere in between
                error = abs(value - reference(law, mpmath.ldexp(mpmath.mpf(end), -63)))
                # Another half is left for scaling, which rounds once more.
                assert error < _random._FLOAT_ERROR / 2


def test_few_digits_and_large_quantiles_are_not_left_to_float():
    # Below this the relative error of a 63-digit number, and the quantile, outgrow the bound.
    digits = int(_random._FEW_BITS)
    with mpmath.workprec(160):
        ends = [mpmath.log(digits), mpmath.log(digits + 1)]
        assert ends[1] - ends[0] < _random._FLOAT_ERROR / 2
        assert reference("laplace", mpmath.ldexp(mpmath.mpf(digits), -63)) < 13


@pytest.mark.parametrize(
    "probability",
    ["0.5", "0.4999999999999999999999999999999999", "0.49999", "0.3", "1e-5", "1e-60", "1e-400"],
)
def test_the_multiple_precision_quantile_inverts_the_normal_distribution(probability):
    with mpmath.workprec(400):
        p = mpmath.mpf(probability)
        root = _random._mp_ndtri(p)
        assert abs(mpmath.ncdf(root) / p - 1) < mpmath.ldexp(1, -380)


@pytest.mark.parametrize("scale", [0.3, 40.0, 1e6])
@pytest.mark.parametrize("law", [*LAWS, "k_norm"])
def test_the_exact_path_agrees_with_float_where_float_is_certain(law, scale, monkeypatch):
    def source():
        first, later = np.random.PCG64(8), np.random.PCG64(9)  # later digits leave the first
        return NoiseSource(lambda n: (later if n == 1 else first).random_raw(n))

    in_float = getattr(source(), law)(150, scale)
    monkeypatch.setattr(_random, "_FEW_BITS", 2.0**64)
    assert_array_equal(getattr(source(), law)(150, scale), in_float)


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


@pytest.mark.parametrize("size", [2, 5])
def test_k_norm_settles_shared_words_next_to_one(size):
    # Their logarithms are tiny, and so is the norm: floats would keep none of its digits.
    n_exponentials, half = divmod(size + 1, 2)
    shared = [2**63 - 1 - 3 * i for i in range(n_exponentials + half)]
    coordinates = [2**60 + 17 * i for i in range(size)]
    with mpmath.workprec(500):
        uniforms = [mpmath.ldexp(mpmath.mpf(word), -63) for word in shared]
        gamma = mpmath.fsum(reference("laplace", u) for u in uniforms[:n_exponentials])
        if half:
            gamma += reference("normal", uniforms[-1]) ** 2 / 2
        root = mpmath.ldexp(1, 51) * mpmath.sqrt(2 * gamma)
        uniforms = [mpmath.ldexp(mpmath.mpf(word), -63) for word in coordinates]
        expected = [nearest(root * reference("normal", u)) for u in uniforms]
    tape = Tape(*(word << 1 for word in shared), *coordinates)
    source = NoiseSource(lambda n: tape(n) if n > 1 else Tape()(1))  # later digits are zeros
    assert_array_equal(source.k_norm(size, 2.0**51), expected)


@pytest.mark.parametrize("few", [0, 3, 2**40])
def test_k_norm_settles_shared_words_of_few_digits(few):
    shared, coordinates = [few, 2**61 + 6172], [2**61 + 1, 2**62 + 3]
    tape = Tape(*(word << 1 for word in shared), *coordinates)
    more = 0xF0F0F0F0F0F0F0F0  # every later digit comes from a repetition of this word
    draws = NoiseSource(lambda n: Tape(more)(1) if n == 1 else tape(n)).k_norm(2, 1000.0)
    with mpmath.workprec(900):
        tail = mpmath.mpf(more) / ALL_BITS
        first, second, *others = (mpmath.ldexp(w + tail, -63) for w in shared + coordinates)
        gamma = reference("laplace", first) + reference("normal", second) ** 2 / 2
        root = 1000 * mpmath.sqrt(2 * gamma)
        expected = [nearest(root * reference("normal", u)) for u in others]
    assert_array_equal(draws, expected)


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


@pytest.mark.parametrize("law", [*LAWS, "k_norm"])
def test_no_noise_for_no_coordinate(law):
    assert getattr(noise_source(0), law)(0, 3.0).shape == (0,)
    assert getattr(noise_source(), law)(0, 3.0).shape == (0,)


# Fresh where it must be, reproducible where it may be


def three_kinds(source):
    draws = [source.normal(4, 1e12), source.laplace(4, 1e12), source.k_norm(4, 1e12)]
    return [int(draw) for draw in np.concatenate(draws)]


def test_noise_without_a_seed_never_comes_twice():
    source = noise_source()
    draws = [*three_kinds(source), *three_kinds(source), *three_kinds(noise_source(None))]
    assert len(set(draws)) == len(draws)  # two numbers of 40 bits agree once in 1e12


@pytest.mark.parametrize("law", [*LAWS, "k_norm"])
def test_each_draw_takes_eight_fresh_bytes_of_the_operating_system(law, monkeypatch):
    asked = []

    def urandom(n, original=os.urandom):
        asked.append(n)
        return original(n)

    monkeypatch.setattr(os, "urandom", urandom)
    source = noise_source()
    for _ in range(3):  # no buffer is kept from call to call
        asked.clear()
        getattr(source, law)(20_000, 5.0)
        assert sum(asked) >= 8 * 20_000


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
    run = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "OPENBLAS_NUM_THREADS": "1"},
    )
    draws = json.loads(run.stdout)
    assert len(draws) == 32
    assert len(set(draws)) == 32


def test_worker_processes_draw_other_noise():
    source = noise_source()
    draws = Parallel(n_jobs=2)(delayed(source.normal)(4, 1e12) for _ in range(4))
    draws = np.concatenate([*draws, source.normal(4, 1e12)])
    assert len(np.unique(draws)) == draws.size


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


def test_a_seeded_source_moves_on():
    source = noise_source(0)
    draws = [*three_kinds(source), *three_kinds(source)]
    assert len(set(draws)) == len(draws)
    assert noise_source(source) is source


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
