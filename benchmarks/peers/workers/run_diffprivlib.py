"""diffprivlib: logistic regression by a noisy objective, linear one by noisy moments."""

import diffprivlib
import numpy as np
import sklearn
from diffprivlib.models import LinearRegression, LogisticRegression
from protocol import serve


def fit(rows, job):
    """Probability of class 1, or the target, of test rows."""
    options = dict(epsilon=job["epsilon"], random_state=job["seed"])
    if not rows.is_regression:
        model = LogisticRegression(data_norm=1.0, max_iter=300, **options).fit(rows.X, rows.y)
        return model.predict_proba(rows.X_test)[:, 1]
    low, high = map(float, rows.y_bounds)
    model = LinearRegression(bounds_X=(rows.x_low, rows.x_high), bounds_y=(low, high), **options)
    return model.fit(rows.X, rows.y).predict(rows.X_test)


if __name__ == "__main__":
    serve(
        fit,
        {
            "diffprivlib": diffprivlib.__version__,
            "scikit-learn": sklearn.__version__,
            "numpy": np.__version__,
        },
    )
