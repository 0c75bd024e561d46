"""The data sets of the tables: how rows are prepared and split, with the seeds.

Every bound and every list of categories stands here, written down from codebooks or as a round
number. Classifiers get rows of norm 1, regressors rows in [-1, 1]^d. Needs SKDP_DATA for all but
the sets that scikit-learn and statsmodels bundle, and pandas.
"""

import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from string import ascii_uppercase
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import MaxAbsScaler, OneHotEncoder, StandardScaler, normalize

from skdp import datasets
from skdp.preprocessing import make_public_preprocessor

__all__ = [
    "BINARY",
    "MULTICLASS",
    "REGRESSION",
    "SETS",
    "SIZES",
    "Split",
    "Table",
    "kind_of",
    "split",
]

# Rows to learn from: these, and all that a split leaves, which are no more than 50,000.
SIZES = (1_000, 5_000, None)
_MOST, _MOST_TEST = 50_000, 10_000
_TEST_SHARE = 0.3


@dataclass(frozen=True)
class Table:
    """A data set with public bounds and categories; text comes as sparse rows of norm 1.

    Parameters
    ----------
    data : DataFrame or CSR matrix

    target : array-like

    bounds, categories, log, indicators
        As for :func:`~skdp.preprocessing.make_public_preprocessor`.

    y_bounds : (float, float), default=None
        Public bounds of a regression target.

    parts : ndarray of bool, default=None
        Which rows are for training where the donors say so.

    from_zero : bool, default=False
        Whether columns are amounts of which 0 is none: they are mapped to [0, 1], so that
        what is not there adds nothing to a row.
    """

    data: Any
    target: Any
    bounds: dict = field(default_factory=dict)
    categories: dict = field(default_factory=dict)
    log: Iterable[str] = ()
    indicators: Iterable[str] = ()
    y_bounds: tuple[float, float] | None = None
    parts: np.ndarray | None = None
    from_zero: bool = False


@dataclass(frozen=True)
class Split:
    """Rows to learn from and to score on.

    Parameters
    ----------
    X, X_test : ndarray or CSR matrix
        Prepared by public numbers only.

    y, y_test : ndarray

    raw, raw_test : DataFrame or CSR matrix
        The same before the preparation, for what runs without privacy.

    plain : Pipeline
        Unfitted: what a user without a thought of privacy prepares ``raw`` with.

    y_bounds : (float, float) or None

    table : Table
        What is public of the columns.
    """

    X: Any
    y: np.ndarray
    X_test: Any
    y_test: np.ndarray
    raw: Any
    raw_test: Any
    plain: Pipeline
    y_bounds: tuple[float, float] | None
    table: Table


def split(name: str, n: int | None = None, seed: int = 0, *, rows: str = "auto") -> Split:
    """Split a set at random, prepare its rows, and keep ``n`` of them to learn from.

    Parameters
    ----------
    name : str
        Key of `SETS`.

    n : int, default=None
        None keeps 50,000, or all that the split leaves.

    seed : int, default=0

    rows : {"auto", "unit", "cube", "short"}, default="auto"
        Rows of norm 1, or in [-1, 1]^d. "auto" is "cube" for regression. "short" is "cube" over
        the root of d, for a bound of 1. Text has rows of norm 1 in any case.
    """
    table = _loaded(name)
    order = np.random.default_rng(seed).permutation(len(table.target))
    if table.parts is not None:
        given = table.parts[order]
        train, test = order[given], order[~given]
    else:
        n_test = min(_MOST_TEST, round(_TEST_SHARE * len(order)))
        train, test = order[n_test:], order[:n_test]
    train, test = train[: n or _MOST], test[:_MOST_TEST]
    target = np.asarray(table.target)
    raw, raw_test = _rows(table.data, train), _rows(table.data, test)
    X, X_test = raw, raw_test
    if not sparse.issparse(raw):
        unit = rows == "unit" or (rows == "auto" and table.y_bounds is None)
        prepare = make_public_preprocessor(
            table.bounds,
            table.categories,
            log=table.log,
            indicators=table.indicators,
            norm="scale" if unit and not table.from_zero else None,
        )
        X, X_test = prepare.fit_transform(raw), prepare.transform(raw_test)
        if rows == "short":
            X, X_test = X / np.sqrt(X.shape[1]), X_test / np.sqrt(X.shape[1])
        elif table.from_zero:
            X, X_test = normalize((1.0 + X) / 2.0), normalize((1.0 + X_test) / 2.0)
    return Split(
        X, target[train], X_test, target[test], raw, raw_test, _plain(table), table.y_bounds, table
    )


def _rows(data, chosen):
    return data[chosen] if sparse.issparse(data) else data.iloc[chosen]


def _plain(table: Table) -> Pipeline:
    """What scikit-learn's users do first."""
    if sparse.issparse(table.data):
        return make_pipeline(MaxAbsScaler())
    numbers = [*table.bounds, *table.indicators]
    encoder = OneHotEncoder(handle_unknown="ignore")
    return make_pipeline(
        make_column_transformer(
            (StandardScaler(), numbers), (encoder, list(table.categories)), sparse_threshold=0
        )
    )


@cache
def _loaded(name: str) -> Table:
    return SETS[name]()


def _read(path: str, **options) -> pd.DataFrame:
    """Read a file of the shared folder."""
    folder = os.environ.get("SKDP_DATA")
    if not folder:
        raise FileNotFoundError(f"SKDP_DATA must name the folder that holds {path}.")
    return pd.read_csv(Path(folder) / path, **options)


def _numbered(frame: pd.DataFrame) -> pd.DataFrame:
    return frame.set_axis([f"x{i}" for i in range(frame.shape[1])], axis=1)


def _bunch(bunch, target, y_bounds=None, **options) -> Table:
    return Table(
        bunch.data,
        target,
        bunch.bounds,
        bunch.categories,
        bunch.log,
        bunch.indicators,
        y_bounds,
        **options,
    )


# Two classes


def _adult():
    bunch = datasets.fetch_adult("train")
    test = datasets.fetch_adult("test")
    data = pd.concat([bunch.data, test.data], ignore_index=True)
    target = np.concatenate([bunch.target, test.target]) == ">50K"
    log = ["capital-gain", "capital-loss"]
    parts = np.arange(len(data)) < len(bunch.data)
    return Table(data, target, bunch.bounds, bunch.categories, log, parts=parts)


def _covertype2():
    table = _covertype7()
    return Table(
        table.data,
        np.asarray(table.target) == 2,
        table.bounds,
        indicators=table.indicators,
    )


def _diabetes130():
    bunch = datasets.fetch_diabetes130()
    return _bunch(bunch, np.asarray(bunch.target) == bunch.classes[1])


def _kddcup():
    frame = _read("kddcup99/kddcup.data_10_percent.gz", header=None)
    dos = ["back", "land", "neptune", "pod", "smurf", "teardrop"]
    is_dos = frame[41].isin([f"{name}." for name in dos])
    frame = frame[is_dos | (frame[41] == "normal.")].drop_duplicates()
    target = (frame[41] != "normal.").to_numpy()
    data = _numbered(frame.drop(columns=[41]))
    counts = {0: 1e5, 4: 1e9, 5: 1e9, 9: 100, 12: 1e3, 15: 1e3, 16: 100, 18: 10}
    counts |= {22: 511, 23: 511, 31: 255, 32: 255}
    shares = [*range(24, 31), *range(33, 41)]
    bounds = {f"x{i}": (0.0, float(high)) for i, high in counts.items()}
    bounds |= {f"x{i}": (0.0, 1.0) for i in shares}
    flags = ["SF", "S0", "S1", "S2", "S3", "REJ", "RSTO", "RSTR", "RSTOS0", "OTH", "SH"]
    categories = {"x1": ["tcp", "udp", "icmp"], "x3": flags}
    return Table(data, target, bounds, categories, [f"x{i}" for i in counts], ["x6", "x11", "x21"])


def _late():
    bunch = datasets.fetch_nycflights13()
    return _bunch(bunch, np.asarray(bunch.target) > 15.0)


def _spambase():
    frame = _numbered(_read("spambase/spambase.data.gz", header=None))
    target = frame.pop("x57").to_numpy() == 1
    bounds = {f"x{i}": (0.0, 100.0) for i in range(54)}  # percent of words or of characters
    bounds |= {"x54": (1.0, 1e3), "x55": (1.0, 1e4), "x56": (1.0, 1e5)}  # lengths of runs
    return Table(frame, target, bounds, log=list(bounds), from_zero=True)


def _german():
    frame = _numbered(_read("german_credit/german.data.csv.gz", header=None))
    target = frame.pop("x20").to_numpy() == 2
    bounds = {"x1": (0.0, 72.0), "x4": (250.0, 20_000.0), "x7": (1.0, 4.0), "x10": (1.0, 4.0)}
    bounds |= {"x12": (18.0, 80.0), "x15": (1.0, 4.0), "x17": (1.0, 2.0)}
    codes = {0: (1, 4), 2: (0, 4), 3: (0, 10), 5: (1, 5), 6: (1, 5), 8: (1, 5), 9: (1, 3)}
    codes |= {11: (1, 4), 13: (1, 3), 14: (1, 3), 16: (1, 4), 18: (1, 2), 19: (1, 2)}
    categories = {
        f"x{i}": [f"A{i + 1}{code}" for code in range(low, high + 1)]
        for i, (low, high) in codes.items()
    }
    return Table(frame, target, bounds, categories, ["x4"])


# The published list of the values of each attribute, in its order.
_MUSHROOM = {
    "cap-shape": "bcxfks",
    "cap-surface": "fgys",
    "cap-color": "nbcgrpuewy",
    "bruises": "tf",
    "odor": "alcyfmnps",
    "gill-attachment": "adfn",
    "gill-spacing": "cwd",
    "gill-size": "bn",
    "gill-color": "knbhgropuewy",
    "stalk-shape": "et",
    "stalk-root": "bcuezr?",
    "stalk-surface-above-ring": "fyks",
    "stalk-surface-below-ring": "fyks",
    "stalk-color-above-ring": "nbcgopewy",
    "stalk-color-below-ring": "nbcgopewy",
    "veil-type": "pu",
    "veil-color": "nowy",
    "ring-number": "not",
    "ring-type": "ceflnpsz",
    "spore-print-color": "knbhrouwy",
    "population": "acnsvy",
    "habitat": "glmpuwd",
}


def _mushroom():
    frame = _read("mushroom/agaricus-lepiota.csv.gz")
    target = frame.pop("label").to_numpy() == "p"
    return Table(frame, target, categories={k: list(v) for k, v in _MUSHROOM.items()})


def _breast_cancer():
    bunch = load_breast_cancer(as_frame=True)
    highs = dict(radius=30, texture=40, perimeter=200, area=3_000, smoothness=0.2)
    highs |= dict(compactness=0.4, concavity=0.5, symmetry=0.4)
    highs |= {"concave points": 0.25, "fractal dimension": 0.1}
    bounds = {}
    for name, high in highs.items():
        bounds |= {f"mean {name}": (0.0, high), f"worst {name}": (0.0, 1.5 * high)}
        bounds[f"{name} error"] = (0.0, 0.2 * high)
    return Table(bunch.data, np.asarray(bunch.target), bounds)


def _fair():
    bunch = datasets.fetch_fair()
    data, target = bunch.data, np.asarray(bunch.target) == bunch.target.unique().max()
    return Table(data, target, bunch.bounds, bunch.categories)


def _text(fetch, n_features=1024, **options):
    train, test = (fetch(part, n_features=n_features, **options) for part in ("train", "test"))
    data = sparse.csr_array(sparse.vstack([train.data, test.data]))
    parts = np.arange(data.shape[0]) < train.data.shape[0]
    return Table(data, np.concatenate([train.target, test.target]), parts=parts)


# More classes


def _letter():
    frame = _read("letter/letter.csv.gz")
    target = frame.pop("class").map(ascii_uppercase.index).to_numpy()
    return Table(frame, target, {name: (0.0, 15.0) for name in frame}, from_zero=True)


def _digits():
    bunch = load_digits(as_frame=True)
    return Table(
        bunch.data,
        bunch.target.to_numpy(),
        {name: (0.0, 16.0) for name in bunch.data},
        from_zero=True,
    )


def _covertype7():
    bunch = datasets.fetch_covertype()
    return Table(bunch.data, bunch.target, bunch.bounds, indicators=bunch.indicators)


def _diabetes130_3():
    bunch = datasets.fetch_diabetes130()
    frame = _read("diabetes130/diabetic_data.csv.gz", usecols=["readmitted"])
    codes = frame["readmitted"].map({"NO": 0, ">30": 1, "<30": 2})
    return _bunch(bunch, codes.fillna(0).astype(int).to_numpy())


def _wine_classes():
    table = _wine()
    return Table(
        table.data,
        np.digitize(np.asarray(table.target), [5.5, 6.5]),
        table.bounds,
        table.categories,
        table.log,
    )


# Regression


def _fetched(fetch):
    bunch = fetch()
    return _bunch(bunch, np.asarray(bunch.target, dtype=float), bunch.target_bounds)


def _house16h():
    frame = _read("house16h/house16h.csv.gz")
    target = frame.pop("y").to_numpy(dtype=float)
    bounds = {name: (0.0, 1.0) for name in frame} | {"1": (0.0, 1e7)}
    return Table(frame, target, bounds, log=["1"], y_bounds=(0.0, 500_000.0))


def _airfoil():
    frame = _read("airfoil/airfoil.csv.gz")
    target = frame.pop("sound_pressure").to_numpy()
    bounds = {
        "frequency": (100.0, 20_000.0),
        "angle_of_attack": (0.0, 25.0),
        "chord": (0.0, 0.35),
        "velocity": (30.0, 75.0),
        "displacement": (0.0, 0.06),
    }
    return Table(frame, target, bounds, log=["frequency"], y_bounds=(100.0, 145.0))


def _abalone():
    frame = _read("abalone/abalone.csv.gz")
    target = frame.pop("Rings").to_numpy(dtype=float)
    bounds = {"Length": (0.0, 1.0), "Diameter": (0.0, 0.8), "Height": (0.0, 0.4)}
    bounds |= {"WholeWeight": (0.0, 3.0), "ShuckedWeight": (0.0, 1.5)}
    bounds |= {"VisceraWeight": (0.0, 0.8), "ShellWeight": (0.0, 1.0)}
    return Table(frame, target, bounds, {"Sex": ["F", "I", "M"]}, y_bounds=(0.0, 30.0))


def _wine():
    frame = _read("wine_quality/winequality.csv.gz")
    target = frame.pop("quality").to_numpy(dtype=float)
    bounds = {
        "fixed_acidity": (3.0, 16.0),
        "volatile_acidity": (0.0, 1.6),
        "citric_acid": (0.0, 1.0),
        "residual_sugar": (0.0, 70.0),
        "chlorides": (0.0, 0.6),
        "free_sulfur_dioxide": (0.0, 150.0),
        "total_sulfur_dioxide": (0.0, 400.0),
        "density": (0.98, 1.01),
        "pH": (2.5, 4.5),
        "sulphates": (0.0, 2.0),
        "alcohol": (8.0, 15.0),
    }
    log = ["residual_sugar"]
    return Table(frame, target, bounds, {"color": ["red", "white"]}, log, y_bounds=(0.0, 10.0))


def _diabetes():
    bunch = load_diabetes(as_frame=True, scaled=False)
    bounds = {"age": (18.0, 90.0), "sex": (1.0, 2.0), "bmi": (15.0, 45.0), "bp": (60.0, 140.0)}
    bounds |= {"s1": (90.0, 310.0), "s2": (30.0, 250.0), "s3": (20.0, 100.0), "s4": (2.0, 10.0)}
    bounds |= {"s5": (3.0, 6.5), "s6": (50.0, 130.0)}
    return Table(bunch.data, bunch.target.to_numpy(), bounds, y_bounds=(25.0, 350.0))


BINARY: dict[str, Callable[[], Table]] = {
    "adult": _adult,
    "covertype2": _covertype2,
    "diabetes130": _diabetes130,
    "kddcup": _kddcup,
    "late": _late,
    "spambase": _spambase,
    "german": _german,
    "mushroom": _mushroom,
    "breast cancer": _breast_cancer,
    "fair": _fair,
    "imdb": lambda: _text(datasets.fetch_imdb),
    "newsgroups2": lambda: _text(datasets.fetch_newsgroups20, binary=True),
}
MULTICLASS: dict[str, Callable[[], Table]] = {
    "letter": _letter,
    "digits": _digits,
    "covertype7": _covertype7,
    "diabetes130 3": _diabetes130_3,
    "wine classes": _wine_classes,
    "newsgroups20": lambda: _text(datasets.fetch_newsgroups20),
}
REGRESSION: dict[str, Callable[[], Table]] = {
    "bike": lambda: _fetched(datasets.fetch_bike_sharing),
    "california": lambda: _fetched(datasets.fetch_california_housing),
    "ccpp": lambda: _fetched(datasets.fetch_ccpp),
    "kin40k": lambda: _fetched(datasets.fetch_kin40k),
    "flights": lambda: _fetched(datasets.fetch_nycflights13),
    "house16h": _house16h,
    "airfoil": _airfoil,
    "abalone": _abalone,
    "wine": _wine,
    "diabetes": _diabetes,
}
SETS = BINARY | MULTICLASS | REGRESSION


def kind_of(name: str) -> str:
    """Whether a set is "binary", "multiclass" or "regression"."""
    if name in BINARY:
        return "binary"
    return "multiclass" if name in MULTICLASS else "regression"
