"""One-hot encoding of categories that are learned within a budget."""

from collections.abc import Iterable, Mapping

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from skdp._defaults import pipeline as defaults
from skdp._random._source import noise_source
from skdp._validation import boolean, is_auto, positive_int, shown
from skdp.learner import (
    LinkedDocumentation,
    StatedGuarantee,
    charge,
    check_budget,
    unchanged_on_error,
    warn_of_delta,
)
from skdp.preprocessing._categories import CategoryRelease
from skdp.preprocessing._category_columns import (
    category_columns,
    codes_in,
    counts_of,
    in_public_order,
    plain_category,
)
from skdp.preprocessing._spline_basis import columns_named
from skdp.privacy import ApproxDP

__all__ = ["DPOneHotEncoder"]

_LIMIT_INT32 = 2**31


class DPOneHotEncoder(LinkedDocumentation, StatedGuarantee, TransformerMixin, BaseEstimator):
    """Encode categories as indicators; which categories there are is learned privately.

    Each column becomes one indicator for each of its frequent categories, those whose noisy
    counts reach a threshold, and one for all others: what is rare, and what was never seen.

    Privacy: the names of the frequent categories satisfy ``guarantee_``, and nothing else of the
    rows is kept. A category that no row has is never released; the level lists of categorical
    columns of a frame are ignored, for they may depend on single rows. Values are told apart
    whatever the type of their column, which one odd entry may change: 1, 1.0 and True are one
    category, and so are None and not-a-number.

    Parameters
    ----------
    epsilon : float, default=1.0
        Privacy budget of one fit.

    delta : float, default=1e-6
        Privacy budget of one fit. It must be positive, unless all categories are public: a tenth
        of it covers categories that only one record has.

    categories : "auto", dict, or list, default="auto"
        Public lists of categories, which cost nothing: a dict from names of columns, or a list
        with one entry a column. Columns that the dict does not name, and entries "auto" of the
        list, are learned.

    min_frequency : int, default=1
        Public lower bound on the threshold.

    adjacency : {"replace-one", "add-remove"}, default="replace-one"
        Which data sets are neighbours.

    random_state : None, int, RandomState or Generator, default=None
        None draws noise from the operating system; anything else is for tests.

    ledger : BudgetLedger or path, default=None
        Charged before the values of the rows are used.

    sparse_output : bool, default=True
        Whether `transform` returns a CSR matrix.

    dtype : dtype, default=float64
        Type of the numbers in the output.

    Attributes
    ----------
    categories_ : list of ndarray of object
        For each column the categories that have an indicator, in the order of the output: public
        ones as given; of learned ones, numbers first, then texts, then None, which stands for
        missing values. Released under ``guarantee_``.

    threshold_ : float
        Smallest noisy count with which a category is released; 1 if all categories are public.
        Public.

    guarantee_ : ApproxDP
        What the fit satisfies. Public.

    x_norm_ : float
        Euclidean norm of each row of the output, which has one indicator of each column, for the
        ``x_norm`` of a model. Public.

    x_l1_norm_ : float
        Sum of each row of the output. Public.

    n_features_in_ : int
        Number of columns. Public.

    feature_names_in_ : ndarray of shape ``(n_features_in_,)``
        Names of the columns, when all are strings. Public.

    See Also
    --------
    make_private_preprocessor : Combines it with private bounds of numeric columns.
    sklearn.preprocessing.OneHotEncoder : For categories that are public.

    Notes
    -----
    The threshold grows with the root of the number of learned columns, and with 1 / epsilon: the
    standard deviation of a count is about ``sqrt(2 n_columns) / mu``, and the threshold is five to
    six of them. Leave out columns where almost every row has a category of its own, such as names:
    they only cost the other columns accuracy.

    References
    ----------
    Korolova, Kenthapadi, Mishra and Ntoulas, "Releasing search queries and clicks privately",
    WWW 2009; Desfontaines, Voss, Gipson and Mandayam, "Differentially private partition
    selection", PoPETs 2022.

    Examples
    --------
    >>> from skdp.preprocessing import DPOneHotEncoder
    >>> rows = [["Bonn"]] * 500 + [["Ulm"]] * 300 + [["Celle"]]
    >>> encoder = DPOneHotEncoder(epsilon=1.0, delta=1e-6, sparse_output=False).fit(rows)
    >>> encoder.get_feature_names_out()
    array(['x0_Bonn', 'x0_Ulm', 'x0_infrequent_sklearn'], dtype=object)
    >>> encoder.transform([["Ulm"], ["Celle"], ["Aachen"]])
    array([[0., 1., 0.],
           [0., 0., 1.],
           [0., 0., 1.]])
    """

    # In a pipeline, of the squared mu of the whole, as much as bounds of numbers have. The
    # threshold is at counts that would tell a model much, and what is below it is lost, while a
    # model hardly notices what it would get in return.
    _budget_share = float(defaults.PREPARING)

    def __init__(
        self,
        epsilon=1.0,
        delta=float(defaults.DELTA),
        *,
        categories="auto",
        min_frequency=1,
        adjacency="replace-one",
        random_state=None,
        ledger=None,
        sparse_output=True,
        dtype=np.float64,
    ):
        self.epsilon = epsilon
        self.delta = delta
        self.categories = categories
        self.min_frequency = min_frequency
        self.adjacency = adjacency
        self.random_state = random_state
        self.ledger = ledger
        self.sparse_output = sparse_output
        self.dtype = dtype

    def fit(self, X, y=None):
        """Learn which categories are frequent.

        Parameters
        ----------
        X : {array-like, data frame} of shape (n_samples, n_features)
            Strings, numbers, truth values or dates; missing values are a category.

        y : None
            Ignored.

        Returns
        -------
        DPOneHotEncoder
            The fitted transformer.

        Raises
        ------
        ValueError
            If a parameter is invalid, or delta is 0 and categories are to be learned.
        """
        with unchanged_on_error(self):
            self._check()
            columns = category_columns(self, X, reset=True)
            public = self._public(self.n_features_in_, getattr(self, "feature_names_in_", None))
            learned = [j for j, listed in enumerate(public) if listed is None]
            guarantee, threshold = ApproxDP(0.0, adjacency=self.adjacency), 1.0
            if learned:
                release = CategoryRelease.plan(
                    self._target(), n_columns=len(learned), min_frequency=self.min_frequency
                )
                guarantee, threshold = release.guarantee, release.threshold
                warn_of_delta(self, len(columns[0]))
                charge(self, guarantee)
                counts = [counts_of(columns[j]) for j in learned]
                names = release(counts, noise_source(self.random_state))
                for j, frequent in zip(learned, names, strict=True):
                    public[j] = in_public_order(frequent)
            self.categories_ = [_array(listed) for listed in public]
            self.threshold_, self.guarantee_ = threshold, self._stated(guarantee)
            self.x_l1_norm_ = float(self.n_features_in_)
            self.x_norm_ = self.n_features_in_**0.5
        return self

    def transform(self, X):
        """Encode each row: one indicator of each column is 1.

        Parameters
        ----------
        X : {array-like, data frame} of shape (n_samples, n_features)

        Returns
        -------
        {CSR matrix, ndarray} of shape (n_samples, n_outputs)
        """
        check_is_fitted(self)
        columns = category_columns(self, X, reset=False)
        sizes = [len(listed) + 1 for listed in self.categories_]
        starts = np.cumsum([0, *sizes])
        codes = np.column_stack(
            [
                codes_in(column, listed) + start
                for column, listed, start in zip(
                    columns, self.categories_, starts[:-1], strict=True
                )
            ]
        )
        n, d = codes.shape
        if not self.sparse_output:
            encoded = np.zeros((n, starts[-1]), dtype=self.dtype)
            encoded[np.arange(n)[:, np.newaxis], codes] = 1
            return encoded
        # Compiled code of scikit-learn takes short indices only.
        kind = np.int32 if max(n * d, starts[-1]) < _LIMIT_INT32 else np.int64
        ones, ends = np.ones(n * d, dtype=self.dtype), np.arange(0, n * d + 1, d, dtype=kind)
        return sparse.csr_matrix((ones, codes.ravel().astype(kind), ends), (n, starts[-1]))

    def get_feature_names_out(self, input_features=None):
        """Names of the output: of the column, and of the category.

        What is rare or new is ``<column>_infrequent_sklearn``, as scikit-learn calls it.

        Parameters
        ----------
        input_features : array-like of str, default=None
            Names of the columns, if they had none.

        Returns
        -------
        ndarray of str
        """
        check_is_fitted(self)
        names = columns_named(self, input_features)
        return np.array(
            [
                f"{name}_{category}"
                for name, listed in zip(names, self.categories_, strict=True)
                for category in [*listed, "infrequent_sklearn"]
            ],
            dtype=object,
        )

    def _planned_guarantee(self, n_features):
        """What a fit is charged, for any number of rows; of columns, if that is None."""
        lists = self.categories
        if isinstance(lists, Mapping):
            known = list(lists.values()) if len(lists) == n_features else [None]
        else:
            known = [None] if is_auto(lists) or not _is_list(lists) else list(lists)
        if known and not any(map(_is_learned, known)):
            return ApproxDP(0.0, adjacency=self.adjacency)
        return CategoryRelease.guarantee_of(self._target())

    def _target(self):
        return ApproxDP(self.epsilon, self.delta, adjacency=self.adjacency)

    def _check(self):
        check_budget(self)
        positive_int(min_frequency=self.min_frequency)
        boolean(sparse_output=self.sparse_output)
        try:
            is_real = np.dtype(self.dtype).kind in "biuf"
        except (TypeError, ValueError):  # of text in which no type can be looked for
            is_real = False
        if not is_real:
            raise ValueError(f"dtype must be one of real numbers; got {shown(self.dtype)}.")

    def _public(self, n_columns, names):
        """Public list of each column, None where it is to be learned."""
        lists = self.categories
        if is_auto(lists):
            return [None] * n_columns
        if isinstance(lists, Mapping):
            if names is None:
                raise ValueError(
                    "categories must be 'auto' or a list with one entry a column where the "
                    f"columns have no names; got {shown(lists)}."
                )
            unknown = [name for name in lists if name not in set(names)]
            if unknown:
                raise ValueError(f"categories must name columns of X; got {shown(unknown)}.")
            lists = [lists.get(name) for name in names]
        if not _is_list(lists) or len(lists) != n_columns:
            raise ValueError(
                f"categories must be 'auto', a dict, or a list with an entry for each of the "
                f"{n_columns} columns; got {shown(lists)}."
            )
        return [None if _is_learned(listed) else _distinct_list(listed) for listed in lists]

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        tags.input_tags.allow_nan = True
        tags.transformer_tags.preserves_dtype = []
        return tags


def _is_learned(listed):
    return listed is None or is_auto(listed)


def _is_list(value):
    """Whether a value is a list of a known length; a text is none, nor a lone number."""
    if isinstance(value, str | bytes) or not isinstance(value, Iterable):
        return False
    try:
        return len(value) >= 0  # type: ignore[arg-type]
    except TypeError:  # an array of no dimension, an iterator
        return False


def _distinct_list(listed):
    if not _is_list(listed):
        raise ValueError(f"categories of a column must be a list; got {shown(listed)}.")
    plain = [plain_category(category) for category in listed]
    if len(set(plain)) < len(plain):
        raise ValueError(f"categories of a column must be distinct; got {shown(listed)}.")
    return plain


def _array(categories):
    array = np.empty(len(categories), dtype=object)
    array[:] = categories
    return array
