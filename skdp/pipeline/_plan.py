"""What a fit of a pipeline will do and cost, from parameters and columns alone."""

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.utils.validation import check_is_fitted

from skdp._random._words import seed_sequence
from skdp._tables import count_of_rows
from skdp._validation import shown
from skdp.learner import warn_of_delta
from skdp.pipeline._checks import OWN, check_own_budget
from skdp.pipeline._division import Division, divide, with_frozen
from skdp.pipeline._input import check_input
from skdp.pipeline._order import Leaf, Node, composed, leaves_of
from skdp.pipeline._owners import check_for_users, check_one_unit, for_users, owners_of
from skdp.pipeline._rehearsal import rehearse
from skdp.pipeline._rows import RowsCheck, choose_splines
from skdp.pipeline._schema import Schema
from skdp.pipeline._walk import Walk
from skdp.pipeline._wrappers import WRAPPERS, is_wrapper
from skdp.privacy import ApproxDP, Guarantee
from skdp.privacy._budget import covers

__all__ = ["FITTED", "Plan", "Walked"]

# What a fit stores; a new one replaces all of it.
FITTED = (
    "steps_",
    "guarantee_",
    "division_",
    "_before",
    "_began",
    "n_features_in_",
    "feature_names_in_",
    "_schema",
)


@dataclass
class Plan:
    """Steps, ready to be fitted, and what that costs.

    Parameters
    ----------
    steps : list of (str, estimator)
        Clones, each with its part of the budget.

    schema : Schema

    division : Division
        Of what is fitted; its ``total`` is what a ledger is charged.

    guarantee : Guarantee
        Of steps that were fitted before as well.

    before : Guarantee or None
        Of all steps but the last.

    learn : list of Leaf
        Steps that may learn, also those for which nothing is planned.
    """

    steps: list[tuple[str, Any]]
    schema: Schema
    division: Division
    guarantee: Guarantee
    before: Guarantee | None
    learn: list[Leaf] = field(default_factory=list)

    @classmethod
    def of(cls, model, X, y=None, groups=None):
        """Plan the fit of a pipeline; rows are looked at only for what no step can take."""
        walked = Walked.of(model, Schema.of(X))
        users = owners_of(groups, count_of_rows(X))
        if users is not None:
            walked.give_to_users()
        check_input(walked.steps, X, walked.schema, model.public)
        # Rules read the number of users, if there are any: how many rows they have is private.
        n_units = count_of_rows(X) if users is None else users.n_users
        public = n_units if model.adjacency == "replace-one" else None
        walked.seed(model.random_state)
        target = target_of(model, walked.unit)
        choose_splines(walked.learn, walked.free, target, public)
        warn_of_delta(model, n_units, walked.unit)
        check = None if public is None else RowsCheck(walked.node, public, target, model.shares)
        if check is not None:
            check.before()
        plan = cls.from_walk(model, walked)
        if check is not None:
            check.after(plan.division)
        if model.ledger is not None:
            rehearse(walked.learn, walked.free, X, y, count_of_rows(X), groups)
        return plan

    @classmethod
    def from_schema(cls, model, schema):
        """Plan the fit of a pipeline to rows with columns that are known."""
        return cls.from_walk(model, Walked.of(model, schema))

    @classmethod
    def from_walk(cls, model, walked):
        """Divide the budget among the steps that learn."""
        for leaf in walked.learn:
            leaf.estimator.set_params(adjacency=model.adjacency)
        frozen = [leaf for leaf in leaves_of(walked.node) if leaf.guarantee is not None]
        check_one_unit([(leaf.path, leaf.guarantee) for leaf in frozen], walked.unit)
        context = dict(adjacency=model.adjacency, unit=walked.unit)
        division = divide(walked.node, target_of(model, walked.unit), model.shares)
        if division.total is not None:
            division.total = division.total.with_caveats(*walked.caveats)
        guarantee = with_frozen(walked.node, division.total)
        if guarantee is None:
            guarantee = ApproxDP(0.0, mechanism="nothing was learned", **context)
        last = walked.steps[-1][0]
        before = composed(
            walked.node,
            lambda leaf: (
                None if leaf.path == last else division.planned.get(leaf.path, leaf.guarantee)
            ),
        )
        guarantee = guarantee.with_caveats(*walked.caveats)
        if before is None and walked.caveats:
            before = ApproxDP(0.0, **context)
        if before is not None:
            before = before.with_caveats(*walked.caveats)
        return cls(walked.steps, walked.schema, division, guarantee, before, walked.learn)

    @classmethod
    def of_stream(cls, model, X, *, is_for_users=False):
        """Plan the first rows of a stream, for which nothing but the last step may learn."""
        walked = Walked.of(model, Schema.of(X), budgets=False)
        if is_for_users:
            walked.give_to_users()
        frozen = [leaf for leaf in leaves_of(walked.node) if leaf.guarantee is not None]
        check_one_unit([(leaf.path, leaf.guarantee) for leaf in frozen], walked.unit)
        name, last = walked.steps[-1]
        for leaf in walked.learn:
            if leaf.path != name:
                raise ValueError(
                    f"Step {leaf.path!r} learns from the rows, and in a stream would learn from "
                    "each part anew. Fit it before, and freeze it: "
                    f"FrozenEstimator(DPPipeline([...]).fit(X, y)); got {shown(leaf.estimator)}."
                )
        own = {name: getattr(model, name) for name in OWN if name in last.get_params(deep=False)}
        check_own_budget(Leaf(name, last), model, names=own)
        own["random_state"] = seeds(model.random_state, 1)[0]
        last.set_params(**own)
        before = with_frozen(walked.node, None)
        if before is None and walked.caveats:
            before = ApproxDP(0.0, adjacency=model.adjacency, unit=walked.unit)
        if before is not None:
            before = before.with_caveats(*walked.caveats)
        return cls(walked.steps, walked.schema, Division.none(), before, before)

    def check_fitted(self, steps):
        """Check that no step spent more than was planned for it."""
        for path in (leaf.path for leaf in self.learn):
            planned = self.division.planned.get(path, ApproxDP(0.0))
            spent = find(steps, path).guarantee_
            if replace(spent, caveats=planned.caveats) == planned or spent.delta_at(0.0) == 0.0:
                continue
            if spent.unit != planned.unit or not covers(planned, spent):
                raise RuntimeError(
                    f"Step {path!r} spent more than was planned for it, and nothing of this fit "
                    f"is kept. Planned: {planned} Spent: {spent}"
                )


@dataclass
class Walked:
    """Clones of steps, those among them that learn, and those that learn nothing.

    ``unit`` is whom the guarantee of what learns is for.
    """

    steps: list[tuple[str, Any]]
    schema: Schema
    node: Node
    learn: list[Leaf]
    free: list[Leaf]
    caveats: list[str]
    unit: str = "record"

    @classmethod
    def of(cls, model, schema, *, budgets=True):
        """Walk over clones of the steps; those of a stream may have budgets of their own kind."""
        steps = [(name, clone(step, safe=False)) for name, step in model.steps]
        last = None if budgets else steps[-1][0]
        walk = Walk(model.public, frozen_guarantee, change=True, stream=last)
        node, _ = walk.steps(steps, schema)
        walk.finish()
        learn = [leaf for leaf in leaves_of(node) if leaf.guarantee is None]
        for leaf in learn if budgets else ():
            check_own_budget(leaf, model)
        return cls(steps, schema, node, learn, walk.free, walk.caveats)

    def give_to_users(self):
        """Let the last step learn from users, if it can, and nothing else from anybody."""
        check_for_users(self.steps, self.node)
        for_users(self.node)
        self.unit = "user"

    def seed(self, random_state):
        for leaf, seed in zip(self.learn, seeds(random_state, len(self.learn)), strict=True):
            leaf.estimator.set_params(random_state=seed)


def target_of(model, unit="record"):
    """Budget of a pipeline, for records or for users."""
    epsilon, delta = float(model.epsilon), float(model.delta)
    return ApproxDP(epsilon, delta, adjacency=model.adjacency, unit=unit)


def find(steps, path):
    """Fitted step of a path."""
    first, *names = path.split("__")
    step = dict(steps)[first]
    for name in names:
        if is_wrapper(step):
            step = WRAPPERS[type(step)].inner(step, fitted=True)
        elif isinstance(step, Pipeline):
            step = step.named_steps[name]
        elif isinstance(step, FeatureUnion):
            step = dict(step.transformer_list)[name]
        else:
            step = step.named_transformers_[name]
    return step


def frozen_guarantee(estimator, path):
    """Guarantee of an estimator that was fitted before; None if it learned nothing."""
    from skdp.pipeline._guarantee_of import guarantee_or_none  # which plans searches by this

    try:
        check_is_fitted(estimator)
    except NotFittedError:
        raise ValueError(f"Step {path!r} is frozen, and must be fitted before.") from None
    return guarantee_or_none(estimator, path=path)


def seeds(random_state, count):
    """Seeds of the steps, each another one; None stays None."""
    if random_state is None:
        return [None] * count
    sequence = seed_sequence(random_state)
    return [int(part.generate_state(2, np.uint64)[0] >> 1) for part in sequence.spawn(count)]
