"""Noisy gradient descent as others tune it: many settings, the best of which the test rows name.

Every row is in every step, its gradient cut to a norm; steps are Gaussian releases of equal mu
under replace-one, which compose exactly. Choosing by the test rows costs a real user privacy; here
it does not count, so the best setting is better than what tuning could reach.
"""

from itertools import product

import numpy as np
from scipy import sparse
from scipy.special import expit, softmax
from sklearn.kernel_approximation import RBFSampler

from peers.scores import classification_scores, regression_scores
from skdp.privacy import gaussian_mu

__all__ = ["classification_descents", "regression_descents"]

# Steps; their length times the norm at which gradients are cut; that norm.
BINARY_GRID = ((10, 40, 200), (0.1, 0.5, 2.0, 5.0), (0.2, 0.7))
MULTICLASS_GRID = ((20, 100), (0.5, 2.0, 6.0), (0.3, 1.0))
REGRESSION_GRID = ((20, 120), (0.1, 0.3, 1.0), (0.05, 0.2))
GAMMAS = (0.5, 1.5, 5.0)  # over the number of columns
N_FEATURES = 300


def _with_constant(X):
    if sparse.issparse(X):
        return sparse.csr_array(sparse.hstack([X, np.ones((X.shape[0], 1))]))
    return np.column_stack([X, np.ones(len(X))])


def _norms(X):
    if sparse.issparse(X):
        return np.sqrt(np.asarray(X.multiply(X).sum(axis=1)).ravel())
    return np.linalg.norm(X, axis=1)


def _descend(X, residuals, mus, settings, n_steps, rng, outputs=1):
    """Weights of the last step, and mean of those of its second half.

    Parameters
    ----------
    X : ndarray or CSR array of shape (n_samples, n_features)

    residuals : callable
        Of scores of shape (n_samples, outputs, n_runs): the derivatives by scores.

    mus : ndarray of shape (n_runs,)

    settings : ndarray of shape (n_runs, 2)
        Length of a step and the norm.

    n_steps : int

    rng : Generator

    outputs : int, default=1
    """
    n_rows, d = X.shape
    lengths, caps = settings.T
    norms = _norms(X)[:, np.newaxis]
    sigmas = 2.0 * caps * np.sqrt(n_steps) / mus
    shape = (d, outputs, len(mus))
    weights, average = np.zeros(shape), np.zeros(shape)
    for step in range(n_steps):
        slopes = residuals((X @ weights.reshape(d, -1)).reshape(n_rows, *shape[1:]))
        lengths_of = norms * np.sqrt((slopes**2).sum(axis=1))
        slopes *= np.minimum(1.0, caps / np.maximum(lengths_of, 1e-12))[:, np.newaxis]
        gradients = (X.T @ slopes.reshape(n_rows, -1)).reshape(shape)
        gradients += sigmas * rng.standard_normal(shape)
        weights = weights - lengths / caps / n_rows * gradients
        if 2 * step >= n_steps:
            average += weights / (n_steps - (n_steps + 1) // 2)
    return {"last": weights, "mean": average}


def _runs(X, residuals, epsilons, delta, grid, rng, outputs=1, at_once=True):
    """Yield epsilon, setting and weights of shape (n_features, outputs)."""
    steps, *rest = grid
    for n_steps in steps:
        settings = np.array(list(product(*rest)))
        groups = [list(epsilons)] if at_once else [[epsilon] for epsilon in epsilons]
        for group in groups:
            mus = [gaussian_mu(epsilon=epsilon, delta=delta) for epsilon in group]
            found = _descend(
                X,
                residuals,
                np.repeat(mus, len(settings)),
                np.tile(settings, (len(group), 1)),
                n_steps,
                rng,
                outputs,
            )
            for i, (epsilon, (length, cap)) in enumerate(product(group, settings)):
                for which, weights in found.items():
                    name = f"steps={n_steps} length={length:g} cap={cap:g} {which}"
                    yield epsilon, name, weights[:, :, i]


def classification_descents(split, epsilons, delta, seed):
    """Yield epsilon, setting and scores of logistic regression.

    Parameters
    ----------
    split : Split

    epsilons : list of float

    delta : float

    seed : int
    """
    X, X_test = _with_constant(split.X), _with_constant(split.X_test)
    labels = np.unique(np.concatenate([split.y, split.y_test]))
    codes = np.searchsorted(labels, split.y)
    rng = np.random.default_rng(seed)
    options = dict(delta=delta, rng=rng)
    if len(labels) == 2:
        runs = _runs(
            X,
            lambda scores: expit(scores) - codes[:, np.newaxis, np.newaxis],
            epsilons,
            grid=BINARY_GRID,
            **options,
        )
    else:
        hot = np.eye(len(labels))[codes][:, :, np.newaxis]
        runs = _runs(
            X,
            lambda scores: softmax(scores, axis=1) - hot,
            epsilons,
            grid=MULTICLASS_GRID,
            outputs=len(labels),
            at_once=False,
            **options,
        )
    for epsilon, name, weights in runs:
        scores = X_test @ weights
        if len(labels) == 2:
            scores = np.column_stack([np.zeros(len(scores)), scores])
        values = softmax(scores, axis=1)
        yield epsilon, name, classification_scores(split.y_test, values, labels, labels)


def regression_descents(split, epsilons, delta, seed):
    """Yield epsilon, setting and scores of least squares on columns and on random features.

    Parameters
    ----------
    split : Split

    epsilons : list of float

    delta : float

    seed : int
    """
    low, high = split.y_bounds
    targets = np.clip((2.0 * split.y - low - high) / (high - low), -1.0, 1.0)
    targets = targets[:, np.newaxis, np.newaxis]
    rng = np.random.default_rng(seed)
    d = split.X.shape[1]
    prepared = {"linear": (split.X / np.sqrt(d), split.X_test / np.sqrt(d))}
    for gamma in GAMMAS:
        sampler = RBFSampler(gamma=gamma / d, n_components=N_FEATURES, random_state=seed)
        features = sampler.fit_transform(split.X), sampler.transform(split.X_test)
        prepared[f"gamma={gamma:g}/d"] = features
    for kind, (X, X_test) in prepared.items():
        X, X_test = _with_constant(X), _with_constant(X_test)
        runs = _runs(X, lambda scores: scores - targets, epsilons, delta, REGRESSION_GRID, rng)
        for epsilon, name, weights in runs:
            scores = np.clip((X_test @ weights)[:, 0], -1.0, 1.0)
            predicted = (low + high + (high - low) * scores) / 2.0
            yield epsilon, f"{kind} {name}", regression_scores(split.y_test, predicted)
