"""Steps, those within others included: what each of them may know of the rows."""

from contextlib import suppress
from functools import partial
from inspect import isclass, signature

import numpy as np
from scipy.sparse import issparse
from sklearn.base import clone
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.utils import get_tags

from skdp._validation import short_repr
from skdp.learner import StatedGuarantee
from skdp.pipeline._division import Leaf, Parallel, Sequence
from skdp.pipeline._wrappers import (
    DTYPES,
    LEVELS,
    OF_ALL_KINDS,
    WRAPPERS,
    FiniteTargets,
    Schema,
    fault_of,
    follows_dtypes,
    instead_of,
    is_wrapper,
    target_step,
    width_of,
)
from skdp.preprocessing import DatetimeParts
from skdp.preprocessing._private import SparseColumns, TruthValueScaler
from skdp.rows._inputs import checked_array
from skdp.rows._source_frames import visit

CONTAINERS = (Pipeline, ColumnTransformer, SparseColumns, FeatureUnion)


def passes(step):
    """Whether a step does nothing."""
    return step is None or (isinstance(step, str) and step in ("passthrough", "drop"))


def is_private(step):
    """Whether a step has a guarantee of its own, for a budget that can be given to it."""
    return isinstance(step, StatedGuarantee) and "epsilon" in signature(type(step)).parameters


UNKNOWN = "is not known to have a guarantee, nor to learn nothing from the rows."
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
        parts = []
        for name, step in steps:
            part, schema = self.step(step, schema, _join(path, name))
            parts.append(part)
        return Sequence(_some(parts)), schema

    def finish(self):
        """Check that all steps that were declared public are there."""
        for path in sorted(self.public - self._met):
            raise ValueError(f"public must name steps, as in set_params; got {short_repr(path)}.")

    def step(self, step, schema, path):
        """Node of one step, None if it learns nothing, and the schema of what it makes."""
        if passes(step):
            return None, schema
        if path in self.public:
            private = _private_parts(step)
            if private:  # which would go uncounted
                raise ValueError(
                    f"public must not name step {path!r}: a {private[0]} has a guarantee, which "
                    "is counted."
                )
            self._met.add(path)
            self.caveats.append(declared(path))
            return None, Schema()
        kind = type(step)
        if kind in CONTAINERS:
            return self.container(step, schema, path)
        if kind is FrozenEstimator:
            guarantee = self.frozen(step.estimator, path)
            node = None if guarantee is None else Leaf(path, step, guarantee=guarantee)
            return node, Schema()
        if is_wrapper(step):
            return self.wrapper(step, schema, path)
        if getattr(step, "_divides_budget", False) and hasattr(step, "steps"):
            if not self.change and hasattr(step, "guarantee_"):  # of all its steps
                return Leaf(path, step, guarantee=step.guarantee_), Schema()
            raise ValueError(
                f"Step {path!r} is a {kind.__name__} with its own budget: put its steps into this "
                "pipeline, or fit it first and pass FrozenEstimator(...)."
            )
        if is_private(step) or (path == self.stream and isinstance(step, StatedGuarantee)):
            leaf = Leaf(path, step, schema.n_columns, names=schema.names)
            count = getattr(step, "_n_outputs", lambda n_features: None)
            return leaf, Schema(count(schema.n_columns))
        self._check_stateless(step, path)
        self.free.append(Leaf(path, step, schema.n_columns, names=schema.names))
        if follows_dtypes(step, schema.dtypes):
            self.caveats.append(DTYPES)
        return None, schema.of_width(width_of(step, schema.n_columns))

    def _check_stateless(self, step, path):
        fault = fault_of(step)
        if fault == "":
            return
        advice = instead_of(step)
        if not _private_parts(step):  # which public must not name
            advice += f" public=({path!r},) takes responsibility for it."
        if fault:
            raise ValueError(
                f"Step {path!r} may learn from the rows with these parameters: {fault}.{advice}"
            )
        raise ValueError(f"{Leaf(path, step)} {UNKNOWN}{advice}")

    def wrapper(self, step, schema, path=""):
        """Node of the estimator within a wrapper, and the schema of what it makes."""
        known = WRAPPERS[type(step)]
        if self.change and type(step) is TransformedTargetRegressor:
            step.check_inverse = False  # which would compare private targets, and warn
        fault = known.fault(step)
        if fault:
            raise ValueError(
                f"Step {path!r} may learn more than its {known.parameter} with these parameters: "
                f"{fault}."
            )
        found = target_step(step, fitted=not self.change)
        if found is not None:
            name, of_target = found
            part, _ = self.step(of_target, Schema(1), _join(path, name))
            if part is not None:
                raise ValueError(
                    f"Step {_join(path, name)!r} must learn nothing from the targets; got "
                    f"{short_repr(of_target)}."
                )
            if self.change:
                finite = FiniteTargets(of_target)  # for whatever target
                step.set_params(transformer=finite, func=None, inverse_func=None)
            elif type(getattr(step, "transformer_", step.transformer)) is not FiniteTargets:
                self.caveats.append(TARGET)
        inner = known.inner(step, fitted=not self.change)
        node, _ = self.step(inner, schema, _join(path, known.parameter))
        if isinstance(node, Leaf) and node.guarantee is None:
            node.around = (path, step)
        return node, Schema()

    def container(self, step, schema, path=""):
        """Node of the steps of a pipeline or the parts of others, and the schema they make."""
        if type(step) is Pipeline:
            if step.memory is not None:
                raise ValueError(
                    f"memory must be None in step {path!r}: a cache would store private rows on "
                    f"disk; got {short_repr(step.memory)}."
                )
            return self.steps(step.steps, schema, path)
        if type(step) is FeatureUnion:
            parts = [(name, part, schema) for name, part in step.transformer_list]
            parts = [one for one in parts if not _makes_nothing(one[1], Schema())]
        else:
            parts = self._columns(step, schema, path)
        made = [self.step(part, columns, _join(path, name)) for name, part, columns in parts]
        widths = [schema.n_columns for _, schema in made]
        width = None if None in widths else sum(widths)
        if type(step) is not FeatureUnion:
            self._density(step, path)
        return Parallel(_some(node for node, _ in made)), Schema(width)

    def _columns(self, step, schema, path):
        """Name, part and schema of each part of a ColumnTransformer that is fitted."""
        taken, changed = [], []
        fitted = {} if self.change else dict(getattr(step, "named_transformers_", {}))
        for name, part, columns in step.transformers:
            inner = _join(path, name)
            columns, selected, by_dtype = self._select(columns, schema, inner)
            if by_dtype:
                self.caveats += [DTYPES, LEVELS] if columns.levels else [DTYPES]
            taken.append(schema.positions(columns, inner))
            part = fitted.get(name, part)
            is_left_out = _makes_nothing(part, selected)
            # What has no columns asks for no groups.
            changed.append((name, "drop" if is_left_out else part, columns))
            if not is_left_out:
                yield name, part, selected
        remainder, rest = fitted.get("remainder", step.remainder), schema.rest(taken)
        if not _makes_nothing(remainder, rest):
            yield "remainder", remainder, rest
        elif self.change:
            step.remainder = "drop"
        if self.change:
            step.transformers = changed

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
            f"sparse_threshold of step {path!r} must be 0: other values read the density of the "
            "rows, even 1 if no entry is 0. A DPPipeline keeps parts sparse; got "
            f"{short_repr(step.sparse_threshold)}."
        )


def _private_parts(step):
    """Names of the types within a step, itself included, that have a guarantee of their own."""
    within = [step, *(step.get_params(deep=True).values() if hasattr(step, "get_params") else ())]
    return [type(part).__name__ for part in within if isinstance(part, StatedGuarantee)]


def _makes_nothing(part, schema):
    """Whether a part of a ColumnTransformer is left out; one without columns is not fitted."""
    return schema.n_columns == 0 or (isinstance(part, str) and part == "drop")


def _some(parts):
    return [part for part in parts if part is not None]


def _join(path, name):
    return f"{path}__{name}" if path else name


def fitted_step(steps, path):
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


OWN = ("epsilon", "delta", "adjacency", "ledger", "random_state")


def check_steps(steps, reserved):
    """Check the list of steps: pairs of a name and an estimator."""
    if not isinstance(steps, list | tuple) or not steps:
        raise ValueError(
            f"steps must be a list of pairs (name, estimator), not empty; got {short_repr(steps)}."
        )
    for pair in steps:
        if not isinstance(pair, tuple | list) or len(pair) != 2:
            raise ValueError(f"steps must be pairs (name, estimator); got {short_repr(pair)}.")
    names = [name for name, _ in steps]
    if not all(isinstance(name, str) for name in names):
        raise ValueError(f"steps must have names that are strings; got {short_repr(names)}.")
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        raise ValueError(f"steps must have distinct names; got {short_repr(repeated)} twice.")
    taken = sorted(set(names) & set(reserved))
    if taken:
        raise ValueError(f"steps must not be named like a parameter; got {short_repr(taken)}.")
    if any("__" in name or not name for name in names):
        raise ValueError(f"steps must have names without '__'; got {short_repr(names)}.")
    for position, (name, step) in enumerate(steps):
        if passes(step) and step != "drop":
            continue
        if isclass(step) or not hasattr(step, "fit"):
            raise TypeError(
                f"Step {name!r} must be an estimator, an instance; got {short_repr(step)}."
            )
        if position < len(steps) - 1 and not hasattr(step, "transform"):
            raise TypeError(
                f"Step {name!r} must be a transformer, as it is not the last; got "
                f"{short_repr(step)}."
            )


def check_own_budget(leaf, model, *, names=OWN):
    """Refuse a budget of a step's own: it would be spent beside that of the pipeline."""
    whole = "the pipeline has one {name} for all steps. Give it to the pipeline"
    check_defaults(leaf.estimator, model, str(leaf), f"step {leaf.path!r}", whole, names=names)


def check_defaults(estimator, model, what, path, whole, *, names=OWN):
    """Check that parameters are the defaults, which stand for those of a whole.

    Parameters
    ----------
    estimator : estimator

    model : estimator
        The whole, of which a part may state the same adjacency.

    what, path : str
        The part, in messages.

    whole : str
        Why, with ``{name}`` for the parameter.

    names : tuple of str, default=OWN
    """
    defaults = signature(type(estimator)).parameters
    for name in names:
        if name not in defaults:
            raise ValueError(
                f"{what} has no parameter {name}, so it cannot get a share of a budget."
            )
        own, default = getattr(estimator, name), defaults[name].default
        same = own is default or (type(own) is type(default) and own == default)
        if same or (name == "adjacency" and own == model.adjacency):
            continue
        raise ValueError(
            f"{name} of {path} must be the default, {default!r}: {whole.format(name=name)}; "
            f"got {short_repr(own)}."
        )


def check_input(steps, X, schema, public):
    """Refuse rows that a step must fail at which is given columns as they came.

    Parameters
    ----------
    steps : list of (str, estimator)
        As a walk has changed them.

    X : {array-like, frame, sparse matrix} of shape (n_samples, n_features)

    schema : Schema
        Of ``X``.

    public : collection of str
        Steps that the user takes responsibility for.
    """
    visit(X, partial(_check_rows, list(steps), schema, public))


def _check_rows(steps, schema, public, rows):
    shape: tuple[int, ...] = getattr(rows, "shape", ())
    places = range(shape[1]) if len(shape) == 2 else None
    if places is None or shape[0]:
        _InputCheck(rows, schema, public).first(steps, places)


class _InputCheck:
    """Check of rows for steps that are given them as they came, in columns of these places."""

    def __init__(self, X, schema, public):
        self.X, self.schema, self.public = X, schema, public
        self.is_sparse = issparse(X) or hasattr(X, "sparse")  # of pandas where all columns are

    def first(self, steps, places):
        """Check columns for the first of several steps, named by paths, that does anything."""
        for i, (path, step) in enumerate(steps):
            if not passes(step):
                self.step(step, path, places, steps[i + 1 :])
                return

    def step(self, step, path, places, then):
        """Check columns for a step, and those that it passes on for the steps after it."""
        kind = type(step)
        if kind is DatetimeParts and path not in self.public:
            places = self.table(places)
            clone(step).fit(self.columns(list(places)))
        if path in self.public or kind in OF_ALL_KINDS:
            return
        if passes(step):
            if step != "drop" and not self.is_sparse:
                self.first(then, places)
        elif kind is Pipeline:
            parts = [(f"{path}__{name}", part) for name, part in step.steps]
            self.first([*parts, *then], places)
        elif kind is FeatureUnion:
            for name, part in step.transformer_list:
                self.step(part, f"{path}__{name}", places, then)
        elif is_wrapper(step):
            name = WRAPPERS[kind].parameter
            self.step(getattr(step, name), f"{path}__{name}", places, then)
        elif isinstance(step, ColumnTransformer):
            places = self.table(places)
            if len(places) < self.X.shape[1]:
                return  # of a part of the columns: their positions are others
            for name, part, columns in step.transformers:
                inner = f"{path}__{name}"
                taken = self.schema.positions(columns, inner)
                # A part with an empty list is left out, and one with an empty slice is not.
                if type(part) is HashingVectorizer and taken and inner not in self.public:
                    self.texts(taken, columns, inner)
                elif taken or (taken is not None and isinstance(columns, slice)):
                    self.step(part, inner, taken, then)
        else:
            self.numbers(step, f"Step {path!r}, a {kind.__name__},", places)

    def table(self, places):
        """Positions of columns, also of lists, which must be a table."""
        if places is None or isinstance(self.X, np.matrix) or np.ma.is_masked(self.X):
            self.X = checked_array(self.X, dtype=object, ensure_all_finite=False)
        return range(self.X.shape[1]) if places is None else places

    def columns(self, places):
        return self.X.iloc[:, places] if hasattr(self.X, "iloc") else self.X[:, places]

    def texts(self, taken, columns, path):
        what = f"Step {path!r}, a HashingVectorizer,"
        if not isinstance(columns, str | int | np.integer):
            raise ValueError(
                f"{what} takes one text column: select it by name, not by a list; got "
                f"{short_repr(columns)}."
            )
        if not all(isinstance(value, str | bytes) for value in self.columns(taken[0])):
            raise ValueError(f"{what} takes only strings: replace missing values by ''.")

    def numbers(self, step, what, places):
        tags = get_tags(step).input_tags
        if self.is_sparse:
            if not tags.sparse:
                raise TypeError(f"{what} takes no sparse rows: pass X.toarray().")
            if issparse(self.X):
                values = checked_array(self.X, ensure_all_finite=False).data
                _check_finite(values, what, step)
            return
        if not tags.two_d_array:
            return
        places = self.table(places)
        if not places:
            raise ValueError(f"{what} takes columns, but X has none.")
        texts = [isinstance(name, str) for name in self.schema.names or ()]
        if any(texts) and not all(texts):
            raise TypeError(f"{what} takes columns whose names are all strings, or no names.")
        if tags.string or tags.categorical:
            return
        if isinstance(self.X, np.ndarray) and self.X.dtype.kind == "f":
            with np.errstate(all="ignore"):
                if np.isfinite(self.X.sum()):  # only if all numbers are
                    return
        kinds = [getattr(dtype, "kind", "O") for dtype in self.schema.dtypes or ()]
        places = [place for place in places if not kinds or kinds[place] not in "iub"]
        with suppress(TypeError, ValueError):  # of one by one, which takes longer
            values = checked_array(self.columns(places), ensure_all_finite=False)
            _check_finite(values, what, step)
            return
        for place in places:
            self.column(place, step, what)

    def column(self, place, step, what):
        names, values = self.schema.names, None
        try:
            values = checked_array(self.columns([place]), ensure_all_finite=False)
        except (TypeError, ValueError):
            if not names:
                raise
        if values is None:
            if type(step) is TruthValueScaler:
                clone(step).fit(self.columns([place]))  # which says what it wants
            raise ValueError(
                f"{what} takes numbers, but column {short_repr(names[place])} has other values: "
                "encode text with DPOneHotEncoder, convert dates to numbers, or drop the column."
            )
        _check_finite(values, what, step, f" (column {short_repr(names[place])})" if names else "")


def _check_finite(values, what, step, where=""):
    if np.isinf(values).any():
        advice = "make missing values NaN, or clip others"
        raise ValueError(f"{what} takes finite numbers: {advice}{where}.")
    if not get_tags(step).input_tags.allow_nan and np.isnan(values).any():
        own = "pass missing='center' to it, or " if hasattr(step, "missing") else ""
        raise ValueError(f"{what} takes no NaN: {own}put a DPSimpleImputer before it{where}.")
