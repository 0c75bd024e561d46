"""Selections by exponential mechanisms: their recursion against distributions that attain it."""

import itertools
import json
import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.special import log_ndtr
from scipy.stats import norm

from skdp.exceptions import BudgetExceededError, NoConversionError
from skdp.privacy import (
    ApproxDP,
    BoundedRangeDP,
    BudgetLedger,
    GaussianDP,
    Guarantee,
    JointLogisticDP,
    bounded_range_epsilon,
    compose,
    gaussian_mu,
)

ROUNDING = 1e-9


def gaussian(epsilon, mu):
    """Profile of a Gaussian for epsilon of both signs, from its definition."""
    with np.errstate(over="ignore"):
        second = np.exp(np.minimum(epsilon + log_ndtr(-mu / 2 - epsilon / mu), 0.0))
    return norm.cdf(mu / 2 - epsilon / mu) - second


def nothing(epsilon, _):
    """Profile of no release at all."""
    return np.maximum(0.0, -np.expm1(epsilon))


def heads(t, epsilon):
    """Probability of the loss t in the pair of losses t and t - epsilon."""
    return np.exp(t) * np.expm1(epsilon - t) / np.expm1(epsilon)


def adaptive(epsilons, e, then, mu, n):
    """Largest delta of an adversary who picks each t from n + 1 values, given the losses so far.

    A real adversary, hence a lower bound. Nothing is interpolated.
    """
    if not epsilons:
        return then(e, mu)
    t = np.linspace(0.0, epsilons[0], n + 1)
    p = heads(t, epsilons[0])
    near = adaptive(epsilons[1:], e[..., None] - t, then, mu, n)
    far = adaptive(epsilons[1:], e[..., None] - t + epsilons[0], then, mu, n)
    return (p * near + (1 - p) * far).max(axis=-1)


def product(epsilon, count, e, then, mu, share=0.5):
    """Delta of ``count`` pairs with the same t, by enumeration of the sum of their losses."""
    t = share * epsilon
    n_low = np.arange(count + 1)
    p = heads(t, epsilon)
    log_mass = np.array([math.log(math.comb(count, k)) for k in n_low])
    log_mass += (count - n_low) * math.log(p) + n_low * math.log1p(-p)
    loss = count * t - epsilon * n_low
    return np.exp(log_mass) @ then(np.subtract.outer(e, loss).T, mu)


@pytest.mark.parametrize("epsilon", [1e-8, 0.01, 0.3, 2.0, 8.0, 30.0])
def test_one_selection_is_the_worst_pair_exactly(epsilon):
    e = epsilon * np.array([0.0, 1e-3, 0.1, 0.5, 0.8])
    t = np.linspace(0.0, epsilon, 20_001)
    p = heads(t, epsilon)
    found = p * nothing(e[:, None] - t, 0) + (1 - p) * nothing(e[:, None] - t + epsilon, 0)
    claimed = BoundedRangeDP((epsilon,)).delta_at(e)
    np.testing.assert_array_less(found.max(axis=1) * (1 - 1e-12), claimed)
    np.testing.assert_allclose(claimed, found.max(axis=1), rtol=2e-5)
    assert BoundedRangeDP((epsilon,)).delta_at(epsilon * (1 + 1e-12)) == 0.0


@pytest.mark.parametrize(
    ("epsilons", "mu"),
    [
        ((0.2, 0.2), None),
        ((0.1, 0.7), None),
        ((0.7, 0.1), 0.4),
        ((0.3, 0.3, 0.3), 0.25),
        ((1.5, 0.2, 0.6), 1.0),
        ((4.0, 2.0), 0.5),
        ((0.01, 0.02, 0.005), 0.004),
    ],
)
def test_no_adaptive_adversary_is_above_and_a_fine_one_is_near(epsilons, mu):
    then, after = (nothing, None) if mu is None else (gaussian, GaussianDP(mu))
    scale = math.hypot(mu or 0.0, *epsilons)
    e = scale * np.array([0.0, 0.3, 1.0, 2.0])
    found = adaptive(epsilons, e, then, mu, 40 if len(epsilons) == 3 else 400)
    claimed = BoundedRangeDP(epsilons, after).delta_at(e)
    assert (claimed >= found * (1 - ROUNDING)).all()
    assert (claimed <= found * 1.003 + 1e-6).all()
    # Negative control: the recursion of smaller ranges is caught.
    less = BoundedRangeDP(tuple(0.98 * x for x in epsilons), after).delta_at(e)
    assert (less < found * (1 - ROUNDING)).any()


def exponential_mechanisms(seed, n_selections, n_outcomes, epsilon):
    """Laws of selections under two data sets, each a tree: the next depends on all outcomes."""
    for outcomes in itertools.product(range(n_outcomes), repeat=n_selections):
        p = q = 1.0
        for i, outcome in enumerate(outcomes):
            node = np.random.default_rng([seed, i, *outcomes[:i]])
            utility = node.normal(size=n_outcomes) * node.choice([0.5, 2.0, 8.0])
            change = node.choice([-1.0, 0.0, 1.0], n_outcomes)
            first = np.exp(epsilon / 2 * (utility - utility.max()))
            second = np.exp(epsilon / 2 * (utility + change - utility.max()))
            p *= first[outcome] / first.sum()
            q *= second[outcome] / second.sum()
        yield p, math.log(p / q)


@pytest.mark.parametrize("seed", range(6))
def test_exponential_mechanisms_before_a_gaussian(seed):
    # Utilities of sensitivity 1, exp(epsilon u / 2), three outcomes, both orders of the data.
    epsilon, mu = [0.3, 1.0, 2.5][seed % 3], [0.2, 0.8][seed % 2]
    mass, loss = np.array(list(exponential_mechanisms(seed, 4, 3, epsilon))).T
    assert math.fsum(mass) == pytest.approx(1.0)
    e = np.array([0.0, 0.1, 0.5, 1.0, 2.0, 4.0])
    claimed = BoundedRangeDP((epsilon,) * 4, GaussianDP(mu)).delta_at(e)
    forward = mass @ gaussian(np.subtract.outer(e, loss).T, mu)
    backward = (mass * np.exp(-loss)) @ gaussian(np.add.outer(e, loss).T, mu)
    assert (forward <= claimed).all()
    assert (backward <= claimed).all()


def test_two_outcomes_whose_utilities_move_apart_attain_it():
    # u = (0, 1) against (1, 0): losses epsilon/2 and -epsilon/2 with their odds.
    epsilon, e = 0.4, np.array([0.0, 0.5, 1.0])
    found = product(epsilon, 12, e, gaussian, 0.5)
    claimed = BoundedRangeDP((epsilon,) * 12, GaussianDP(0.5)).delta_at(e)
    assert (found <= claimed).all()
    assert (found >= 0.95 * claimed).all()


@pytest.mark.parametrize("total", [0.1, 0.5, 1.0, 3.0])
@pytest.mark.parametrize("count", [20, 60])
def test_a_gaussian_beside_selections_is_nearly_as_planned(total, count):
    mu = gaussian_mu(epsilon=total, delta=1e-5)
    selections = BoundedRangeDP((2 * math.sqrt(0.1 / count) * mu,) * count)
    plan = math.sqrt(0.9) * mu

    def delta(share):
        return selections.followed_by(GaussianDP(share * plan)).delta_at(total)

    assert delta(0.997) <= 1e-5
    assert delta(1.01) > 1e-5
    # By zCDP, next to a seventh of the squared mu would be lost.
    gaussian_alone = math.sqrt(2 * selections.to_zcdp().rho)
    assert gaussian_alone == pytest.approx(math.sqrt(0.1) * mu)


def test_failures_beside_selections_add_exactly():
    fail = ApproxDP(0.0, 1e-6)
    selections, e = (0.03,) * 40, np.linspace(0.0, 3.0, 13)
    lost = -math.expm1(5 * math.log1p(-1e-6))
    alone = BoundedRangeDP(selections, GaussianDP(0.25))
    then = compose([GaussianDP(0.25), *[fail] * 5])
    both = BoundedRangeDP(selections, then)
    np.testing.assert_allclose(
        both.delta_at(e), lost + (1 - lost) * alone.delta_at(e), rtol=1e-9, atol=1e-16
    )
    assert both.epsilon_at(1e-5) == pytest.approx(
        alone.epsilon_at((1e-5 - lost) / (1 - lost)), rel=1e-9
    )
    assert both.epsilon_at(4e-6) == math.inf
    assert (both.delta_at(np.linspace(0.0, 50.0, 5001)) >= lost * (1 - 1e-12)).all()
    # As one part among others it is still known how large it is.
    total = compose([both, GaussianDP(0.1), ApproxDP(0.05)])
    assert alone.epsilon_at(1e-5) < total.epsilon_at(1e-5) < alone.epsilon_at(1e-5) + 0.3


def test_order_is_told_and_following_ones_append():
    one = BoundedRangeDP((0.1, 0.2))
    assert one.followed_by(BoundedRangeDP((0.3,))).epsilons == (0.1, 0.2, 0.3)
    both = one.followed_by(GaussianDP(0.3)).followed_by(GaussianDP(0.4))
    assert both.then.mu == pytest.approx(0.5)
    # After what followed, selections may depend on it: the order-free composition.
    later = both.followed_by(BoundedRangeDP((0.3,), GaussianDP(0.1)))
    assert later.epsilons == (0.1, 0.2)
    first = BoundedRangeDP((0.1, 0.2, 0.3), GaussianDP(math.hypot(0.5, 0.1)))
    assert later.delta_at(0.5) >= first.delta_at(0.5) * (1 - ROUNDING)
    assert later.delta_at(0.5) == pytest.approx(first.delta_at(0.5), rel=0.03)
    assert one.followed_by(ApproxDP(0.1).with_caveats("why")).caveats == ("why",)


def test_pure_selections_are_pure_and_add_as_written():
    assert BoundedRangeDP((0.1,) * 3).epsilon_at(0.0) == 0.3
    assert BoundedRangeDP((0.1, 0.2), ApproxDP(0.3)).epsilon_at(0.0) == 0.6
    assert BoundedRangeDP((0.1,), GaussianDP(0.1)).epsilon_at(0.0) == math.inf
    total = compose([BoundedRangeDP((0.1,)), BoundedRangeDP((0.2,)), ApproxDP(0.3)])
    assert isinstance(total, ApproxDP)
    assert (total.epsilon, total.delta) == (0.6, 0.0)
    pure = compose([ApproxDP(0.1), ApproxDP(0.2), ApproxDP(0.3)])
    assert total.delta_at(0.3) < pure.delta_at(0.3)
    assert total.to_zcdp().rho == pytest.approx((0.01 + 0.04) / 8 + 0.09 / 2)
    assert BoundedRangeDP((0.4,)).mutual_information() == pytest.approx(0.02)


def test_points_and_selections_add_as_written_where_that_fits():
    # In floats 0.7 - 0.6 is less than 0.1.
    ledger = BudgetLedger(epsilon=0.7, delta=1e-5)
    ledger.charge(ApproxDP(0.1, 1e-5))
    ledger.charge(BoundedRangeDP((0.6,)))
    with pytest.raises(BudgetExceededError):
        ledger.charge(BoundedRangeDP((1e-3,)))


def test_approximate_ledger_keeps_them_whole(tmp_path):
    ledger = BudgetLedger(tmp_path / "budget.db", epsilon=1.2, delta=1e-5)
    then = compose([GaussianDP(0.2), ApproxDP(0.0, 1e-7)])
    charged = BoundedRangeDP((0.01,) * 40, then, mechanism="selections").with_caveats("why")
    ledger.charge(charged)
    ledger.charge(GaussianDP(0.05))
    again = BudgetLedger(tmp_path / "budget.db")
    assert again.history()[0].guarantee == charged
    spent = again.spent()
    assert spent.caveats == ("why",)
    assert charged.epsilon_at(1e-5) < spent.epsilon < 1.05 * charged.epsilon_at(1e-5)
    whole = again.remaining()
    with pytest.raises(BudgetExceededError):
        again.charge(BoundedRangeDP((2 * whole.epsilon + 0.5,)))
    # A range counts for less than a pure release of the same epsilon.
    again.charge(BoundedRangeDP((whole.epsilon,)))
    assert again.remaining().epsilon > 0.01


def test_plain_values_restore_it():
    guarantee = BoundedRangeDP(
        (0.1, Fraction(1, 5), np.float64(0.3)),
        compose([GaussianDP(0.2), ApproxDP(0.1, 1e-6)]),
        mechanism="a",
        source="b",
        caveats=("c",),
    )
    assert Guarantee.from_dict(json.loads(json.dumps(guarantee.to_dict()))) == guarantee
    assert all(type(epsilon) is float for epsilon in guarantee.epsilons)
    assert "3 selections (1 of range 0.1, 1 of range 0.2, 1 of range 0.3), followed by" in str(
        guarantee
    )
    assert BoundedRangeDP(()).epsilon_at(0.0) == 0.0
    assert str(BoundedRangeDP(())).startswith("0 selections (none)")
    assert str(BoundedRangeDP((0.1,))).startswith("1 selection (1 of range 0.1)")


def test_replacing_is_removing_and_adding():
    for then in (None, GaussianDP(0.2, adjacency="add-remove")):
        guarantee = BoundedRangeDP((0.1, 0.2), then, adjacency="add-remove")
        twice = guarantee.to_replace_one()
        assert twice.epsilons == (0.2, 0.4)
        assert twice.adjacency == "replace-one"
        assert twice.to_replace_one() is twice
    unknown = JointLogisticDP(0.1, 0.2, adjacency="add-remove")
    with pytest.raises(NoConversionError):
        BoundedRangeDP((0.1,), unknown, adjacency="add-remove").to_replace_one()


@pytest.mark.parametrize("epsilons", [0.1, (-0.1,), (math.nan,), (math.inf,), "ab", ("a",), {0.1}])
def test_ranges_are_checked(epsilons):
    with pytest.raises(ValueError, match="epsilons must be finite non-negative numbers"):
        BoundedRangeDP(epsilons)


def test_what_follows_is_checked():
    with pytest.raises(ValueError, match="then must be a guarantee"):
        BoundedRangeDP((0.1,), 0.2)
    with pytest.raises(ValueError, match="then must have adjacency"):
        BoundedRangeDP((0.1,), GaussianDP(0.2, adjacency="add-remove"))
    with pytest.raises(ValueError, match="then must have unit"):
        BoundedRangeDP((0.1,), GaussianDP(0.2, unit="user"))


@pytest.mark.parametrize("count", [1, 3, 40])
@pytest.mark.parametrize(("epsilon", "delta"), [(0.0, 0.01), (0.1, 1e-5), (3.0, 1e-9), (40, 1e-3)])
def test_common_range_is_the_largest(epsilon, delta, count):
    each = bounded_range_epsilon(ApproxDP(epsilon, delta), count)
    assert BoundedRangeDP((each,) * count).delta_at(float(epsilon)) <= delta
    assert BoundedRangeDP((each * (1 + 1e-5),) * count).delta_at(float(epsilon)) > delta
    assert each * count >= epsilon
