"""What a fit of a pipeline will do, and cost: from parameters and columns, before a row is read."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.utils.validation import check_is_fitted

from skdp._random import seed_sequence
from skdp.pipeline._checks import check_own_budget
from skdp.pipeline._division import Division, divide, with_frozen
from skdp.pipeline._order import Node, leaves_of
from skdp.pipeline._schema import Schema
from skdp.pipeline._walk import Walk
from skdp.privacy import ApproxDP, Guarantee
from skdp.privacy._budget import covers

__all__ = ["FITTED", "Plan"]

# What a fit stores; a new one replaces all of it.
FITTED = (
    "steps_",
    "guarantee_",
    "division_",
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

    node : Node

    division : Division

    charged : Guarantee or None
        Of what is fitted.

    guarantee : Guarantee
        Of steps that were fitted before as well.
    """

    steps: list[tuple[str, Any]]
    schema: Schema
    node: Node
    division: Division
    charged: Guarantee | None
    guarantee: Guarantee

    @classmethod
    def of(cls, model, X, y=None):
        """Plan the fit of a pipeline to rows of which only the columns are looked at."""
        plan = cls.from_schema(model, Schema.of(X))
        learn = [leaf for leaf in leaves_of(plan.node) if leaf.guarantee is None]
        for leaf, seed in zip(learn, seeds(model.random_state, len(learn)), strict=True):
            leaf.estimator.set_params(random_state=seed)
        return plan

    @classmethod
    def from_schema(cls, model, schema):
        """Plan the fit of a pipeline to rows with columns that are known."""
        steps = [(name, clone(step, safe=False)) for name, step in model.steps]
        walk = Walk(model.public, frozen_guarantee, change=True)
        node, _ = walk.steps(steps, schema)
        walk.finish()
        learn = [leaf for leaf in leaves_of(node) if leaf.guarantee is None]
        for leaf in learn:
            check_own_budget(leaf, model)
            leaf.estimator.set_params(adjacency=model.adjacency)
        target = ApproxDP(float(model.epsilon), float(model.delta), adjacency=model.adjacency)
        division = divide(node, target, model.shares)
        charged = division.total
        guarantee = with_frozen(node, charged)
        if guarantee is None:
            guarantee = ApproxDP(0.0, adjacency=model.adjacency, mechanism="nothing was learned")
        if charged is not None:
            charged = charged.with_caveats(*walk.caveats)
        return cls(
            steps, schema, node, division, charged, guarantee.with_caveats(*walk.caveats)
        )

    def check_fitted(self, steps):
        """Check that no step spent more than was planned for it."""
        for path, planned in self.division.planned.items():
            spent = find(steps, path).guarantee_
            if not covers(planned, spent):
                raise RuntimeError(
                    f"Step {path!r} spent more than was planned for it, and nothing of this fit "
                    f"is kept. Planned: {planned} Spent: {spent}"
                )


def find(steps, path):
    """Fitted step of a path."""
    first, *names = path.split("__")
    step = dict(steps)[first]
    for name in names:
        if isinstance(step, Pipeline):
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
