"""Blocks of rows, by what is public of each row alone."""

from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from hashlib import blake2b
from numbers import Real
from typing import Any

import numpy as np
from scipy import sparse

from skdp._tables import names_of
from skdp._validation import is_whole, shown

__all__ = ["Blocks"]

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
    What is released about a record is what is released about its block.

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
    def of(cls, fractions, *, row_key, adjacency):
        """Blocks by fractions of the rows, with the key that the adjacency asks for."""
        if adjacency == "add-remove" and row_key is None:
            raise ValueError(
                "row_key must be given under adjacency='add-remove', where positions of rows "
                "move: the column that holds a key of each row, or a function of X; got None."
            )
        if row_key is not None and not (
            isinstance(row_key, str) or is_whole(row_key) or callable(row_key)
        ):
            raise ValueError(
                "row_key must be the name or position of a column, or a function of X; got "
                f"{shown(row_key)}."
            )
        return cls(tuple(map(float, fractions)), adjacency, row_key)

    def sizes(self, n_samples):
        """Number of rows of each block; None where that is private."""
        if self.adjacency == "add-remove":
            return None
        return tuple(np.diff(self._ends(n_samples), prepend=0).tolist())

    def parts(self, X, n_samples):
        """Positions of the rows of each block.

        Parameters
        ----------
        X : {array-like, frame, sparse matrix} of shape (n_samples, n_features)
            Of which only the key is read.

        n_samples : int

        Returns
        -------
        list of ndarray of int
        """
        if self.adjacency == "replace-one":
            order = np.random.default_rng(_SEED).permutation(n_samples)
            return [np.sort(part) for part in np.split(order, self._ends(n_samples)[:-1])]
        places = np.array([_place(key) for key in self._keys(X, n_samples)])
        ends = np.cumsum(self.fractions)[:-1]
        block = np.searchsorted(ends, places, side="right")
        parts = [np.flatnonzero(block == b) for b in range(len(self.fractions))]
        if not all(map(len, parts)):  # as of no rows at all, an estimator can make nothing of it
            raise ValueError(
                f"row_key must spread the rows over {len(parts)} blocks, one of which has none: "
                "it must tell rows apart."
            )
        return parts

    def _ends(self, n_samples):
        return np.rint(np.cumsum(self.fractions) * n_samples).astype(int)

    def _keys(self, X, n_samples):
        if callable(self.row_key):
            keys = _made(self.row_key, X)
        else:
            keys = list(_column(X, self.row_key))
        if len(keys) != n_samples:
            raise ValueError("row_key must give one key a row.")
        return keys


def _made(row_key, X):
    """Keys by a function, whose errors may quote a row."""
    with suppress(Exception):
        return list(row_key(X))
    raise ValueError("row_key must give one key a row; as a function it raised an error.")


def _column(X, key):
    columns = names_of(X)
    if columns is not None and key in columns:
        return X[key]
    if isinstance(X, list | tuple) and not isinstance(key, str):
        return [row[key] for row in X]
    if isinstance(key, str) or not -X.shape[1] <= key < X.shape[1]:
        raise ValueError(f"row_key must be a column of X; got {shown(key)}.")
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
        raise ValueError("row_key must give numbers or texts.")
    try:
        text = repr(float(key))
    except (ValueError, OverflowError):
        text = str(key)
    digest = blake2b(text.encode(errors="replace"), digest_size=8, key=_SALT).digest()
    return (int.from_bytes(digest, "big") >> 11) * 2.0**-53
