"""Comparison of public values between processes, and checkpoints to resume a killed fit."""

import dataclasses
import hashlib
import io
import json
import math
import os
import pickle
import time
from collections import Counter
from collections.abc import Callable, Hashable, Mapping
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from skdp._validation import short_repr
from skdp.engines._local import Engine

_PAUSE = 0.02  # seconds between looks at a lock


def digest_of(token: object) -> bytes:
    """SHA-256 of a public value, the same for equal values in all processes."""
    return hashlib.sha256(repr(_comparable(token)).encode()).digest()


def _comparable(value: Any) -> Any:
    """Lists of texts, the same for equal values."""
    if hasattr(value, "public_value"):
        value = value.public_value()
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = dataclasses.fields(value)
        value = (type(value).__qualname__, *(getattr(value, f.name) for f in fields))
    if isinstance(value, np.ndarray):
        plain = {"i": np.int64, "f": np.float64, "b": np.bool_}.get(value.dtype.kind)
        flat = value.ravel()
        content = flat.tolist() if plain is None else flat.astype(plain).tobytes()
        value = (value.dtype.kind, value.shape, content)
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, dict):
        value = sorted(value.items(), key=lambda item: repr(item[0]))
    if isinstance(value, set | frozenset):
        return sorted(map(repr, value))
    if isinstance(value, list | tuple):
        return list(map(_comparable, value))
    if not isinstance(value, None | bool | int | float | str | bytes):
        value = pickle.dumps(value, protocol=5)
    # Arrays may be large.
    return hashlib.sha256(value).hexdigest() if isinstance(value, bytes) else repr(value)


def entries_of(token: object) -> dict[str, tuple[str, str]] | None:
    """What a mapping holds, as it is shown, and a digest of all of it; None for another token."""
    if not isinstance(token, dict):
        return None
    return {
        str(name): (short_repr(value), digest_of(value).hex())
        for name, value in sorted(token.items(), key=lambda item: str(item[0]))
    }


def odd_ones(values: Mapping[int, Hashable]) -> tuple[int, list[int]]:
    """A process that holds what most do, and those that hold something else."""
    counts = Counter(values.values())
    usual = max(values, key=lambda r: counts[values[r]])  # the first of them
    return usual, [r for r in values if values[r] != values[usual]]


def processes(ranks: list[int], kind: str = "process") -> str:
    """Processes, in words."""
    return f"{kind} {', '.join(map(str, ranks))}"


def what_differs(
    entries: list[dict[str, Any]], kind: str = "process", at: str = "in"
) -> str | None:
    """What is not the same in all processes, in words, by what `entries_of` gives for each."""
    words = []
    for name in dict.fromkeys(name for each in entries for name in each):
        held = {r: each[name] for r, each in enumerate(entries) if name in each}
        usual, differ = odd_ones({r: digest for r, (_, digest) in held.items()})
        if not differ:
            continue
        text, expected = held[differ[0]][0], held[usual][0]
        where = processes([r for r in differ if held[r] == held[differ[0]]], kind)
        if text == expected:  # as far as it is shown
            words.append(f"{name} {at} {where} is not that of {kind} {usual}, {text}")
        else:
            words.append(f"{name} is {text} {at} {where} and {expected} {at} {kind} {usual}")
    return "; ".join(words) or None


class SiteLog:
    """What a site keeps between messages: results of steps, its own messages, and a key.

    Privacy: results are released or public, or masked; own messages are what was sent. The key is
    private: with it and the results, masks can be taken from this site's own messages.

    A folder is of one holder at a time, who waits for another one. It is read when it is opened.

    Parameters
    ----------
    folder : path-like, default=None
        Where it is kept, so that a site that was killed goes on; None keeps it in ``entries``.

    patience : float, default=inf
        Seconds to wait for another holder.

    Raises
    ------
    ValueError
        If another one holds it for longer.
    """

    def __init__(self, folder: Any = None, *, patience: float = math.inf) -> None:
        self.entries = dict[str, bytes]()
        self.folder = None if folder is None else Path(folder)
        self._held: int | None = None
        if self.folder is None:
            return
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._held = os.open(self.folder / "lock", os.O_RDWR | os.O_CREAT, 0o600)
        until = time.monotonic() + patience
        while not _is_locked(self._held):
            if time.monotonic() > until:
                self.close()
                raise ValueError(
                    "checkpoint must be a folder that no other running fit uses; got "
                    f"{str(folder)!r}."
                )
            time.sleep(_PAUSE)
        for path in self.folder.iterdir():
            if path.suffix == ".step":
                self.entries[path.stem] = path.read_bytes()

    def close(self) -> None:
        """Let others hold the folder."""
        if self._held is not None:
            os.close(self._held)
            self._held = None

    def put(self, name: str, value: bytes) -> bytes:
        """Keep something, on disk before this returns."""
        self.entries[name] = value
        if self.folder is not None:
            draft = self.folder / f"{name}.draft"
            with open(draft, "wb", opener=_private) as file:
                file.write(value)
                file.flush()
                os.fsync(file.fileno())
            draft.replace(self.folder / f"{name}.step")
            self._sync()
        return value

    def _sync(self) -> None:
        """Names of files are on disk, in the order in which they were made."""
        if os.name == "posix":
            directory = os.open(str(self.folder), os.O_RDONLY)
            os.fsync(directory)
            os.close(directory)

    def drop(self, name: str) -> None:
        """Forget what was kept under a name."""
        del self.entries[name]
        if self.folder is not None:
            (self.folder / f"{name}.step").unlink()

    def get(self, name: str) -> bytes | None:
        """What was kept under a name."""
        return self.entries.get(name)

    def clear(self) -> None:
        """Forget everything."""
        for name in list(self.entries):
            self.drop(name)

    def _count(self, what: str) -> int:
        count = 0
        while f"{what}-{count}" in self.entries:
            count += 1
        return count

    @property
    def n_results(self) -> int:
        """Steps whose results are known, from the first on."""
        return self._count("result")

    @property
    def n_own(self) -> int:
        """Steps whose messages of this site are known, from the first on."""
        return self._count("own")

    def result(self, step: int) -> list[bytes | None]:
        """Message of each node at a step; None of those that did not send any."""
        return unpacked(self.entries[f"result-{step}"])


def _is_locked(file: int) -> bool:
    """Whether a file is locked now, until it is closed."""
    try:
        import fcntl
    except ImportError:  # not there on Windows, which has one of its own
        import msvcrt

        lock = partial(msvcrt.locking, file, msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined]
    else:
        lock = partial(fcntl.flock, file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    try:
        lock()
    except OSError:
        return False
    return True


def _private(path: Any, flags: int) -> int:
    return os.open(path, flags, 0o600)


def packed(messages: list[bytes | None]) -> bytes:
    """Messages of all nodes as one."""
    lengths = [-1 if one is None else len(one) for one in messages]
    head = json.dumps(lengths).encode()
    parts = [len(head).to_bytes(8, "big"), head, *(one for one in messages if one is not None)]
    return b"".join(parts)


def unpacked(text: bytes) -> list[bytes | None]:
    """Inverse of `packed`."""
    start = 8 + int.from_bytes(text[:8], "big")
    found = list[bytes | None]()
    for length in json.loads(text[8:start]):
        if length < 0:
            found.append(None)
        else:
            found.append(text[start : start + length])
            start += length
    return found


def as_bytes(values: np.ndarray) -> bytes:
    """An array as `as_array` reads it."""
    body = io.BytesIO()
    np.save(body, np.ascontiguousarray(values), allow_pickle=False)
    return body.getvalue()


def as_array(text: bytes) -> np.ndarray:
    """Inverse of `as_bytes`."""
    return np.load(io.BytesIO(text), allow_pickle=False)


class KeepingEngine(Engine):
    """Engine with a log of this fit, or without one.

    Privacy: noise of a release is drawn once. It is in the log before anything of it is sent, and
    a fit that runs again takes it from there.

    Attributes
    ----------
    log : SiteLog or None
    """

    log: SiteLog | None = None
    _n_drawn = 0
    _about: Mapping[str, bytes] = MappingProxyType({})

    def _begin(self) -> None:
        """Start at the first step of a fit."""
        self._n_drawn = 0

    @property
    def is_resumed(self) -> bool:  # type: ignore[override]
        """See `Engine`."""
        return self.log is not None

    def has_charged(self, ledger: str | None) -> bool:
        """See `Engine.has_charged`."""
        return self.log is not None and self.log.get("charged") == str(ledger).encode()

    def charged(self, ledger: str | None) -> None:
        """See `Engine.charged`."""
        if self.log is not None:
            for name, digest in self._about.items():
                self.log.put(name, digest)
            self.log.put("charged", str(ledger).encode())

    def secret(self) -> bytes:
        """See `Engine.secret`."""
        if self.log is None:
            return super().secret()
        return self.log.get("key") or self.log.put("key", super().secret())

    def once(self, draw: Callable[[], np.ndarray], *, again: bool = False) -> np.ndarray:
        """See `Engine.once`."""
        if self.log is None:
            return super().once(draw, again=again)
        name, self._n_drawn = f"drawn-{self._n_drawn}", self._n_drawn + 1
        kept = self.log.get(name)
        if kept is None:
            kept = self.log.put(name, as_bytes(draw()))
        elif again:
            draw()
        return as_array(kept)

    def _check_is_same(self, token: object) -> None:
        """Refuse a log of another fit, by what is public of it."""
        if self.log is None or not isinstance(token, dict):
            return
        self._about = {f"of-{digest_of(n).hex()[:16]}": digest_of(v) for n, v in token.items()}
        for (entry, digest), (name, value) in zip(self._about.items(), token.items(), strict=True):
            if self.log.get(entry) not in (None, digest):
                raise ValueError(
                    "checkpoint must be the folder of this fit, or an empty one; got a fit "
                    f"with another {name}, which is {short_repr(value)} here."
                )
