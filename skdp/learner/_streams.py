"""Streams: their versions, parameters and ledger entries."""

import os
import threading
from abc import abstractmethod
from dataclasses import dataclass, field, replace
from typing import Any

from scipy.sparse import issparse
from sklearn.base import is_classifier

from skdp.exceptions import StaleStreamError
from skdp.learner._estimator import (
    Public,
    _Learner,
    begun_fit,
    charge_stream,
    check_budget,
    check_unchanged,
    frozen_params,
    is_untouched,
    progress_of,
    unchanged_on_error,
    warn_of_delta,
    warn_of_seed,
    with_callbacks,
)
from skdp.learner._sequence import StreamRelease
from skdp.rows._source_frames import loaded
from skdp.rows._users import Participants


class Token(bytes):
    """Random bytes that identify streams and their versions."""

    @classmethod
    def fresh(cls):
        """Return new random bytes."""
        return cls(os.urandom(16))


class StreamLine:
    """Memory of one stream and all its copies, for the lifetime of the process.

    Privacy: only the latest version may continue. Two copies that continue with different rows
    would be two streams and together cost more than their account states, even if the first one
    no longer exists. A line holds public numbers and no model.

    Parameters
    ----------
    version : (int, bytes)
        Number of updates of the stream, and a token that identifies the last one.

    Attributes
    ----------
    charged : dict or None
        Set if a release failed after its charge: versions of the stream that the ledger may hold,
        oldest first, with their accounts.
    """

    __slots__ = ("charged", "lock", "version")

    def __init__(self, version):
        self.version, self.lock = version, threading.RLock()
        self.charged: dict[tuple[int, bytes], Any] | None = None

    @classmethod
    def of(cls, token, version):
        """Return the line of a token, updated with a version.

        A later version was made in another process and replaces the stored one. Of two versions
        with equally many updates, the first one seen stays.
        """
        with _lock:
            line = _lines.get(token)
            if line is None:
                line = _lines[token] = cls(version)
            elif version[0] > line.version[0]:
                line.version, line.charged = version, None
        return line

    def remember(self, version, charged):
        """Restore from a pickle the versions that the ledger may hold."""
        if charged and version == self.version:
            self.charged = {**charged, **(self.charged or {})}

    def check(self, version):
        """Refuse to continue a version that is not the latest."""
        if version != self.version:
            raise StaleStreamError(
                "This copy of the stream is stale: another copy has continued it. Two "
                "continuations would cost more than is accounted for; call fit to start afresh."
            )


@dataclass(frozen=True)
class Stream:
    """Immutable state of a stream that an estimator keeps between calls.

    Parameters
    ----------
    params : dict
        Parameters of the estimator at the start of the stream.

    token : bytes
        Identifier of the stream.

    release : StreamRelease
        Current state of the release.

    version : (int, bytes)
        Number of updates, and a token that identifies the last one.
    """

    params: dict[str, Any] = field(repr=False)
    token: bytes = field(repr=False)
    release: StreamRelease
    version: tuple[int, bytes] = (0, Token())

    @classmethod
    def begin(cls, estimator, release):
        """Begin a stream with the current parameters."""
        return cls(frozen_params(estimator), Token.fresh(), release)

    @property
    def line(self):
        """Memory of this process for the stream and its copies."""
        return StreamLine.of(self.token, self.version)

    def latest(self, estimator, line):
        """Return the stream if it may continue with the current parameters."""
        check_unchanged(estimator, self.params)
        line.check(self.version)
        return self

    def __getstate__(self):
        line = self.line
        return {**vars(self), "charged": line.charged if line.version == self.version else None}

    def __setstate__(self, state):
        vars(self).update(state)
        self.line.remember(self.version, vars(self).pop("charged"))


def charge_release(estimator, stream, line, version, cost, account=None):
    """Charge the ledger's entry of a stream for the next release.

    Parameters
    ----------
    estimator : estimator

    stream : Stream
        State before the release.

    line : StreamLine

    version : (int, bytes)
        Version of the stream after the release.

    cost : callable
        ``cost(account)`` returns the guarantee of all releases, including the next one, and the
        new account.

    account : object, default=None
        Account of the releases so far, if any.

    Returns
    -------
    guarantee : ApproxDP

    account : object
    """
    warn_of_seed(estimator.random_state is not None, estimator.ledger)
    if estimator.ledger is None:
        return cost(account)
    # What was charged for a release that failed stays charged: later ones go on from there.
    failed = line.charged
    possible = {stream.version: account, **(failed or {})}
    for before, spent in reversed(possible.items()):
        guarantee, new = cost(spent)
        # Noted beforehand: an interrupt may come between the charge and the next line.
        line.charged = {**possible, version: new}
        try:
            charge_stream(
                estimator,
                guarantee,
                stream=stream.token.hex(),
                version=version_text(version),
                continues=version_text(before),
            )
        except StaleStreamError:  # the ledger has another version
            line.charged = failed
        except ValueError:  # refused
            line.charged = failed
            raise
        else:
            line.charged = {version: new}
            return guarantee, new
    raise StaleStreamError(
        "This copy of the stream is stale: the ledger has another version, because another copy "
        "continued the stream or failed after its charge. Nothing was charged; call fit to start "
        "afresh."
    )


def has_begun(estimator):
    """Whether there is a stream for `partial_fit` to continue."""
    return "_stream" in vars(estimator)


def new_version(version):
    """Return the next version of a stream, which differs from that of any copy."""
    return version[0] + 1, Token.fresh()


def version_text(version):
    """Return the name of a version in a ledger; None before the first update."""
    return f"{version[0]}-{version[1].hex()}" if version[0] else None


class StreamEstimator(_Learner):
    """Base class of estimators that learn from a stream under one guarantee.

    A subclass implements `begin`, which starts the stream from public numbers only. Each call of
    `partial_fit` advances the `StreamRelease`, which requests the charge before it uses the rows.
    This class handles the ledger's entry of the stream, and refuses stale copies and changed
    parameters. A call that fails leaves the old model unchanged.

    Privacy: `learn` may store only public values and results of the release.

    Parameters
    ----------
    epsilon, delta, adjacency, random_state, ledger
        See `PrivateEstimator`.

    Attributes
    ----------
    guarantee_ : Guarantee
        Guarantee of all releases of the stream so far. Public.
    """

    _stream: Stream
    _report_kind = "stream"
    # Sums without noise, or whatever else a release keeps between calls.
    _holds_private_numbers = True

    @abstractmethod
    def begin(self, public):
        """Return the release at the start of the stream.

        Parameters
        ----------
        public : Public
            Public facts; the number of rows or users is that of the first call.

        Returns
        -------
        StreamRelease
        """

    @abstractmethod
    def learn(self, release, fitted):
        """Store the fitted attributes.

        Parameters
        ----------
        release : StreamRelease
            Current state of the stream.

        fitted : dict
            Result of `StreamRelease.advance`, without ``guarantee_``.
        """

    @with_callbacks
    def fit(self, X, y=None, groups=None):
        """Start a new stream and process the rows once, in the given order.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features), or source
            Rows. All rows of a source are read into memory.

        y : array-like of shape (n_samples,) or str, default=None
            Targets, or the name of their column.

        groups : array-like of shape (n_samples,) or str, default=None
            ID of the user who owns each row, for releases that protect users.

        Returns
        -------
        self : object

        Raises
        ------
        ValueError
            If a parameter or the input is invalid.
        BudgetExceededError
            If the charge would exceed the ledger's budget; the old model stays.
        """
        return self._advance(X, y, groups, is_whole=True)

    @with_callbacks
    def partial_fit(self, X, y=None, groups=None):
        """Continue the stream; each record may occur only once.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        y : array-like of shape (n_samples,), default=None

        groups : array-like of shape (n_samples,), default=None
            See `fit`. Pass it in all calls of a stream or in none.

        Returns
        -------
        self : object

        Raises
        ------
        ValueError
            As in `fit`, or if a parameter has changed since the stream began.
        StaleStreamError
            If another copy has continued the stream; `fit` starts a new one.
        BudgetExceededError
            If one more release would exceed the ledger's budget; the old model stays.
        """
        return self._advance(X, y, groups)

    def _advance(self, X, y, groups, *, is_whole=False, **options):
        fresh = is_whole or not has_begun(self)
        context = begun_fit(self)
        line = StreamLine((0, b"")) if fresh else self._stream.line
        # Threads go on one after the other, each from where the last has ended.
        with line.lock, unchanged_on_error(self, fresh=fresh):
            # What a stream began with has been checked then.
            if fresh or not is_untouched(self, self._stream.params):
                check_budget(self)
                self.check_parameters()
            X, y, groups = loaded(X, y, groups, numeric=not is_classifier(self))
            X, targets = self._read(X, y, reset=fresh, counts=groups is None, **options)
            participants = Participants.of(groups, X.shape[0])
            if is_whole and participants is None:
                warn_of_delta(self, X.shape[0])
            if fresh:
                unit = "record" if participants is None else "user"
                classes = self.classes_ if is_classifier(self) else None
                n_units = X.shape[0] if participants is None else participants.users.n_users
                n_units = n_units if self.adjacency == "replace-one" else None
                public = Public(
                    self._target(unit), X.shape[1], n_units, classes, is_sparse=issparse(X)
                )
                stream = Stream.begin(self, self.begin(public))
                if (
                    participants is not None
                    and getattr(stream.release, "participation", None) is None
                ):
                    raise ValueError("groups must be None: this stream protects rows.")
            else:
                stream = self._stream.latest(self, line)
                check_participants(stream.release, participants)
            version, charged = new_version(stream.version), []

            def charge(cost, account=None):
                guarantee, account = charge_release(self, stream, line, version, cost, account)
                charged.append(guarantee)
                return guarantee, account

            given = () if participants is None else (participants,)
            with progress_of(self, context, groups=groups):
                release, fitted = stream.release.advance(X, targets, charge, *given)
            guarantee = fitted.pop("guarantee_")
            if charged != [guarantee]:
                raise ValueError(
                    "advance must charge once, and return the charged guarantee as guarantee_."
                )
            self._stream = replace(stream, release=release, version=version)
            self.guarantee_ = self._stated(guarantee, fresh=fresh)
            self.learn(release, fitted)
            # From here on no other copy may go on, whether this one lives or not.
            StreamLine.of(stream.token, version)
        return self


def check_participants(release, participants):
    """Check that groups are given in all calls or in none, with ids of one kind."""
    participation = getattr(release, "participation", None)
    if (participation is None) != (participants is None):
        before = "had none" if participation is None else "had them"
        raise ValueError(
            "groups must be given in all calls of a stream or in none: earlier calls "
            f"{before}. Call fit to start a new stream."
        )
    if participation is not None:
        participation.check(participants)


_lines: dict[bytes, StreamLine] = {}
_lock = threading.Lock()
if hasattr(os, "register_at_fork"):

    def _free_locks():
        global _lock
        _lock = threading.Lock()
        for line in _lines.values():
            line.lock = threading.RLock()

    # Threads that hold a lock do not come along.
    os.register_at_fork(after_in_child=_free_locks)
