"""Users instead of rows: who owns each row, and how much of a sum over users it is.

To check it: a user's rows share a weight of 1. What a record adds to a sum lies in some set; a
user adds a mean of such points, which lies in the convex hull of the set. The hull is as wide as
the set, and reaches no farther from 0. So a sum over users of the means of their rows has the
sensitivity that a sum over rows has, for replacing all rows of a user, however many they are and
become, and for adding or removing them.
"""

import datetime
import hashlib
import os
import weakref
from collections.abc import Hashable
from dataclasses import dataclass, field
from decimal import Decimal
from numbers import Integral, Number
from typing import Any, Self

import numpy as np
from scipy import sparse

from skdp._validation import between, short_repr
from skdp.rows._inputs import is_missing
from skdp.rows._sums import UNIT_ROUNDOFF

# Ids in an array: numbers, text, times. Others are told apart as Python objects.
_KINDS = "biuSUmM"

# Integers beyond that are no floats.
_LARGEST_WHOLE = 2**53

# Whole parts in which a user's values are counted, where sums must be whole numbers.
USER_PARTS = 2**10

# Odd numbers of a mixer whose outputs pass for random (Steele, Lea and Flood, "Fast splittable
# pseudorandom number generators", OOPSLA 2014).
_STEP, _FIRST, _SECOND = 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB


@dataclass(frozen=True, eq=False)
class Users:
    """Owners of rows. Who they are, and in which order they first come, is public.

    How many rows a user has is private.

    Parameters
    ----------
    codes : ndarray of int, shape (n_samples,)
        Number of the owner of each row, from 0, in the order in which they first come.

    n_users : int

    Attributes
    ----------
    shares : ndarray of shape (n_samples,)
        One over the number of rows of the owner, rounded down: those of a user add up to at most
        1, exactly.
    """

    codes: np.ndarray = field(repr=False)
    n_users: int
    shares: np.ndarray = field(init=False, repr=False)

    def __post_init__(self) -> None:
        counts = np.bincount(self.codes, minlength=self.n_users)
        # One unit in the last place below the quotient, whichever way that was rounded.
        shares = np.nextafter(1.0 / np.maximum(counts, 1), 0.0)
        object.__setattr__(self, "shares", np.where(counts == 1, 1.0, shares)[self.codes])

    @classmethod
    def of(cls, groups: Any, n_samples: int) -> "Self | None":
        """Owners by a parameter ``groups``, checked; None if it is None.

        Parameters
        ----------
        groups : array-like of shape (n_samples,), or None
            Ids: numbers, text, or any objects that can be hashed.

        n_samples : int

        Raises
        ------
        ValueError
            If they are not one id a row, or one is missing. It shows no id.
        """
        if groups is None:
            return None
        ids = checked_ids(groups, n_samples)
        _, first, codes = unique_ids(ids)
        order = np.argsort(first, kind="stable")
        place = np.empty(len(order), dtype=np.intp)
        place[order] = np.arange(len(order))
        return cls(place[codes], len(order))

    def rank_parts(self, values: np.ndarray) -> np.ndarray:
        """Whole parts of a user for each of their values, in the order of these.

        Of those of a user that lie below a number the parts sum to ``USER_PARTS`` times their
        share among the user's values, rounded down. So the sum grows with the number, is at most
        ``USER_PARTS``, and depends on no other user.

        Parameters
        ----------
        values : ndarray of shape (n_samples,)
            NaN is missing, and has no part.

        Returns
        -------
        ndarray of int64, shape (n_samples,)
        """
        parts = np.zeros(len(values), dtype=np.int64)
        present = np.flatnonzero(~np.isnan(values))
        codes = self.codes[present]
        counts = np.bincount(codes, minlength=self.n_users)
        order = np.lexsort((values[present], codes))
        rank = np.arange(len(order)) - np.repeat(np.cumsum(counts) - counts, counts)
        of_owner = np.repeat(counts, counts)
        upper, lower = ((rank + up) * USER_PARTS // np.maximum(of_owner, 1) for up in (1, 0))
        parts[present[order]] = upper - lower
        return parts

    def means(self, values: np.ndarray) -> np.ndarray:
        """Mean of the values of each user; NaN of those who have none, as missing ones are."""
        present = ~np.isnan(values)
        counts = np.bincount(self.codes[present], minlength=self.n_users)
        sums = np.bincount(self.codes[present], values[present], minlength=self.n_users)
        return np.divide(sums, counts, out=np.full(self.n_users, np.nan), where=counts > 0)

    def most_frequent(self, codes: np.ndarray) -> np.ndarray:
        """Code that most rows of each user have, the least of those that are as frequent.

        Parameters
        ----------
        codes : ndarray of int64, shape (n_samples,)
            From 0.

        Returns
        -------
        ndarray of int64, shape (n_users,)
        """
        size = int(codes.max()) + 1
        pairs, counts = np.unique(self.codes * size + codes, return_counts=True)
        owners, found = np.divmod(pairs, size)
        order = np.lexsort((found, -counts, owners))
        first = np.unique(owners[order], return_index=True)[1]
        return found[order][first]

    def shares_of(self, codes: np.ndarray, size: int) -> np.ndarray:
        """Sum over users of the whole parts that each code has among their rows.

        Parts of a user sum to ``USER_PARTS`` at most.

        Parameters
        ----------
        codes : ndarray of int64, shape (n_samples,)
            Negative where a row has none, and does not count.

        size : int
            Of the codes.

        Returns
        -------
        ndarray of int64, shape (size,)
        """
        valid = codes >= 0
        owners = self.codes[valid]
        counts = np.bincount(owners, minlength=self.n_users)
        pairs, found = np.unique(owners * size + codes[valid], return_counts=True)
        owners, which = np.divmod(pairs, size)
        totals = np.zeros(size, dtype=np.int64)
        np.add.at(totals, which, found * USER_PARTS // counts[owners])
        return totals

    def chunks(self, most: int, length: int) -> tuple[np.ndarray, list[np.ndarray]]:
        """Rows in blocks of chunks of one user each, users in their order.

        Parameters
        ----------
        most : int
            Largest number of rows of a chunk.

        length : int
            Largest number of rows of a block, at least ``most``.

        Returns
        -------
        order : ndarray of int, shape (n_samples,)
            Of the rows. Those of a user keep theirs, whoever the others are. Rows that come user
            by user stay in their block.

        lengths : list of ndarray of int
            For each block the rows of its chunks, short chunks first.
        """
        order = np.argsort(self.codes, kind="stable")
        counts = np.bincount(self.codes, minlength=self.n_users)
        n_chunks = -(-counts // most)
        owners = np.repeat(np.arange(self.n_users), n_chunks)
        place = np.arange(len(owners)) - np.repeat(np.cumsum(n_chunks) - n_chunks, n_chunks)
        lengths = np.minimum(counts[owners] - most * place, most)
        ends = np.cumsum(lengths)
        cuts = [0]
        while cuts[-1] < len(lengths):
            start = ends[cuts[-1]] - lengths[cuts[-1]]
            cuts.append(int(np.searchsorted(ends, start + length, side="right")))
        blocks = np.repeat(np.arange(len(cuts) - 1), np.diff(cuts))
        by_length = np.lexsort((lengths, blocks))
        first = (ends - lengths)[by_length]
        lengths = lengths[by_length]
        moved = np.repeat(first - (np.cumsum(lengths) - lengths), lengths)
        parts = np.split(lengths, cuts[1:-1])
        return order[moved + np.arange(len(order))], parts


@dataclass(frozen=True, eq=False)
class Participants:
    """Users of one call among several, who are known by their ids.

    Parameters
    ----------
    users : Users

    ids : tuple
        Of the users, in the order in which they first come.
    """

    users: Users = field(repr=False)
    ids: tuple[Hashable, ...] = field(repr=False)

    @classmethod
    def of(cls, groups: Any, n_samples: int) -> "Self | None":
        """Users by a parameter ``groups``, as for `Users.of`; None if it is None."""
        users = Users.of(groups, n_samples)
        if users is None:
            return None
        first = np.unique(users.codes, return_index=True)[1]
        return cls(users, tuple(whole_times(ids_of(groups)[first]).tolist()))

    @property
    def kinds(self) -> frozenset[str]:
        """What ids are: those of two kinds are never equal, although they may look so."""
        return frozenset(map(_kind, dict.fromkeys(map(type, self.ids))))


def _kind(of: type) -> str:
    kinds = ((str, "text"), (bytes, "bytes"), (Number, "numbers"))
    return next((name for kind, name in kinds if issubclass(of, kind)), of.__name__)


@dataclass(frozen=True, eq=False)
class Participation:
    """In how many calls each user has come. It grows by making another, which shares memory.

    Privacy: ids are in no pickle. One that is read where the original lives is the original; one
    that is read elsewhere knows nobody, and lets no stream go on.

    Parameters
    ----------
    layers : tuple of dict
        Counts by id, which add up. Each layer is more than twice as long as the next, so that
        a call takes time in proportion to its own users.

    kinds : frozenset of str, default=frozenset()
        Of the ids.

    is_stated : bool, default=False
        Whether somebody else says that nobody comes too often; then no ids are kept.

    process : int
        In which it counts: in a fork of it others would count again.
    """

    layers: tuple[dict[Hashable, int], ...] = field(default=(), repr=False)
    kinds: frozenset[str] = frozenset()
    is_stated: bool = False
    process: int = field(default_factory=os.getpid, repr=False)

    def __reduce__(self) -> tuple:
        if self.is_stated:
            return Participation, ((), self.kinds, True)
        key = vars(self).setdefault("key", os.urandom(_LIMIT_KEY))
        _participations[key] = self
        return _participation_of, (key,)

    def after(self, participants: Participants) -> "Participation":
        """One more call."""
        if self.is_stated:
            return Participation((), self.kinds | participants.kinds, True)
        layers, last = list(self.layers), dict.fromkeys(participants.ids, 1)
        while layers and len(layers[-1]) <= 2 * len(last):
            merged = layers.pop().copy()
            for one, count in last.items():
                merged[one] = merged.get(one, 0) + count
            last = merged
        kinds = self.kinds | participants.kinds
        return Participation((*layers, last), kinds, process=self.process)

    def counts(self, participants: Participants) -> np.ndarray:
        """Calls of each of these users."""
        counts = [sum(layer.get(one, 0) for layer in self.layers) for one in participants.ids]
        return np.asarray(counts, dtype=np.int64)

    def check(self, participants: Participants) -> None:
        """Refuse other processes, and ids that would make other users of those who have come."""
        if self.process != os.getpid() and not self.is_stated:
            raise ValueError(_ELSEWHERE)
        if self.kinds and not self.kinds & participants.kinds:
            before, now = (
                " and ".join(sorted(kinds)) for kinds in (self.kinds, participants.kinds)
            )
            raise ValueError(
                f"groups must hold IDs of one kind in all calls; earlier ones were {before}; got "
                f"{now}."
            )


class LostParticipation(Participation):
    """What is left of one in another process."""

    def check(self, participants: Participants) -> None:
        """Refuse to go on."""
        raise ValueError(_ELSEWHERE)


_ELSEWHERE = (
    "groups cannot continue in this process: the number of calls per user is known only where "
    "the stream began and is not pickled. Continue there, or begin a stream with "
    "user_calls='stated' and leave out users who were in max_calls_per_user calls."
)
_participations: "weakref.WeakValueDictionary[bytes, Participation]" = (
    weakref.WeakValueDictionary()
)
_LIMIT_KEY = 16  # bytes


def _participation_of(key: bytes) -> Participation:
    """The original, or what is left of it."""
    found = _participations.get(key)
    if found is None:
        found = LostParticipation()
        vars(found)["key"] = key
    return found


def ids_of(groups: Any) -> np.ndarray:
    """Ids in an array, each as it would be without the others.

    Of a list that holds texts as well, numpy makes texts of numbers, and of one that holds
    fractions it rounds long integers: who else is there would tell one user from another.
    """
    ids = np.asarray(groups)
    if not isinstance(groups, list | tuple) or ids.ndim != 1:
        return ids
    if ids.dtype.kind in "US":
        kind: Any = str if ids.dtype.kind == "U" else bytes
        changed = not all(isinstance(one, kind) for one in groups)
    else:
        changed = ids.dtype.kind == "f" and any(
            isinstance(one, Integral) and abs(int(one)) > _LARGEST_WHOLE for one in groups
        )
    if changed:
        ids = np.empty(len(groups), dtype=object)
        ids[:] = groups
    return ids


def whole_times(ids: np.ndarray) -> np.ndarray:
    """Ids, times among them in microseconds: one time is one id in whatever unit it comes."""
    if ids.dtype.kind not in "mM":
        return ids
    return ids.astype(f"{ids.dtype.kind}8[us]").astype(np.int64)


def checked_ids(groups: Any, n_samples: int) -> np.ndarray:
    """One id a row in an array, none of them missing."""
    if np.ma.is_masked(groups):
        raise ValueError("groups must not have masked entries.")
    try:
        ids = ids_of(groups)
    except (TypeError, ValueError):
        ids = np.empty((0, 0))
    if ids.shape != (n_samples,):
        got = f"an array of {ids.ndim} dimensions"
        if ids.ndim == 1:
            got = "a different number of IDs than X has rows"
        if isinstance(groups, str):
            got = "text. If that is a column name, pass the column: groups=X[name]"
        raise ValueError(f"groups must hold one ID per row, in one dimension; got {got}.")
    # Numbers and times that are missing are not equal to themselves.
    is_object = ids.dtype.kind == "O"
    if any(map(is_missing, ids)) if is_object else not np.array_equal(ids, ids):
        raise ValueError("groups must hold the user ID of every row; an ID is missing.")
    if ids.dtype.kind not in _KINDS + "fO":
        raise ValueError(
            "groups must hold numbers, text or other IDs; got an array of "
            f"{short_repr(ids.dtype)}."
        )
    return ids


def unique_ids(ids: np.ndarray) -> tuple[Any, np.ndarray, np.ndarray]:
    """Ids, the place of the first row of each, and the number of each row's id among them."""
    if ids.dtype.kind != "O":
        return np.unique(ids, return_index=True, return_inverse=True)
    known: dict[Any, int] = {}
    first = list[int]()
    codes = np.empty(len(ids), dtype=np.intp)
    try:
        for row, one in enumerate(ids):
            if type(one).__hash__ is object.__hash__:
                raise ValueError(
                    "groups must hold IDs that compare equal for the same user, such as numbers "
                    f"or text; got objects of type {short_repr(type(one).__name__)}, each equal "
                    "only to itself."
                )
            number = known.setdefault(one, len(known))
            if number == len(first):
                first.append(row)
            codes[row] = number
    except TypeError:
        raise ValueError("groups must hold hashable IDs.") from None
    return list(known), np.asarray(first, dtype=np.intp), codes


def chosen_rows(
    groups: Any, users: Users, *, max_rows: int = 1, repeat: bool = False, seed: int = 0
) -> np.ndarray:
    """Positions of at most so many rows of each user, user after user, by a public key.

    Which rows of a user are chosen follows from the key, the user's id and the number of its rows.
    So if the rows of one user are replaced, or the user is removed, those of all others stay.

    Parameters
    ----------
    groups : array-like of shape (n_samples,)
        Ids, which `Users.of` has checked.

    users : Users

    max_rows : int, default=1

    repeat : bool, default=False
        Whether who has fewer rows has them again, until they are as many as of all others.

    seed : int, default=0
        Public key.

    Returns
    -------
    ndarray of int
        Users in the order in which they first come, rows of each in their order.
    """
    codes = users.codes
    by_user = np.argsort(codes, kind="stable")
    counts = np.bincount(codes)
    starts = np.cumsum(counts) - counts
    place = np.arange(len(codes)) - np.repeat(starts, counts)  # of a row among its owner's
    keys = np.repeat(id_keys(groups, by_user[starts], seed), counts)
    drawn = np.lexsort((place, _mixed(keys, place), codes[by_user]))
    kept = np.sort(drawn[place < max_rows])  # after the draw, rows are user by user as before
    if repeat:
        left = np.minimum(counts, max_rows)
        turns = np.arange(max_rows) % left[:, np.newaxis]
        first = np.cumsum(left) - left
        kept = kept[np.sort(turns, axis=1) + first[:, np.newaxis]].ravel()
    return by_user[kept]


def id_keys(groups: Any, rows: np.ndarray, seed: int) -> np.ndarray:
    """One number of 64 bits for the id of each of these rows, by a public seed."""
    ids = whole_times(ids_of(groups)[rows]).tolist()
    key = str(seed).encode()[:64]
    texts = (_text(one).encode("utf-8", "surrogatepass") for one in ids)
    digests = b"".join(hashlib.blake2b(text, digest_size=8, key=key).digest() for text in texts)
    return np.frombuffer(digests, dtype="<u8").astype(np.uint64)


def _text(one: Any) -> str:
    """An id as text, the same whatever container it comes in, and whatever others are there.

    Among fractions whole numbers have a point. Times are in microseconds.
    """
    if isinstance(one, datetime.datetime) and one.tzinfo is not None:
        one = one.astimezone(datetime.UTC).replace(tzinfo=None)
    if isinstance(one, datetime.date):
        one = np.datetime64(one, "us").astype(np.int64).item()
    elif isinstance(one, datetime.timedelta):
        one = np.timedelta64(one, "us").astype(np.int64).item()
    elif isinstance(one, Decimal) and one.is_finite():
        one = int(one) if one == one.to_integral_value() else one.normalize()
    elif isinstance(one, float) and one.is_integer():
        one = int(one)
    if type(one).__str__ is object.__str__ and type(one).__repr__ is object.__repr__:
        raise ValueError("groups must hold numbers, text or other IDs with a text representation.")
    return str(int(one)) if isinstance(one, bool) else str(one)


def _mixed(keys: np.ndarray, place: np.ndarray) -> np.ndarray:
    """Numbers that pass for random, from that of the user and the place of the row."""
    mixed = keys + (place.astype(np.uint64) + np.uint64(1)) * np.uint64(_STEP)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(_FIRST)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(_SECOND)
    return mixed ^ (mixed >> np.uint64(31))


# Rows of a user between which products are taken.
TOGETHER = 64

# Largest gradient of a row, in caps of a user.
REACH = 32.0

# The t of (a + b)^2 <= (1 + t) a^2 + (1 + 1/t) b^2.
_FINE = 2.0**-20

# Added to squared agreements, whose root then errs little.
_LEAST = 2.0**-10


def _operations(n_features, n_outputs):
    """Rounding errors in a squared norm, as a multiple of the unit roundoff."""
    return n_features + TOGETHER * (n_outputs + 1) + 16


def clip_error(n_features, n_outputs):
    """Bound on what rounding makes of one user's factor: how far it moves a sum, in caps."""
    return 4.0 * UNIT_ROUNDOFF * _operations(n_features, n_outputs) * REACH**2


def agreement_error(n_features, n_outputs):
    """Bound on the rounding error of one user's agreement."""
    return 32.0 * UNIT_ROUNDOFF * _operations(n_features, n_outputs)


class UserCap:
    """Factors that shorten the mean gradients of users to one bound.

    Parameters
    ----------
    data : RowBlocks
        With users: the rows of a chunk are next to each other, and in one block.

    loss : LogisticLoss, HuberHingeLoss or SoftmaxLoss
        A user has the mean weight of their rows' classes, and a cap in proportion, as rows have.

    coordinates : PlainRows or WhitenedRows

    cap : float
    """

    def __init__(self, data, loss, coordinates, cap):
        self.users = data.users
        self._products: list[Any] = []
        chunks, weights, start = list[Any](), list[Any](), 0
        for (rows, codes), shares, lengths in zip(
            data.blocks, data.shares, data.chunks, strict=True
        ):
            images = coordinates.images(rows, data.row_norm)
            weights.append(_sums(loss.weights_of(codes) * shares, lengths))
            chunks.append(data.users.codes[start + np.cumsum(lengths) - lengths])
            start += len(codes)
            # Chunks of a block are sorted by their lengths.
            for length, count in zip(*np.unique(lengths, return_counts=True), strict=True):
                n_rows = int(length * count)
                self._products.append(_products(images[:n_rows], int(length)))
                images = images[n_rows:]
        self._chunks, each = np.concatenate(chunks), np.concatenate(weights)
        self._lengths = np.concatenate(data.chunks)
        self._weights = self._totals(each)
        self._spread = self._weights[self._chunks] / each
        self._rest = coordinates.rest(data.row_norm) ** 2 * (1.0 + 1.0 / _FINE)
        self._slack = 0.5 * clip_error(data.n_features, loss.n_outputs)
        self._caps = cap * np.minimum(self._weights, 1.0)

    def _totals(self, numbers):
        """Sums over the chunks of users."""
        return np.bincount(self._chunks, numbers, minlength=self.users.n_users)

    def _squares(self, residuals):
        """Squared norms of the sums over chunks, of the rows' first bits and up to rounding."""
        found = []
        for products in self._products:
            n_rows = products.shape[0] * products.shape[1]
            part = residuals[:n_rows].reshape(*products.shape[:2], -1)
            found.append(np.einsum("cik,cik->c", products @ part, part))
            residuals = residuals[n_rows:]
        return np.maximum(np.concatenate(found), 0.0)

    def agreements(self, residuals):
        """Lengths of users' means over the mean lengths of their rows; 1 for users of one row.

        Each is between 0 and 1, and a function of the user's rows alone. The lengths of the rows
        of a chunk are its weight here: by those of `factors` a chunk of few rows, long beside all
        others, would have its rounding error as many times as it has too little weight.
        """
        squares = np.concatenate(
            [np.einsum("cii->ci", products).ravel() for products in self._products]
        )
        sizes = np.sqrt(squares * np.einsum("ij,ij->i", residuals, residuals))
        lengths = _sums(sizes, self._lengths)
        parts = self._squares(residuals)
        parts = np.divide(parts, lengths, out=np.zeros_like(parts), where=lengths > 0.0)
        parts, most = self._totals(parts), self._totals(lengths)
        found = np.divide(parts, most, out=np.ones_like(most), where=most > 0.0)
        return np.sqrt((np.minimum(found, 1.0) + _LEAST) / (1.0 + _LEAST))

    def factors(self, residuals):
        """Factors of at most 1 of the residuals of rows, equal for all rows of a user.

        Parameters
        ----------
        residuals : ndarray of shape (n_samples, n_outputs)
            Times the shares of the rows.
        """
        squares = self._totals(self._squares(residuals) * self._spread)
        squares = (1.0 + _FINE) * squares + self._slack * self._caps**2
        if self._rest:
            sizes = np.sqrt(np.einsum("ij,ij->i", residuals, residuals))
            totals = np.bincount(self.users.codes, sizes, minlength=self.users.n_users)
            squares += self._rest * totals**2
        norms = np.maximum(np.sqrt(squares), self._caps)
        # A user without rows, or without weight, adds nothing whatever the factor is.
        factors = np.divide(self._caps, norms, out=np.zeros_like(norms), where=norms > 0.0)
        return factors[self.users.codes]


def _sums(numbers, lengths):
    return np.add.reduceat(numbers, np.cumsum(lengths) - lengths)


def _products(images, length):
    """Inner products of the images of each chunk, of shape (n_chunks, length, length)."""
    n_chunks = images.shape[0] // length
    if not sparse.issparse(images):
        images = images.reshape(n_chunks, length, -1)
        return images @ images.transpose(0, 2, 1)
    products = np.empty((n_chunks, length, length))
    place = np.arange(n_chunks * length).reshape(n_chunks, length)
    for ahead in range(length):
        here, there = place[:, : length - ahead], place[:, ahead:]
        pairs = images[here.ravel()].multiply(images[there.ravel()]).sum(axis=1)
        first = np.arange(length - ahead)
        products[:, first, first + ahead] = np.reshape(pairs, here.shape)
        products[:, first + ahead, first] = np.reshape(pairs, here.shape)
    return products


_LIMIT_WEIGHTS = 1e-6, 1e6


def check_largest_weight(max_sample_weight: Any) -> None:
    """Check the public bound on weights; None stands for 1."""
    if max_sample_weight is not None:
        between(*_LIMIT_WEIGHTS, max_sample_weight=max_sample_weight)


def checked_weights(sample_weight: Any, n_samples: int, most: float) -> np.ndarray | None:
    """Weights of rows over the largest that counts; None if there are none.

    Privacy: each is between 0 and 1, a multiple of 2**-24, and a function of the given one alone.

    Parameters
    ----------
    sample_weight : array-like of shape (n_samples,), or None

    n_samples : int

    most : float
        Public.
    """
    if sample_weight is None:
        return None
    try:
        given = np.asarray(sample_weight)
        is_number = given.dtype.kind in "biufO"
        weights = given.astype(np.float64) if is_number else np.empty((0, 0))
    except Exception:  # whose words may hold values
        weights = np.empty((0, 0))
    is_masked = np.ma.is_masked(sample_weight)
    if is_masked or weights.shape != (n_samples,) or not (weights >= 0.0).all():
        raise ValueError(
            "sample_weight must hold one number per row, in one dimension, not negative, missing "
            "or masked; got others. For a column, pass its values: sample_weight=X[name]."
        )
    return np.floor(np.minimum(weights / most, 1.0) * _FINEST_WEIGHT) / _FINEST_WEIGHT


# Sums of weights are exact.
_FINEST_WEIGHT = 2.0**24


def counts_in_cells(cells: np.ndarray, size: int, users: Users | None) -> np.ndarray:
    """Number of rows in each cell, or sum over users of the shares of their rows in it.

    Privacy: a row is in one cell, or in none. Shares are of all rows of a user, also of those in
    no cell, and sum to 1 at most.

    Parameters
    ----------
    cells : ndarray of int, shape (n_samples,)
        Negative for no cell.

    size : int

    users : Users or None

    Returns
    -------
    ndarray of float, shape (size,)
        Without rounding errors.
    """
    if users is None:
        return np.bincount(cells[cells >= 0], minlength=size).astype(np.float64)
    parts = users.shares_of(np.where(cells < 0, size, cells), size + 1)
    return parts[:size] / USER_PARTS
