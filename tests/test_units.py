"""Units of the rows decide nothing: a model of scaled rows is the scaled model, to the last bit.

Rows, the bound on their norm and the constant feature are multiplied by a power of two, which
rounds nothing; ``C``, whose unit is that of one over a squared row, and ``alpha`` of a linear
kernel, whose unit is that of a squared row, go along.
"""

from functools import partial

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy import sparse
from sklearn.linear_model import LogisticRegression
from support.problems import noisy_scores as rows

from skdp.distributed import DistributedDPClassifier
from skdp.kernel import DPKernelRidge, DPOnlineKernelRegressor
from skdp.linear_model import DPLinearSVC, DPLogisticRegression, MIPrivateSGDRegressor

POWERS = [-60, -7, 5, 40]
CLASSIFIERS = [DPLogisticRegression, DPLinearSVC]
MECHANISMS = ["objective", "output", "gradient"]


def check(fit, X):
    """Compare models of rows in many units; ``fit(X, k)`` has rows in units of ``2**-k``."""
    plain = fit(X, 0)
    assert np.isfinite(plain.predict(X)).all()
    for k in POWERS:
        model, scaled = fit(X * 2.0**k, k), X * 2.0**k
        assert_array_equal(model.predict(scaled), plain.predict(X))
        for name in ("decision_function", "predict_proba"):
            if hasattr(plain, name):
                assert_array_equal(getattr(model, name)(scaled), getattr(plain, name)(X))
        if hasattr(plain, "intercept_"):
            assert_array_equal(model.intercept_, plain.intercept_)
        if hasattr(plain, "coef_"):
            # Those of kernel regressors are weights of rows over x_norm.
            unit = 1.0 if isinstance(plain, (DPKernelRidge, DPOnlineKernelRegressor)) else 2.0**k
            assert_array_equal(model.coef_ * unit, plain.coef_)
        assert model.guarantee_ == plain.guarantee_


@pytest.mark.parametrize("layout", [np.asarray, sparse.csr_array], ids=["dense", "csr"])
@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
@pytest.mark.parametrize("delta", [0.0, 1e-5])
@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("kind", CLASSIFIERS)
def test_linear_classifiers_have_no_units(kind, n_classes, mechanism, delta, adjacency, layout):
    X, y = rows(n_classes)
    # The rule for C and a number; a constant feature that is small, large, or not there.
    for C, scaling in (("auto", 1.0), (3.0, 1e-3), ("auto", 40.0), (0.5, None)):

        def fit(X, k, C=C, scaling=scaling):
            return kind(
                2.0,
                delta,
                C=C if C == "auto" else C / 4.0**k,
                mechanism=mechanism,
                adjacency=adjacency,
                x_norm=1.3 * 2.0**k,
                fit_intercept=scaling is not None,
                intercept_scaling=(scaling or 1.0) * 2.0**k,
                random_state=0,
            ).fit(layout(X), y)

        check(fit, X)


@pytest.mark.parametrize("calibration", ["jmlr2011", "kst2012", "redberg2023"])
def test_published_calibrations_have_no_units(calibration):
    X, y = rows()

    def fit(X, k):
        return DPLogisticRegression(
            1.0,
            0.0 if calibration == "jmlr2011" else 1e-5,
            C=2.0 / 4.0**k,
            calibration=calibration,
            x_norm=2.0**k,
            intercept_scaling=2.0**k,
            random_state=0,
        ).fit(X, y)

    check(fit, X)


@pytest.mark.parametrize("kind", CLASSIFIERS)
@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("x_norm, scaling", [(1e-50, 1e50), (1e50, 1e-50), (1e50, 1e50)])
def test_the_constant_feature_may_be_of_any_size(kind, mechanism, x_norm, scaling):
    X, y = rows()
    X *= x_norm
    for delta in (0.0, 1e-5):
        model = kind(
            1.0, delta, mechanism=mechanism, x_norm=x_norm, intercept_scaling=scaling
        ).fit(np.clip(X, -1e300, 1e300), y)
        assert np.isfinite(model.coef_).all() and np.isfinite(model.intercept_).all()


@pytest.mark.parametrize("delta", [0.0, 1e-5])
@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_large_units_lose_no_accuracy(mechanism, delta):
    # Steps of ten: the same up to rounding. The tolerance of the solver was once a multiple of
    # the squared norm of a row, and the noise that masks it drowned the model.
    rng = np.random.default_rng(1)
    X = rng.normal(size=(4000, 3)) / 3.0
    y = (X[:, 0] + 0.1 * rng.normal(size=4000) > 0.0).astype(int)
    least = LogisticRegression().fit(X, y).score(X, y) - 0.05
    for unit in (1e-40, 1e-3, 1.0, 1e4, 1e40):
        model = DPLogisticRegression(
            5.0, delta, mechanism=mechanism, x_norm=unit, intercept_scaling=unit, random_state=0
        )
        assert model.fit(unit * X, y).score(unit * X, y) > least


RIDGES = [
    {},
    {"delta": 1e-6},
    {"mechanism": "output", "loss": "squared"},
    {"mechanism": "sufficient_statistics", "delta": 1e-6},
]


@pytest.mark.parametrize("alpha", ["auto", 20.0])
@pytest.mark.parametrize("options", RIDGES, ids=str)
def test_kernel_ridge_has_no_units(options, alpha):
    X, y = rows()

    def fit(X, k):
        return DPKernelRidge(
            5.0,
            kernel="linear",
            x_norm=1.3 * 2.0**k,
            alpha=alpha if alpha == "auto" else alpha * 4.0**k,
            random_state=0,
            **options,
            y_bounds=(-1.0, 1.0),
        ).fit(X, 0.5 * y)

    check(fit, X)


STREAMS = [
    {},
    {"delta": 1e-6},
    {"release": "sgd"},
    {"release": "tree", "horizon": 1000},
    {"release": "tree", "horizon": 1000, "residual": "ball", "radius": 2.0},
    {"release": "matrix", "horizon": 1000, "delta": 1e-5},
]


@pytest.mark.parametrize("options", STREAMS, ids=str)
def test_online_kernel_regression_has_no_units(options):
    X, y = rows()

    def fit(X, k):
        model = DPOnlineKernelRegressor(
            5.0,
            kernel="linear",
            x_norm=1.3 * 2.0**k,
            random_state=0,
            **options,
            y_bounds=(-1.0, 1.0),
        )
        return model.partial_fit(X[:150], 0.5 * y[:150]).partial_fit(X[150:], 0.5 * y[150:])

    check(fit, X)


@pytest.mark.parametrize("kind", [DPKernelRidge, DPOnlineKernelRegressor])
def test_exact_expansions_have_no_units(kind):
    # The noise of an answer is a keyed function of the row as it was given: compare without.
    X, y = rows()

    def fit(k):
        return kind(
            5.0,
            kernel="linear",
            release="query",
            n_queries=500,
            x_norm=1.3 * 2.0**k,
            y_bounds=(-1.0, 1.0),
            random_state=0,
        ).fit(X * 2.0**k, 0.5 * y)

    plain = fit(0)
    for k in POWERS:
        model = fit(k)
        assert_array_equal(model._predictor._predict(X * 2.0**k), plain._predictor._predict(X))
        assert model._predictor.plan == plain._predictor.plan
        assert model._predictor._change == plain._predictor._change
        assert model.guarantee_ == plain.guarantee_


@pytest.mark.parametrize(
    "options",
    [{}, {"perturbation": "vector"}, {"fit_intercept": False}, {"feedback": "bandit"}],
    ids=str,
)
def test_mutual_information_regression_has_no_units(options):
    X, y = rows()

    def fit(X, k):
        model = MIPrivateSGDRegressor(
            0.5, x_norm=1.3 * 2.0**k, y_bounds=(-1.0, 1.0), random_state=0, **options
        )
        return model.fit(X, 0.5 * y)

    check(fit, X)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("options", [{}, {"delta": 1e-6}, {"alpha": 0.5}, {"sparsity": 0.1}])
def test_distributed_classification_has_no_units(options, n_classes):
    X, y = rows(n_classes)
    make = partial(DistributedDPClassifier, 5.0, n_nodes=4, random_state=0, **options)

    def fit(X, k):
        return make(x_norm=1.3 * 2.0**k).fit(X, y)

    check(fit, X)
