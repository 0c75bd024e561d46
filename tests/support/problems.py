"""Rows with targets or labels, each kind of problem made in one way.

`support.configurations` says which suits an estimator.
"""

import math

import numpy as np
from scipy import sparse
from sklearn.datasets import make_classification

from skdp.rows._blocks import FeatureBlocks, IntegerFeatureBlocks, NormalisedRows

LAYOUTS = {"dense": np.asarray, "fortran": np.asfortranarray, "csr": sparse.csr_array}


def clusters(
    n_samples=240, n_classes=2, n_features=4, seed=0, *, unit=4.0, n_informative=None, n_each=1
):
    """Labels of ``n_each`` clusters a class; most rows are in the unit ball."""
    X, y = make_classification(
        n_samples,
        n_features,
        n_informative=n_features if n_informative is None else n_informative,
        n_redundant=0,
        n_classes=n_classes,
        n_clusters_per_class=n_each,
        random_state=seed,
    )
    return X / unit, y


def noisy_scores(n_classes=2, n=400, d=4, seed=0):
    """Rows of which some are outside of the unit ball, and the label of the highest score."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * [1.0, 0.5, 0.1, 1e-3]
    X[:3] *= [[1e150], [1e-150], [0.0]]
    return X, (X @ rng.normal(size=(d, n_classes)) + rng.gumbel(size=(n, n_classes))).argmax(1)


def long_and_empty_rows(n_rows=60, n_features=4, n_classes=2, seed=0):
    """Rows of which some are longer than 2, with zeros, and labels at random."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, n_features)) * (rng.random((n_rows, n_features)) < 0.7)
    X[:3] *= 1e3
    X[3] = 0.0
    return X, rng.integers(0, n_classes, n_rows)


def signs(n_rows=6, seed=0):
    """Rows of one feature, 1 or -1, and labels at random."""
    rng = np.random.default_rng(seed)
    X = rng.choice([-1.0, 1.0], size=(n_rows, 1))
    return X, rng.integers(0, 2, n_rows)


def surface(n_samples=2000, seed=0):
    """Targets that are a smooth function of two features, without noise."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, size=(n_samples, 2))
    return X, np.sin(3 * X[:, 0]) * X[:, 1]


def noisy_surface(n_samples, seed=0):
    """Targets that are a smooth function of three features, with noise, cut off at the bounds."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, size=(n_samples, 3))
    y = 2 * np.sin(2 * X[:, 0]) * X[:, 1] + 0.1 * rng.normal(size=n_samples)
    return X, np.clip(y, -1, 1)


def plane(n_samples=500, seed=0):
    """Targets that are linear in three features, with an intercept and a little noise."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-0.7, 0.7, size=(n_samples, 3))
    return X, np.clip(X @ [0.7, -0.4, 0.1] + 0.2 + 0.05 * rng.normal(size=n_samples), -1, 1)


def outliers(n, d, seed, norm=0.7, spread=0.2):
    """Rows in the unit ball, and linear targets with noise of heavy tails."""
    rng = np.random.default_rng(seed)
    rows = rng.standard_normal((n, d))
    rows /= np.maximum(1.0, np.linalg.norm(rows, axis=1))[:, np.newaxis]
    best = rng.standard_normal(d)
    targets = rows @ best * (norm / np.linalg.norm(best)) + spread * rng.standard_t(2, n)
    return rows, np.clip(targets, -1.0, 1.0)


def ridge(points, targets, copies, penalty):
    """Minimise the sum of squares plus ``penalty ||w||^2``; each row comes in some copies."""
    root = np.sqrt(copies)[:, np.newaxis]
    rows = np.vstack([root * points, math.sqrt(penalty) * np.eye(points.shape[1])])
    values = np.concatenate([root[:, 0] * targets, np.zeros(points.shape[1])])
    return np.linalg.lstsq(rows, values)[0]


def feature_blocks(features, rows, targets, layout="dense", **options):
    """Features of rows, in integers where they are random."""
    kind = FeatureBlocks if isinstance(features, NormalisedRows) else IntegerFeatureBlocks
    return kind(LAYOUTS[layout](np.asarray(rows)), np.asarray(targets), features, **options)
