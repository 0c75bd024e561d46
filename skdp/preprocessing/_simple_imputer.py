"""Replacing missing values by what is learned within a budget, or by a public constant."""

import math
from collections.abc import Mapping
from numbers import Real

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from skdp._defaults import pipeline as defaults
from skdp._random._source import noise_source
from skdp._validation import SEARCH_RANGE, boolean, one_of, shown
from skdp.learner import (
    LinkedDocumentation,
    StatedGuarantee,
    charge,
    check_budget,
    unchanged_on_error,
    warn_of_delta,
)
from skdp.preprocessing._bounded_scaler import by_name
from skdp.preprocessing._most_frequent import MostFrequentRelease
from skdp.preprocessing._quantile_scaler import check_names, numbers_of, of_columns, planned
from skdp.preprocessing._quantiles import QuantileRelease
from skdp.preprocessing._spline_basis import columns_named
from skdp.privacy import ApproxDP
from skdp.rows._inputs import checked_rows, is_missing

__all__ = ["DPSimpleImputer"]

_GRID_DIGITS = 17  # that tell floats apart
_STRATEGIES = ("median", "most_frequent", "constant")


class DPSimpleImputer(LinkedDocumentation, StatedGuarantee, TransformerMixin, BaseEstimator):
    """Replace missing values by a private median or category, or by a public constant.

    Privacy: the replacements satisfy ``guarantee_``, whatever the data are, and nothing else is
    kept of the rows. Which values are missing is private: replacements are learned for every
    column, and with ``add_indicator`` every column has an indicator, whether or not something is
    missing in it. Rows are transformed one by one.

    Parameters
    ----------
    epsilon : float, default=1.0
        Budget of the fit, for all columns together. A constant costs nothing.

    delta : float, default=0.0
        With a positive ``delta`` many columns cost far less.

    strategy : {"median", "most_frequent", "constant"}, default="median"
        The median of numbers, the most frequent of public categories, or ``fill_value``.

    fill_value : number, str, sequence or dict, default=None
        For "constant": the public replacement, one for all columns, one a column, or a dict by
        name.

    categories : sequence, sequence of sequences, or dict, default=None
        For "most_frequent": the public list of the values that may be chosen, one for all
        columns, one a column, or a dict by name. Values that are not listed stay as they are and
        are not counted.

    search_range : pair, sequence of pairs, or dict, default=(-1e6, 1e6)
        For "median": public range ``(low, high)`` in which it is looked for, as in
        `DPQuantileScaler`.

    add_indicator : bool, default=False
        Whether one column for each column is appended, which is 1 where its value is missing.

    adjacency : {"replace-one", "add-remove"}, default="replace-one"
        Which data sets are neighbours.

    random_state : None, int, RandomState or Generator, default=None
        None draws the noise from the operating system. Anything else makes it reproducible and
        void of privacy, for tests and figures.

    ledger : BudgetLedger or path, default=None
        Charged before the values of the rows are used.

    Attributes
    ----------
    statistics_ : ndarray of shape ``(n_features_in_,)``
        Replacement of each column. Released under ``guarantee_``.

    guarantee_ : Guarantee
        What the fit satisfies. Public.

    n_features_in_ : int
        Number of columns. Public.

    feature_names_in_ : ndarray of shape ``(n_features_in_,)``
        Names of the columns, when all are strings. Public.

    See Also
    --------
    DPQuantileScaler : Maps missing numbers to 0, the middle of its bounds, at no extra cost.
    sklearn.impute.SimpleImputer : The same without privacy.

    Notes
    -----
    The rank of the median is right up to about ``20 / e`` rows, for a bounded range of ``e`` a
    column. The replacement is the roundest number of a public cell; for a column of whole numbers
    that is most often the exact median. Numbers, and categories that are all numbers, come out as
    floats; other values as objects.

    What the guarantee does not cover: the time `fit` takes, errors about malformed input, and
    other uses of the same data.

    References
    ----------
    McSherry and Talwar, "Mechanism design via differential privacy", FOCS 2007. Smith,
    "Privacy-preserving statistical estimation with optimal convergence rates", STOC 2011.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp.preprocessing import DPSimpleImputer
    >>> ages = np.random.default_rng(0).integers(18, 65, size=(5000, 1)).astype(float)
    >>> ages[::10] = np.nan
    >>> imputer = DPSimpleImputer(epsilon=0.5, add_indicator=True).fit(ages)
    >>> bool(abs(imputer.statistics_[0] - 41) < 4)
    True
    >>> imputer.transform([[30.0]])
    array([[30.,  0.]])
    """

    _budget_share = defaults.PREPARING / 2.0

    def __init__(
        self,
        epsilon=1.0,
        delta=0.0,
        *,
        strategy="median",
        fill_value=None,
        categories=None,
        search_range=SEARCH_RANGE,
        add_indicator=False,
        adjacency="replace-one",
        random_state=None,
        ledger=None,
    ):
        self.epsilon = epsilon
        self.delta = delta
        self.strategy = strategy
        self.fill_value = fill_value
        self.categories = categories
        self.search_range = search_range
        self.add_indicator = add_indicator
        self.adjacency = adjacency
        self.random_state = random_state
        self.ledger = ledger

    def fit(self, X, y=None):
        """Learn the replacements under ``(epsilon, delta)``-differential privacy.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            NaN and None are missing values.

        y : None
            Ignored.

        Returns
        -------
        self : object

        Raises
        ------
        ValueError
            If a parameter or the input is invalid; nothing is charged then.
        BudgetExceededError
            If the ledger cannot pay; the old replacements stay.
        """
        with unchanged_on_error(self):
            check_budget(self)
            one_of(_STRATEGIES, strategy=self.strategy)
            boolean(add_indicator=self.add_indicator)
            X = self._validated(X, reset=True)
            learn, guarantee = getattr(self, f"_{self.strategy}")()
            if self.strategy != "constant":
                warn_of_delta(self, len(X))
                charge(self, guarantee)
            statistics = learn(X, noise_source(self.random_state))
            self.statistics_ = statistics
            self.guarantee_ = self._stated(guarantee)
        return self

    def transform(self, X):
        """Replace missing values, and append the indicators that were asked for.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_features_out)
        """
        check_is_fitted(self)
        X = self._validated(X, reset=False)
        missing = _missing(X)
        X = np.where(missing, self.statistics_, X)
        if not self.add_indicator:
            return X
        return np.hstack([X, missing.astype(np.float64).astype(X.dtype)])

    def get_feature_names_out(self, input_features=None):
        """Names of the columns, and ``missingindicator_<column>`` of the indicators.

        Parameters
        ----------
        input_features : array-like of str, default=None
            Names of the columns. None takes ``feature_names_in_``, or "x0", "x1" and so on.

        Returns
        -------
        ndarray of str
        """
        check_is_fitted(self)
        names = list(columns_named(self, input_features))
        indicators = [f"missingindicator_{name}" for name in names]
        return np.array(names + indicators * bool(self.add_indicator), dtype=object)

    # What each strategy learns, and what that costs

    def _median(self):
        names = getattr(self, "feature_names_in_", None)
        release = QuantileRelease.plan(
            self._target(),
            n_columns=self.n_features_in_,
            n_samples_public=None,
            quantiles=(0.5,),
            search_range=of_columns(names, search_range=self.search_range),
        )

        def learn(X, noise):
            return np.array([_roundest(low, high) for ((low, high),) in release(X, noise)])

        return learn, release.guarantee

    def _most_frequent(self):
        names = getattr(self, "feature_names_in_", None)
        categories = self._categories(self.n_features_in_, names)
        release = MostFrequentRelease.plan(self._target(), n_categories=[*map(len, categories)])

        def learn(X, noise):
            codes = np.column_stack(
                [_codes(own, X[:, j]) for j, own in enumerate(categories)],
            )
            chosen = release(codes, noise)
            values = [own[place] for own, place in zip(categories, chosen, strict=True)]
            return _array(values, X.dtype)

        return learn, release.guarantee

    def _constant(self):
        values = self._fill_values()
        return (lambda X, noise: _array(values, X.dtype)), ApproxDP(0.0, adjacency=self.adjacency)

    def _planned_guarantee(self, n_features):
        """What a fit is charged, from parameters and the number of columns alone."""
        if self.strategy == "constant":
            return ApproxDP(0.0, adjacency=self.adjacency)
        if n_features is None:
            return self._target()
        if self.strategy == "median":
            return planned(self._target(), n_features, (0.5,))
        names = list(self.categories) if isinstance(self.categories, Mapping) else None
        sizes = [*map(len, self._categories(n_features, names))]
        return MostFrequentRelease.plan(self._target(), n_categories=sizes).guarantee

    def _n_outputs(self, n_features):
        """Number of columns that come out; None where it is not known yet."""
        return None if n_features is None else n_features * (1 + bool(self.add_indicator))

    def _target(self):
        return ApproxDP(self.epsilon, self.delta, adjacency=self.adjacency)

    # The input, and parameters by column

    def _validated(self, X, reset):
        if self._is_numeric():
            return numbers_of(self, X, reset=reset)
        check_names(X)
        return checked_rows(
            self,
            X,
            reset=reset,
            accept_sparse=False,
            dtype=object,
            ensure_all_finite=False,
        )

    def _is_numeric(self):
        """Whether values are floats, by the parameters alone."""
        if self.strategy == "median":
            return True
        given = self.fill_value if self.strategy == "constant" else self.categories
        return all(_is_number(value) for value in _leaves(given))

    def _fill_values(self):
        n, given = self.n_features_in_, self.fill_value
        if isinstance(given, Mapping):
            values = by_name(getattr(self, "feature_names_in_", None), fill_value=given)
        else:
            values = list(given) if _is_list(given) else [given] * n
        if len(values) != n or not all(_is_number(v) or isinstance(v, str) for v in values):
            raise ValueError(
                "fill_value must be a number or a string, one for all or one for each of the "
                f"{n} columns, where strategy='constant'; got {shown(given)}."
            )
        return values

    def _categories(self, n, names):
        given = self.categories
        if isinstance(given, Mapping):
            lists = by_name(names, categories=given)
        elif _is_list(given):
            lists = list(given)
            if not any(_is_list(own) for own in lists):
                lists = [lists] * n
        else:
            lists = []
        if len(lists) != n or not all(map(_is_list_of_values, lists)):
            raise ValueError(
                "categories must be a public list of distinct values, none of them missing, one "
                f"for all or one for each of the {n} columns, where strategy='most_frequent'; "
                f"got {shown(given)}. Where no list is public, fill in a constant."
            )
        return [list(own) for own in lists]

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.string = tags.input_tags.categorical = not self._is_numeric()
        return tags


def _is_number(value):
    if not isinstance(value, Real) or isinstance(value, bool):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:
        return False


def _is_list(value):
    """Whether a value is a list of others; an array of no dimension is not."""
    return isinstance(value, list | tuple | range) or getattr(value, "ndim", 0) == 1


def _leaves(given):
    """Values in a parameter, whatever its form."""
    if isinstance(given, Mapping):
        given = list(given.values())
    if _is_list(given):
        return [leaf for value in given for leaf in _leaves(value)]
    return [given]


def _is_list_of_values(own):
    if not _is_list(own) or len(own) == 0:
        return False
    try:
        return len(set(own)) == len(own) and not any(map(is_missing, own))
    except TypeError:  # no value of a category
        return False


def _array(values, dtype):
    """Values as an array, whatever they are."""
    array = np.empty(len(values), dtype=dtype)
    array[:] = values
    return array


def _missing(X):
    if X.dtype == object:
        return np.array([[is_missing(value) for value in row] for row in X], dtype=bool)
    return np.isnan(X)


def _codes(categories, values):
    """Place of each value among the categories, -1 for others."""
    places = {category: place for place, category in enumerate(categories)}

    def place(value):
        try:
            return places.get(value, -1)
        except Exception:  # no value of a category, and objects raise what they like
            return -1

    return np.fromiter(map(place, values), dtype=np.int64, count=len(values))


def _roundest(low, high):
    """Number in [low, high) with the fewest digits, for a cell of a public grid."""
    middle = low / 2 + high / 2
    if low <= 0.0 < high:
        return 0.0
    for digits in range(1, 1 + _GRID_DIGITS):
        rounded = float(f"{middle:.{digits}g}")
        if low <= rounded < high:
            return rounded
    return middle
