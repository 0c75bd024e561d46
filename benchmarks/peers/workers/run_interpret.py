"""DP-EBM: boosted additive models of interpret, with its composition by Gaussian DP."""

from importlib.metadata import version

import numpy as np
from interpret.privacy import DPExplainableBoostingClassifier, DPExplainableBoostingRegressor
from protocol import serve


def fit(rows, job):
    """Probability of class 1, or the target, of test rows."""
    n_numbers, n_codes = rows.numbers.shape[1], rows.codes.shape[1]
    X, X_test = (
        np.column_stack([numbers, codes])
        for numbers, codes in ((rows.numbers, rows.codes), (rows.numbers_test, rows.codes_test))
    )
    names = [f"x{i}" for i in range(n_numbers + n_codes)]
    options = dict(
        feature_names=names,
        feature_types=["continuous"] * n_numbers + ["nominal"] * n_codes,
        privacy_bounds={names[i]: (rows.low[i], rows.high[i]) for i in range(n_numbers)},
        epsilon=job["epsilon"],
        delta=job["delta"],
        random_state=job["seed"],
        n_jobs=1,
        **job["setting"],
    )
    if not rows.is_regression:
        model = DPExplainableBoostingClassifier(**options).fit(X, rows.y.astype(int))
        return model.predict_proba(X_test)[:, 1]
    low, high = map(float, rows.y_bounds)
    options |= dict(privacy_target_min=low, privacy_target_max=high)
    return DPExplainableBoostingRegressor(**options).fit(X, rows.y).predict(X_test)


if __name__ == "__main__":
    serve(fit, {"interpret-core": version("interpret-core"), "numpy": np.__version__})
