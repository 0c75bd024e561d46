"""Is noise that is not as declared found, and no other?

Seeds are fixed. Were they drawn at random, a clean run would raise an alarm in this file with a
probability below 1e-6: fewer than a hundred clean calls, at ``ALARM`` each, and counts of alarms
that pass their bounds with less than 1e-8. Noise that is not as declared is drawn from seeds, too.
"""

import re
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats
from support.configurations import CONFIGURATIONS, model, problem
from support.insides import NoiseSource, Selected, noise_source

from skdp.audit import Finding, recording
from skdp.audit._noise import noise_findings, selection_findings
from skdp.mechanisms import Lattice, NoiseLaw, Released
from skdp.privacy import ApproxDP, GaussianDP

ALARM = 1e-9
KINDS = ("laplace", "k_norm", "gaussian")
LAWS = {
    "laplace": NoiseLaw.of("laplace", ApproxDP(1.0)),
    "k_norm": NoiseLaw.of("k_norm", ApproxDP(1.0)),
    "gaussian": NoiseLaw.of("gaussian", GaussianDP(1.0)),
}
VECTORS = NoiseSource.vectors


def transcripts_of(name, n, first=0, **changes):
    """Transcripts of ``n`` fits on the same data, whose noise has a seed each."""
    X, y = problem(name)
    found = []
    for seed in range(first, first + n):
        with recording() as transcript:
            fitted = model(name, random_state=seed, **changes).fit(X, y)
            if "release=query" in name:
                fitted.predict(X[:8])
        found.append(transcript)
    return found


def record(noise, law, *, steps=1024.0, asked=0.0, where="here"):
    """A release of ``asked`` with this noise, whose scale has so many steps."""
    asked = np.full(np.shape(noise), asked)
    released = np.rint(asked * steps) / steps + np.asarray(noise) / steps
    return Released(asked, law.scale**-1, law, 1.0, 1.0 / steps, released, where)


def drawn_fits(seed, n, shapes, *, steps=1024.0, actual=1.0):
    """Fits that release vectors: of each shape (kind, size, n_releases)."""
    source, fits = noise_source(seed), [[] for _ in range(n)]
    for kind, size, n_releases in shapes:
        noise = source.vectors(kind, n * n_releases, size, actual * steps)
        noise = noise.reshape(n, n_releases, size)
        for fit, each in zip(fits, noise, strict=True):
            fit.extend(record(one, LAWS[kind], steps=steps, where=kind) for one in each)
    return fits


def is_clean(fits):
    return noise_findings(fits, alarm=ALARM) == []


def kinds_of(findings):
    return {finding.kind for finding in findings}


def said(findings):
    return " | ".join(finding.what for finding in findings)


# Clean noise


@pytest.mark.parametrize("name", CONFIGURATIONS)
def test_estimators_draw_what_they_declare(name):
    transcripts = transcripts_of(name, 20)
    assert any(isinstance(one, Released | Selected) for one in transcripts[0])
    assert is_clean(transcripts)
    assert selection_findings(transcripts, alarm=ALARM) == []


def test_alarms_are_no_more_often_than_stated():
    alarms = 0
    rng = np.random.default_rng(0)
    for seed in range(200):
        shapes = [
            (KINDS[rng.integers(3)], int(rng.integers(1, 6)), int(rng.integers(1, 5)))
            for _ in range(2)
        ]
        steps = 2.0 ** rng.integers(1, 12)
        fits = drawn_fits(seed, int(rng.integers(1, 12)), shapes, steps=steps)
        alarms += bool(noise_findings(fits, alarm=0.1))
    # 20 or fewer are expected.
    assert alarms <= stats.binom.isf(1e-9, 200, 0.1)


# Noise that is not as declared


def vectors_by(change):
    """Patch that draws all vectors by ``change(source, kind, n, size, scale)``."""
    return lambda patch: patch.setattr(NoiseSource, "vectors", change)


def after(change):
    """Patch that changes what is drawn: ``change(noise, scale)``."""

    def draw(source, kind, n, size, scale):
        return np.rint(change(VECTORS(source, kind, n, size, scale), scale)).astype(np.int64)

    return vectors_by(draw)


def in_last_coordinate(factor, others=1.0):
    def change(noise, scale):
        noise = noise * others
        noise[:, -1] *= factor / others
        return noise

    return after(change)


def coordinates(draw):
    """K-norm noise with independent coordinates: ``draw(rng, shape)``."""

    def vectors(source, kind, n, size, scale):
        seed = int(source._words(1)[0])
        noise = draw(np.random.default_rng(seed), (n, size)) * scale
        return np.rint(noise).astype(np.int64)

    return vectors_by(vectors)


def unit(noise):
    return noise / np.linalg.norm(noise, axis=-1, keepdims=True)


def seeded(seeds):
    """All noise of a draw comes from one of ``seeds``."""

    def vectors(source, kind, n, size, scale):
        seed = int(source._words(1)[0]) % seeds
        return VECTORS(noise_source(seed), kind, n, size, scale)

    return vectors_by(vectors)


def of_pairs(sign):
    """Every second draw of a source repeats the last."""

    def vectors(source, kind, n, size, scale):
        last = source.__dict__.pop("last", None)
        if last is not None and last.shape == (n, size):
            return np.rint(sign * last * scale).astype(np.int64)
        noise = VECTORS(source, kind, n, size, scale)
        source.last = noise / scale
        return noise

    return vectors_by(vectors)


def norms_of_pairs(patch):
    """Every second vector of a source has a new direction and the last norm."""

    def vectors(source, kind, n, size, scale):
        noise = VECTORS(source, kind, n, size, scale)
        last = source.__dict__.pop("last", None)
        if last is None:
            source.last = np.linalg.norm(noise, axis=1, keepdims=True)
            return noise
        return np.rint(last * unit(noise)).astype(np.int64)

    vectors_by(vectors)(patch)


def off_lattice(patch):
    def release(lattice, value, noise):
        return np.asarray(value) + noise * lattice.step

    patch.setattr(Lattice, "release", release)


def few_values(noise, scale):
    return np.rint(noise / scale * 16.0) * np.rint(scale / 16.0)


def clamped(noise, scale):
    return np.clip(noise, -1.5 * scale, 1.5 * scale)


def gamma_coordinates(rng, shape):
    return rng.gamma(shape[1], size=shape) * rng.choice([-1, 1], size=shape)


def laplace_coordinates(rng, shape):
    return np.sqrt(shape[1]) * rng.laplace(size=shape)


def laplace_of_unit_variance(rng, shape):
    return rng.laplace(size=shape) / np.sqrt(2.0)


def sphere(rng, shape):
    """Uniform on a sphere, as long as the mean."""
    return shape[1] * unit(rng.standard_normal(shape))


def alike_in_pairs(rng, shape):
    noise = rng.standard_normal(shape)
    magnitudes = np.abs(np.repeat(noise[:, ::2], 2, axis=1)) * rng.uniform(0.9, 1.1, size=shape)
    return magnitudes * np.sign(rng.standard_normal(shape))


def uniform(rng, shape):
    return rng.uniform(-3.0, 3.0, size=shape)


OUTPUT = "DPLogisticRegression-mechanism=output"  # 4 numbers, K-norm, coarse lattice
FIT = "DPLogisticRegression-delta=0.0001"  # 13 Gaussian releases of 58 numbers
GRID = "DPOnlineKernelRegressor-release=sgd-delta=0.0"  # 60 K-norm releases of 20 numbers
QUERY = "DPKernelRidge-release=query"  # 8 Laplace releases of a number
MI = "MIPrivateSGDRegressor"  # 60 Gaussian releases of 4 numbers, by a device
GOSSIP = "DistributedDPClassifier-loss=hinge"  # 12 K-norm releases of 4 numbers


def halved(factor):
    return after(lambda noise, scale: factor * noise)


FIT_OF_GRADIENTS = "DPLogisticRegression-mechanism=gradient"  # 12 K-norm releases of 4 numbers

MUTANTS = [
    # name, estimator, runs, patch, part of what is said
    ("halved", OUTPUT, 70, halved(0.5), "the noise is about 0."),
    ("halved", FIT, 5, halved(0.5), "the noise is about 0."),
    ("halved", GRID, 1, halved(0.5), "the noise is about 0."),
    ("halved", QUERY, 40, halved(0.5), "the noise is about 0."),
    ("halved", MI, 2, halved(0.5), "the noise is about 0."),
    ("halved", GOSSIP, 8, halved(0.5), "the noise is about 0."),
    ("1.5 times less", FIT, 10, halved(1 / 1.5), "the noise is about 0."),
    ("1.5 times less", GRID, 1, halved(1 / 1.5), "the noise is about 0."),
    ("none", OUTPUT, 2, halved(0.0), "there is no noise"),
    ("none", QUERY, 1, halved(0.0), "there is no noise"),
    ("last coordinate without", OUTPUT, 20, in_last_coordinate(0.0), "coordinate 4"),
    ("last coordinate without", GRID, 2, in_last_coordinate(0.0), "coordinate 20"),
    ("last coordinate less", GOSSIP, 40, in_last_coordinate(0.25, 1.2), "coordinate 4"),
    ("magnitudes", OUTPUT, 10, after(lambda noise, scale: np.abs(noise)), "not symmetric"),
    ("offset", FIT, 20, after(lambda noise, scale: noise + scale / 2), "not symmetric"),
    (
        "a scalar for all",
        OUTPUT,
        20,
        after(lambda noise, scale: np.repeat(noise[:, :1], noise.shape[1], 1)),
        "coordinates of one release",
    ),
    (
        "two coordinates alike",
        FIT,
        5,
        after(lambda noise, scale: np.append(noise[:, :-1], noise[:, :1], axis=1)),
        "coordinates of one release",
    ),
    ("one seed", OUTPUT, 20, seeded(1), "fits repeat"),
    ("one seed", OUTPUT, 20, seeded(1), "the fits share"),
    ("one seed", QUERY, 3, seeded(1), "repeat"),
    ("256 seeds", OUTPUT, 100, seeded(256), "repeat the noise of others"),
    ("256 seeds", QUERY, 40, seeded(256), "repeat"),
    ("drawn twice", FIT, 8, of_pairs(1.0), "releases of one fit share"),
    ("drawn twice, negated", FIT, 8, of_pairs(-1.0), "releases of one fit share"),
    ("few values", FIT, 10, after(few_values), "too few distinct values"),
    ("gamma coordinates", OUTPUT, 100, coordinates(gamma_coordinates), "another"),
    ("laplace coordinates", GRID, 1, coordinates(laplace_coordinates), "another"),
    ("laplace, not gaussian", MI, 5, coordinates(laplace_of_unit_variance), "another law"),
    ("laplace, not gaussian", FIT, 20, coordinates(laplace_of_unit_variance), "another law"),
    ("uniform", MI, 10, coordinates(uniform), "another law"),
    ("norms all the same", GOSSIP, 30, coordinates(sphere), "another law"),
    ("pairs alike", MI, 10, coordinates(alike_in_pairs), "another shape"),
    ("norms alike", FIT_OF_GRADIENTS, 30, norms_of_pairs, "norms"),
    ("clamped", MI, 10, after(clamped), "the noise is about 0."),
    ("off the lattice", OUTPUT, 1, off_lattice, "no multiple of the step"),
]


@pytest.mark.parametrize(
    "estimator, n, patch, words",
    [one[1:] for one in MUTANTS],
    ids=[f"{one[0]}-{one[1]}-{one[4]}" for one in MUTANTS],
)
def test_noise_that_is_not_as_declared_is_found(estimator, n, patch, words, monkeypatch):
    patch(monkeypatch)
    findings = noise_findings(transcripts_of(estimator, n))
    assert words in said(findings)
    assert kinds_of(findings) == {"noise"}


SAID_OF_SPOTS = {"place": "", "all": "", "position": " in release 6 of each fit"}
SAID_OF_SPOTS["fit"] = " in fit 8"


@pytest.mark.parametrize("reused", ["in another fit", "in another release"])
def test_noise_of_two_places_that_is_the_same_is_found(reused):
    fits = drawn_fits(3, 12, [("gaussian", 40, 2), ("k_norm", 40, 2)])
    if reused == "in another fit":
        fits[9] = fits[4]
        assert "fits 5 and 10 share noise" in said(noise_findings(fits))
        assert "fits repeat the noise of others" in said(noise_findings(fits))
    else:
        for fit in fits:
            # Of another law, and half of the numbers only.
            noise = fit[3].released.copy()
            noise[:20] = np.abs(noise[:20]) * np.sign(fit[0].released[:20])
            fit[3] = replace(fit[3], released=noise)
        assert "releases 1 and 4 of each fit share their noise" in said(noise_findings(fits))


# What records show without any chance


@pytest.mark.parametrize("kind", KINDS)
def test_a_scale_below_what_is_declared_is_found_in_one_record(kind):
    (fit,) = drawn_fits(0, 1, [(kind, 3, 2)])
    assert is_clean([fit])
    almost = replace(fit[0], sensitivity=fit[0].sensitivity * (1.0 + 1e-12))
    assert is_clean([[almost]])
    beyond = [replace(one, sensitivity=one.sensitivity * (1.0 + 1e-6)) for one in fit]
    (finding,) = noise_findings([beyond])
    what = "the scale is below that of the law times the sensitivity"
    assert finding == Finding("law", what, kind)


@pytest.mark.parametrize(
    "law, words",
    [
        (replace(LAWS["k_norm"], guarantee=ApproxDP(0.999)), "below 1 / epsilon"),
        (replace(LAWS["laplace"], guarantee=ApproxDP(0.999)), "below 1 / epsilon"),
        (replace(LAWS["gaussian"], guarantee=GaussianDP(0.999)), "below 1 / mu"),
        (replace(LAWS["gaussian"], guarantee=ApproxDP(1.0, 1e-5)), "below 1 / mu"),
        (replace(LAWS["gaussian"], guarantee=ApproxDP(1.0)), "not Gaussian"),
        (replace(LAWS["k_norm"], guarantee=GaussianDP(1.0)), "not pure"),
        (replace(LAWS["laplace"], guarantee=GaussianDP(1.0)), "not pure"),
        (replace(LAWS["gaussian"], guarantee=ApproxDP(50.0, 0.9)), None),
        (replace(LAWS["k_norm"], guarantee=ApproxDP(1.0 + 1e-9)), None),
    ],
)
def test_a_law_below_its_guarantee_is_found_in_one_record(law, words):
    source = noise_source(0)
    findings = noise_findings([[record(source.vectors(law.kind, 1, 3, 1024.0)[0], law)]])
    if words is None:
        assert findings == []
    else:
        assert kinds_of(findings) == {"law"}
        assert words in said(findings)


# What is left out


def test_findings_show_no_private_value():
    fits = drawn_fits(0, 20, [("gaussian", 3, 2)], actual=0.1)
    fits = [
        [replace(one, asked=one.asked + 31234.0, released=one.released + 31234.0) for one in fit]
        for fit in fits
    ]
    texts = str(noise_findings(fits))
    assert "about 0.1" in texts
    assert not re.search("312[0-9]", texts)
