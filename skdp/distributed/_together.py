"""What the processes of a network do together: they begin, fail and pay as one."""

import hashlib
import os

import numpy as np

from skdp._validation import one_of, short_repr
from skdp.engines import LocalEngine, MPIEngine

_BLOCK_DIGEST = 4  # numbers of a digest


def engine_of(engine):
    """Engine of a parameter, checked."""
    if isinstance(engine, str):
        one_of(("local", "mpi"), engine=engine)
        return LocalEngine() if engine == "local" else MPIEngine()
    if not hasattr(engine, "exchange"):
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


def asked(ledger, guarantee, *, has_charged=False):
    """Raise what the charge would raise; otherwise, which ledger it is. Nothing is written."""
    if ledger is None:
        return None
    if not has_charged:
        ledger.check(guarantee)
    if ledger.path is None:
        return ledger.identity
    for place in (ledger.path, os.path.dirname(ledger.path)):  # its journal stands beside it
        if not os.access(place, os.W_OK):
            raise PermissionError(f"The ledger {ledger.path} cannot be written.")
    # A copy of the file has the same name, and is charged by nobody else.
    return f"{ledger.identity} {os.stat(ledger.path).st_ino}"


def is_first_with(identity, engine):
    """Whether this process is the first of those that share its ledger, and pays for them."""
    if not engine.is_distributed:
        return True
    own = np.zeros(_BLOCK_DIGEST, dtype=np.int64)
    if identity is not None:
        own[:] = np.frombuffer(hashlib.sha256(identity.encode()).digest(), dtype=np.int64)
    everyone = engine.collect(np.tile(own, (len(engine.mine), 1)))
    first = int(np.flatnonzero((everyone == own).all(axis=1))[0])
    return first == engine.mine[0]
