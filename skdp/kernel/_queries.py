"""Noisy answers to a limited number of prediction queries."""

import hashlib
import math
import os
import threading
from dataclasses import replace
from weakref import WeakValueDictionary

import numpy as np
from scipy import sparse

from skdp._random import NoiseSource
from skdp._validation import positive
from skdp.exceptions import BudgetExceededError
from skdp.mechanisms import Lattice
from skdp.privacy import ApproxDP, GaussianDP

__all__ = ["QueryAnswers", "query_guarantee", "query_noise"]

_ROUNDING = 1e-12
_SHORT = 16  # bytes that tell a row from others


def query_noise(guarantee, n_queries):
    """Noise of each of ``n_queries`` answers of sensitivity 1.

    Parameters
    ----------
    guarantee : ApproxDP
        Guarantee of all answers together.

    n_queries : int

    Returns
    -------
    law : {"laplace", "gaussian"}
        Laplace, whose pure budgets add up; or Gaussian, whose squared ratios do, if delta is
        positive and the standard deviation less.

    scale : float
        Of Laplace's density ``exp(-|b| / scale) / (2 scale)``, or the standard deviation.

    References
    ----------
    Dwork, McSherry, Nissim and Smith, "Calibrating noise to sensitivity in private data
    analysis", TCC 2006, theorem 1; Dong, Roth and Su, "Gaussian differential privacy", JRSS-B
    2022, corollary 2.

    Examples
    --------
    >>> from skdp.kernel._queries import query_noise
    >>> from skdp.privacy import ApproxDP
    >>> query_noise(ApproxDP(1.0), 10)[0], query_noise(ApproxDP(1.0, 1e-5), 10)[0]
    ('laplace', 'gaussian')
    """
    if not isinstance(guarantee, ApproxDP):
        raise ValueError(f"guarantee must be an ApproxDP; got {guarantee!r}.")
    positive(epsilon=guarantee.epsilon, n_queries=n_queries)
    laplace = n_queries / guarantee.epsilon * (1 + _ROUNDING)
    if guarantee.delta > 0.0:
        gaussian = math.sqrt(n_queries) / guarantee.gaussian_target().mu * (1 + _ROUNDING)
        if gaussian < math.sqrt(2.0) * laplace:
            return "gaussian", gaussian
    return "laplace", laplace


def query_guarantee(guarantee, n_queries):
    """What all answers together satisfy, for a ledger and for the user.

    Parameters
    ----------
    guarantee : ApproxDP
        As asked for.

    n_queries : int

    Returns
    -------
    ApproxDP
        With the mechanism and, behind it, the law of the noise.
    """
    law, _ = query_noise(guarantee, n_queries)
    units = {"adjacency": guarantee.adjacency, "unit": guarantee.unit}
    refined: ApproxDP | GaussianDP
    if law == "gaussian":
        refined = guarantee.gaussian_target()
        source = "Dong, Roth and Su, JRSS-B 2022, corollary 2"
    else:
        refined = ApproxDP(guarantee.epsilon, **units)
        source = "Dwork, McSherry, Nissim and Smith, TCC 2006, theorem 1"
    mechanism = f"{law.title()} noise on each of {n_queries} predictions"
    return replace(guarantee, refined=refined, mechanism=mechanism, source=source)


class QueryAnswers:
    """Predictions with fresh noise for each row, of which a fixed number is answered.

    Privacy: all answers together satisfy ``guarantee`` towards whoever sees nothing else,
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
    predict : callable
        ``predict(X)`` returns the values at the rows of ``X``. It is called with one row at a
        time, so that no value depends on what else is asked for. It must be picklable.

    bound : float
        Values are projected onto ``[-bound, bound]`` before the noise.

    sensitivity : float
        Largest change of a value between neighbours; after projection it is at most
        ``2 bound`` anyway.

    error : float
        Certified distance of a value from the exact one.

    guarantee : ApproxDP
        Of all answers together.

    n_queries : int
        Number of different rows that are answered.

    secret : bytes
        16 to 64 bytes; the key from which the noise follows, drawn for each fit. Who knows it
        can remove the noise.

    Notes
    -----
    The noise of a row is a keyed hash of the row (BLAKE2b), turned into exact lattice noise.
    To who does not have the key, its bits are as good as those of the operating system.
    """

    def __init__(self, predict, *, bound, sensitivity, error, guarantee, n_queries, secret):
        positive(bound=bound, n_queries=n_queries)
        if n_queries != int(n_queries):
            raise ValueError(f"n_queries must be an integer; got {n_queries!r}.")
        if not isinstance(secret, bytes) or not 16 <= len(secret) <= 64:
            raise ValueError("secret must be 16 to 64 bytes.")
        self.n_queries = int(n_queries)
        self.guarantee = query_guarantee(guarantee, self.n_queries)
        self._predict = predict
        self._bound = float(bound)
        # Projection does not expand distances: neither the sensitivity nor the error grows.
        sensitivity = min(sensitivity, 2.0 * self._bound)
        self._lattice = Lattice.for_sensitivity(sensitivity, size=1, order=1, error=error)
        self._law, scale = query_noise(guarantee, self.n_queries)
        self._scale = scale * self._lattice.sensitivity
        self._secret = secret
        self._function = b""
        self._state = _state_of(os.urandom(_SHORT), {})

    def continued(self, predict, *, function, sensitivity, error):
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
        new._predict = predict
        sensitivity = min(sensitivity, 2.0 * self._bound)
        new._lattice = Lattice.for_sensitivity(sensitivity, size=1, order=1, error=error)
        new._scale = self._scale / self._lattice.sensitivity * new._lattice.sensitivity
        # Another function must have other noise, in copies that went on differently, too: the
        # difference of two answers would be free of it.
        new._function = self._hash(self._function + function, b"function")
        return new

    @property
    def remaining(self):
        """Number of rows that can still be answered besides those answered before."""
        return max(0, self.n_queries - len(self._state.answers))

    def answer(self, X):
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
                    f"The rows hold {len(new)} that were not asked for before, and "
                    f"{self.remaining} of n_queries={self.n_queries} are left; none was answered. "
                    "Rows answered before stay free. For more, fit again with a larger n_queries, "
                    "or release the function, whose predictions are unlimited."
                )
            for i, (key, short) in enumerate(zip(keys, shorts, strict=True)):
                if state.answers.get(short) is None:
                    (value,) = np.clip(self._predict(X[i : i + 1]), -self._bound, self._bound)
                    state.add(short, float(self._lattice.release(value, self._noise(key))))
            return np.array([state.answers[short] for short in shorts])

    def _noise(self, key):
        """Noise of a row in lattice steps, independent between rows."""
        counter = 0

        def words(n):
            nonlocal counter
            blocks = range(counter, counter + -(-n // 8))
            counter = blocks.stop
            stream = b"".join(self._hash(key + i.to_bytes(8, "little"), b"noise") for i in blocks)
            return np.frombuffer(stream, dtype="<u8").astype(np.uint64)[:n]

        source = NoiseSource(words)
        draw = source.laplace if self._law == "laplace" else source.normal
        return draw(1, self._scale / self._lattice.step)[0]

    def _hash(self, message, purpose):
        return hashlib.blake2b(message, key=self._secret, person=purpose).digest()

    def __getstate__(self):
        with self._state.lock:
            return {
                **vars(self),
                "_state": (self._state.pinned().token, dict(self._state.answers)),
            }

    def __setstate__(self, state):
        vars(self).update(state)
        self._state = _state_of(*state["_state"]).pinned()

    def __repr__(self):
        n_answered = len(self._state.answers)
        return f"QueryAnswers(answered={n_answered}, n_queries={self.n_queries})"


class _State:
    """What all copies share: the answers so far, by a hash of the row.

    With the last copy the answers go, and what was pickled can come back: the hashes stay. An
    answer that is asked for again is computed again, with the noise that it had.
    """

    def __init__(self, token):
        self.token, self.lock = token, threading.RLock()
        self.hashes = _pinned.get(token, bytearray())
        parts = range(0, len(self.hashes), _SHORT)
        self.answers: dict[bytes, float | None] = {
            bytes(self.hashes[i : i + _SHORT]): None for i in parts
        }

    def add(self, short, value):
        """Keep an answer, or count a row that was answered elsewhere, if ``value`` is None."""
        if short not in self.answers:
            self.hashes += short
        if self.answers.get(short) is None:
            self.answers[short] = value

    def pinned(self):
        """Make the hashes outlive all copies."""
        _pinned[self.token] = self.hashes
        return self


_states: WeakValueDictionary[bytes, _State] = WeakValueDictionary()
_pinned: dict[bytes, bytearray] = {}  # hashes of rows, one after the other
_states_lock = threading.Lock()


def _state_of(token, answers):
    """State of this process for ``token``, with ``answers`` from another process added."""
    with _states_lock:
        state = _states.get(token)
        if state is None:
            state = _states[token] = _State(token)
    with state.lock:
        for short, value in answers.items():
            state.add(short, value)
    return state


def _canonical_rows(X):
    """Bytes of each row that are the same for all its representations.

    Positions and values of what is not zero; -0 is zero, and so is a stored zero of a sparse row.
    """
    if sparse.issparse(X):
        X = sparse.csr_array(X, dtype=np.float64, copy=True)
        X.sum_duplicates()
        X.eliminate_zeros()
        pairs = (
            (X.indices[start:stop], X.data[start:stop])
            for start, stop in zip(X.indptr[:-1], X.indptr[1:], strict=True)
        )
    else:
        X = np.asarray(X, dtype=np.float64)
        pairs = ((nonzero, row[nonzero]) for row in X for nonzero in [np.flatnonzero(row)])
    width = X.shape[1].to_bytes(8, "little")
    for positions, values in pairs:
        yield width + positions.astype("<i8").tobytes() + values.astype("<f8").tobytes()
