"""What objective perturbation claims, against its exact output densities.

Random neighbours on a line; those that attain what is claimed are in ``support.perturbed``.
"""

import math
from dataclasses import dataclass
from itertools import product

import numpy as np
import pytest
from numpy.testing import assert_allclose
from support.insides import noise_source
from support.perturbed import blocks, world

from skdp.audit._density import NeighbouringObjectives, exact_profile, largest_loss
from skdp.learner import (
    HuberHingeLoss,
    HuberLoss,
    LogisticLoss,
    ObjectiveNoise,
    SoftmaxLoss,
    calibrate,
    gaussian_profile,
)
from skdp.privacy import ApproxDP, JointLogisticDP, gaussian_delta

ADJACENCIES = ["replace-one", "add-remove"]


LOSSES = [
    LogisticLoss(),
    LogisticLoss(0.8),
    LogisticLoss(0.5),
    LogisticLoss(0.2),
    HuberHingeLoss(0.5),
    HuberHingeLoss(0.05),
    HuberHingeLoss(2.0),
    LogisticLoss(weights=(1.0, 0.3)),
    LogisticLoss(0.4, weights=(0.05, 1.0)),
    HuberHingeLoss(0.3, weights=(1.0, 0.5)),
]


@dataclass(frozen=True)
class Neighbours:
    """Two data sets of one feature, each of records: (x, class), or ``z = y x`` of two classes."""

    here: tuple
    there: tuple

    def runs(self, loss, noise):
        pair = []
        for records in (self.here, self.there):
            pairs = [r if isinstance(r, tuple) else (r, 1) for r in records]
            X, codes = [[x] for x, _ in pairs], [code for _, code in pairs]
            pair.append(world(loss, blocks(X, codes, x_norm=1e3, n_features=1), noise))
        return pair

    def delta(self, loss, noise, epsilons):
        """Hockey-stick divergence between the outputs, the larger of both directions."""
        profile = exact_profile(NeighbouringObjectives.of(*self.runs(loss, noise)))
        return np.array([profile(float(epsilon)) for epsilon in epsilons])

    def pure_loss(self, loss, noise):
        """Largest absolute log ratio of the densities, for noise of density ~ exp(-|b|/scale)."""
        # Curvatures are differences of residuals, and norms of huge gradients are rounded.
        return largest_loss(NeighbouringObjectives.of(*self.runs(loss, noise)), rng=0) * (1 - 1e-6)


def random_neighbours(rng, x_norm, adjacency):
    """Up to six base records, and a change that is often as large as can be."""
    size = rng.integers(0, 7)
    base = x_norm * rng.uniform(-1.0, 1.0, size) * rng.choice([1.0, 1.0, 0.05])
    if rng.random() < 0.5:
        base = x_norm * np.sign(base)
    largest = rng.random(2) < 0.7
    changed = x_norm * np.where(largest, rng.choice([-1.0, 1.0], 2), rng.uniform(-1.0, 1.0, 2))
    if adjacency == "replace-one":
        return Neighbours((*base, changed[0]), (*base, changed[1]))
    return Neighbours(tuple(base), (*base, changed[0]))


def random_noise(rng, loss, adjacency, *, delta, calibration="tight"):
    """A calibration for public numbers drawn at random."""
    x_norm = float(rng.choice([0.5, 1.0, 3.0]))
    epsilon = float(rng.choice([0.2, 0.5, 1.0, 3.0]))
    penalty = x_norm**2 / epsilon * 10.0 ** rng.uniform(-0.6, 1.0)
    guarantee = ApproxDP(epsilon, delta, adjacency=adjacency)
    noise = calibrate(
        loss,
        x_norm=x_norm,
        penalty=penalty,
        guarantee=guarantee,
        calibration=calibration,
    )
    return x_norm, noise


def excess(neighbours, loss, noise, *, points=(0.3, 0.7, 1.0, 1.4, 2.5)):
    """Ratio of the true delta to the claimed one, at several epsilon."""
    epsilons = noise.guarantee.epsilon * np.array(points)
    claim = noise.guarantee.delta_at(epsilons)
    # Rounding of 20,000 differences of normal probabilities.
    return (neighbours.delta(loss, noise, epsilons) - 1e-12) / claim


def labelled_neighbours(rng, x_norm, adjacency):
    """The same with labels at random."""
    pair = random_neighbours(rng, x_norm, adjacency)
    labels = dict.fromkeys((*pair.here, *pair.there))
    labels = {record: (record, int(rng.integers(0, 2))) for record in labels}
    return Neighbours(
        *[tuple(labels[record] for record in part) for part in (pair.here, pair.there)]
    )


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("loss", LOSSES, ids=str)
def test_what_is_lost_is_never_above_the_claim(loss, adjacency, repetitions):
    rng = np.random.default_rng(9)
    gaussian = product(("tight",), (1e-2, 1e-5))
    for calibration, delta in [("tight", 0.0), ("jmlr2011", 0.0), *gaussian]:
        for _ in range(repetitions(20, 2)):
            x_norm, noise = random_noise(
                rng, loss, adjacency, delta=delta, calibration=calibration
            )
            for _ in range(repetitions(4, 2)):
                neighbours = labelled_neighbours(rng, x_norm, adjacency)
                if delta:
                    assert excess(neighbours, loss, noise).max() <= 1.0 + 1e-9, (neighbours, noise)
                else:
                    assert neighbours.pure_loss(loss, noise) <= noise.guarantee.epsilon


# Closed forms and limits.


@pytest.mark.parametrize(
    "adjacency, ratio, beta",
    [
        ("add-remove", 1.0, 1.0),
        ("add-remove", 0.1, 1.0),
        ("add-remove", 2.0, 0.902954),
        ("replace-one", 0.5, 0.5),
        ("replace-one", 1.0, 0.472822),
        ("replace-one", 2.0, 0.378666),
    ],
)
@pytest.mark.parametrize("x_norm", [1.0, 7.0])
def test_pure_logistic_noise_has_its_known_scale(adjacency, ratio, beta, x_norm):
    noise = calibrate(
        LogisticLoss(),
        x_norm=x_norm,
        penalty=x_norm**2 / ratio,
        guarantee=ApproxDP(1.0, adjacency=adjacency),
    )
    assert_allclose(x_norm / noise.scale, beta, rtol=2e-6)
    assert noise.penalty == x_norm**2 / ratio


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize(
    "loss, lipschitz, determinant, corners",
    [
        (LogisticLoss(0.5), 0.5, math.log1p(0.25 / 2), 1),
        (LogisticLoss(0.2), 0.2, math.log1p(0.16 / 2), 1),
        (HuberHingeLoss(0.5), 1.0, math.log1p(1.0 / 2), 1),
        (SoftmaxLoss(5), math.sqrt(2), 4 * math.log1p(0.2 / 2), 4),
    ],
    ids=str,
)
def test_the_profile_is_a_sum_over_the_corners(loss, lipschitz, determinant, corners, adjacency):
    # The union over corners at which one of two records is idle is far below the other term,
    # so that no test of densities would miss it; the proof does.
    profile = gaussian_profile(loss, x_norm=3.0, penalty=18.0, scale=30.0, adjacency=adjacency)
    s = lipschitz * 3.0 / 30.0
    for epsilon in (determinant, 0.6, 1.0):
        excess = epsilon - determinant
        expected = corners * gaussian_delta(excess, s)
        if adjacency == "replace-one":
            expected = corners**2 * gaussian_delta(excess, 2 * s) + 2 * expected
        assert_allclose(profile.delta_at(epsilon), min(expected, 1.0), rtol=1e-9)
    assert profile.adjacency == adjacency


@pytest.mark.parametrize(
    "calibration, epsilon, delta, adjacency, penalty, scale, expected_penalty",
    [
        ("jmlr2011", 1.0, 0.0, "replace-one", 4.0, 2.0 / (1.0 - 2.0 * math.log1p(1 / 16)), 4.0),
        ("jmlr2011", 1.0, 0.0, "replace-one", 0.1, 4.0, 0.25 / math.expm1(0.25)),
    ],
)
def test_the_published_calibration_has_its_known_values(
    calibration, epsilon, delta, adjacency, penalty, scale, expected_penalty
):
    noise = calibrate(
        LogisticLoss(),
        x_norm=3.0,
        penalty=9.0 * penalty,
        guarantee=ApproxDP(epsilon, delta, adjacency=adjacency),
        calibration=calibration,
    )
    assert_allclose([noise.scale / 3, noise.penalty / 9], [scale, expected_penalty], rtol=1e-3)


def test_multiclass_pure_noise_has_its_closed_form():
    determinant = 3 * math.log1p(0.5 / 4)
    for adjacency, records in (("add-remove", 1.0), ("replace-one", 2.0)):
        noise = calibrate(
            SoftmaxLoss(4),
            x_norm=3.0,
            penalty=18.0,
            guarantee=ApproxDP(1.0, adjacency=adjacency),
        )
        # Rows of gradients have l2 norms that add up to 2 * x_norm.
        expected = records * 2.0 * 3.0 / (1.0 - determinant)
        assert_allclose(noise.scale, expected, rtol=1e-8)


def test_noise_for_pairs_has_its_closed_form():
    for adjacency, records in (("add-remove", 1.0), ("replace-one", 2.0)):
        public = dict(x_norm=2.0, penalty=8.0, guarantee=ApproxDP(1.0, adjacency=adjacency))
        noise = calibrate(HuberLoss(0.3), pair_norm=0.25, **public)
        assert_allclose(noise.scale, records * 0.3 * 0.25 / (1.0 - math.log1p(0.5)), rtol=1e-8)
        assert noise.pairs and not noise.gaussian
        plain = calibrate(HuberLoss(0.3), **public)
        assert_allclose(noise.scale, plain.scale / 8.0, rtol=1e-8)
        # Of 128 numbers pairs have a norm of 1/8 of that of all: noise has half the energy.
        rounds, steps = 200, 2.0**20
        found = noise_source(0)
        total = sum(
            (noise.draw(found, (1, 128), noise.scale / steps).astype(float) ** 2).sum()
            for _ in range(rounds)
        )
        level = math.sqrt(total / rounds / 128) / steps * noise.scale
        assert_allclose(level, noise.level(128), rtol=0.1)
        assert_allclose(noise.level(128) / plain.level(128), math.sqrt(130 / 4) / 8.0, rtol=1e-6)
        assert noise.norm_bound(128) > 1.5 * math.sqrt(128) * noise.level(128)


@pytest.mark.parametrize("loss", [LogisticLoss(), HuberHingeLoss(0.1), SoftmaxLoss(4)], ids=str)
def test_a_penalty_is_raised_only_where_curvature_would_take_most_of_the_budget(loss):
    guarantee = ApproxDP(1.0)
    raised = calibrate(loss, x_norm=1.0, penalty=1e-6, guarantee=guarantee)
    assert_allclose(loss.log_determinant(1.0 / raised.penalty), 0.25)
    assert loss.log_determinant(1.0 / raised.penalty) <= 0.25
    kept = calibrate(loss, x_norm=1.0, penalty=2.0 * raised.penalty, guarantee=guarantee)
    assert kept.penalty == 2.0 * raised.penalty


@pytest.mark.parametrize(
    "calibration, delta, loss, message",
    [
        ("jmlr2011", 1e-5, LogisticLoss(), "delta must be 0 for calibration="),
        ("kst2012", 1e-5, LogisticLoss(), "calibration must be one of"),
        ("jmlr2011", 0.0, SoftmaxLoss(3), "must be 'tight' for more than two classes"),
        ("tightest", 0.0, LogisticLoss(), "calibration must be one of"),
    ],
)
def test_calibrations_refuse_what_they_are_not_proved_for(calibration, delta, loss, message):
    with pytest.raises(ValueError, match=message):
        calibrate(
            loss,
            x_norm=1.0,
            penalty=1.0,
            guarantee=ApproxDP(1.0, delta),
            calibration=calibration,
        )


@pytest.mark.parametrize("bad", [{"x_norm": 0.0}, {"penalty": -1.0}, {"penalty": math.nan}])
def test_public_numbers_are_checked_by_name(bad):
    with pytest.raises(ValueError, match=next(iter(bad))):
        calibrate(
            LogisticLoss(), **({"x_norm": 1.0, "penalty": 1.0, "guarantee": ApproxDP(1.0)} | bad)
        )


@pytest.mark.parametrize(
    "ratio, mu, epsilon, delta",
    [(1.0, 0.25, 0.5, 3.8729e-3), (1.0, 0.5, 1.0, 6.8296e-3), (10 / 3, 0.25, 1.0, 2.5048e-4)],
)
def test_the_joint_profile_of_slope_and_curvature_has_its_known_values(ratio, mu, epsilon, delta):
    assert_allclose(JointLogisticDP(ratio, mu).delta_at(epsilon), delta, rtol=2e-4)


# More than two classes.


def random_classes(rng, adjacency, x_norm):
    def record(largest):
        x = x_norm * (rng.choice([-1.0, 1.0]) if largest else rng.uniform(-1.0, 1.0))
        return (x, int(rng.integers(3)))

    base = [record(rng.random() < 0.3) for _ in range(rng.integers(0, 4))]
    margin, temperature = [(0.0, 1.0), (1.0, 0.5)][rng.integers(2)]
    here = (*base, record(True)) if adjacency == "replace-one" else tuple(base)
    loss = SoftmaxLoss(3, margin=margin, temperature=temperature)
    return loss, Neighbours(here, (*base, record(True)))


@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_what_is_lost_of_three_classes_is_never_above_the_claim(adjacency, repetitions):
    rng = np.random.default_rng(11)
    for i in range(repetitions(200, 8)):
        loss, neighbours = random_classes(rng, adjacency, x_norm=2.0)
        epsilon, delta = rng.choice([0.5, 1.0, 3.0]), 10.0 ** rng.uniform(-6, -2)
        noise = calibrate(
            loss,
            x_norm=2.0,
            penalty=4.0 / epsilon * 10.0 ** rng.uniform(-0.3, 1.0),
            guarantee=ApproxDP(epsilon, delta if i % 3 == 0 else 0.0, adjacency=adjacency),
        )
        if i % 3:
            assert neighbours.pure_loss(loss, noise) <= epsilon
            continue
        epsilons = epsilon * np.array([0.4, 0.7, 1.0, 1.5])
        claim = noise.guarantee.delta_at(epsilons)
        assert (neighbours.delta(loss, noise, epsilons) <= claim * 1.01 + 1e-12).all()


@pytest.mark.parametrize("gaussian", [False, True])
@pytest.mark.parametrize("size", [1, 30, 1000])
def test_linear_terms_stay_below_their_bound(size, gaussian):
    law = ObjectiveNoise(1.0, 1000.0, gaussian, ApproxDP(1.0, 1e-5 if gaussian else 0.0))
    source = noise_source(0)
    draw = source.normal if gaussian else source.k_norm
    norms = [np.linalg.norm(draw(size, law.scale)) for _ in range(300)]
    assert max(norms) <= law.norm_bound(size)
    # It is not far away.
    assert size < 1000 or law.norm_bound(size) < 1.5 * np.mean(norms)


@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_the_published_pure_calibration_holds(adjacency, repetitions):
    rng = np.random.default_rng(8)
    for loss in LOSSES:
        for _ in range(repetitions(100, 10)):
            x_norm, noise = random_noise(rng, loss, adjacency, delta=0.0, calibration="jmlr2011")
            neighbours = random_neighbours(rng, x_norm, adjacency)
            assert neighbours.pure_loss(loss, noise) <= noise.guarantee.epsilon
