"""Digests of what every estimator releases, to tell a move of code from a change of numbers.

    python tests/digests.py write digests.json      # before
    python tests/digests.py compare digests.json    # after

Run both with OMP_NUM_THREADS=1, since threads sum in another order. Each configuration is fitted
under a seed. Its digest is the SHA-256 of all public fitted attributes, predictions or transformed
rows, to the last bit, of the guarantee, of the charges to a ledger and of the privacy report.
There are all estimators, transformers, pipelines and searches, also for users, random ones,
streams and networks, evaluations and looks at columns.
"""

import hashlib
import json
import re
import sys
import time
import warnings
from dataclasses import is_dataclass
from functools import partial
from itertools import product

import numpy as np
import pandas as pd
from scipy import sparse
from sklearn.base import BaseEstimator, clone, is_classifier
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.utils.validation import has_fit_parameter
from support.cases import COMPOSED
from support.configurations import EVERYTHING, problem
from support.fits import Draw, configuration
from support.networks import nested
from threadpoolctl import threadpool_limits

from skdp.distributed import DistributedDPClassifier
from skdp.inspection import privacy_report
from skdp.kernel import DPKernelRidge, DPOnlineKernelRegressor
from skdp.linear_model import DPLinearSVC, DPLogisticRegression, MIPrivateSGDRegressor
from skdp.metrics import dp_evaluate
from skdp.metrics._dp_evaluate import SCORINGS
from skdp.preprocessing import dp_histogram, dp_mean, dp_quantile
from skdp.privacy import BudgetLedger, Guarantee

ADJACENCIES = ("replace-one", "add-remove")
DELTAS = (0.0, 1e-5)
N_RANDOM = 1500


def grid(**options):
    """All combinations, one dict each."""
    return [dict(zip(options, values, strict=True)) for values in product(*options.values())]


def linear():
    shared = dict(adjacency=ADJACENCIES, delta=DELTAS, fit_intercept=(True, False))
    for kind in (DPLogisticRegression, DPLinearSVC):
        for params in grid(
            mechanism=("objective", "output", "gradient"),
            C=("auto", 0.5),
            x_norm=(1.0, 300.0),
            **shared,
        ):
            yield kind, params
    for adjacency in ADJACENCIES:
        yield DPLogisticRegression, dict(calibration="jmlr2011", adjacency=adjacency)
    for cap in (None, 0.3):
        yield from ((DPLogisticRegression, dict(slope_cap=cap, delta=delta)) for delta in DELTAS)


def kernel_ridge():
    for params in grid(
        kernel=("rbf", "laplacian", "matern", "linear"),
        mechanism=("gradient", "sufficient_statistics", "objective", "output"),
        adjacency=ADJACENCIES,
        delta=DELTAS,
        alpha=("auto", 2.0),
    ):
        pure = params["mechanism"] in ("objective", "output")
        if (params["mechanism"] != "objective") if params["delta"] else pure:
            yield DPKernelRidge, params | dict(n_components=30)
    for params in grid(
        kernel=("rbf", "linear"), loss=("huber", "squared"), adjacency=ADJACENCIES, delta=DELTAS
    ):
        if params["loss"] == "huber" or params["adjacency"] == "replace-one":
            yield DPKernelRidge, params | dict(release="query", n_queries=50)
            yield DPKernelRidge, params | dict(mechanism="output", n_components=30)


def streams():
    for params in grid(
        kernel=("rbf", "linear"),
        release=("final", "sgd", "tree", "matrix", "query"),
        adjacency=ADJACENCIES,
        delta=DELTAS,
        residual=("huber", "ball", "plain"),
    ):
        if params["residual"] == "plain" and params["release"] in ("sgd", "tree", "matrix"):
            continue
        if params["release"] == "matrix" and params["delta"] == 0.0:
            continue
        if params["release"] in ("tree", "matrix"):
            params["horizon"] = 500
        if params["release"] == "query":
            params["n_queries"] = 200
        else:
            params["n_components"] = 30
        yield DPOnlineKernelRegressor, params


def users():
    for params in grid(
        feedback=("full", "bandit"),
        perturbation=("scalar", "vector"),
        noise=("gaussian", "k_norm"),
        loss=("absolute", "huber", "epsilon_insensitive", "squared"),
        fit_intercept=(True, False),
    ):
        if params["feedback"] == "bandit" or params["perturbation"] == "scalar":
            yield MIPrivateSGDRegressor, params


def network():
    for params in grid(
        loss=("hinge", "huber_hinge", "log_loss"),
        noise=("gaussian", "k_norm", "laplace"),
        adjacency=ADJACENCIES,
        delta=DELTAS,
        batch_size=(1, 7),
        n_passes=(1, 3),
        sparsity=(0.0, "auto"),
    ):
        if params["delta"] or params["noise"] != "gaussian":
            yield DistributedDPClassifier, params | dict(n_nodes=5)


def configurations():
    """Yield (name, estimator, rows, targets)."""
    for family in (linear, kernel_ridge, streams, users, network):
        for number, (kind, params) in enumerate(family()):
            n_classes = 2 + number % 2
            rng = np.random.default_rng(number)
            X = rng.standard_normal((90, 4))
            y = X[:, 0] + 0.3 * rng.standard_normal(90)
            if is_classifier(kind()):
                y = np.digitize(y, np.linspace(-0.5, 0.5, n_classes - 1))
            if number % 3 == 2:
                X[rng.random(X.shape) < 0.5] = 0.0
                X = sparse.csr_array(X)
            name = f"{kind.__name__}({', '.join(f'{k}={v!r}' for k, v in params.items())})"
            made = nested if kind is DistributedDPClassifier else dict
            estimator = kind(**made(**params))
            if "y_bounds" in estimator.get_params():
                estimator.set_params(y_bounds=params.get("y_bounds", (-1.0, 1.0)))
            yield f"{name} #{number}", estimator, X, y
    for seed in range(N_RANDOM):
        estimator, X, y, _ = configuration(seed)
        yield f"random {seed}", estimator, X, y


def wholes():
    """Yield (name, estimator, rows, targets, owners or None): all kinds, and what holds others."""
    for name, estimator in EVERYTHING.items():
        for n_samples in (60, 400):
            yield f"{name} {n_samples}", clone(estimator), *problem(name, n_samples), None
        if has_fit_parameter(estimator, "groups"):
            X, y = problem(name, 120)
            yield f"{name} users", clone(estimator), X, y, np.arange(120) // 3
    rows, y = problem("DPLogisticRegression", 400)
    for name, make in COMPOSED.items():
        for seed in range(8):
            X = frame(rows) if "frame" in name or name == "columns" else rows
            yield f"{name} {seed}", make(Draw(seed)), X, y, None


def frame(rows):
    """Rows as a frame with a column of texts."""
    found = pd.DataFrame(rows, columns=[f"column {i}" for i in range(rows.shape[1])])
    return found.assign(**{"column 2": np.where(rows[:, 2] > 0.0, "a", "b")})


def functions():
    """Yield (name, call), of what releases without an estimator that is fitted."""
    X, y = problem("DPLogisticRegression", 400)
    ranked = LogisticRegression().fit(X, y)
    regressor = Ridge().fit(X, X[:, 1])
    budgets = grid(epsilon=(0.5, 50.0), delta=DELTAS, adjacency=ADJACENCIES)
    for number, budget in enumerate(budgets):
        budget |= {"random_state": number}
        for scoring in ("auto", *SCORINGS):
            if scoring == "auto" or not scoring.startswith(("r2", "neg_mean", "neg_root")):
                yield (
                    f"dp_evaluate {scoring} {budget}",
                    partial(dp_evaluate, ranked, X, y, scoring=scoring, **budget),
                )
            if scoring in ("auto", "r2") or scoring.startswith(("neg_mean", "neg_root")):
                yield (
                    f"dp_evaluate regressor {scoring} {budget}",
                    partial(
                        dp_evaluate,
                        *(regressor, X, X[:, 1]),
                        scoring=scoring,
                        y_bounds=(-1.0, 1.0),
                        **budget,
                    ),
                )
        column = X[:, 0]
        for bounds in ("auto", (-0.5, 0.5)):
            yield f"dp_mean {bounds} {budget}", partial(dp_mean, column, bounds=bounds, **budget)
        for q in (0.5, (0.1, 0.9)):
            yield f"dp_quantile {q} {budget}", partial(dp_quantile, column, q, **budget)
        edges = (-0.5, 0.0, 0.5)
        yield f"dp_histogram {budget}", partial(dp_histogram, column, edges=edges, **budget)


def attributes(estimator):
    """Public attributes of a fit, without what differs from run to run."""
    for name in sorted(vars(estimator)):
        if name.endswith("_") and not name.startswith("_") and name != "topology_":
            yield name, getattr(estimator, name)


def told(value):
    """Text of a value, to the last bit, without addresses and without the seed's caveat."""
    if isinstance(value, Guarantee):
        text = json.dumps(value.to_dict(), sort_keys=True, default=float)
        return re.sub(r'"caveats": \[[^]]*\], ', "", text)
    if isinstance(value, BaseEstimator):
        return told([type(value).__name__, *attributes(value)])
    if is_dataclass(value):
        return told(sorted((name, one) for name, one in vars(value).items() if name[0] != "_"))
    if isinstance(value, dict):
        return told(sorted(value.items(), key=repr))
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(told, value)) + "]"
    if hasattr(value, "toarray"):
        value = value.toarray()
    if isinstance(value, np.ndarray | np.generic | pd.DataFrame):
        value = np.asarray(value)
        return repr((value.shape, str(value.dtype), value.tolist()))
    return re.sub(r" at 0x[0-9a-f]+", "", repr(value))


def fitted(estimator, X, y, groups=None):
    """What leaves an estimator that was fitted, in two calls if it learns streams."""
    ledger = BudgetLedger(epsilon=1e9, delta=0.999)
    known = estimator.get_params()
    estimator.set_params(
        **{n: v for n, v in (("ledger", ledger), ("random_state", 7)) if n in known}
    )
    if groups is not None:
        estimator.fit(X, y, groups=groups)
    elif hasattr(estimator, "partial_fit"):
        half = X.shape[0] // 2
        given = {"classes": np.unique(y)} if is_classifier(estimator) else {}
        if half and (known.get("classes", 0) is None or not given):
            estimator.partial_fit(X[:half], y[:half], **given)
            estimator.partial_fit(X[half:], y[half:])
        else:
            estimator.fit(X, y)
    else:
        estimator.fit(X, y)
    # An answer is counted: as many rows as every configuration allows.
    rows = X[: min(X.shape[0], int(known.get("n_queries") or 10**6))]
    does = "predict" if hasattr(estimator, "predict") else "transform"
    report = ""
    if hasattr(estimator, "guarantee_"):
        report = privacy_report(estimator).data
        report = {name: part for name, part in report.items() if name not in OF_THE_RUN}
    charged = [(record.label, record.guarantee) for record in ledger.history()]
    return [*attributes(estimator), getattr(estimator, does)(rows), charged, report]


OF_THE_RUN = ("made", "software", "created", "versions")


def cases():
    """Yield (name, call), where the call returns what is to be digested."""
    for name, *given in configurations():
        yield name, partial(fitted, *given)
    for name, *given in wholes():
        yield name, partial(fitted, *given)
    yield from functions()


def digest(call):
    """SHA-256 of what a call returns, or what it raised."""
    try:
        with threadpool_limits(1):
            return hashlib.sha256(told(call()).encode()).hexdigest()
    except Exception as error:
        return f"{type(error).__name__}: {error}"[:200]


def main(action, path):
    """Write digests, or compare with those that were written."""
    warnings.simplefilter("ignore")
    begin = time.perf_counter()
    found = {name: digest(call) for name, call in cases()}
    failed = [f"{name}: {value}" for name, value in found.items() if ":" in value]
    print(f"{len(found)} configurations in {time.perf_counter() - begin:.0f} s")
    print(f"{len(failed)} raised", *failed[:5], sep="\n  ")
    if action == "write":
        with open(path, "w", encoding="utf-8") as file:
            json.dump(found, file, indent=0)
        return 0
    with open(path, encoding="utf-8") as file:
        before = json.load(file)
    different = [
        name for name in before.keys() | found.keys() if before.get(name) != found.get(name)
    ]
    print(f"{len(before)} before, {len(different)} differ", *sorted(different)[:20], sep="\n  ")
    return int(bool(different))


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
