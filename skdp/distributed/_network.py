"""What a classifier learnt by a network does, once its parameters are there."""

from functools import partial

import numpy as np
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from skdp._validation import positive_int
from skdp.distributed._agreement import Together, asked, engine_of, is_first_with
from skdp.distributed._plan import Plan, check_parameters
from skdp.distributed._regret import regret
from skdp.distributed._rows import clipped_in_l1, common_classes, owners_of, validated
from skdp.distributed._stream import GossipStream
from skdp.distributed._users import NodeRows, UserCalls
from skdp.distributed._whitened import WhitenedForm, chosen_form
from skdp.learner import (
    CallbackSupportMixin,
    LinearPredictions,
    Progress,
    StatedGuarantee,
    charge_quietly,
    ledger_of,
    unchanged_on_error,
    warn_of_delta,
)
from skdp.rows._users import Users

__all__ = ["NetworkLearner"]

_TOLERANCE = 1e-3


class NetworkLearner(CallbackSupportMixin, StatedGuarantee, LinearPredictions):
    """Runs the rounds of nodes that learn together, and states what is promised."""

    @available_if(lambda self: self.loss == "log_loss")
    def predict_proba(self, X):
        """Probability of each class, with ``loss="log_loss"`` only; costs no privacy.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        return self._probabilities(X)

    @available_if(lambda self: self.loss == "log_loss")
    def predict_log_proba(self, X):
        """Log-probability of each class, with ``loss="log_loss"`` only; costs no privacy.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        return self._log_probabilities(X)

    def user_guarantee(self, n_records):
        """Guarantee for a user who contributed several records.

        Parameters
        ----------
        n_records : int
            Number of records of one user, at any nodes and in any rounds.

        Returns
        -------
        ApproxDP or GaussianDP

        Raises
        ------
        ValueError
            If the model was fitted with ``groups``: ``guarantee_`` is for users then.
        """
        check_is_fitted(self)
        positive_int(n_records=n_records)
        if self._stream.calls is not None:
            raise ValueError(
                "groups must be None in fit for a guarantee by the number of records: with "
                "groups guarantee_ is for users, however many records they have; got groups."
            )
        guarantee = self._stream.of_unit(int(n_records), "user")
        return guarantee.with_caveats(*self.guarantee_.caveats)

    def node_guarantee(self):
        """Guarantee for all rows of the node that has most rows, or users if it has groups.

        Returns
        -------
        ApproxDP or GaussianDP
        """
        check_is_fitted(self)
        guarantee = self._stream.of_unit(max(int(np.max(self._stream.rows_of)), 1), "node")
        return guarantee.with_caveats(*self.guarantee_.caveats)

    def regret(self, X, y, node=None, *, of=None, tolerance=_TOLERANCE):
        """Losses at the points of the nodes, minus those of the best fixed parameters in the ball.

        The penalty ``alpha`` is left out of both.

        Parameters
        ----------
        X, y, node
            The rows that `fit` has seen, or all those of `partial_fit` in their order if each call
            filled its batches. No guarantee covers a regret on private rows.

        of : str or int, default=None
            Node, by name or number, whose points are compared by the losses of all nodes, as in
            definition 1 of the paper. None compares the points of each node by its own losses.

        tolerance : float, default=1e-3
            Certified accuracy of the best mean loss.

        Returns
        -------
        float

        Raises
        ------
        ValueError
            If ``keep_iterates`` was False, nodes are spread over processes, the rows are not
            those of the stream, or it was fitted with ``groups``.
        """
        check_is_fitted(self)
        if self._stream.calls is not None:
            raise ValueError(
                "groups must be None in fit for a regret, which is by rows; got groups."
            )
        return regret(self, X, y, node, of, tolerance)

    def _clipped_products(self, X):
        release = self._stream.plan.release
        if release.x_l1 is not None:
            X = clipped_in_l1(X, self.x_norm_, release.x_l1 * release.x_norm)
        return super()._clipped_products(X)

    def _advance(self, X, y, node, groups, classes, *, fresh, one_pass):
        engine = engine_of(self.engine)
        with Together(engine):
            context = self._init_callback_context(max_subtasks=None)
            classes = common_classes(classes, self.classes if fresh else self.classes_)
        # Check, validate, plan and agree; open, ask and charge; release and store.
        with unchanged_on_error(self, fresh=fresh):
            with Together(engine) as everyone:
                check_parameters(self)
                X, codes, classes = validated(
                    self, X, y, classes, engine, fresh, counts=groups is None
                )
                users = Users.of(groups, len(codes))
                plan = self._plan_of(classes, X.shape[1], users, fresh)
                if engine.is_distributed:
                    n_rounds = 0 if fresh else self._stream.time
                    everyone.token = plan.token(self, len(codes), n_rounds)
                    everyone.token["one pass"] = one_pass
            engine.open(plan.topology, plan.size)
            try:
                calls = None if users is None else self._calls(fresh)
                with Together(engine):
                    if calls is None:
                        before = 0 if fresh else self._stream.rows_here
                        owners = owners_of(node, len(codes), engine.mine, before, plan.topology)
                    else:
                        owners = calls.owners(groups, users, node, engine.mine, plan.topology)
                data = NodeRows(X, codes, np.searchsorted(engine.mine, owners), users)
                counts = engine.collect(np.bincount(data.here, minlength=len(engine.mine)))
                # Nobody pays before everybody could go on and every ledger would take the charge;
                # no transaction is open while a message travels.
                with Together(engine):
                    stream, form = self._begun(plan, engine, counts, fresh, one_pass, calls)
                    guarantee = (form or stream.plan).release.guarantee
                    ledger = asked(ledger_of(self), guarantee) if fresh else None
                if fresh:
                    self._charge(engine, ledger, guarantee)
                if calls is not None:
                    gone = calls.enter(groups, users, owners, for_good=not one_pass)
                    data = data.without(gone)
                go_on = stream.after if form is None else partial(stream.after_whitened, form)
                stream = go_on(engine, data, counts, Progress(self, context))
                fitted = stream.fitted(engine)
                fitted["guarantee_"] = self._stated(fitted["guarantee_"], fresh=fresh)
                for name, value in fitted.items():
                    setattr(self, name, value)
            finally:
                engine.close()
        return self

    def _plan_of(self, classes, n_features, users, fresh):
        """Plan of a new stream, or of the one that goes on, for rows or for users."""
        unit = "record" if users is None else "user"
        if fresh:
            return Plan.of(self, classes, n_features, unit)
        plan = self._stream.plan_of(self)
        if unit != plan.unit:
            given = "None" if users is None else "groups"
            raise ValueError(
                "groups must be given in all calls of a stream or in none: "
                f"this one protects a {plan.unit}; got {given}."
            )
        return plan

    def _calls(self, fresh):
        """Who has come how often, if users are protected."""
        return UserCalls(int(self.max_calls_per_user)) if fresh else self._stream.calls

    def _charge(self, engine, ledger, guarantee):
        """Charge the ledger, unless another process that shares it does."""
        pays = is_first_with(ledger, engine)
        with Together(engine):
            if pays:
                charge_quietly(self, guarantee)

    def _begun(self, plan, engine, counts, fresh, one_pass, calls):
        """The stream as it goes on, and the form of a fit that whitens, or None."""
        if not fresh:
            stream = self._stream.going_on(self, counts)
            stream.plan.check_sizes(counts, stream.state.time)
            return stream, None
        sizes = (len(plan.classes), plan.release.n_features)
        if not one_pass and calls is None:
            warn_of_delta(self, int(counts.sum()))
        if not one_pass and chosen_form(self) == "whitened":
            form = WhitenedForm.of(self, plan.topology, *sizes, counts, plan.unit)
            plan.topology.check(0, form.release.rules.n_rounds * form.mixings[0])
            return GossipStream.begin(plan, engine.mine, one_pass, calls), form
        plan = plan.settled(self, counts, one_pass)
        plan.check_sizes(counts, 0)
        return GossipStream.begin(plan, engine.mine, one_pass, calls), None
