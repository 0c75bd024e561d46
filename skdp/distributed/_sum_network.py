"""All nodes of a network as one: only sums over all nodes are released."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from skdp._random._source import NoiseSource
from skdp._recording import Released, is_recorded, note, recorded
from skdp.distributed._secure_sums import SecureSums, Session
from skdp.distributed._shares import SharedNoise
from skdp.distributed._together import Together
from skdp.exceptions import DistributedError
from skdp.learner._descent import half_of
from skdp.mechanisms import NoiseLaw
from skdp.rows import _sums


def met(trust: SecureSums, engine: Any, topology: Any) -> Session:
    """Session of nodes that have told each other their keys, before anybody is charged."""
    with Together(engine):
        if engine.is_distributed and is_recorded():
            raise DistributedError("Secure sums over several processes cannot be recorded.")
        trust.check_process(engine, topology)
        session = Session(trust, engine, topology)
    committed = None if session.reach is None else engine.collect(session.commitments)
    told = engine.collect(session.told)
    with Together(engine):
        session.meet(told, committed)
    return session


class SumNetwork:
    """One node that stands for all, as far as what is released goes.

    Parameters
    ----------
    engine : Engine
        Open.

    trust : SecureSums

    counts : ndarray of int, shape (n_nodes,)
        Public numbers of rows, or users.

    session : Session
        Whose nodes have met.

    Attributes
    ----------
    mine, nodes : ndarray of int
        The one node, and those of this process.

    factors : ndarray of shape (1,)
        One over the rows of those who answered last.
    """

    def __init__(
        self, engine: Any, trust: SecureSums, counts: np.ndarray, session: Session
    ) -> None:
        self.engine, self.nodes, self.counts = engine, engine.mine, counts
        self.mine, self.n_nodes = np.zeros(1, dtype=int), len(counts)
        self.n_shares = self.n_nodes - trust.n_tolerated(self.n_nodes)
        self._session, self._number = session, 0
        self._heard_of(np.ones(self.n_nodes, dtype=bool))

    def _heard_of(self, answered: np.ndarray) -> None:
        self.total = max(1.0, float(self.counts[answered].sum()))
        self.factors = np.array([1.0 / self.total])

    whose, is_late = "all nodes", False

    def mean(self, totals: np.ndarray) -> np.ndarray:
        """Mean over rows, from the sum that was released last."""
        (total,) = totals
        return total / self.total

    def mixed(self, released: np.ndarray) -> np.ndarray:
        """What the one node makes of what it knows."""
        return released

    def points(self, points: np.ndarray) -> list[np.ndarray]:
        """Where each node here takes its gradient: at the same point."""
        return [points[0]] * len(self.nodes)

    def moments(
        self,
        data: Sequence[Any],
        row_norm: float,
        guarantee: Any,
        noise: Sequence[NoiseSource],
    ) -> np.ndarray:
        """Mean of the halves of the outer products of rows, as `release_half` has them."""
        sensitivity = float(np.sqrt(guarantee.n_records_changed)) * row_norm**2

        def half(rows: Any) -> np.ndarray:
            return half_of(rows.second_moments())

        found = self.released(
            [(partial(half, rows), rows.n_units) for rows in data],
            law=NoiseLaw.of("gaussian", guarantee),
            sensitivity=sensitivity,
            error=_sums.ROUNDING_SHARE * sensitivity,
            noise=noise,
            purpose="second moments of the rows of all nodes",
        )
        return self.mean(found)

    def released(
        self,
        asked: Sequence[tuple[Callable[[], np.ndarray], int]],
        *,
        law: NoiseLaw,
        sensitivity: float,
        error: float,
        noise: Sequence[NoiseSource],
        purpose: str,
    ) -> np.ndarray:
        """Release the sum of what all nodes are asked for.

        Parameters
        ----------
        asked : sequence of (callable, int)
            Value of each node here, and how many rows it has.

        law : NoiseLaw

        sensitivity : float
            Largest change of one node's value, which no record's share of it exceeds.

        error : float
            Certified distance of a value from the exact one, in the norm of the law.

        noise : sequence of NoiseSource
            Of the nodes here.

        purpose : str

        Returns
        -------
        ndarray of shape (1, ...)

        Raises
        ------
        DistributedError
            If fewer nodes answer than is tolerated: nothing is opened then.
        """
        values = [np.asarray(ask()) for ask, _ in asked]
        shape, size = values[0].shape, values[0].size
        shared = SharedNoise.plan(
            law, sensitivity=sensitivity, error=error, size=size, n_shares=self.n_shares
        )
        shared.check_span(int(self.counts.sum()))
        rounded = [shared.rounded(value.ravel()) for value in values]
        shares = [shared.share(size, source) for source in noise]
        total, answered = self._sum([a + b for a, b in zip(rounded, shares, strict=True)])
        self._heard_of(answered)
        surplus, exact = np.zeros(size, dtype=np.int64), total
        if not self.engine.is_distributed:
            # Who knows the shares of as many nodes as are tolerated sees what has the law.
            here = np.flatnonzero(answered).tolist()
            surplus = sum((shares[i] for i in here[self.n_shares :]), start=surplus)
            exact = sum((rounded[i] for i in here), start=np.zeros(size, dtype=np.int64))
        step = shared.lattice.step
        declared = sensitivity + 2.0 * error
        scale, is_exact = shared.scale * step, law.kind == "laplace"
        kind = f"{law.kind}_shares"
        note(purpose, kind, size, law if is_exact else None, scale=scale, sensitivity=declared)
        noisy = recorded(
            Released,
            (total - surplus) * step,
            asked=exact * step,
            released=(total - surplus) * step,
            step=step,
            scale=scale,
            sensitivity=declared,
            law=law,
        )
        return (noisy + surplus * step).reshape(1, *shape)

    def _sum(self, parts: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
        """Sum of the parts of those who answer, and who they are."""
        number, session = self._number, self._session
        self._number += 1
        sent, answered = self.engine.collect_some(session.masked(number, parts))
        if np.count_nonzero(answered) < self.n_shares:
            raise DistributedError(
                f"{np.count_nonzero(answered)} of {self.n_nodes} nodes answered in round {number} "
                f"of secure sums, which requires {self.n_shares}. Nothing was opened, and the "
                "charge stays in the ledger."
            )
        openings, still = self.engine.collect_some(session.openings(number, answered))
        if not still[answered].all():
            silent = np.flatnonzero(answered & ~still).tolist()
            raise DistributedError(
                f"Nodes {silent} answered in round {number} of "
                "secure sums but did not open their masks. Nothing of the round can be read, "
                "and the charge stays in the ledger."
            )
        return session.sum(sent, openings, answered), answered
