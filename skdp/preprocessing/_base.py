"""What transformers of rows share: a fit that reads no values, and one within a budget."""

import math
from abc import abstractmethod
from collections.abc import Mapping
from contextlib import suppress
from copy import copy
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin, clone
from sklearn.utils import check_array
from sklearn.utils.validation import check_is_fitted, validate_data

from skdp._defaults import pipeline as defaults
from skdp._random._source import NoiseSource, noise_source
from skdp._validation import boolean, one_of, short_repr
from skdp.learner import (
    LinkedDocumentation,
    StatedGuarantee,
    charge,
    check_budget,
    check_unchanged,
    frozen_params,
    restored_on_error,
    unchanged_on_error,
    warn_of_delta,
)
from skdp.privacy import ApproxDP, Guarantee, compose
from skdp.rows import _inputs as inputs
from skdp.rows._source_frames import ColumnsOfSource, SourceFrame, opened_frame, visit
from skdp.rows._users import Users


class RowTransformer(LinkedDocumentation, TransformerMixin, BaseEstimator):
    """Base class of transformers that map each row on its own.

    A subclass says which rows it takes, what `fit` stores, and how rows are mapped.
    """

    # Types of numbers that rows keep; others become the first one.
    _dtypes: tuple[type, ...] = (np.float64,)
    _takes_sparse = False
    # Where there is a parameter ``missing``, it decides as well.
    _takes_nan = True

    n_features_in_: int

    def fit(self, X: Any, y: Any = None) -> Self:
        """Check the parameters and store the columns; values in ``X`` are not used.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows. Whether they are sparse is public.

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
            Transformed rows, as described for the class.
        """
        check_is_fitted(self)
        with np.errstate(all="ignore"):  # a warning would depend on the data
            return self._transformed(self._validated(X, reset=False))

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Return the names of the output columns.

        Parameters
        ----------
        input_features : array-like of str, default=None
            Names of the input columns. None uses ``feature_names_in_``, or "x0", "x1" and so on.

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
        X = inputs.checked_rows(
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
    """Base class of objects that spend a budget and state it in attributes, as estimators do."""

    ledger: Any

    def _target(self, unit: str = "record") -> ApproxDP:
        """Point that a release meets."""
        return ApproxDP(self.epsilon, self.delta, adjacency=self.adjacency, unit=unit)

    def _charged(self, guarantee: Guarantee, n_units: int | None) -> tuple[Any, NoiseSource]:
        """Charge a guarantee; return it with its caveats, and the noise that is paid for."""
        warn_of_delta(self, n_units, guarantee.unit)
        charge(self, guarantee)
        return self._stated(guarantee), noise_source(self.random_state)


class PrivateTransformer(Budgeted, RowTransformer):
    """Base class of transformers that learn within a budget.

    A subclass plans a release in `_plan`, from public numbers alone, and makes it in `_learn`.

    Privacy: what `_learn` stores must be public or made of what the release returns.
    """

    _began: dict[str, Any]
    # As the last step of a pipeline that streams.
    _costs_once = True

    # In a pipeline, of the squared mu of the whole: as much for categories as for bounds of
    # numbers. Their threshold is at counts that would tell a model much, and what is below it is
    # lost, while a model hardly notices what it would get in return.
    _budget_share = float(defaults.PREPARING)

    def fit(self, X: Any, y: Any = None, groups: Any = None) -> Self:
        """Fit the transformer under ``(epsilon, delta)``-differential privacy.

        Parameters
        ----------
        X : {array-like, data frame} of shape (n_samples, n_features), or source
            Rows, or input of `~skdp.rows.row_source`.

        y : None
            Ignored.

        groups : array-like of shape (n_samples,) or str, default=None
            User ID of each row, or the name of the ID column. The guarantee then covers all rows
            of one user, however many. None protects single rows.

        Returns
        -------
        self : object

        Raises
        ------
        ValueError
            If a parameter or the input is invalid, or the budget is too small for the numbers of
            rows and columns. Nothing is charged then.
        BudgetExceededError
            If the remaining budget of the ledger is too small; an earlier fit is kept.
        """
        return self._learn_anew(X, groups)

    def partial_fit(
        self, X: Any, y: Any = None, groups: Any = None, *, refresh: Any = False
    ) -> Self:
        """Fit to the rows of the first call of a stream; later calls cost nothing.

        Each call must have new rows. Rows of later calls may be transformed by the fitted
        transformer, and a model of them has its own budget: the first call does not use them. The
        guarantee of a model of the first call's rows composes with that of this transformer.

        Parameters
        ----------
        X : {array-like, data frame} of shape (n_samples, n_features), or source
            Rows that no earlier call has used. If nothing is learned, only their columns are
            compared with those of the first call.

        y : None
            Ignored.

        groups : array-like of shape (n_samples,) or str, default=None
            As in `fit`.

        refresh : bool, default=False
            Refit to the rows of this call. ``guarantee_`` is then the larger of both guarantees,
            since each row is in one call. With ``groups`` both compose, since users may return.
            The ledger is charged as by `fit`. Give each call that learns from rows its own
            `~skdp.privacy.BudgetLedger.partition`; with ``groups`` do so only if no user returns.
            The decision to refresh must not depend on private rows. Models of the changed columns
            must be refitted.

        Returns
        -------
        self : object

        Raises
        ------
        ValueError
            As `fit`, and if a parameter has changed without ``refresh``.
        BudgetExceededError
            If the remaining budget of the ledger is too small; an earlier fit is kept.
        """
        boolean(refresh=refresh)
        before = getattr(self, "guarantee_", None)
        if refresh or before is None:
            return self._learn_anew(X, groups, before)
        check_unchanged(self, self._began)
        given = inputs.in_memory(X, None, groups)
        X = opened_frame(X, None, groups)[0].first if given is None else given[0]
        # No value is looked at, nor whether there are rows, which may be private.
        validate_data(self, X, reset=False, skip_check_array=True)
        return self

    def _learn_anew(self, X: Any, groups: Any, before: Guarantee | None = None) -> Self:
        with unchanged_on_error(self, fresh=before is None):
            check_budget(self)
            self._check_parameters()
            of_call = ("ledger", "random_state")
            began = {k: v for k, v in frozen_params(self).items() if k not in of_call}
            given = inputs.in_memory(X, None, groups)
            if given is None:
                X, _, groups = opened_frame(X, None, groups)
                rows = self._columns_of(X)
            else:
                X, _, groups = given
                rows = self._validated(X, reset=True)
            n_units = inputs.count_of_rows(X)
            users = Users.of(groups, n_units)
            unit = "record" if users is None else "user"
            if before is not None and (unit, self.adjacency) != (before.unit, before.adjacency):
                raise ValueError(
                    "groups must be given in all calls that learn or in none, and adjacency must "
                    f"not change: the earlier fit has a guarantee for {before.adjacency} of one "
                    f"{before.unit}; got {self.adjacency} and {unit}s."
                )
            n_units = n_units if users is None else users.n_users
            release = self._plan(self._target(unit), n_units)
            if release is None:
                guarantee, noise = self._free(unit), None
            else:
                guarantee, noise = release.guarantee, self._charged(release.guarantee, n_units)[1]
            self._learn(rows, release, noise, users)
            if before is not None:
                both = compose if users is not None else partial(_largest, self.delta)
                guarantee = both([before, guarantee])
            self.guarantee_ = self._stated(guarantee, fresh=before is None)
            self._began = began
        return self

    def _columns_of(self, X: SourceFrame) -> ColumnsOfSource:
        """Columns of a source, all of which are checked here."""
        self._validated(X.first, reset=True)
        visit(X, partial(alone(self)._validated, reset=False))
        return ColumnsOfSource(X, partial(_values_of, alone(clone(self))))

    @abstractmethod
    def _plan(self, target: ApproxDP, n_units: int) -> Any:
        """Release that the fit to so many rows, or users, will make; None if all is public."""

    @abstractmethod
    def _learn(self, X: Any, release: Any, noise: NoiseSource | None, users: Users | None) -> None:
        """Make the release, and store what it found."""

    def _free(self, unit: str = "record") -> Guarantee:
        """Guarantee of a fit that releases nothing."""
        return ApproxDP(0.0, adjacency=self.adjacency, unit=unit)

    @abstractmethod
    def _planned_guarantee(
        self, n_features: int | None, n_units: int | None = None, unit: str = "record"
    ) -> Guarantee:
        """What a fit is charged, from parameters and public numbers alone.

        Parameters
        ----------
        n_features : int or None
            Columns of the rows; None where they are not known.

        n_units : int, default=None
            Public number of rows, or of users.

        unit : {"record", "user"}, default="record"
        """

    def _planned_for(
        self, n_features: int | None, n_units: int | None = None, unit: str = "record"
    ) -> Guarantee:
        return self._planned_guarantee(n_features, n_units, unit)

    def _validated(self, X: Any, reset: bool) -> Any:
        """Rows as float64, NaN where a value is missing; columns with names of their own."""
        check_names(X)
        try:
            return super()._validated(X, reset)
        except ValueError as error:
            if not str(error).startswith("could not convert"):
                raise
        raise ValueError(
            "X must hold numbers in every column: select the numeric columns with a "
            "ColumnTransformer, and encode text columns with DPOneHotEncoder."
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

    def owned(self, groups: Any, n_samples: int) -> tuple[Users | None, int, ApproxDP]:
        """Users, the number of units whom the budget protects, and the budget for them."""
        users = Users.of(groups, n_samples)
        if users is None:
            return None, n_samples, self._target()
        return users, users.n_users, self._target("user")

    def charged(
        self, behind: Any, mechanism: str, target: ApproxDP, n_units: int
    ) -> tuple[Any, NoiseSource]:
        """Charge what ``behind`` refines; from here on values are used."""
        refined, source = behind if self.delta else None, getattr(behind, "source", "")
        guarantee = replace(target, refined=refined, mechanism=mechanism, source=source)
        return self._charged(guarantee, n_units)


def check_names(X: Any) -> None:
    """Refuse a frame whose columns share a name: what is told of one could mean the other."""
    if twice := repeated(inputs.names_of(X) or []):
        raise ValueError(f"X must have distinct column names; got {twice} twice.")


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
            f"{parameter} must not be a dict if the columns have no names: pass a frame whose "
            "column names are strings, or a list with one entry per column."
        )
    absent = [name for name in names if name not in values]
    unknown = [name for name in values if name not in set(names)]
    if absent or unknown:
        raise ValueError(
            f"{parameter} must name every column of X and no other; got no {parameter} for "
            f"{absent} and {parameter} for unknown columns {unknown}."
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
        f"{name} must be at least two finite, strictly increasing numbers; got "
        f"{short_repr(values)}{of}."
    )


def columns_of(estimator: Any, X: Any, reset: bool) -> list[np.ndarray]:
    """Columns of rows as they came, as arrays; number and names are stored, or compared."""
    with (
        inputs.without_values("X", counts=inputs.knows_count(estimator)),
        np.errstate(all="ignore"),
    ):
        if _is_frame(X):
            validate_data(estimator, X, reset=reset, skip_check_array=True)
            if not (len(X) and X.shape[1]):
                raise ValueError(
                    "Found array with no samples or no features "
                    f"(shape=({len(X)}, {X.shape[1]})) while a minimum of 1 is required."
                )
            return [_column(X, j) for j in range(X.shape[1])]
        # An array of lists takes all that is in them for text if one entry is.
        kind = None if hasattr(X, "dtype") else object
        array = check_array(X, dtype=kind, ensure_all_finite=False)
        if array.dtype.kind == "O" and any(isinstance(v, complex) for v in array.flat):
            raise ValueError("Complex data not supported")
        validate_data(estimator, X, reset=reset, skip_check_array=True)
        return list(array.T)


def _largest(delta: float, guarantees: list[Guarantee]) -> Guarantee:
    """Guarantee of releases from disjoint rows: of each row one release tells.

    McSherry, "Privacy integrated queries", SIGMOD 2009, theorem 4.
    """
    one, other = guarantees
    if one.with_caveats(*other.caveats) == other.with_caveats(*one.caveats):
        return other
    delta = max([delta, *(each.delta for each in guarantees if isinstance(each, ApproxDP))])
    epsilon = max(each.epsilon_at(delta) for each in guarantees)
    return ApproxDP(
        epsilon,
        delta,
        adjacency=one.adjacency,
        unit=one.unit,
        mechanism="the larger one of releases from disjoint calls",
        source="McSherry, SIGMOD 2009, theorem 4",
    )


def alone(step: Any) -> Any:
    """A step without its ledger and its seed, of which no one else is to know."""
    made = copy(step)
    for name in ("ledger", "random_state"):
        if hasattr(made, name):
            setattr(made, name, None)
    return made


def _values_of(step: Any, rows: Any) -> np.ndarray:
    """Values of rows of one column."""
    found = step._validated(rows, reset=True)
    return found[0] if isinstance(found, list) else found[:, 0]


def _is_frame(X: Any) -> bool:
    return len(getattr(X, "shape", ())) == 2 and (hasattr(X, "iloc") or hasattr(X, "get_columns"))


def _column(frame: Any, place: int) -> np.ndarray:
    if not hasattr(frame, "iloc"):
        return array_of(frame.get_columns()[place].to_list())
    column = frame.iloc[:, place]
    # Lists of levels are left alone: what is in them may be there because of one row.
    return column.to_numpy() if isinstance(column.dtype, np.dtype) else array_of(column)


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
