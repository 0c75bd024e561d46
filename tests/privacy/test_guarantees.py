"""Guarantees are immutable values, and every number they state is on the safe side."""

import copy
import json
import math
import pickle
import subprocess
import sys
from dataclasses import FrozenInstanceError, fields, replace

import mpmath
import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats

from skdp.exceptions import NoConversionError
from skdp.privacy import (
    ZCDP,
    ApproxDP,
    GaussianDP,
    Guarantee,
    JointLogisticDP,
    MutualInformationPrivacy,
    ShiftedGaussianDP,
    compose,
)

KINDS = {
    "pure": ApproxDP(1.0),
    "approximate": ApproxDP(1.0, 1e-5),
    "perfect": ApproxDP(0.0),
    "refined": ApproxDP(2.0, 1e-5, refined=GaussianDP(0.5)),
    "gaussian": GaussianDP(0.7),
    "zcdp": ZCDP(0.2),
    "shifted": ShiftedGaussianDP(0.3, ((0.5, 1.0), (0.2, 2.0))),
    "composed": compose([ApproxDP(0.4), ApproxDP(0.2, 1e-6), GaussianDP(0.3)]),
    "composed pure": compose([ApproxDP(0.4), ApproxDP(0.2)]),
    "with caveats": ApproxDP(2.0, 1e-5, refined=GaussianDP(0.5), caveats=["a", "b"]),
}
every_kind = pytest.mark.parametrize("guarantee", KINDS.values(), ids=KINDS)


def rewritten(guarantee, **texts):
    """``guarantee`` with other texts, also in what stands behind it."""
    if getattr(guarantee, "refined", None) is not None:
        texts["refined"] = replace(guarantee.refined, **texts)
    return replace(guarantee, **texts)


def response(epsilon, delta=0.0):
    """The two laws of randomised response that tells all with probability ``delta``."""
    yes, no = 1 / (1 + math.exp(-epsilon)), 1 / (1 + math.exp(epsilon))
    return np.array([delta, 0, (1 - delta) * yes, (1 - delta) * no]), [1, 0, 3, 2]


def hockey_stick(p, q, epsilon):
    return np.maximum(0.0, p - math.exp(epsilon) * q).sum()


# Profiles


@pytest.mark.parametrize("delta", [0.0, 1e-9, 0.01, 0.6])
@pytest.mark.parametrize("epsilon", [0.0, 1e-3, 0.5, 3.0, 30.0])
def test_the_profile_of_a_point_is_that_of_randomised_response(epsilon, delta):
    p, swap = response(epsilon, delta)
    guarantee = ApproxDP(epsilon, delta)
    for at in [0.0, 1e-4, 0.3, 0.499, 0.5, 1.0, 2.9, 3.0, 29.0, 31.0]:
        expected = hockey_stick(p, p[swap], at)
        assert_allclose(guarantee.delta_at(at), expected, rtol=1e-9, atol=1e-15)
    assert guarantee.delta_at(epsilon) == delta
    assert guarantee.delta_at(math.inf) == delta


@pytest.mark.parametrize("mu", [0.01, 0.7, 5.0])
def test_the_profile_of_gaussian_privacy_is_that_of_two_normals(mu):
    z = np.linspace(-12, 12 + mu, 400_001)
    for epsilon in (0.0, 0.3, 2.0):
        p, q = stats.norm.pdf(z, mu), stats.norm.pdf(z)
        expected = np.maximum(0.0, p - math.exp(epsilon) * q).sum() * (z[1] - z[0])
        delta = GaussianDP(mu).delta_at(epsilon)
        assert_allclose(delta, expected, rtol=1e-6, atol=1e-15)


@pytest.mark.parametrize("rho", [1e-6, 1e-3, 0.1, 1.0, 50.0])
def test_the_profile_of_zcdp_is_the_infimum_over_orders_from_above(rho):
    for epsilon in rho + np.array([0.0, 0.1, 1.0, 3.0, 8.0]) * math.sqrt(rho):
        with mpmath.workdps(40):

            def log_delta(excess, epsilon=epsilon):
                order = 1 + excess
                return (
                    excess * (order * mpmath.mpf(rho) - mpmath.mpf(epsilon))
                    - mpmath.log(excess)
                    + order * mpmath.log(1 - 1 / order)
                )

            grid = [mpmath.mpf(10) ** (mpmath.mpf(k) / 20) for k in range(-100, 121)]
            k = min(range(1, len(grid) - 1), key=lambda k: log_delta(grid[k]))
            low, high = grid[k - 1], grid[k + 1]
            for _ in range(90):  # by thirds: one minimum
                third = (high - low) / 3
                if log_delta(low + third) < log_delta(high - third):
                    high -= third
                else:
                    low += third
            true = min(mpmath.mpf(1), mpmath.exp(log_delta((low + high) / 2)))
        claimed = ZCDP(rho).delta_at(epsilon)
        assert true <= claimed <= true * (1 + 1e-3)


def shifted_delta(epsilon, shift, mus):
    """E max(0, 1 - exp(epsilon - loss)) with independent ``V ~ N(mu^2/2, mu^2)``."""
    reach = max(mu * mu / 2 + 12 * mu for mu in mus)
    v = np.linspace(-1e-9, reach, 200_001)
    below = np.prod([stats.norm.cdf(v, mu * mu / 2, mu) for mu in mus], axis=0)
    masses = np.diff(below, prepend=0.0)  # of max(0, V_1, ...): everything below 0 is at 0
    return (masses * np.maximum(0.0, -np.expm1(epsilon - shift - np.maximum(v, 0)))).sum()


@pytest.mark.parametrize("epsilon", [0.0, 0.1, 0.3, 0.31, 1.0, 2.0])
def test_the_profile_of_a_shifted_gaussian_is_that_of_its_loss(epsilon):
    claimed = ShiftedGaussianDP(0.3, ((0.5, 1.0),)).delta_at(epsilon)
    true = shifted_delta(epsilon, 0.3, [0.5])
    assert_allclose(claimed, true, rtol=1e-3)
    # Of several losses the largest counts, and the union bound covers it.
    claimed = ShiftedGaussianDP(0.3, ((0.5, 1.0), (0.2, 2.0))).delta_at(epsilon)
    several = shifted_delta(epsilon, 0.3, [0.5, 0.2, 0.2])
    assert true * (1 - 1e-3) <= several <= claimed * (1 + 1e-3)
    assert claimed >= ApproxDP(0.3).delta_at(epsilon)


@every_kind
def test_profiles_fall_from_at_most_one(guarantee):
    epsilons = np.linspace(0, 8, 400)
    deltas = guarantee.delta_at(epsilons)
    assert deltas.shape == epsilons.shape
    assert ((deltas >= 0) & (deltas <= 1)).all()
    assert (np.diff(deltas) <= 1e-13).all()
    assert guarantee.delta_at(1e4) <= 1e-6 + 1e-5 * (guarantee == KINDS["approximate"])


@every_kind
@pytest.mark.parametrize("delta", [1e-12, 1e-8, 1e-5, 0.01, 0.3])
def test_epsilon_inverts_delta_from_above(guarantee, delta):
    epsilon = guarantee.epsilon_at(delta)
    assert isinstance(epsilon, float)
    if math.isinf(epsilon):
        assert guarantee.delta_at(300.0) > delta
        return
    assert guarantee.delta_at(epsilon) <= delta * (1 + 1e-9)
    if epsilon > 0:
        assert guarantee.delta_at(epsilon * (1 - 1e-4)) > delta * (1 - 1e-9)


def test_the_claimed_point_is_exact():
    for epsilon in (0.1, 1 / 3, 1e-9, 700.0, 2e6):
        assert ApproxDP(epsilon).epsilon_at(0.0) == epsilon
        assert ApproxDP(epsilon, 1e-5).epsilon_at(1e-5) == epsilon
        assert ApproxDP(epsilon, 1e-5).delta_at(epsilon) == 1e-5
    assert ApproxDP(1.0, 1e-5).epsilon_at(1e-6) == math.inf
    assert ApproxDP(1.0, 1e-5).epsilon_at(0.1) < 1.0
    assert GaussianDP(1e-3).epsilon_at(0.0) == math.inf
    assert GaussianDP(0.0).epsilon_at(0.0) == 0.0
    assert ZCDP(0.0).epsilon_at(0.0) == 0.0
    assert ZCDP(0.1).epsilon_at(0.0) == math.inf


@every_kind
@pytest.mark.parametrize("delta", [-1e-9, 1.0, 1.5, math.nan, None, "0", True])
def test_epsilon_is_not_asked_at_other_deltas(guarantee, delta):
    for method in (guarantee.epsilon_at, guarantee.to_approx_dp):
        with pytest.raises(ValueError, match="delta must be at least 0 and less than 1; got "):
            method(delta)


# Conversions


@every_kind
def test_conversion_to_a_point_keeps_the_profile(guarantee):
    point = guarantee.to_approx_dp(1e-4)
    assert isinstance(point, ApproxDP)
    assert point.delta == 1e-4
    assert point.epsilon == guarantee.epsilon_at(1e-4)
    assert point.adjacency == guarantee.adjacency
    epsilons = np.linspace(0, 5, 7)
    assert (point.delta_at(epsilons) <= guarantee.delta_at(epsilons)).all()
    assert point.epsilon_at(1e-7) == guarantee.epsilon_at(1e-7) or guarantee.delta > 1e-7


def test_conversion_to_a_point_that_is_not_proven_is_refused():
    shifted = KINDS["shifted"]
    mixed = [compose([other, ApproxDP(0.1)]) for other in (ZCDP(0.1), GaussianDP(0.1), shifted)]
    for guarantee in (GaussianDP(0.1), ZCDP(0.1), ApproxDP(1.0, 1e-5), shifted, *mixed):
        with pytest.raises(NoConversionError, match="No finite epsilon is proven at delta=0"):
            guarantee.to_approx_dp(0.0)
    with pytest.raises(NoConversionError, match="delta=1e-06"):
        ApproxDP(1.0, 1e-5).to_approx_dp(1e-6)
    assert ApproxDP(1.0).to_approx_dp(0.0).epsilon == 1.0


def test_conversions_to_zcdp_and_gaussian_privacy():
    assert GaussianDP(0.6).to_zcdp() == ZCDP(0.18)
    assert ApproxDP(0.6).to_zcdp() == ZCDP(0.18)
    assert GaussianDP(0.6).to_gdp() == GaussianDP(0.6)
    assert ZCDP(0.3).to_zcdp() == ZCDP(0.3)
    assert KINDS["refined"].to_gdp() == GaussianDP(0.5)
    assert KINDS["refined"].to_zcdp() == ZCDP(0.125)
    mixed = compose([ApproxDP(0.6), ZCDP(0.2), GaussianDP(0.4)])
    assert_allclose(mixed.to_zcdp().rho, 0.18 + 0.2 + 0.08, rtol=1e-12)
    add_remove = GaussianDP(0.6, adjacency="add-remove", unit="user").to_zcdp()
    assert (add_remove.adjacency, add_remove.unit) == ("add-remove", "user")


@pytest.mark.parametrize(
    ("kind", "method"),
    [
        ("approximate", "to_zcdp"),
        ("shifted", "to_zcdp"),
        ("composed", "to_zcdp"),
        ("approximate", "mutual_information"),
        ("pure", "to_gdp"),
        ("approximate", "to_gdp"),
        ("zcdp", "to_gdp"),
        ("shifted", "to_gdp"),
        ("composed", "to_gdp"),
    ],
)
def test_a_conversion_that_does_not_exist_is_refused_in_words(kind, method):
    with pytest.raises(NoConversionError, match="No conversion to") as error:
        getattr(KINDS[kind], method)()
    assert "-differential privacy" in str(error.value) or str(KINDS[kind]) in str(error.value)


def test_mutual_information_bounds_that_of_the_examples():
    for epsilon in (0.1, 1.0, 3.0):
        p, _ = response(epsilon)
        true = math.log(2) - stats.entropy(p)  # a fair bit through randomised response
        assert 0.4 * min(true, 1.0) < true <= ApproxDP(epsilon).mutual_information()
    z = np.linspace(-12, 14, 100_001)
    for mu in (0.1, 1.0, 3.0):
        mixture = (stats.norm.pdf(z) + stats.norm.pdf(z, mu)) / 2
        entropy = -np.sum(np.where(mixture > 0, mixture * np.log(mixture), 0)) * (z[1] - z[0])
        true = entropy - stats.norm.entropy()
        assert true <= GaussianDP(mu).mutual_information() == mu**2 / 2


# Group privacy


@pytest.mark.parametrize(
    ("one", "two"),
    [
        (GaussianDP(0.4), GaussianDP(0.8)),
        (ZCDP(0.1), ZCDP(0.4)),
        (ApproxDP(0.7), ApproxDP(1.4)),
        (ApproxDP(800.0), ApproxDP(1600.0)),
        (ApproxDP(0.0, 0.01), ApproxDP(0.0, 0.02)),
        (ApproxDP(0.0), ApproxDP(0.0)),
        (GaussianDP(0.0), GaussianDP(0.0)),
    ],
    ids=str,
)
def test_replacing_is_removing_and_adding(one, two):
    one = replace(one, adjacency="add-remove", unit="user", mechanism="m", source="s")
    two = replace(two, unit="user", mechanism="m", source="s")
    assert one.to_replace_one() == two


@pytest.mark.parametrize("epsilon", [0.0, 0.3, 2.0])
@pytest.mark.parametrize("delta", [1e-6, 0.02])
def test_group_privacy_of_a_point_covers_a_chain_of_three_data_sets(epsilon, delta):
    # Three data sets in a row, neighbours as far apart as (epsilon, delta) allows: the loss of
    # the ends is the sum, and the tails of the first step weigh exp(epsilon) in the second.
    point = ApproxDP(epsilon, delta, adjacency="add-remove").to_replace_one()
    assert point.epsilon == 2 * epsilon
    assert_allclose(point.delta, (1 + math.exp(epsilon)) * delta, rtol=1e-12)
    assert point.adjacency == "replace-one"
    # A chain that attains it: mass delta of P that Q lacks, and of Q, times e, that R lacks.
    e = math.exp(epsilon)
    p = np.array([delta, e * delta, 1 - (1 + e) * delta])
    q = np.array([0.0, delta, 1 - delta])
    r = np.array([0.0, 0.0, 1.0])
    for a, b in ((p, q), (q, r)):
        assert hockey_stick(a, b, epsilon) <= delta * (1 + 1e-9)
    assert_allclose(hockey_stick(p, r, 2 * epsilon), (1 + e) * delta, rtol=1e-9)


def test_group_privacy_of_a_composition_is_that_of_its_parts():
    parts = [ApproxDP(0.3, 1e-6), ApproxDP(0.2), GaussianDP(0.3)]
    whole = compose([replace(part, adjacency="add-remove") for part in parts]).to_replace_one()
    twice = compose([ApproxDP(0.6, (1 + math.exp(0.3)) * 1e-6), ApproxDP(0.4), GaussianDP(0.6)])
    assert_allclose(whole.delta_at([0.5, 1.0, 3.0]), twice.delta_at([0.5, 1.0, 3.0]), rtol=1e-9)
    assert whole.adjacency == "replace-one"


def test_a_point_that_two_records_leave_empty_gives_way_to_what_is_behind_it():
    behind = GaussianDP(7.0, adjacency="add-remove")
    point = ApproxDP(50.0, 1e-5, adjacency="add-remove", refined=behind)
    assert point.to_replace_one() == GaussianDP(14.0)
    with pytest.raises(NoConversionError):
        replace(point, refined=None).to_replace_one()


# Values


@every_kind
def test_a_dictionary_of_plain_values_restores_the_guarantee(guarantee):
    texts = {"adjacency": "add-remove", "unit": "user", "mechanism": "noise", "source": "a book"}
    guarantee = rewritten(guarantee, **texts)
    text = json.dumps(guarantee.to_dict(), allow_nan=False)
    restored = Guarantee.from_dict(json.loads(text))
    assert restored == guarantee
    assert hash(restored) == hash(guarantee)
    assert type(restored) is type(guarantee)
    assert str(restored) == str(guarantee)
    assert json.dumps(restored.to_dict()) == text
    assert restored.delta_at(0.7) == guarantee.delta_at(0.7)


def test_a_dictionary_is_checked_like_an_argument():
    values = ApproxDP(1.0).to_dict()
    with pytest.raises(ValueError, match="epsilon must be"):
        Guarantee.from_dict({**values, "epsilon": -1.0})
    with pytest.raises(ValueError, match="adjacency must be"):
        Guarantee.from_dict({**values, "adjacency": "other"})
    assert values == ApproxDP(1.0).to_dict()  # and is not eaten up


@every_kind
def test_guarantees_cannot_be_changed(guarantee):
    for field in fields(guarantee):
        with pytest.raises(FrozenInstanceError):
            setattr(guarantee, field.name, 0.0)
        with pytest.raises(FrozenInstanceError):
            delattr(guarantee, field.name)


@every_kind
def test_equal_guarantees_are_one_key(guarantee):
    for twin in (copy.deepcopy(guarantee), pickle.loads(pickle.dumps(guarantee))):
        assert twin == guarantee
        assert len({guarantee, twin}) == 1
    assert rewritten(guarantee, unit="user") != guarantee
    assert rewritten(guarantee, mechanism="other") != guarantee


@every_kind
def test_a_guarantee_prints_as_one_sentence(guarantee):
    texts = dict(unit="user", mechanism="trust", source="a book, theorem 1", caveats=())
    text = str(rewritten(guarantee, **texts))
    assert text.endswith(" when replacing one user, by trust [a book, theorem 1].")
    assert "\n" not in text
    assert text[0].isdigit() or text[0] in "(A"


def test_sentences_tell_numbers_and_neighbours():
    assert str(ApproxDP(1.0)) == "1-differential privacy (pure) when replacing one record."
    assert str(ApproxDP(0.5, 1e-5, adjacency="add-remove")) == (
        "(epsilon=0.5, delta=1e-05)-differential privacy when adding or removing one record."
    )
    assert str(GaussianDP(0.25)) == (
        "0.25-Gaussian differential privacy when replacing one record."
    )
    assert str(ZCDP(0.125)) == (
        "0.125-zero-concentrated differential privacy when replacing one record."
    )


BAD = [-1e-9, math.nan, math.inf, None, "1", True]


@pytest.mark.parametrize("bad", BAD)
@pytest.mark.parametrize(
    ("make", "name"),
    [(ApproxDP, "epsilon"), (GaussianDP, "mu"), (ZCDP, "rho")],
)
def test_budgets_must_not_be_negative(make, name, bad):
    with pytest.raises(ValueError) as error:
        make(bad)
    assert str(error.value) == f"{name} must be a non-negative, finite number; got {bad!r}."


def test_a_refinement_speaks_of_the_same_neighbours_and_units():
    with pytest.raises(ValueError, match="refined must have adjacency 'replace-one'"):
        ApproxDP(1.0, 1e-5, refined=GaussianDP(0.1, adjacency="add-remove"))
    with pytest.raises(ValueError, match="refined must have"):
        ApproxDP(1.0, 1e-5, unit="user", refined=GaussianDP(0.1))


def test_the_profile_of_logistic_objective_perturbation_is_restored_in_a_fresh_process():
    stored = json.dumps(JointLogisticDP(0.5, 0.25, adjacency="add-remove").to_dict())
    code = "import json, sys; from skdp.privacy import Guarantee; "
    code += "print(Guarantee.from_dict(json.loads(sys.argv[1])).delta_at(0.5))"
    command = [sys.executable, "-c", code, stored]
    result = subprocess.run(command, capture_output=True, text=True, check=True)
    assert float(result.stdout) > 0.0


# Caveats

WITH_CAVEATS = {
    **{name: guarantee.with_caveats("known seed") for name, guarantee in KINDS.items()},
    "add-remove": ApproxDP(1.0, 1e-5, adjacency="add-remove", caveats=("known seed",)),
    "composed, add-remove": compose(
        [ApproxDP(0.4, adjacency="add-remove"), GaussianDP(0.3, adjacency="add-remove")]
    ).with_caveats("known seed"),
    "mutual information": MutualInformationPrivacy(0.1, GaussianDP(0.9), caveats=["known seed"]),
}


@pytest.mark.parametrize("guarantee", WITH_CAVEATS.values(), ids=WITH_CAVEATS)
def test_whatever_a_guarantee_is_converted_to_has_its_caveats(guarantee):
    found = [compose([guarantee, ApproxDP(0.1, adjacency=guarantee.adjacency)])]
    for convert in (
        lambda: guarantee.to_approx_dp(1e-3),
        lambda: guarantee.to_approx_dp(1e-3).to_gdp(),
        guarantee.to_zcdp,
        guarantee.to_gdp,
        guarantee.to_replace_one,
        lambda: guarantee.differential_privacy(),
    ):
        try:
            found.append(convert())
        except (NoConversionError, AttributeError):
            continue
    assert len(found) > 1
    assert all("known seed" in other.caveats for other in found)
    bare = rewritten(guarantee, caveats=())
    assert guarantee.with_caveats("known seed") is guarantee
    for epsilon in (0.0, 0.5):  # they are words, and no number changes
        assert guarantee.delta_at(epsilon) == bare.delta_at(epsilon)


@pytest.mark.parametrize("guarantee", WITH_CAVEATS.values(), ids=WITH_CAVEATS)
def test_caveats_survive_the_dictionary_and_are_part_of_the_value(guarantee):
    assert Guarantee.from_dict(json.loads(json.dumps(guarantee.to_dict()))) == guarantee
    more = guarantee.with_caveats("recorded: void")
    assert more != guarantee and len({more, guarantee, more.with_caveats("recorded: void")}) == 2
    assert more.caveats == (*guarantee.caveats, "recorded: void")
    assert str(more).endswith(f" Caveat: {'; '.join(more.caveats)}.")
    assert str(rewritten(more, caveats=())).count("Caveat") == 0


@pytest.mark.parametrize("bad", ["known seed", None, 3, [3], [""], {"a"}, [None]])
def test_caveats_are_texts(bad):
    with pytest.raises(ValueError, match=r"^caveats must be a list of non-empty strings; got "):
        ApproxDP(1.0, caveats=bad)
    if isinstance(bad, list):
        with pytest.raises(ValueError, match=r"^caveats must"):
            ApproxDP(1.0).with_caveats(*bad)
