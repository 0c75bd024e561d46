"""What a fit of a pipeline will do and cost, from parameters and columns alone."""

import math
import re
import sys
import warnings
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from numbers import Real
from typing import Any

import numpy as np
import sklearn
from scipy.sparse import csr_matrix
from sklearn.base import clone
from sklearn.utils.validation import has_fit_parameter

from skdp._random._source import seed_sequence
from skdp._validation import short_repr
from skdp.learner import warn_of_delta, without_callbacks
from skdp.learner._estimator import WEIGHTED
from skdp.pipeline._division import Division, Leaf, Node, check_one_unit, divide, suit_model
from skdp.pipeline._guarantee_of import frozen_guarantee
from skdp.pipeline._walk import OWN, Walk, check_input, check_own_budget, fitted_step
from skdp.pipeline._wrappers import Schema
from skdp.privacy import ApproxDP, BudgetLedger, Guarantee
from skdp.privacy._budget import covers
from skdp.rows import _inputs as inputs
from skdp.rows._users import Users

_OUR_WORDS = {
    r"Input y contains NaN": "takes no NaN in y: leave such rows out",
    r"Input (\w+ )?contains NaN": "takes no NaN: put a DPSimpleImputer before it",
    r"Only binary classification is supported": "takes targets of two classes",
}


@contextmanager
def quiet(path=None):
    """Raise what is not ours again without values, and keep floating point silent.

    Messages of ours are known to hold none.

    Parameters
    ----------
    path : str, default=None
        Of the step, for messages.
    """
    ours = None
    with np.errstate(all="ignore"), inputs.without_values("X"):
        try:
            yield
        except Exception as error:
            if inputs.raised_here(error):
                ours = error
            else:
                found = [_OUR_WORDS[start] for start in _OUR_WORDS if re.match(start, str(error))]
                if path is None or not found:
                    raise
                ours = ValueError(f"Step {path!r} {found[0]}.")
    if ours is not None:
        raise ours


_BLOCK_UNKNOWN = 8  # columns for a model, where nothing says how many there will be
_LIMIT_DENSE = 10**7  # numbers; more are not written out


class _Reached(Exception):
    """A fit came to its charge, whose guarantee this holds: its parameters are fine."""


class _Stop(BudgetLedger):
    """Stands where a ledger would be, and stops what wants to be paid."""

    path, identity = None, "none"

    def __init__(self):
        pass

    def __repr__(self):
        return "a ledger that stops what wants to be paid"

    def charge(self, guarantee, label="", **named):
        raise _Reached(guarantee)

    charge_stream: Any = charge
    check: Any = charge


def charge_of(estimator, *args, prefix="", **options):
    """Guarantee that a fit to these rows would charge, for which it uses none of them.

    Parameters
    ----------
    estimator : estimator
        With a budget. A clone of it is fitted, until it would charge a ledger.

    *args, **options
        What its ``fit`` is given.

    prefix : str or None, default=""
        Of the parameters of what learns within it; None learns nothing.

    Returns
    -------
    Guarantee or None
        None of one that learns nothing.
    """
    estimator = without_callbacks(clone(estimator))
    if prefix is not None:
        estimator.set_params(**{f"{prefix}ledger": _Stop(), f"{prefix}random_state": None})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the fit itself will warn
        try:
            estimator.fit(*args, **options)
        except _Reached as reached:
            return reached.args[0]
    return None


def dry_run(plan, X, y, groups=None, sample_weight=None):
    """Fit steps to zeros and to the labels, each until it would charge a ledger.

    Estimators check their parameters, their labels and the number of rows before that.

    Parameters
    ----------
    plan : Plan

    X : {array-like, frame, sparse matrix}
        Of which only the kind and the number of rows are looked at.

    y : array-like or None

    groups : array-like or None
        Of all that learn.

    sample_weight : array-like or None
        Of the last step.
    """
    owned = {} if groups is None else {"groups": groups}
    weights = {} if sample_weight is None else {"sample_weight": sample_weight}
    for leaf in [*plan.free, *plan.learn]:
        learns = leaf in plan.learn
        path, estimator = leaf.around or (leaf.path, leaf.estimator)
        n_features = leaf.n_features
        if n_features is None and not hasattr(estimator, "transform"):
            n_features = _BLOCK_UNKNOWN
        if not n_features:
            _check_constraints(estimator)
            continue
        stated = None if learns else _stated(estimator, n_features)
        shape = inputs.count_of_rows(X) if learns else 1, n_features
        if stated is not None:
            rows = _framed(X, stated, leaf.names)
        elif math.prod(shape) > _LIMIT_DENSE:
            rows = csr_matrix(shape)
        else:
            rows = _framed(X, np.zeros(shape), leaf.names)
        with quiet(path):
            if learns:
                within = leaf.path.removeprefix(path).removeprefix("__")
                prefix = f"{within}__" if within else ""
                more = weights if leaf.path == plan.steps[-1][0] else {}
                charge_of(estimator, rows, y, prefix=prefix, **owned, **more)
            else:
                charge_of(estimator, rows, prefix=None)


def _check_constraints(estimator):
    """Refuse parameters that scikit-learn would refuse in a fit of its own estimators."""
    if not hasattr(estimator, "_parameter_constraints"):
        return
    try:
        estimator._validate_params()
    except ValueError as error:
        message = str(error)
    else:
        return
    raise ValueError(message)


def _stated(estimator, n_features):
    """A row that a step with stated categories knows: 0 need not be one of them."""
    stated = getattr(estimator, "categories", None)
    if isinstance(stated, str | None) or len(stated) != n_features or not all(map(len, stated)):
        return None
    first = [known[0] for known in stated]
    kind = float if all(isinstance(one, Real) for one in first) else object
    return np.array([first], dtype=kind)


def _framed(X, rows, names):
    """Rows as a frame where ``X`` is one, if their columns have names."""
    X = X.first if inputs.is_of_source(X) else X
    frames: Any = sys.modules.get(type(X).__module__.partition(".")[0])
    if not names or not hasattr(frames, "DataFrame"):
        return rows
    if frames.__name__ == "pandas":
        return frames.DataFrame(rows, columns=list(names))
    return frames.DataFrame(
        {name: list(column) for name, column in zip(names, rows.T, strict=True)}
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
        Of these steps.

    learn, free : list of Leaf
        Steps that may learn, also those for which nothing is planned, and those that learn
        nothing.

    caveats : list of str

    unit : {"record", "user"}, default="record"
        Whom the guarantee of what learns is for.

    division : Division
        Of what is fitted; its ``total`` is what a ledger is charged.

    guarantee : Guarantee or None
        Of steps that were fitted before as well.

    before : Guarantee or None
        Of all steps but the last.
    """

    steps: list[tuple[str, Any]]
    schema: Schema
    node: Node
    learn: list[Leaf]
    free: list[Leaf]
    caveats: list[str]
    unit: str = "record"
    division: Division = field(default_factory=Division)
    guarantee: Guarantee | None = None
    before: Guarantee | None = None

    @classmethod
    def undivided(cls, model, schema, *, budgets=True, n_units=None, unit="record"):
        """Walk over clones of the steps, and let rules read the number of units if it is public.

        Steps of a stream may have budgets of their own kind.
        """
        steps = [(name, clone(step, safe=False)) for name, step in model.steps]
        last = None if budgets else steps[-1][0]
        walk = Walk(model.public, frozen_guarantee, change=True, stream=last)
        node, _ = walk.steps(steps, schema)
        walk.finish()
        learn = [leaf for leaf in node.leaves if leaf.guarantee is None]
        for leaf in learn:
            if leaf.n_features == 0 and schema.n_columns:
                raise ValueError(f"steps must leave a column for step {leaf.path!r}; got none.")
        for leaf in learn if budgets else ():
            check_own_budget(leaf, model)
            leaf.estimator.set_params(adjacency=model.adjacency)
        plan = cls(steps, schema, node, learn, walk.free, walk.caveats)
        for leaf in learn:
            plan.caveats += leaf.estimator._assumptions(unit)
        if unit == "user":
            plan.give_to_users()
        suit_model(plan, plan.target(model), n_units)
        return plan

    @classmethod
    def from_schema(cls, model, schema, n_units=None, unit="record"):
        """Plan a fit to rows with columns that are known, maybe to so many rows, or users."""
        public = n_units if model.adjacency == "replace-one" else None
        return cls.undivided(model, schema, n_units=public, unit=unit).divide(model, public)

    @classmethod
    def of(cls, model, X, y=None, groups=None, sample_weight=None):
        """Plan the fit of a pipeline; rows are looked at only for what no step can take."""
        unit = "record" if groups is None else "user"
        plan = cls.undivided(model, Schema.of(X), unit=unit)
        if sample_weight is not None:
            plan.check_weights()
            plan.caveats.append(WEIGHTED)
        n_units = inputs.count_of_rows(X)
        users = Users.of(groups, _length(groups) if n_units is None else n_units)
        if users is not None:
            # Rules read the number of users: how many rows they have is private.
            n_units = users.n_users
        check_input(plan.steps, X, plan.schema, model.public)
        public = n_units if model.adjacency == "replace-one" else None
        for leaf, seed in zip(plan.learn, seeds(model.random_state, len(plan.learn)), strict=True):
            leaf.estimator.set_params(random_state=seed)
        suit_model(plan, plan.target(model), public)
        warn_of_delta(model, n_units, plan.unit)
        plan.divide(model, public)
        if model.ledger is not None:
            dry_run(plan, X, y, groups, sample_weight)
        return plan

    def check_weights(self):
        """Check that the last step takes weights of rows."""
        name, last = self.steps[-1]
        learns = any(leaf.path == name for leaf in self.learn)
        if not learns or not has_fit_parameter(last, "sample_weight"):
            raise ValueError(
                "sample_weight must be None unless the last step accepts it, as "
                "DPLogisticRegression, DPLinearSVC, DPLinearRegression, DPPoissonRegressor and "
                f"DPKernelRidge do; got weights for {short_repr(last)}."
            )

    def of_stream(self, model):
        """Plan the first rows of a stream, for which nothing but the last step may learn."""
        self.check_unit()
        name, last = self.steps[-1]
        for leaf in self.learn:
            if leaf.path != name:
                raise ValueError(
                    f"Step {leaf.path!r} learns from the rows, and would refit to each part of a "
                    "stream. Fit and freeze it first: FrozenEstimator(DPPipeline([...]).fit(X, "
                    f"y)); got {short_repr(leaf.estimator)}."
                )
        own = {name: getattr(model, name) for name in OWN if name in last.get_params(deep=False)}
        check_own_budget(Leaf(name, last), model, names=own)
        own["random_state"] = seeds(model.random_state, 1)[0]
        last.set_params(**own)
        self.guarantee = self.before = self._with_caveats(self.node.with_frozen(None), model)

    def target(self, model):
        """Budget of a pipeline, for records or for users."""
        epsilon, delta = float(model.epsilon), float(model.delta)
        return ApproxDP(epsilon, delta, adjacency=model.adjacency, unit=self.unit)

    def divide(self, model, n_samples=None):
        """Divide the budget among the steps that learn, if it is enough for so many rows."""
        self.check_unit()
        division = divide(self.node, self.target(model), model.shares, n_samples)
        if division.total is not None:
            if n_samples is None and any(leaf.estimator._reads_count for leaf in self.learn):
                # What is behind the point depends on the number of rows.
                division.total = replace(division.total, refined=None)
            division.total = division.total.with_caveats(*self.caveats)
        last = self.steps[-1][0]
        before = self.node.composed(
            lambda leaf: (
                None if leaf.path == last else division.planned.get(leaf.path, leaf.guarantee)
            )
        )
        guarantee = self.node.with_frozen(division.total)
        if guarantee is None:
            context = dict(adjacency=model.adjacency, unit=self.unit)
            guarantee = ApproxDP(0.0, mechanism="nothing was learned", **context)
        self.division, self.before = division, self._with_caveats(before, model)
        self.guarantee = self._with_caveats(guarantee, model)
        return self

    def _with_caveats(self, guarantee, model):
        """Guarantee with the caveats of the steps, of nothing if there is none but for them."""
        if guarantee is None and self.caveats:
            guarantee = ApproxDP(0.0, adjacency=model.adjacency, unit=self.unit)
        return guarantee if guarantee is None else guarantee.with_caveats(*self.caveats)

    def check_unit(self):
        """Check that steps that were fitted before promise it to those whom the others do."""
        check_one_unit([(leaf.path, leaf.guarantee) for leaf in self.node.frozen], self.unit)

    @property
    def learners(self):
        """Names of steps that learn, or in which a part does."""
        return {leaf.path.partition("__")[0] for leaf in self.learn}

    def give_to_users(self):
        """Let all steps learn from users, if they can."""
        for leaf in self.learn:
            if leaf.around is not None:
                raise ValueError(
                    "groups must be None if the private step is inside another estimator: the "
                    f"fit of a {type(leaf.around[1]).__name__} does not accept groups; got "
                    f"{short_repr(leaf.around[1])}."
                )
            if not has_fit_parameter(leaf.estimator, "groups"):
                raise ValueError(
                    f"groups must be None if a step does not accept them: {leaf} has a guarantee "
                    "for records. Bound the number of rows per user instead with "
                    f"skdp.preprocessing.bound_contributions; got {short_repr(leaf.estimator)}."
                )
            if "__" in leaf.path:
                with sklearn.config_context(enable_metadata_routing=True):
                    leaf.estimator.set_fit_request(groups=True)
        # Steps that were frozen before they learned anything are those of users, too.
        for leaf in self.node.frozen:
            if leaf.guarantee.delta_at(0.0) == 0.0:
                caveats = leaf.guarantee.caveats
                leaf.guarantee = leaf.guarantee._plain("user").with_caveats(*caveats)
        self.unit = "user"

    def costs(self, model, n_units=None):
        """What decides on the cost of a fit: what steps cost at the whole budget, and shares."""
        for leaf in self.learn:
            leaf.estimator.set_params(epsilon=model.epsilon, delta=model.delta)
        steps = [
            (
                leaf.path,
                leaf.n_features,
                leaf.estimator._planned_for(leaf.n_features, n_units, self.unit),
            )
            for leaf in self.learn
        ]
        return (
            *steps,
            repr(model.shares),
            repr(model.public),
            *sorted(self.node.frozen_guarantees()),
        )

    def check_fitted(self, steps):
        """Check that no step spent more than was planned for it."""
        for path in (leaf.path for leaf in self.learn):
            planned = self.division.planned.get(path, ApproxDP(0.0))
            spent = fitted_step(steps, path).guarantee_
            if replace(spent, caveats=planned.caveats) == planned or spent.delta_at(0.0) == 0.0:
                continue
            if spent.unit != planned.unit or not covers(planned, spent):
                raise RuntimeError(
                    f"Step {path!r} spent more than its planned budget; no results of this fit "
                    f"are stored. Planned: {planned} Spent: {spent}"
                )


def _length(groups):
    return len(groups) if hasattr(groups, "__len__") else 0


def seeds(random_state, count):
    """Seeds of the steps, each another one; None stays None."""
    if random_state is None:
        return [None] * count
    sequence = seed_sequence(random_state)
    return [int(part.generate_state(2, np.uint64)[0] >> 1) for part in sequence.spawn(count)]
