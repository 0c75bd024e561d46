"""State of the nodes of a network between calls."""

from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np

from skdp.distributed._gossip import GossipState, Schedule, UserRows, run_gossip
from skdp.distributed._plan import Plan
from skdp.distributed._rows import UserCalls
from skdp.distributed._whitened_form import WhitenedForm
from skdp.exceptions import DistributedError
from skdp.learner import unit_guarantee


@dataclass(frozen=True)
class WhitenedRun:
    """A fit in the form that whitens, after which a stream can go on.

    Parameters
    ----------
    form : WhitenedForm

    coef : ndarray of shape (n_nodes_here, n_outputs, n_features)

    intercept : ndarray of shape (n_nodes_here, n_outputs)
    """

    form: WhitenedForm
    coef: np.ndarray
    intercept: np.ndarray

    def in_units_of(self, plan):
        """The weights as the paper's form has them, of shape (n_nodes_here, size)."""
        release = plan.release
        last = self.intercept[..., np.newaxis] / release.constant
        weights = np.concatenate([self.coef * release.x_norm, last], axis=2)
        return weights.reshape(len(weights), -1)


@dataclass(frozen=True)
class GossipStream:
    """Where a stream stands. Frozen: going on makes another one.

    Where users are protected, what is said of rows is meant of users.

    Parameters
    ----------
    plan : Plan

    state : GossipState
        Of the nodes of this process.

    rows_here : int
        Rows of this process so far, each counted once.

    rows_of : ndarray of int, shape (n_nodes,)
        Rows of each node so far, each counted once.

    points : tuple of ndarray
        Points of all rounds so far, if they are kept.

    n_seen : int, default=0
        Rows of all nodes so far, each counted once a pass.

    is_one_pass : bool, default=False
        Whether the plan is that of a stream of calls of `partial_fit`.

    whitened : WhitenedRun, default=None
        The fit that it goes on from.

    is_several : bool, default=False
        Whether records of different calls are protected by different forms.

    start : int, default=0
        Where the clock of steps stood when the plan's form took over.

    calls : UserCalls, default=None
        Who has come how often, if users are protected. It is the only part that changes, and stays
        changed where a call fails.
    """

    plan: Plan
    state: GossipState = field(repr=False)
    rows_here: int
    rows_of: np.ndarray
    points: tuple = field(repr=False)
    n_seen: int = 0
    is_one_pass: bool = False
    whitened: WhitenedRun | None = field(default=None, repr=False)
    is_several: bool = False
    start: int = 0
    calls: UserCalls | None = field(default=None, repr=False)

    @classmethod
    def begin(cls, plan, mine, one_pass, calls):
        """Stream before its first round; ``mine`` are the nodes of this process."""
        state = GossipState.zeros(len(mine), plan.size)
        counts = np.zeros(plan.topology.n_nodes, dtype=np.int64)
        return cls(plan, state, 0, counts, (), is_one_pass=one_pass, calls=calls)

    @property
    def time(self):
        """Rounds so far."""
        before = 0 if self.whitened is None else self.whitened.form.release.rules.n_rounds
        return before + self.state.time - self.start

    def going_on(self, estimator, counts):
        """The stream where `partial_fit` goes on with it.

        Each pass over rows that are new has their whole budget; earlier rows have had theirs. So
        noise is of the kind of the earlier form, and the guarantee of both is the same.
        """
        if self.is_one_pass:
            return self
        n_calls = 1 if self.calls is None else self.calls.most
        if self.whitened is None and self.plan.release.n_passes == n_calls == 1:
            return replace(self, is_one_pass=True)
        kind: str | None = self.plan.release.noise.kind
        if self.whitened is not None:
            kind = "gaussian" if self.plan.release.guarantee.delta > 0.0 else None
        plan = self.plan.settled(estimator, counts, True, kind)
        state, start = self.state, 0
        if self.whitened is not None:
            # Steps go on as if this form had seen the rows so far.
            start = -(-int(self.rows_of.max()) // plan.update.batch_size)
            weight = float(np.sum(np.arange(1.0, start + 1.0) ** plan.update.decay))
            released = self.whitened.in_units_of(plan)
            state = GossipState(released, released * weight, weight, start)
        return replace(
            self, plan=plan, state=state, start=start, is_one_pass=True, is_several=True
        )

    def of_unit(self, n_records, unit):
        """Guarantee for whoever has several records."""
        if self.is_several:
            # Of whatever forms, records that share all their sums are the worst.
            guarantee = self.guarantee
            one = guarantee if guarantee.refined is None else guarantee.refined
            return unit_guarantee(one, repeated=[(n_records, 1)], unit=unit)
        if self.whitened is not None:
            return self.whitened.form.release.of_unit(n_records, unit)
        return self.plan.release.of_unit(n_records, self.plan.update.batch_size, unit)

    def after_whitened(self, form, session, engine, data, counts, progress):
        """What the nodes know after a fit in the form that whitens; as for `after`."""
        plan = self.plan
        network = form.network(engine, plan.topology, session)
        run = WhitenedRun(form, *form.run(network, plan.sources, data, progress))
        sizes = dict(rows_here=data.n_units, rows_of=counts, n_seen=int(counts.sum()))
        return replace(self, whitened=run, **sizes)

    def after(self, engine, data, counts, progress):
        """Go on with rounds over the rows of this process.

        Parameters
        ----------
        engine : Engine
            Open.

        data : NodeRows

        counts : ndarray of int, shape (n_nodes,)
            Rows, or users, of each node.

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
            data.X,
            data.codes,
            Schedule(data.here, len(engine.mine), batch, plan.n_rounds(counts)),
            self.state,
            plan.update,
            n_passes=plan.release.n_passes,
            users=None if data.users is None else UserRows(data.users),
            keep=points if plan.paper.keep_iterates else None,
            monitor=progress,
        )
        state = plan.release(rounds, plan.sources, engine.mine)
        progress.close()
        return replace(
            self,
            state=state,
            rows_here=self.rows_here + data.n_units,
            rows_of=self.rows_of + counts,
            n_seen=self.n_seen + plan.release.n_passes * int(counts.sum()),
            points=(*self.points, *points),
        )

    def fitted(self, engine):
        """Attributes that a fitted estimator has now; all processes collect them together."""
        plan = self.plan
        if self.whitened is not None and not self.is_several:
            latest, coef, intercept = self._whitened(self.whitened, engine)
        else:
            latest, coef, intercept = self._paper(engine)
        spread = np.square(latest - np.nanmean(latest, axis=0)).sum(axis=1)
        output = plan.params["output_node"]
        output = -1 if output is None else plan.topology.number(output)
        release = plan.release
        return dict(
            classes_=plan.classes,
            coef_=coef[output].copy(),
            intercept_=intercept[output].copy(),
            x_norm_=release.x_norm,
            x_l1_norm_=None if release.x_l1 is None else release.x_l1 * release.x_norm,
            node_coef_=coef[:-1],
            node_intercept_=intercept[:-1],
            consensus_distance_=float(np.sqrt(np.nanmean(spread))),
            n_rounds_=self.time,
            n_samples_seen_=self.n_seen,
            topology_=plan.topology,
            guarantee_=self.guarantee,
            _stream=self,
        )

    @property
    def guarantee(self):
        """What the transcript so far promises to a record, or a user."""
        paper = self.plan.release.guarantee
        if self.whitened is None:
            return paper
        whitened = self.whitened.form.release.guarantee
        if not self.is_several:
            return whitened
        # A record, or a user, is in either. Both meet the same target with noise of one kind.
        return replace(
            paper,
            mechanism=f"{whitened.mechanism}, then {paper.mechanism}",
            source=f"{whitened.source}; {paper.source}",
        )

    def _whitened(self, run, engine):
        """Latest parameters of nodes; coefficients and intercepts of these and of their mean."""
        here = run.in_units_of(self.plan), run.coef, run.intercept
        if run.form.trust != "nodes":  # all know the same, to the bit
            n_nodes = self.plan.topology.n_nodes
            latest, *both = (np.repeat(part[:1], n_nodes + 1, axis=0) for part in here)
            return latest[:-1], *both
        latest, *both = map(self._known(engine), here)
        means = [np.nanmean(every, axis=0, keepdims=True) for every in both]
        each = zip(both, means, strict=True)
        return latest, *(np.append(every, mean, axis=0) for every, mean in each)

    def _known(self, engine):
        """What collects values of all nodes: NaN of those that are gone."""
        output = self.plan.params["output_node"]
        output = None if output is None else self.plan.topology.number(output)

        def known(values):
            everyone, answered = engine.collect_some(values)
            if not answered.any() or not (output is None or answered[output]):
                raise DistributedError(
                    "output_node, or some node if it is None, must have answered; got no answer. "
                    "All charges stay in the ledger."
                )
            everyone = everyone.astype(np.float64)
            everyone[~answered] = np.nan
            return everyone

        return known

    def _paper(self, engine):
        """The same for the paper's form."""
        plan, state = self.plan, self.state
        latest = engine.collect(state.released)
        final = engine.collect(state.average()) if plan.paper.average else latest
        step = float(plan.update.steps(np.array([max(state.time, 1)]))[0])
        # Of sums of gradients the mean over nodes is thresholded, like that over rounds: a mean
        # of thresholded nodes has next to no zeros. All of it is done to released values.
        mean = plan.update.points(final.mean(axis=0, keepdims=True), step)
        weights = np.concatenate([plan.update.points(final, step), mean])
        weights = weights.reshape(len(weights), -1, plan.width)
        coef = weights[..., :-1] / plan.release.x_norm
        intercept = weights[..., -1] * plan.release.constant
        return latest, coef, intercept
