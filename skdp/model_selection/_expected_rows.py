"""Where the rows come from by which a score is expected: public ones, or made up."""

from numbers import Real

import numpy as np
from sklearn.model_selection import train_test_split
from sklearn.utils import indexable, resample

from skdp._validation import fraction, is_auto, positive_int, shown
from skdp.model_selection._made_up import MadeUpClasses, MadeUpTargets

__all__ = ["MadeUpRows", "PublicRows", "named"]

_N_TEST = 4000
_TEST_SHARE = 0.3
_BEST = {True: 0.85, False: 0.8}  # accuracy of classifiers, R^2 of regressors


class PublicRows:
    """Public rows: some for the score, of the others as many as were asked for."""

    def __init__(self, X, y, n_features):
        if y is None:
            raise ValueError("y_public must hold the targets of X_public; got None.")
        if n_features is not None:
            raise ValueError(
                "n_features must be None with X_public, which has columns of its own; "
                f"got {shown(n_features)}."
            )
        self.data = indexable(X, y)

    def draw(self, n, rng):
        """Rows and targets for a fit, and others for its score."""
        seeds = [int(seed) for seed in rng.integers(2**31, size=2)]
        parts = train_test_split(*self.data, test_size=_TEST_SHARE, random_state=seeds[0])
        replace = n > len(parts[2])
        train = resample(*parts[::2], replace=replace, n_samples=n, random_state=seeds[1])
        return train, parts[1::2]


class MadeUpRows:
    """Rows that are made up, in the units that an estimator was told."""

    def __init__(self, trial, n_features, best_score, class_shares):
        positive_int(n_features=n_features)
        self.n_features, self.is_classifier = int(n_features), trial.is_classifier
        self.best = _BEST[self.is_classifier] if is_auto(best_score) else best_score
        fraction(best_score=self.best)
        if self.is_classifier:
            self.labels, self.shares = _checked_shares(trial.public("classes"), class_shares)
            if self.best <= max(self.shares):
                raise ValueError(
                    "best_score must be above the share of the most frequent class, "
                    f"{max(self.shares):.3g}; got {shown(best_score)}."
                )
            x_norm = trial.params.get("x_norm")
            self.unit = x_norm if isinstance(x_norm, Real) else 1.0
        else:
            if class_shares is not None:
                raise ValueError(
                    f"class_shares must be None for a regressor; got {shown(class_shares)}."
                )
            bounds = trial.public("y_bounds")
            self.bounds = (-1.0, 1.0) if bounds is None or is_auto(bounds) else bounds
            if bounds is None:
                trial.changed |= dict.fromkeys(named(trial.params, "y_bounds"), (-1.0, 1.0))

    def draw(self, n, rng):
        """Rows and targets for a fit, and others for its score, all of a new model."""
        if self.is_classifier:
            model = MadeUpClasses.of(self.n_features, self.shares, self.best, rng)
            X, codes = model.draw(n + _N_TEST, rng)
            X, y = self.unit * X, self.labels[codes]
        else:
            X, y = MadeUpTargets.of(self.n_features, self.best, rng).draw(n + _N_TEST, rng)
            low, high = self.bounds
            y = low + (high - low) * (y + 1.0) / 2.0
        return (X[:n], y[:n]), (X[n:], y[n:])


def named(params, name):
    """Full names of the parameters of this name, here and in steps."""
    return [full for full in params if full == name or full.endswith(f"__{name}")]


def _checked_shares(classes, shares):
    """Labels, and how frequent they are."""
    labels = None if classes is None else np.asarray(classes)
    if shares is None:
        size = 2 if labels is None else len(labels)
        shares = [1.0 / size] * size
    try:
        found = np.asarray(shares, dtype=np.float64)
    except (TypeError, ValueError):
        found = np.empty(0)
    if found.ndim != 1 or len(found) < 2 or not _is_law(found):
        raise ValueError(
            "class_shares must be two or more positive numbers that sum to 1; "
            f"got {shown(shares)}."
        )
    if labels is not None and len(labels) != len(found):
        raise ValueError(
            f"class_shares must have one number for each of {len(labels)} classes; "
            f"got {shown(shares)}."
        )
    return np.arange(len(found)) if labels is None else labels, found


def _is_law(shares):
    return bool((shares > 0.0).all()) and abs(shares.sum() - 1.0) < 1e-6
