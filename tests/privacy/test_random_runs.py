"""The best of a random number of runs: the bound against laws that are enumerated."""

import json
import math

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.stats import norm

from skdp.privacy import (
    ZCDP,
    ApproxDP,
    BudgetLedger,
    GaussianDP,
    Guarantee,
    RandomRunsDP,
    compose,
    parallel,
    random_runs_gamma,
    random_runs_mean,
)

LAWS = [(0.0, 0.02), (1.0, 0.1), (-0.5, 0.05), (3.0, 0.2), (-0.9, 0.3), (0.0, 0.7)]


def probabilities(eta, gamma):
    """P(K = 1), P(K = 2), ... from the definition of the law, to the last that matters."""
    weights, k, rising = [], 1, 1.0
    while k < 50 or weights[-1] > 1e-18 * max(weights):
        weights.append((1 - gamma) ** k * rising)
        rising *= (k + eta) / (k + 1)
        k += 1
    return np.array(weights) / math.fsum(weights)


def best(law, order, counts):
    """Law of the best of a random number of runs, by the sum over that number."""
    below = np.concatenate([[0.0], np.cumsum(law[order])])
    below /= below[-1]
    powers = np.zeros_like(below)
    for k in range(len(counts), 0, -1):  # sum of P(K = k) below^k
        powers = (powers + counts[k - 1]) * below
    won = np.empty_like(law)
    won[order] = np.diff(powers)
    return won


def hockey_stick(p, q, epsilon):
    return max(np.maximum(a - math.exp(epsilon) * b, 0.0).sum() for a, b in ((p, q), (q, p)))


def coins(epsilon, count):
    """Randomised responses, as one law of their outcomes and its neighbour."""
    p = q = np.ones(1)
    share = 1 / (1 + math.exp(-epsilon))
    for _ in range(count):
        p = np.outer(p, [share, 1 - share]).ravel()
        q = np.outer(q, [1 - share, share]).ravel()
    return p, q


def gaussians(mu, n=4001):
    """Two normal laws on cells: a post-processing of Gaussian noise."""
    edges = np.concatenate([[-np.inf], np.linspace(-9.0, 9.0 + mu, n), [np.inf]])
    return np.diff(norm.cdf(edges)), np.diff(norm.cdf(edges - mu))


def orders(p, q):
    """Which outcomes are better: by their loss, in both directions, and by nothing."""
    loss = np.log(np.maximum(p, 1e-300) / np.maximum(q, 1e-300))
    yield np.argsort(loss, kind="stable")
    yield np.argsort(-loss, kind="stable")
    yield np.random.default_rng(0).permutation(len(p))
    yield np.argsort(np.abs(loss), kind="stable")
    yield np.argsort(-np.abs(loss - 0.5), kind="stable")


@pytest.mark.parametrize(("eta", "gamma"), LAWS)
def test_the_mean_is_that_of_the_law(eta, gamma):
    chances = probabilities(eta, gamma)
    mean = chances @ np.arange(1, len(chances) + 1)
    assert random_runs_mean(eta, gamma) == pytest.approx(mean, rel=1e-9)
    found = random_runs_gamma(mean, eta)
    assert found == pytest.approx(gamma, rel=1e-9)
    assert random_runs_mean(eta, found) <= mean


@pytest.mark.parametrize(("eta", "gamma"), LAWS)
@pytest.mark.parametrize("each", [0.05, 0.3, 1.2])
def test_pure_runs_are_never_above_the_bound(eta, gamma, each):
    p, q = coins(each, 6)
    run = compose([ApproxDP(each)] * 6)
    claimed = RandomRunsDP(run, eta, gamma)
    counts = probabilities(eta, gamma)
    worst = 0.0
    for order in orders(p, q):
        won, other = best(p, order, counts), best(q, order, counts)
        for e in each * np.array([0.0, 1.0, 3.0, 6.0, 9.0, 12.0, 18.0]):
            assert hockey_stick(won, other, e) <= claimed.delta_at(e) * (1 + 1e-9) + 1e-12
        worst = max(worst, np.abs(np.log(won / other)).max())
    assert worst <= claimed.epsilon_at(0.0) * (1 + 1e-9)
    assert claimed.epsilon_at(0.0) == pytest.approx((2 + eta) * 6 * each)
    if gamma <= 0.1 and each <= 0.3:  # one run costs less than the best of many
        assert worst > 1.05 * 6 * each


@pytest.mark.parametrize(("eta", "gamma"), LAWS)
@pytest.mark.parametrize("mu", [0.1, 0.5, 2.0])
def test_gaussian_runs_are_never_above_the_bound(eta, gamma, mu):
    p, q = gaussians(mu)
    claimed = RandomRunsDP(GaussianDP(mu), eta, gamma)
    counts = probabilities(eta, gamma)
    for order in orders(p, q):
        won, other = best(p, order, counts), best(q, order, counts)
        for delta in (0.1, 1e-3, 1e-5):
            assert hockey_stick(won, other, claimed.epsilon_at(delta)) <= delta * (1 + 1e-6)


def test_the_bound_of_a_known_case():
    # By exact computation the worst order of outcomes reaches 2.28; one run is at 1.99, and
    # accounting by moments at 3.72.
    claimed = RandomRunsDP(GaussianDP(0.5), 0.0, random_runs_gamma(12.5, 0.0))
    assert claimed.epsilon_at(1e-5) == pytest.approx(3.01, abs=0.01)
    p, q = gaussians(0.5)
    order = next(orders(p, q))
    counts = probabilities(0.0, claimed.gamma)
    won, other = best(p, order, counts), best(q, order, counts)
    exact = brentq(lambda e: hockey_stick(won, other, e) - 1e-5, 1.0, 4.0)
    assert exact == pytest.approx(2.28, abs=0.01)


def test_a_run_that_may_fail_pays_for_it_as_often_as_it_is_made():
    # With probability delta all is told, and the runs that tell are the better ones.
    delta, gamma = 1e-4, 0.05
    run = ApproxDP(0.0, delta)
    claimed = RandomRunsDP(run, 1.0, gamma)
    counts = probabilities(1.0, gamma)
    p, q = np.array([1 - delta, delta, 0.0]), np.array([1 - delta, 0.0, delta])
    order = np.array([0, 2, 1])
    won, other = best(p, order, counts), best(q, order, counts)
    found = hockey_stick(won, other, 0.01)
    assert claimed.delta_at(0.01) >= found > 0.9 * delta * claimed.n_runs_mean


@pytest.mark.parametrize("guarantee", [GaussianDP(0.3), ApproxDP(0.2), ZCDP(0.02)])
def test_epsilon_and_delta_are_each_others_inverse_rounded_up(guarantee):
    claimed = RandomRunsDP(guarantee, 0.0, 0.05)
    for delta in (0.1, 1e-3, 1e-6, 1e-9):
        epsilon = claimed.epsilon_at(delta)
        assert claimed.delta_at(epsilon) <= delta * (1 + 1e-9)
        assert epsilon == 0.0 or claimed.delta_at(epsilon * (1 - 1e-6)) > delta
    places = np.linspace(0.0, 3.0, 50)
    assert (np.diff(claimed.delta_at(places)) <= 0.0).all()
    assert (claimed.delta_at(places) >= guarantee.delta_at(places)).all()


def test_a_search_composes_with_what_follows_and_keeps_caveats():
    fit, score, last = GaussianDP(0.1, caveats=("a",)), GaussianDP(0.12), GaussianDP(0.2)
    gamma = random_runs_gamma(10.0, 0.0)
    blocks = [compose([RandomRunsDP(run, 0.0, gamma), last]) for run in (fit, score)]
    total = parallel(blocks)
    assert total.caveats == ("a",)
    alone = RandomRunsDP(score, 0.0, gamma)
    epsilon = total.epsilon_at(1e-5)
    assert max(alone.epsilon_at(1e-5), last.epsilon_at(1e-5)) < epsilon
    assert epsilon < alone.epsilon_at(5e-6) + last.epsilon_at(5e-6)
    assert Guarantee.from_dict(json.loads(json.dumps(total.to_dict()))) == total
    ledger = BudgetLedger(epsilon=epsilon * (1 + 1e-6), delta=1e-5)
    ledger.charge(total)
    assert ledger.spent().epsilon == pytest.approx(epsilon, rel=1e-3)
    with pytest.raises(Exception, match="Asked"):
        ledger.charge(GaussianDP(0.2))


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"run": 1.0}, "run must be a guarantee"),
        ({"run": GaussianDP(1.0, unit="user")}, "run must have unit 'record'"),
        ({"eta": -1.0}, "eta must be a finite number larger than -1"),
        ({"eta": math.nan}, "eta must be a finite number larger than -1"),
        ({"gamma": 0.0}, r"gamma must be in \(0, 1\)"),
        ({"gamma": 1.0}, r"gamma must be in \(0, 1\)"),
    ],
)
def test_what_is_no_law_is_refused(wrong, message):
    with pytest.raises(ValueError, match=message):
        RandomRunsDP(**{"run": GaussianDP(0.1), "eta": 0.0, "gamma": 0.1} | wrong)


def test_conversions_are_those_of_the_runs():
    added = {"adjacency": "add-remove", "unit": "user"}
    runs = RandomRunsDP(ApproxDP(0.2, **added), 1.0, 0.1, **added)
    assert runs.to_replace_one().epsilon_at(0.0) == pytest.approx(1.2)
    assert runs.to_replace_one().adjacency == "replace-one"
    assert runs.to_zcdp().rho == pytest.approx(0.6**2 / 2)
    assert runs.to_approx_dp(1e-6).epsilon <= 0.6
    assert "The best of 10 runs in the mean" in str(runs)
    twice = {
        RandomRunsDP(GaussianDP(0.1), 0, 0.1)._plain(),
        RandomRunsDP(GaussianDP(0.1), 0.0, 0.1),
    }
    assert len(twice) == 1
