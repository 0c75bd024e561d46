"""Private regression on features of bounded norm, made block by block.

Objective: ``sum_i loss(<w, phi(x_i)> - y_i) + penalty/2 ||w||^2`` with targets in [-1, 1]. The
loss is half the square up to a cap of the residual, so that a record's gradient is bounded
whatever the weights; a cap that no residual reaches leaves ridge regression.
"""

import math
from dataclasses import dataclass

import numpy as np
from scipy import sparse
from scipy.linalg.blas import dsyrk, ssyrk

from skdp.exceptions import SolverError
from skdp.losses import HuberLoss
from skdp.mechanisms import additive_mechanism, clip_rows
from skdp.solvers._releases import eigenvectors, noisy_release, release_second_moments
from skdp.solvers.certificates import MOST_ROWS, largest_n_rows, refuse_rows
from skdp.solvers.newton import minimise
from skdp.solvers.rows import Blocks
from skdp.theory.gradient_descent import split_budget
from skdp.theory.random_features import plan_features, statistics_budgets, statistics_penalty

__all__ = [
    "FeatureBlocks",
    "IntegerFeatureBlocks",
    "gradient_descent",
    "output_perturbation",
    "sufficient_statistics",
]

_UNIT = 2.0**-53
_LARGEST = 127.0  # its square times the length of a block is below 2**24
_RESIDUAL_BITS = 20  # with 7 of a feature, sums of 2**36 rows fit into an int64

# Certified error of sums over features, as a share of the bound on one record.
_ERROR_SHARE = 1e-3

# Rows of features are no longer than this, rounding to integers included.
_ROW_NORM = 1.006

# Blocks whose second moments are summed plainly, before those sums are.
_GROUP = 256


@dataclass(frozen=True)
class NormalisedRows:
    """Features of the linear kernel: rows in units of the bound on their norm.

    Parameters
    ----------
    n_components : int
        Length of a row.

    x_norm : float
        Norm beyond which rows are scaled back.
    """

    n_components: int
    x_norm: float

    row_norm = 1.0 + 1e-6

    @property
    def attributes(self):
        """What is public of an estimator on these features: nothing was drawn."""
        return {}

    @property
    def n_features_in(self):
        """Length of a row."""
        return self.n_components

    def transform(self, X):
        """Divide rows by ``x_norm``, which no row is longer than; result in double precision."""
        rows = clip_rows(X, self.x_norm)
        rows = rows.toarray() if sparse.issparse(rows) else rows
        return rows / self.x_norm


class FeatureBlocks(Blocks):
    """Features of rows with their targets, a block at a time, in double precision.

    The whole feature matrix is kept only while it is small; otherwise each pass makes it anew.
    The rounding of sums is certified.

    Parameters
    ----------
    X : {ndarray, CSR matrix or array} of shape (n_samples, n_features_in)

    targets : ndarray of shape (n_samples,)
        In [-1, 1].

    features : FourierFeatures or NormalisedRows
        Features of a row that do not depend on other rows, nor on its place among them.

    cache_size : int, default=2**30
        Largest feature matrix to keep, in bytes.
    """

    dense_limit = 20_000  # making features costs more than factorising

    def __init__(self, X, targets, features, *, cache_size=2**30):
        self.n_samples, self.n_features = X.shape[0], features.n_components
        self.row_norm = features.row_norm
        self.is_sparse = False
        self.length = 1024
        self.n_terms = min(self.n_features, 256) + self.n_features // 256
        self.X, self.features = X, features
        self.targets = np.clip(targets, -1.0, 1.0)  # what sensitivities rest on
        size = self.n_samples * self.n_features * self._itemsize
        self._kept: list | None = [] if size <= cache_size else None
        self.blocks = self

    _itemsize = 8

    def __len__(self):
        return -(-self.n_samples // self.length)

    def __iter__(self):
        for rows, targets in self._made():
            yield self._as_rows(rows), targets

    def _made(self):
        for i in range(len(self)):
            block = slice(i * self.length, (i + 1) * self.length)
            if self._kept is not None and i < len(self._kept):
                rows = self._kept[i]
            else:
                rows = self._make(self.X[block])
                if self._kept is not None:
                    self._kept.append(rows)
            yield rows, self.targets[block]

    def _make(self, X):
        return self.features.transform(X)

    def _as_rows(self, made):
        return made.astype(np.float64, copy=False)

    def capped_sum(self, weights, cap):
        """Sum of the rows times their residuals, these capped.

        Returns
        -------
        total : ndarray of shape (n_components,)

        error : float
            Bound on the norm of its error.
        """
        loss = HuberLoss(cap)
        weights = weights[np.newaxis]
        exactly = self.rounding_error(loss, weights) > _ERROR_SHARE * cap * self.row_norm
        gradient, _ = self.gradient(loss, weights, exactly=exactly)
        return gradient[0], self.rounding_error(loss, weights, exactly=exactly)

    def second_moments(self):
        """Sum of the outer products of the rows.

        Returns
        -------
        total : ndarray of shape (n_components, n_components)

        error : float
            Bound on the Frobenius norm of its error.
        """
        total, part = np.zeros((2, self.n_features, self.n_features)).transpose(0, 2, 1)
        for i, (rows, _) in enumerate(self):
            if i % _GROUP == 0:
                total += part
                part[:] = 0.0
            part = dsyrk(1.0, rows.T, beta=1.0, c=part, overwrite_c=1)
        total += part
        chain = self.length + _GROUP + len(self) // _GROUP + 8
        error = self.n_samples * _UNIT * chain * self.row_norm**2
        return _symmetric(total), error


class IntegerFeatureBlocks(FeatureBlocks):
    """Fourier features rounded to integers, whose sums floating point gives exactly.

    Cosines and sines are rounded to 1/127. That moves a row by less than 0.6 percent of its
    norm, which ``row_norm`` includes, and the kernel by next to nothing. Products of two such
    integers summed over a block are below 2**24, so that single precision has them without error,
    and a feature takes one byte. Weights and residuals are rounded as well. So no sum that the
    data enter has a rounding error, in whatever order it is formed.

    Parameters
    ----------
    X, targets, features, cache_size
        As for `FeatureBlocks`, with ``features`` a FourierFeatures.
    """

    _itemsize = 1

    def __init__(self, X, targets, features, *, cache_size=2**30):
        super().__init__(X, targets, features, cache_size=cache_size)
        # 127 sqrt(D) times the features is within 1/2 of the integers in each of 2 D coordinates.
        self.unit = 1.0 / (_LARGEST * math.sqrt(self.n_features / 2))
        self.row_norm = features.row_norm + math.sqrt(self.n_features) / 2 * self.unit

    def _make(self, X):
        rows = self.features.transform(X)
        rows *= np.float32(1.0 / self.unit)
        return np.rint(rows, out=rows).astype(np.int8)

    def _as_rows(self, made):
        return made * self.unit

    def capped_sum(self, weights, cap):
        """Sum of the rows times their residuals, these capped; rounded once, at the end."""
        total = np.zeros(self.n_features, dtype=np.int64)
        # Weights are rounded as well: scores must be a function of the row, whatever the order of
        # their sums. Integers below 2**53 are exact in double precision.
        bits = 52 - 7 - math.ceil(math.log2(self.n_features))
        weights = _rounded(weights * self.unit, bits)
        for made, targets in self._made():
            rows = made.astype(np.float64)
            residuals = np.clip((rows @ weights - targets) / cap, -1.0, 1.0)
            total += (np.rint(residuals * 2.0**_RESIDUAL_BITS) @ rows).astype(np.int64)
        error = 2 * _UNIT * self.n_samples * cap * self.row_norm
        return total * (cap * self.unit * 2.0**-_RESIDUAL_BITS), error

    def second_moments(self):
        """Sum of the outer products of the rows; rounded once, at the end."""
        total = np.zeros((self.n_features, self.n_features), order="F")
        part = np.zeros((self.n_features, self.n_features), order="F", dtype=np.float32)
        for made, _ in self._made():
            part = ssyrk(1.0, made.astype(np.float32).T, c=part, overwrite_c=1)
            total += part
        error = _UNIT * self.n_samples * self.row_norm**2
        return _symmetric(total) * self.unit**2, error


def _rounded(numbers, bits):
    """Round to multiples of a power of two, so that the largest takes ``bits`` bits."""
    largest = max(float(np.abs(numbers).max()), 1e-200)
    unit = 2.0 ** (math.ceil(math.log2(largest)) - bits)
    return np.rint(numbers / unit) * unit


def _symmetric(upper):
    """Fill the lower triangle."""
    return np.triu(upper) + np.triu(upper, 1).T


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
        values, vectors = eigenvectors(released)
        values /= n_samples
    momentum, floor = plan.schedule(values)
    curvatures = np.maximum(values + plan.margin, floor) + penalty / n_samples

    def precondition(gradient):
        if vectors is None:
            return gradient / curvatures
        return vectors @ ((vectors.T @ gradient) / curvatures)

    # A record's gradient is its features, of bounded norm, times its capped residual.
    # Replacing it moves the sum by two such norms.
    largest = clip_norm * data.row_norm
    l2_sensitivity = guarantee.n_records_changed * largest
    weights, velocity = np.zeros(data.n_features), np.zeros(data.n_features)
    mean = np.zeros(data.n_features)
    for step in range(plan.n_steps):
        ahead = weights + momentum * velocity
        gradient = _certified(data.capped_sum(ahead, clip_norm), _ERROR_SHARE * largest)
        released = noisy_release(
            gradient,
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
    l2_sensitivity = guarantee.n_records_changed * data.row_norm
    nothing = np.zeros(data.n_features)
    moments_of_targets = -_certified(data.capped_sum(nothing, 1.0), _ERROR_SHARE * data.row_norm)
    products = noisy_release(
        moments_of_targets,
        l2_sensitivity,
        target_guarantee,
        noise,
        error=_ERROR_SHARE * data.row_norm,
    )
    values, vectors = eigenvectors(moments)
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
    tolerance = _tolerance(penalty, l2_sensitivity)
    weights = minimise(HuberLoss(clip_norm), data, penalty=penalty, tolerance=tolerance)
    return additive_mechanism(
        weights[0],
        l2_sensitivity=l2_sensitivity,
        error=tolerance / penalty,
        guarantee=guarantee,
        random_state=noise,
    )


def _tolerance(penalty, l2_sensitivity):
    """Bound on the gradient norm of a solve: its error costs 1e-5 of the sensitivity."""
    return 0.5e-5 * penalty * l2_sensitivity


def check_n_rows(n_samples, adjacency, n_components=None, **solve):
    """Refuse more rows than can be certified, before a ledger is charged.

    Parameters
    ----------
    n_samples : int

    adjacency : {"replace-one", "add-remove"}
        Under "add-remove" the message does not say how many there are.

    n_components : int, default=None

    **solve
        ``clip_norm``, ``penalty`` and ``l2_sensitivity`` for `output_perturbation`. Releases of
        sums alone need none: their limit is the same for all.
    """
    most = MOST_ROWS
    if solve:
        penalty = solve["penalty"]
        most = largest_n_rows(
            HuberLoss(solve["clip_norm"]),
            n_features=n_components,
            row_norm=_ROW_NORM,
            tolerance=_tolerance(penalty, solve["l2_sensitivity"]),
            penalty=penalty,
        )
    refuse_rows(n_samples, most, adjacency)


def _noisy_moments(data, guarantee, noise):
    error = _ERROR_SHARE * math.sqrt(guarantee.n_records_changed) * data.row_norm**2
    moments = _certified(data.second_moments(), error)
    return release_second_moments(
        moments, data.row_norm, guarantee=guarantee, noise=noise, error=error
    )


def _certified(computed, largest):
    """Return a computed sum if its error is certified to be at most ``largest``."""
    total, error = computed
    if error > largest:
        raise SolverError("The rows are too many for the certified error of their sum.")
    return total
