"""Validated rows of this process, with their class codes and nodes."""

import threading
from dataclasses import dataclass, field
from numbers import Real
from typing import Any

import numpy as np
from scipy import sparse

from skdp._grid import TINY
from skdp._validation import short_repr
from skdp.distributed._gossip import batches
from skdp.learner import check_unchanged, warn_of_seed
from skdp.linear_model._comparator import best_in_ball
from skdp.mechanisms import clip_rows
from skdp.rows._inputs import checked_data, encode_labels
from skdp.rows._users import Users, ids_of
from skdp.topology._topology import node_number, node_numbers


def validated(estimator, X, y, classes, engine, fresh, counts=True):
    """Check the rows of this process; returns them, the codes of their classes, and classes.

    Errors say how many rows there are if ``counts``.
    """
    least = 0 if engine.is_distributed else 1
    X, y = checked_data(estimator, X, y, reset=fresh, ensure_min_samples=least, counts=counts)
    if engine.is_distributed and classes is None:
        raise ValueError("classes must be given over MPI, since labels are not sent; got None.")
    warn_of_seed(estimator.random_state is not None, estimator.ledger)
    classes, codes = encode_labels(y, classes)
    return X, codes, classes


def common_classes(given, known):
    """Classes of the stream, from a call or from before."""
    if given is None or known is None or given is known:
        return given if known is None else known
    if _sorted(given) != _sorted(known):
        raise ValueError(
            f"classes must be those of the stream, {short_repr(list(known))}; got "
            f"{short_repr(given)}."
        )
    return known


def _sorted(classes):
    try:
        return np.unique(np.asarray(classes)).tolist()
    except (TypeError, ValueError):
        return None


def owners_of(node, n_rows, mine, n_before, topology, counts=True):
    """Number of the node of each row, one of ``mine``; in turn by position if ``node`` is None.

    Errors say how many rows there are if ``counts``.
    """
    if node is None:
        return mine[(n_before + np.arange(n_rows)) % len(mine)]
    given = np.asarray(node) if n_rows else np.zeros(0, dtype=int)
    owners = node_numbers(topology, given) if given.ndim == 1 else given
    if owners.shape != (n_rows,) or owners.dtype.kind not in "iu":
        kind = "int" if topology.node_names is None else "name"
        rows = f", {n_rows}; got an array of shape {given.shape} and" if counts else "; got"
        raise ValueError(f"node must have one {kind} per row{rows} dtype {given.dtype}.")
    strange = given[~np.isin(owners, mine)]
    if len(strange):
        here = [topology.name(i) for i in mine.tolist()]
        raise ValueError(
            f"node must have only nodes of this process, {short_repr(here)}; "
            f"got {short_repr(strange.tolist()[0])}."
        )
    return owners


def clipped_in_l1(X, x_norm, bound):
    """Rows scaled back to bounds on their norm and on the sum of their absolute values.

    Both hold up to rounding. The norm comes first: of rows that are as long as floats can be sums
    would overflow, and factors would have next to no digits.

    Parameters
    ----------
    X : {ndarray, CSR matrix} of shape (n_rows, n_features)

    x_norm, bound : float
        Not so far apart that their ratio is not a float of full precision.
    """
    X = clip_rows(X, x_norm)
    norms = np.ravel(abs(X).sum(axis=1, dtype=np.float64))
    factors = np.minimum(1.0, bound / np.maximum(norms, TINY))
    if not sparse.issparse(X):
        return X * factors[:, np.newaxis]
    X = X.astype(np.float64)
    X.data = X.data * np.repeat(factors, np.diff(X.indptr))
    return X


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
                "groups must have all rows of a user at one node; got a user at several nodes."
            )
        if ((known >= 0) & (known != owners)).any():
            raise ValueError(
                "groups must have a user at one node in all calls of a stream; got a user at "
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
            raise ValueError("groups must have IDs of one type in all calls of a stream.")
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


def regret(estimator, X, y, node, of, tolerance):
    """See `DistributedDPClassifier.regret`."""
    stream = estimator._stream
    plan = stream.plan
    check_unchanged(estimator, plan.params)
    if not plan.paper.keep_iterates:
        raise ValueError(
            f"keep_iterates must be True for a regret; got {short_repr(plan.paper.keep_iterates)}."
        )
    X, y = checked_data(estimator, X, y, reset=False)
    codes = encode_labels(y, plan.classes)[1]
    release = plan.release
    points = np.concatenate(stream.points)
    n_rounds, n_here = points.shape[:2]
    if n_here != plan.topology.n_nodes:
        raise ValueError("engine must be 'local' for a regret, since rows are not sent.")
    owners = owners_of(node, len(codes), np.arange(n_here), 0, plan.topology)
    most = int(np.bincount(owners).max())
    schedule = batches(owners, n_here, min(plan.update.batch_size, most))
    schedule = np.tile(schedule, (release.n_passes, 1, 1))
    if len(schedule) != n_rounds:
        raise ValueError(
            f"X must have the rows of the stream, which give {n_rounds} rounds; "
            f"got rows for {len(schedule)}."
        )
    if of is not None:
        of = node_number(plan.topology, or_none=True, of=of)
    rows = release.rows(X)
    total = 0.0
    for t, place in enumerate(schedule):
        for i, here in enumerate(place):
            here = here[here >= 0]
            if len(here):
                weights = points[t, i if of is None else of].reshape(-1, plan.width)
                total += release.loss.total(np.asarray(rows[here] @ weights.T), codes[here])
    uses = np.bincount(schedule[schedule >= 0], minlength=len(codes))
    if (uses != uses[0]).any():
        raise ValueError("X must have the rows of the stream, each seen equally often.")
    best = best_in_ball(
        rows, codes, release.loss, radius=plan.update.radius, tolerance=float(tolerance)
    )
    return total - float(uses[0]) * best[1]
