"""OpenDP's linear regression, which has one column: Theil and Sen's, with private medians.

The column is told; the scale of the noise is the least with which the map of the measurement says
that the budget holds, for one record added or removed.
"""

import warnings
from functools import cache
from importlib.metadata import version

import numpy as np
import opendp.prelude as dp
from protocol import serve

warnings.simplefilter("ignore")  # the features that this needs are said to be experimental
dp.enable_features("contrib", "floating-point", "honest-but-curious", "idealized-numerics")


def _model(low, high, scale):
    return dp.sklearn.linear_model.LinearRegression(
        dp.max_divergence(), x_bounds=[(-1.0, 1.0)], y_bounds=(low, high), scale=scale
    )


@cache
def _scale(epsilon, low, high):
    """Found by halving: epsilon falls as the scale grows."""
    least, most = 1e-3 / epsilon, 1e4 / epsilon
    for _ in range(60):
        middle = (least * most) ** 0.5
        if _model(low, high, middle).measurement.map(1) <= epsilon:
            most = middle
        else:
            least = middle
    return most


def fit(rows, job):
    """The target of test rows."""
    low, high = map(float, rows.y_bounds)
    column = [int(rows.column)]
    model = _model(low, high, _scale(job["epsilon"], low, high))
    fitted = model.fit(rows.X[:, column].astype(float), rows.y.astype(float))
    return np.ravel(fitted.predict(rows.X_test[:, column]))


if __name__ == "__main__":
    serve(fit, {"opendp": version("opendp"), "numpy": np.__version__})
