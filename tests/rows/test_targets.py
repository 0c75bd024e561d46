"""The range of a target, and the warning where nobody said what it is."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from support.insides import TargetRange

from skdp.audit import replay
from skdp.kernel import DPKernelRidge, DPOnlineKernelRegressor
from skdp.linear_model import MIPrivateSGDRegressor
from skdp.privacy import BudgetLedger

MODELS = {
    "ridge": DPKernelRidge,
    "query": lambda **options: DPKernelRidge(release="query", n_queries=60, **options),
    "online": DPOnlineKernelRegressor,
    "users": MIPrivateSGDRegressor,
    "bandit": lambda **options: MIPrivateSGDRegressor(feedback="bandit", **options),
}
every = pytest.mark.parametrize("name", MODELS)
TOLD = "y_bounds is None: targets outside of (-1, 1) are clipped; pass y_bounds=(low, high), "
TOLD += "public and in units of the target."


def problem(scale=1.0):
    rng = np.random.default_rng(0)
    X = rng.uniform(-0.5, 0.5, (60, 3))
    return X, scale * X[:, 0]


def heard(call):
    """Warnings of a call: category, text and the file that they point to."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call()
    return [(each.category, str(each.message), each.filename) for each in caught]


@every
@pytest.mark.parametrize("scale", [0.0, 1.0, 1e9])
def test_without_bounds_every_fit_warns_in_the_same_words(name, scale):
    X, y = problem(scale)
    model = MODELS[name]()
    assert heard(lambda: model.fit(X, y)) == [(UserWarning, TOLD, __file__)]
    if hasattr(model, "partial_fit"):
        for _ in range(2):
            assert heard(lambda: model.partial_fit(X, y)) == [(UserWarning, TOLD, __file__)]
    assert heard(lambda: model.predict(X)) == []


@every
def test_without_bounds_they_are_those_of_the_unit(name):
    X, y = problem(5.0)
    models = [MODELS[name](random_state=0, y_bounds=bounds) for bounds in (None, (-1.0, 1.0))]
    with pytest.warns(UserWarning, match="y_bounds is None"):
        models[0].fit(X, y)
    models[1].fit(X, y)
    assert_array_equal(models[0].predict(X), models[1].predict(X))
    assert models[0].guarantee_ == models[1].guarantee_
    assert models[0].y_bounds is None
    for model in models:
        assert getattr(model, "y_bounds_", (-1.0, 1.0)) == (-1.0, 1.0)
        assert np.abs(model.predict(X)).max() <= 1.0


@every
def test_who_makes_errors_of_warnings_pays_nothing(name):
    X, y = problem()
    ledger = BudgetLedger(epsilon=1e6, delta=0.5)
    model = MODELS[name](ledger=ledger)
    before = dict(vars(model))
    with pytest.raises(UserWarning, match="y_bounds is None"):
        model.fit(X, y)
    assert vars(model) == before and not ledger.history()


@every
@pytest.mark.parametrize("bounds", ["wide", "no", (0.0,), (1.0, 1.0), (2.0, -2.0), 3.0])
def test_what_is_no_pair_of_bounds_is_refused(name, bounds):
    ledger = BudgetLedger(epsilon=1e6, delta=0.5)
    with pytest.raises(ValueError, match=r"^y_bounds"):
        MODELS[name](y_bounds=bounds, ledger=ledger).fit(*problem())
    assert not ledger.history()


@pytest.mark.filterwarnings("ignore:y_bounds is None")
@pytest.mark.parametrize("name", ["ridge", "online", "users"])
def test_the_warning_tells_nothing_of_the_rows(name):
    X, y = problem()
    options = dict(n_components=10) if name != "users" else {}
    neighbours = [(X, np.where(np.arange(60) == 3, far, y)) for far in (1e9, -1e9, 0.0)]
    report = replay(MODELS[name](**options), X, y, neighbours=neighbours, n=3, random_state=0)
    assert not report.findings


def test_units_of_a_target_and_back():
    targets = TargetRange.of((-60.0, 180.0))
    assert (targets.middle, targets.half) == (60.0, 120.0)
    assert_array_equal(targets.scaled([-1e9, 60.0, 120.0, 1e9]), [-1.0, 0.0, 0.5, 1.0])
    assert_array_equal(targets.original([-3.0, 0.0, 0.5]), [-60.0, 60.0, 120.0])
    assert TargetRange.of(None) == TargetRange(-1.0, 1.0)
