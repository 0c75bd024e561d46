"""What leaves a device: exactly what was promised about it, computed without the code's formulas.

Leakage is an integral over the densities of the noise. What the devices are given comes from the
estimator.
"""

import itertools
import math
import pickle
import subprocess
import sys
from fractions import Fraction
from functools import cache

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import integrate, special, stats
from support.insides import noise_source
from support.noise import Silent

from skdp.audit import recording
from skdp.linear_model import MIPrivateSGDRegressor
from skdp.local import GradientPrivatizer, OnePointPrivatizer, ValuePrivatizer

LOSSES = ["absolute", "huber", "epsilon_insensitive", "squared"]
NOISES = ["gaussian", "k_norm"]


def sent(privatizer, *record):
    """What is recorded of a message."""
    with recording() as records:
        privatizer.release(*record)
    return records[-1]


def device(n_features=1, mi_budget=0.1, **options):
    return MIPrivateSGDRegressor(mi_budget, **{"y_bounds": (-1.0, 1.0), **options}).privatizer(
        n_features
    )


def norm_squared(row):
    return sum(Fraction(value) ** 2 for value in row.tolist())


def is_multiple(values, step):
    """Whether each value is an integer times a step, a power of two, exactly."""
    return all((Fraction(v) / Fraction(step)).denominator == 1 for v in np.ravel(values).tolist())


def far(n_features, sign=1.0, size=1e9):
    """A row far outside the ball."""
    return sign * np.full(n_features, size)


# What is sent


@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("n_features", [1, 3, 20])
def test_no_record_has_a_gradient_longer_than_its_bound(n_features, loss, fit_intercept):
    rng = np.random.default_rng(0)
    options = dict(loss=loss, fit_intercept=fit_intercept, x_norm=0.7, y_bounds=(-3, 5))
    gradients = device(n_features, **options)
    size, longest = n_features + fit_intercept, 0.0
    bound = Fraction(gradients.lipschitz) ** 2
    for _ in range(60):
        weights = 10.0 ** rng.uniform(-1, 3) * rng.normal(size=size)
        x = 10.0 ** rng.uniform(-2, 300) * rng.normal(size=n_features)
        y = rng.choice([-1e300, -1.0, 2.0, 1e300])
        z = gradients.release(weights, x, y, random_state=Silent())
        assert sum(Fraction(v) ** 2 for v in z.tolist()) <= bound
        assert all((Fraction(v) / Fraction(gradients.step)).denominator == 1 for v in z.tolist())
        longest = max(longest, np.linalg.norm(z))
    assert longest > gradients.lipschitz * (1 - 1e-2)


@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("loss", LOSSES)
def test_a_message_is_the_gradient_of_the_loss(loss, fit_intercept):
    rng = np.random.default_rng(0)
    options = dict(loss=loss, fit_intercept=fit_intercept, x_norm=2.0, y_bounds=(10, 20))
    gradients = device(3, **options)
    values = ValuePrivatizer(1.0, value_range=100.0, **options)
    moved = 0
    for _ in range(30):
        x, y = rng.uniform(-1, 1, 3), rng.uniform(10, 20)  # norms below 2
        weights = rng.uniform(-0.5, 0.5, 3 + fit_intercept)
        z = gradients.release(weights, x, y, random_state=Silent())
        h = 1e-4
        losses = [
            [values.release(weights + s * e, x, y, random_state=Silent()) for s in (h, -h)]
            for e in np.eye(len(weights))
        ]
        slope = np.array([up - down for up, down in losses]) / (2 * h)
        if np.abs(slope - z).max() > 0.01:
            moved += 1  # a kink is near
    assert moved <= 1
    # An independent value: half the range of the target is 5, and 2 that of a row.
    row = np.append(x / 2, 1.0)[: 3 + fit_intercept]
    r = abs(weights @ row - (y - 15) / 5)
    width = {"absolute": 0.0, "huber": 0.3, "epsilon_insensitive": 0.1, "squared": 1.0}[loss]
    expected = max(r - width, 0)
    if loss in ("huber", "squared"):
        expected = special.huber(width, r)
    found = values.release(weights, x, y, random_state=Silent()) + 50.0
    assert_allclose(found, expected, atol=1e-4)


@pytest.mark.parametrize("noise", NOISES)
def test_several_records_are_one_at_a_time(noise):
    rng = np.random.default_rng(0)
    X, y, weights = rng.normal(size=(40, 3)), rng.normal(size=40), rng.normal(size=4)
    gradients = device(3, noise=noise)
    together = gradients.release(weights, X, y, random_state=0)
    source = noise_source(0)
    alone = [
        gradients.release(weights, *record, random_state=source)
        for record in zip(X, y, strict=True)
    ]
    assert_array_equal(together, alone)
    assert together.shape == (40, 4) and alone[0].shape == (4,)


@pytest.mark.parametrize("noise", NOISES)
def test_the_noise_does_not_look_at_the_record(noise):
    gradients, values = device(3, noise=noise), device(3, noise=noise, feedback="bandit")
    vectors = device(3, noise=noise, feedback="bandit", perturbation="vector")
    drawn = []
    for x, y in [(np.zeros(3), 0.0), (far(3), 9.0), (far(3, -1.0), -9.0), (np.eye(3)[0], 0.1)]:
        for weights in (np.zeros(4), np.ones(4)):
            drawn += [sent(gradients, weights, x, y), sent(values, weights, x, y)]
            drawn.append(sent(vectors, weights, x, y, 0.3))
    laws = [(one.asked.size, one.scale, one.step) for one in drawn]
    assert laws == laws[:3] * 8
    assert [size for size, _, _ in laws[:3]] == [4, 1, 4]
    for one in drawn:
        assert_allclose(one.scale, one.law.scale * one.sensitivity, rtol=1e-9)
    assert_allclose([scale for _, scale, _ in laws[:2]], [gradients.scale, values.scale])


@pytest.mark.parametrize("noise", NOISES)
def test_a_one_point_gradient_is_a_value_in_a_random_direction(noise):
    options = dict(value_range=3.0, noise=noise, fit_intercept=False)
    vectors = OnePointPrivatizer(0.5, **options)
    values = ValuePrivatizer(0.5, **options)
    mean = np.zeros(3)
    weights, x, y, delta = np.array([0.3, -0.2, 0.1]), np.array([0.5, 0.5, 0.1]), -0.9, 0.2
    for _ in range(300):
        one = sent(vectors, weights, x, y, delta)
        z, length = one.asked, np.linalg.norm(one.asked)
        e = -z / length  # the loss is below the middle of its range
        value = values.release(weights + delta * e, x, y, random_state=Silent())
        assert_allclose(z, 3 / delta * value * e, atol=1e-4)
        assert length <= 3 * 1.5 / delta
        mean += z / 300
        assert_allclose(one.scale, 0.5 * 3 * 1.5 / delta, rtol=1e-9)  # in units of the amplitude
        assert is_multiple(z, one.step)
        assert is_multiple(one.released, one.step)
    # Of norm 22.5 at most; the directions are no one's choice.
    assert np.linalg.norm(mean) < 6 * 22.5 / math.sqrt(300)


@pytest.mark.parametrize("half_range", [1.0, 0.37, 1e6, 3e-9])
def test_values_are_bounded_to_the_last_bit(half_range):
    privatizer = ValuePrivatizer(half_range, value_range=2 * half_range)
    values = half_range * np.concatenate([np.linspace(-1, 4, 1001), [1e300, np.inf, -np.inf]])
    centred = np.array([privatizer.release_value(v, random_state=Silent()) for v in values])
    assert is_multiple(centred, privatizer.step)
    assert (np.diff(centred[:1001]) >= 0).all() and np.abs(centred).max() <= half_range
    expected = np.clip(values - half_range, -half_range, half_range)
    assert (np.abs(centred) <= np.abs(expected)).all()
    assert_allclose(centred, expected, atol=privatizer.step)
    # The middle of the range costs nothing, so that both ends are as far as each other.
    assert centred[200] == -centred[600] and abs(centred[200]) > half_range * (1 - 1e-6)
    assert centred[400] == 0.0


@pytest.mark.parametrize("size, exploration", [(1, 0.01), (3, 0.7), (200, 1e-5)])
def test_one_point_gradients_are_short_to_the_last_bit(size, exploration):
    vectors = OnePointPrivatizer(1.0, value_range=2.6, fit_intercept=False)
    bound, longest = Fraction(size) * Fraction(1.3) / Fraction(exploration), 0.0
    for size_of_weights in [0.0, 0.1, 1.0, 3.0, 1e6] * 6:
        weights = np.full(size, size_of_weights)
        one = sent(vectors, weights, np.full(size, 0.5), 0.0, exploration)
        assert norm_squared(one.asked) <= bound * bound
        assert is_multiple(one.asked, one.step)
        longest = max(longest, np.linalg.norm(one.asked))
    assert longest > float(bound) * (1 - 1e-5)


# Without the libraries of the learner


def test_a_device_needs_numpy_alone():
    code = """
import sys

class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in blocked:
            raise ImportError(name)

blocked = {"scipy", "sklearn", "mpmath", "pandas", "dp_accounting", "joblib", "matplotlib"}
sys.meta_path.insert(0, Blocked())

import pickle
import numpy as np
import skdp.local

for noise in ("gaussian", "k_norm"):
    options = dict(loss="huber", noise=noise)
    gradients = skdp.local.GradientPrivatizer(2.0, **options)
    z = gradients.release(np.zeros(3), [0.6, 0.8], 0.5)
    assert z.shape == (3,) and np.isfinite(z).all() and z.any()
    assert gradients.release(np.zeros(3), np.ones((500, 2)), np.ones(500)).shape == (500, 3)
    value = skdp.local.ValuePrivatizer(2.0, value_range=3.0, **options)
    assert value.release(np.zeros(3), [0.6, 0.8], 0.5) != value.release_value(1.0)
    vector = skdp.local.OnePointPrivatizer(2.0, value_range=3.0, **options)
    assert vector.release(np.zeros(3), [0.6, 0.8], 0.5, 0.1).any()
for sent in pickle.load(sys.stdin.buffer):
    arguments = (0.3,) if isinstance(sent, skdp.local.OnePointPrivatizer) else ()
    assert np.all(np.isfinite(sent.release(np.zeros(4), np.ones(3), 0.5, *arguments)))
    print(sent)
assert not blocked & {name.split(".")[0] for name in sys.modules}
"""
    models = [
        dict(loss="squared"),
        dict(noise="k_norm"),
        dict(feedback="bandit"),
        dict(feedback="bandit", perturbation="vector", y_bounds=(0, 7)),
    ]
    sent = [device(3, **options) for options in models]
    result = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        input=pickle.dumps(sent),
        capture_output=True,
        check=False,
    )
    assert not result.returncode, result.stderr.decode()
    assert result.stdout.decode().splitlines() == [str(privatizer) for privatizer in sent]


# Errors

KINDS = [
    (GradientPrivatizer, {}),
    (ValuePrivatizer, dict(value_range=2.0)),
    (OnePointPrivatizer, dict(value_range=2.0)),
]
NOT_POSITIVE = [0.0, -1.0, math.nan, math.inf, None, "1", True]
BAD = [
    *[(dict(scale=bad), "scale must be a positive, finite number; got ") for bad in NOT_POSITIVE],
    *[
        (dict(x_norm=bad), "x_norm must be a positive, finite number; got ")
        for bad in NOT_POSITIVE
    ],
    (dict(noise="laplace"), "noise must be one of 'gaussian', 'k_norm'; got 'laplace'"),
    (dict(loss="logistic"), "loss must be one of 'absolute', "),
    (dict(loss="huber", width=-1.0), "width must be a positive, finite number; got -1.0"),
    (dict(loss="huber", width="wide"), "width must be 'auto' or a positive number; got 'wide'"),
    (dict(y_bounds=(1, -1)), r"y_bounds must be \(low, high\), low first; got \(1, -1\)"),
    (dict(y_bounds=(1, 1)), r"y_bounds must be \(low, high\), low first; got \(1, 1\)"),
    (dict(y_bounds=(0, math.inf)), r"y_bounds\[1\] must be a finite number; got inf"),
    (dict(y_bounds=(None, 1)), r"y_bounds\[0\] must be a finite number; got None"),
    (dict(y_bounds=3), r"y_bounds must be two numbers \(low, high\); got 3"),
    (dict(y_bounds=(0, 5e-324)), r"y_bounds must be \(low, high\), low first; got "),
    (dict(fit_intercept="no"), "fit_intercept must be True or False; got 'no'"),
    *[(dict(constant=bad), "constant must be between 0.00390625 and 16; got ") for bad in (0, 17)],
    (dict(x_norm=1e-320), "x_norm must be between 1e-50 and 1e50; got 1e-320"),
    (dict(scale=1e60), r"scale must be between 1e-50 and 1e50; got 1e\+60"),
]


@pytest.mark.parametrize("options, message", BAD, ids=str)
@pytest.mark.parametrize("kind, needed", KINDS, ids=["gradient", "value", "vector"])
def test_bad_parameters_are_refused_by_name(kind, needed, options, message):
    with pytest.raises(ValueError, match="^" + message):
        kind(**{"scale": 1.0, **needed, **options})


@pytest.mark.parametrize("bad", NOT_POSITIVE)
def test_bad_ranges_and_distances_are_refused_by_name(bad):
    for kind, _ in KINDS[1:]:
        with pytest.raises(ValueError, match=r"^value_range must be a positive, finite number"):
            kind(1.0, value_range=bad)
    vectors = OnePointPrivatizer(1.0, value_range=1.0)
    with pytest.raises(ValueError, match=r"^exploration must be a positive, finite number"):
        vectors.release(np.zeros(2), [1.0], 1.0, bad)
    with pytest.raises(ValueError, match=r"^value must be a number; got NaN"):
        ValuePrivatizer(1.0, value_range=1.0).release_value(math.nan)


def test_weights_of_an_adversary_make_no_difference_between_records():
    """No error and no warning, or one for every record."""
    for privatizer, more in [
        (device(2), ()),
        (device(2, loss="huber"), ()),
        (device(2, feedback="bandit"), ()),
        (device(2, feedback="bandit", perturbation="vector"), (1e-6,)),
    ]:
        for x, y in [([0.0, 0.0], 0.0), ([1e300, -1e300], 1e300), ([5e-324, 0.0], -1e308)]:
            for size in (1e100, -1e100, 5e-324):
                sent = privatizer.release(np.full(3, size), x, y, *more)
                assert np.isfinite(sent).all()
            for size in (2e100, -math.inf, math.nan):
                with pytest.raises(ValueError, match="weights must be 3 numbers"):
                    privatizer.release(np.full(3, size), x, y, *more)


def test_records_of_odd_shapes_are_refused_in_words():
    for privatizer, more in [
        (device(2), ()),
        (device(2, feedback="bandit"), ()),
        (device(2, feedback="bandit", perturbation="vector"), (0.1,)),
    ]:
        for x, y in [
            ([[0.1, 0.2]], [[0.5]]),
            ([[0.1, 0.2]], []),
            ([[[0.1, 0.2]]], [0.5]),
        ]:
            with pytest.raises(ValueError, match="must"):
                privatizer.release(np.zeros(3), x, y, *more)
    for bad in (1e-60, 1e60):
        with pytest.raises(ValueError, match=r"^exploration must be between 1e-50 and 1e50"):
            privatizer.release(np.zeros(3), [0.1, 0.2], 0.5, bad)
        with pytest.raises(ValueError, match=r"^value_range must be between 1e-50 and 1e50"):
            ValuePrivatizer(1.0, value_range=bad)


# Leakage, by integrals over the densities


@cache
def hermite(n):
    nodes, weights = special.roots_hermitenorm(n)
    return nodes, weights / weights.sum()


def information(inputs, probabilities, noise, mass, log_density, *, control):
    """Mutual information in nats of an input and itself plus noise.

    Parameters
    ----------
    inputs : ndarray of shape (n_inputs, d)

    probabilities : ndarray of shape (n_inputs,)

    noise, mass : ndarray of shape (n_nodes, d), (n_nodes,)
        Quadrature rule for the law of the noise.

    log_density : callable
        Of the noise, up to a constant.

    control : bool
        Whether to subtract a term of mean 0, which makes errors of the rule of second order while
        the noise is large.
    """
    total, own = 0.0, log_density(noise)[:, np.newaxis]
    for x, p in zip(inputs, probabilities, strict=True):
        others = log_density((x + noise)[:, np.newaxis, :] - inputs)
        log_mean = special.logsumexp(others - own, axis=1, b=probabilities)
        total += p * (mass * (control * np.expm1(log_mean) - log_mean)).sum()
    return total


def gaussian_information(inputs, probabilities, sigma, n=None):
    """With Gaussian noise, by a product of Gauss rules."""
    d = inputs.shape[1]
    nodes, weights = hermite(n or (40, 24, 16)[d - 1])
    noise = sigma * np.stack(np.meshgrid(*[nodes] * d, indexing="ij"), axis=-1).reshape(-1, d)
    mass = (
        np.stack(np.meshgrid(*[weights] * d, indexing="ij"), axis=-1).reshape(-1, d).prod(axis=1)
    )
    heavy = mass > 1e-13
    return information(
        inputs,
        probabilities,
        noise[heavy],
        mass[heavy],
        lambda v: -np.einsum("...i,...i", v, v) / (2 * sigma**2),
        control=False,
    )


def k_norm_information(inputs, probabilities, beta):
    """With noise of density ``exp(-||v|| / beta)`` in one or two dimensions."""
    d = inputs.shape[1]
    if d == 1:
        return laplace_information(inputs[:, 0].tolist(), probabilities.tolist(), beta)
    edges = stats.gamma.ppf(np.concatenate([[0.0], np.geomspace(1e-5, 0.5, 12)]), d)
    edges = np.concatenate([edges, np.linspace(edges[-1], 45.0 + 2 * d, 25)[1:]])
    nodes, weights = np.polynomial.legendre.leggauss(8)
    half = np.diff(edges)[:, np.newaxis] / 2
    radii = ((edges[1:] + edges[:-1])[:, np.newaxis] / 2 + half * nodes).ravel()
    masses = (half * weights).ravel() * stats.gamma.pdf(radii, d)
    angles = 2 * math.pi * (np.arange(120) + 0.5) / 120
    directions = np.column_stack([np.cos(angles), np.sin(angles)])
    shares = np.full(120, 1 / 120)
    noise = beta * (radii[:, np.newaxis, np.newaxis] * directions).reshape(-1, d)
    mass = (masses[:, np.newaxis] * shares).ravel()
    return information(
        inputs,
        probabilities,
        noise,
        mass,
        lambda v: -np.sqrt(np.einsum("...i,...i", v, v)) / beta,
        control=True,
    )


def laplace_information(inputs, probabilities, beta):
    """One-dimensional, by adaptive quadrature between the kinks."""

    def density(z, x):
        return math.exp(-abs(z - x) / beta) / (2 * beta)

    def integrand(z):
        laws = [density(z, x) for x in inputs]
        mean = sum(p * q for p, q in zip(probabilities, laws, strict=True))
        return sum(
            p * q * math.log(q / mean) for p, q in zip(probabilities, laws, strict=True) if q > 0
        )

    ends = [min(inputs) - 40 * beta, *sorted(set(inputs)), max(inputs) + 40 * beta]
    return sum(
        integrate.quad(integrand, a, b, epsabs=1e-12)[0] for a, b in itertools.pairwise(ends)
    )


def priors(d, length):
    """Inputs of at most this norm: the ends, all directions, and all over the ball."""
    ends = np.zeros((2, d))
    ends[:, 0] = (length, -length)
    yield "ends", ends, np.full(2, 0.5)
    yield "one end is rare", ends, np.array([0.9, 0.1])
    cross = length * np.concatenate([np.eye(d), -np.eye(d)])
    yield "cross", cross, np.full(2 * d, 0.5 / d)
    axis = np.linspace(-1, 1, 5 if d == 1 else 3)
    grid = np.stack(np.meshgrid(*[axis] * d), axis=-1).reshape(-1, d)
    grid = length * grid / max(1.0, math.sqrt(d))
    yield "grid", grid, np.full(len(grid), 1 / len(grid))
    rng = np.random.default_rng(d)
    yield "random", grid, rng.dirichlet(np.ones(len(grid)))


def longest_gradient(gradients, n_features, fit_intercept):
    """By looking: the longest that a device sends, without its noise."""
    x = np.zeros(n_features)
    x[0] = 1e9
    size = n_features + fit_intercept
    sent = [
        np.linalg.norm(
            gradients.release(1e3 * np.eye(1, size)[0], s * x, y, random_state=Silent())
        )
        for s in (1.0, -1.0)
        for y in (-1e9, 1e9)
    ]
    return max(sent)


# Share of the budget that the ends of an axis, or of all axes, leak at least.
ATTAINED = {
    "gaussian": {0.003: 0.99, 0.1: 0.99, 1.0: 0.67},
    "k_norm": {0.003: 0.94, 0.1: 0.86, 1.0: 0.63},
}
budgets = pytest.mark.parametrize("nats", [0.003, 0.1, 1.0])


@pytest.mark.parametrize(
    "d, options",
    [
        (1, dict(fit_intercept=False)),
        (1, dict(fit_intercept=False, loss="huber")),
        (2, dict(fit_intercept=False)),
        (2, dict()),
        (2, dict(loss="squared", width=0.3)),
    ],
    ids=str,
)
@budgets
@pytest.mark.parametrize("noise", NOISES)
def test_gradients_leak_no_more_than_the_budget(noise, nats, d, options):
    fit_intercept = options.get("fit_intercept", True)
    gradients = device(d - fit_intercept, nats, noise=noise, **options)
    length = longest_gradient(gradients, d - fit_intercept, fit_intercept)
    integral = gaussian_information if noise == "gaussian" else k_norm_information
    most = 0.0
    for name, inputs, probabilities in priors(d, length):
        leaked = integral(inputs, probabilities, gradients.scale)
        assert leaked <= nats
        if name in ("ends", "cross"):
            most = max(most, leaked)
    # Few inputs carry nearly all while the budget is small, and never more than their entropy.
    assert most >= ATTAINED[noise][nats] * nats


def value_span(values):
    """The messages of the smallest and largest losses without their noise."""
    return [values.release_value(v, random_state=Silent()) for v in (-1.0, 1e9)]


@budgets
@pytest.mark.parametrize("noise", NOISES)
def test_values_leak_no_more_than_the_budget(noise, nats):
    values = device(3, nats, noise=noise, feedback="bandit")
    low, high = value_span(values)
    assert high == -low  # centred
    assert_allclose(high - low, values.value_range, rtol=1e-6)
    integral = gaussian_information if noise == "gaussian" else k_norm_information
    most = 0.0
    for inputs, p in [
        ([low, high], [0.5, 0.5]),
        ([low, high], [0.05, 0.95]),
        ([low, 0.0, high], [0.3, 0.4, 0.3]),
        (np.linspace(low, high, 9), np.full(9, 1 / 9)),
    ]:
        leaked = integral(np.array(inputs)[:, np.newaxis], np.array(p), values.scale)
        assert leaked <= nats
        most = max(most, leaked)
    assert most >= ATTAINED[noise][nats] * nats


def half_range(privatizer):
    if isinstance(privatizer, ValuePrivatizer):
        return value_span(privatizer)[1]
    return longest_gradient(privatizer, 1, False)


# Noise is used once


@pytest.mark.parametrize("noise", NOISES)
def test_no_two_messages_share_their_noise(noise):
    options = dict(noise=noise)
    gradients = device(3, **options)
    twin = pickle.loads(pickle.dumps(gradients))
    nothing = np.zeros((30, 3)), np.zeros(30)
    sent = [p.release(np.zeros(4), *nothing) for p in (gradients, twin, gradients, twin)]
    rows = {row.tobytes() for z in sent for row in z}
    assert len(rows) == 120
    values = device(3, feedback="bandit", **options)
    twin = pickle.loads(pickle.dumps(values))
    # Numbers of some 26 bits: three pairs agree by chance less than once in 1e12.
    assert len({p.release_value(1.0) for p in (values, twin) for _ in range(50)}) > 100 - 3
    vectors = device(3, feedback="bandit", perturbation="vector", **options)
    again = [vectors.release(np.zeros(4), np.zeros(3), 0.0, 0.1).tobytes() for _ in range(50)]
    assert len(set(again)) == 50


def test_seeded_messages_reproduce():
    gradients, values = device(3), device(3, feedback="bandit")
    vectors = device(3, feedback="bandit", perturbation="vector")
    record = np.zeros(4), [0.1, 0.2, 0.3], 0.5
    for privatizer, more in ((gradients, ()), (values, ()), (vectors, (0.3,))):
        first, again, other = (
            privatizer.release(*record, *more, random_state=s) for s in (0, 0, 1)
        )
        assert_array_equal(first, again)
        assert np.any(first != other)
