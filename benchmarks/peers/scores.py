"""Accuracy, area under the curve and log-loss; R^2."""

import numpy as np
from scipy.stats import rankdata

__all__ = ["SCORES", "area_under_curve", "classification_scores", "regression_scores"]

SCORES = ("accuracy", "auc", "log_loss", "r2")

# As scikit-learn's log_loss had it: a certain mistake costs 34.5.
_LEAST_PROBABILITY = 1e-15


def area_under_curve(positive: np.ndarray, values: np.ndarray) -> float:
    """Share of pairs of a positive and another row that ``values`` orders rightly.

    Parameters
    ----------
    positive : ndarray of bool of shape (n_samples,)

    values : ndarray of shape (n_samples,)
    """
    n_positive = int(positive.sum())
    ranks = rankdata(values)[positive].sum() - n_positive * (n_positive + 1) / 2
    return float(ranks / (n_positive * (len(positive) - n_positive)))


def classification_scores(y, values, known, labels, *, probable=True) -> dict[str, float]:
    """Scores of predicted probabilities, or of other values where not ``probable``.

    Parameters
    ----------
    y : array-like of shape (n_samples,)
        Labels of test rows.

    values : ndarray of shape (n_samples, n_known)
        For the labels ``known``, the larger the likelier.

    known : array-like
        Labels that the model knows.

    labels : ndarray
        All labels, sorted. One that the model does not know is never predicted.

    probable : bool, default=True
        Whether ``values`` are probabilities. Otherwise there is no log-loss.

    Returns
    -------
    scores : dict
        For more than two classes the area under the curve is the mean over classes, each against
        the others.
    """
    y = np.asarray(y)
    every = np.full((len(y), len(labels)), 0.0 if probable else -np.inf)
    every[:, np.searchsorted(labels, known)] = values
    codes = np.searchsorted(labels, y)
    asked = [1] if len(labels) == 2 else np.unique(codes)
    scores = {
        "accuracy": float(np.mean(every.argmax(axis=1) == codes)),
        "auc": float(np.mean([area_under_curve(codes == k, every[:, k]) for k in asked])),
    }
    if probable:
        of_label = np.clip(every[np.arange(len(y)), codes], _LEAST_PROBABILITY, 1.0)
        scores["log_loss"] = float(-np.mean(np.log(of_label)))
    return scores


def regression_scores(y, predicted) -> dict[str, float]:
    """Coefficient of determination."""
    y = np.asarray(y, dtype=float)
    return {"r2": float(1.0 - np.mean((y - predicted) ** 2) / np.var(y))}
