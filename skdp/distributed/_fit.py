"""A call of ``fit`` or ``partial_fit``: check, agree, charge, release and store."""

from functools import partial

import numpy as np

from skdp._validation import short_repr
from skdp.distributed._plan import Plan, check_parameters
from skdp.distributed._rows import NodeRows, UserCalls, common_classes, owners_of, validated
from skdp.distributed._stream import GossipStream
from skdp.distributed._sum_network import met
from skdp.distributed._together import Together, engine_of, identity_of, is_first_with
from skdp.distributed._whitened_form import WhitenedForm
from skdp.learner import (
    Progress,
    charge_quietly,
    check_unchanged,
    has_begun,
    ledger_of,
    unchanged_on_error,
    warn_of_delta,
)
from skdp.rows._users import Users


def advance(estimator, X, y, node, groups, classes, *, one_pass):
    """Fit to rows, or with ``one_pass`` go on with a stream of calls, and return the estimator."""
    fresh = not one_pass or not has_begun(estimator)
    engine = engine_of(estimator.engine)
    with Together(engine):
        context = estimator._init_callback_context(max_subtasks=None)
        classes = common_classes(classes, estimator.classes if fresh else estimator.classes_)
    # Check, validate, plan and agree; open, ask and charge; release and store.
    with unchanged_on_error(estimator, fresh=fresh):
        with Together(engine) as everyone:
            check_parameters(estimator)
            if engine.is_resumed and (one_pass or estimator.paper is not None):
                raise ValueError(
                    "engine must have no checkpoint for partial_fit and for forms of the paper: "
                    f"only a fit with paper=None can resume; got {short_repr(engine)}."
                )
            if one_pass and estimator.trust != "nodes":
                raise ValueError(
                    "trust must be 'nodes' for partial_fit, which runs a form of the paper; got "
                    f"{short_repr(estimator.trust)}."
                )
            X, codes, classes = validated(
                estimator, X, y, classes, engine, fresh, counts=groups is None
            )
            users = Users.of(groups, len(codes))
            plan = _plan_of(estimator, classes, X.shape[1], users, fresh)
            if engine.is_distributed or engine.is_resumed:
                n_rounds = 0 if fresh else estimator._stream.time
                everyone.token = plan.token(estimator, len(codes), n_rounds)
                everyone.token["one pass"] = one_pass
                everyone.token["checkpoint"] = "given" if engine.is_resumed else "None"
        engine.open(plan.topology, plan.size)
        try:
            calls = None
            if users is not None:
                most = int(estimator.max_calls_per_user)
                calls = UserCalls(most) if fresh else estimator._stream.calls
            with Together(engine):
                if calls is None:
                    before = 0 if fresh else estimator._stream.rows_here
                    owners = owners_of(node, len(codes), engine.mine, before, plan.topology)
                else:
                    owners = calls.owners(groups, users, node, engine.mine, plan.topology)
            data = NodeRows(X, codes, np.searchsorted(engine.mine, owners), users)
            here = np.bincount(data.here, minlength=len(engine.mine))
            counts = engine.collect(here)
            # Nobody pays before everybody could go on and every ledger would take the charge;
            # no transaction is open while a message travels.
            with Together(engine):
                if (counts[engine.mine] != here).any():
                    raise ValueError(
                        "checkpoint must be the folder of this fit, with as many rows of each "
                        "node, or an empty one."
                    )
                stream, form = _begun(estimator, plan, engine, counts, fresh, one_pass, calls)
                guarantee = (form or stream.plan).release.guarantee
            session = None
            if estimator.trust != "nodes":
                session = met(estimator.trust, engine, plan.topology)
            with Together(engine):
                ledger = ledger_of(estimator) if fresh else None
                identity = identity_of(ledger)
                # A fit that goes on where it was stopped was charged before.
                paid = engine.has_charged(identity)
                if ledger is not None and not paid:
                    ledger.check(guarantee)
            if fresh:
                pays = is_first_with(identity, engine)
                with Together(engine):
                    if pays and not paid:
                        charge_quietly(estimator, guarantee)
                    engine.charged(identity)
            if calls is not None:
                gone = calls.enter(groups, users, owners, for_good=not one_pass)
                data = data.without(gone)
            go_on = stream.after if form is None else partial(stream.after_whitened, form, session)
            stream = go_on(engine, data, counts, Progress(estimator, context))
            fitted = stream.fitted(engine)
            fitted["guarantee_"] = estimator._stated(fitted["guarantee_"], fresh=fresh)
            for name, value in fitted.items():
                setattr(estimator, name, value)
        finally:
            engine.close()
    return estimator


def _plan_of(estimator, classes, n_features, users, fresh):
    """Plan of a new stream, or of the one that goes on, for rows or for users."""
    unit = "record" if users is None else "user"
    if fresh:
        return Plan.of(estimator, classes, n_features, unit)
    plan = estimator._stream.plan
    check_unchanged(estimator, plan.params)
    if unit != plan.unit:
        given = "None" if users is None else "groups"
        raise ValueError(
            "groups must be given in all calls of a stream or in none: "
            f"this one protects a {plan.unit}; got {given}."
        )
    return plan


def _begun(estimator, plan, engine, counts, fresh, one_pass, calls):
    """The stream as it goes on, and the form of a fit that whitens, or None."""
    if not fresh:
        stream = estimator._stream.going_on(estimator, counts)
        stream.plan.check_sizes(counts, stream.state.time)
        return stream, None
    if not one_pass and calls is None:
        warn_of_delta(estimator, int(counts.sum()))
    form = None
    if one_pass or estimator.paper is not None:
        plan = plan.settled(estimator, counts, one_pass)
        plan.check_sizes(counts, 0)
    else:
        sizes = (len(plan.classes), plan.release.n_features)
        form = WhitenedForm.of(estimator, plan.topology, *sizes, counts, plan.unit)
        plan.topology.check(0, form.release.rules.n_rounds * form.mixings[0])
        form.warn_of_majority()
    return GossipStream.begin(plan, engine.mine, one_pass, calls), form
