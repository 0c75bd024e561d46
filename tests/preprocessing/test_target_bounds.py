"""Bounds of a target and the regression that follows, in one budget."""

import inspect
import warnings

import numpy as np
import pytest
from support.insides import noise_source

from skdp import DPKernelRidge, DPLinearRegression, DPOnlineKernelRegressor
from skdp.audit import replay
from skdp.preprocessing._target_bounds import TargetBounds, gaussian_of_range
from skdp.privacy import ApproxDP, BoundedRangeDP, BudgetLedger, GaussianDP

ADJACENCIES = pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
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


@pytest.mark.parametrize(
    "y",
    [
        np.full(3000, 7.5),
        np.repeat([0.0, 5e-324], 1500),
        np.repeat([-1e308, 1e308], 1500),
        np.where(np.arange(3000) % 10, -0.0, 1e12),
    ],
    ids=["constant", "subnormal", "both ends", "a spike"],
)
@pytest.mark.parametrize(
    "y_search_range", [(-1e6, 1e6), (1e-150, 2e-150), (-1e150, 1e150), (0, 1)]
)
def test_any_target_has_bounds_and_finite_predictions(y, y_search_range):
    X, _ = rows()
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "y_bounds_ is .* cut by an end of y_search_range")
        model = ridge(2.0, delta=1e-5, y_search_range=y_search_range).fit(X, y)
    low, high = model.y_bounds_
    assert y_search_range[0] <= low < high <= y_search_range[1]
    assert np.isfinite(model.predict(X)).all()
    assert np.isfinite(model.coef_).all()


@pytest.mark.parametrize(
    "given, message",
    [
        ((0.0, 0.0), "low < high"),
        ((1.0, 1.0 + 1e-9), "a width of at least"),
        ((-1e200, 1.0), "at most 1e150"),
        ((-np.inf, 1.0), "finite"),
        (5.0, "two numbers"),
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


def test_the_noise_of_the_bounds_is_not_that_of_the_fit(monkeypatch):
    states = []

    def noted(state):
        states.append(state.bit_generator.seed_seq.spawn_key)
        return noise_source(state)

    monkeypatch.setattr(inspect.getmodule(DPKernelRidge), "noise_source", noted)
    X, y = rows(3000)
    ridge(2.0, delta=1e-5, random_state=3).fit(X, y)
    assert len(set(states)) == len(states) == 2


@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_few_rows_have_bounds_by_medians_that_hold_most_of_the_target(delta, adjacency):
    X, y = rows(1000)
    for seed in range(5):
        model = ridge(0.3, delta=delta, adjacency=adjacency, random_state=seed).fit(X, y)
        low, high = model.y_bounds_
        assert np.mean((low <= y) & (y <= high)) > 0.5 and high - low < 2e4
        assert model.guarantee_.refined.epsilon_at(delta) <= 0.3 * (1.0 + 1e-12)


def test_bounds_of_amounts_stop_at_zero():
    rng = np.random.default_rng(1)
    bounds = TargetBounds.plan(ApproxDP(0.2, 1e-5), n_samples=20_000, search_range=(-1e6, 1e6))
    amounts = rng.exponential(size=20_000)
    for sign, y in ((1, amounts), (-1, -amounts)):
        low, high = sorted(sign * b for b in bounds(y, noise_source(np.random.default_rng(2))))
        assert low == 0.0 and high > 2.0
    low, high = bounds(amounts - 1.0, noise_source(np.random.default_rng(2)))
    assert low < -1.0


# Where no bounds are given

REGRESSORS = {
    "ridge": DPKernelRidge(1.0, 1e-6),
    "pure ridge": DPKernelRidge(1.0),
    "stream": DPOnlineKernelRegressor(1.0, 1e-6),
    "least squares": DPLinearRegression(1.0, 1e-6),
}


def large(n=5000, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-0.5, 0.5, size=(n, 3))
    return X, 1e7 * (2.0 + X @ [0.5, -0.3, 0.0] + 0.05 * rng.standard_normal(n))


@ADJACENCIES
@pytest.mark.parametrize("name", REGRESSORS)
def test_targets_without_bounds_are_learned_as_well_as_with_them(name, adjacency):
    X, y = large()
    options = dict(adjacency=adjacency, random_state=0)
    model = REGRESSORS[name].set_params(**options)
    given = model.set_params(y_bounds=(1e7, 3e7)).fit(X, y).score(X, y)
    y_bounds = None if adjacency == "replace-one" else "auto"
    learned = model.set_params(y_bounds=y_bounds).fit(X, y)
    assert learned.score(X, y) > given - 0.05 and given > 0.4
    assert learned.guarantee_.epsilon_at(model.delta) <= 1.0 + 1e-9
    low, high = learned.y_bounds_
    assert 1e7 < low < high < 3e7


@pytest.mark.parametrize("name", REGRESSORS)
def test_a_budget_that_carries_no_bounds_warns_and_takes_the_unit(name):
    X, y = large(50)
    model = REGRESSORS[name].set_params(adjacency="replace-one", random_state=0, y_bounds=None)
    small = model.__class__(**{**model.get_params(), "epsilon": 0.01})
    with pytest.warns(UserWarning, match="y_bounds is None: targets outside of"):
        small.fit(X, y)
    assert small.y_bounds_ == (-1.0, 1.0)
    with pytest.raises(ValueError, match=r"y_bounds=.auto.|y_bounds must be two numbers"):
        small.set_params(y_bounds="auto").fit(X, y)


@pytest.mark.parametrize("name", REGRESSORS)
def test_bounds_at_an_end_of_the_search_range_are_told(name):
    X, y = large()
    model = REGRESSORS[name].set_params(adjacency="replace-one", random_state=0)
    model = model.__class__(**{**model.get_params(), "y_search_range": (-1e6, 1.5e7)})
    with pytest.warns(UserWarning, match="cut by an end of y_search_range"):
        model.fit(X, y)
    assert model.y_bounds_[1] == 1.5e7


@ADJACENCIES
def test_learned_bounds_of_least_squares_lose_no_more_than_is_claimed(adjacency):
    X, y = large(60)
    model = DPLinearRegression(30.0, 1e-5, y_bounds="auto", adjacency=adjacency)
    report = replay(model, X, y, n=60, random_state=0)
    assert not report.findings, report


def test_a_selection_satisfies_the_mu_that_is_stated_for_its_range():
    epsilons = np.append(0.0, np.geomspace(1e-4, 30.0, 300))
    for width in (1e-3, 0.1, 0.7, 2.0, 6.0, 15.0):
        mu = gaussian_of_range(width)
        tails = BoundedRangeDP((width,)).delta_at(epsilons)
        gaussian = GaussianDP(mu).delta_at(epsilons)
        assert (tails <= gaussian * (1.0 + 1e-6)).all()  # the first is rounded up
        # No smaller mu is enough where log ratios are half of the width.
        right = 1.0 / (1.0 + np.exp(-width / 2.0))
        assert GaussianDP(0.999 * mu).delta_at(0.0) < 2.0 * right - 1.0 <= gaussian[0] * (1 + 1e-9)


@pytest.mark.parametrize("name", REGRESSORS)
def test_a_private_number_of_few_rows_warns_and_takes_the_unit(name):
    X, y = large(60)
    model = REGRESSORS[name]
    options = dict(adjacency="add-remove", random_state=0, y_bounds=None)
    model = model.__class__(**{**model.get_params(), **options})
    with pytest.warns(UserWarning, match="y_bounds is None: targets outside of"):
        model.fit(X, y)
    assert model.y_bounds_ == (-1.0, 1.0)


def test_bounds_are_learned_for_a_large_epsilon():
    X, y = large(200)
    for epsilon in (1e4, 1e6):
        low, high = DPLinearRegression(epsilon, random_state=0).fit(X, y).y_bounds_
        assert 1e7 < low < high < 3e7
