"""Rows of a search: public blocks of them, and what else is public."""

from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from hashlib import blake2b
from numbers import Real
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.utils import column_or_1d
from sklearn.utils.validation import has_fit_parameter

from skdp._validation import is_auto, is_whole, short_repr
from skdp.learner import warn_of_delta
from skdp.metrics import EvaluationPlan, default_scoring, row_loss
from skdp.metrics._dp_evaluate import SCORINGS
from skdp.metrics._releases import MEANS, check_scoring, public_range
from skdp.model_selection._candidates import Candidates
from skdp.pipeline import DPPipeline
from skdp.pipeline._wrappers import Schema, learner_with_path
from skdp.rows import _inputs as inputs
from skdp.rows import _users
from skdp.rows._source_frames import opened_frame

_GRID_SHIFT, _GRID_PLACE = 11, 2.0**-53  # keys of 64 bits as floats in [0, 1)
_SEED = 17  # of the public permutation: the same for all
_SALT = b"skdp blocks"


@dataclass(frozen=True)
class Blocks:
    """A public division of the rows, in which each record is in one block.

    Privacy: which block a record is in must not depend on others. Where records are replaced it
    follows from the position of the row, by a permutation that everybody knows, and the number of
    rows of a block is public. Where they are added or removed, positions move, and it follows from
    a hash of the row's own key; how many rows a block has is private then. That it has none is an
    error, as it is of all rows together.
    Users have all their rows in one block, which follows from the position of the user in the
    order in which users first come, or from a hash of their id.
    What is released about a record, or a user, is what is released about its block.

    Parameters
    ----------
    fractions : tuple of float
        Part of the rows in each block, in the mean where keys decide.

    adjacency : {"replace-one", "add-remove"}

    row_key : str, int or callable, default=None
        Column that holds the key of a row, or a function of the rows that makes one of each row
        alone: a number or a text.
    """

    fractions: tuple[float, ...]
    adjacency: str
    row_key: str | int | Callable[[Any], Iterable[Any]] | None = None

    @classmethod
    def of(cls, fractions, *, row_key, adjacency, unit="record"):
        """Blocks by fractions of the rows, with the key that the adjacency asks for."""
        if adjacency == "add-remove" and unit == "record" and row_key is None:
            raise ValueError(
                "row_key must be given under adjacency='add-remove', as row positions may "
                "change: a column with a key for each row, or a function of X; got None."
            )
        if row_key is not None and not (
            isinstance(row_key, str) or is_whole(row_key) or callable(row_key)
        ):
            raise ValueError(
                "row_key must be the name or position of a column, or a function of X; got "
                f"{short_repr(row_key)}."
            )
        return cls(tuple(map(float, fractions)), adjacency, row_key)

    def sizes(self, n_units):
        """Number of rows, or users, of each block; None where that is private."""
        if self.adjacency == "add-remove":
            return None
        ends = np.rint(np.cumsum(self.fractions) * n_units).astype(int)
        return tuple(np.diff(ends, prepend=0).tolist())

    def parts(self, X, n_samples, groups=None):
        """Positions of the rows of each block.

        Parameters
        ----------
        X : {array-like, frame, sparse matrix} of shape (n_samples, n_features)
            Of which only the key is read.

        n_samples : int

        groups : ndarray of shape (n_samples,), default=None
            Ids of users.

        Returns
        -------
        list of ndarray of int
        """
        users = _users.Users.of(groups, n_samples)
        if self.adjacency == "replace-one":
            sizes = self.sizes(n_samples if users is None else users.n_users)
            order = np.random.default_rng(_SEED).permutation(sum(sizes))
            block = np.repeat(np.arange(len(sizes)), sizes)[np.argsort(order)]
        else:
            if users is None:
                places = self._places(X)
            else:
                first = np.unique(users.codes, return_index=True)[1]
                if inputs.is_of_source(X):
                    groups, first = X.owner_ids, groups[first]
                keys = _users.id_keys(groups, first, _SEED)
                places = (keys >> np.uint64(_GRID_SHIFT)) * _GRID_PLACE
            block = np.searchsorted(np.cumsum(self.fractions)[:-1], places, side="right")
        if users is not None:
            block = block[users.codes]
        parts = [np.flatnonzero(block == b) for b in range(len(self.fractions))]
        if not all(map(len, parts)):  # as of no rows at all, an estimator can make nothing of it
            raise ValueError(
                f"{'row_key' if users is None else 'groups'} must distribute the rows over "
                f"{len(parts)} blocks, but one block is empty: use distinct keys."
            )
        return parts

    def _places(self, X):
        parts = (X,)
        if inputs.is_of_source(X):
            by_name = isinstance(self.row_key, str) and self.row_key in (X.column_names or ())
            parts = (X.taken([self.row_key]) if by_name else X).frames()
        found = [np.array(list(map(_place, self._keys(rows)))) for rows in parts]
        return np.concatenate(found)

    def _keys(self, X):
        n_samples = inputs.count_of_rows(X)
        if callable(self.row_key):
            keys = _made(self.row_key, X)
        else:
            keys = list(_column(X, self.row_key))
        if len(keys) != n_samples:
            raise ValueError("row_key must give one key per row.")
        return keys


def _made(row_key, X):
    """Keys by a function, whose errors may quote a row."""
    with suppress(Exception):
        return list(row_key(X))
    raise ValueError("row_key must give one key per row; the function raised an error.")


def _column(X, key):
    columns = inputs.names_of(X)
    if columns is not None and key in columns:
        return X[key]
    if isinstance(X, list | tuple) and not isinstance(key, str):
        return [row[key] for row in X]
    if isinstance(key, str) or not -X.shape[1] <= key < X.shape[1]:
        raise ValueError(f"row_key must be a column of X; got {short_repr(key)}.")
    if columns is not None:
        return X[columns[key]]
    column = X[:, [key]]
    return (column.toarray() if sparse.issparse(X) else np.asarray(column)).ravel()


def _place(key):
    """Place in [0, 1) of a key, the same for a number whatever it is stored as.

    One record can change the type of a column, and with it the text of all other keys.
    """
    if isinstance(key, bytes):
        key = key.decode(errors="replace")
    if not isinstance(key, str | Real):
        raise ValueError("row_key must give numbers or strings.")
    try:
        text = repr(float(key))
    except (ValueError, OverflowError):
        text = str(key)
    digest = blake2b(text.encode(errors="replace"), digest_size=8, key=_SALT).digest()
    return (int.from_bytes(digest, "big") >> 11) * 2.0**-53


@dataclass(frozen=True)
class Searched(Candidates):
    """Rows of a search, what is public of them, and what is fitted to them.

    Parameters
    ----------
    estimator, X, y, schema, loss, groups
        As for `Candidates`.

    n_units : int
        Rows, or users.

    classes : ndarray or None
        Labels of all candidates, declared or those present.

    y_bounds : (float, float) or None
        Stated range of the target.

    scoring : str
    """

    n_units: int
    classes: np.ndarray | None
    y_bounds: tuple[float, float] | None
    scoring: str

    @classmethod
    def of(cls, search, X, y, groups, *, by_rows=True):
        """Check the rows of a search, and fix what is the same for all candidates.

        Parameters
        ----------
        search : BaseDPSearch
            With parameters ``estimator``, ``scoring``, ``classes``, ``y_bounds`` and
            ``adjacency``.

        X, y, groups
            As they were given to ``fit``.

        by_rows : bool, default=True
            Whether the scoring must be a mean over rows; without, ``loss`` is None if it is none.

        Returns
        -------
        Searched
        """
        X, y, groups = _checked(search, X, y, groups)
        users, n_units = _users.Users.of(groups, len(y)), len(y)
        if users is not None:
            groups, n_units = _users.ids_of(groups), users.n_users
            if not has_fit_parameter(search.estimator, "groups"):
                raise ValueError(
                    "groups must be None for an estimator whose fit does not accept them, as its "
                    f"guarantee protects records; got {short_repr(search.estimator)}."
                )
        warn_of_delta(search, n_units, "record" if users is None else "user")
        estimator = clone(search.estimator).set_params(adjacency=search.adjacency)
        last, prefix, path = estimator, "", ""
        if isinstance(estimator, DPPipeline):
            name, last = estimator.steps[-1]
            prefix, path = f"{name}__", name
        # Targets within a step may be in other units than those of the step; labels are the same.
        learner, path = learner_with_path(last, path)
        within = f"{path}__".removeprefix("__")
        known = estimator.get_params()
        classes = bounds = None
        if is_classifier(estimator):
            declared = search.classes
            if declared is None:
                declared = getattr(learner, "classes", None)
            classes, _ = inputs.encode_labels(y, declared)
            if f"{within}classes" in known:
                estimator.set_params(**{f"{within}classes": classes})
        else:
            bounds = search.y_bounds
            if bounds is None:
                bounds = getattr(last, "y_bounds", None)
                bounds = None if is_auto(bounds) else bounds
            if bounds is not None:
                public_range(None, bounds)
                if known.get(f"{prefix}y_bounds", 0) is None:
                    estimator.set_params(**{f"{prefix}y_bounds": bounds})
        scoring = default_scoring(estimator) if search.scoring is None else search.scoring
        if not by_rows:
            check_scoring(scoring, SCORINGS, estimator)
        loss = None
        if by_rows or scoring in (*MEANS, "r2"):
            loss = row_loss(scoring, estimator, classes=classes, y_bounds=bounds)
        known = n_units, classes, bounds, scoring
        return cls(estimator, X, y, Schema.of(X), loss, *known, groups=groups)

    @property
    def public_count(self):
        """Number of rows, or of users, where it is public; None where it is not."""
        return self.n_units if self.estimator.adjacency == "replace-one" else None

    def sizes(self, blocks):
        """Number of rows, or users, of each block, which must not be fewer than classes.

        Returns
        -------
        tuple of int or None
            None where that is private, of each.
        """
        sizes = blocks.sizes(self.n_units)
        if sizes is None:
            return (None,) * len(blocks.fractions)
        least = 2 if self.classes is None else len(self.classes)
        if min(sizes) < least:
            more = f"X must have more rows than n_samples={self.n_units}"
            if self.groups is not None:
                more = f"groups must name more users than {self.n_units}"
            raise ValueError(
                f"{more}: the smallest of {len(sizes)} blocks would have {min(sizes)} and needs "
                f"{least}."
            )
        return sizes

    def parts(self, blocks):
        """Rows of each block by name, as fits are given them; with `Users` those of the last."""
        _, *others = self.rows
        parts = [
            {"X": inputs.rows_of(self.X, here), **{name: self.rows[name][here] for name in others}}
            for here in blocks.parts(self.X, len(self.y), self.groups)
        ]
        last = parts[-1]
        last["users"] = _users.Users.of(last.pop("groups", None), len(last["y"]))
        return parts

    def evaluation(self, target):
        """Plan of a score that meets ``target``."""
        return EvaluationPlan.of(
            self.scoring, target, classes=self.classes, y_bounds=self.y_bounds
        )

    def constant(self):
        """What is scored where the chosen candidate could not be fitted: it says nothing."""
        if self.classes is None:
            middle = np.mean(self.y_bounds or 0.0)
            return DummyRegressor(strategy="constant", constant=middle).fit([[0.0]], [0.0])
        return DummyClassifier(strategy="prior").fit(self.classes[:, None], self.classes)


def jobs_of(search, X):
    """Candidates that are fitted at once: one where each of them reads a source."""
    return 1 if inputs.is_of_source(X) else search.n_jobs


def _checked(search, X, y, groups):
    """Rows, targets and owners, well formed; what a pipeline prepares stays as it is."""
    if y is None:
        raise ValueError(
            f"{type(search).__name__} requires y to be passed, but the target y is None."
        )
    is_numeric = is_regressor(search.estimator)
    given = inputs.in_memory(X, y, groups)
    if given is None:
        if getattr(search, "n_jobs", None) not in (None, 1):
            raise ValueError(
                "n_jobs must be None or 1 for rows of a source, which fits read sequentially; "
                f"got {short_repr(search.n_jobs)}."
            )
        X, y, groups = opened_frame(X, y, groups, numeric=is_numeric, ids=True)
        search._store_columns(Schema.of(X))
        return X, y, groups
    X, y, groups = given
    counts = groups is None
    if not isinstance(search.estimator, DPPipeline):
        checked, y = inputs.checked_data(search, X, y, numeric=is_numeric, counts=counts)
        return (X if hasattr(X, "columns") else checked), y, groups
    with inputs.without_values("y", counts=counts and inputs.knows_count(search)):
        y = column_or_1d(y, warn=True)
    X = inputs.framed(X)
    if sparse.issparse(X):
        X = X.tocsr()
    elif inputs.count_of_rows(X) is None:
        X = np.asarray(X)
    if inputs.count_of_rows(X) != len(y):
        raise ValueError("X and y must have the same number of rows.")
    search._store_columns(Schema.of(X))
    return X, y, groups
