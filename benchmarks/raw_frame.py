"""From the raw frame within one budget: nothing is declared, all is learned.

    python benchmarks/raw_frame.py [--draws 20] [--quick] [--sets adult ...] [--ways learned ...]

Numeric columns are looked for in (-1e6, 1e6), categories are learned, and so is the target of
regressions, in (-1e7, 1e7); then the same with categories that are known. Beside it, for the same
model and budget: the quantiles .01 and .99 of the private columns as bounds, which nobody accounts
for; the public bounds of the data sets, with logarithms where their codebooks suggest them; the
search range as bounds; and a StandardScaler, which leaks. All of these know the categories.
Defaults only, delta=1e-5, replace-one. Needs SKDP_DATA.
"""

import argparse
import warnings

import numpy as np
from peers.data import SETS, kind_of, split
from sklearn.compose import make_column_transformer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, Normalizer, OneHotEncoder, StandardScaler

from skdp.kernel import DPKernelRidge
from skdp.linear_model import DPLogisticRegression
from skdp.pipeline import DPPipeline
from skdp.preprocessing import (
    DPQuantileScaler,
    make_private_preprocessor,
    make_public_preprocessor,
)

DELTA = 1e-5
SEARCH, TARGET_SEARCH = (-1e6, 1e6), (-1e7, 1e7)
CLASSIFICATION = ("adult", "diabetes130", "kddcup", "covertype2", "late")
REGRESSION = ("california", "bike")
WAYS = ("learned", "bounds", "true", "public", "absurd", "leaky")


class Table:
    """A data set with the preparations that are compared.

    Parameters
    ----------
    name : str
        Of `peers.data`.

    norm : "scale" or None
        Of the rows.
    """

    def __init__(self, name, norm):
        self.split, self.norm = split(name), norm
        self.table = SETS[name]()
        numbers = [*self.table.bounds, *self.table.indicators]
        self.schema = {"numeric": numbers, "categorical": list(self.table.categories)}

    def learned(self, n_splines):
        """Bounds and categories within the budget."""
        return make_private_preprocessor(
            self.schema, n_splines=n_splines, search_range=SEARCH, norm=self.norm
        )

    def bounds(self, n_splines):
        """Bounds within the budget, and categories that somebody knows."""
        scaler = DPQuantileScaler(n_splines=n_splines, search_range=SEARCH, sparse_output=False)
        rows = [Normalizer()] if self.norm else []
        return make_pipeline(self.with_categories(scaler), *rows)

    def with_categories(self, numeric):
        """Known categories beside what becomes of the numeric columns."""
        known = [list(values) for values in self.table.categories.values()]
        encoder = OneHotEncoder(
            categories=[sorted(v) if isinstance(v[0], int) else v for v in known],
            handle_unknown="ignore",
        )
        return make_column_transformer(
            (numeric, self.schema["numeric"]),
            (encoder, self.schema["categorical"]),
            sparse_threshold=0.0,
        )

    def given(self, bounds, n_splines, log=(), indicators=()):
        """Bounds and categories that somebody knows."""
        categories = self.table.categories
        options = {"n_splines": n_splines} if n_splines else {"log": log}
        return make_public_preprocessor(
            bounds, categories, indicators=indicators, missing="center", norm=self.norm, **options
        )

    def true(self, n_splines):
        """The private quantiles .01 and .99."""
        low, high = np.nanquantile(
            self.split.raw[self.schema["numeric"]].to_numpy(dtype=float), [0.01, 0.99], axis=0
        )
        high = np.where(high > low, high, low + 1.0)
        bounds = dict(zip(self.schema["numeric"], zip(low, high, strict=True), strict=True))
        return self.given(bounds, n_splines)

    def public(self, n_splines):
        """The public bounds."""
        return self.given(self.table.bounds, n_splines, self.table.log, self.table.indicators)

    def absurd(self, n_splines):
        """The search range."""
        return self.given(dict.fromkeys(self.schema["numeric"], SEARCH), n_splines)

    def leaky(self, n_splines):
        """What scikit-learn's users do first, with rows of bounded norm."""
        if n_splines:
            return None
        zeros = FunctionTransformer(np.nan_to_num)
        rows = [Normalizer()] if self.norm else []
        return make_pipeline(self.with_categories(StandardScaler()), zeros, *rows)


def scores(table, prepare, model, epsilon, draws, leaks):
    """Score on the test rows, for fresh noise each time."""
    data, public = table.split, ("prepare",) if leaks else ()
    steps = [("prepare", prepare), ("model", model)]
    pipeline = DPPipeline(steps, epsilon=epsilon, delta=DELTA, public=public)
    return np.array(
        [pipeline.fit(data.raw, data.y).score(data.raw_test, data.y_test) for _ in range(draws)]
    )


def report(name, n_splines, epsilons, draws, ways=WAYS):
    """Print one line for each preparation."""
    regression = kind_of(name) == "regression"
    table = Table(name, None if regression else "scale")
    n_columns = len(table.schema["numeric"])
    what = "splines" if n_splines else "straight lines"
    print(f"{name}, {len(table.split.y)} rows, {n_columns} numeric columns, {what}", flush=True)
    for way in ways:
        prepare, cells = getattr(table, way)(n_splines), []
        if prepare is None:
            continue
        if regression:
            learns = way in ("learned", "bounds", "absurd")
            bounds = {"y_bounds": "auto", "y_search_range": TARGET_SEARCH}
            model = DPKernelRidge(**(bounds if learns else {"y_bounds": table.split.y_bounds}))
        else:
            model = DPLogisticRegression()
        for epsilon in epsilons:
            drawn = scores(table, prepare, model, epsilon, draws, way == "leaky")
            error = drawn.std() / np.sqrt(draws)
            cells.append(f"{drawn.mean():.4f}({1e4 * error:3.0f}) least {drawn.min():.4f}")
        print(f"  {way:10s} " + "   ".join(cells), flush=True)


def main():
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draws", type=int, default=20)
    parser.add_argument("--quick", action="store_true", help="Adult alone")
    parser.add_argument("--ways", nargs="*", default=WAYS)
    parser.add_argument("--sets", nargs="*", default=(*CLASSIFICATION, *REGRESSION))
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    print("Accuracy, or R^2, at epsilon 1 and .5: mean (standard error in 1e-4), least")
    for name in ("adult",) if arguments.quick else arguments.sets:
        for n_splines in (None,) if kind_of(name) == "regression" else ("auto", None):
            report(name, n_splines, (1.0, 0.5), arguments.draws, arguments.ways)


if __name__ == "__main__":
    main()
