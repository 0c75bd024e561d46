"""Raw frames of few and many rows within one budget: is any refused, and what do shares cost?

    python benchmarks/raw_frame.py [--draws 3] [--sets adult ...] [--rows 1000 5000 0] [--users]
    python benchmarks/raw_frame.py --patients

Numeric columns are looked for in (-1e6, 1e6), categories are learned, and so is the target of
regressions, in (-1e7, 1e7). Beside the defaults: fixed shares of the bounds, and the quantiles .01
and .99 of the private columns as bounds, which nobody accounts for, with learned categories. With
--users three rows next to each other have one owner. --patients are those of Diabetes-130: AUC of
described columns beside columns that nobody has described. Defaults only, delta=1e-6,
replace-one; 0 rows are all, up to 50,000. Each line is a set, a number of rows and an epsilon.
Needs SKDP_DATA.
"""

import argparse
import warnings

import numpy as np
from peers.data import BINARY, REGRESSION, SETS, kind_of, split
from sklearn.compose import make_column_transformer
from sklearn.metrics import roc_auc_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer

from skdp.datasets import fetch_diabetes130
from skdp.kernel import DPKernelRidge
from skdp.linear_model import DPLogisticRegression
from skdp.pipeline import DPPipeline
from skdp.preprocessing import (
    BoundedScaler,
    BoundedSplineTransformer,
    DPOneHotEncoder,
    make_private_preprocessor,
    make_public_preprocessor,
)

DELTA, USER_ROWS = 1e-6, 3
SHARES = (0.05, 0.1, 0.25, 0.5)
NUMERIC = "prepare__columns__numeric"
LONG = ("imdb", "newsgroups2")  # of text


def schema_of(name):
    """Numeric and categorical columns."""
    table = SETS[name]()
    numbers = [*table.bounds, *table.indicators]
    return {"numeric": numbers, "categorical": list(table.categories)}


def true_bounds(data, schema, norm):
    """Preparation with the private quantiles .01 and .99 as bounds."""
    columns = data.raw[schema["numeric"]].to_numpy(dtype=float)
    low, high = np.nanquantile(columns, [0.01, 0.99], axis=0)
    high = np.where(high > low, high, low + 1.0)
    bounds = dict(zip(schema["numeric"], zip(low, high, strict=True), strict=True))
    if norm is None:
        scaler = BoundedScaler(bounds, missing="center")
    else:
        scaler = BoundedSplineTransformer(bounds, n_splines="auto", sparse_output=False)
    parts = [(scaler, schema["numeric"])]
    if schema["categorical"]:
        parts.append((DPOneHotEncoder(sparse_output=False), schema["categorical"]))
    rows = [] if norm is None else [Normalizer()]
    return make_pipeline(make_column_transformer(*parts, sparse_threshold=0.0), *rows)


def scores(data, prepare, epsilon, share, groups, draws, regression):
    """Score and AUC, in the mean over fresh noise; None where the fit is refused."""
    model = DPLogisticRegression()
    if regression:
        model = DPKernelRidge(y_bounds="auto", y_search_range=(-1e7, 1e7))
    shares = "auto" if share is None else {NUMERIC: share}
    steps = [("prepare", prepare), ("model", model)]
    pipeline = DPPipeline(steps, epsilon=epsilon, delta=DELTA, shares=shares)
    found = []
    for _ in range(draws):
        try:
            pipeline.fit(data.raw, data.y, groups=groups)
        except ValueError as error:
            return None, str(error)
        score, auc = pipeline.score(data.raw_test, data.y_test), np.nan
        if not regression:
            chances = pipeline.predict_proba(data.raw_test)
            auc = roc_auc_score(data.y_test, chances[:, 1])
        found.append((score, auc))
    return np.mean(found, axis=0), pipeline.budget_


def line(name, n, epsilon, draws, users):
    """Scores of all ways for one set, number of rows and epsilon."""
    regression = kind_of(name) == "regression"
    data, schema = split(name, n or None), schema_of(name)
    norm = None if regression else "scale"
    options = dict(norm=norm) | (dict(n_splines=None) if regression else dict(n_splines="auto"))
    prepare = make_private_preprocessor(schema, **options)
    groups = np.arange(len(data.y)) // USER_ROWS if users else None
    common = (groups, draws, regression)
    own, table = scores(data, prepare, epsilon, None, *common)
    fixed = [scores(data, prepare, epsilon, share, *common)[0] for share in SHARES]
    true, _ = scores(data, true_bounds(data, schema, norm), epsilon, None, *common)
    return own, fixed, true, table


def patients(draws, epsilons):
    """AUC for patients, whose columns are described, or learned."""
    stays = fetch_diabetes130()
    y, owners = np.asarray(stays.target), np.asarray(stays.patient)
    schema = {"numeric": list(stays.bounds), "categorical": list(stays.categories)}
    public = stays.bounds, stays.categories
    ways = {
        "described": make_public_preprocessor(*public, log=stays.log, missing="center"),
        "described, splines": make_public_preprocessor(*public, n_splines="auto"),
        "learned": make_private_preprocessor(schema),
    }
    for epsilon in epsilons:
        found = {way: [] for way in ways}
        for seed in range(draws):
            users = np.random.default_rng(seed).permutation(np.unique(owners))
            test = np.isin(owners, users[: round(0.3 * len(users))])
            for way, prepare in ways.items():
                steps = [("prepare", prepare), ("model", DPLogisticRegression())]
                model = DPPipeline(steps, epsilon=epsilon, delta=DELTA)
                model.fit(stays.data[~test], y[~test], groups=owners[~test])
                chances = model.predict_proba(stays.data[test])[:, 1]
                found[way].append(roc_auc_score(y[test], chances))
        texts = (f"{way} {np.mean(scores):.4f}" for way, scores in found.items())
        print(f"epsilon {epsilon}: " + ", ".join(texts), flush=True)


def main():
    """Print the table and its means."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draws", type=int, default=3)
    parser.add_argument("--rows", type=int, nargs="*", default=(1000, 5000, 0))
    parser.add_argument("--epsilons", type=float, nargs="*", default=(0.1, 0.3, 1.0, 3.0))
    parser.add_argument("--users", action="store_true")
    parser.add_argument("--patients", action="store_true")
    parser.add_argument("--sets", nargs="*")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    if arguments.patients:
        patients(arguments.draws, arguments.epsilons)
        return
    names = arguments.sets or [
        name for name in (*BINARY, *REGRESSION) if name not in LONG and schema_of(name)["numeric"]
    ]
    ways = ["default", *(f"share {share}" for share in SHARES), "true bounds"]
    print("set, rows, epsilon, share of bounds: score/AUC of " + ", ".join(ways), flush=True)
    found = []
    for name in names:
        for n in arguments.rows:
            for epsilon in arguments.epsilons:
                own, fixed, true, table = line(name, n, epsilon, arguments.draws, arguments.users)
                refused = np.full(2, np.nan)
                cells = [refused if one is None else one for one in (own, *fixed, true)]
                found.append((n, epsilon, np.array(cells)))
                share = f"refused: {table}"
                if own is not None:
                    share = f"{dict((row[0], row[1]) for row in table).get(NUMERIC, 0.0):.2f}"
                texts = " ".join(f"{score:.3f}/{auc:.3f}" for score, auc in cells)
                print(f"{name} {n} {epsilon} {share}: {texts}", flush=True)
    summary(found)


def summary(found):
    """Means over sets for each number of rows and epsilon."""
    print("rows, epsilon: refused; default less the best fixed share, less true bounds (worst)")
    for n, epsilon in dict.fromkeys((n, epsilon) for n, epsilon, _ in found):
        cells = np.array([own for rows, e, own in found if (rows, e) == (n, epsilon)])
        refused = int(np.isnan(cells[:, 0, 0]).sum())
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            best = cells[:, 0] - np.nanmean(cells[:, 1:-1], axis=0).max(axis=0)
            gap = cells[:, 0] - cells[:, -1]
            means = [np.nanmean(part, axis=0) for part in (best, gap)]
            worst = np.nanmin(gap, axis=0)
        texts = [f"{score:+.3f}/{auc:+.3f}" for score, auc in (*means, worst)]
        print(f"{n} {epsilon}: {refused} of {len(cells)}; {texts[0]}, {texts[1]} ({texts[2]})")


if __name__ == "__main__":
    main()
