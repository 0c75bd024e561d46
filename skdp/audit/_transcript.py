"""What is released, with the private numbers behind it, for whoever checks a promise."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pickle import PicklingError
from typing import Any

import numpy as np

from skdp._recording import Released, released_values

__all__ = ["Transcript", "listening", "recording"]


class Transcript(Sequence):
    """Releases in their order, as `recording` noted them.

    Each is a :class:`~skdp.mechanisms.Released`: the value as it was computed, the sensitivity
    that was declared, the law of the noise with its guarantee, its scale and lattice, what was
    released, and where in the code. The values are private, and so is the transcript: it shows
    none of them as text, and cannot be pickled.
    """

    def __init__(self) -> None:
        self._records: list[Any] = []

    def __getitem__(self, place: Any) -> Any:
        return self._records[place]

    def __len__(self) -> int:
        return len(self._records)

    def append(self, record: Any) -> None:
        """Add a record, with copies of its arrays: the code may go on writing to them."""
        if isinstance(record, Released):
            asked, released = np.array(record.asked), np.array(record.released)
            record = replace(record, asked=asked, released=released)
        self._records.append(record)

    def __repr__(self) -> str:
        return f"<Transcript of {len(self)} releases>"

    def __reduce__(self) -> Any:
        raise PicklingError("A transcript holds private values and must not leave its process.")


@contextmanager
def listening(listener: Callable[[Any], Any]) -> Iterator[None]:
    """Let ``listener`` hear of each release; what it returns, if not None, goes on instead."""
    token = released_values.set(listener)
    try:
        yield
    finally:
        released_values.reset(token)


@contextmanager
def recording() -> Iterator[Transcript]:
    """Record every release within the block, with the private value behind it.

    Privacy: none. Whoever holds the transcript holds exact values of the data. A model that is
    fitted under it says so in the caveats of its ``guarantee_``, and cannot be pickled.

    Only releases of this thread and this process are recorded: none of workers (``n_jobs``), and
    each process of an MPI job records its own nodes.

    Yields
    ------
    Transcript

    Examples
    --------
    >>> from skdp.audit import recording
    >>> from skdp.mechanisms import laplace_mechanism
    >>> from skdp.privacy import ApproxDP
    >>> with recording() as transcript:
    ...     told = laplace_mechanism([3.0], l1_sensitivity=1.0, guarantee=ApproxDP(0.5))
    >>> len(transcript), transcript[0].law.kind, transcript[0].sensitivity
    (1, 'laplace', 1.0)
    """
    transcript, outer = Transcript(), released_values.get()

    def listener(record: Any) -> Any:
        transcript.append(record)
        return None if outer is None else outer(record)

    with listening(listener):
        yield transcript
