"""Steps, those within others included: what each of them may know of the rows."""

from contextlib import suppress
from typing import Any

from sklearn.compose import ColumnTransformer, TransformedTargetRegressor
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import FeatureUnion, Pipeline

from skdp._validation import shown
from skdp.learner import StatedGuarantee
from skdp.pipeline._order import Leaf, Parallel, Sequence
from skdp.pipeline._refusals import instead_of
from skdp.pipeline._schema import DTYPES, Schema
from skdp.pipeline._stateless import fault_of, follows_dtypes, width_of
from skdp.pipeline._wrappers import (
    WRAPPERS,
    FiniteTargets,
    is_wrapper,
    make_total,
    target_step,
)
from skdp.preprocessing._public import SparseColumns

__all__ = ["Walk", "declared", "is_private", "passes"]

PASSES = ("passthrough", "drop")


def passes(step):
    """Whether a step does nothing."""
    return step is None or (isinstance(step, str) and step in PASSES)


def is_private(step):
    """Whether a step has a guarantee of its own, for a budget that can be given to it."""
    stated: Any = step if isinstance(step, StatedGuarantee) else None
    return stated is not None and "epsilon" in stated.get_params(deep=False)


TARGET = "the target was transformed in its dtype, which one odd entry can change"


def declared(path):
    """Caveat of a step that its user takes responsibility for."""
    return f"step {path!r} was declared public"


class Walk:
    """A walk over steps, in which nothing is fitted and no row is read.

    Parameters
    ----------
    public : iterable of str
        Paths of steps that the user takes responsibility for.

    frozen : callable
        ``frozen(estimator, path)`` is the guarantee of a fitted estimator, or None if it learned
        nothing.

    change : bool, default=False
        Whether the steps are clones, in which what would read the rows is replaced: selected
        columns by their names, and a threshold of density.

    stream : str, default=None
        Path of a step that may have a guarantee of whatever kind.

    Attributes
    ----------
    caveats : list of str

    free : list of Leaf
        Steps that learn nothing.
    """

    def __init__(self, public, frozen, *, change=False, stream=None):
        self.public, self.frozen = set(public), frozen
        self.change, self.stream = change, stream
        self.caveats, self.free = [], []
        self._met = set()

    def steps(self, steps, schema, path=""):
        """Node of steps one after the other, and the schema of what they make."""
        node = Sequence()
        for name, step in steps:
            part, schema = self.step(step, schema, _join(path, name))
            if part is not None:
                node.parts.append(part)
        return node, schema

    def finish(self):
        """Check that all steps that were declared public are there."""
        for path in sorted(self.public - self._met):
            raise ValueError(f"public must name steps, as in set_params; got {shown(path)}.")

    def step(self, step, schema, path):
        """Node of one step, None if it learns nothing, and the schema of what it makes."""
        if passes(step):
            return None, schema
        if path in self.public:
            _check_public(step, path)
            self._met.add(path)
            self.caveats.append(declared(path))
            return None, Schema()
        kind = type(step)
        if kind is Pipeline:
            return self.pipeline(step, schema, path)
        if kind in (ColumnTransformer, SparseColumns):
            return self._columns(step, schema, path)
        if kind is FeatureUnion:
            return self._union(step, schema, path)
        if kind is FrozenEstimator:
            guarantee = self.frozen(step.estimator, path)
            node = None if guarantee is None else Leaf(path, step, guarantee=guarantee)
            return node, Schema()
        if is_wrapper(step):
            return self.wrapper(step, schema, path)
        if getattr(step, "_divides_budget", False):
            if not self.change and hasattr(step, "guarantee_"):  # of all its steps
                return Leaf(path, step, guarantee=step.guarantee_), Schema()
            raise ValueError(
                f"Step {path!r} is a {kind.__name__}, with a budget of its own: put its steps "
                "into this one, or fit it before and give FrozenEstimator(...)."
            )
        if is_private(step) or (path == self.stream and isinstance(step, StatedGuarantee)):
            leaf = Leaf(path, step, schema.n_columns, names=schema.names)
            return leaf, _schema_after(step, schema)
        self._check_stateless(step, path)
        self.free.append(Leaf(path, step, schema.n_columns, names=schema.names))
        if follows_dtypes(step, schema.dtypes):
            self.caveats.append(DTYPES)
        return None, schema.of_width(width_of(step, schema.n_columns))

    def _check_stateless(self, step, path):
        fault = fault_of(step)
        if fault == "":
            return
        kind = type(step).__name__
        advice = instead_of(step)
        if not _private_parts(step):  # which public must not name
            advice += f" public=({path!r},) takes responsibility for it."
        if fault:
            raise ValueError(
                f"Step {path!r} learns nothing from the rows only with other parameters: {fault}."
                f"{advice}"
            )
        raise ValueError(
            f"Step {path!r}, a {kind}, is not known to have a guarantee, nor to learn nothing "
            f"from the rows.{advice}"
        )

    def wrapper(self, step, schema, path=""):
        """Node of the estimator within a wrapper, and the schema of what it makes."""
        known = WRAPPERS[type(step)]
        if self.change and type(step) is TransformedTargetRegressor:
            step.check_inverse = False  # which would compare private targets, and warn
        fault = known.fault(step)
        if fault:
            raise ValueError(
                f"Step {path!r} learns nothing beside its {known.parameter} only with other "
                f"parameters: {fault}."
            )
        found = target_step(step, fitted=not self.change)
        if found is not None:
            name, of_target = found
            part, _ = self.step(of_target, Schema(1), _join(path, name))
            if part is not None:
                raise ValueError(
                    f"Step {_join(path, name)!r} must learn nothing from the targets; got "
                    f"{shown(of_target)}."
                )
            if self.change:
                make_total(step, of_target)
            elif type(getattr(step, "transformer_", step.transformer)) is not FiniteTargets:
                self.caveats.append(TARGET)
        inner = known.inner(step, fitted=not self.change)
        node, _ = self.step(inner, schema, _join(path, known.parameter))
        if isinstance(node, Leaf) and node.guarantee is None:
            node.around = (path, step)
        return node, Schema()

    def pipeline(self, step, schema, path):
        """Node of the steps of a pipeline, and the schema of what they make."""
        if step.memory is not None:
            raise ValueError(
                f"memory must be None in step {path!r}: a cache would keep private rows on disk; "
                f"got {shown(step.memory)}."
            )
        return self.steps(step.steps, schema, path)

    def unnamed(self, step, schema):
        """Node of the parts of what stands alone, which are named without it."""
        walk = self._union if type(step) is FeatureUnion else self._columns
        return walk(step, schema, "")[0]

    def _union(self, step, schema, path):
        node, widths = Parallel(), []
        for name, part in step.transformer_list:
            if isinstance(part, str) and part == "drop":
                continue
            found, made = self.step(part, schema, _join(path, name))
            widths.append(made.n_columns)
            if found is not None:
                node.parts.append(found)
        return node, Schema(_sum(widths))

    def _columns(self, step, schema, path):
        node, widths, taken, changed = Parallel(), [], [], []
        fitted = dict(getattr(step, "named_transformers_", {})) if not self.change else {}
        for name, part, columns in step.transformers:
            inner = _join(path, name)
            columns, selected, by_dtype = self._select(columns, schema, inner)
            if by_dtype:
                self.caveats.append(DTYPES)
            taken.append(schema.positions(columns, inner))
            changed.append((name, part, columns))
            part = fitted.get(name, part)
            if _makes_nothing(part, selected):
                continue
            found, made = self.step(part, selected, inner)
            widths.append(made.n_columns)
            if found is not None:
                node.parts.append(found)
        rest = schema.rest(taken)
        remainder = fitted.get("remainder", step.remainder)
        if not _makes_nothing(remainder, rest):
            found, made = self.step(remainder, rest, _join(path, "remainder"))
            widths.append(made.n_columns)
            if found is not None:
                node.parts.append(found)
        self._density(step, path)
        if self.change:
            step.transformers = changed
        return node, Schema(_sum(widths))

    def _select(self, columns, schema, path):
        if self.change or not callable(columns):
            return schema.select(columns, path)
        with suppress(ValueError):  # in a fitted one: which they were is public
            return schema.select(columns, path)
        raise ValueError(
            f"The columns of step {path!r} were chosen by a function, which may have read rows."
        )

    def _density(self, step, path):
        """Whether the output is sparse must not depend on how many zeros the rows have."""
        if step.sparse_threshold == 0 or type(step) is SparseColumns:
            return
        if self.change:
            step.sparse_threshold, step.__class__ = 1.0, SparseColumns
            return
        raise ValueError(
            f"sparse_threshold of step {path!r} must be 0: otherwise it reads the density of the "
            "rows, also if it is 1 and no entry is 0. A DPPipeline keeps parts sparse; "
            f"got {shown(step.sparse_threshold)}."
        )


def _check_public(step, path):
    """Refuse to call public what reads the rows under a guarantee, which would go uncounted."""
    private = _private_parts(step)
    if private:
        raise ValueError(
            f"public must not name step {path!r}: what a {private[0]} learns has a guarantee, "
            "which counts."
        )


def _private_parts(step):
    """Names of the types within a step, itself included, that have a guarantee of their own."""
    within = [step, *(step.get_params(deep=True).values() if hasattr(step, "get_params") else ())]
    return [type(part).__name__ for part in within if isinstance(part, StatedGuarantee)]


def _schema_after(step, schema):
    """Schema of what a private step makes; where it is one column for each, they are as many."""
    count = getattr(step, "_n_outputs", None)
    return Schema(None if count is None else count(schema.n_columns))


def _makes_nothing(part, schema):
    """Whether a part of a ColumnTransformer is left out; one without columns is not fitted."""
    return schema.n_columns == 0 or (isinstance(part, str) and part == "drop")


def _sum(widths):
    return None if any(width is None for width in widths) else sum(widths)


def _join(path, name):
    return f"{path}__{name}" if path else name
