"""What all processes must have in common: public values, their digests, and what differs."""

import dataclasses
import hashlib
import pickle
from collections import Counter
from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np

from skdp._validation import shown

__all__ = ["digest_of", "entries_of", "odd_ones", "processes", "what_differs"]


def digest_of(token: object) -> bytes:
    """SHA-256 of a public value, the same for equal values in all processes."""
    digest = hashlib.sha256()

    def add(value: Any) -> None:
        if hasattr(value, "public_value"):
            value = value.public_value()
        if dataclasses.is_dataclass(value) and not isinstance(value, type):
            fields = dataclasses.fields(value)
            value = (type(value).__qualname__, *(getattr(value, f.name) for f in fields))
        if isinstance(value, np.ndarray):
            kind, shape = value.dtype.kind, value.shape
            plain = {"i": np.int64, "f": np.float64, "b": np.bool_}.get(kind)
            value = value.ravel()
            content = value.tolist() if plain is None else value.astype(plain).tobytes()
            value = (kind, shape, content)
        if isinstance(value, np.generic):
            value = value.item()
        if isinstance(value, dict):
            value = sorted(value.items(), key=lambda item: repr(item[0]))
        if isinstance(value, set | frozenset):
            value = sorted(map(repr, value))
        if isinstance(value, list | tuple):
            digest.update(b"(%d" % len(value))
            for part in value:
                add(part)
        elif value is None or isinstance(value, bool | int | float | str | bytes):
            text = repr(value).encode()
            digest.update(b"%d:" % len(text) + text)
        else:
            data = pickle.dumps(value, protocol=5)
            digest.update(b"p%d:" % len(data) + data)

    add(token)
    return digest.digest()


def entries_of(token: object) -> dict[str, tuple[str, str]] | None:
    """What a mapping holds, as it is shown, and a digest of all of it; None for another token."""
    if not isinstance(token, dict):
        return None
    return {
        str(name): (shown(value), digest_of(value).hex())
        for name, value in sorted(token.items(), key=lambda item: str(item[0]))
    }


def odd_ones(values: Mapping[int, Hashable]) -> tuple[int, list[int]]:
    """A process that holds what most do, and those that hold something else."""
    counts = Counter(values.values())
    usual = max(values, key=lambda r: counts[values[r]])  # the first of them
    return usual, [r for r in values if values[r] != values[usual]]


def processes(ranks: list[int]) -> str:
    """Processes, in words."""
    return f"process {', '.join(map(str, ranks))}"


def what_differs(entries: list[dict[str, Any]]) -> str | None:
    """What is not the same in all processes, in words, by what `entries_of` gives for each."""
    words = []
    for name in dict.fromkeys(name for each in entries for name in each):
        held = {r: each[name] for r, each in enumerate(entries) if name in each}
        usual, differ = odd_ones({r: digest for r, (_, digest) in held.items()})
        if not differ:
            continue
        text, expected = held[differ[0]][0], held[usual][0]
        where = processes([r for r in differ if held[r] == held[differ[0]]])
        if text == expected:  # as far as it is shown
            words.append(f"{name} in {where} is not that of process {usual}, {text}")
        else:
            words.append(f"{name} is {text} in {where} and {expected} in process {usual}")
    return "; ".join(words) or None
