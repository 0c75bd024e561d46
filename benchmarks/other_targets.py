"""Scores on other targets of the sets of `peers.data`, on which no rule was chosen.

    python benchmarks/other_targets.py --out FILE.csv [options of peers/table.py]

Columns that are features elsewhere are targets here, and targets of regressions are cut at round
numbers. All else is as in ``benchmarks/peers/table.py``, whose report does not know these sets.
Needs SKDP_DATA.
"""

import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd
from peers import data, table
from peers.data import Table

__all__ = ["BINARY", "MULTICLASS", "REGRESSION"]


def cut(name: str, *ends: float) -> Table:
    """Regression target between ends: whether it is beyond one, or which of several it is in."""
    found = data._loaded(name)
    codes = np.digitize(np.asarray(found.target, dtype=float), ends)
    return replace(found, target=codes == 1 if len(ends) == 1 else codes, y_bounds=None)


def some(name: str, labels: Sequence[int]) -> Table:
    """Whether the class is one of some."""
    found = data._loaded(name)
    return replace(found, target=np.isin(np.asarray(found.target), labels))


def column(
    name: str,
    target: str,
    test: Callable[[pd.Series], pd.Series] | None = None,
    y_bounds: tuple[float, float] | None = None,
) -> Table:
    """A column as the target: what is true of it, its number within bounds, or its category."""
    found = data._loaded(name)
    values = found.data[target]
    if test is not None:
        values = test(values)
    elif y_bounds is None:
        values = pd.Series(pd.factorize(values, sort=True)[0])
    else:
        values = values.astype(float)
        values = values.fillna(values.mean())
    return replace(
        found,
        data=found.data.drop(columns=[target]),
        target=values.to_numpy(),
        bounds={key: ends for key, ends in found.bounds.items() if key != target},
        categories={key: known for key, known in found.categories.items() if key != target},
        log=[key for key in found.log if key != target],
        indicators=[key for key in found.indicators if key != target],
        y_bounds=y_bounds,
    )


def _is(value):
    return lambda column: column == value


BINARY: dict[str, Callable[[], Table]] = {
    "abalone, old": partial(cut, "abalone", 9.5),
    "airfoil, loud": partial(cut, "airfoil", 125.0),
    "bike, busy": partial(cut, "bike", 150.0),
    "california, dear": partial(cut, "california", 180_000.0),
    "ccpp, much": partial(cut, "ccpp", 450.0),
    "house16h, dear": partial(cut, "house16h", 35_000.0),
    "kin40k, positive": partial(cut, "kin40k", 0.0),
    "wine, good": partial(cut, "wine", 5.5),
    "wine, red": partial(column, "wine", "color", _is("red")),
    "diabetes, severe": partial(cut, "diabetes", 140.0),
    "covertype 1": partial(some, "covertype7", [1]),
    "covertype 7": partial(some, "covertype7", [7]),
    "letter, first half": partial(some, "letter", range(13)),
    "letter O": partial(some, "letter", [14]),
    "digits, odd": partial(some, "digits", [1, 3, 5, 7, 9]),
    "adult, sex": partial(column, "adult", "sex", _is("Male")),
    "adult, married": partial(column, "adult", "marital-status", _is("Married-civ-spouse")),
    "mushroom, population": partial(column, "mushroom", "population", _is("v")),
    "mushroom, bruises": partial(column, "mushroom", "bruises", _is("t")),
    "flights, not early": partial(cut, "flights", -5.0),
    "german, age": partial(column, "german", "x12", lambda column: column > 33),
    "diabetes130, sex": partial(column, "diabetes130", "gender", _is("Female")),
}
MULTICLASS: dict[str, Callable[[], Table]] = {
    "abalone, three": partial(cut, "abalone", 8.5, 10.5),
    "airfoil, four": partial(cut, "airfoil", 120.0, 125.0, 130.0),
    "bike, five": partial(cut, "bike", 30.0, 100.0, 200.0, 350.0),
    "california, four": partial(cut, "california", 120e3, 180e3, 265e3),
    "wine, five": partial(cut, "wine", 4.5, 5.5, 6.5, 7.5),
    "kin40k, four": partial(cut, "kin40k", -0.7, 0.0, 0.7),
    "adult, workclass": partial(column, "adult", "workclass"),
    "adult, occupation": partial(column, "adult", "occupation"),
    "mushroom, habitat": partial(column, "mushroom", "habitat"),
    "diabetes130, diagnosis": partial(column, "diabetes130", "diag_1"),
    "flights, carrier": partial(column, "flights", "carrier"),
}
REGRESSION: dict[str, Callable[[], Table]] = {
    f"{name}, {target}": partial(column, name, target, y_bounds=ends)
    for name, target, ends in (
        ("adult", "age", (0.0, 100.0)),
        ("adult", "hours-per-week", (0.0, 99.0)),
        ("diabetes130", "time_in_hospital", (1.0, 14.0)),
        ("diabetes130", "num_medications", (0.0, 50.0)),
        ("covertype7", "Elevation", (1500.0, 4500.0)),
        ("covertype7", "Horizontal_Distance_To_Fire_Points", (0.0, 10_000.0)),
        ("wine", "alcohol", (8.0, 15.0)),
        ("wine", "pH", (2.5, 4.5)),
        ("california", "medianIncome", (0.0, 15.0)),
        ("bike", "hum", (0.0, 1.0)),
        ("flights", "distance", (0.0, 5000.0)),
        ("german", "x1", (0.0, 72.0)),
        ("abalone", "WholeWeight", (0.0, 3.0)),
    )
}

if __name__ == "__main__":
    for known, new in (
        (data.BINARY, BINARY),
        (data.MULTICLASS, MULTICLASS),
        (data.REGRESSION, REGRESSION),
    ):
        known.update(new)
        data.SETS.update(new)
    if "--sets" not in sys.argv:
        sys.argv += ["--sets", *BINARY, *MULTICLASS, *REGRESSION]
    table.main()
