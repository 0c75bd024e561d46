"""Joint start, failure and charge of the processes of a network."""

import hashlib
import os

import numpy as np
from scipy import sparse

from skdp._validation import one_of, short_repr
from skdp.engines import Engine, LocalEngine, MPIEngine

_BLOCK_DIGEST = 4  # numbers of a digest
_LIMIT_LATE = 0.6  # of the messages
_LIMIT_SILENCE = 3  # rounds after which a node that sends nothing is taken to be gone


def engine_of(engine):
    """Engine of a parameter, checked."""
    if isinstance(engine, str):
        one_of(("local", "mpi"), engine=engine)
        return LocalEngine() if engine == "local" else MPIEngine()
    if not isinstance(engine, Engine):
        raise ValueError(f"engine must be 'local', 'mpi' or an Engine; got {short_repr(engine)}.")
    return engine


class Together:
    """Raises in all processes what the block has raised in one, or if their tokens differ."""

    def __init__(self, engine):
        self.engine, self.token = engine, None

    def __enter__(self):
        return self

    def __exit__(self, kind, error, trace):
        if error is None or isinstance(error, Exception):
            self.engine.agree(error, self.token)


def identity_of(ledger):
    """Which ledger it is, if it can be written; None if there is none. Nothing is written."""
    if ledger is None:
        return None
    if ledger.path is None:
        return ledger.identity
    for place in (ledger.path, os.path.dirname(ledger.path)):  # its journal stands beside it
        if not os.access(place, os.W_OK):
            raise PermissionError(f"The ledger {ledger.path} cannot be written.")
    # A copy of the file has the same name, and is charged by nobody else.
    return f"{ledger.identity} {os.stat(ledger.path).st_ino}"


def mixed_with(weights, engine, messages, n_mixings):
    """What each node here makes of its own message and of those that it hears.

    A message that has not come is replaced by the last one of its sender. Who has been silent for
    some rounds counts no more, and its weight goes to the node's own message.

    Parameters
    ----------
    weights : {ndarray, sparse array} of shape (n_nodes_here, n_heard)

    engine : Engine
        Open.

    messages : ndarray of shape (n_nodes_here, width)
        Released.

    n_mixings : int
        Exchanges of a round.

    Returns
    -------
    ndarray of shape (n_nodes_here, width)
    """
    heard = engine.exchange(messages)
    if engine.ages is None or not engine.ages.any():
        return weights @ heard
    if sparse.issparse(weights):
        weights = weights.toarray()
    here, own = np.arange(len(messages)), np.searchsorted(engine.heard, engine.mine)
    heard, weights = heard.copy(), weights.copy()
    gone = engine.ages > _LIMIT_SILENCE * n_mixings
    of_own, total = weights[here, own], weights.sum(axis=1)
    weights[:, gone], heard[gone] = 0.0, 0.0
    weights[here, own] = of_own
    weights[here, own] += total - weights.sum(axis=1)
    # A node has its own message at once.
    late = messages - heard[own]
    return weights @ heard + weights[here, own][:, np.newaxis] * late


def mostly_late(engine, n_mixings):
    """Whether most messages of the last exchange, of nodes that are not gone, were late."""
    if engine.ages is None:
        return False
    there = engine.ages <= _LIMIT_SILENCE * n_mixings
    return bool(np.count_nonzero(engine.ages[there]) > _LIMIT_LATE * np.count_nonzero(there))


def is_first_with(identity, engine):
    """Whether this process is the first of those that share its ledger, and pays for them."""
    if not engine.is_distributed:
        return True
    own = np.zeros(_BLOCK_DIGEST, dtype=np.int64)
    if identity is not None and engine.shares_ledgers:
        own[:] = np.frombuffer(hashlib.sha256(identity.encode()).digest(), dtype=np.int64)
    everyone = engine.collect(np.tile(own, (len(engine.mine), 1)))
    if not engine.shares_ledgers:
        return True
    sharing = np.flatnonzero((everyone == own).all(axis=1))
    # Of a fit that goes on, others may have heard of another ledger.
    return not len(sharing) or bool(sharing[0] == engine.mine[0])
