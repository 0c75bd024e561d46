"""Bounds from outside: they hold, they are near, and what is broken is flagged.

Releases draw from seeded generators, and so do the audits: each test has one outcome. False alarms
would have a probability of 1e-9 an audit.
"""

import math
import re

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats

from skdp.audit import estimate_epsilon
from skdp.audit._black_box import region
from skdp.mechanisms import gaussian_mechanism, k_norm_mechanism, laplace_mechanism
from skdp.privacy import ApproxDP, GaussianDP, compose

SURE = 1 - 1e-9


def audit(release, there=1.0, here=0.0, *, n=2000, confidence=SURE, **options):
    return estimate_epsilon(
        release, here, there, n=n, confidence=confidence, random_state=1, **options
    )


def lattice_noise(law, scale, *, seed=0, size=()):
    """A release of numbers on a lattice of step 1/128, fast enough to be audited often."""
    draw = getattr(np.random.default_rng(seed), law)
    return lambda value: value + np.rint(draw(scale=128 * scale, size=size)) / 128


class TestRegion:
    def test_one_event_in_all_runs_and_none(self):
        # P1 P0 <= c with c (1 - log c) = 0.05. At best P1 = p^n and P0 = (1 - q)^n.
        found = region(100, 100, 0, 100, 0.05)
        c = found.likely[0] ** 100
        assert_allclose(c * (1 - math.log(c)), 0.05, rtol=1e-6)
        u = np.geomspace(c, 1, 2001)[1:-1]
        exact = np.min(np.log(u**0.01 / (1 - (c / u) ** 0.01)))
        assert 0.97 * exact < found.epsilon(0.0) <= exact
        assert found.epsilon(0.5) < found.epsilon(0.0)

    def test_it_holds_the_true_pair_as_often_as_promised(self):
        p, q, n, level = 0.6, 0.4, 40, 0.1
        counts = np.arange(n + 1)
        weights = np.outer(stats.binom.pmf(counts, n, p), stats.binom.pmf(counts, n, q))
        missed = 0.0
        for k1 in counts:
            for k0 in counts[weights[k1] > 1e-9]:
                found = region(k1, n, k0, n, level)
                held = np.any((found.likely <= p) & (found.unlikely >= q))
                missed += weights[k1, k0] * (not held)
        assert 0.02 < missed <= level


class TestBoundsAreNear:
    @pytest.mark.parametrize("epsilon", [0.5, 4.0])
    def test_laplace(self, epsilon):
        release = lattice_noise("laplace", 1 / epsilon)
        found = audit(release, n=25_000, confidence=0.95)
        assert 0.75 * epsilon < found.epsilon < epsilon

    def test_gaussian_mu(self):
        found = audit(lattice_noise("normal", 2.0), n=25_000, confidence=0.95, delta=1e-5)
        assert 0.75 * 0.5 < found.mu < 0.5
        assert found.epsilon < GaussianDP(0.5).epsilon_at(1e-5)
        assert_allclose(found.epsilon_if_gaussian(), GaussianDP(found.mu).epsilon_at(1e-5))

    def test_randomised_response_of_any_kind_of_outcome(self):
        generator = np.random.default_rng(0)
        for kind in (
            bool,
            int,
            lambda v: ["no", "yes"][int(v)],
            lambda v: {"a": v, "b": (v, [1])},
        ):
            found = audit(
                lambda v, kind=kind: kind((generator.random() < 0.75) == bool(v)),
                confidence=0.99,
            )
            assert 0.75 * math.log(3) < found.epsilon < math.log(3)

    def test_many_numbers(self):
        # K-norm noise leans on all coordinates: the likelihood ratio is a difference of norms.
        claim = ApproxDP(4.0)

        def release(value):
            return k_norm_mechanism(
                value, l2_sensitivity=1.0, guarantee=claim, random_state=source
            )

        source = np.random.default_rng(0)
        here, there = np.zeros((2, 2)), np.eye(2) / math.sqrt(2)
        found = audit(release, there, here, n=8000, confidence=0.95, guarantee=claim)
        assert 2.0 < found.epsilon < 4.0 and not found.violated


class TestSilence:
    @pytest.mark.parametrize(
        ("law", "claim"), [("laplace", ApproxDP(1.0)), ("normal", GaussianDP(1.0))]
    )
    def test_two_hundred_audits_of_kept_promises(self, law, claim):
        release = lattice_noise(law, 1.0)
        for seed in range(100):
            found = estimate_epsilon(
                release, 0.0, 1.0, n=400, confidence=SURE, guarantee=claim, random_state=seed
            )
            assert not found.violated
            assert found.mu <= 1.0 or law == "laplace"
            assert found.epsilon <= 1.0 or law == "normal"

    def test_alarms_at_a_low_confidence_are_as_rare_as_promised(self):
        # 300 audits at 0.8: more than 90 alarms would have a probability of 2e-5.
        release = lattice_noise("normal", 1.0)
        alarms = 0
        for seed in range(300):
            found = estimate_epsilon(
                release, 0.0, 1.0, n=200, confidence=0.8, statistic=float, random_state=seed
            )
            alarms += found.mu > 1.0
        assert 0 < alarms <= 90


class TestBrokenPromises:
    @pytest.mark.parametrize(
        ("mechanism", "claim", "met"),
        [
            (laplace_mechanism, ApproxDP(1.0), ApproxDP(2.0)),
            (gaussian_mechanism, GaussianDP(0.5), GaussianDP(1.0)),
            (gaussian_mechanism, GaussianDP(0.9), ApproxDP(8.0, 1e-5)),
        ],
    )
    def test_half_the_noise(self, mechanism, claim, met):
        norm = "l1_sensitivity" if mechanism is laplace_mechanism else "l2_sensitivity"
        source = np.random.default_rng(0)

        def release(value):
            return mechanism(value, guarantee=met, random_state=source, **{norm: 1.0})

        assert audit(release, n=5000, guarantee=claim, confidence=0.99).violated

    def test_one_noise_for_all_numbers(self):
        # No outcome repeats, and what the data set moves is little beside any one number.
        generator = np.random.default_rng(0)
        here, there = np.zeros(3), np.array([0.0, 0.0, 0.01])

        def release(value):
            return (
                value + generator.normal(scale=[1e-3, 1e-3, 1e-4]) + generator.laplace(scale=2.0)
            )

        found = audit(release, there, here, n=1000, guarantee=ApproxDP(0.5))
        assert found.violated and "discriminant" in found.event

    def test_noise_whose_scale_depends_on_the_data(self):
        generator = np.random.default_rng(0)
        found = audit(lambda v: generator.normal(scale=v), 4.0, 1.0, guarantee=GaussianDP(1.0))
        assert found.violated

    @pytest.mark.parametrize("odd", [math.nan, math.inf, -math.inf])
    def test_an_outcome_that_is_no_number(self, odd):
        generator = np.random.default_rng(0)

        def release(value):
            return [odd if value and generator.random() < 0.5 else generator.laplace(), 0.0]

        found = audit(release, guarantee=ApproxDP(1.0))
        assert found.violated

    def test_an_exception_on_one_side_alone(self):
        def release(value):
            if value:
                raise KeyError("private")
            return 0.0

        found = audit(release, n=200, guarantee=ApproxDP(1.0))
        assert found.violated and "private" not in str(found)

    def test_a_hole_in_the_noise(self):
        # Near even numbers or near odd ones, which no half-line tells.
        generator = np.random.default_rng(0)

        def release(value):
            return value + 2 * round(generator.laplace(scale=3.0)) + generator.normal(scale=0.1)

        found = audit(release, guarantee=ApproxDP(1.0))
        assert found.violated and "tree" in found.event

    def test_the_whole_profile_is_tested(self):
        # Laplace noise has the epsilon at this delta, and is no Gaussian of that mu.
        release = lattice_noise("laplace", 1 / 8.0)
        claim = compose([GaussianDP(1.0), GaussianDP(1.0)])
        assert audit(release, n=4000, guarantee=claim).violated


class TestWhatIsReturned:
    def test_numbers_are_compared_by_value(self):
        kinds = iter([int, float, np.float32, np.int8, bool] * 1000)
        assert audit(lambda v: next(kinds)(1), n=500).epsilon == 0.0

    def test_it_can_be_read(self):
        found = audit(lattice_noise("laplace", 0.1), guarantee=ApproxDP(1.0), delta=0.01, n=500)
        first, second, third = str(found).splitlines()
        assert re.fullmatch(
            r"epsilon >= [\d.]+ at delta=0.01, mu >= [\d.]+ "
            r"\(confidence 0.999999999, 500 runs on each data set\).",
            first,
        )
        assert re.search(r": \d+ of 400 on D\w*, \d+ of 400 on D", second) or "of" in second
        assert third == f"VIOLATED: {ApproxDP(1.0)}"

    def test_without_a_claim_there_is_no_verdict(self):
        found = audit(lattice_noise("laplace", 1.0), n=200)
        assert found.violated is None and len(str(found).splitlines()) == 2
        assert found.epsilon_if_gaussian() == (math.inf if found.mu else 0.0)


class TestBadInput:
    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"n": 1.5}, "n must be a positive int; got 1.5."),
            ({"n": 0}, "n must be a positive int; got 0."),
            ({"confidence": 1.0}, "confidence must be less than 1; got 1.0."),
            ({"confidence": 0}, "confidence must be a positive, finite number; got 0."),
            ({"delta": 1.0}, "delta must be at least 0 and less than 1; got 1.0."),
            ({"guarantee": 1.0}, "guarantee must be None or a guarantee; got 1.0."),
            ({"statistic": 1}, "statistic must be None or callable; got 1."),
            ({"random_state": -1}, "random_state must be None, a non-negative int"),
        ],
    )
    def test_parameters(self, options, message):
        with pytest.raises(ValueError, match=re.escape(message)):
            estimate_epsilon(float, 0.0, 1.0, **options)

    def test_too_few_runs_and_how_many_are_needed(self):
        with pytest.raises(ValueError, match=r"n must be at least (\d+) for the conf") as caught:
            audit(float, n=10)
        needed = int(re.search(r"least (\d+)", str(caught.value))[1])
        assert audit(float, n=needed).epsilon > 0.0
        with pytest.raises(ValueError, match=f"n must be at least {needed}"):
            audit(float, n=needed - 20)

    def test_a_release_that_always_fails_says_why(self):
        def release(value):
            raise TypeError("no such data")

        with pytest.raises(TypeError, match="no such data"):
            audit(release, n=200)
