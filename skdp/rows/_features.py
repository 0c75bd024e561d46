"""Kernels, and feature maps of bounded norm that approximate them.

A feature map is drawn independently of the data and is public. A model on it is a vector of fixed
size, which can be released as a whole.
"""

import math
from dataclasses import dataclass
from functools import cached_property
from numbers import Real
from typing import Any

import numpy as np
from scipy import linalg, sparse
from scipy.spatial.distance import cdist

from skdp._defaults import kernel as defaults
from skdp._random._source import seed_sequence
from skdp._validation import between, one_of, positive, positive_int, short_repr
from skdp.rows._sums import UNIT_ROUNDOFF, rounded

KERNELS = ("rbf", "laplacian", "matern", "linear")
SMOOTHNESS = (0.5, 1.5, 2.5)

_FAR = 1000.0
# Frequencies beyond this, in units of gamma, are cut. Only heavy-tailed laws get there; the
# kernel changes at distances below a thousandth of its length scale.
_LONGEST = 1000.0
_FREQUENCY_BITS = 20
_ROWS = 128  # whose phases stay in cache


def check_kernel(kernel, gamma, nu):
    """Check the parameters of a kernel."""
    one_of(KERNELS, kernel=kernel)
    if isinstance(gamma, str):
        raise ValueError(
            "gamma must be a positive number, chosen without looking at the data; got "
            f"{short_repr(gamma)}."
        )
    positive(gamma=gamma)
    between(1e-30, 1e30, gamma=gamma)
    if kernel == "matern" and not (isinstance(nu, Real) and nu in SMOOTHNESS):
        raise ValueError(f"nu must be 0.5, 1.5 or 2.5; got {short_repr(nu)}.")


def automatic_gamma(kernel, n_features_in, *, sparse_rows=False):
    """Return a default kernel coefficient that does not depend on the data.

    Parameters
    ----------
    kernel : {"rbf", "laplacian", "matern"}

    n_features_in : int
        Number of columns d.

    sparse_rows : bool, default=False
        Rows of a sparse matrix are assumed to have norm 1 and few nonzero entries, as for text;
        other rows are assumed to be in ``[-1, 1]^d``.

    Returns
    -------
    float
        For rows in the cube ``3/d`` for "rbf", ``2/d`` for "laplacian" and ``1.5/sqrt(d)`` for
        "matern"; for unit rows 1/2, ``1/sqrt(d)`` and 1.

    Notes
    -----
    In the cube, squared distances and l1 distances are sums over columns and grow with d. A column
    that is uniform on [-1, 1] adds 2/3 to either, so "rbf" is ``exp(-2)`` at the distance of two
    uniform rows; a column that uses a fifth of its range adds a twentieth of that. On nine data
    sets with public bounds, squared distances were typically ``d/11`` to ``2d/3``, and "rbf" 0.15
    to 0.77. Wider kernels distinguish rows too little, and narrower ones need more directions than
    the noise allows. Unit rows without negative entries have squared distances of at most 2, and
    close to 2 if they share few entries: "rbf" is then ``1/e``. The l1 norm of a unit row is at
    most ``sqrt(d)``.

    Examples
    --------
    >>> from skdp.rows import automatic_gamma
    >>> automatic_gamma("rbf", 12)
    0.25
    >>> automatic_gamma("matern", 1024, sparse_rows=True)
    1.0
    """
    one_of(KERNELS[:-1], kernel=kernel)
    positive_int(n_features_in=n_features_in)
    d = int(n_features_in)
    if sparse_rows:
        return {"rbf": 0.5, "laplacian": 1.0 / math.sqrt(d), "matern": 1.0}[kernel]
    return {
        "rbf": defaults.GAMMA_RBF / d,
        "laplacian": 2.0 / d,
        "matern": defaults.GAMMA_MATERN / math.sqrt(d),
    }[kernel]


def kernel_matrix(kernel, X, Y=None, *, gamma, nu=1.5):
    """Compute a kernel at all pairs of rows.

    Parameters
    ----------
    kernel : {"rbf", "laplacian", "matern", "linear"}
        ``exp(-gamma ||x-y||^2)``; ``exp(-gamma ||x-y||_1)``; the Matérn kernel of length scale
        ``1/gamma``; and ``<x, y>``, which ignores ``gamma``.

    X : {ndarray, CSR matrix or array} of shape (n, d)

    Y : {ndarray, CSR matrix or array} of shape (m, d), default=None
        ``X`` if None.

    gamma : float

    nu : {0.5, 1.5, 2.5}, default=1.5
        Smoothness of the Matérn kernel; 0.5 is ``exp(-gamma ||x-y||)``.

    Returns
    -------
    ndarray of shape (n, m)
    """
    check_kernel(kernel, gamma, nu)
    gamma = float(gamma)
    Y = X if Y is None else Y
    if kernel == "linear":
        product = X @ Y.T
        return product.toarray() if sparse.issparse(product) else np.asarray(product)
    X, Y = (part.toarray() if sparse.issparse(part) else part for part in (X, Y))
    # Sums over differences of coordinates have a small relative error, wherever the rows are.
    # Beyond the limit every kernel is zero.
    metrics = {"rbf": "sqeuclidean", "laplacian": "cityblock", "matern": "euclidean"}
    factor = math.sqrt(2.0 * nu) * gamma if kernel == "matern" else gamma
    with np.errstate(over="ignore"):
        distance = np.minimum(factor * cdist(X, Y, metrics[kernel]), _FAR)
    values = np.exp(-distance)
    if kernel == "matern" and nu > 0.5:
        values *= 1.0 + distance + (distance**2 / 3.0 if nu == 2.5 else 0.0)
    return values


def kernel_error(n_features_in, kappa=1.0):
    """Return a bound on the rounding error of an entry of `kernel_matrix`.

    Parameters
    ----------
    n_features_in : int

    kappa : float, default=1.0
        Bound on the norm of a row, for the linear kernel.

    Returns
    -------
    float
        Bound for rows of any size. The error of a distance is relative, and ``t |h'(t)|`` is below
        one for each kernel ``h(t)``; evaluating ``h`` adds a few units in the last place.
    """
    return 2 * UNIT_ROUNDOFF * (n_features_in + 32) * kappa**2


@dataclass(frozen=True, eq=False)
class FourierFeatures:
    """Random Fourier features: cosines and sines of random frequencies.

    ``phi(x) = (cos <w_1, x>, ..., cos <w_D, x>, sin <w_1, x>, ..., sin <w_D, x>) / sqrt(D)`` has
    norm one for every ``x``, so no row needs clipping for privacy.

    Parameters
    ----------
    frequencies : ndarray of shape (n_frequencies, n_features_in)
        Public: drawn from the spectral distribution of the kernel, independently of the data.

    References
    ----------
    Rahimi and Recht, "Random features for large-scale kernel machines", NIPS 2007, theorem 1
    and claim 1; Sutherland and Schneider, "On the error of random Fourier features", UAI 2015,
    for the pairs.
    """

    frequencies: np.ndarray

    # Norm of a row in single precision.
    row_norm = 1.0 + 1e-6

    @property
    def pair_norm(self):
        """Norm of the cosine and the sine of a frequency, in single precision."""
        return self.row_norm / math.sqrt(len(self.frequencies))

    @property
    def attributes(self):
        """Public attributes of an estimator on these features."""
        return {"frequencies_": self.frequencies}

    @property
    def n_components(self):
        """Length of a row of features."""
        return 2 * len(self.frequencies)

    @property
    def n_features_in(self):
        """Length of a row."""
        return self.frequencies.shape[1]

    @cached_property
    def x_step(self):
        """Power of two; entries of a row are rounded to multiples of it.

        Rounding changes a phase by less than 1e-4 typically.
        """
        typical = float(np.median(np.abs(self.frequencies)))
        finest = 2.0 ** (math.floor(-math.log2(typical)) - 13)
        # Kernels have vanished at 64 length scales; so far entries must reach at least.
        return max(finest, 2.0 ** math.ceil(math.log2(64.0 / typical)) * 2.0**-self._x_bits)

    @property
    def x_limit(self):
        """Largest absolute entry of a row; larger ones are clipped."""
        return self.x_step * 2.0**self._x_bits

    @property
    def _x_bits(self):
        # Frequencies are multiples of a power of two as well, such that all sums of products fit
        # into the 53 bits of a float. Phases are exact then, and the features of a row a
        # function of the row alone, in whatever order and block they are computed.
        return 52 - _FREQUENCY_BITS - math.ceil(math.log2(self.frequencies.shape[1]))

    def transform(self, X):
        """Compute the features.

        Parameters
        ----------
        X : {ndarray, CSR matrix or array} of shape (n_samples, n_features_in)

        Returns
        -------
        ndarray of shape (n_samples, n_components), dtype float32
        """
        if sparse.issparse(X):
            X = X.astype(np.float64)  # a copy
            X.sum_duplicates()
            X.data = self._on_grid(X.data)
        else:
            X = self._on_grid(X)
        D = len(self.frequencies)
        features = np.empty((X.shape[0], 2 * D), dtype=np.float32)
        for start in range(0, X.shape[0], _ROWS):
            phases = np.asarray(X[start : start + _ROWS] @ self.frequencies.T)
            turns = _nearest(phases * (0.5 / math.pi))
            turns *= 2.0 * math.pi
            phases -= turns
            within = phases.astype(np.float32)
            block = features[start : start + _ROWS]
            np.cos(within, out=block[:, :D])
            np.sin(within, out=block[:, D:])
            block *= np.float32(1.0 / math.sqrt(D))
        return features

    def _on_grid(self, entries):
        entries = np.clip(entries, -self.x_limit, self.x_limit)
        entries = np.asarray(entries, dtype=np.float64) * (1.0 / self.x_step)
        return np.multiply(_nearest(entries), self.x_step, out=entries)


@dataclass(frozen=True, eq=False)
class FeatureFunction:
    """Linear function of features.

    Parameters
    ----------
    features : FourierFeatures or NormalisedRows

    coef : ndarray of shape (n_components,) or (n_outputs, n_components)

    intercept : float or ndarray of shape (n_outputs,), default=None
        Constant added to every value. None adds nothing.
    """

    features: Any
    coef: np.ndarray
    intercept: Any = None

    @property
    def attributes(self):
        """Public attributes of an estimator that predicts with this function."""
        attributes = {"coef_": self.coef, **self.features.attributes}
        return (
            attributes if self.intercept is None else {**attributes, "intercept_": self.intercept}
        )

    def answer(self, X):
        """Compute the values at rows, block by block.

        Parameters
        ----------
        X : {ndarray, CSR matrix or array} of shape (n_rows, n_features_in)

        Returns
        -------
        ndarray of shape (n_rows,) or (n_rows, n_outputs)
        """
        values = np.empty((X.shape[0], *self.coef.shape[:-1]))
        for start in range(0, X.shape[0], 1024):
            block = slice(start, start + 1024)
            values[block] = self.features.transform(X[block]).astype(np.float64) @ self.coef.T
        return values + (0.0 if self.intercept is None else self.intercept)


def fourier_features(
    kernel, n_features_in, *, n_components, gamma, nu=1.5, orthogonal=True, random_state=None
):
    """Draw random Fourier features for a kernel that depends on ``x - y`` only.

    Parameters
    ----------
    kernel : {"rbf", "laplacian", "matern"}

    n_features_in : int

    n_components : int
        Number of features; even.

    gamma : float

    nu : {0.5, 1.5, 2.5}, default=1.5
        Smoothness of the Matérn kernel.

    orthogonal : bool, default=True
        Whether to draw directions in orthogonal groups, which lowers the variance of the
        approximation. The spectral distribution of the Laplacian kernel is not isotropic: its
        frequencies are independent.

    random_state : None, int, RandomState or Generator, default=None
        Seed of the frequencies. They are public, so any seed is safe here; the noise must use a
        different one.

    Returns
    -------
    FourierFeatures

    References
    ----------
    Yu, Suresh, Choromanski, Holtmann-Rice and Kumar, "Orthogonal random features", NIPS 2016,
    theorem 1.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp.rows import fourier_features, kernel_matrix
    >>> X = np.array([[0.0, 0.0], [0.5, 0.5]])
    >>> features = fourier_features("rbf", 2, n_components=2000, gamma=1.0, random_state=0)
    >>> Z = features.transform(X)
    >>> bool(abs(Z @ Z.T - kernel_matrix("rbf", X, gamma=1.0)).max() < 0.1)
    True
    """
    check_kernel(kernel, gamma, nu)
    gamma = float(gamma)
    if kernel == "linear":
        raise ValueError("kernel must not be 'linear' for Fourier features: use the rows.")
    if random_state is None:
        rng = np.random.default_rng()
    else:
        rng = np.random.default_rng(seed_sequence(random_state))
    D, d = n_components // 2, n_features_in
    if kernel == "laplacian":
        return _on_bits(gamma * np.clip(rng.standard_cauchy((D, d)), -_LONGEST, _LONGEST))

    # Isotropic laws: a direction times an independent length. The spectral law of a Matérn
    # kernel is a multivariate t of 2 nu degrees of freedom (Rasmussen and Williams, 4.15).
    if orthogonal:
        groups = []
        for start in range(0, D, d):
            square = rng.standard_normal((d, min(d, D - start)))
            Q, R = linalg.qr(square, mode="economic", check_finite=False)
            groups.append((Q * np.sign(np.diag(R))).T)
        directions = np.vstack(groups) * np.sqrt(rng.chisquare(d, size=D))[:, np.newaxis]
    else:
        directions = rng.standard_normal((D, d))
    if kernel == "rbf":
        return _on_bits(math.sqrt(2.0 * gamma) * directions)
    spread = np.sqrt(2.0 * nu / rng.chisquare(2.0 * nu, size=D))
    spread = np.minimum(spread, _LONGEST)
    return _on_bits(gamma * spread[:, np.newaxis] * directions)


def _nearest(numbers):
    """Round in place to the nearest integers, which are below 2**51; faster than `rint`."""
    numbers += 1.5 * 2.0**52
    numbers -= 1.5 * 2.0**52
    return numbers


def _on_bits(frequencies):
    """Features of frequencies that have few bits, for phases to be exact."""
    return FourierFeatures(rounded(frequencies, _FREQUENCY_BITS))
