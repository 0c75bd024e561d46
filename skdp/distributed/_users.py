"""Rows of this process and whose they are; how often a user has come, and to which node."""

import threading
from dataclasses import dataclass, field
from numbers import Real
from typing import Any

import numpy as np

from skdp.distributed._rows import owners_of
from skdp.rows._users import Users, ids_of

__all__ = ["NodeRows", "UserCalls", "owners_among"]

# Calls at the same time, of one model or of shallow copies, count one after the other.
_COUNTING = threading.Lock()


@dataclass(frozen=True)
class NodeRows:
    """Rows of this process, of the nodes that own them, and of users if these are protected.

    Parameters
    ----------
    X : {ndarray, CSR matrix} of shape (n_rows, n_features)

    codes : ndarray of int, shape (n_rows,)
        Classes.

    here : ndarray of int, shape (n_units,)
        Place, among the nodes of this process, of the one that owns each row, or each user.

    users : Users or None
    """

    X: Any = field(repr=False)
    codes: np.ndarray = field(repr=False)
    here: np.ndarray = field(repr=False)
    users: Users | None = None

    @property
    def n_units(self):
        """Rows, or users."""
        return len(self.here)

    @property
    def here_of_rows(self):
        """Place of the node that owns each row."""
        return self.here if self.users is None else self.here[self.users.codes]

    def without(self, gone):
        """The same without the rows of some users, who keep their place.

        Parameters
        ----------
        gone : ndarray of bool, shape (n_units,)
        """
        users = self.users
        if users is None or not gone.any():
            return self
        kept = ~gone[users.codes]
        left = Users(users.codes[kept], users.n_users)
        return NodeRows(self.X[kept], self.codes[kept], self.here, left)


class UserCalls:
    """How often each user has come in a stream, and to which node.

    Privacy: a user is in the sums of at most ``most`` calls. Whatever rows it has later are left
    out. What has come counts as soon as noise may be drawn for it, so that a call that fails half
    way has been one. Ids are kept; nothing that is released depends on more than them.

    Parameters
    ----------
    most : int
        Calls that a user may be in.
    """

    def __init__(self, most):
        self.most = most
        self._kind: str | None = None
        self._known: dict[Any, tuple[int, int]] = {}  # calls, node

    def owners(self, groups, users, node, mine, topology):
        """Node of each user, one of ``mine``.

        Parameters
        ----------
        groups : array-like of shape (n_rows,)

        users : Users
            Of these.

        node : array-like of shape (n_rows,), or None
            None keeps users at their nodes, and deals new ones to the nodes in turn.

        mine : ndarray of int

        topology : Topology

        Raises
        ------
        ValueError
            If a user has rows at several nodes. It names neither.
        """
        first = _first_rows(users)
        before = [self._known.get(one, (0, -1))[1] for one in self._keys(groups, first)]
        known = np.asarray(before, dtype=np.int64)
        if node is None:
            new = known < 0
            dealt = owners_of(None, int(new.sum()), mine, len(self._known), topology)
            known[new] = dealt
            return known
        of_rows = owners_of(node, len(users.codes), mine, 0, topology, False)
        owners = of_rows[first]
        if (owners[users.codes] != of_rows).any():
            raise ValueError(
                "groups must have all rows of a user at one node; a user has rows at several."
            )
        if ((known >= 0) & (known != owners)).any():
            raise ValueError(
                "groups must have a user at one node in all calls of a stream; a user has come to "
                "another node."
            )
        return owners

    def enter(self, groups, users, owners, *, for_good):
        """Count a call, and tell whose rows are to be left out.

        Parameters
        ----------
        groups, users
            As for `owners`.

        owners : ndarray of int, shape (n_users,)

        for_good : bool
            Whether this call takes all that a user has.

        Returns
        -------
        ndarray of bool, shape (n_users,)
        """
        gone = np.zeros(users.n_users, dtype=bool)
        keys = self._keys(groups, _first_rows(users))
        with _COUNTING:
            for i, (one, owner) in enumerate(zip(keys, owners.tolist(), strict=True)):
                n_calls = self._known.get(one, (0, owner))[0]
                gone[i] = n_calls >= self.most
                self._known[one] = (self.most if for_good else min(n_calls + 1, self.most), owner)
        return gone

    def _keys(self, groups, first):
        """Ids as Python's own values, which are the same for the same user in every call."""
        ids = ids_of(groups)[first]
        if not len(ids):
            return []
        kind = _kind_of(ids)
        if self._kind not in (None, kind):
            raise ValueError("groups must hold ids of one type in all calls of a stream.")
        self._kind = kind
        return (ids.astype(np.int64) if ids.dtype.kind in "mM" else ids).tolist()


def _kind_of(ids):
    """Among ids of one kind those of one user are equal: numpy makes texts of 1 beside a text."""
    kind = ids.dtype.kind
    if kind in "mM":  # two units of time have two numbers for one time
        return ids.dtype.str[1:]
    if kind != "O":
        return {"U": "text", "S": "bytes"}.get(kind, "number")
    if all(isinstance(one, str) for one in ids):
        return "text"
    return "number" if all(isinstance(one, Real) for one in ids) else "object"


def owners_among(users, rows):
    """Owners of some rows, with all that these owners have; None if rows have none.

    Parameters
    ----------
    users : Users or None

    rows : ndarray of int
    """
    if users is None:
        return None
    codes = np.unique(users.codes[rows], return_inverse=True)[1]
    return Users(codes, int(codes.max(initial=-1)) + 1)


def _first_rows(users):
    """Row in which each user first comes."""
    return np.unique(users.codes, return_index=True)[1]
