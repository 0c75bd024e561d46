"""Random Fourier features, which approximate kernel models by linear ones."""

import math

import numpy as np
from scipy import sparse
from sklearn.utils.validation import check_is_fitted

from skdp._defaults import pipeline as defaults
from skdp._random._source import check_random_state, seed_sequence
from skdp._validation import boolean, is_auto, number_or_auto, one_of, positive_int, short_repr
from skdp.preprocessing._base import RowTransformer
from skdp.rows import KERNELS, FourierFeatures, automatic_gamma, check_kernel, fourier_features

_SHIFT_INVARIANT = tuple(kernel for kernel in KERNELS if kernel != "linear")
_LIMIT_COMPONENTS = 2**20
_THEOREM_NU = 1.5  # Matern functions of it have a derivative
_TOLERANCE = 2.0**-50
# Streams of noise spawn from the first keys of a seed: with another the same number, given as
# the seed of a model, too, has frequencies that have nothing to do with its noise.
_BLOCK_STREAM = 0xF0F0


class RandomFourierTransformer(RowTransformer):
    """Map each row to random Fourier features of norm 1.

    Features are cosines and sines of random frequencies. The inner product of two output rows
    approximates a kernel of the input rows, so a private linear classifier becomes a private
    kernel classifier. Features have the precision of the rows, single or double.

    Privacy: each row is transformed on its own, with public frequencies that are drawn
    independently of the data. The features of a row do not depend on other rows, not even in the
    last bit. So the transformer costs no budget, neighbouring data sets stay neighbours, and every
    output row has norm 1.

    Parameters
    ----------
    kernel : {"rbf", "laplacian", "matern"}, default="rbf"
        Kernel, see `~skdp.rows.kernel_matrix`.

    gamma : float or "auto", default="auto"
        Kernel coefficient, from 1e-30 to 1e30. "auto" uses `~skdp.rows.automatic_gamma`, which
        assumes rows in [-1, 1]^d, as from `BoundedScaler`, and norm 1 for rows of a sparse matrix.

    nu : {0.5, 1.5, 2.5}, default=1.5
        Smoothness of the Matérn kernel.

    n_components : int, default=512
        Number of features, in pairs of a cosine and a sine: an odd number is rounded up. More
        features approximate the kernel better. Noisy gradient descent is more accurate with up to
        999, for which it releases second moments of rows.

    orthogonal : bool, default=True
        Whether to draw directions in orthogonal groups, which approximates the kernel better.

    random_state : None, int, RandomState or Generator, default=None
        Seed of the public frequencies; any seed is safe here. None draws new frequencies in each
        `fit`. The noise of a model with the same ``random_state`` uses another stream, but anyone
        who knows the seed can recompute that noise.

    Attributes
    ----------
    frequencies_ : ndarray of shape ``(n_frequencies, n_features_in_)``
        Frequencies of the features. Public.

    gamma_ : float
        Kernel coefficient. Public.

    x_norm_ : float
        Bound on the Euclidean norm of every output row: 1 up to rounding. Public.

    x_l1_norm_ : float
        The same bound for the l1 norm: the square root of the number of features, rounded up.
        Public.

    n_features_in_ : int
        Number of columns. Public.

    feature_names_in_ : ndarray of shape ``(n_features_in_,)``
        Column names, if all are strings. Public.

    See Also
    --------
    skdp.kernel.DPKernelRidge : Regression on such features, whose number it chooses.
    sklearn.kernel_approximation.RBFSampler : One cosine per frequency, without a bound on row
    norms.

    References
    ----------
    Rahimi and Recht, "Random features for large-scale kernel machines", NIPS 2007, theorem 1
    and claim 1.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.pipeline import make_pipeline
    >>> from skdp.linear_model import DPLogisticRegression
    >>> from skdp.preprocessing import BoundedScaler, RandomFourierTransformer
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = make_pipeline(
    ...     BoundedScaler((0, 5000)), RandomFourierTransformer(), DPLogisticRegression()
    ... )
    >>> model.fit(X, y)[-1].coef_.shape
    (1, 512)
    """

    _dtypes = (np.float64, np.float32)
    _takes_sparse, _takes_nan = True, False

    def __init__(
        self,
        kernel="rbf",
        gamma="auto",
        *,
        nu=_THEOREM_NU,
        n_components=int(defaults.N_COMPONENTS),
        orthogonal=True,
        random_state=None,
    ):
        self.kernel = kernel
        self.gamma = gamma
        self.nu = nu
        self.n_components = n_components
        self.orthogonal = orthogonal
        self.random_state = random_state

    def _prepare(self, X):
        d, gamma = self.n_features_in_, self.gamma
        if is_auto(gamma):
            gamma = automatic_gamma(self.kernel, d, sparse_rows=sparse.issparse(X))
        features = fourier_features(
            self.kernel,
            d,
            n_components=2 * math.ceil(self.n_components / 2),
            gamma=float(gamma),
            nu=self.nu,
            orthogonal=bool(self.orthogonal),
            random_state=self._frequency_seed(),
        )
        self.frequencies_, self.gamma_ = features.frequencies, float(gamma)
        self.x_norm_ = float(features.row_norm)
        # No sum of absolute values is above the norm times the root of how many there are.
        self.x_l1_norm_ = math.sqrt(features.n_components) * self.x_norm_ * (1.0 + _TOLERANCE)

    def _transformed(self, X):
        return FourierFeatures(self.frequencies_).transform(X).astype(X.dtype, copy=False)

    def get_feature_names_out(self, input_features=None):
        """Return the feature names: "cos_0", "cos_1" and so on, then the sines.

        Parameters
        ----------
        input_features : array-like of str, default=None
            Ignored.

        Returns
        -------
        ndarray of str
        """
        check_is_fitted(self)
        n = len(self.frequencies_)
        names = [f"{wave}_{i}" for wave in ("cos", "sin") for i in range(n)]
        return np.array(names, dtype=object)

    def _check_parameters(self):
        one_of(_SHIFT_INVARIANT, kernel=self.kernel)
        number_or_auto(gamma=self.gamma)
        check_kernel(self.kernel, 1.0 if is_auto(self.gamma) else self.gamma, self.nu)
        positive_int(n_components=self.n_components)
        if self.n_components > _LIMIT_COMPONENTS:
            raise ValueError(
                f"n_components must be at most {_LIMIT_COMPONENTS:,}; "
                f"got {short_repr(self.n_components)}."
            )
        boolean(orthogonal=self.orthogonal)
        check_random_state(self.random_state)

    def _frequency_seed(self):
        if self.random_state is None:
            return None
        seed = seed_sequence(self.random_state)
        own = np.random.SeedSequence(seed.entropy, spawn_key=(*seed.spawn_key, _BLOCK_STREAM))
        return np.random.default_rng(own)
