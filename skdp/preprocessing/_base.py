"""What transformers of rows share: a fit that reads no values, and one within a budget."""

import math
from abc import abstractmethod
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from skdp._defaults import pipeline as defaults
from skdp._random._source import NoiseSource, noise_source
from skdp._validation import one_of, short_repr
from skdp.learner import (
    LinkedDocumentation,
    StatedGuarantee,
    charge,
    check_budget,
    restored_on_error,
    unchanged_on_error,
    warn_of_delta,
)
from skdp.privacy import ApproxDP, Guarantee
from skdp.rows._inputs import checked_rows, count_of_rows, names_of


class RowTransformer(LinkedDocumentation, TransformerMixin, BaseEstimator):
    """Base of transformers that map each row on its own.

    A subclass says which rows it takes, what `fit` stores, and how rows are mapped.
    """

    # Types of numbers that rows keep; others become the first one.
    _dtypes: tuple[type, ...] = (np.float64,)
    _takes_sparse = False
    # Where there is a parameter ``missing``, it decides as well.
    _takes_nan = True

    n_features_in_: int

    def fit(self, X: Any, y: Any = None) -> Self:
        """Check the parameters and remember the columns; no value in ``X`` is used.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows to be transformed later. Whether they are sparse is public.

        y : None
            Ignored.

        Returns
        -------
        self : object
        """
        with restored_on_error(self):
            self._check_parameters()
            self._prepare(self._validated(X, reset=True))
        return self

    def transform(self, X: Any) -> Any:
        """Map each row on its own.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows with the columns of `fit`.

        Returns
        -------
        {ndarray, CSR matrix} of shape (n_samples, n_features_out)
            Rows as the description of the class says.
        """
        check_is_fitted(self)
        with np.errstate(all="ignore"):  # a warning would depend on the data
            return self._transformed(self._validated(X, reset=False))

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Names of the columns that come out.

        Parameters
        ----------
        input_features : array-like of str, default=None
            Names of the columns. None takes ``feature_names_in_``, or "x0", "x1" and so on.

        Returns
        -------
        ndarray of str
        """
        names = OneToOneFeatureMixin.get_feature_names_out(self, input_features)
        return np.array(self._names_out(list(names)), dtype=object)

    def _check_parameters(self) -> None:
        """Check the parameters that can be checked without the columns."""
        one_of(("error", "center"), missing=getattr(self, "missing", "center"))

    def _prepare(self, X: Any) -> None:
        """Store what follows from the parameters and the columns."""

    @abstractmethod
    def _transformed(self, X: Any) -> Any:
        """Map validated rows."""

    def _names_out(self, names: list) -> list:
        """Names of what the columns become."""
        return names

    @property
    def _column_names(self) -> np.ndarray | None:
        return getattr(self, "feature_names_in_", None)

    @property
    def _refuses_nan(self) -> bool:
        return getattr(self, "missing", "") == "error"

    def _validated(self, X: Any, reset: bool) -> Any:
        """Rows, checked; their columns are stored, or compared with those of `fit`."""
        X = checked_rows(
            self,
            X,
            reset=reset,
            accept_sparse="csr" if self._takes_sparse else False,
            dtype=self._dtypes,
            ensure_all_finite="allow-nan" if self._takes_nan else True,
        )
        if self._refuses_nan and np.isnan(X).any():
            raise ValueError(
                "Input X contains NaN: pass missing='center' to map it to the middle of the "
                "bounds, or put a DPSimpleImputer before this step."
            )
        return X

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self._takes_sparse
        tags.input_tags.allow_nan = self._takes_nan and not self._refuses_nan
        tags.transformer_tags.preserves_dtype = [np.dtype(kind).name for kind in self._dtypes]
        return tags


class Budgeted(StatedGuarantee):
    """Base of what spends a budget, which its attributes state as those of an estimator do."""

    ledger: Any

    def _target(self) -> ApproxDP:
        """Point that a release meets."""
        return ApproxDP(self.epsilon, self.delta, adjacency=self.adjacency)

    def _charged(self, guarantee: Guarantee, n_samples: int | None) -> tuple[Any, NoiseSource]:
        """Charge a guarantee; return it with its caveats, and the noise that is paid for."""
        warn_of_delta(self, n_samples)
        charge(self, guarantee)
        return self._stated(guarantee), noise_source(self.random_state)


class PrivateTransformer(Budgeted, RowTransformer):
    """Base of transformers that learn within a budget.

    A subclass plans a release in `_plan`, from public numbers alone, and makes it in `_learn`.

    Privacy: what `_learn` stores must be public or made of what the release returns.
    """

    # In a pipeline, of the squared mu of the whole: as much for categories as for bounds of
    # numbers. Their threshold is at counts that would tell a model much, and what is below it is
    # lost, while a model hardly notices what it would get in return.
    _budget_share = float(defaults.PREPARING)

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn under ``(epsilon, delta)``-differential privacy.

        Parameters
        ----------
        X : {array-like, data frame} of shape (n_samples, n_features)

        y : None
            Ignored.

        Returns
        -------
        self : object

        Raises
        ------
        ValueError
            If a parameter or the input is invalid, or the budget too small for the numbers of
            rows and columns; nothing is charged then.
        BudgetExceededError
            If the ledger cannot pay; what was learned before stays.
        """
        with unchanged_on_error(self):
            check_budget(self)
            self._check_parameters()
            rows = self._validated(X, reset=True)
            release = self._plan(rows)
            if release is None:
                guarantee, noise = self._stated(self._free()), None
            else:
                guarantee, noise = self._charged(release.guarantee, count_of_rows(X))
            self._learn(rows, release, noise)
            self.guarantee_ = guarantee
        return self

    @abstractmethod
    def _plan(self, X: Any) -> Any:
        """Release that the fit will make; None if everything is public."""

    @abstractmethod
    def _learn(self, X: Any, release: Any, noise: NoiseSource | None) -> None:
        """Make the release, and store what it found."""

    def _free(self) -> Guarantee:
        """Guarantee of a fit that releases nothing."""
        return ApproxDP(0.0, adjacency=self.adjacency)

    def _validated(self, X: Any, reset: bool) -> Any:
        """Rows as float64, NaN where a value is missing; columns with names of their own."""
        check_names(X)
        try:
            return super()._validated(X, reset)
        except ValueError as error:
            if not str(error).startswith("could not convert"):
                raise
        raise ValueError(
            "X must hold numbers in every column: choose the numeric columns with a "
            "ColumnTransformer, and encode those of text with DPOneHotEncoder."
        )


@dataclass(frozen=True)
class ColumnBudget(Budgeted):
    """Budget of one release of a column, checked and charged as that of an estimator is."""

    _label: str
    epsilon: float
    delta: float
    adjacency: str
    random_state: Any
    ledger: Any

    def __post_init__(self) -> None:
        check_budget(self)

    def charged(self, behind: Any, mechanism: str, n_samples: int) -> tuple[Any, NoiseSource]:
        """Charge what ``behind`` refines; from here on values are used."""
        refined, source = behind if self.delta else None, getattr(behind, "source", "")
        guarantee = replace(self._target(), refined=refined, mechanism=mechanism, source=source)
        return self._charged(guarantee, n_samples)


def check_names(X: Any) -> None:
    """Refuse a frame whose columns share a name: what is told of one could mean the other."""
    if twice := repeated(names_of(X) or []):
        raise ValueError(f"X must have a name of its own for each column; got {twice} twice.")


def repeated(names: list) -> list[str]:
    """Texts of the names that a list has more than once, sorted."""
    return sorted({str(name) for name in names if names.count(name) > 1})


def per_column(names: Any, **given: Any) -> Any:
    """A parameter by column: a dict in the order of the columns, anything else as it is."""
    ((parameter, values),) = given.items()
    if not isinstance(values, Mapping):
        return values
    if names is None:
        raise ValueError(
            f"{parameter} must not be a dict where the columns have no names: pass a frame whose "
            "column names are strings, or a list with one entry a column."
        )
    absent = [name for name in names if name not in values]
    unknown = [name for name in values if name not in set(names)]
    if absent or unknown:
        raise ValueError(
            f"{parameter} must name every column of X and no other; "
            f"got no {parameter} for {absent} and {parameter} for unknown columns {unknown}."
        )
    return [values[name] for name in names]


def floats_of(values: Any) -> np.ndarray:
    """Array of float64, empty where values are no numbers."""
    try:
        return np.array(values, dtype=np.float64)
    except (OverflowError, TypeError, ValueError):
        return np.empty(0)


def increasing_floats(values: Any, name: str, of: str = "") -> np.ndarray:
    """Two numbers or more, finite like their range, each above the one before; or refuse them."""
    floats = floats_of(values)
    is_rising = floats.ndim == 1 and len(floats) > 1 and (floats[1:] > floats[:-1]).all()
    # What is between the ends is finite if their distance is.
    if is_rising and math.isfinite(float(floats[-1]) - float(floats[0])):
        return floats
    raise ValueError(
        f"{name} must be finite numbers, two or more, each above the one before; "
        f"got {short_repr(values)}{of}."
    )


def array_of(values: Any, dtype: Any = object) -> np.ndarray:
    """One-dimensional array of values, whatever they are."""
    array = np.empty(len(values), dtype=dtype)
    array[:] = list(values)
    return array


def label_codes(values: np.ndarray, labels: Any) -> np.ndarray:
    """Place of each value among the labels, -1 for others."""
    places = {label: place for place, label in enumerate(labels)}
    codes = np.full(len(values), -1, dtype=np.int64)
    for i, value in enumerate(values.tolist()):
        with suppress(Exception):  # an object that cannot be compared raises what it likes
            codes[i] = places.get(value, -1)
    return codes
