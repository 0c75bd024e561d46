"""Losses at the points of the nodes, minus those of the best fixed parameters."""

import numpy as np

from skdp._validation import shown
from skdp.distributed._rows import owners_of
from skdp.distributed._solver_gossip import batches
from skdp.linear_model._comparator import best_in_ball
from skdp.rows._inputs import checked_data, encode_labels
from skdp.topology._names import node_number

__all__ = ["regret"]


def regret(estimator, X, y, node, of, tolerance):
    """See `DistributedDPClassifier.regret`."""
    stream = estimator._stream
    plan = stream.plan_of(estimator)
    if not estimator.keep_iterates:
        raise ValueError(
            f"keep_iterates must be True for a regret; got {shown(estimator.keep_iterates)}."
        )
    X, y = checked_data(estimator, X, y, reset=False)
    codes = encode_labels(y, plan.classes)[1]
    release = plan.release
    points = np.concatenate(stream.points)
    n_rounds, n_here = points.shape[:2]
    if n_here != plan.topology.n_nodes:
        raise ValueError("engine must be 'local' for a regret: rows stay where they are.")
    owners = owners_of(node, len(codes), np.arange(n_here), 0, plan.topology)
    most = int(np.bincount(owners).max())
    schedule = batches(owners, n_here, min(plan.update.batch_size, most))
    schedule = np.tile(schedule, (release.n_passes, 1, 1))
    if len(schedule) != n_rounds:
        raise ValueError(
            f"X must hold the rows of the stream, which make {n_rounds} rounds; "
            f"these make {len(schedule)}."
        )
    if of is not None:
        of = node_number(plan.topology, or_none=True, of=of)
    rows = release.rows(X)
    total = 0.0
    for t, place in enumerate(schedule):
        for i, here in enumerate(place):
            here = here[here >= 0]
            if len(here):
                weights = points[t, i if of is None else of].reshape(-1, plan.width)
                total += release.loss.total(np.asarray(rows[here] @ weights.T), codes[here])
    uses = np.bincount(schedule[schedule >= 0], minlength=len(codes))
    if (uses != uses[0]).any():
        raise ValueError("X must hold the rows of the stream, each seen equally often.")
    best = best_in_ball(
        rows, codes, release.loss, radius=plan.update.radius, tolerance=float(tolerance)
    )
    return total - float(uses[0]) * best[1]
