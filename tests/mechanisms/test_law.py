"""Laws of noise as values, and the one call through which releases pass."""

from contextlib import contextmanager
from contextvars import Context
from fractions import Fraction
from threading import Thread

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from support.insides import GridNoise, noise_source
from support.noise import Ruler
from support.noise import noise_scale as scale_of

from skdp.learner import exact_sum
from skdp.mechanisms import (
    Lattice,
    NoiseLaw,
    gaussian_mechanism,
    k_norm_mechanism,
    laplace_mechanism,
    release,
    released_values,
)
from skdp.privacy import ZCDP, ApproxDP, GaussianDP, compose

LAWS = [
    NoiseLaw.of("laplace", ApproxDP(0.5)),
    NoiseLaw.of("k_norm", ApproxDP(0.5, adjacency="add-remove")),
    NoiseLaw.of("gaussian", ApproxDP(0.5, 1e-5)),
    NoiseLaw.of("gaussian", GaussianDP(0.25)),
]
each_law = pytest.mark.parametrize("law", LAWS, ids=lambda law: f"{law.kind}-{law.guarantee}")


@contextmanager
def listening(listener):
    """Have ``listener`` hear of releases for a while."""
    token = released_values.set(listener)
    try:
        yield
    finally:
        released_values.reset(token)


@each_law
@pytest.mark.parametrize("size", [1, 4, 30])
def test_the_energy_is_the_mean_squared_norm_of_what_is_drawn(law, size):
    n, steps = 20_000, 1000.0
    noise = law.draw(noise_source(0), n, size, steps) / steps
    squares = np.square(noise).sum(axis=1)
    assert noise.shape == (n, size)
    # A chance of 1e-6 is five standard errors, for heavy tails a little more.
    assert abs(squares.mean() - law.energy(size)) < 6.0 * squares.std() / np.sqrt(n)
    assert_allclose(law.level(size), np.sqrt(law.energy(size) / size))


@each_law
def test_several_releases_compose_to_the_guarantee_of_one(law):
    each = law.repeated(7)
    assert each.scale > law.scale
    total = compose([each.guarantee] * 7)
    if law.kind == "gaussian":
        assert_allclose(total.mu, law.guarantee.mu, rtol=1e-12)
        assert_allclose(each.scale, law.scale * np.sqrt(7))
    else:
        assert_allclose(total.epsilon, law.guarantee.epsilon, rtol=1e-12)
        assert_allclose(each.scale, law.scale * 7)
    assert total.adjacency == law.guarantee.adjacency
    assert law.repeated(1) == law


@pytest.mark.parametrize("kind", ["laplace", "k_norm"])
def test_no_rounding_takes_from_a_scale(kind):
    for epsilon, steps in np.random.default_rng(0).uniform(0.01, 10.0, size=(50, 2)).tolist():
        law = NoiseLaw.of(kind, ApproxDP(epsilon))
        exact = Fraction(steps) / Fraction(epsilon)
        drawn = scale_of(lambda ruler, law=law, steps=steps: law.draw(ruler, 1, 3, steps))
        lattice = Lattice(step=1.0, sensitivity=steps)
        assert exact <= Fraction(drawn) and exact <= Fraction(law.on(lattice, 3).scale)


def test_the_scale_is_that_of_the_textbooks():
    assert NoiseLaw.of("laplace", ApproxDP(0.5)).scale == 2.0
    assert NoiseLaw.of("k_norm", ApproxDP(0.5, 1e-5)).guarantee == ApproxDP(0.5)
    assert_allclose(NoiseLaw.of("gaussian", ApproxDP(1.0, 1e-5)).scale, 3.730631635)
    assert NoiseLaw.of("gaussian", GaussianDP(0.25)).guarantee == GaussianDP(0.25)


@pytest.mark.parametrize(
    ("kind", "guarantee", "words"),
    [
        ("cauchy", ApproxDP(1.0), "kind must be one of"),
        ("gaussian", ApproxDP(1.0), "delta must be positive for Gaussian noise"),
        ("gaussian", ZCDP(1.0), "guarantee must be an ApproxDP or a GaussianDP"),
        ("laplace", GaussianDP(1.0), "guarantee must be an ApproxDP for this noise"),
        ("k_norm", ApproxDP(0.0), "epsilon must be a positive"),
    ],
)
def test_what_no_noise_meets_is_refused(kind, guarantee, words):
    with pytest.raises(ValueError, match=words):
        NoiseLaw.of(kind, guarantee)


@pytest.mark.parametrize(
    ("mechanism", "norm"),
    [
        (laplace_mechanism, "l1_sensitivity"),
        (k_norm_mechanism, "l2_sensitivity"),
        (gaussian_mechanism, "l2_sensitivity"),
    ],
)
def test_every_mechanism_passes_through_the_recorded_call(mechanism, norm):
    value, guarantee = np.array([0.5, -2.0]), ApproxDP(1.0, 1e-5)
    seen = []
    with listening(seen.append):
        noisy = mechanism(value, guarantee=guarantee, **{norm: 0.25})
    (record,) = seen
    np.testing.assert_array_equal(record.asked, value)
    np.testing.assert_array_equal(record.released, noisy)
    assert record.sensitivity == 0.25
    assert record.law == NoiseLaw.of(mechanism.__name__.removesuffix("_mechanism"), guarantee)
    mechanism(value, guarantee=guarantee, **{norm: 0.25})
    assert len(seen) == 1  # nobody listens any more


@each_law
def test_what_is_recorded_bounds_what_was_asked_errors_included(law):
    # The exact answers of neighbours are 1 apart, and both are computed with an error.
    seen = []
    with listening(seen.append):
        for value in (-0.125, 1.125):
            ruler = Ruler()
            release([value], law=law, sensitivity=1.0, error=0.125, random_state=ruler)
            step = 2.0**-7
            assert ruler.scale * step >= law.scale * seen[-1].sensitivity
    here, there = seen
    assert abs(there.asked - here.asked).item() == here.sensitivity == there.sensitivity


@each_law
def test_a_vector_on_a_grid_is_released_there_with_the_noise_that_it_asks_for(law):
    exact, step, sensitivity, seen = 0.25 * np.arange(-2, 3), 0.125, 30.0, []
    token = released_values.set(seen.append)
    try:
        noisy = law.release(exact, noise_source(0), step=step, sensitivity=sensitivity)
    finally:
        released_values.reset(token)
    drawn = law.draw(noise_source(0), 1, 5, sensitivity / step)[0]
    np.testing.assert_array_equal(noisy, exact + step * drawn)
    (record,) = seen
    assert record.asked is exact and record.released is noisy
    assert record.law is law and record.sensitivity == sensitivity
    token = released_values.set(lambda record: np.zeros(5))
    try:
        replayed = law.release(exact, noise_source(0), step=step, sensitivity=sensitivity)
    finally:
        released_values.reset(token)
    np.testing.assert_array_equal(replayed, 0.0)


def test_what_a_listener_returns_goes_on_in_place_of_what_was_released():
    with listening(lambda record: np.zeros(2)):
        replayed = release([1.0, 2.0], law=LAWS[1], sensitivity=1.0, error=0.0, random_state=3)
    assert_array_equal(replayed, 0.0)


# Many releases on one lattice


def lattice_and_value(law):
    lattice = Lattice.for_sensitivity(0.25, size=3, order=law.order)
    return lattice, np.array([5.0, -2.0, 0.0]) * lattice.step


@each_law
def test_noise_on_a_lattice_is_that_of_a_single_release(law):
    lattice, value = lattice_and_value(law)
    many = law.on(lattice, 3)
    for seed in range(5):
        alone = release(value, law=law, sensitivity=0.25, error=0.0, random_state=seed)
        noise = many.draw(noise_source(seed), 1)[0]
        assert_array_equal(many.release(value, noise), alone)
    spread = many.draw(noise_source(0), 20_000).std() / lattice.sensitivity
    assert_allclose(spread, law.level(3), rtol=0.05)  # for the rounded value, which moves more


@each_law
def test_each_of_many_releases_is_recorded(law):
    lattice, value = lattice_and_value(law)
    many, seen = law.on(lattice, 3), []
    noises = many.draw(noise_source(0), 2)
    before = noises.copy()
    with listening(seen.append):
        released = [many.release(value, noise) for noise in noises]
    assert_array_equal(released, before + value)
    for record, noisy in zip(seen, released, strict=True):
        assert_array_equal(record.asked, value)
        assert_array_equal(record.released, noisy)
        assert (record.law, record.sensitivity) == (law, lattice.sensitivity)
    with listening(lambda record: record.asked):  # a replay without noise
        assert_array_equal(many.release(value, noises[0]), value)


@pytest.mark.parametrize("elsewhere", ["another thread", "another context"])
def test_releases_elsewhere_are_not_heard(elsewhere):
    # Two audits side by side, or an audit beside a server, would mix up what they replay.
    seen, done = [], []

    def released():
        noise = GridNoise("laplace", 2.0, 0.25, 2, 1.0, LAWS[0])
        done.append(noise.release(np.zeros(2), np.ones(2)))
        done.append(release(np.zeros(2), law=LAWS[1], sensitivity=1.0, error=0.0))

    with listening(seen.append):
        if elsewhere == "another thread":
            thread = Thread(target=released)
            thread.start()
            thread.join()
        else:
            Context().run(released)
        assert (len(done), seen) == (2, [])
        released()
    assert (len(done), len(seen)) == (4, 2)


@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
def test_a_target_of_gaussian_noise_is_the_point_itself(adjacency):
    point = ApproxDP(0.7, 1e-6, adjacency=adjacency, unit="user")
    target = point.gaussian_target()
    assert (target.adjacency, target.unit) == (adjacency, "user")
    assert_allclose(target.epsilon_at(1e-6), 0.7, rtol=1e-9)
    assert point.n_records_changed == {"replace-one": 2, "add-remove": 1}[adjacency]
    with pytest.raises(ValueError, match="delta must be positive for Gaussian noise"):
        ApproxDP(0.7).gaussian_target()


def test_floats_without_a_certified_error_are_refused():
    options = dict(law=LAWS[0], sensitivity=1.0, random_state=0)
    with pytest.raises(ValueError, match="error must be the certified distance"):
        release([0.5], **options)
    assert_array_equal(release([3], **options), release([3.0], error=0.0, **options))
    exact = exact_sum(np.full((4, 1), 0.75), bound=1.0)
    assert_array_equal(release(exact, **options), release([3.0], error=0.0, **options))
