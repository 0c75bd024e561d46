"""Noisy answers to a limited number of prediction queries.

To check the claim: this file, and the bound of whoever has the values answered.
"""

import hashlib
import os
import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Self
from weakref import WeakValueDictionary

import numpy as np
from scipy import sparse

from skdp._facts import note
from skdp._random._source import NoiseSource
from skdp._validation import plain_arguments, positive, positive_int
from skdp.exceptions import BudgetExceededError
from skdp.mechanisms import Lattice, NoiseLaw, release
from skdp.privacy import ApproxDP

__all__ = ["QueryAnswers", "QueryPlan"]

_SHORT = 16  # bytes that tell a row from others
_SOURCES = {
    "laplace": "Dwork, McSherry, Nissim and Smith, TCC 2006, theorem 1",
    "gaussian": "Dong, Roth and Su, JRSS-B 2022, corollary 2",
}

_ANSWER = "answer to a query, of which there are at most so many"


@dataclass(frozen=True)
class QueryPlan:
    """What is public of a limited number of answers: their noise and their guarantee.

    Parameters
    ----------
    law : NoiseLaw
        Of each answer, with what one answer alone satisfies.

    guarantee : ApproxDP
        What all answers together satisfy, for a ledger and for the user.

    n_queries : int

    bound : float
        Values are projected onto ``[-bound, bound]`` before the noise.

    References
    ----------
    Dwork, McSherry, Nissim and Smith, "Calibrating noise to sensitivity in private data
    analysis", TCC 2006, theorem 1; Dong, Roth and Su, "Gaussian differential privacy", JRSS-B
    2022, corollary 2.
    """

    law: NoiseLaw
    guarantee: ApproxDP
    n_queries: int
    bound: float = 1.0

    @classmethod
    @plain_arguments
    def plan(cls, target: ApproxDP, *, n_queries: int, bound: float = 1.0) -> Self:
        """Take the quieter noise with which all answers together meet a target.

        Parameters
        ----------
        target : ApproxDP

        n_queries : int
            Number of different rows that are answered.

        bound : float, default=1.0

        Returns
        -------
        QueryPlan
            With Laplace noise, whose pure budgets add up; or with Gaussian noise, whose squared
            ratios do, if delta is positive and the standard deviation less.

        Examples
        --------
        >>> from skdp.privacy import ApproxDP
        >>> from skdp.kernel._queries import QueryPlan
        >>> QueryPlan.plan(ApproxDP(1.0), n_queries=10).law.kind
        'laplace'
        >>> QueryPlan.plan(ApproxDP(1.0, 1e-5), n_queries=10).law.kind
        'gaussian'
        """
        positive(bound=bound)
        positive_int(n_queries=n_queries)
        together = NoiseLaw.of("laplace", target)
        each = together.repeated(n_queries)
        if target.delta > 0.0:
            gaussian = NoiseLaw.of("gaussian", target)
            if gaussian.repeated(n_queries).level(1) < each.level(1):
                together, each = gaussian, gaussian.repeated(n_queries)
        guarantee = replace(
            target,
            refined=together.guarantee,
            mechanism=f"{each.kind.title()} noise on each of {n_queries} predictions",
            source=_SOURCES[each.kind],
        )
        return cls(each, guarantee, int(n_queries), float(bound))

    def change(self, sensitivity: float, error: float) -> dict[str, Any]:
        """How far neighbours move an answer, for `release`, with the lattice of answers."""
        # Projection expands neither a distance nor an error, and leaves `2 bound` at most.
        sensitivity = min(sensitivity, 2.0 * self.bound)
        lattice = Lattice.for_sensitivity(sensitivity, size=1, order=self.law.order, error=error)
        return dict(sensitivity=sensitivity, error=error, lattice=lattice)


class QueryAnswers:
    """Predictions with fresh noise for each row, of which a fixed number is answered.

    Privacy: all answers together satisfy ``plan.guarantee`` towards whoever sees nothing else,
    provided that two neighbouring data sets move an exact, projected prediction by at most
    ``sensitivity``. Each new row is charged, however it was chosen. A row that comes again is
    answered as before, bit by bit, and costs nothing. Which rows are refused depends on the
    rows asked for and on nothing else.

    One noise for all rows would not do: the difference of two answers would be exact.

    The object holds what ``predict`` needs, which is the training data, and the key of the noise.
    Its copies and pickles hold as much and belong to the curator alone. Within one process all
    copies, unpickled ones too, draw on one budget. Another process, forked or given a pickle, goes
    on from the count at that time: several processes that answer have a count each, and together
    spend as many budgets on different rows. They add the same noise to the same row.

    Parameters
    ----------
    plan : QueryPlan

    predict : callable
        ``predict(X)`` returns the values at the rows of ``X``. It is called with one row at a
        time, so that no value depends on what else is asked for. It must be picklable.

    sensitivity : float
        Largest change of a value between neighbours; after projection it is at most
        ``2 plan.bound`` anyway.

    error : float
        Certified distance of a value from the exact one.

    secret : bytes
        16 to 64 bytes; the key from which the noise follows, drawn for each fit. Who knows it
        can remove the noise.

    Notes
    -----
    The noise of a row is a keyed hash of the row (BLAKE2b), turned into exact lattice noise.
    To who does not have the key, its bits are as good as those of the operating system.
    """

    def __init__(
        self,
        plan: QueryPlan,
        predict: Callable[[Any], np.ndarray],
        *,
        sensitivity: float,
        error: float,
        secret: bytes,
    ):
        if not isinstance(secret, bytes) or not 16 <= len(secret) <= 64:
            raise ValueError("secret must be 16 to 64 bytes.")
        self.plan = plan
        self._predict, self._change = predict, plan.change(sensitivity, error)
        lattice, law = self._change["lattice"], plan.law
        bounds = dict(
            scale=law.scale * lattice.sensitivity, sensitivity=self._change["sensitivity"]
        )
        # Answers are given later; all of them are paid for now.
        note(_ANSWER, law.kind, 1, law, times=plan.n_queries, **bounds)
        self._secret = secret
        self._function = b""
        self._state = _state_of(os.urandom(_SHORT), {})

    def continued(
        self,
        predict: Callable[[Any], np.ndarray],
        *,
        function: bytes,
        sensitivity: float,
        error: float,
    ) -> "QueryAnswers":
        """Answers by another function of a stream that went on, from the same count of queries.

        Privacy: every answer, by whichever function, has noise for one of ``n_queries``; rows are
        new to the new function.

        Parameters
        ----------
        predict, sensitivity, error
            Of the new function, as for the class.

        function : bytes
            What tells the new function from all others, such as a fresh random number.

        Returns
        -------
        QueryAnswers
        """
        new = object.__new__(type(self))
        vars(new).update(vars(self))
        new._predict, new._change = predict, self.plan.change(sensitivity, error)
        # Another function must have other noise, in copies that went on differently, too: the
        # difference of two answers would be free of it.
        new._function = self._hash(self._function + function, b"function")
        return new

    @property
    def attributes(self) -> dict[str, Any]:
        """What is public of a fitted estimator: nothing but its answers."""
        return {}

    @property
    def remaining(self) -> int:
        """Number of rows that can still be answered besides those answered before."""
        return max(0, self.plan.n_queries - len(self._state.answers))

    def answer(self, X: Any) -> np.ndarray:
        """Answer each row.

        Parameters
        ----------
        X : {ndarray, CSR matrix or array} of shape (n_rows, n_features), of float64
            Finite values.

        Returns
        -------
        ndarray of shape (n_rows,)

        Raises
        ------
        BudgetExceededError
            If more rows are new than are left. None is answered, and none is charged.
        """
        keys = [self._hash(self._function + row, b"row") for row in _canonical_rows(X)]
        shorts = [key[:_SHORT] for key in keys]
        state = self._state
        with state.lock:
            new = dict.fromkeys(short for short in shorts if short not in state.answers)
            if len(new) > self.remaining:
                raise BudgetExceededError(
                    f"Asked: answers for {len(new)} new rows. Left: {self.remaining} of "
                    f"n_queries={self.plan.n_queries}. Ask for fewer, as rows answered before "
                    "stay free, fit again with a larger n_queries, or release the function, whose "
                    "predictions are unlimited. None was answered."
                )
            for i, (key, short) in enumerate(zip(keys, shorts, strict=True)):
                if state.answers.get(short) is None:
                    state.add(short, self._released(X[i : i + 1], key))
            return np.array([state.answers[short] for short in shorts])

    def _released(self, row: Any, key: bytes) -> float:
        """Answer one row: project, round to the lattice, add the noise of the row."""
        value = np.clip(self._predict(row), -self.plan.bound, self.plan.bound)
        noise = self._noise(key)
        law = self.plan.law
        (noisy,) = release(value, law=law, random_state=noise, purpose=_ANSWER, **self._change)
        return float(noisy)

    def _noise(self, key: bytes) -> NoiseSource:
        """Noise of a row, independent of that of other rows."""
        counter = 0

        def words(n: int) -> np.ndarray:
            nonlocal counter
            blocks = range(counter, counter + -(-n // 8))
            counter = blocks.stop
            stream = b"".join(self._hash(key + i.to_bytes(8, "little"), b"noise") for i in blocks)
            return np.frombuffer(stream, dtype="<u8").astype(np.uint64)[:n]

        return NoiseSource(words)

    def _hash(self, message: bytes, purpose: bytes) -> bytes:
        return hashlib.blake2b(message, key=self._secret, person=purpose).digest()

    def __getstate__(self) -> dict[str, Any]:
        with self._state.lock:
            return {
                **vars(self),
                "_state": (self._state.pinned().token, dict(self._state.answers)),
            }

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._state = _state_of(*state["_state"]).pinned()

    def __repr__(self) -> str:
        n_answered = len(self._state.answers)
        return f"QueryAnswers(answered={n_answered}, n_queries={self.plan.n_queries})"


class _State:
    """What all copies share: the answers so far, by a hash of the row.

    With the last copy the answers go, and what was pickled can come back: the hashes stay. An
    answer that is asked for again is computed again, with the noise that it had.
    """

    def __init__(self, token: bytes):
        self.token, self.lock = token, threading.RLock()
        self.hashes = _pinned.get(token, bytearray())
        parts = range(0, len(self.hashes), _SHORT)
        self.answers: dict[bytes, float | None] = {
            bytes(self.hashes[i : i + _SHORT]): None for i in parts
        }

    def add(self, short: bytes, value: float | None) -> None:
        """Keep an answer, or count a row that was answered elsewhere, if ``value`` is None."""
        if short not in self.answers:
            self.hashes += short
        if self.answers.get(short) is None:
            self.answers[short] = value

    def pinned(self) -> "_State":
        """Make the hashes outlive all copies."""
        _pinned[self.token] = self.hashes
        return self


_states: WeakValueDictionary[bytes, _State] = WeakValueDictionary()
_pinned: dict[bytes, bytearray] = {}  # hashes of rows, one after the other
_states_lock = threading.Lock()


def _state_of(token: bytes, answers: dict[bytes, float | None]) -> _State:
    """State of this process for ``token``, with ``answers`` from another process added."""
    with _states_lock:
        state = _states.get(token)
        if state is None:
            state = _states[token] = _State(token)
    with state.lock:
        for short, value in answers.items():
            state.add(short, value)
    return state


def _canonical_rows(X: Any) -> Iterator[bytes]:
    """Bytes of each row that are the same for all its representations.

    Positions and values of what is not zero; -0 is zero, and so is a stored zero of a sparse row.
    """
    if sparse.issparse(X):
        X = sparse.csr_array(X, dtype=np.float64, copy=True)
        X.sum_duplicates()
        X.eliminate_zeros()
        pairs: Iterable = (
            (X.indices[start:stop], X.data[start:stop])
            for start, stop in zip(X.indptr[:-1], X.indptr[1:], strict=True)
        )
    else:
        X = np.asarray(X, dtype=np.float64)
        pairs = ((nonzero, row[nonzero]) for row in X for nonzero in [np.flatnonzero(row)])
    width = X.shape[1].to_bytes(8, "little")
    for positions, values in pairs:
        yield width + positions.astype("<i8").tobytes() + values.astype("<f8").tobytes()
