"""Private regression on features of bounded norm, made block by block.

Objective: ``sum_i loss(<w, phi(x_i)> - y_i) + penalty/2 ||w||^2`` with targets in [-1, 1]. The
loss is half the square up to a cap of the residual, so that a record's gradient is bounded
whatever the weights; a cap that no residual reaches leaves ridge regression.
"""

import math

import numpy as np
from scipy import linalg
from scipy.linalg.blas import dsyrk

from skdp.exceptions import SolverError
from skdp.losses import HuberLoss
from skdp.mechanisms import additive_mechanism, clip_rows
from skdp.solvers._releases import (
    PairwiseSum,
    noisy_release,
    records_changed,
    release_second_moments,
)
from skdp.solvers.erm import RowBlocks, minimise, solver_tolerance
from skdp.theory.gradient_descent import split_budget
from skdp.theory.random_features import plan_features, statistics_budgets, statistics_penalty

__all__ = [
    "FeatureBlocks",
    "gradient_descent",
    "output_perturbation",
    "sufficient_statistics",
]

_UNIT = 2.0**-53

# Certified error of sums over features, as a share of the bound on one record.
_ERROR_SHARE = 1e-3


class FeatureBlocks(RowBlocks):
    """Features of rows with their targets, a block at a time.

    The whole feature matrix is kept only while it is small; otherwise each pass makes it anew.

    Parameters
    ----------
    X : {ndarray, CSR matrix or array} of shape (n_samples, n_features_in)

    targets : ndarray of shape (n_samples,)
        In [-1, 1].

    features : object with ``transform``, ``x_limit``, ``row_norm``, ``error``, ``n_components``
        Longer rows than ``x_limit`` are scaled back.

    fixed_places : bool
        Whether rows have the same places in neighbouring data sets, as under "replace-one".
        Features are then made in single precision, where they are a function of the row and
        its place. Otherwise they are made in double, where they are within ``features.error``
        of a function of the row alone, and that error is certified.

    cache_size : int, default=2**29
        Largest feature matrix to keep, in bytes.
    """

    dense_limit = 20_000  # making features costs more than factorising

    def __init__(self, X, targets, features, *, fixed_places, cache_size=2**29):
        self.n_samples, self.n_features = X.shape[0], features.n_components
        self.row_norm = features.row_norm
        self.is_sparse = False
        self.length = 1024
        self.n_terms = min(self.n_features, 256) + self.n_features // 256
        self.dtype = np.float32 if fixed_places else np.float64
        self.feature_error = 0.0 if fixed_places else features.error
        self.blocks = _LazyBlocks(X, targets, features, self.length, self.dtype, cache_size)

    def rounding_error(self, loss, weights):
        """Bound on the norm of the error of `gradient` in floating point."""
        norm = float(np.linalg.norm(weights))
        moved = loss.lipschitz + loss.curvature * self.row_norm * norm
        return super().rounding_error(loss, weights) + (
            self.n_samples * self.feature_error * moved
        )

    def second_moments(self):
        """Sum of the outer products of the rows, of shape (n_components, n_components)."""
        moments = np.zeros((self.n_features, self.n_features), order="F")
        for rows, _ in self.blocks:
            moments = dsyrk(1.0, rows.T, beta=1.0, c=moments, overwrite_c=1)
        return np.triu(moments) + np.triu(moments, 1).T

    def moments_error(self):
        """Bound on the Frobenius norm of the error of `second_moments`."""
        chain = self.length + len(self.blocks) + 8
        return self.n_samples * (_UNIT * chain + 2 * self.feature_error) * self.row_norm**2

    def target_moments(self):
        """Sum of the rows times their targets, of shape (n_components,)."""
        moments = PairwiseSum((self.n_features,))
        for rows, targets in self.blocks:
            moments.add(rows.T @ targets)
        return moments.total()


class _LazyBlocks:
    """Sequence of (features, targets); iterating makes the features unless they are kept."""

    def __init__(self, X, targets, features, length, dtype, cache_size):
        self.X, self.targets, self.features = X, targets, features
        self.length, self.dtype = length, dtype
        # In the precision in which they are made.
        size = X.shape[0] * features.n_components * np.dtype(dtype).itemsize
        self.cache: list | None = [] if size <= cache_size else None

    def __len__(self):
        return -(-self.X.shape[0] // self.length)

    def __iter__(self):
        for i in range(len(self)):
            block = slice(i * self.length, (i + 1) * self.length)
            if self.cache is not None and i < len(self.cache):
                rows = self.cache[i]
            else:
                rows = clip_rows(self.X[block], self.features.x_limit)
                rows = self.features.transform(rows, self.dtype)
                if self.cache is not None:
                    self.cache.append(rows)
            yield rows.astype(np.float64, copy=False), self.targets[block]


def gradient_descent(data, *, clip_norm, guarantee, noise, penalty=0.0):
    """Full-batch descent along noisy sums of gradients with capped residuals.

    Privacy: satisfies ``guarantee`` for any rows and targets. The data are used in at most
    ``n_steps + 2`` Gaussian releases: the number of rows where it is private, the second
    moments of the features, and one sum of gradients a step, each at a released point. They
    compose by the root of summed squares. Everything else is a function of public and of
    released numbers.

    Parameters
    ----------
    data : FeatureBlocks

    clip_norm : float
        Cap of the residuals.

    guarantee : GaussianDP

    noise : NoiseSource

    penalty : float, default=0.0
        Strength of ``penalty/2 ||w||^2``, public.

    Returns
    -------
    ndarray of shape (n_components,)
        Mean of the last iterates.

    References
    ----------
    Bassily, Smith and Thakurta, "Private empirical risk minimization", FOCS 2014; Dong, Roth
    and Su, "Gaussian differential privacy", JRSS-B 2022, corollary 2.
    """
    count_guarantee, descent_guarantee = split_budget(guarantee)
    n_samples = float(data.n_samples)
    if count_guarantee is not None:
        n_samples = float(noisy_release(n_samples, 1.0, count_guarantee, noise))
    n_samples = max(1.0, n_samples)
    plan = plan_features(
        n_samples=n_samples,
        n_components=data.n_features,
        clip_norm=clip_norm,
        guarantee=descent_guarantee,
    )
    values, vectors = np.zeros(data.n_features), None
    if plan.gram_guarantee is not None:
        released = _noisy_moments(data, plan.gram_guarantee, noise)
        values, vectors = linalg.eigh(released, check_finite=False, overwrite_a=True)
        values /= n_samples
    momentum, floor = plan.schedule(values)
    curvatures = np.maximum(values, floor) + penalty / n_samples

    def precondition(gradient):
        if vectors is None:
            return gradient / curvatures
        return vectors @ ((vectors.T @ gradient) / curvatures)

    # A record's gradient is its features, of bounded norm, times its capped residual.
    # Replacing it moves the sum by two such norms.
    largest = clip_norm * data.row_norm
    l2_sensitivity = records_changed(guarantee) * largest
    loss = HuberLoss(clip_norm)
    weights, velocity = np.zeros(data.n_features), np.zeros(data.n_features)
    mean = np.zeros(data.n_features)
    for step in range(plan.n_steps):
        ahead = weights + momentum * velocity
        gradient, _ = data.gradient(loss, ahead[np.newaxis])
        data.check_rounding(loss, ahead, _ERROR_SHARE * largest)
        released = noisy_release(
            gradient[0],
            l2_sensitivity,
            plan.step_guarantee,
            noise,
            error=_ERROR_SHARE * largest,
        )
        velocity = momentum * velocity - precondition((released + penalty * ahead) / n_samples)
        weights = weights + velocity
        if step >= plan.n_steps - plan.n_averaged:
            mean += weights / plan.n_averaged
    return mean


def sufficient_statistics(data, *, guarantee, noise, penalty=None):
    """Ridge regression from noisy second moments and noisy products with the targets.

    Privacy: two Gaussian releases that compose to ``guarantee``, for any rows and targets.
    Neither depends on the number of rows, and solving the system is post-processing.

    Parameters
    ----------
    data : FeatureBlocks

    guarantee : GaussianDP

    noise : NoiseSource

    penalty : float, default=None
        None takes the norm of the noise in the second moments. Negative eigenvalues of the
        noisy matrix are set to zero first.

    Returns
    -------
    ndarray of shape (n_components,)

    References
    ----------
    Vu and Slavkovic, "Differential privacy for clinical trial data", ICDM workshops 2009; Wang,
    "Revisiting differentially private linear regression", UAI 2018.
    """
    gram_guarantee, target_guarantee = statistics_budgets(guarantee)
    if penalty is None:
        penalty = statistics_penalty(n_components=data.n_features, guarantee=guarantee)
    moments = _noisy_moments(data, gram_guarantee, noise)
    # A record adds its features times its target, which is at most one.
    l2_sensitivity = records_changed(guarantee) * data.row_norm
    data.check_rounding(HuberLoss(1.0), np.zeros(data.n_features), _ERROR_SHARE * data.row_norm)
    products = noisy_release(
        data.target_moments(),
        l2_sensitivity,
        target_guarantee,
        noise,
        error=_ERROR_SHARE * data.row_norm,
    )
    values, vectors = linalg.eigh(moments, check_finite=False, overwrite_a=True)
    return vectors @ ((vectors.T @ products) / (np.maximum(values, 0.0) + penalty))


def output_perturbation(data, *, clip_norm, penalty, l2_sensitivity, guarantee, noise):
    """Release the minimiser with noise.

    Privacy: satisfies ``guarantee`` if ``l2_sensitivity`` bounds the distance of the exact
    minimisers of neighbours: ``records * clip_norm * row_norm / penalty`` by strong convexity,
    or less by an argument of the caller. The solver adds its own certified error.

    Parameters
    ----------
    data : FeatureBlocks

    clip_norm : float
        Cap of the residuals.

    penalty : float

    l2_sensitivity : float

    guarantee : ApproxDP

    noise : NoiseSource

    Returns
    -------
    ndarray of shape (n_components,)

    References
    ----------
    Chaudhuri, Monteleoni and Sarwate, JMLR 2011, algorithm 1.
    """
    loss = HuberLoss(clip_norm)
    tolerance = solver_tolerance(loss, data.row_norm)
    weights = minimise(loss, data, penalty=penalty, tolerance=tolerance)
    return additive_mechanism(
        weights[0],
        l2_sensitivity=l2_sensitivity,
        error=tolerance / penalty,
        guarantee=guarantee,
        random_state=noise,
    )


def _noisy_moments(data, guarantee, noise):
    error = _ERROR_SHARE * math.sqrt(records_changed(guarantee)) * data.row_norm**2
    if data.moments_error() > error:
        raise SolverError("The rows are too many for the certified error of their sum.")
    return release_second_moments(
        data.second_moments(), data.row_norm, guarantee=guarantee, noise=noise, error=error
    )
