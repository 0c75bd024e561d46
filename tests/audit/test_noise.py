"""Is noise that is not as declared found, and no other?

Seeds are fixed. Were they drawn at random, a clean run would raise an alarm in this file with a
probability below 1e-6: fewer than a hundred clean calls, at ``ALARM`` each, and counts of alarms
that pass their bounds with less than 1e-8. Noise that is not as declared is drawn from seeds, too.
"""

import math
import re
import time
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats
from support.configurations import CONFIGURATIONS, model, problem
from support.insides import NoiseSource, Selected, noise_source

from skdp.audit import Finding, recording
from skdp.audit._drawn import Drawn
from skdp.audit._noise import _tests, noise_findings, noise_runs_needed
from skdp.audit._noise_laws import _coordinate_levels
from skdp.audit._selections import selection_findings
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


def test_noise_of_the_operating_system_is_clean():
    X, y = problem("DPLogisticRegression-delta=0.0001")
    fits = []
    for _ in range(40):
        with recording() as transcript:
            model("DPLogisticRegression-delta=0.0001").fit(X, y)
        fits.append(transcript)
    assert is_clean(fits)


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


@pytest.mark.parametrize("steps", [1.0, 1024.0])
def test_no_p_value_is_too_small(steps):
    n, least = 200, {}
    shapes = [("k_norm", 4, 2), ("gaussian", 2, 3), ("laplace", 1, 4), ("k_norm", 1, 1)]
    for seed in range(n):
        drawn = Drawn.of(drawn_fits(seed, 6, shapes, steps=steps))
        for i, tests in enumerate(_tests(drawn)):
            for j, test in enumerate(tests):
                for k, suspicion in enumerate(test()):
                    p = min(suspicion.p.min() * len(suspicion.p), 1.0)
                    least.setdefault((i, j, k), []).append(p)
    most = {level: stats.binom.isf(1e-11, n, level) for level in (0.01, 0.1, 0.3)}
    assert len(least) > 30
    for test, values in least.items():
        for level, count in most.items():
            assert np.sum(np.array(values) <= level) <= count, test


@pytest.mark.parametrize("kind, size", [(kind, size) for kind in KINDS for size in (1, 2, 7)])
def test_levels_of_a_coordinate_are_uniform(kind, size):
    drawn = Drawn.of(drawn_fits(0, 1, [(kind, size, 4000)], steps=2.0**20))
    levels = _coordinate_levels(drawn).reshape(-1, size)
    for one in levels.T:
        assert stats.kstest(one, "uniform").pvalue > ALARM


def test_shares_of_the_alarm_add_up_to_one():
    shapes = [("k_norm", 4, 2), ("gaussian", 3, 3), ("laplace", 1, 4), ("k_norm", 5, 2)]
    drawn = Drawn.of(drawn_fits(0, 6, shapes))
    shares = [one.share for tests in _tests(drawn) for test in tests for one in test()]
    assert 0.9 < sum(shares) <= 1.0 + 1e-12


def test_more_noise_than_declared_is_no_finding():
    for kind in KINDS:
        assert is_clean(drawn_fits(1, 40, [(kind, 6, 10)], actual=3.0))


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


def test_one_fit_or_one_release_that_is_less_noisy_is_found():
    def noisy(seed):
        return drawn_fits(seed, 30, [("gaussian", 5, 12), ("k_norm", 4, 3)])

    assert is_clean(noisy(0))
    fits = noisy(0)
    fits[7] = [
        replace(one, released=one.asked + 0.25 * (one.released - one.asked)) for one in fits[7]
    ]
    assert "the noise is about 0.2" in said(noise_findings(fits))
    fits = noisy(0)
    for fit in fits:
        fit[14] = replace(fit[14], released=fit[14].asked)
    assert "there is no noise in release 15 of each fit" in said(noise_findings(fits, alarm=1e-12))
    fits = noisy(0)
    fits[3][4] = replace(fits[3][4], released=fits[3][4].asked)
    (finding,) = noise_findings(fits)
    assert finding.what == "there is no noise in release 5 of fit 4"
    assert finding.where == "gaussian"


SPOTS = {
    # where it is wrong, of 12 releases in each of 30 fits, at 6 places in the code
    "place": lambda fit, i: i // 2 == 3,
    "all": lambda fit, i: True,
    "position": lambda fit, i: i == 5,
    "fit": lambda fit, i: fit == 7,
}


def spoilt(spot, change, size=5):
    """Findings where ``change`` spoils the noise of a spot, of which there is more or less."""
    fits = drawn_fits(6, 30, [("gaussian", size, 12)])
    for fit, records in enumerate(fits):
        for i, one in enumerate(records):
            released = one.released
            if SPOTS[spot](fit, i):
                released = np.rint(change(released * 1024.0)) / 1024.0
            records[i] = replace(one, released=released, where=f"line {i // 2}")
    return noise_findings(fits)


SAID_OF_SPOTS = {"place": "", "all": "", "position": " in release 6 of each fit"}
SAID_OF_SPOTS["fit"] = " in fit 8"


@pytest.mark.parametrize("spot", SPOTS)
def test_findings_say_where_noise_is_too_little(spot):
    factor = {"place": 0.6, "all": 0.88, "position": 0.6, "fit": 0.3}[spot]
    (finding,) = spoilt(spot, lambda noise: factor * noise)
    assert re.fullmatch(
        rf"the noise is about 0\.\d+ times what is declared{SAID_OF_SPOTS[spot]}", finding.what
    )
    assert finding.where == ("line 3" if spot == "place" else "")


@pytest.mark.parametrize("spot", SPOTS)
def test_findings_say_where_noise_is_not_symmetric(spot):
    offset = {"place": 1000.0, "all": 230.0, "position": 1000.0, "fit": 2500.0}[spot]
    findings = spoilt(spot, lambda noise: noise + offset)
    (finding,) = [one for one in findings if "symmetric" in one.what]
    assert finding.what == f"the noise is not symmetric around 0{SAID_OF_SPOTS[spot]}"
    assert finding.where == ("line 3" if spot == "place" else "")


def test_one_coordinate_of_one_release_is_told_apart():
    for kind in KINDS:
        fits = drawn_fits(7, 30, [(kind, 5, 12)])
        for fit in fits:
            noise = fit[5].released.copy()
            noise[1] = np.rint(noise[1] * 0.05 * 1024.0) / 1024.0
            fit[5] = replace(fit[5], released=noise)
        (finding,) = noise_findings(fits)
        assert finding.what == "coordinate 2 has too little noise in release 6 of each fit"


def test_a_part_of_the_noise_that_is_missing_is_found():
    rng = np.random.default_rng(1)
    for kind in KINDS:
        fits = drawn_fits(2, 40, [(kind, 1, 40)])
        # Other noise is larger, so that the scale is as declared.
        for fit in fits:
            for i in np.flatnonzero(rng.random(len(fit)) < 0.2):
                fit[i] = replace(fit[i], released=fit[i].asked)
            for i, one in enumerate(fit):
                fit[i] = replace(one, released=one.asked + 2.0 * (one.released - one.asked))
        assert "more of the noise is small" in said(noise_findings(fits)), kind


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


@pytest.mark.parametrize("kind, size", [("laplace", 1), ("k_norm", 3), ("gaussian", 2)])
def test_noise_that_is_truncated_is_found(kind, size):
    fits = drawn_fits(5, 300, [(kind, size, 1)])
    assert is_clean(fits)
    longest = {"laplace": 2.5, "k_norm": 5.5, "gaussian": 2.0}[kind]  # a tenth are longer

    def cut(one):
        norm = np.linalg.norm(one.released) if kind == "k_norm" else np.abs(one.released)
        short = one.released * np.minimum(1.0, longest / np.maximum(norm, 1e-300))
        return replace(one, released=np.trunc(short / one.step) * one.step)

    found = noise_findings([[cut(one) for one in fit] for fit in fits], alarm=ALARM)
    assert "the largest of the noise is smaller" in said(found)


def test_coarse_lattices_are_no_finding_and_hide_little():
    for kind in KINDS:
        clean = drawn_fits(4, 30, [(kind, 4, 10)], steps=0.5)
        assert is_clean(clean)
        assert noise_findings(drawn_fits(5, 30, [(kind, 4, 10)], steps=8.0, actual=0.5))


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


def test_what_is_released_lies_on_the_lattice():
    (fit,) = drawn_fits(0, 1, [("k_norm", 3, 2)])
    third = np.nextafter(fit[1].released, np.inf)
    for released in (third, np.array([np.nan, 0.0, 0.0]), np.array([0.0, -np.inf, 0.0])):
        findings = noise_findings([[fit[0], replace(fit[1], released=released)]])
        assert said(findings) == "what is released is no multiple of the step of its lattice"
    (finding,) = noise_findings([[fit[0], replace(fit[1], step=0.0)]])
    assert finding.what == "what is released is on no lattice"
    (finding,) = noise_findings([[fit[0], replace(fit[1], released=fit[1].released[:2])]])
    assert finding.what == "what is released has another shape than what is asked"


def test_noise_without_a_lattice_is_tested_as_well():
    def fits(factor):
        rng = np.random.default_rng(0)
        noise = factor * rng.standard_normal((30, 8))
        return [
            [Released(np.full(8, 0.1), 1.0, LAWS["gaussian"], 1.0, 0.0, 0.1 + one, "here")]
            for one in noise
        ]

    assert said(noise_findings(fits(1.0))) == "what is released is on no lattice"
    assert "the noise is about 0." in said(noise_findings(fits(0.5)))
    assert "there is no noise" in said(noise_findings(fits(0.0)))


# What is left out


def test_values_beyond_the_lattice_say_nothing():
    fits = drawn_fits(0, 20, [("gaussian", 3, 2)])
    for fit in fits:
        far = fit[0].step * 2.0**53
        fit[0] = replace(fit[0], asked=np.full(3, far * 10.0), released=np.full(3, far))
    assert is_clean(fits)
    assert is_clean([[fit[0]] for fit in fits])


def test_the_noise_is_what_is_released_less_what_is_asked_on_the_lattice():
    rng = np.random.default_rng(0)
    for asked in (0.0, 1e-3, -0.37, 12345.678, 1e9):
        noise = noise_source(1).vectors("laplace", 1, 4, 1024.0)[0]
        exact = asked + 1e-4 * rng.standard_normal(4)
        released = (np.rint(exact * 1024.0) + noise) / 1024.0
        one = Released(exact, 1.0, LAWS["laplace"], 1.0, 1.0 / 1024.0, released, "here")
        np.testing.assert_array_equal(Drawn.of([[one]]).steps, noise)


def test_what_is_not_an_additive_release_is_left_out():
    fits = drawn_fits(0, 20, [("k_norm", 4, 1)])
    empty = replace(fits[0][0], asked=np.zeros((0, 3)), released=np.zeros((0, 3)))
    foreign = replace(fits[0][0], law="somebody else's", released=np.full(4, np.nan))
    mixed = [[empty, "an event", foreign, *fit] for fit in fits]
    assert is_clean(mixed)
    assert is_clean([]) and is_clean([[], []]) and is_clean([[empty]])
    halved_fits = drawn_fits(0, 70, [("k_norm", 4, 1)], actual=0.5)
    assert noise_findings([[empty, "an event", *fit] for fit in halved_fits])


def test_fits_of_other_lengths_are_tested_but_not_compared():
    shape = ("gaussian", 10, 3)
    fits = drawn_fits(0, 8, [shape])
    assert noise_findings([*fits, fits[0][:2], fits[0] + fits[1]]) != []  # repeated releases
    others = [fit[:2] for fit in drawn_fits(1, 3, [shape])]
    assert is_clean([*fits, *others])
    records, matched = Drawn.of([others[0], *fits, *others]).matched()
    assert matched.tolist() == list(range(1, 9))
    assert records.tolist() == (2 + np.arange(24).reshape(8, 3)).tolist()
    quiet = [[replace(fit[0], released=fit[0].asked)] for fit in others]
    assert "there is no noise in fit 9" in said(noise_findings([*fits, *quiet]))


def test_findings_show_no_private_value():
    fits = drawn_fits(0, 20, [("gaussian", 3, 2)], actual=0.1)
    fits = [
        [replace(one, asked=one.asked + 31234.0, released=one.released + 31234.0) for one in fit]
        for fit in fits
    ]
    texts = str(noise_findings(fits))
    assert "about 0.1" in texts
    assert not re.search("312[0-9]", texts)


# How much it takes


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("size", [1, 3, 10, 100])
def test_halved_noise_is_found_in_as_many_runs_as_stated(kind, size):
    for power, low, high in [(0.99, 36, 40), (0.5, 3, 39)]:
        n = noise_runs_needed(kind, size=size, power=power)
        found = 0
        for seed in range(40):
            fits = drawn_fits(seed, n, [(kind, size, 1)], actual=0.5)
            found += "times what is declared" in said(noise_findings(fits))
        assert low <= found <= high or n == 1


def test_runs_needed_are_fewer_if_there_is_more_to_see():
    needed = noise_runs_needed
    assert needed("gaussian", size=1) < needed("laplace", size=1) == needed("k_norm", size=1)
    assert needed("laplace", size=3, factor=1.5) > 2 * needed("laplace", size=3)
    assert needed("laplace", size=3, power=0.5) < needed("laplace", size=3)
    assert needed("laplace", size=3, alarm=1e-3) < needed("laplace", size=3)
    ten = needed("gaussian", size=10)
    assert ten == math.ceil(needed("gaussian", size=1) / 10)


def test_many_releases_take_no_loop_over_pairs():
    fits = drawn_fits(0, 5, [("k_norm", 3, 4000)])
    start = time.perf_counter()
    assert is_clean(fits)
    assert time.perf_counter() - start < 20.0  # a fifth of a second of one core


# Bad input


def test_bad_input_is_named():
    with pytest.raises(ValueError, match=r"alarm must be less than 1; got 1\.5"):
        noise_findings([], alarm=1.5)
    with recording() as transcript, pytest.raises(ValueError, match="transcripts must be a list"):
        noise_findings(transcript)
    with pytest.raises(ValueError, match="transcripts must be a list"):
        noise_findings(drawn_fits(0, 1, [("laplace", 1, 1)])[0])
    with pytest.raises(ValueError, match="kind must be one of"):
        noise_runs_needed("normal", size=1)
    with pytest.raises(ValueError, match="size must be a positive int"):
        noise_runs_needed("laplace", size=0)
    with pytest.raises(ValueError, match="factor must be between"):
        noise_runs_needed("laplace", size=1, factor=1.0)
    with pytest.raises(ValueError, match="power must be"):
        noise_runs_needed("laplace", size=1, power=1.0)
