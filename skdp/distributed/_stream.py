"""Where a stream stands: all that is kept between calls, released or public."""

from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np

from skdp.distributed._plan import Plan
from skdp.estimators import check_unchanged
from skdp.solvers.gossip import GossipState, Schedule, run_gossip

__all__ = ["GossipStream"]


@dataclass(frozen=True)
class GossipStream:
    """Where a stream stands. Frozen: going on makes another one.

    Parameters
    ----------
    plan : Plan

    state : GossipState
        Of the nodes of this process.

    rows_here : int
        Rows of this process so far, each counted once.

    rows_of : ndarray of int, shape (n_nodes,)
        Rows of each node so far, each counted once a pass.

    points : tuple of ndarray
        Points of all rounds so far, if they are kept.
    """

    plan: Plan
    state: GossipState = field(repr=False)
    rows_here: int
    rows_of: np.ndarray
    points: tuple = field(repr=False)

    @classmethod
    def begin(cls, plan, mine):
        """Stream before its first round; ``mine`` are the nodes of this process."""
        state = GossipState.zeros(len(mine), plan.size)
        return cls(plan, state, 0, np.zeros(plan.topology.n_nodes, dtype=np.int64), ())

    @property
    def time(self):
        """Rounds so far."""
        return self.state.time

    def plan_of(self, estimator):
        """Plan of the stream, whose parameters must not have changed."""
        check_unchanged(estimator, self.plan.params)
        return self.plan

    def after(self, engine, X, codes, here, counts, progress):
        """Go on with rounds over the rows of this process.

        Parameters
        ----------
        engine : Engine
            Open.

        X : {ndarray, CSR matrix} of shape (n_rows, n_features)

        codes : ndarray of int, shape (n_rows,)

        here : ndarray of int, shape (n_rows,)
            Place of the owner of each row among the nodes of this process.

        counts : ndarray of int, shape (n_nodes,)
            Rows of each node.

        progress : Progress

        Returns
        -------
        GossipStream
        """
        plan, points = self.plan, list[np.ndarray]()
        # However large a batch may be, a round has no more rows than there are.
        batch = min(plan.update.batch_size, max(1, int(counts.max())))
        rounds = partial(
            run_gossip,
            engine,
            plan.topology,
            X,
            codes,
            Schedule(here, len(engine.mine), batch, plan.n_rounds(counts)),
            self.state,
            plan.update,
            n_passes=plan.release.n_passes,
            keep=points if plan.params["keep_iterates"] else None,
            monitor=progress,
        )
        state = plan.release(rounds, plan.sources, engine.mine)
        progress.close()
        return replace(
            self,
            state=state,
            rows_here=self.rows_here + len(codes),
            rows_of=self.rows_of + plan.release.n_passes * counts,
            points=(*self.points, *points),
        )

    def fitted(self, engine):
        """Attributes that a fitted estimator has now; all processes collect them together."""
        plan, state, params = self.plan, self.state, self.plan.params
        latest = engine.collect(state.released)
        final = latest if params["average"] is False else engine.collect(state.average())
        step = float(plan.update.steps(np.array([max(state.time, 1)]))[0])
        # Of sums of gradients the mean over nodes is thresholded, like that over rounds: a mean
        # of thresholded nodes has next to no zeros. All of it is done to released values.
        mean = plan.update.points(final.mean(axis=0, keepdims=True), step)
        weights = np.concatenate([plan.update.points(final, step), mean])
        weights = weights.reshape(len(weights), -1, plan.width)
        coef = weights[..., :-1] / plan.release.x_norm
        intercept = weights[..., -1] * plan.release.constant
        spread = np.square(latest - latest.mean(axis=0)).sum(axis=1)
        output = params["output_node"]
        output = -1 if output is None else plan.topology.number(output)
        return dict(
            classes_=plan.classes,
            coef_=coef[output].copy(),
            intercept_=intercept[output].copy(),
            x_norm_=plan.release.x_norm,
            node_coef_=coef[:-1],
            node_intercept_=intercept[:-1],
            consensus_distance_=float(np.sqrt(spread.mean())),
            n_rounds_=state.time,
            n_samples_seen_=int(np.sum(self.rows_of)),
            topology_=plan.topology,
            guarantee_=plan.release.guarantee,
            _stream=self,
        )
