"""Imputation of missing values within a budget or by a public constant."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from skdp._defaults import pipeline as defaults
from skdp._validation import (
    SEARCH_RANGE,
    boolean,
    finite,
    one_of,
    short_repr,
)
from skdp.preprocessing._base import (
    PrivateTransformer,
    array_of,
    check_names,
    per_column,
)
from skdp.preprocessing._most_frequent import MostFrequentRelease
from skdp.preprocessing._quantile_scaler import planned
from skdp.preprocessing._quantiles import QuantileRelease
from skdp.privacy import (
    ApproxDP,
    Guarantee,
)
from skdp.rows._inputs import checked_rows, is_missing
from skdp.rows._users import Users

_GRID_DIGITS = 17  # that tell floats apart
_STRATEGIES = ("median", "most_frequent", "constant")


class DPSimpleImputer(PrivateTransformer):
    """Impute missing values by a private median or category, or by a public constant.

    Privacy: the replacements satisfy ``guarantee_`` for any data, and nothing else about the rows
    is stored. Which values are missing is private: replacements are learned for every column, and
    with ``add_indicator`` every column gets an indicator, even if nothing is missing in it. Each
    row is transformed on its own.

    Parameters
    ----------
    epsilon : float, default=1.0
        Privacy budget of the fit, shared by all columns. "constant" costs nothing.

    delta : float, default=0.0
        A positive ``delta`` makes many columns far cheaper.

    strategy : {"median", "most_frequent", "constant"}, default="median"
        Replacement: the median of numbers, the most frequent public category, or ``fill_value``.

    fill_value : number, str, sequence or dict, default=None
        For "constant": public replacement, one for all columns, one per column, or a dict keyed by
        column name.

    categories : sequence, sequence of sequences, or dict, default=None
        For "most_frequent": public list of candidate values, one for all columns, one per column,
        or a dict keyed by column name. Unlisted values are neither counted nor changed.

    search_range : pair, sequence of pairs, or dict, default=(-1e6, 1e6)
        For "median": public search range ``(low, high)``, as in `DPQuantileScaler`.

    add_indicator : bool, default=False
        Whether to append a column ``missingindicator_<column>`` for each column, which is 1 where
        the value is missing.

    adjacency : {"replace-one", "add-remove"}, default="replace-one"
        Neighbouring relation.

    random_state : None, int, RandomState or Generator, default=None
        None draws noise from the operating system. Any other value makes the noise reproducible,
        which voids privacy; use it for tests and figures only.

    ledger : BudgetLedger or path, default=None
        Ledger that is charged before any values of the rows are used.

    Attributes
    ----------
    statistics_ : ndarray of shape ``(n_features_in_,)``
        Replacement of each column. Released under ``guarantee_``.

    guarantee_ : Guarantee
        Guarantee of the fit. Public.

    n_features_in_ : int
        Number of columns. Public.

    feature_names_in_ : ndarray of shape ``(n_features_in_,)``
        Column names, if all are strings. Public.

    See Also
    --------
    DPQuantileScaler : Maps missing numbers to 0, the middle of its bounds, at no extra cost.
    sklearn.impute.SimpleImputer : Imputation without privacy.

    Notes
    -----
    The rank error of the median is about ``20 / e`` rows at most, for a bounded range of ``e`` per
    column. The replacement is the number with the fewest digits in the chosen public cell; for
    integer columns this is usually the exact median. Numbers, and categories that are all numbers,
    are returned as floats; other values as objects.

    The guarantee does not cover the run time of `fit`, errors about malformed input, or other uses
    of the same data.

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
        epsilon: Any = 1.0,
        delta: Any = 0.0,
        *,
        strategy: Any = "median",
        fill_value: Any = None,
        categories: Any = None,
        search_range: Any = SEARCH_RANGE,
        add_indicator: Any = False,
        adjacency: Any = "replace-one",
        random_state: Any = None,
        ledger: Any = None,
    ) -> None:
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

    def _check_parameters(self) -> None:
        one_of(_STRATEGIES, strategy=self.strategy)
        boolean(add_indicator=self.add_indicator)

    def _plan(
        self, target: ApproxDP, n_units: int
    ) -> QuantileRelease | MostFrequentRelease | None:
        if self.strategy == "constant":
            return None
        if self.strategy == "median":
            return QuantileRelease.plan(
                target,
                n_columns=self.n_features_in_,
                n_samples_public=None,
                quantiles=(0.5,),
                search_range=per_column(self._column_names, search_range=self.search_range),
            )
        return self._most_frequent(target, self.n_features_in_, self._column_names)

    def _most_frequent(self, target: ApproxDP, n: int, names: Any) -> MostFrequentRelease:
        sizes = [*map(len, self._categories(n, names))]
        return MostFrequentRelease.plan(target, n_categories=sizes)

    def _learn(self, X: np.ndarray, release: Any, noise: Any, users: Users | None) -> None:
        if self.strategy == "constant":
            values = self._fill_values()
        elif self.strategy == "median":
            values = [_roundest(low, high) for ((low, high),) in release(X, noise, users)]
        else:
            lists = self._categories(self.n_features_in_, self._column_names)
            places = release(X, lists, noise, users)
            values = [own[place] for own, place in zip(lists, places, strict=True)]
        self.statistics_ = array_of(values, X.dtype)

    def _transformed(self, X: np.ndarray) -> np.ndarray:
        missing = _missing(X)
        X = np.where(missing, self.statistics_, X)
        if not self.add_indicator:
            return X
        return np.hstack([X, missing.astype(np.float64).astype(X.dtype)])

    def _names_out(self, names: list) -> list:
        indicators = [f"missingindicator_{name}" for name in names]
        return names + indicators * bool(self.add_indicator)

    def _planned_guarantee(
        self, n_features: int | None, n_units: int | None = None, unit: str = "record"
    ) -> Guarantee:
        if self.strategy == "constant":
            return self._free(unit)
        target = self._target(unit)
        if n_features is None:
            return target
        if self.strategy == "median":
            return planned(target, n_features, (0.5,))
        names = list(self.categories) if isinstance(self.categories, Mapping) else None
        return self._most_frequent(target, n_features, names).guarantee

    def _n_outputs(self, n_features: int | None) -> int | None:
        """Number of columns that come out; None where it is not known yet."""
        return None if n_features is None else n_features * (1 + bool(self.add_indicator))

    # The input, and parameters by column

    def _validated(self, X: Any, reset: bool) -> np.ndarray:
        if self._is_numeric():
            return super()._validated(X, reset)
        check_names(X)
        return checked_rows(
            self, X, reset=reset, accept_sparse=False, dtype=object, ensure_all_finite=False
        )

    def _is_numeric(self) -> bool:
        """Whether values are floats, by the parameters alone."""
        if self.strategy == "median":
            return True
        given = self.fill_value if self.strategy == "constant" else self.categories
        return all(_is_number(value) for value in _leaves(given))

    def _fill_values(self) -> list:
        n = self.n_features_in_
        given = per_column(self._column_names, fill_value=self.fill_value)
        values = list(given) if _is_list(given) else [given] * n
        if len(values) != n or not all(_is_number(v) or isinstance(v, str) for v in values):
            raise ValueError(
                f"fill_value must be a number or a string, one for all or one for each of the {n} "
                f"columns, if strategy='constant'; got {short_repr(self.fill_value)}."
            )
        return values

    def _categories(self, n: int, names: Any) -> list[list]:
        given = per_column(names, categories=self.categories)
        lists = list(given) if _is_list(given) else []
        if not isinstance(self.categories, Mapping) and not any(map(_is_list, lists)):
            lists = [lists] * n
        if len(lists) != n or not all(map(_is_list_of_values, lists)):
            raise ValueError(
                "categories must be a public list of distinct, non-missing values, one for all or "
                f"one for each of the {n} columns, if strategy='most_frequent'; got "
                f"{short_repr(self.categories)}. If no list is public, use strategy='constant'."
            )
        return [list(own) for own in lists]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.string = tags.input_tags.categorical = not self._is_numeric()
        return tags


def _is_number(value: Any) -> bool:
    try:
        finite(value=value)
    except ValueError:
        return False
    return True


def _is_list(value: Any) -> bool:
    """Whether a value is a list of others; an array of no dimension is not."""
    return isinstance(value, list | tuple | range) or getattr(value, "ndim", 0) == 1


def _leaves(given: Any) -> list:
    """Values in a parameter, whatever its form."""
    if isinstance(given, Mapping):
        given = list(given.values())
    if _is_list(given):
        return [leaf for value in given for leaf in _leaves(value)]
    return [given]


def _is_list_of_values(own: Any) -> bool:
    if not _is_list(own) or len(own) == 0:
        return False
    try:
        return len(set(own)) == len(own) and not any(map(is_missing, own))
    except TypeError:  # no value of a category
        return False


def _missing(X: np.ndarray) -> np.ndarray:
    if X.dtype == object:
        return np.array([[is_missing(value) for value in row] for row in X], dtype=bool)
    return np.isnan(X)


def _roundest(low: float, high: float) -> float:
    """Number in [low, high) with the fewest digits, for a cell of a public grid."""
    middle = low / 2 + high / 2
    if low <= 0.0 < high:
        return 0.0
    for digits in range(1, 1 + _GRID_DIGITS):
        rounded = float(f"{middle:.{digits}g}")
        if low <= rounded < high:
            return rounded
    return middle
