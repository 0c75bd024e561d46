"""Mutual information as a guarantee: what adds up, and what it rests on."""

import itertools
import json
import math
import pickle
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import special

from skdp.exceptions import BudgetExceededError
from skdp.privacy import (
    ZCDP,
    ApproxDP,
    BudgetLedger,
    ComposedDP,
    GaussianDP,
    Guarantee,
    MutualInformationPrivacy,
    compose,
)

GAUSSIAN = MutualInformationPrivacy(0.1, GaussianDP(0.9), unit="user", mechanism="noise")
PURE = MutualInformationPrivacy(0.2, ApproxDP(1.3), unit="user", source="a book")
KINDS = {
    "gaussian": GAUSSIAN,
    "pure": PURE,
    "three gaussian": replace(GAUSSIAN, contributions=3),
    "three pure": replace(PURE, contributions=3),
    "nothing": MutualInformationPrivacy(0.0, GaussianDP(0.0), unit="user"),
}
every_kind = pytest.mark.parametrize("guarantee", KINDS.values(), ids=KINDS)
EPSILONS = np.array([0.0, 0.1, 0.5, 1.0, 3.0, 3.9, 4.0])


@every_kind
def test_contributions_add_up_as_composition_does(guarantee):
    one = replace(guarantee, contributions=1)
    for k in (1, 2, 7):
        several = replace(guarantee, contributions=k)
        composed = compose([one] * k)
        assert_allclose(several.mutual_information(), k * one.nats, rtol=1e-14)
        assert_allclose(composed.mutual_information(), k * one.nats, rtol=1e-14)
        for part in (several, composed):
            assert isinstance(part, MutualInformationPrivacy)
            plain = compose([guarantee.local] * k)
            assert part.epsilon_at(0.0) == plain.epsilon_at(0.0)
            assert (part.delta_at(EPSILONS) >= plain.delta_at(EPSILONS) - 1e-11).all()
            if isinstance(guarantee.local, GaussianDP):
                assert_allclose(part.delta_at(EPSILONS), plain.delta_at(EPSILONS), atol=1e-11)
            assert part.unit == "user" and part.adjacency == "replace-one"
    assert isinstance(several.differential_privacy(), type(guarantee.local))


@every_kind
def test_the_worst_case_is_that_of_all_contributions(guarantee):
    worst = guarantee.differential_privacy()
    assert not isinstance(worst, MutualInformationPrivacy)
    assert worst.unit == guarantee.unit and worst.mechanism == guarantee.mechanism
    assert_allclose(guarantee.delta_at(EPSILONS), worst.delta_at(EPSILONS), rtol=0)
    for delta in (0.0, 1e-6, 0.1):
        assert guarantee.epsilon_at(delta) == worst.epsilon_at(delta)
    assert guarantee.to_zcdp() == worst.to_zcdp()
    assert guarantee.to_approx_dp(1e-6).delta_at(9.0) <= 1e-6


def test_mutual_information_is_not_what_a_profile_is_made_of():
    """Whatever the nats, the profile is that of the worst case."""
    for nats in (0.0, 1e-9, 5.0):
        guarantee = MutualInformationPrivacy(nats, GaussianDP(0.9))
        assert guarantee.delta_at(0.5) == GaussianDP(0.9).delta_at(0.5)


def test_composition_with_other_guarantees_keeps_the_worst_case_only():
    whole = compose([GAUSSIAN, GaussianDP(0.4, unit="user")])
    assert type(whole) is GaussianDP
    assert_allclose(whole.mu, math.hypot(0.9, 0.4), rtol=1e-12)
    whole = compose([replace(GAUSSIAN, contributions=2), PURE])
    assert type(whole) is ComposedDP
    plain = compose([GaussianDP(0.9), GaussianDP(0.9), ApproxDP(1.3)])
    assert_allclose(whole.delta_at(EPSILONS), plain.delta_at(EPSILONS), rtol=1e-9, atol=1e-12)
    whole = compose([replace(PURE, contributions=2), ApproxDP(0.4, unit="user")])
    assert type(whole) is ApproxDP and whole.epsilon == 3.0
    assert_allclose(compose([GAUSSIAN, replace(GAUSSIAN, nats=0.3)]).mutual_information(), 0.4)


def test_the_ledger_takes_it():
    ledger = BudgetLedger(epsilon=3.0, delta=0.0)
    ledger.charge(PURE)
    ledger.charge(replace(PURE, nats=7.0))
    with pytest.raises(BudgetExceededError):
        ledger.charge(PURE)
    assert ledger.spent().epsilon == 2.6
    assert [record.guarantee for record in ledger.history()] == [PURE, replace(PURE, nats=7.0)]
    ledger = BudgetLedger(epsilon=3.0, delta=1e-3)
    ledger.charge(replace(GAUSSIAN, local=GaussianDP(0.3), contributions=4))
    with pytest.raises(BudgetExceededError):
        ledger.charge(replace(GAUSSIAN, local=GaussianDP(0.3), contributions=40))
    assert_allclose(ledger.spent().epsilon, GaussianDP(0.6).epsilon_at(1e-3), rtol=1e-9)


@every_kind
def test_a_dictionary_of_plain_values_restores_it(guarantee):
    text = json.dumps(guarantee.to_dict(), allow_nan=False)
    restored = Guarantee.from_dict(json.loads(text))
    assert restored == guarantee and hash(restored) == hash(guarantee)
    assert isinstance(restored.contributions, int) and restored.local == guarantee.local
    assert str(restored) == str(guarantee)
    assert pickle.loads(pickle.dumps(guarantee)) == guarantee


@pytest.mark.parametrize(
    "options, message",
    [
        (dict(nats=-0.1), "nats must be a non-negative, finite number; got -0.1."),
        (dict(nats=math.nan), "nats must be a non-negative, finite number; got nan."),
        (dict(nats=math.inf), "nats must be a non-negative, finite number; got inf."),
        (dict(nats="1"), "nats must be a non-negative, finite number; got '1'."),
        (dict(contributions=0), "contributions must be a positive int; got 0."),
        (dict(contributions=1.0), "contributions must be a positive int; got 1.0."),
        (dict(contributions=True), "contributions must be a positive int; got True."),
        (dict(local=0.5), "local must be a GaussianDP or a pure ApproxDP; got 0.5."),
        (dict(local=ZCDP(0.5)), "local must be a GaussianDP or a pure ApproxDP; got ZCDP"),
        (dict(local=ApproxDP(0.5, 1e-6)), "local must be a GaussianDP or a pure ApproxDP; got "),
        (dict(adjacency="add-remove"), "adjacency must be 'replace-one'"),
        (dict(local=GaussianDP(0.5, adjacency="add-remove")), "adjacency must be 'replace-one'"),
        (dict(adjacency="other"), "adjacency must be one of"),
    ],
    ids=str,
)
def test_bad_values_are_refused_by_name(options, message):
    with pytest.raises(ValueError) as error:
        MutualInformationPrivacy(**{"nats": 0.1, "local": GaussianDP(0.5), **options})
    assert str(error.value).startswith(message)


# Why contributions add up: two answers of one user, the second chosen after the first


def two_answers(first, second, probabilities, sigma):
    """I(user; answers), the second query a function of the sign of the first answer.

    Parameters
    ----------
    first : ndarray of shape (n_users,)
        Answers of each kind of user without noise.

    second : ndarray of shape (2, n_users)
        The same, where the first noisy answer was negative, or positive.
    """
    reach = 1.0 + 9 * sigma
    z = np.linspace(-reach, reach, 201)
    z = (z[1:] + z[:-1]) / 2
    width = z[1] - z[0]

    def log_densities(means):
        return -((z - means[:, np.newaxis]) ** 2) / (2 * sigma**2) - math.log(
            sigma * math.sqrt(2 * math.pi)
        )

    one, total = log_densities(np.asarray(first)), 0.0
    for branch, means in zip((z < 0, z > 0), second, strict=True):
        joint = one[:, branch, np.newaxis] + log_densities(np.asarray(means))[:, np.newaxis, :]
        mean = special.logsumexp(joint, axis=0, b=np.reshape(probabilities, (-1, 1, 1)))
        for p, law in zip(probabilities, joint, strict=True):
            total += p * (np.exp(law) * (law - mean)).sum() * width**2
    return total


@pytest.mark.parametrize("nats", [0.02, 0.3])
def test_two_contributions_leak_at_most_twice_as_much_however_they_are_chosen(nats):
    sigma = 1.0 / math.sqrt(math.expm1(2 * nats))  # of capacity `nats` for answers in [-1, 1]
    told = MutualInformationPrivacy(nats, GaussianDP(2 / sigma), contributions=2)
    best = 0.0
    # Four kinds of users, answers at the ends: all first questions, and all pairs of second ones.
    ends = list(itertools.product([-1.0, 1.0], repeat=4))[:8]  # up to the sign
    even = np.full(4, 0.25)
    for first, low, high in itertools.product(ends[3:6:2], ends, ends[::2]):
        best = max(best, two_answers(first, (low, high), even, sigma))
    assert best <= told.mutual_information()
    assert best >= {0.02: 0.99, 0.3: 0.9}[nats] * told.mutual_information()
    # One alone leaks at most half; the same answer twice less than two.
    same = np.array([-1.0, -1.0, 1.0, 1.0])
    again = two_answers(same, (same, same), even, sigma)
    constant = two_answers(same, (np.ones(4), np.ones(4)), even, sigma)
    assert constant <= nats * (1 + 1e-6)
    assert constant < again < 2 * constant


@pytest.mark.parametrize("k", [1, 2, 5])
def test_the_worst_case_of_repeated_answers_is_exact(k):
    """The same worst record k times: the mean of the answers is one normal draw."""
    told = replace(GAUSSIAN, contributions=k)
    assert_allclose(told.to_gdp().mu, 0.9 * k / math.sqrt(k), rtol=1e-14)
    assert Fraction(replace(PURE, contributions=k).epsilon_at(0.0)) <= Fraction(13 * k, 10) * (
        1 + Fraction(1, 2**52)
    )


def test_a_sentence_tells_both_promises_apart():
    text = str(replace(GAUSSIAN, contributions=3, nats=math.log(2), source="theorem 1"))
    assert text == (
        "At most 2.07944 nats (3 bits) of mutual information, 3 contributions, which alone is an "
        "average-case promise; in the worst case local 1.55885-Gaussian differential privacy when "
        "replacing one user, by noise [theorem 1]."
    )
    text = str(PURE)
    assert "contributions" not in text and "1.3-differential privacy (pure)" in text
