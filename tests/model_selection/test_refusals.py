"""What searches and evaluations refuse: one sentence, and nothing is charged."""

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from skdp.kernel import DPKernelRidge
from skdp.linear_model import DPLogisticRegression
from skdp.metrics import dp_evaluate, make_dp_scorer
from skdp.model_selection import DPEpsilonSearch, DPGridSearch, DPRandomizedSearch
from skdp.pipeline import DPPipeline
from skdp.preprocessing import DPQuantileScaler
from skdp.privacy import BudgetLedger

rng = np.random.default_rng(0)
X = rng.uniform(-0.5, 0.5, size=(1200, 3))
Y = (X[:, 0] > 0).astype(int)
OF_THREE = np.digitize(X[:, 0], [-0.2, 0.2])
TARGETS = X[:, 0]
GRID = {"C": [0.1, 1.0]}


def grid(model=None, params=GRID, **options):
    return DPGridSearch(model or DPLogisticRegression(), params, **{"epsilon": 9.0, **options})


def runs(model=None, params=GRID, **options):
    model = model or DPLogisticRegression()
    return DPRandomizedSearch(model, params, **{"epsilon": 9.0, "n_iter_mean": 3, **options})


def stages(model=None, target=0.7, **options):
    options = {"epsilons": [0.5, 2.0], **options}
    return DPEpsilonSearch(model or DPLogisticRegression(), target, **options)


def fit(search, rows=X, labels=Y):
    return lambda ledger: search.set_params(ledger=ledger).fit(rows, labels)


def score(name, model, labels=Y, rows=X, **options):
    return lambda ledger: make_dp_scorer(name, 1.0, ledger=ledger, **options)(model, rows, labels)


def evaluate(model, rows=X, labels=Y, **options):
    return lambda ledger: dp_evaluate(model, rows, labels, 1.0, ledger=ledger, **options)


def ridge():
    return DPKernelRidge(n_components=5)


GAMMAS = {"gamma": [0.1, 1.0]}
KEYED = dict(adjacency="add-remove", row_key=2)
MODEL = DPLogisticRegression(epsilon=5.0).fit(X, Y)
REGRESSOR = DPKernelRidge(epsilon=5.0, n_components=5, y_bounds=(-0.5, 0.5)).fit(X, TARGETS)
PIPELINE = DPPipeline([("scale", DPQuantileScaler()), ("model", DPLogisticRegression())])
MANY = {"C": np.geomspace(0.01, 10.0, 12).tolist()}

CASES = {
    # More candidates than the budget bears
    "a grid, by mu": (
        fit(grid(None, MANY, epsilon=0.5, delta=0.05, **KEYED)),
        r"param_grid must have fewer candidates, .* for [2-9] at most, for mu=0\.\d+ .* got 12",
    ),
    "runs, by mu": (
        fit(runs(epsilon=1e-3, delta=0.1)),
        r"epsilon must be larger, or n_iter_mean smaller: mu=0\.\d+ .* delta=0\.1; got 0\.001",
    ),
    "runs, pure": (
        fit(runs(epsilon=0.1)),
        r"epsilon must be larger: 960 rows for the fit of each run",
    ),
    # A scoring without a bounded range
    **{
        f"no bounds, {make.__name__}": (
            fit(make(ridge(), *given, scoring="neg_mean_squared_error"), X, TARGETS),
            "y_bounds must be|scoring must have a bounded range",
        )
        for make, given in ((grid, [GAMMAS]), (runs, [GAMMAS]), (stages, [-0.1]))
    },
    **{
        f"no range, {make.__name__}": (
            fit(make(scoring="max_error")),
            "scoring must have a bounded range",
        )
        for make in (grid, runs)
    },
    # Blocks smaller than the classes
    **{
        f"blocks, {make.__name__}": (
            fit(make(), X[:8], [0, 1, 2, 0, 1, 2, 0, 1]),
            "X must have more rows",
        )
        for make in (grid, runs, stages)
    },
    "blocks of a split": (
        fit(grid(strategy="split"), X[:8], [0, 1, 2, 0, 1, 2, 0, 1]),
        "X must have more rows than n_samples=8: the smallest of 3 blocks",
    ),
    # Labels outside classes
    "classes, runs": (fit(runs(classes=[1, 2])), "classes must list every label of y"),
    "classes, scorer": (
        score("accuracy", MODEL, labels=OF_THREE),
        "classes must list every label of y",
    ),
    "classes, of a pipeline": (
        fit(grid(PIPELINE, {"model__C": [0.1, 1.0]}, classes=[1, 2])),
        "classes must list every label of y",
    ),
    # Ranges whose squares are no numbers
    **{
        f"wide, {make.__name__}": (
            fit(make(ridge(), *given, scoring="r2", y_bounds=(-1e308, 1e308)), X, TARGETS),
            r"y_bounds must be at most 1e\+150 apart",
        )
        for make, given in ((grid, [GAMMAS]), (runs, [GAMMAS]), (stages, [0.1]))
    },
    "wide, evaluation": (
        evaluate(REGRESSOR, X, TARGETS, y_bounds=(-1e308, 1e308)),
        r"y_bounds must be at most 1e\+150 apart",
    ),
    # Of an evaluation
    "unfitted": (score("accuracy", DPLogisticRegression()), "not fitted"),
    "an unfitted search": (evaluate(grid()), "not fitted"),
    "a scorer of another kind": (score("r2", MODEL), "scoring must be among 'accuracy'"),
    "a name for a classifier": (
        score("accuracy", REGRESSOR, labels=TARGETS),
        "scoring must be among 'r2'",
    ),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.filterwarnings("ignore:.* hardly show which")
@pytest.mark.filterwarnings("ignore:delta=:skdp.exceptions.PrivacyWarning")
def test_it_is_refused_in_one_sentence_before_the_charge(name):
    ask, told = CASES[name]
    ledger = BudgetLedger(epsilon=50.0, delta=0.5)
    with pytest.raises((ValueError, NotFittedError), match=told) as raised:
        ask(ledger)
    assert ledger.history() == [] and ledger.spent().epsilon == 0.0
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("make", [grid, runs, stages])
def test_a_key_that_raises_quotes_no_row(make):
    def key(X):
        raise RuntimeError(f"X must be secret: {X[0]}")

    ledger = BudgetLedger(epsilon=50.0)
    with pytest.raises(ValueError, match="row_key must give one key per row") as raised:
        make(adjacency="add-remove", row_key=key, ledger=ledger).fit(X, Y)
    assert "secret" not in str(raised.value) and ledger.history() == []
    assert raised.value.__context__ is None and raised.value.__cause__ is None
