"""Digests of what every estimator releases, to tell a move of code from a change of numbers.

    python tests/digests.py write digests.json      # before
    python tests/digests.py compare digests.json    # after

Run both with OMP_NUM_THREADS=1, since threads sum in another order. Each configuration is fitted
under a seed. Its digest is the SHA-256 of all fitted attributes and predictions, to the last bit,
of the guarantee and of the charges to a ledger.
"""

import hashlib
import json
import re
import sys
import time
import warnings
from itertools import product

import numpy as np
from scipy import sparse
from sklearn.base import is_classifier
from support.fits import configuration

from skdp.distributed import DistributedDPClassifier
from skdp.kernel import DPKernelRidge, DPOnlineKernelRegressor
from skdp.linear_model import DPLinearSVC, DPLogisticRegression, MIPrivateSGDRegressor
from skdp.privacy import BudgetLedger

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
    for calibration, delta in [("jmlr2011", 0.0), ("kst2012", 1e-5), ("redberg2023", 1e-5)]:
        for adjacency in ADJACENCIES:
            params = dict(calibration=calibration, delta=delta, adjacency=adjacency)
            yield DPLogisticRegression, params
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
            estimator = kind(**params)
            if "y_bounds" in estimator.get_params():
                estimator.set_params(y_bounds=params.get("y_bounds", (-1.0, 1.0)))
            yield f"{name} #{number}", estimator, X, y
    for seed in range(N_RANDOM):
        estimator, X, y, _ = configuration(seed)
        yield f"random {seed}", estimator, X, y


def attributes(estimator):
    """Public attributes of a fit, without what differs from run to run."""
    for name in sorted(vars(estimator)):
        if name.endswith("_") and not name.startswith("_"):
            yield name, getattr(estimator, name)


def digest(estimator, X, y):
    """SHA-256 of all that leaves."""
    total = hashlib.sha256()
    ledger = BudgetLedger(epsilon=1e9, delta=0.999)
    estimator.set_params(ledger=ledger, random_state=7)
    if hasattr(estimator, "partial_fit"):
        half = X.shape[0] // 2
        given = {"classes": np.unique(y)} if is_classifier(estimator) else {}
        if half and (estimator.get_params().get("classes", 0) is None or not given):
            estimator.partial_fit(X[:half], y[:half], **given)
            estimator.partial_fit(X[half:], y[half:])
        else:
            estimator.fit(X, y)
    else:
        estimator.fit(X, y)
    values = dict(attributes(estimator))
    # An answer is counted: as many rows as every configuration allows.
    rows = X[: min(X.shape[0], int(estimator.get_params().get("n_queries") or 10**6))]
    values["predictions"] = estimator.predict(rows)
    for name, value in values.items():
        if name == "topology_":
            continue
        total.update(name.encode())
        if name == "guarantee_":
            body = json.dumps(value.to_dict(), sort_keys=True, default=float)
            body = re.sub(r'"caveats": \[[^]]*\], ', "", body)  # words, of the seed
            total.update(body.encode())
        else:
            array = np.asarray(value)
            total.update(repr((array.shape, array.tolist())).encode())
    for record in ledger.history():
        body = json.dumps(record.guarantee.to_dict(), sort_keys=True, default=float)
        total.update((record.label + body).encode())
    return total.hexdigest()


def main(action, path):
    """Write digests, or compare with those that were written."""
    warnings.simplefilter("ignore")
    begin, found = time.perf_counter(), {}
    for name, estimator, X, y in configurations():
        try:
            found[name] = digest(estimator, X, y)
        except Exception as error:
            found[name] = f"{type(error).__name__}: {error}"[:200]
    failed = [name for name, value in found.items() if ":" in value]
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
