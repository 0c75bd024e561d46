"""A search over rows from anywhere is the search over the frame."""

from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pytest
import sklearn
from numpy.testing import assert_array_equal
from support.containers import Passes

from skdp import DPKernelRidge, DPLogisticRegression, DPPipeline
from skdp.exceptions import BudgetExceededError, SourceChangedError
from skdp.model_selection import DPEpsilonSearch, DPGridSearch, DPRandomizedSearch
from skdp.preprocessing import make_private_preprocessor
from skdp.privacy import BudgetLedger

dd = pytest.importorskip("dask.dataframe")

N = 6100
NUMBERS = ["age", "pay"]


def frame():
    rng = np.random.default_rng(0)
    age, pay = rng.uniform(-0.6, 0.6, (2, N))
    return pd.DataFrame(
        {
            "age": age,
            "pay": pay,
            "city": rng.choice(["Bonn", "Ulm"], N),
            "key": [f"visit {i}" for i in range(N)],
            "ill": np.where(age + rng.normal(0, 0.2, N) > 0, "yes", "no"),
            "cost": np.clip(age - pay + rng.normal(0, 0.1, N), -1, 1),
            "owner": [f"patient {i // 2}" for i in range(N)],
        }
    )


ROWS = frame()
TABLE = pa.Table.from_pandas(ROWS, preserve_index=False)
PLACES = {
    "dataset": lambda names: ds.dataset(TABLE.select(names)),
    "lazy": lambda names: pl.from_arrow(TABLE).lazy().select(names),
    "dask": lambda names: dd.from_pandas(ROWS[names], npartitions=3, sort=False),
    "frame": lambda names: ROWS[names],
}
BUDGET = {"delta": 1e-6, "random_state": 0}


def pipeline():
    prepare = make_private_preprocessor({"numeric": NUMBERS, "categorical": ["city"]})
    return DPPipeline([("prepare", prepare), ("model", DPLogisticRegression())])


def of_grid(estimator, names, **options):
    return DPGridSearch(estimator, {names: [0.5, 1.0]}, epsilon=2.0, **BUDGET, **options)


SEARCHES = {
    "grid": (of_grid(DPLogisticRegression(), "x_norm"), "ill", NUMBERS),
    "parts": (of_grid(DPLogisticRegression(), "x_norm", strategy="split"), "ill", NUMBERS),
    "kernel": (of_grid(DPKernelRidge(y_bounds=(-1, 1)), "gamma"), "cost", NUMBERS),
    "pipeline": (of_grid(pipeline(), "model__x_norm"), "ill", [*NUMBERS, "city"]),
    "random": (
        DPRandomizedSearch(
            DPLogisticRegression(), {"x_norm": [0.5, 1.0]}, epsilon=2.0, n_iter_mean=3, **BUDGET
        ),
        "ill",
        NUMBERS,
    ),
    "epsilon": (
        DPEpsilonSearch(pipeline(), target_score=0.8, max_epsilon=2.0, **BUDGET),
        "ill",
        [*NUMBERS, "city"],
    ),
}


def assert_same(one, other, rows):
    assert_array_equal(one.predict(rows), other.predict(rows))
    assert one.guarantee_ == other.guarantee_
    assert one.best_score_ == other.best_score_


@pytest.mark.parametrize("kind", SEARCHES)
@pytest.mark.parametrize("owner", [None, "owner"])
def test_searches_of_a_source_are_those_of_the_frame(kind, owner):
    search, target, names = SEARCHES[kind]
    groups = None if owner is None else ROWS[owner]
    expected = sklearn.clone(search).fit(ROWS[names], ROWS[target], groups=groups)
    all_names = [*names, target, *([] if owner is None else [owner])]
    for place in PLACES if (kind, owner) == ("grid", None) else ("dataset", "frame"):
        made = sklearn.clone(search).fit(PLACES[place](all_names), target, groups=owner)
        assert_same(made, expected, ROWS[names])
    said = np.concatenate(list(made.predict(PLACES["dataset"](names)).blocks()))[:, 0]
    assert_array_equal(said, expected.predict(ROWS[names]))


@pytest.mark.parametrize("owner", [None, "owner"])
@pytest.mark.parametrize("key", ["key", lambda rows: rows["key"]])
def test_blocks_by_keys_are_those_of_the_frame(owner, key):
    prepare = make_private_preprocessor({"numeric": NUMBERS})
    steps = [("prepare", prepare), ("model", DPLogisticRegression())]
    options = dict(adjacency="add-remove", classes=["no", "yes"], row_key=key)
    search = of_grid(DPPipeline(steps), "model__x_norm", **options)
    names = [*NUMBERS, "key"]
    groups = None if owner is None else ROWS[owner]
    expected = sklearn.clone(search).fit(ROWS[names], ROWS["ill"], groups=groups)
    source = PLACES["dataset"]([*names, "ill", *([] if owner is None else [owner])])
    made = sklearn.clone(search).fit(source, "ill", groups=owner)
    assert_same(made, expected, ROWS[names])


def test_users_with_times_as_ids_are_in_the_blocks_of_the_frame():
    times = pd.Timestamp("2024-01-01") + pd.to_timedelta(np.arange(N) // 2, unit="h")
    options = dict(adjacency="add-remove", classes=["no", "yes"])
    models = []
    for unit in ("ns", "us", "s"):
        rows = ROWS[[*NUMBERS, "ill"]].assign(owner=times.astype(f"M8[{unit}]"))
        source = ds.dataset(pa.Table.from_pandas(rows, preserve_index=False))
        for given in (rows, source):
            search = of_grid(DPLogisticRegression(), "x_norm", **options)
            models.append(search.fit(given, "ill", groups="owner").best_estimator_.coef_)
    for one in models[1:]:
        assert_array_equal(one, models[0])


@pytest.mark.parametrize("odd", [np.inf, Decimal("Infinity"), Decimal("1.50")])
def test_ids_of_any_size_have_a_block(odd):
    owners = np.array([i // 2 for i in range(N)], dtype=object)
    owners[:2] = odd
    options = dict(adjacency="add-remove", classes=["no", "yes"])
    search = of_grid(DPLogisticRegression(), "x_norm", **options)
    assert search.fit(ROWS[NUMBERS], ROWS["ill"], groups=owners).guarantee_.unit == "user"


def test_attributes_of_a_source_are_its_own():
    source = raw(ROWS)
    source.checked = "by hand"
    for _ in range(2):
        before = source.n_passes
        DPLogisticRegression(1.0).fit(source, "ill")
        assert source.checked == "by hand" and source.n_passes > before


def raw(*passes):
    return Passes(*(rows[[*NUMBERS, "ill"]] for rows in passes))


@pytest.mark.parametrize("kind", ["grid", "random", "epsilon"])
@pytest.mark.parametrize("is_kept", [True, False])
def test_rows_that_change_in_a_search_are_an_error(kind, is_kept):
    search, _, _ = SEARCHES[kind]
    if kind == "epsilon":
        model = DPLogisticRegression()
        search = DPEpsilonSearch(model, target_score=0.8, max_epsilon=2.0, **BUDGET)
    other = ROWS.sample(frac=1.0, random_state=0)
    with sklearn.config_context(working_memory=1024 if is_kept else 0):
        whole = raw(ROWS)
        sklearn.clone(search).fit(whole, "ill")
        for later in (1, 2, whole.n_passes // 2, whole.n_passes - 1):
            model = sklearn.clone(search)
            with pytest.raises(SourceChangedError) as told:
                model.fit(raw(*[ROWS] * later, other), "ill")
            assert not hasattr(model, "best_estimator_")
            assert told.value.__context__ is None


def test_a_search_of_a_source_pays_before_it_fits():
    ledger = BudgetLedger(epsilon=1.0, delta=1e-5)
    search = sklearn.clone(SEARCHES["grid"][0]).set_params(ledger=ledger, random_state=None)
    for rows, kind in ((ROWS, BudgetExceededError), (ROWS.assign(age=np.nan), ValueError)):
        with pytest.raises(kind):
            search.fit(raw(rows), "ill")
    search.set_params(epsilon=1.0).fit(raw(ROWS), "ill")
    assert len(ledger.history()) == 1


class Shy(DPLogisticRegression):
    """A model that does not answer for some rows."""

    def predict(self, X):
        if (np.asarray(X)[:, 0] > 0.5999).any():
            raise TypeError("no")
        return super().predict(X)


def test_rows_that_a_candidate_fails_at_are_the_worst_alone():
    search = of_grid(Shy(), "x_norm")
    expected = sklearn.clone(search).fit(ROWS[NUMBERS], ROWS["ill"])
    source = raw(ROWS)
    found = sklearn.clone(search).fit(source, "ill")
    assert_array_equal(found.best_estimator_.coef_, expected.best_estimator_.coef_)
    assert found.best_score_ == expected.best_score_
    assert source.n_passes < 100  # halves of a source would take a pass each


def test_several_jobs_are_refused_for_a_source():
    search = of_grid(DPLogisticRegression(), "x_norm", n_jobs=2)
    with pytest.raises(ValueError, match="n_jobs must be None or 1 for rows of a source"):
        search.fit(PLACES["dataset"]([*NUMBERS, "ill"]), "ill")
