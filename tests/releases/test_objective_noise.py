"""What objective perturbation claims, against its exact output densities.

Random neighbours on a line; those that attain what is claimed are in ``support.perturbed``.
"""

import math
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import integrate, optimize
from support.insides import noise_source
from support.perturbed import blocks, world

from skdp.audit._density import Worlds
from skdp.audit._density_profile import exact_profile, largest_loss
from skdp.losses import HuberHingeLoss, HuberLoss, LogisticLoss, SoftmaxLoss
from skdp.privacy import ApproxDP, JointLogisticDP, gaussian_delta, gaussian_scale
from skdp.releases import ObjectiveNoise, calibrate, gaussian_profile

ADJACENCIES = ["replace-one", "add-remove"]


LOSSES = [
    LogisticLoss(),
    LogisticLoss(0.8),
    LogisticLoss(0.5),
    LogisticLoss(0.2),
    HuberHingeLoss(0.5),
    HuberHingeLoss(0.05),
    HuberHingeLoss(2.0),
]


@dataclass(frozen=True)
class Neighbours:
    """Two data sets of one feature, each of records: (x, class), or ``z = y x`` of two classes."""

    here: tuple
    there: tuple

    def worlds(self, loss, noise):
        pair = []
        for records in (self.here, self.there):
            pairs = [r if isinstance(r, tuple) else (r, 1) for r in records]
            X, codes = [[x] for x, _ in pairs], [code for _, code in pairs]
            pair.append(world(loss, blocks(X, codes, x_norm=1e3, n_features=1), noise))
        return pair

    def delta(self, loss, noise, epsilons):
        """Hockey-stick divergence between the outputs, the larger of both directions."""
        profile = exact_profile(*self.worlds(loss, noise))
        return np.array([profile.delta(float(epsilon)) for epsilon in epsilons])

    def pure_loss(self, loss, noise):
        """Largest absolute log ratio of the densities, for noise of density ~ exp(-|b|/scale)."""
        # Curvatures are differences of residuals, and norms of huge gradients are rounded.
        return largest_loss(Worlds.of(*self.worlds(loss, noise)), rng=0) * (1 - 1e-6)


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


# 14 families with 3 calibrations of 10 pairs: 420 problems, 60 of them with joint profiles.


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("loss", LOSSES, ids=str)
def test_the_true_delta_is_never_above_the_claim(loss, adjacency, repetitions):
    rng = np.random.default_rng(LOSSES.index(loss))
    for delta in (1e-2, 1e-5, 1e-7):
        for _ in range(repetitions(5, 1)):
            x_norm, noise = random_noise(rng, loss, adjacency, delta=delta)
            assert noise.guarantee.delta_at(noise.guarantee.epsilon) <= delta
            for _ in range(10):
                neighbours = random_neighbours(rng, x_norm, adjacency)
                assert excess(neighbours, loss, noise).max() <= 1.0 + 1e-9, (neighbours, noise)


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("loss", LOSSES, ids=str)
def test_the_true_pure_loss_is_never_above_epsilon(loss, adjacency, repetitions):
    rng = np.random.default_rng(LOSSES.index(loss))
    for _ in range(repetitions(200, 15)):
        x_norm, noise = random_noise(rng, loss, adjacency, delta=0.0)
        neighbours = random_neighbours(rng, x_norm, adjacency)
        assert neighbours.pure_loss(loss, noise) <= noise.guarantee.epsilon, (neighbours, noise)


# Weights of classes.

WEIGHTED = [
    LogisticLoss(weights=(1.0, 0.3)),
    LogisticLoss(0.7, weights=(0.05, 1.0)),
    LogisticLoss(0.4, weights=(0.6, 1.0)),
    HuberHingeLoss(0.3, weights=(1.0, 0.5)),
]


def labelled_neighbours(rng, x_norm, adjacency):
    """The same with labels at random."""
    pair = random_neighbours(rng, x_norm, adjacency)
    labels = dict.fromkeys((*pair.here, *pair.there))
    labels = {record: (record, int(rng.integers(0, 2))) for record in labels}
    return Neighbours(
        *[tuple(labels[record] for record in part) for part in (pair.here, pair.there)]
    )


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("calibration", ["tight", "jmlr2011", "kst2012", "redberg2023"])
@pytest.mark.parametrize("loss", WEIGHTED, ids=str)
def test_claims_hold_of_losses_with_weights(loss, calibration, adjacency, repetitions):
    rng = np.random.default_rng(9)
    for delta in (0.0, 1e-2, 1e-5):
        if calibration != "tight" and (delta == 0.0) != (calibration == "jmlr2011"):
            continue
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


def test_a_joint_profile_of_a_light_class_is_below_that_of_the_heaviest():
    # M(z) of weight w: the largest log(1 + w t (1 - t) q) + w t s z + (w t s)^2 / 2 over t.
    t, z = np.linspace(0.0, 1.0, 4001)[:, np.newaxis], np.linspace(-6.0, 6.0, 97)

    def worst(w, q, s):
        return (np.log1p(w * t * (1.0 - t) * q) + w * t * s * z + (w * t * s) ** 2 / 2).max(axis=0)

    for q, s in ((0.3, 0.25), (1.0, 0.5), (4.0, 0.1), (2.0, 3.0)):
        for w in (0.01, 0.3, 0.9):
            assert (worst(w, q, s) <= worst(1.0, q, s) + 1e-6).all()


# The published rules.


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("calibration", ["kst2012", "redberg2023"])
def test_published_gaussian_calibrations_hold(calibration, adjacency, repetitions):
    rng = np.random.default_rng(7)
    for loss in LOSSES:
        for delta in (0.1, 1e-2, 1e-5):
            x_norm, noise = random_noise(
                rng, loss, adjacency, delta=delta, calibration=calibration
            )
            for _ in range(repetitions(50, 4)):
                neighbours = random_neighbours(rng, x_norm, adjacency)
                assert excess(neighbours, loss, noise).max() <= 1.0, (neighbours, noise)


@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_the_published_pure_calibration_holds(adjacency, repetitions):
    rng = np.random.default_rng(8)
    for loss in LOSSES:
        for _ in range(repetitions(100, 10)):
            x_norm, noise = random_noise(rng, loss, adjacency, delta=0.0, calibration="jmlr2011")
            neighbours = random_neighbours(rng, x_norm, adjacency)
            assert neighbours.pure_loss(loss, noise) <= noise.guarantee.epsilon


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("calibration", ["jmlr2011", "kst2012", "redberg2023"])
def test_the_tight_calibration_is_never_noisier_than_a_published_one(calibration, adjacency):
    delta = 0.0 if calibration == "jmlr2011" else 1e-5
    for loss in (LogisticLoss(0.9), LogisticLoss(0.4), HuberHingeLoss(0.5)):
        for epsilon in (0.1, 1.0, 4.0):
            arguments = {
                "x_norm": 1.0,
                "guarantee": ApproxDP(epsilon, delta, adjacency=adjacency),
            }
            published = calibrate(
                loss, penalty=2.0 / epsilon, calibration=calibration, **arguments
            )
            tight = calibrate(loss, penalty=published.penalty, **arguments)
            assert tight.penalty == published.penalty
            assert tight.scale <= published.scale


def test_a_rule_with_the_norm_where_its_square_belongs_is_caught():
    # A public library takes c R for the curvature c R^2, and then follows JMLR 2011.
    x_norm, penalty, epsilon = 12.0, 1.0, 1.0
    assert epsilon < 2.0 * math.log1p(0.25 * x_norm / penalty)
    wrong = ObjectiveNoise(
        penalty=0.25 * x_norm / math.expm1(epsilon / 4.0),
        scale=2.0 * x_norm / (epsilon / 2.0),
        gaussian=False,
        guarantee=ApproxDP(epsilon, adjacency="add-remove"),
    )
    neighbours = Neighbours((), (x_norm,))
    assert_allclose(neighbours.pure_loss(LogisticLoss(), wrong), 1.37, atol=0.005)
    right = calibrate(
        LogisticLoss(),
        x_norm=x_norm,
        penalty=penalty,
        guarantee=wrong.guarantee,
        calibration="jmlr2011",
    )
    assert neighbours.pure_loss(LogisticLoss(), right) <= epsilon


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


@pytest.mark.parametrize("epsilon, delta", [(0.1, 1e-6), (1.0, 1e-5), (1.0, 0.05), (4.0, 1e-3)])
def test_with_a_penalty_of_one_over_epsilon_the_determinant_is_free(epsilon, delta):
    guarantee = ApproxDP(epsilon, delta, adjacency="add-remove")
    noise = calibrate(LogisticLoss(), x_norm=3.0, penalty=9.0 / epsilon, guarantee=guarantee)
    plain = gaussian_scale(l2_sensitivity=3.0, guarantee=guarantee)
    assert plain <= noise.scale
    assert_allclose(noise.scale, plain, rtol=1e-5)


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
    "calibration, delta, adjacency, penalty, scale, expected_penalty",
    [
        ("jmlr2011", 0.0, "replace-one", 4.0, 2.0 / (1.0 - 2.0 * math.log1p(1 / 16)), 4.0),
        ("jmlr2011", 0.0, "replace-one", 0.1, 4.0, 0.25 / math.expm1(0.25)),
        ("kst2012", 1e-5, "add-remove", 4.0, math.sqrt(8.0 * math.log(2e5) + 4.0), 4.0),
        ("kst2012", 1e-5, "add-remove", 0.1, math.sqrt(8.0 * math.log(2e5) + 4.0), 0.5),
        ("redberg2023", 0.0485, "add-remove", 1.0, 2.0, 1.0),
    ],
)
def test_published_calibrations_have_their_known_values(
    calibration, delta, adjacency, penalty, scale, expected_penalty
):
    noise = calibrate(
        LogisticLoss(),
        x_norm=1.0,
        penalty=penalty,
        guarantee=ApproxDP(1.0, delta, adjacency=adjacency),
        calibration=calibration,
    )
    assert_allclose([noise.scale, noise.penalty], [scale, expected_penalty], rtol=1e-3)


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


@pytest.mark.parametrize(
    "changed",
    [
        {"loss": SoftmaxLoss(3)},
        {"guarantee": ApproxDP(1.0, 1e-5), "loss": LogisticLoss()},
        {"calibration": "jmlr2011", "loss": LogisticLoss()},
        {"pair_norm": -1.0},
    ],
)
def test_noise_for_pairs_is_for_one_score_without_a_delta(changed):
    public = dict(loss=HuberLoss(1.0), x_norm=1.0, penalty=1.0, guarantee=ApproxDP(1.0))
    with pytest.raises(ValueError, match="pair_norm must be"):
        calibrate(**public | {"pair_norm": 0.5} | changed)


@pytest.mark.parametrize(
    "calibration, delta",
    [("tight", 0.0), ("tight", 1e-5), ("jmlr2011", 0.0), ("kst2012", 1e-5), ("redberg2023", 1e-5)],
)
@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize(
    "loss", [LogisticLoss(), LogisticLoss(0.5), HuberHingeLoss(), SoftmaxLoss(3)], ids=str
)
def test_noise_is_proportional_to_the_units_of_the_rows(loss, adjacency, calibration, delta):
    if loss.n_outputs > 1 and calibration != "tight":
        pytest.skip("published for two classes")
    guarantee = ApproxDP(1.0, delta, adjacency=adjacency)
    for penalty in (0.05, 0.5, 20.0):  # raised, and kept
        small, large = (
            calibrate(
                loss,
                x_norm=x_norm,
                penalty=penalty * x_norm**2,
                guarantee=guarantee,
                calibration=calibration,
            )
            for x_norm in (1.0, 50.0)
        )
        assert_allclose([large.scale, large.penalty], [50 * small.scale, 2500 * small.penalty])


@pytest.mark.parametrize("loss", [LogisticLoss(), HuberHingeLoss(0.1), SoftmaxLoss(4)], ids=str)
def test_a_penalty_is_raised_only_where_curvature_would_take_most_of_the_budget(loss):
    guarantee = ApproxDP(1.0)
    raised = calibrate(loss, x_norm=1.0, penalty=1e-6, guarantee=guarantee)
    assert_allclose(loss.log_determinant(1.0 / raised.penalty), 0.25)
    assert loss.log_determinant(1.0 / raised.penalty) <= 0.25
    kept = calibrate(loss, x_norm=1.0, penalty=2.0 * raised.penalty, guarantee=guarantee)
    assert kept.penalty == 2.0 * raised.penalty


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("loss", [LogisticLoss(), LogisticLoss(0.5), HuberHingeLoss(0.5)], ids=str)
def test_extreme_budgets_are_met(loss, adjacency):
    for epsilon, delta, penalty in [
        (1e-3, 1e-5, 2e3),
        (1e-3, 0.5, 1e-3),
        (1.0, 1e-300, 2.0),
        (30.0, 1e-6, 0.1),
        (1e3, 1e-6, 2e-3),
        (1e3, 0.5, 1.0),
    ]:
        guarantee = ApproxDP(epsilon, delta, adjacency=adjacency)
        noise = calibrate(loss, x_norm=1.0, penalty=penalty, guarantee=guarantee)
        assert 0.0 < noise.scale < math.inf
        assert noise.guarantee.delta_at(epsilon) <= delta
        if epsilon > 100.0:
            continue  # exp(epsilon) leaves the floats
        for neighbours in (Neighbours((), (1.0,)), Neighbours((-1.0,), (-1.0, 1.0))):
            if adjacency == "replace-one":
                neighbours = Neighbours((*neighbours.here, -1.0), neighbours.there)
            assert neighbours.delta(loss, noise, [epsilon]) <= delta + 1e-12


@pytest.mark.parametrize(
    "calibration, delta, loss, message",
    [
        ("jmlr2011", 1e-5, LogisticLoss(), "needs delta=0"),
        ("kst2012", 0.0, LogisticLoss(), "needs a positive delta"),
        ("redberg2023", 0.0, LogisticLoss(), "needs a positive delta"),
        ("jmlr2011", 0.0, SoftmaxLoss(3), "must be 'tight' with more than two classes"),
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


# The joint profile of slope and curvature.


def joint_delta(ratio, mu, cap, epsilon):
    """E(1 - exp(epsilon - M(Z)))_+ by adaptive quadrature, M by a grid and a polish."""
    slopes = np.linspace(0.0, cap, 2001)

    def largest(z):
        def loss(t):
            return np.log1p(t * (1 - t) * ratio) + t * mu * z + (t * mu) ** 2 / 2

        best = slopes[loss(slopes).argmax()]
        step = slopes[1]
        bounds = (max(best - step, 0.0), min(best + step, cap))
        found = optimize.minimize_scalar(
            lambda t: -loss(t), bounds=bounds, method="bounded", options={"xatol": 1e-12}
        )
        return max(-found.fun, loss(cap), 0.0)

    def integrand(z):
        gain = -math.expm1(min(epsilon - largest(z), 0.0))
        return gain * math.exp(-(z**2) / 2) / math.sqrt(2 * math.pi)

    if largest(40.0) < epsilon:
        return 0.0
    start = -12.0
    if largest(-12.0) < epsilon:
        start = optimize.brentq(lambda z: largest(z) - epsilon, -12.0, 40.0)
    edges = np.linspace(start, max(start + 12.0, 12.0), 13)
    return sum(
        integrate.quad(integrand, a, b, epsabs=1e-14, epsrel=1e-8)[0] for a, b in pairwise(edges)
    )


@pytest.mark.parametrize(
    "ratio, mu, epsilon, delta",
    [(1.0, 0.25, 0.5, 3.8729e-3), (1.0, 0.5, 1.0, 6.8296e-3), (10 / 3, 0.25, 1.0, 2.5048e-4)],
)
def test_the_joint_profile_has_its_known_values(ratio, mu, epsilon, delta):
    profile = JointLogisticDP(ratio, mu)
    assert_allclose(profile.delta_at(epsilon), delta, rtol=2e-4)


@pytest.mark.parametrize("ratio", [0.1, 1.0, 4.0])
@pytest.mark.parametrize("mu", [0.05, 0.4, 2.0])
@pytest.mark.parametrize("cap", [1.0, 0.7])
def test_the_joint_profile_agrees_with_quadrature_and_errs_upward(ratio, mu, cap):
    profile = JointLogisticDP(ratio, mu, cap)
    for epsilon in (0.0, 0.4 * ratio, ratio, 3.0 * mu):
        expected = joint_delta(ratio, mu, cap, epsilon)
        found = profile.delta_at(epsilon)
        assert found >= expected - 1e-12
        assert_allclose(found, expected, rtol=2e-3, atol=1e-12)


def test_the_joint_profile_is_monotone_and_never_below_the_gaussian_mechanism():
    epsilon = np.linspace(0.0, 8.0, 60)
    for ratio in (0.01, 1.0, 5.0):
        for mu in (0.1, 0.6, 2.5):
            delta = JointLogisticDP(ratio, mu).delta_at(epsilon)
            assert (np.diff(delta) <= 0.0).all()
            assert (delta >= gaussian_delta(epsilon, mu) * (1 - 1e-9) - 1e-300).all()
            assert (JointLogisticDP(1.3 * ratio, mu).delta_at(epsilon) >= delta).all()
            assert (JointLogisticDP(ratio, 1.1 * mu).delta_at(epsilon) >= delta).all()
            capped = JointLogisticDP(ratio, mu, 0.8).delta_at(epsilon)
            assert (capped <= delta * (1 + 1e-5)).all()
            assert (capped >= gaussian_delta(epsilon, 0.8 * mu) * (1 - 1e-9) - 1e-300).all()


def test_gaussian_noise_is_never_called_pure():
    for profile in (
        JointLogisticDP(1.0, 0.1),
        gaussian_profile(
            LogisticLoss(0.5), x_norm=1.0, penalty=1.0, scale=10.0, adjacency="add-remove"
        ),
    ):
        assert profile.epsilon_at(0.0) == math.inf
        assert (profile.delta_at([1.0, 10.0, 1e3]) > 0.0).all()


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
def test_the_true_delta_of_three_classes_is_never_above_the_claim(adjacency, repetitions):
    rng = np.random.default_rng(11)
    for _ in range(repetitions(100, 3)):
        loss, neighbours = random_classes(rng, adjacency, x_norm=2.0)
        epsilon = rng.choice([0.5, 1.0, 3.0])
        guarantee = ApproxDP(epsilon, 10.0 ** rng.uniform(-6, -2), adjacency=adjacency)
        noise = calibrate(
            loss,
            x_norm=2.0,
            penalty=4.0 / epsilon * 10.0 ** rng.uniform(-0.3, 1.0),
            guarantee=guarantee,
        )
        epsilons = epsilon * np.array([0.4, 0.7, 1.0, 1.5])
        claim = noise.guarantee.delta_at(epsilons)
        assert (neighbours.delta(loss, noise, epsilons) <= claim * 1.01 + 1e-12).all()


@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_the_true_pure_loss_of_three_classes_is_never_above_epsilon(adjacency, repetitions):
    rng = np.random.default_rng(12)
    for _ in range(repetitions(100, 8)):
        loss, neighbours = random_classes(rng, adjacency, x_norm=2.0)
        epsilon = rng.choice([0.5, 1.0, 3.0])
        noise = calibrate(
            loss,
            x_norm=2.0,
            penalty=4.0 / epsilon * 10.0 ** rng.uniform(-0.3, 1.0),
            guarantee=ApproxDP(epsilon, adjacency=adjacency),
        )
        assert neighbours.pure_loss(loss, noise) <= epsilon


@pytest.mark.parametrize(
    "adjacency, here", [("replace-one", ((2.0, 1),)), ("add-remove", ())], ids=ADJACENCIES
)
def test_halved_noise_of_three_classes_is_caught(adjacency, here):
    # With a margin the residuals are large near zero, where a large penalty keeps the scores.
    loss = SoftmaxLoss(3, margin=1.0, temperature=0.5)
    neighbours = Neighbours(here, ((-2.0, 1),))
    for delta in (0.0, 1e-4):
        guarantee = ApproxDP(1.0, delta, adjacency=adjacency)
        noise = calibrate(loss, x_norm=2.0, penalty=80.0, guarantee=guarantee)
        halved = replace(noise, scale=noise.scale / 2)
        if delta:
            assert neighbours.delta(loss, noise, [1.0]) <= delta
            assert neighbours.delta(loss, halved, [1.0]) > 5.0 * delta
        else:
            assert 0.7 < neighbours.pure_loss(loss, noise) <= 1.0
            assert neighbours.pure_loss(loss, halved) > 1.3


@pytest.mark.parametrize("temperature", [1.0, 0.3])
def test_one_record_moves_the_determinant_by_no_more_than_declared(temperature, repetitions):
    rng = np.random.default_rng(13)

    def curvature(p):
        return (np.diag(p) - np.outer(p, p)) / temperature

    for _ in range(repetitions(3000, 300)):
        n_classes, d = rng.integers(2, 7), rng.integers(1, 4)
        x_norm, penalty = 10.0 ** rng.uniform(-1, 1, 2)
        hessian = penalty * np.eye(n_classes * d)
        for _ in range(rng.integers(0, 4)):
            x = rng.normal(size=d)
            p = rng.dirichlet(np.full(n_classes, 10.0 ** rng.uniform(-1, 1)))
            hessian += np.kron(curvature(p), np.outer(x, x))
        x = rng.normal(size=d)
        x *= x_norm / np.linalg.norm(x)
        p = rng.dirichlet(np.full(n_classes, 10.0 ** rng.uniform(-1, 3)))
        added = np.kron(curvature(p), np.outer(x, x))
        change = np.linalg.slogdet(hessian + added)[1] - np.linalg.slogdet(hessian)[1]
        bound = SoftmaxLoss(n_classes, temperature=temperature).log_determinant(
            x_norm**2 / penalty
        )
        assert -1e-9 <= change <= bound + 1e-9

        # Even probabilities and no other record attain it.
        even = np.kron(curvature(np.full(n_classes, 1 / n_classes)), np.outer(x, x))
        alone = np.linalg.slogdet(np.eye(n_classes * d) + even / penalty)[1]
        assert_allclose(alone, bound, rtol=1e-7)


def test_the_gaussian_loss_of_a_gradient_is_largest_at_a_corner(repetitions):
    # Corners: zero, or a residual e_k - e_y, for one record or for each of two.
    rng = np.random.default_rng(14)
    for _ in range(repetitions(2000, 200)):
        n_classes, d = int(rng.integers(2, 6)), int(rng.integers(1, 4))
        loss = SoftmaxLoss(n_classes)
        (norm, count), *others = loss.gradient_corners()
        assert not others
        scale = 10.0 ** rng.uniform(-1, 1)
        b = scale * rng.normal(size=(n_classes, d))
        codes = rng.integers(0, n_classes, 2)
        rows = rng.normal(size=(2, d))
        scores = 10.0 ** rng.uniform(-1, 2) * rng.normal(size=(2, n_classes))
        eye = np.eye(n_classes)
        corners = [
            [np.zeros(n_classes), *(eye[k] - eye[y] for k in range(n_classes) if k != y)]
            for y in codes
        ]
        assert all(len(c) - 1 == count for c in corners)
        assert_allclose(np.linalg.norm(corners[0][1:], axis=1), norm)

        def privacy_loss(first, second, b=b, rows=rows, scale=scale):
            moved = b + np.outer(first, rows[0]) - np.outer(second, rows[1])
            return (np.sum(moved**2) - np.sum(b**2)) / (2 * scale**2)

        found = privacy_loss(*loss.residuals(scores, codes))
        largest = max(privacy_loss(r, s) for r in corners[0] for s in corners[1])
        assert found <= largest + 1e-9


@pytest.mark.parametrize("delta", [0.0, 1e-5])
@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
@pytest.mark.parametrize("loss", [LogisticLoss(), HuberHingeLoss(0.3), SoftmaxLoss(3)], ids=str)
def test_numbers_of_single_precision_end_the_search_for_a_scale(loss, adjacency, delta):
    # In single precision the bisection never got below a relative width of 1e-13.
    numbers = dict(x_norm=np.float32(1.5), penalty=np.float32(0.1))
    guarantee = ApproxDP(0.5, delta, adjacency=adjacency)
    law = calibrate(loss, guarantee=guarantee, **numbers)
    assert type(law.scale) is type(law.penalty) is float
    plain = {name: float(value) for name, value in numbers.items()}
    assert law == calibrate(loss, guarantee=guarantee, **plain)


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
