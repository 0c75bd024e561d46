"""What reaches an estimator: every type of rows and targets, none of which is ever shown."""

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn.base import is_classifier, is_regressor
from sklearn.compose import ColumnTransformer
from sklearn.utils import get_tags
from support.configurations import CONFIGURATIONS, model, outcome, problem

from skdp.linear_model import DPLogisticRegression
from skdp.local import GradientPrivatizer
from skdp.pipeline import DPPipeline
from skdp.preprocessing import (
    BoundedScaler,
    BoundedSplineTransformer,
    DPQuantileScaler,
    RandomFourierTransformer,
    RowNormClipper,
)
from skdp.privacy import BudgetLedger

MODELS = [name for name, kind in CONFIGURATIONS.items() if hasattr(kind, "predict")]
EVERY = pytest.mark.parametrize("name", MODELS)
SPARSE = pytest.mark.parametrize(
    "name", [name for name in MODELS if get_tags(CONFIGURATIONS[name]).input_tags.sparse]
)
REGRESSORS = pytest.mark.parametrize(
    "name", [name for name, kind in CONFIGURATIONS.items() if is_regressor(kind)]
)
CLASSIFIERS = pytest.mark.parametrize(
    "name", [name for name, kind in CONFIGURATIONS.items() if is_classifier(kind)]
)


def ledger():
    return BudgetLedger(epsilon=1e6, delta=0.5)


def with_classes(name, classes):
    """Parameter of a model, or of the model within."""
    own = CONFIGURATIONS[name].get_params()
    known = ("classes", "model__classes", "estimator__classes")
    return {next(parameter for parameter in known if parameter in own): classes}


def is_untouched(estimator):
    return not estimator.ledger.history() and not hasattr(estimator, "guarantee_")


def missing(kind, y):
    y = y.astype(object)
    if kind == "pandas":
        return pd.Series(y).where(np.arange(len(y)) != 7, pd.NA)
    if kind == "masked":
        return np.ma.MaskedArray(y.tolist(), mask=np.arange(len(y)) == 7)
    if kind == "dates":
        days = np.where(y == "yes", "2001-01-01", "2002-01-01").astype("M8[D]")
        days[7] = "NaT"
        return days
    single = np.float32("nan")
    y[7] = {"none": None, "nan": float("nan"), "list": None, "inf": float("inf")}.get(kind, single)
    return y.tolist() if kind in ("list", "single precision") else y


@pytest.mark.parametrize("kind", ["none", "nan", "list", "inf", "pandas", "masked"])
@REGRESSORS
def test_a_missing_target_is_refused_before_the_charge(name, kind):
    X, y = problem(name)
    estimator = model(name, ledger=ledger())
    with pytest.raises(ValueError, match=r"y must|Input (y )?contains|X and y must"):
        estimator.fit(X, missing(kind, y))
    assert is_untouched(estimator)


@pytest.mark.parametrize(
    "kind", ["none", "nan", "list", "pandas", "masked", "dates", "single precision"]
)
@CLASSIFIERS
def test_a_missing_label_is_refused_before_the_charge(name, kind):
    X, y = problem(name)
    estimator = model(name, ledger=ledger())
    with pytest.raises(ValueError, match=r"y must|Input (y )?contains|X and y must"):
        estimator.fit(X, missing(kind, np.where(y, "yes", "no")))
    assert is_untouched(estimator)


@pytest.mark.parametrize(
    "name", [name for name in MODELS if hasattr(CONFIGURATIONS[name], "partial_fit")]
)
def test_a_stream_goes_on_with_no_rows_without_targets(name):
    X, y = problem(name)
    estimator = model(name).partial_fit(X, y)
    before = vars(estimator).copy()
    with pytest.raises(ValueError, match="requires y to be passed"):
        estimator.partial_fit(X, None)
    assert vars(estimator) == before


@REGRESSORS
def test_targets_may_be_objects_that_are_numbers(name):
    X, y = problem(name)
    here = model(name, random_state=0).fit(X, y)
    there = model(name, random_state=0).fit(X, y.astype(object))
    np.testing.assert_array_equal(here.predict(X), there.predict(X))


def repeated(X, *values):
    """CSR in which an entry of the last row is stored several times."""
    rows = sparse.csr_array(X)
    data = np.concatenate([rows.data, values])
    indices = np.concatenate([rows.indices, np.zeros(len(values), dtype=rows.indices.dtype)])
    indptr = rows.indptr.copy()
    indptr[-1] += len(values)
    return sparse.csr_array((data, indices, indptr), shape=X.shape)


@pytest.mark.parametrize("denied", [False, True])
@pytest.mark.parametrize("step", ["fit", "predict"])
@SPARSE
def test_repeated_entries_that_sum_to_infinity_are_refused(name, step, denied):
    X, y = problem(name)
    hostile = repeated(X, 1.7e308, 1.7e308)
    if denied:
        hostile.has_canonical_format = True  # a lie
    estimator = model(name, ledger=ledger())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        if step == "fit":
            with pytest.raises(ValueError, match="X must be finite, also where repeated"):
                estimator.fit(hostile, y)
            assert is_untouched(estimator)
        else:
            estimator.fit(X, y)
            with pytest.raises(ValueError, match="X must be finite, also where repeated"):
                estimator.predict(hostile)


@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array], ids=["dense", "sparse"])
@EVERY
def test_huge_rows_cause_no_warning(name, container):
    if container is not np.asarray and not get_tags(CONFIGURATIONS[name]).input_tags.sparse:
        container = np.asfortranarray
    X, y = problem(name)
    X[3] = 1.7e308
    X[4] = -1.7e308, 1.7e308, 5e-324
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        # That rows were clipped is released, with noise.
        warnings.filterwarnings("ignore", message=".*(no interval|the clipped data)")
        estimator = model(name).fit(container(X), y)
        estimator.predict(container(X))


def malformed(kind, X):
    rows = sparse.csr_array(X)
    if kind == "index beyond the columns":
        rows.indices[5] = 1000
    elif kind == "negative index":
        rows.indices[5] = -3
    elif kind == "pointers that fall":
        rows.indptr[5] = rows.indptr[7]
        rows.indptr[6] = 1
    elif kind == "pointers beyond the data":
        rows.indptr[-1] += 50
    elif kind == "coordinates beyond the shape":
        rows = sparse.coo_array(X)
        rows.coords[1][4] = 1000
    elif kind == "keys beyond the shape":
        rows = sparse.dok_array(X)
        rows._dict[3, 1000] = 1.0
    else:
        rows = sparse.lil_array(X)
        columns = {"lists beyond": [1000], "lists below": [-5], "lists of other lengths": [0]}
        rows.rows[3] = next(c for words, c in columns.items() if kind.startswith(words))
        rows.data[3] = [1.0] * (50 if "lengths" in kind else 1)
    return rows


MALFORMED = [
    "index beyond the columns",
    "negative index",
    "pointers that fall",
    "pointers beyond the data",
    "coordinates beyond the shape",
    "keys beyond the shape",
    "lists beyond the columns",
    "lists below the columns",
    "lists of other lengths",
]


@pytest.mark.parametrize("kind", MALFORMED)
@SPARSE
def test_a_malformed_sparse_matrix_is_refused_before_the_charge(name, kind):
    X, y = problem(name)
    estimator = model(name, ledger=ledger())
    with pytest.raises(ValueError, match="X must be a valid sparse matrix"):
        estimator.fit(malformed(kind, X), y)
    assert is_untouched(estimator)


@SPARSE
def test_what_the_caller_gave_is_not_changed(name):
    X, y = problem(name)
    given = repeated(X, 0.25, -0.25)
    before = given.data.copy(), given.indices.copy(), given.indptr.copy()
    model(name).fit(given, y).predict(given)
    for array, old in zip((given.data, given.indices, given.indptr), before, strict=True):
        np.testing.assert_array_equal(array, old)


def times(kind, X):
    days = np.datetime64("2001-01-01", "ms") + np.arange(X.size).reshape(X.shape)
    days = days - days[0, 0] if "durations" in kind else days
    days[3, 1] = "NaT"
    frame = pd.DataFrame(days, columns=list("abc"))
    if kind == "with zone":
        return frame.apply(lambda column: column.dt.tz_localize("UTC"))
    return {
        "array": days,
        "durations": days,
        "list": list(days),
        "pandas": frame,
        "polars durations": pl.DataFrame(dict(zip("abc", days.T, strict=True))),
    }[kind]


SECRET = "SECRET"


class Hostile:
    """An object that is no number, with an error of its own."""

    def __init__(self, kind):
        self.kind = kind

    def __float__(self):
        raise self.kind(SECRET)


def with_one(array, value):
    array = array.astype(object)
    array.flat[4] = value
    return array


def hostile_inputs(X, y):
    table = X.astype(object)
    table[3, 1] = SECRET
    yield "word among the rows", table, y
    yield "frame with a word", pd.DataFrame(table, columns=["a", "b", "c"]), y
    yield "list of lists", table.tolist(), y
    complex_rows = X + 0j
    complex_rows[3] = 7777.125 + 7777.125j
    yield "complex rows", complex_rows, y
    yield "complex targets", X, y + 7777.125j
    yield "complex targets in a list", X, (y + 7777.125j).tolist()
    words = y.astype(object)
    words[3] = SECRET
    yield "word among the targets", X, words
    yield "word among the targets in a list", X, words.tolist()
    yield "one row without its frame", np.full(len(y), 7777.125), y
    yield "scalar rows", 7777.125, y
    yield "scalar target", X, 7777.125
    yield "targets of two columns", X, np.full((len(y), 2), 7777.125)
    yield "ragged rows", [[7777.125], [7777.125, 1.0]], y[:2]
    yield "dicts", [{SECRET: 1}] * len(y), y
    yield "too few targets", X, np.full(3, 7777.125)
    yield "no targets", X, None
    for kind in (RuntimeError, KeyError, ArithmeticError):
        yield f"object among the rows with a {kind.__name__}", with_one(X, Hostile(kind)), y
        yield f"target with a {kind.__name__}", X, with_one(y, Hostile(kind))


def is_malformed(name, kind):
    """Whether a kind of input is none for a configuration: what learns categories takes words."""
    if "OneHot" in name and (
        "among the rows" in kind or kind in ("frame with a word", "list of lists")
    ):
        return False
    return name in MODELS or "target" not in kind


INPUTS = [kind for kind, _, _ in hostile_inputs(np.zeros((5, 3)), np.arange(5.0) % 2)]


@pytest.mark.parametrize(
    ("name", "kind"),
    [(n, k) for n in CONFIGURATIONS for k in INPUTS if is_malformed(n, k)],
)
def test_messages_about_the_data_show_none_of_it(name, kind):
    X, y = problem(name)
    rows, targets = next((r, t) for k, r, t in hostile_inputs(X, y) if k == kind)
    estimator = model(name, ledger=ledger())
    if "target" in kind and "word" in kind and is_classifier(estimator):
        estimator.set_params(**with_classes(name, [0, 1]))
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        with pytest.raises((TypeError, ValueError)) as error:
            estimator.fit(rows, targets)
    chain, where = [str(w.message) for w in told], error.value
    while where is not None:  # more than a traceback prints: collectors of errors look behind
        chain.append(str(where))
        where = where.__cause__ or where.__context__
    for shown in (SECRET, "7777"):
        assert not any(shown in message for message in chain)
    assert is_untouched(estimator)


@pytest.mark.parametrize("rows", ["SECRET", 7777.125, [7777.125], [["SECRET", 1.0]]], ids=str)
@pytest.mark.parametrize("name", CONFIGURATIONS)
def test_messages_about_rows_to_predict_show_none_of_them(name, rows):
    X, y = problem(name)
    estimator = model(name).fit(X, y)
    with pytest.raises((TypeError, ValueError)) as error:
        outcome(estimator, rows)
    assert error.value.__context__ is None
    assert "SECRET" not in str(error.value) and "7777" not in str(error.value)


@pytest.mark.parametrize(
    "scaler",
    [
        BoundedScaler(),
        BoundedSplineTransformer(),
        RandomFourierTransformer(),
        RowNormClipper(),
    ],
    ids=str,
)
@pytest.mark.parametrize("rows", [[["SECRET"]], [7777.125], [[7777.125j]]], ids=str)
def test_messages_of_transformers_show_no_rows(scaler, rows):
    with pytest.raises((TypeError, ValueError)) as error:
        scaler.fit([[0.5]]).transform(rows)
    assert error.value.__context__ is None
    assert "SECRET" not in str(error.value) and "7777" not in str(error.value)


@pytest.mark.parametrize(
    "make",
    [
        lambda: DPQuantileScaler(epsilon=100.0),
        lambda: DPPipeline([("q", DPQuantileScaler()), ("m", DPLogisticRegression())], 100.0),
    ],
    ids=["scaler", "pipeline"],
)
def test_values_of_an_arrow_table_are_not_taken_for_its_names(make):
    arrow = pytest.importorskip("pyarrow")
    X, y = arrow.table({"a": [7777.125] * 20, "b": [7777.125] * 20}), np.arange(20) % 2
    try:
        make().fit(X, y)
    except (TypeError, ValueError) as error:
        assert "7777" not in str(error)


@pytest.mark.parametrize(
    ("x", "y"),
    [
        *[(["SECRET", 1.0], 0.5), ([0.5, 1.0], "SECRET"), ([0.5, None], 0.5), ([0.5, 1.0], None)],
        (np.array(["2001-01-01", "NaT"], dtype="M8[s]"), 0.5),
        ([[0.5, 1.0]], pd.Categorical([7777.125j])),
    ],
    ids=str,
)
def test_messages_of_a_device_do_not_show_the_record(x, y):
    with pytest.raises((TypeError, ValueError)) as error:
        GradientPrivatizer(scale=1.0).release(np.zeros(3), x, y)
    assert error.value.__suppress_context__ or error.value.__context__ is None
    assert "SECRET" not in str(error.value) and "7777" not in str(error.value)


def test_a_missing_value_is_answered_by_what_has_a_guarantee():
    with pytest.raises(ValueError, match="contains NaN") as error:
        DPLogisticRegression().fit([[1.0, np.nan], [0.0, 1.0]], [0, 1])
    assert str(error.value).endswith("or by a privately learned value.")
    assert "DPSimpleImputer" in str(error.value) and "HistGradient" not in str(error.value)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [(lambda X: X[["b"]], "missing: {'a'}"), (lambda X: X.to_numpy(), "dataframes")],
    ids=["too few", "array"],
)
def test_columns_that_a_pipeline_misses_are_named(wrong, words):
    X = pd.DataFrame({"a": np.linspace(-1, 1, 50), "b": 0.5})
    columns = ColumnTransformer([("scale", BoundedScaler(), ["a"])])
    model = DPPipeline([("columns", columns), ("model", DPLogisticRegression())])
    with pytest.raises(ValueError) as error:
        model.fit(X, X["a"] > 0).predict(wrong(X))
    assert words in str(error.value)


@CLASSIFIERS
def test_an_unlisted_label_is_not_shown(name):
    X, y = problem(name)
    labels = np.where(y, "yes", "no").astype(object)
    labels[3] = SECRET
    estimator = model(name, **with_classes(name, ["no", "yes"]), ledger=ledger())
    with pytest.raises(ValueError, match="classes must list every label of y") as error:
        estimator.fit(X, labels)
    assert SECRET not in str(error.value)
    assert is_untouched(estimator)
