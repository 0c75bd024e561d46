"""Bounds of a target and the regression that follows, in one budget."""

import math

import numpy as np
import pytest
from support.insides import noise_source

from skdp import DPKernelRidge, DPOnlineKernelRegressor, MIPrivateSGDRegressor
from skdp.local import GradientPrivatizer
from skdp.mechanisms import NoiseLaw
from skdp.privacy import ApproxDP, BoundedRangeDP, BudgetLedger, GaussianDP, gaussian_epsilon
from skdp.releases import FeatureDescent, TargetBounds

ADJACENCIES = pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
# n_components keeps fits short.
RANGES = pytest.mark.parametrize(
    "y_search_range", [(-1e6, 1e6), (1e-150, 2e-150), (-1e150, 1e150), (0, 1)]
)
MODELS = {
    "gradient": dict(delta=1e-5),
    "sufficient_statistics": dict(delta=1e-5, mechanism="sufficient_statistics"),
    "output": dict(delta=1e-5, mechanism="output"),
    "objective": dict(),
    "pure output": dict(mechanism="output"),
    "linear kernel": dict(delta=1e-5, kernel="linear"),
    "pure query": dict(release="query", n_queries=5),
    "query": dict(release="query", n_queries=500, delta=1e-5),
    "few queries": dict(release="query", n_queries=2, delta=1e-5),
}


def rows(n=3000, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1.0, 1.0, size=(n, 2))
    return X, 700.0 + 300.0 * X[:, 0] + 10.0 * rng.standard_normal(n)


def ridge(epsilon=1.0, **options):
    return DPKernelRidge(epsilon, **{"y_bounds": "auto", "n_components": 20, **options})


@ADJACENCIES
@pytest.mark.parametrize("name", MODELS)
def test_bounds_and_fit_spend_the_budget_and_no_more(name, adjacency):
    if "quer" in name:
        X, y = rows(400)
        model = ridge(20.0, adjacency=adjacency, **MODELS[name]).fit(X, y)
    else:
        X, y = rows(6000)
        model = ridge(1.0, adjacency=adjacency, **MODELS[name]).fit(X, y)
    stated, total = model.guarantee_, model.guarantee_.refined
    assert (stated.epsilon, stated.delta) == (model.epsilon, model.delta)
    assert isinstance(total, BoundedRangeDP) and total.adjacency == adjacency
    assert len(total.epsilons) == (2 if adjacency == "replace-one" else 3)
    # By the selections and what follows, each for itself.
    again = BoundedRangeDP(total.epsilons, then=total.then, adjacency=adjacency)
    noise_is_gaussian = isinstance(total.then.refined, GaussianDP)
    spent = again.epsilon_at(model.delta if noise_is_gaussian else 0.0)
    assert model.epsilon * (1.0 - 1e-6) <= spent <= model.epsilon * (1.0 + 1e-12)
    low, high = model.y_bounds_
    assert 150.0 < low < 480.0 and 920.0 < high < 1250.0
    if "quer" not in name:
        assert np.all((low <= model.predict(X)) & (model.predict(X) <= high))


@pytest.mark.parametrize(
    "name", [name for name in MODELS if "few" not in name and "pure" not in name]
)
def test_the_noise_of_the_fit_is_that_of_the_rest(name, monkeypatch):
    drawn = []
    plain = NoiseLaw.of.__func__

    def noted(cls, kind, guarantee):
        drawn.append(guarantee)
        return plain(cls, kind, guarantee)

    monkeypatch.setattr(NoiseLaw, "of", classmethod(noted))
    X, y = rows(1500)
    then = ridge(2.0, **MODELS[name]).fit(X, y).guarantee_.refined.then
    assert drawn
    for guarantee in drawn:
        if isinstance(guarantee, GaussianDP):
            assert guarantee.mu <= then.to_gdp().mu * (1.0 + 1e-12)
        else:
            assert guarantee.epsilon <= then.epsilon * (1.0 + 1e-12)


@ADJACENCIES
def test_a_positive_delta_leaves_nearly_all_but_a_twentieth_of_the_squared_mu(adjacency):
    target = ApproxDP(1.0, 1e-5, adjacency=adjacency)
    bounds = TargetBounds.plan(target, n_samples=20_000, search_range=(-1e6, 1e6))
    then = bounds.before(FeatureDescent.plan).guarantee
    share = (then.to_gdp().mu / target.gaussian_target().mu) ** 2
    assert 0.93 < share < 0.97  # without the recursion: .92, by their own Gaussian bounds


def test_a_pure_budget_leaves_nine_tenths():
    bounds = TargetBounds.plan(ApproxDP(1.0), n_samples=20_000, search_range=(-1e6, 1e6))
    told = []

    def planned(rest):
        told.append(rest)
        return FeatureDescent.plan(ApproxDP(rest.epsilon, 1e-5))

    bounds.before(planned)
    assert told[0].delta == 0.0
    assert math.isclose(told[0].epsilon, 0.9, rel_tol=1e-12)
    assert bounds.quantiles.guarantee.epsilon_at(0.0) + told[0].epsilon <= 1.0


@pytest.mark.parametrize("delta", [0.0, 1e-5])
def test_too_small_a_budget_is_refused_before_the_charge_with_the_least_that_works(delta):
    X, y = rows(500)
    ledger = BudgetLedger(epsilon=1e3, delta=0.5)
    model = ridge(0.1, delta=delta, ledger=ledger)
    with pytest.raises(ValueError, match=r"epsilon must be at least .* y_bounds='auto'") as caught:
        model.fit(X, y)
    assert not ledger.history()
    least = float(str(caught.value).split("at least ")[1].split(" ")[0])
    model.set_params(epsilon=least).fit(X, y)
    with pytest.raises(ValueError, match="y_bounds='auto'"):
        model.set_params(epsilon=0.999 * least).fit(X, y)
    assert len(ledger.history()) == 1


def test_a_private_number_of_rows_refuses_nothing():
    X, y = rows(30)
    model = ridge(0.1, adjacency="add-remove").fit(X, y)
    assert model.y_bounds_[0] < model.y_bounds_[1]


@pytest.mark.parametrize(
    "y",
    [
        np.full(3000, 7.5),
        np.zeros(3000),
        np.full(3000, -1e308),
        np.repeat([0.0, 5e-324], 1500),
        np.repeat([-1e308, 1e308], 1500),
        np.where(np.arange(3000) % 10, -0.0, 1e12),
    ],
    ids=["constant", "zero", "far out", "subnormal", "both ends", "a spike"],
)
@pytest.mark.parametrize(
    "y_search_range", [(-1e6, 1e6), (1e-150, 2e-150), (-1e150, 1e150), (0, 1)]
)
def test_any_target_has_bounds_and_finite_predictions(y, y_search_range):
    X, _ = rows()
    model = ridge(2.0, delta=1e-5, y_search_range=y_search_range).fit(X, y)
    low, high = model.y_bounds_
    assert y_search_range[0] <= low < high <= y_search_range[1]
    assert np.isfinite(model.predict(X)).all()
    assert np.isfinite(model.coef_).all()


@pytest.mark.parametrize(
    "given, message",
    [
        ((1.0, -1.0), "low first"),
        ((0.0, 0.0), "low first"),
        ((1.0, 1.0 + 1e-9), "not narrower"),
        ((-1e200, 1.0), "at most 1e150"),
        ((-np.inf, 1.0), "finite"),
        ((np.nan, 1.0), "finite"),
        (5.0, "two numbers"),
        ("auto", "two numbers"),
        ((0.0, 1.0, 2.0), "two numbers"),
    ],
)
def test_search_ranges_are_checked(given, message):
    X, y = rows(50)
    for y_bounds in ("auto", (0.0, 1.0)):
        with pytest.raises(ValueError, match=f"y_search_range.*{message}"):
            ridge(y_bounds=y_bounds, y_search_range=given).fit(X, y)


def test_a_cap_in_units_of_the_target_needs_bounds():
    X, y = rows(50)
    with pytest.raises(ValueError, match="residual_cap must be 'auto' with y_bounds='auto'"):
        ridge(residual_cap=10.0).fit(X, y)


def test_streams_and_devices_refuse_automatic_bounds_and_say_why():
    X, y = rows(50)
    for model in (
        DPOnlineKernelRegressor(y_bounds="auto"),
        MIPrivateSGDRegressor(y_bounds="auto"),
    ):
        for method in (model.fit, model.partial_fit):
            with pytest.raises(ValueError, match="clipped as they come"):
                method(X, y)
    with pytest.raises(ValueError, match="clipped as they come"):
        MIPrivateSGDRegressor(y_bounds="auto").privatizer(2)
    with pytest.raises(ValueError, match="clipped as they come"):
        GradientPrivatizer(1.0, y_bounds="auto")


def test_the_bounds_are_those_of_the_quantiles_and_hold_nearly_all():
    rng = np.random.default_rng(1)
    bounds = TargetBounds.plan(ApproxDP(1.0, 1e-5), n_samples=20_000, search_range=(-1e6, 1e6))
    for y in (rng.standard_normal(20_000), rng.exponential(size=20_000), rng.uniform(size=20_000)):
        low, high = bounds(1e3 * y, noise_source(np.random.default_rng(2)))
        assert np.mean((1e3 * y < low) | (1e3 * y > high)) < 0.035
        assert high - low < 1.5e3 * np.ptp(np.quantile(y, [0.005, 0.995]))


def test_the_noise_of_the_bounds_is_not_that_of_the_fit(monkeypatch):
    states = []

    def noted(state):
        states.append(state.bit_generator.seed_seq.spawn_key)
        return noise_source(state)

    monkeypatch.setattr("skdp.kernel._kernel_ridge.noise_source", noted)
    X, y = rows(3000)
    ridge(2.0, delta=1e-5, random_state=3).fit(X, y)
    assert len(set(states)) == len(states) == 2


def test_a_seed_has_the_noise_of_the_fit_that_it_had_with_bounds_given():
    X, y = rows(300)
    here = ridge(y_bounds=(0.0, 1.0), random_state=3).fit(X, y)
    there = ridge(y_bounds=(0.0, 1.0), random_state=3, y_search_range=(0, 2)).fit(X, y)
    np.testing.assert_array_equal(here.coef_, there.coef_)


def test_the_least_epsilon_is_close_to_what_the_rule_needs():
    with pytest.raises(ValueError, match="at least") as caught:
        TargetBounds.plan(ApproxDP(0.01), n_samples=1000, search_range=(-1e6, 1e6))
    least = float(str(caught.value).split("at least ")[1].split(" ")[0])
    assert 1.5 < least < 5.0  # about 127 over half of a tenth of a thousand rows
    assert gaussian_epsilon(mu=1.0, delta=1e-5) > 0.0


@ADJACENCIES
@pytest.mark.parametrize(
    "name", ["sufficient_statistics", "objective", "query", "pure query", "few queries"]
)
def test_what_is_planned_without_rows_is_what_a_fit_is_charged(name, adjacency):
    X, y = rows(400)
    model = ridge(20.0, adjacency=adjacency, **MODELS[name])
    planned = model._planned_guarantee(2)
    charged = model.fit(X, y).guarantee_
    assert (planned.epsilon, planned.delta) == (charged.epsilon, charged.delta)
    assert planned.refined.epsilons == charged.refined.epsilons
    here, there = planned.refined.then, charged.refined.then
    assert (here.epsilon, here.delta) == (there.epsilon, there.delta)
    assert type(here.refined) is type(there.refined)


def test_bounds_of_amounts_stop_at_zero():
    rng = np.random.default_rng(1)
    bounds = TargetBounds.plan(ApproxDP(0.2, 1e-5), n_samples=20_000, search_range=(-1e6, 1e6))
    amounts = rng.exponential(size=20_000)
    for sign, y in ((1, amounts), (-1, -amounts)):
        low, high = sorted(sign * b for b in bounds(y, noise_source(np.random.default_rng(2))))
        assert low == 0.0 and high > 2.0
    low, high = bounds(amounts - 1.0, noise_source(np.random.default_rng(2)))
    assert low < -1.0


def test_a_delta_that_is_enough_alone_refuses_nothing():
    target = ApproxDP(0.01, 1e-3)
    assert TargetBounds.least_epsilon(target, n_samples=2**24) == 0.0
    TargetBounds.plan(target, n_samples=2**24, search_range=(-1e6, 1e6))
