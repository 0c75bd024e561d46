"""What a guarantee for one record promises to users who have several."""

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats

from skdp.exceptions import NoConversionError
from skdp.privacy import (
    ZCDP,
    ApproxDP,
    BoundedRangeDP,
    GaussianDP,
    JointLogisticDP,
    MutualInformationPrivacy,
    RandomRunsDP,
    ShiftedGaussianDP,
    compose,
    parallel,
    user_guarantee,
)

EPSILONS = np.array([0.0, 0.1, 0.5, 1.0, 3.0, 8.0])
KINDS = {
    "pure": ApproxDP(0.3),
    "point": ApproxDP(0.3, 1e-6),
    "Gaussian": GaussianDP(0.2),
    "Gaussian point": GaussianDP(0.2).to_approx_dp(1e-6),
    "concentrated": ZCDP(0.02),
    "selections": BoundedRangeDP((0.1, 0.2)),
    "bounds and noise": BoundedRangeDP((0.1, 0.2), GaussianDP(0.2)).to_approx_dp(1e-6),
    "composition": compose([ApproxDP(0.1), GaussianDP(0.2), ApproxDP(0.05, 1e-7)]),
    "blocks": parallel([ApproxDP(0.1), GaussianDP(0.2)]),
    "pure blocks": parallel([ApproxDP(0.1), BoundedRangeDP((0.3,))]),
    "runs": RandomRunsDP(GaussianDP(0.1), eta=0.0, gamma=0.02),
    "pure runs": RandomRunsDP(ApproxDP(0.1), eta=0.0, gamma=0.02),
    "objective": ApproxDP(1.0, 1e-6, refined=JointLogisticDP(1.0, 0.2)),
    "information": MutualInformationPrivacy(0.01, GaussianDP(0.2)),
}
EVERY = pytest.mark.parametrize("kind", KINDS)


@EVERY
@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
def test_one_row_is_a_user(kind, adjacency):
    if adjacency == "add-remove" and kind != "Gaussian":
        return
    guarantee = KINDS[kind] if kind != "Gaussian" else GaussianDP(0.2, adjacency=adjacency)
    one = user_guarantee(guarantee, 1)
    assert (one.unit, one.adjacency) == ("user", guarantee.adjacency)
    assert_allclose(one.delta_at(EPSILONS), guarantee.delta_at(EPSILONS), rtol=1e-12)


@EVERY
def test_more_rows_cost_more_and_no_more_than_group_privacy(kind):
    guarantee, before = KINDS[kind], np.zeros(len(EPSILONS))
    for k in (1, 2, 5):
        of_users = user_guarantee(guarantee, k)
        profile = of_users.delta_at(EPSILONS)
        assert (profile >= before * (1 - 1e-9)).all()
        before = profile
        if isinstance(guarantee, ApproxDP) and kind != "objective":
            # Not worse than the textbook says of the point itself.
            delta = guarantee.delta * sum(math.exp(i * guarantee.epsilon) for i in range(k))
            assert of_users.delta_at(k * guarantee.epsilon * (1 + 1e-9)) <= delta * (1 + 1e-6)


def gaussian(mu):
    """Pairs that Gaussian noise makes of neighbours: densities at points, and their width."""
    x = np.linspace(-30.0, 30.0, 60_001)
    return stats.norm.pdf(x), stats.norm.pdf(x, loc=mu), x[1] - x[0]


@pytest.mark.parametrize("k", [2, 3, 7])
def test_what_is_promised_holds_of_mechanisms_that_attain_it(k):
    # A sum with noise, of which k records move k times as much.
    here, there, width = gaussian(0.2 * k)
    for guarantee in (GaussianDP(0.2), KINDS["Gaussian point"], ZCDP(0.02)):
        promised = user_guarantee(guarantee, k).delta_at(EPSILONS)
        true = [(np.maximum(here - math.exp(e) * there, 0.0)).sum() * width for e in EPSILONS]
        assert (np.array(true) <= promised + 1e-7).all()
        if isinstance(guarantee, GaussianDP):
            assert_allclose(true, promised, atol=1e-6)
    # Laplace noise, in the same way.
    promised = user_guarantee(ApproxDP(0.3), k)
    assert promised.epsilon == pytest.approx(0.3 * k)
    assert promised.delta_at(0.0) >= 1 - math.exp(-0.3 * k / 2) - 1e-12
    # A point that fails with its delta: then the next record is as free to fail.
    epsilon, delta = 0.3, 1e-3
    worst = user_guarantee(ApproxDP(epsilon, delta), k)
    chance = 0.0
    for _ in range(k):  # delta of the set, from world to world
        chance = math.exp(epsilon) * chance + delta
    assert worst.delta_at(k * epsilon * (1 + 1e-12)) == pytest.approx(chance, rel=1e-6)
    assert worst.delta_at(k * epsilon * (1 + 1e-12)) >= chance * (1 - 1e-9)


@pytest.mark.parametrize("k", [2, 4])
def test_ranges_of_selections_add_up(k):
    # Two candidates, of which k records move the odds by k ranges.
    epsilon = 0.4
    promised = user_guarantee(BoundedRangeDP((epsilon,)), k)
    assert promised.epsilons == pytest.approx((k * epsilon,))
    for start in np.linspace(-3.0, 3.0, 25):
        p, q = (1 / (1 + math.exp(-x)) for x in (start, start + k * epsilon))
        for e in EPSILONS:
            true = max(0.0, q - math.exp(e) * p) + max(0.0, (1 - q) - math.exp(e) * (1 - p))
            assert true <= promised.delta_at(e) + 1e-12


def test_a_point_keeps_its_delta_where_more_is_proven_behind_it():
    fit = ApproxDP(1.0, 1e-6, refined=ApproxDP(1.0, 1e-6).gaussian_target())
    four = user_guarantee(fit, 4)
    assert four.delta == 1e-6
    assert four.refined.mu == pytest.approx(4 * fit.refined.mu)
    assert four.epsilon == pytest.approx(four.refined.epsilon_at(1e-6))
    objective = user_guarantee(KINDS["objective"], 3)
    assert objective.delta == 1e-6 and 1.0 < objective.epsilon < math.inf
    assert objective.refined is None  # it is of one record
    behind = KINDS["objective"].refined
    each = objective.epsilon / 3
    chain = sum(math.exp(i * each) for i in range(3))
    assert behind.delta_at(each) * chain <= 1e-6 * (1 + 1e-9)
    # Without it, delta is larger.
    assert user_guarantee(ApproxDP(1.0, 1e-6), 2).delta == pytest.approx((1 + math.e) * 1e-6)


@pytest.mark.parametrize(
    "guarantee",
    [ApproxDP(9.0, 1e-2), JointLogisticDP(1.0, 0.2), ShiftedGaussianDP(0.1, ((0.1, 1),))],
)
def test_what_says_nothing_of_so_many_rows_is_refused(guarantee):
    with pytest.raises(NoConversionError, match="for 2 records"):
        user_guarantee(guarantee, 2)
    assert user_guarantee(guarantee, 1).unit == "user"
