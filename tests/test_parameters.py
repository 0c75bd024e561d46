"""What all estimators make of their parameters, before the charge."""

import importlib
import inspect
import pkgutil
from decimal import Decimal
from fractions import Fraction
from numbers import Real

import numpy as np
import pandas as pd
import pytest
from support.configurations import CONFIGURATIONS, model, outcome, problem

from skdp import mechanisms, privacy, theory
from skdp.privacy import BudgetLedger
from skdp.topology import MixingSchedule

EVERY = pytest.mark.parametrize("name", CONFIGURATIONS)
EXPLICIT = dict(
    epsilon=0.5,
    delta=2.0**-14,
    C=10.0,
    slope_cap=0.375,
    huber_width=0.25,
    alpha=0.5,
    gamma=0.75,
    theta=0.625,
    t0=8.0,
    residual_cap=0.75,
    radius=1.5,
    x_norm=0.75,
    intercept_scaling=0.5,
    mi_budget=0.25,
    width=0.125,
    step=0.25,
    edge_probability=0.5,
)


def explicit(name):
    """A configuration with a number for every real parameter, exact in half precision."""
    changes = {k: v for k, v in EXPLICIT.items() if k in CONFIGURATIONS[name].get_params()}
    if "Search" in name:  # a search over few rows asks for more
        changes |= {"epsilon": 200.0} if "epsilon" in changes else {}
    if CONFIGURATIONS[name].get_params().get("delta", 0.0) == 0.0:
        changes.pop("delta", None)
    if "mechanism=sufficient" in name:
        changes.pop("residual_cap", None)
    if isinstance(CONFIGURATIONS[name].get_params().get("topology"), MixingSchedule):
        changes.pop("edge_probability")  # matrices say which links are up
    if "y_bounds" in CONFIGURATIONS[name].get_params():
        changes["y_bounds"] = (-1.0, 0.5)
    return changes


@pytest.mark.parametrize(
    "kind", [np.float16, np.float32, np.float64, np.longdouble, Fraction], ids=lambda k: k.__name__
)
@EVERY
def test_every_type_of_number_gives_the_same_model(name, kind):
    X, y = problem(name)
    changes = explicit(name)
    typed = {
        k: kind(v) if isinstance(v, Real) else tuple(map(kind, v)) for k, v in changes.items()
    }
    here = model(name, random_state=0, **changes).fit(X, y)
    there = model(name, random_state=np.int64(0), **typed).fit(X, y)
    np.testing.assert_array_equal(outcome(here, X), outcome(there, X))
    assert here.guarantee_ == there.guarantee_
    assert type(there.guarantee_.epsilon_at(1e-9)) is float
    for parameter, given in typed.items():
        assert getattr(there, parameter) is given  # fit never writes to a parameter


@pytest.mark.parametrize("kind", [np.int8, np.uint16, np.int64], ids=lambda k: k.__name__)
@EVERY
def test_every_type_of_integer_gives_the_same_model(name, kind):
    X, y = problem(name)
    params = CONFIGURATIONS[name].get_params()
    whole = {k: v for k, v in params.items() if type(v) is int and v < 100}
    whole |= {"epsilon": 2} if "epsilon" in params and "Search" not in name else {}
    whole |= {"x_norm": 3} if "x_norm" in params else {}
    here = model(name, random_state=0, **whole).fit(X, y)
    there = model(name, random_state=0, **{k: kind(v) for k, v in whole.items()}).fit(X, y)
    np.testing.assert_array_equal(outcome(here, X), outcome(there, X))


TRUTHS = ("fit_intercept", "orthogonal", "keep_iterates")


@pytest.mark.parametrize(
    ("name", "truth"),
    [(n, t) for n, kind in CONFIGURATIONS.items() for t in TRUTHS if t in kind.get_params()],
)
def test_a_word_is_no_truth_value(name, truth):
    X, y = problem(name)
    ledger = BudgetLedger(epsilon=1e6, delta=0.5)
    for bad in ("False", 0, None):
        with pytest.raises(ValueError, match=f"{truth} must be True or False"):
            model(name, ledger=ledger, **{truth: bad}).fit(X, y)
    assert not ledger.history()
    model(name, **{truth: np.False_}).fit(X, y)


BAD = [
    ("random_state", -1),
    ("random_state", "seed"),
    ("random_state", 0.5),
    ("random_state", True),
    ("epsilon", 1e-300),
    ("epsilon", np.float16("inf")),
    ("epsilon", float("nan")),
    ("epsilon", 10**400),
    ("mi_budget", 1e-300),
    ("delta", 1e-323),
    ("delta", 1.0),
    ("x_norm", 1e-300),
    ("x_norm", 1e300),
    ("x_norm", 10**400),
    ("x_norm", "1"),
    ("intercept_scaling", 1e300),
    ("intercept_scaling", 1e-300),
    ("C", 1e300),
    ("C", 1e-300),
    ("alpha", 1e300),
    ("gamma", 1e300),
    ("gamma", 1e-300),
    ("theta", 0.5),
    ("t0", 1e300),
    ("residual_cap", 1e-300),
    ("residual_cap", 1e300),
    ("radius", 1e300),
    ("width", 1e300),
    ("step", 1e300),
    ("huber_width", 1e300),
    ("huber_width", 1e-300),
    ("slope_cap", 1e-300),
    ("slope_cap", 2.0),
    ("n_components", 10**12),
    ("n_components", 0),
    ("n_components", np.float64(20.0)),
    ("n_queries", 10**18),
    ("horizon", 10**400),
    ("batch_size", 10**400),
    ("n_passes", 0),
    ("n_nodes", 10**12),
    ("topology_seed", -1),
    ("y_bounds", (0.0, 1e-300)),
    ("y_bounds", (0.0, float("inf"))),
    ("y_bounds", ("0", "1")),
    ("y_bounds", (-1e308, 1e308)),
]


@pytest.mark.filterwarnings("ignore:No stage reached")
@pytest.mark.parametrize(
    ("name", "parameter", "value"),
    [(n, p, v) for n, kind in CONFIGURATIONS.items() for p, v in BAD if p in kind.get_params()],
    ids=lambda part: str(part)[:60],
)
def test_what_public_numbers_decide_is_decided_before_the_charge(name, parameter, value):
    X, y = problem(name)
    ledger = BudgetLedger(epsilon=1e6, delta=0.5)
    estimator = model(name, ledger=ledger, **{parameter: value})
    try:
        estimator.fit(X, y)
    except ValueError as error:
        assert len(str(error)) < 600
        assert not ledger.history()
        assert not hasattr(estimator, "guarantee_")
    else:
        # A parameter that this configuration does not use, or a number that it can bear.
        assert ledger.history()
        assert np.isfinite(outcome(estimator, X)).all()


# Rules and bounds of learners that take numbers.
RULES = (
    *("learner._counts", "learner._descent_rules", "learner._objective_noise", "learner._units"),
    *("linear_model._rules", "kernel._rules", "kernel._pure", "kernel._ridge_problem"),
    *("kernel._ridge_risk", "kernel._online._sensitivity", "kernel._online._fed_back"),
    *("local._gradient_messages", "local._value_messages", "preprocessing._quantiles"),
)
MODULES = (
    mechanisms,
    *(importlib.import_module(f"skdp.{rules}") for rules in RULES),
    *(
        importlib.import_module(f"skdp.theory.{m.name}")
        for m in pkgutil.iter_modules(theory.__path__)
        if not m.name.startswith("_")
    ),
)
OF_ROWS = {
    *("row_norms", "after_count", "counted", "drawn_together", "starting_scores"),
    *("spectral_noise", "check_planned_rows", "norm_bound", "power_sums"),
}
FUNCTIONS = {
    f"{function.__module__}.{name}": function
    for module in MODULES
    for name in module.__all__
    if inspect.isfunction(function := getattr(module, name)) and name not in OF_ROWS
} | {name: getattr(privacy, name) for name in privacy.__all__ if name.startswith("gaussian_")}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_of_numbers_take_plain_ones(name):
    assert FUNCTIONS[name].takes_plain_numbers


ODD = [
    np.array(1.0),
    pd.Series([1.0]),
    pd.NA,
    Decimal("1"),
    1 + 0j,
    b"auto",
    "auto ",
    5e-324,
    1e150,
    2**70,
    10**400,
    {},
]


# Of searches those that differ in parameters: others plan for long, and refuse in the same lines.
ONCE = [name for name in CONFIGURATIONS if "Search-" not in name]


@pytest.mark.parametrize("value", ODD, ids=lambda v: f"{type(v).__name__} {v!r:.5}")
@pytest.mark.parametrize("name", ONCE)
def test_odd_parameters_are_refused_as_values_before_the_charge(name, value):
    X, y = problem(name)
    ledger = BudgetLedger(epsilon=1e6, delta=0.5)
    for parameter in CONFIGURATIONS[name].get_params(deep=False):
        if parameter in ("engine", "ledger", "random_state", "topology"):
            continue
        if ledger.history():
            ledger = BudgetLedger(epsilon=1e6, delta=0.5)
        estimator = model(name, ledger=ledger)
        try:
            estimator.set_params(**{parameter: value}).fit(X, y)
        except UserWarning:  # a list of one number, which is few epsilons for a search
            assert "Search" in name
            continue
        except ValueError as error:
            assert "ambiguous" not in str(error)
        else:
            continue
        assert not estimator.ledger.history()
        assert estimator.get_params(deep=False)[parameter] is value
