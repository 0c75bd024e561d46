"""What all estimators make of their parameters, before the charge."""

import importlib
import inspect
from decimal import Decimal
from fractions import Fraction
from numbers import Real

import numpy as np
import pandas as pd
import pytest
from support.configurations import CONFIGURATIONS, model, outcome, problem

from skdp import kernel, local, mechanisms, privacy
from skdp.privacy import BudgetLedger

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
)


def explicit(name):
    """A configuration with a number for every real parameter, exact in half precision."""
    known = CONFIGURATIONS[name].get_params()
    paper = {f"paper__{k}": v for k, v in EXPLICIT.items()}
    changes = {k: v for k, v in (EXPLICIT | paper).items() if k in known}
    if "Search" in name:  # a search over few rows asks for more
        changes |= {"epsilon": 200.0} if "epsilon" in changes else {}
    if CONFIGURATIONS[name].get_params().get("delta", 0.0) == 0.0:
        changes.pop("delta", None)
    if "mechanism=sufficient" in name:
        changes.pop("residual_cap", None)
    if "inference=True" in name:
        changes = {k: v for k, v in changes.items() if k not in ("C", "slope_cap")}
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
        assert there.get_params()[parameter] is given  # fit never writes to a parameter


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


TRUTHS = ("fit_intercept", "orthogonal", "keep_iterates", "paper__keep_iterates")


@pytest.mark.parametrize(
    ("name", "truth"),
    [(n, t) for n, kind in CONFIGURATIONS.items() for t in TRUTHS if t in kind.get_params()],
)
def test_a_word_is_no_truth_value(name, truth):
    X, y = problem(name)
    ledger = BudgetLedger(epsilon=1e6, delta=0.5)
    for bad in ("False", 0, None):
        with pytest.raises(
            ValueError, match=f"{truth.removeprefix('paper__')} must be True or False"
        ):
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
    ("y_bounds", (0.0, 1e-300)),
    ("y_bounds", (0.0, float("inf"))),
    ("y_bounds", ("0", "1")),
    ("y_bounds", (-1e308, 1e308)),
]


@pytest.mark.filterwarnings("ignore:No stage reached")
@pytest.mark.parametrize(
    ("name", "parameter", "value"),
    [
        (name, parameter, value)
        for name, kind in CONFIGURATIONS.items()
        for word, value in BAD
        for parameter in (word, f"paper__{word}")
        if parameter in kind.get_params()
    ],
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


# What users import and what takes numbers elsewhere: rules and bounds of learners.
PUBLIC = (
    *(mechanisms, kernel, local),
    *(
        importlib.import_module(f"skdp.{at}.papers")
        for at in ("distributed", "kernel", "linear_model")
    ),
)
RULES = (
    *("learner._stages", "learner._descent", "learner._objective", "learner._sequence"),
    *("linear_model._rules", "kernel._descent", "kernel._pure", "kernel._ridge_problem"),
    *("kernel._online._sensitivity", "kernel._online._fed_back", "local._messages"),
    "preprocessing._quantiles",
)
OF_ROWS = {"row_norms", "run_features"}
FUNCTIONS = {
    f"{function.__module__}.{name}": function
    for module in PUBLIC
    for name in module.__all__
    if inspect.isfunction(function := getattr(module, name)) and name not in OF_ROWS
} | {name: getattr(privacy, name) for name in privacy.__all__ if name.startswith("gaussian_")}
FUNCTIONS |= {
    f"{rules}.{name}": function
    for rules in RULES
    for name, function in vars(importlib.import_module(f"skdp.{rules}")).items()
    if hasattr(function, "takes_plain_numbers") and function.__module__ == f"skdp.{rules}"
}


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
    parameters = CONFIGURATIONS[name].get_params()
    inner = [parameter for parameter in parameters if parameter.startswith("paper__")]
    for parameter in [*CONFIGURATIONS[name].get_params(deep=False), *inner]:
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
        assert estimator.get_params()[parameter] is value
