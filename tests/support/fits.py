"""Random valid configurations: numbers of random types, rows in random units."""

from fractions import Fraction

import numpy as np
from scipy import sparse
from sklearn.base import is_classifier

from skdp.distributed import DistributedDPClassifier
from skdp.kernel import DPKernelRidge, DPOnlineKernelRegressor
from skdp.linear_model import DPLinearSVC, DPLogisticRegression, MIPrivateSGDRegressor
from skdp.privacy import BudgetLedger
from support.networks import nested

KINDS = (
    DPLogisticRegression,
    DPLinearSVC,
    DPKernelRidge,
    DPOnlineKernelRegressor,
    MIPrivateSGDRegressor,
    DistributedDPClassifier,
)
NUMBERS = (float, np.float32, np.float64, np.longdouble, Fraction)


class Draw:
    """Random choices from one seed."""

    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)

    def one_of(self, *options):
        return options[self.rng.integers(len(options))]

    def number(self, low, high):
        """A number of a random type, uniform on a logarithmic scale."""
        value = 10.0 ** self.rng.uniform(np.log10(low), np.log10(high))
        if value > 3 and self.rng.random() < 0.1:
            return self.one_of(int, np.int64)(min(value, 2**62))
        return self.one_of(*NUMBERS)(float(np.float32(value)))

    def count(self, low, high):
        value = 10.0 ** self.rng.uniform(np.log10(low), np.log10(high))
        return self.one_of(int, np.int64, np.int32)(np.clip(round(value), low, high))

    def chance(self, share):
        return self.rng.random() < share

    def truth(self):
        return self.one_of(True, False, np.True_, np.False_)


def rows_of(draw, unit):
    """Rows of a random kind in units of ``unit``."""
    n, d = int(draw.count(1, 3000)), int(draw.count(1, 30))
    X = draw.rng.standard_normal((n, d)) / np.sqrt(d)
    kind = draw.one_of("plain", "plain", "short", "zero", "same", "far", "mixed", "hostile")
    if kind == "short":
        X *= 1e-6
    elif kind == "zero":
        X *= 0.0
    elif kind == "same":
        X[:] = X[:1]
    elif kind == "far":
        X *= 1e6
    elif kind == "mixed":
        X *= 10.0 ** draw.rng.uniform(-8, 8, size=(n, 1))
    X *= unit
    if kind == "hostile":
        X[draw.rng.integers(n, size=3)] = draw.one_of(1.7e308, -1.7e308, 5e-324, 1e-200, 1e200)
    if draw.rng.random() < 0.3:
        X[draw.rng.random(X.shape) < 0.7] = 0.0
        X = draw.one_of(sparse.csr_array, sparse.csc_array, sparse.coo_array)(X)
    return X, kind


def budget(draw):
    params = {"epsilon": draw.number(1e-5, 1e3)}
    if draw.rng.random() < 0.5:
        params["delta"] = draw.number(1e-12, 1e-2)
    if draw.rng.random() < 0.5:
        params["adjacency"] = draw.one_of("add-remove", "replace-one")
    return params


def linear(draw, kind, unit):
    mechanisms = ("auto", "output", "gradient", "objective")
    params = budget(draw) | dict(
        mechanism=draw.one_of(*mechanisms[: 3 if kind is DPLinearSVC else 4]),
        fit_intercept=draw.truth(),
        intercept_scaling=type_like(draw, unit * float(draw.number(1e-6, 1e6))),
    )
    if draw.rng.random() < 0.5:
        params["C"] = type_like(draw, float(draw.number(1e-8, 1e4)) / unit**2)
    if kind is DPLogisticRegression and draw.rng.random() < 0.5:
        params["slope_cap"] = draw.one_of(None, draw.number(0.05, 1.0))
    if kind is DPLinearSVC and draw.rng.random() < 0.5:
        params["huber_width"] = draw.number(0.05, 2.0)
    return params


def type_like(draw, value):
    """``value`` in a random type that can hold it."""
    kinds = NUMBERS if 1e-37 < value < 1e37 else (float, np.float64, Fraction)
    return draw.one_of(*kinds)(float(value))


def y_bounds(draw):
    scale = 10.0 ** draw.rng.uniform(-20, 20)
    middle = draw.one_of(0.0, scale, -5.0 * scale)
    return type_like_pair(draw, middle - scale, middle + scale)


def type_like_pair(draw, low, high):
    kind = draw.one_of(float, np.float64, Fraction)
    return draw.one_of(tuple, list)((kind(float(low)), kind(float(high))))


def kernels(draw, unit):
    kernel = draw.one_of("rbf", "laplacian", "matern", "linear")
    params = dict(kernel=kernel, y_bounds=y_bounds(draw), orthogonal=draw.truth())
    if kernel == "matern":
        params["nu"] = draw.one_of(0.5, 1.5, 2.5)
    if kernel != "linear":
        params["gamma"] = type_like(draw, float(draw.number(1e-2, 1e2)) / unit)
    return params


def ridge(draw, unit):
    params = budget(draw) | kernels(draw, unit)
    params["loss"] = draw.one_of("auto", "huber", "squared")
    if params["loss"] == "squared":
        params["adjacency"] = "replace-one"
    if draw.rng.random() < 0.3:
        params |= dict(release="query", n_queries=draw.count(1, 10_000))
        return params
    params["n_components"] = draw.one_of("auto", draw.count(1, 300))
    if "delta" in params:
        mechanisms = {
            "auto": ("auto", "output", "gradient", "sufficient_statistics"),
            "huber": ("auto", "output", "gradient"),
            "squared": ("auto", "output", "sufficient_statistics"),
        }
        params["mechanism"] = draw.one_of(*mechanisms[params["loss"]])
    return params


def stream(draw, unit):
    release = draw.one_of("final", "sgd", "tree", "matrix", "query")
    params = budget(draw) | kernels(draw, unit) | dict(release=release)
    if release == "matrix":
        params["delta"] = params.get("delta") or 1e-5
    params["theta"] = draw.one_of(0.55, 0.75, np.float32(0.9), Fraction(4, 5))
    residuals = (
        ("huber", "ball") if release in ("sgd", "tree", "matrix") else ("huber", "ball", "plain")
    )
    params["residual"] = draw.one_of(*residuals)
    params["radius"] = draw.number(0.1, 10.0)
    if release != "query":
        params["n_components"] = draw.one_of("auto", draw.count(1, 300))
    if release in ("tree", "matrix"):
        params["horizon"] = draw.one_of(3000, np.int64(10_000), 10**6)
    if release == "query":
        params["n_queries"] = draw.count(1, 10_000)
    if release == "final":
        params["sensitivity"] = draw.one_of("tight", "paper")
    return params


def users(draw):
    feedback = draw.one_of("full", "bandit")
    params = dict(
        mi_budget=draw.number(1e-4, 10.0),
        feedback=feedback,
        noise=draw.one_of("gaussian", "k_norm"),
        loss=draw.one_of("absolute", "huber", "epsilon_insensitive", "squared"),
        y_bounds=y_bounds(draw),
        fit_intercept=draw.truth(),
        radius=draw.number(0.1, 10.0),
        average=draw.one_of("late", "uniform", False),
    )
    if feedback == "bandit":
        params["perturbation"] = draw.one_of("scalar", "vector")
    if draw.rng.random() < 0.5:
        params["horizon"] = draw.count(1, 10_000)
    return params


def network(draw):
    params = budget(draw) | dict(
        loss=draw.one_of("hinge", "huber_hinge", "log_loss"),
        n_nodes=draw.count(1, 20),
        batch_size=draw.count(1, 300),
        n_passes=draw.one_of(1, np.int64(3)),
        topology=draw.one_of("ring", "complete", "star", "grid"),
        radius=draw.number(0.1, 100.0),
        average=draw.one_of(True, False, "uniform"),
    )
    if draw.rng.random() < 0.3:
        params["edge_probability"] = draw.number(0.1, 1.0)
    if draw.rng.random() < 0.3:
        params["alpha"] = draw.number(1e-3, 10.0)
    if draw.rng.random() < 0.3:
        params["sparsity"] = draw.one_of("auto", draw.number(1e-3, 10.0))
    return nested(**params)


def configured(draw):
    """An estimator's class and parameters, and the unit of its rows."""
    kind = draw.one_of(*KINDS)
    unit = 10.0 ** draw.rng.uniform(-20, 20)
    if kind in (DPLogisticRegression, DPLinearSVC):
        params = linear(draw, kind, unit)
    elif kind is DPKernelRidge:
        params = ridge(draw, unit)
    elif kind is DPOnlineKernelRegressor:
        params = stream(draw, unit)
    elif kind is MIPrivateSGDRegressor:
        params = users(draw)
    else:
        params = network(draw)
    if params.get("kernel", "linear") == "linear":
        params["x_norm"] = type_like(draw, unit)
    return kind, params, unit


def configuration(seed):
    """An estimator with its rows and targets, and a ledger."""
    draw = Draw(seed)
    kind, params, unit = configured(draw)
    X, rows = rows_of(draw, unit)
    n = X.shape[0]
    if is_classifier(kind()):
        labels = np.arange(draw.one_of(2, 2, 3, 5))
        y = draw.one_of(
            draw.rng.integers(len(labels), size=n), np.arange(n) % 2, np.zeros(n, dtype=int)
        )
        if draw.rng.random() < 0.3:
            labels, y = labels.astype(str), y.astype(str)
        params["classes"] = draw.one_of(list, tuple, np.array)(labels)
    else:
        low, high = map(float, params["y_bounds"])
        y = draw.rng.uniform(low, high, size=n) * draw.one_of(1.0, 1.0, 1e3, 0.0)
    return kind(**params, ledger=BudgetLedger(epsilon=1e9, delta=0.999)), X, y, rows
