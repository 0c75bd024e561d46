"""Random words: of the operating system, or of a seed."""

import os
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

__all__ = ["SeededWords", "check_random_state", "seed_sequence", "system_words"]

_LONG = 512  # words from which a cipher is worth its start


def system_words(n: int) -> np.ndarray:
    """Words of the operating system."""
    # No state is kept: a forked worker could otherwise repeat its parent's noise.
    stream = key_stream() if n >= _LONG else None
    data = os.urandom(8 * n) if stream is None else stream(8 * n)
    return np.frombuffer(data, dtype=np.uint64)


@cache
def key_stream() -> Callable[[int], bytes] | None:
    """AES-256 in counter mode under a new key of the system each time: ten times its speed."""
    try:
        from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
    except ImportError:
        return None

    def stream(n_bytes: int) -> bytes:
        cipher = Cipher(algorithms.AES(os.urandom(32)), modes.CTR(os.urandom(16)))
        return cipher.encryptor().update(bytes(n_bytes))

    return stream


def seed_sequence(random_state: Any) -> np.random.SeedSequence:
    """Turn an int, RandomState or Generator into a seed without numpy's global state.

    Parameters
    ----------
    random_state : int, RandomState or Generator
        An instance is advanced, so that two calls differ.

    Returns
    -------
    SeedSequence
    """
    if isinstance(random_state, np.random.Generator):
        return np.random.SeedSequence(random_state.integers(2**63, size=4).tolist())
    if isinstance(random_state, np.random.RandomState):
        return np.random.SeedSequence(random_state.randint(2**31 - 1, size=8).tolist())
    if random_state is None:
        raise ValueError("random_state must not be None where a seed is asked for; got None.")
    check_random_state(random_state)
    return np.random.SeedSequence(int(random_state))


def check_random_state(random_state: Any) -> None:
    """Check what `noise_source` takes from users, without advancing a generator.

    Parameters
    ----------
    random_state : None, int, RandomState or Generator
    """
    if random_state is None or isinstance(
        random_state, np.random.Generator | np.random.RandomState
    ):
        return
    is_int = isinstance(random_state, int | np.integer) and not isinstance(random_state, bool)
    if not is_int or random_state < 0:
        raise ValueError(
            "random_state must be None, a non-negative int, a RandomState or a Generator; "
            f"got {random_state!r:.80}."
        )


class SeededWords:
    """Words of a generator; unlike a closure it can be pickled, and goes on where it was."""

    def __init__(self, bits: np.random.PCG64) -> None:
        self._bits = bits

    def __call__(self, n: int) -> np.ndarray:
        return np.atleast_1d(self._bits.random_raw(n))
