"""Units of the rows decide nothing: a model of scaled rows is the scaled model, to the last bit.

Rows, the bound on their norm and the constant feature are multiplied by a power of two, which
rounds nothing; ``C``, whose unit is that of one over a squared row, and ``alpha`` of a linear
kernel, whose unit is that of a squared row, go along.
"""

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy import sparse
from support.problems import noisy_scores as rows

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
