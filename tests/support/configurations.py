"""Every estimator in its main configurations, for promises that all of them make."""

import numpy as np
from sklearn.base import clone, is_classifier
from sklearn.utils.validation import has_fit_parameter

from skdp.calibration import (
    DPCalibratedClassifier,
    DPConformalClassifier,
    DPConformalRegressor,
    DPThresholdClassifier,
)
from skdp.distributed import DistributedDPClassifier
from skdp.kernel import (
    DPKernelRidge,
    DPOnlineClassifier,
    DPOnlineKernelRegressor,
    ReleasedKernelRegressor,
)
from skdp.linear_model import (
    DPLinearRegression,
    DPLinearSVC,
    DPLogisticRegression,
    DPPoissonRegressor,
    MIPrivateSGDRegressor,
)
from skdp.model_selection import DPEpsilonSearch, DPGridSearch, DPRandomizedSearch
from skdp.pipeline import DPPipeline
from skdp.preprocessing import (
    BoundedScaler,
    BoundedSplineTransformer,
    DatetimeParts,
    DPOneHotEncoder,
    DPQuantileScaler,
    DPSimpleImputer,
    RandomFourierTransformer,
    RowNormClipper,
)
from skdp.topology import MixingSchedule
from support.networks import nested


def _named(kind, **options):
    words = [kind.__name__, *(f"{k}={v}" for k, v in options.items() if k not in _SIZES)]
    if "y_bounds" in kind().get_params():
        options = {"y_bounds": (-1.0, 1.0), **options}  # None warns
    if kind is DistributedDPClassifier:
        options = nested(**options)
    return "-".join(words), kind(**options)


_SIZES = ("n_components", "horizon", "n_queries", "n_nodes", "batch_size")


def _all():
    for kind in (DPLogisticRegression, DPLinearSVC):
        yield _named(kind)
        yield _named(kind, delta=1e-4)
        yield _named(kind, adjacency="add-remove")
        yield _named(kind, adjacency="add-remove", delta=1e-4)
        yield _named(kind, mechanism="output")
        yield _named(kind, mechanism="gradient")
    yield _named(DPLogisticRegression, mechanism="objective", delta=1e-4)
    for delta in (0.0, 1e-4):  # enough to read how long scores should be
        yield _named(DPLogisticRegression, epsilon=50.0, delta=delta)
    for kind in (DPLogisticRegression, DPLinearSVC):
        yield _named(kind, class_weight={1: 4.0})
    yield _named(DPLogisticRegression, class_weight={0: 0.1}, delta=1e-4)
    yield _named(DPLogisticRegression, class_weight={0: 0.1}, mechanism="output")
    for adjacency in ("replace-one", "add-remove"):
        intervals = dict(epsilon=50.0, delta=1e-4, adjacency=adjacency)
        yield _named(DPLogisticRegression, inference=True, **intervals)
        yield _named(DPLinearRegression, **intervals)
    ridge = dict(n_components=20)
    yield _named(DPKernelRidge, **ridge)
    yield _named(DPPoissonRegressor, y_max=4.0)
    yield _named(DPPoissonRegressor, delta=1e-4, adjacency="add-remove")
    yield _named(DPPoissonRegressor, inference=True, epsilon=1000.0, delta=1e-4, y_max=4.0)
    yield _named(DPKernelRidge, kernel="linear")
    yield _named(DPKernelRidge, mechanism="output", **ridge)
    for mechanism in ("gradient", "sufficient_statistics", "output"):
        yield _named(DPKernelRidge, delta=1e-4, mechanism=mechanism, **ridge)
    yield _named(DPKernelRidge, release="query", n_queries=1000)
    yield _named(DPKernelRidge, release="query", kernel="linear", n_queries=1000)
    for adjacency in ("replace-one", "add-remove"):
        for delta in (0.0, 1e-4):
            chunk = dict(adjacency=adjacency, delta=delta)
            yield _named(DPOnlineKernelRegressor, release="chunk", **chunk, **ridge)
            yield _named(DPOnlineClassifier, **chunk)
    yield _named(DPOnlineClassifier, kernel="rbf", delta=1e-4, half_life=3.0, **ridge)
    yield _named(DPOnlineKernelRegressor, kernel="linear")
    for release, sizes in [
        ("final", ridge),
        ("sgd", ridge),
        ("tree", dict(horizon=10_000, **ridge)),
        ("query", dict(n_queries=1000)),
    ]:
        for delta in (0.0, 1e-4):
            yield _named(DPOnlineKernelRegressor, release=release, delta=delta, **sizes)
    yield _named(DPOnlineKernelRegressor, release="matrix", delta=1e-4, horizon=10_000, **ridge)
    yield _named(MIPrivateSGDRegressor)
    yield _named(MIPrivateSGDRegressor, noise="k_norm")
    yield _named(MIPrivateSGDRegressor, feedback="bandit")
    yield _named(MIPrivateSGDRegressor, feedback="bandit", perturbation="vector")
    yield _named(MIPrivateSGDRegressor, intercept_scaling=0.3, average="uniform")
    network = dict(n_nodes=4, batch_size=5)
    for loss in ("hinge", "huber_hinge", "log_loss"):
        yield _named(DistributedDPClassifier, loss=loss, **network)
    yield _named(DistributedDPClassifier, delta=1e-4, n_passes=2, **network)
    yield _named(DistributedDPClassifier, noise="laplace", x_l1_norm=0.5, n_mixings=2, **network)
    yield _named(DistributedDPClassifier, step="regret", **network)
    auto = dict(n_passes="auto", batch_size="auto")
    yield _named(DistributedDPClassifier, delta=1e-4, **network | auto)
    pairs = np.kron(np.eye(2), np.full((2, 2), 0.5)), np.roll(np.eye(4), 1, axis=0)
    names = ("north", "east", "south", "west")
    own = dict(n_nodes=4, topology=MixingSchedule(pairs), node_names=names, output_node="east")
    yield _named(DistributedDPClassifier, **own)
    # Few rows: what is learned of them takes a large budget.
    yield _named(DPQuantileScaler, epsilon=60.0, adjacency="add-remove")
    splines = dict(n_splines=5, sparse_output=False)
    yield _named(DPQuantileScaler, delta=1e-4, quantiles=(0.1, 0.9), **splines)
    yield _named(DPOneHotEncoder, epsilon=8.0, delta=1e-3, sparse_output=False)
    yield _named(DPSimpleImputer, add_indicator=True)
    yield _named(DPSimpleImputer, strategy="most_frequent", categories=[-0.1, 0.1])
    for delta in (0.0, 1e-4):
        yield f"DPPipeline-{delta=}", _pipeline(delta)
    # A key of each row is used where they are added or removed.
    few = dict(epsilon=200.0, row_key=0)
    grid = {"C": [0.1, 10.0]}
    yield "DPGridSearch", DPGridSearch(DPLogisticRegression(), grid, **few)
    yield "DPGridSearch-delta", DPGridSearch(DPLinearSVC(), grid, delta=1e-4, **few)
    ridge = DPKernelRidge(n_components=20)
    runs = dict(n_iter_mean=3.0)
    yield "DPRandomizedSearch", DPRandomizedSearch(DPLogisticRegression(), grid, **few, **runs)
    few |= dict(y_bounds=(-1.0, 1.0), adjacency="add-remove")
    yield "DPGridSearch-regression", DPGridSearch(ridge, {"gamma": [0.1, 1.0]}, **few)
    yield (
        "DPRandomizedSearch-regression",
        DPRandomizedSearch(ridge, {"gamma": [0.1, 1.0]}, **few, **runs),
    )
    for adjacency, delta in (("replace-one", 1e-4), ("add-remove", 0.0)):
        of = dict(adjacency=adjacency, delta=delta)
        yield (
            f"DPCalibratedClassifier-{delta=}",
            DPCalibratedClassifier(DPLogisticRegression(), **of),
        )
        yield (
            f"DPThresholdClassifier-{delta=}",
            DPThresholdClassifier(DPLogisticRegression(), **of),
        )
    for delta, holdout in ((0.0, 0.5), (1e-4, None)):
        # Few rows show a low level only.
        of = dict(delta=delta, holdout=holdout)
        of |= dict(level=0.3, epsilon=1.0) if delta else dict(level=0.5, epsilon=50.0)
        yield (
            f"DPConformalClassifier-{delta=}",
            DPConformalClassifier(DPLogisticRegression(), **of),
        )
        intervals = DPConformalRegressor(
            DPKernelRidge(y_bounds=(-1.0, 1.0), n_components=20), **of
        )
        yield f"DPConformalRegressor-{delta=}", intervals
    # One stage, which is one charge; targets that any model reaches.
    one = dict(epsilons=[200.0], row_key=0)
    yield "DPEpsilonSearch", DPEpsilonSearch(DPLogisticRegression(), 0.01, **one)
    one |= dict(y_bounds=(-1.0, 1.0), adjacency="add-remove")
    scoring = "neg_mean_absolute_error"
    yield "DPEpsilonSearch-regression", DPEpsilonSearch(ridge, -0.7, scoring, **one)


def _pipeline(delta):
    steps = [
        ("bounds", DPQuantileScaler(quantiles=(0.2, 0.8))),
        ("clip", RowNormClipper()),
        ("model", DPLogisticRegression()),
    ]
    return DPPipeline(steps, epsilon=8.0, delta=delta)


CONFIGURATIONS = dict(_all())

# With ``--full`` only: code that others of their class run as well, or other numbers.
SELDOM = {
    "DPLogisticRegression-adjacency=add-remove",
    "DPLogisticRegression-mechanism=gradient",
    "DPLinearSVC-delta=0.0001",
    "DPLinearSVC-adjacency=add-remove-delta=0.0001",
    "DPLinearSVC-mechanism=output",
    "DPLogisticRegression-epsilon=50.0-delta=0.0001",
    "DPLinearSVC-class_weight={1: 4.0}",
    "DPLogisticRegression-class_weight={0: 0.1}-delta=0.0001",
    "DPLogisticRegression-class_weight={0: 0.1}-mechanism=output",
    "DPKernelRidge-kernel=linear",
    "DPKernelRidge-delta=0.0001-mechanism=output",
    "DPKernelRidge-release=query-kernel=linear",
    "DPOnlineClassifier-adjacency=replace-one-delta=0.0",
    "DPOnlineClassifier-adjacency=add-remove-delta=0.0001",
    "DPOnlineKernelRegressor-release=chunk-adjacency=replace-one-delta=0.0",
    "DPOnlineKernelRegressor-release=chunk-adjacency=add-remove-delta=0.0001",
    "DPOnlineKernelRegressor-kernel=linear",
    "DPOnlineKernelRegressor-release=final-delta=0.0001",
    "DPOnlineKernelRegressor-release=sgd-delta=0.0",
    "DPOnlineKernelRegressor-release=tree-delta=0.0",
    "DPOnlineKernelRegressor-release=query-delta=0.0001",
    "MIPrivateSGDRegressor-noise=k_norm",
    "MIPrivateSGDRegressor-intercept_scaling=0.3-average=uniform",
    "DistributedDPClassifier-loss=hinge",
    "DistributedDPClassifier-loss=huber_hinge",
    "DistributedDPClassifier-step=regret",
    "DistributedDPClassifier-delta=0.0001-n_passes=auto",
    "DPPipeline-delta=0.0",
    "DPGridSearch-delta",
    "DPGridSearch-regression",
    "DPRandomizedSearch-regression",
}
if not CONFIGURATIONS.keys() >= SELDOM:
    raise LookupError(SELDOM - CONFIGURATIONS.keys())


def _others():
    """What uses the parameters that are idle above, and what learns nothing from data."""
    yield _named(DPKernelRidge, kernel="matern", n_components=20)
    yield _named(DPOnlineKernelRegressor, kernel="matern", n_components=20)
    yield _named(DPOnlineClassifier, kernel="matern", n_components=20)
    yield _named(MIPrivateSGDRegressor, loss="huber", keep_iterates=True)
    yield _named(DistributedDPClassifier, keep_iterates=True, n_nodes=4, batch_size=5)
    yield _named(BoundedScaler, bounds=(-0.4, 0.4))
    yield _named(BoundedSplineTransformer, bounds=(-0.4, 0.4), n_splines=5, sparse_output=False)
    yield _named(DatetimeParts, parts=("hour",))
    yield _named(RandomFourierTransformer, kernel="matern", n_components=6)
    yield _named(RowNormClipper, norm=0.5)
    yield _named(DPSimpleImputer, strategy="constant", fill_value=0.0)
    # Not fitted but released, by this stream.
    yield (
        ReleasedKernelRegressor.__name__,
        DPOnlineKernelRegressor(n_components=20, y_bounds=(-1.0, 1.0)),
    )


# For conventions of all estimators, whether they take a ledger or not.
EVERYTHING = CONFIGURATIONS | dict(_others())


def model(name, **changes):
    """A new estimator of a configuration, with other parameters changed."""
    return clone(EVERYTHING[name]).set_params(**changes)


def fitted(name, X, y, groups=None, **changes):
    """The object that a configuration stands for, ready to predict or transform."""
    owned = {} if groups is None else {"groups": groups}
    estimator = model(name, **changes).fit(X, y, **owned)
    return estimator.released() if name == ReleasedKernelRegressor.__name__ else estimator


def outcome(estimator, X):
    """What a model says of rows, or what a transformer makes of them."""
    return estimator.predict(X) if hasattr(estimator, "predict") else estimator.transform(X)


def problem(name, n_samples=60, n_features=3, seed=0):
    """Rows and targets that suit a configuration."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-0.5, 0.5, size=(n_samples, n_features))
    if "most_frequent" in name or "OneHot" in name:
        X = np.round(X, 1)
    score = X[:, 0] - 0.5 * X[:, 1]
    if "Poisson" in name:
        return X, np.rint(2.0 * score + 2.0)
    if "inference=True" in name:  # classes that no plane separates
        score = score + 3.0 * rng.normal(size=n_samples)
    return X, (score > 0.0).astype(int) if is_classifier(EVERYTHING[name]) else score


# Checks of scikit-learn's that no release with noise, or no query, can pass.
_NOISY = "weights equal repeated rows in distribution: noise is for the largest weight"
_OF_WEIGHTS = {
    "check_sample_weight_equivalence_on_dense_data": _NOISY,
    "check_sample_weight_equivalence_on_sparse_data": _NOISY,
    "check_all_zero_sample_weights_error": "that all weights are 0 is private",
}
_OF_QUERIES = {
    f"check_sample_weights_{name}": "noise of answers is for rows without weights"
    for name in ("pandas_series", "not_an_array", "list", "shape", "not_overwritten")
}


def failing_checks(estimator):
    """Names of checks of scikit-learn that an estimator fails, with the reasons."""
    if not has_fit_parameter(estimator, "sample_weight"):
        return {}
    return _OF_WEIGHTS | (_OF_QUERIES if getattr(estimator, "release", "") == "query" else {})
