"""One thread of BLAS, for a while."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock
from typing import Any

from threadpoolctl import threadpool_limits

__all__ = ["one_blas_thread"]

_lock = Lock()
_held: list[Any] = []  # the limit, once for each thread of Python that is inside
if hasattr(os, "register_at_fork"):
    # A thread that holds the lock does not come along: no child is made meanwhile.
    os.register_at_fork(
        before=_lock.acquire, after_in_parent=_lock.release, after_in_child=_lock.release
    )


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Leave BLAS one thread within a block, and what it had before after the last one.

    The number belongs to the process. Blocks in several threads of Python may overlap: the first
    sets the limit, and the last takes it back.
    """
    with _lock:
        _held.append(_held[0] if _held else threadpool_limits(1, user_api="blas"))
    try:
        yield
    finally:
        with _lock:
            limit = _held.pop()
            if not _held:
                limit.restore_original_limits()
