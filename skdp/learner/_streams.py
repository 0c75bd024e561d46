"""Which copy of a stream may go on, with which parameters, and what its ledger has of it."""

import os
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from skdp._validation import plain, shown
from skdp.exceptions import StaleStreamError
from skdp.learner._budget import charge_stream, parameter_names, warn_of_seed
from skdp.learner._protocol import StreamRelease

__all__ = [
    "Stream",
    "StreamLine",
    "charge_release",
    "check_unchanged",
    "frozen_params",
    "has_begun",
    "is_untouched",
    "new_version",
    "version_text",
]


class StreamLine:
    """What a process remembers of one stream, for all its copies and for as long as it lives.

    Privacy: only the latest version may go on. Two copies that go on with rows of their own would
    be two streams, and together cost more than their account knows, also if the one that went on
    first is gone since. A line holds public numbers and no model.

    Parameters
    ----------
    version : (int, bytes)
        How often the stream has gone on, and what tells this time from others.

    Attributes
    ----------
    charged : dict or None
        Where a release failed after its charge: versions that the ledger may have of the stream,
        oldest first, and the account that belongs to each.
    """

    __slots__ = ("charged", "lock", "version")

    def __init__(self, version):
        self.version, self.lock = version, threading.RLock()
        self.charged: dict[tuple[int, bytes], Any] | None = None

    @classmethod
    def of(cls, token, version):
        """Return the line of a token, which learns of a version.

        A later one went on in another process and is back; of two that went on as often, the
        first to be met stays.
        """
        with _lock:
            line = _lines.get(token)
            if line is None:
                line = _lines[token] = cls(version)
            elif version[0] > line.version[0]:
                line.version, line.charged = version, None
        return line

    def remember(self, version, charged):
        """Take up from a pickle what the ledger may have."""
        if charged and version == self.version:
            self.charged = {**charged, **(self.charged or {})}

    def check(self, version):
        """Refuse to go on with a version that is not the latest."""
        if version != self.version:
            raise StaleStreamError(
                "This copy of the stream is stale: another one has gone on. Two streams from "
                "one would cost more than is accounted for; call fit to start afresh."
            )


@dataclass(frozen=True)
class Stream:
    """What an estimator keeps of a stream between calls; it is replaced whole, never changed.

    Parameters
    ----------
    params : dict
        Of the estimator, with which the stream began.

    token : bytes
        Tells the stream from others.

    release : StreamRelease
        Where it stands.

    version : (int, bytes)
        How often it has gone on, and what tells this time from others.
    """

    params: dict[str, Any] = field(repr=False)
    token: bytes = field(repr=False)
    release: StreamRelease
    version: tuple[int, bytes] = (0, b"")

    @classmethod
    def begin(cls, estimator, release):
        """Begin a stream with the parameters of now."""
        return cls(frozen_params(estimator), os.urandom(16), release)

    @property
    def line(self):
        """What this process remembers of the stream and its copies."""
        return StreamLine.of(self.token, self.version)

    def latest(self, estimator, line):
        """Return this, if it may go on, with the parameters of now."""
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
    """Let the ledger's one entry of a stream cover the coming release.

    Parameters
    ----------
    estimator : estimator

    stream : Stream
        As it stands before the release.

    line : StreamLine

    version : (int, bytes)
        Of the stream after the release.

    cost : callable
        ``cost(account)`` returns the guarantee of all releases, the coming one included, and
        the new account.

    account : object, default=None
        Of the releases so far, where there is one.

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
        "This copy of the stream is stale: the ledger has another version, since another copy "
        "has gone on, or failed after it was charged. Nothing was charged; call fit to start "
        "afresh."
    )


def has_begun(estimator):
    """Whether there is a stream for `partial_fit` to go on with."""
    return "_stream" in vars(estimator)


def new_version(version):
    """Version of a stream that goes on, unlike that of any copy."""
    return version[0] + 1, os.urandom(16)


def version_text(version):
    """Name of a version in a ledger; None before the first."""
    return f"{version[0]}-{version[1].hex()}" if version[0] else None


def frozen_params(estimator):
    """Copy the parameters, such that they compare by their values."""
    names = parameter_names(estimator)
    return {name: _frozen(getattr(estimator, name)) for name in names}


def check_unchanged(estimator, params):
    """Refuse to go on with a stream that began with other ``params``."""
    for name, before in params.items():
        if _is_same(getattr(estimator, name), before):
            continue
        now = _frozen(getattr(estimator, name))
        if now is not before and now != before:
            raise ValueError(
                f"{name} must not change within a stream, it was {shown(before)}; call fit to "
                f"start another one; got {shown(getattr(estimator, name))}."
            )


def is_untouched(estimator, params):
    """Whether every parameter is as it was, type and all, so that each has been checked before.

    False says nothing: a list, an array or a number of another type may be equal.
    """
    return all(_is_same(getattr(estimator, name), before) for name, before in params.items())


def _is_same(value, before):
    if value is before:
        return True
    if type(value) is not type(before):
        return False
    if type(value) is tuple:
        return len(value) == len(before) and all(map(_is_same, value, before))
    return type(value) in _PLAIN and value == before


def _frozen(value):
    if type(value) is tuple and all(type(item) in _PLAIN for item in value):
        return value
    value = plain(value)
    if type(value) in _PLAIN:
        return value
    if hasattr(value, "toarray"):
        value = value.toarray()
    # Whatever holds numbers may hold others later.
    if isinstance(value, Sequence) or hasattr(value, "__array__"):
        return tuple(np.asarray(value).ravel().tolist())
    return value


_PLAIN = (bool, int, float, str)
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
