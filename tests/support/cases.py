"""One random call of the public interface, and what must hold whatever becomes of it.

A case is an estimator, or a function, with random parameters, mostly valid, and with data of a
random type in a random container, which may be faulty. See `breaches_of` for what is checked.
"""

import inspect
import io
import pickle
import re
import signal
import traceback
import warnings
from contextlib import contextmanager, redirect_stderr, redirect_stdout, suppress
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor
from sklearn.exceptions import ConvergenceWarning, DataConversionWarning, NotFittedError
from sklearn.feature_selection import SelectFromModel
from sklearn.model_selection import FixedThresholdClassifier
from sklearn.preprocessing import Normalizer
from sklearn.utils import get_tags

from skdp import exceptions, local
from skdp.audit._runs import LIVE, contents, same
from skdp.kernel import DPKernelRidge, DPOnlineKernelRegressor
from skdp.linear_model import DPLinearSVC, DPLogisticRegression
from skdp.metrics import dp_evaluate
from skdp.pipeline import DPPipeline
from skdp.preprocessing import (
    BoundedScaler,
    DPOneHotEncoder,
    DPQuantileScaler,
    DPSimpleImputer,
    RowNormClipper,
    bound_contributions,
    dp_histogram,
    dp_mean,
    dp_quantile,
    make_private_preprocessor,
)
from skdp.privacy import BudgetLedger
from support import containers
from support.configurations import EVERYTHING, outcome
from support.fits import Draw, configuration, configured
from support.memory import parts_as_long_as

__all__ = ["Outcome", "attempt"]

# What may leave a call. Subclasses carry data, as those about codecs do.
REFUSALS = (
    *(ValueError, TypeError, NotFittedError, exceptions.BudgetExceededError),
    *(exceptions.NoConversionError, exceptions.StaleStreamError),
)
WARNINGS = (UserWarning, DataConversionWarning, ConvergenceWarning, exceptions.PrivacyWarning)
SECONDS = 5.0  # of CPU

# Data that no model may take.
ROWS_TO_REFUSE = {"inf", "complex", "text", "dimensions", "masked", "empty", "times"}
TARGETS_TO_REFUSE = {
    *("nan", "inf", "masked", "odd target", "missing label", "long", "none", "wide", "missing"),
}
GROUPS_TO_REFUSE = {"missing", "long", "wide"}


@dataclass
class Outcome:
    """What became of a case: "fitted" or "refused", and what must not be."""

    result: str
    told: str
    breaches: list[str]


@dataclass
class Case:
    """One call, not made yet.

    Parameters
    ----------
    told : str

    act : callable

    given : dict of str to Table
        What the caller passes.

    ledger : BudgetLedger

    subject : estimator, default=None
        What may change.

    changes : bool, default=True
        Whether it changes if the call succeeds.

    twin : callable, default=None
        The same call with equal data in plain arrays.

    n_samples : int, default=0

    is_plain : bool, default=False
        Whether data and parameters are sound, so that nothing is warned of.

    must_refuse : set of str
        Faults for which the call must not succeed.
    """

    told: str
    act: Any
    given: dict
    ledger: Any
    subject: Any = None
    changes: bool = True
    twin: Any = None
    n_samples: int = 0
    is_plain: bool = False
    must_refuse: set = field(default_factory=set)


# Drawing


def case_of(seed, world):
    """The case of a seed, with one of two sets of private values."""
    draw = Draw(seed)
    if draw.chance(0.2):
        return plain_case(seed)
    if draw.chance(0.12):
        return draw.one_of(device_case, column_case, contribution_case)(draw, world)
    subject, unit, text = subject_of(draw)
    ledger = BudgetLedger(epsilon=1e6, delta=0.9)
    params = subject.get_params(deep=False)
    if "random_state" in params:
        subject.set_params(random_state=int(draw.rng.integers(100)))
    if "ledger" in params:
        subject.set_params(ledger=ledger)
    n, d = draw.one_of(*[47] * 20, 41, 41, 2, 1, 0), draw.one_of(*[3] * 12, 1, 2, 0)
    X = containers.rows(draw, n, d, world, unit=unit, allows_text=text)
    y, classes = answers_of(draw, subject, n, world)
    if is_classifier(subject) and draw.chance(0.7):
        with suppress(ValueError):
            subject.set_params(**{_classes_name(subject): list(classes)})
    actions = ["fit"] * 4 + ["refit"] * 3 + ["again"]
    if hasattr(subject, "partial_fit"):
        actions += ["partial_fit"] * 3
    if hasattr(subject, "predict") or hasattr(subject, "transform"):
        actions += ["predict"] * 2
    if hasattr(subject, "predict"):
        actions += ["evaluate"]
    action = draw.one_of(*actions)
    is_hopeless = draw.chance(0.08) and action not in ("predict", "evaluate")
    case = Case("", None, {"X": X, "y": y}, ledger, subject, n_samples=n)
    drawn = {"predict": predict_case, "evaluate": evaluate_case}.get(action, fit_case)
    drawn(draw, world, case, action, classes, unit)
    data = ", ".join(f"{name}: {table.told}" for name, table in case.given.items())
    case.told = f"{action} {case.told}of {_short(subject)} on {data}"
    if is_hopeless:
        case.told += f" with {hopeless_parameter(draw, subject)}"
        case.must_refuse, case.twin = set(), None
    return case


def _short(subject):
    return re.sub(r"\s+", " ", repr(subject))[:600]


def _classes_name(subject):
    return f"{subject.steps[-1][0]}__classes" if hasattr(subject, "steps") else "classes"


def subject_of(draw):
    """An estimator, the unit of its rows, and whether it takes text."""
    if draw.chance(0.3):
        kind, params, unit = configured(draw)
        return kind(**params), unit, False
    if draw.chance(0.3):
        name = draw.one_of(*COMPOSED)
        return COMPOSED[name](draw), 1.0, "frame" in name
    name = draw.one_of(*EVERYTHING)
    takes_text = "OneHot" in name or "most_frequent" in name
    return clone(EVERYTHING[name]), 1.0, takes_text


def _raw_frame(draw):
    steps = [("prepare", make_private_preprocessor(n_splines=draw.one_of(None, 4)))]
    model = draw.one_of(DPLogisticRegression(), DPLinearSVC())
    return DPPipeline([*steps, ("model", model)], epsilon=50.0, delta=draw.one_of(1e-3, 0.0))


def _columns(draw):
    which = draw.one_of(([0], [1, 2]), (["column 0"], ["column 1"]), ([0, 1], slice(2, 3)))
    parts = [("one", DPQuantileScaler(quantiles=(0.2, 0.8)), which[0])]
    parts += [("two", draw.one_of(BoundedScaler(), "drop", "passthrough"), which[1])]
    prepare = ColumnTransformer(parts, sparse_threshold=0.0)
    return DPPipeline([("prepare", prepare), ("model", DPLogisticRegression())], epsilon=50.0)


def _imputed(draw):
    steps = [
        ("impute", DPSimpleImputer(add_indicator=draw.one_of(True, False))),
        ("rows", draw.one_of(Normalizer(), RowNormClipper())),
        ("model", DPKernelRidge(n_components=20, y_bounds=(-1.0, 1.0))),
    ]
    return DPPipeline(steps, epsilon=50.0)


def _encoded(draw):
    steps = [("encode", DPOneHotEncoder(sparse_output=draw.one_of(True, False)))]
    steps += [("model", DPLogisticRegression())]
    return DPPipeline(steps, epsilon=50.0, delta=1e-3)


def _around(draw):
    selection = SelectFromModel(DPLogisticRegression(), max_features=draw.one_of(1, 2))
    last = FixedThresholdClassifier(DPLogisticRegression(), threshold=draw.one_of(0.1, "auto"))
    return DPPipeline([("selection", selection), ("model", last)], epsilon=50.0)


def _of_targets(draw):
    ridge = DPKernelRidge(n_components=20, y_bounds=(-1.0, 1.0))
    func = draw.one_of(np.log, np.square, np.reciprocal, None)
    step = TransformedTargetRegressor(ridge, func=func, inverse_func=func and np.abs)
    return DPPipeline([("model", step)], epsilon=50.0)


# Parameters of scikit-learn's own, which it checks in its own time.
_OF_OTHERS = ("memory", "remainder", "transformers", "transformer_weights", "sparse_threshold")
_OF_OTHERS += ("transform_input", "verbose_feature_names_out", "force_int_remainder_cols")

COMPOSED = {
    "frame": _raw_frame,
    "columns": _columns,
    "imputed": _imputed,
    "encoded frame": _encoded,
    "around": _around,
    "targets": _of_targets,
}


def answers_of(draw, subject, n, world):
    if is_regressor(subject):
        return containers.targets_of(draw, n, world, *_bounds(subject)), ()
    return containers.labels_of(draw, n, world)


def _bounds(subject):
    try:
        low, high = map(float, subject.y_bounds)
    except (AttributeError, TypeError, ValueError):
        return -1.0, 1.0
    return low, high


def hopeless_parameter(draw, subject):
    """Set a parameter to what it mostly does not take."""
    left_out = ("ledger", "n_jobs", "engine", "random_state", "verbose", *_OF_OTHERS)
    names = [name for name in sorted(subject.get_params()) if not name.endswith(left_out)]
    name = draw.one_of(*names)
    value = draw.one_of(
        *(float("nan"), float("inf"), -1, 0, -0.5, 10**400, None, [], (), {}, object(), "auto"),
        *("no such thing", "\ud800", b"bytes", True, np.array([1.0, 2.0]), np.float32("inf"), 1j),
        *(np.ma.masked, [[1]], (1.0, -1.0), int, float, 1e308, 5e-324, 2**53 + 1),
    )
    with suppress(ValueError, TypeError):
        subject.set_params(**{name: value})
    return f"{name}={type(value).__name__} {str(value)[:20]!a}"


def good_data(subject, unit, classes):
    """Plain rows and answers."""
    rng = np.random.default_rng(0)
    d = getattr(subject, "n_features_in_", 3)
    X = rng.uniform(-0.5, 0.5, (60, d)) * unit
    if _is_composed(subject):
        X = pd.DataFrame(X, columns=[f"column {j}" for j in range(d)])
    if is_regressor(subject):
        return X, rng.uniform(*_bounds(subject), 60)
    return X, np.resize(np.asarray(classes), 60)


def fit_case(draw, world, case, action, classes, unit):
    """A first fit, one after another, the same twice, or more of a stream."""
    subject, method = case.subject, "partial_fit" if action == "partial_fit" else "fit"
    if action == "refit" or (action == "partial_fit" and draw.chance(0.5)):
        X, y = good_data(subject, unit, classes)
        _quietly(lambda: getattr(subject, method)(X, y))
    call = getattr(subject, method)
    accepted = inspect.signature(call).parameters
    owned = {}
    if "groups" in accepted:
        groups = containers.groups_of(draw, case.n_samples, world)
        if groups.given is not None:
            case.given["groups"] = groups
            owned["groups"] = groups.given
    if "node" in accepted and draw.chance(0.2):
        nodes = draw.rng.integers(draw.one_of(1, 2, 99), size=case.n_samples)
        owned["node"] = draw.one_of(nodes, nodes.tolist(), nodes.astype(float), "a", nodes[:-1])
    if method == "partial_fit" and "classes" in accepted and draw.chance(0.3):
        owned["classes"] = classes
    X, y = case.given["X"], case.given["y"]
    positional = () if y.given is None and "none" in y.faults and draw.chance(0.5) else (y.given,)
    if action == "again":  # the same data twice, which is two fits
        _quietly(lambda: call(X.given, *positional, **owned))
    case.act = lambda: call(X.given, *positional, **owned)
    simple = hasattr(subject, "predict") and not _is_composed(subject)
    if simple:
        case.must_refuse = X.faults & ROWS_TO_REFUSE | y.faults & TARGETS_TO_REFUSE
        if "nan" in X.faults and not get_tags(subject).input_tags.allow_nan:
            case.must_refuse.add("nan")
        if "groups" in case.given:
            case.must_refuse |= case.given["groups"].faults & GROUPS_TO_REFUSE
        if case.n_samples == 0:
            case.must_refuse.add("empty")
    fresh = not hasattr(subject, "guarantee_") and action in ("fit", "partial_fit")
    exact = X.exact is not None and y.exact is not None
    # What is composed may choose columns by their names.
    if fresh and exact and not _is_composed(subject) and not (y.faults | X.faults - {"sparse"}):
        case.twin = lambda: _twin(case, method, owned)


def _is_composed(subject):
    params = subject.get_params(deep=False)
    return "estimator" in params or "steps" in params


def _twin(case, method, owned):
    alike = clone(case.subject)
    if "ledger" in alike.get_params(deep=False):
        alike.set_params(ledger=None)
    X, y = case.given["X"].exact, case.given["y"].exact
    fitted = getattr(alike, method)(X, y, **owned)
    return _told_by(fitted, X)


def predict_case(draw, world, case, action, classes, unit):
    """Rows that a fitted model is asked of."""
    subject = case.subject
    X, y = good_data(subject, unit, classes)
    _quietly(lambda: subject.fit(X, y))
    if isinstance(subject, DPOnlineKernelRegressor) and draw.chance(0.3):
        with suppress(ValueError):  # of a stream that has none
            case.subject = subject = subject.released()
    case.changes = getattr(subject, "release", "") == "query"
    names = [
        *("predict", "transform", "predict_proba", "decision_function", "inverse_transform"),
        "predict_log_proba",
    ]
    method = draw.one_of(*[name for name in names if hasattr(subject, name)])
    del case.given["y"]
    case.act = lambda: _read(getattr(subject, method)(case.given["X"].given))
    case.told = f"by {method} "
    if hasattr(subject, "predict") and not _is_composed(subject):
        case.must_refuse = case.given["X"].faults & ROWS_TO_REFUSE
        if "nan" in case.given["X"].faults and not get_tags(subject).input_tags.allow_nan:
            case.must_refuse.add("nan")


def evaluate_case(draw, world, case, action, classes, unit):
    """Scores of a fitted model on private rows."""
    subject = case.subject
    X, y = good_data(subject, unit, classes)
    _quietly(lambda: subject.fit(X, y))
    case.changes = getattr(subject, "release", "") == "query"
    scorings = (
        ("r2", "neg_mean_absolute_error", "neg_root_mean_squared_error", "auto", ["r2"])
        if is_regressor(subject)
        else ("accuracy", "roc_auc", "f1", "neg_log_loss", "auto", ["accuracy", "f1_macro"])
    )
    scoring = draw.one_of(*scorings)
    options = dict(
        delta=draw.one_of(0.0, 1e-5), adjacency=draw.one_of("replace-one", "add-remove")
    )
    ledger = case.ledger = BudgetLedger(epsilon=1e6, delta=0.9)
    seed = int(draw.rng.integers(100))
    X, y = case.given["X"].given, case.given["y"].given
    case.act = lambda: dp_evaluate(
        subject, X, y, draw_epsilon, scoring=scoring, ledger=ledger, random_state=seed, **options
    )
    draw_epsilon = draw.one_of(1.0, 0.01, 30.0)
    case.must_refuse = case.given["y"].faults & TARGETS_TO_REFUSE


def device_case(draw, world):
    """A message of a device."""
    n = draw.one_of(1, 1, 1, 4, 47, 0)
    d = draw.one_of(3, 1, 0)
    kind = draw.one_of("gradient", "point", "value")
    loss = draw.one_of("absolute", "huber", "squared")
    regression = dict(loss=loss, noise=draw.one_of("gaussian", "k_norm"))
    X = containers.rows(draw, n, d, world)
    y = containers.targets_of(draw, n, world)
    weights = draw.one_of(np.zeros(d + 1), [0.1] * (d + 1), np.full(d + 1, np.inf), np.zeros(7))
    scale, seed = draw.one_of(5.0, 0.3, 1e4), int(draw.rng.integers(100))
    x = X.given
    with suppress(Exception):
        x = X.given[0] if draw.chance(0.3) else x
    answer = y.given
    with suppress(Exception):
        answer = y.given[0] if n == 1 and draw.chance(0.5) else answer

    def act():
        if kind == "gradient":
            device = local.GradientPrivatizer(scale, **regression)
            return device.release(weights, x, answer, random_state=seed)
        if kind == "value":
            device = local.ValuePrivatizer(scale, value_range=2.0, **regression)
            return device.release(weights, x, answer, random_state=seed)
        device = local.OnePointPrivatizer(scale, value_range=2.0, **regression)
        return device.release(weights, x, answer, 0.5, random_state=seed)

    told = f"{kind} of {regression} of X: {X.told}, y: {y.told}, weights {weights!r}"
    return Case(told, act, {"X": X, "y": y}, None)


def column_case(draw, world):
    """A statistic of a column."""
    n = draw.one_of(47, 47, 47, 1, 0)
    ledger = BudgetLedger(epsilon=1e6, delta=0.9)
    kind = draw.one_of("mean", "mean of auto", "quantile", "histogram", "names")
    column = containers.targets_of(draw, n, world)
    classes = None
    if kind == "names":
        column, classes = containers.labels_of(draw, n, world)
    options = dict(
        epsilon=draw.one_of(1.0, 50.0, 1e-3),
        delta=draw.one_of(0.0, 1e-5),
        adjacency=draw.one_of("replace-one", "add-remove"),
        ledger=ledger,
        random_state=int(draw.rng.integers(100)),
    )
    some = {"categories": draw.one_of(None, list(classes))} if kind == "names" else {}

    def act():
        if kind == "quantile":
            return dp_quantile(column.given, (0.25, 0.5), **options)
        if kind == "mean":
            return dp_mean(column.given, bounds=(-1.0, 1.0), **options)
        if kind == "mean of auto":
            return dp_mean(column.given, **options)
        if kind == "histogram":
            return dp_histogram(column.given, edges=(-1.0, 0.0, 1.0), **options)
        return dp_histogram(column.given, **some, **options)

    told = f"{kind} of {column.told}, {options | some}"
    must_refuse = column.faults & {"masked", "wide"}
    return Case(told, act, {"column": column}, ledger, must_refuse=must_refuse)


def contribution_case(draw, world):
    """So many rows of each user."""
    n = draw.one_of(47, 47, 1, 0)
    X, y = containers.rows(draw, n, 3, world), containers.targets_of(draw, n, world)
    groups = containers.groups_of(draw, n, world)
    adjacency = draw.one_of("replace-one", "add-remove")

    def act():
        return bound_contributions(X.given, y.given, groups.given, 2, adjacency=adjacency)

    told = f"contributions of X: {X.told}, y: {y.told}, {groups.told}"
    return Case(told, act, {"X": X, "y": y, "groups": groups}, None)


def plain_case(seed):
    """A valid configuration on sound data: it fits, and nothing is warned of."""
    subject, X, y, kind = configuration(seed)
    given = {
        "X": containers.Table(X, f"{kind} rows of shape {X.shape}"),
        "y": containers.Table(y, ""),
    }
    told = f"plain fit of {_short(subject)} on {kind} rows of shape {X.shape}"
    act = lambda: subject.fit(X, y)  # noqa: E731
    return Case(told, act, given, subject.ledger, subject, n_samples=X.shape[0], is_plain=True)


def _quietly(act):
    """A call before the one that counts."""
    with warnings.catch_warnings(), suppress(*REFUSALS), redirect_stderr(io.StringIO()):
        warnings.simplefilter("ignore")
        act()


# Making the call


@dataclass
class Heard:
    """Everything that a call let out."""

    value: Any = None
    error: Any = None
    warnings: list = field(default_factory=list)
    written: str = ""

    @property
    def texts(self):
        """All texts, in which addresses of objects are not told apart."""
        found = [self.written, *(str(one.message) for one in self.warnings)]
        seen, left = set(), [self.error]
        while left:
            error = left.pop()
            if error is None or id(error) in seen:
                continue
            seen.add(id(error))
            found += [type(error).__name__, str(error), repr(error.args), repr(vars(error))]
            left += [error.__cause__, error.__context__]
        return [re.sub(r"0x[0-9a-f]+", "0x", text) for text in found]


class Slow(BaseException):
    """A call took too many seconds of CPU."""


@contextmanager
def _limited(seconds):
    if not hasattr(signal, "setitimer"):
        yield
        return

    def stop(*_):
        raise Slow

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0.0)
        signal.signal(signal.SIGPROF, before)


def heard_of(act):
    """Make a call, and note all that it lets out."""
    heard, out = Heard(), io.StringIO()
    with (
        warnings.catch_warnings(record=True) as caught,
        redirect_stdout(out),
        redirect_stderr(out),
    ):
        warnings.simplefilter("always")
        try:
            with _limited(SECONDS):
                heard.value = act()
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            heard.error = error
    heard.warnings, heard.written = caught, out.getvalue()
    return heard


@dataclass
class Before:
    """How things are before a call."""

    given: dict
    history: list
    attributes: dict
    pickled: Any
    params: dict

    @classmethod
    def of(cls, case):
        given = {name: containers.fingerprint(table.given) for name, table in case.given.items()}
        history = [] if case.ledger is None else case.ledger.history()
        if case.subject is None:
            return cls(given, history, {}, None, {})
        return cls(
            given,
            history,
            dict(vars(case.subject)),
            _pickled(case.subject),
            _held_by_params(case.subject),
        )


def _pickled(subject):
    try:
        return pickle.dumps(subject)
    except Exception as error:  # of a hopeless parameter
        return repr(error)


def _held_by_params(subject):
    """Parameters, and what they hold."""
    params = {name: value for name, value in subject.get_params().items() if name != "ledger"}
    return {name: (value, contents(value, name)) for name, value in params.items()}


# Judging it


def attempt(seed):
    """Run the case of a seed, and say what became of it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of what makes the data
        case = case_of(seed, 0)
        before = Before.of(case)
        heard = heard_of(case.act)
        breaches = [*breaches_of(case, before, heard), *shown_by(case, heard, seed)]
    return Outcome("refused" if heard.error else "fitted", f"seed {seed}: {case.told}", breaches)


def breaches_of(case, before, heard):
    """What must not be, one text each."""
    error = heard.error
    for one in heard.warnings:
        is_of_delta = str(one.message).startswith("delta=")  # which is drawn without regard to n
        if one.category not in WARNINGS or (case.is_plain and not is_of_delta):
            yield f"warning: {one.category.__name__}: {one.message}"
    if heard.written:
        yield f"output: {heard.written}"
    for name, table in case.given.items():
        if containers.fingerprint(table.given) != before.given[name]:
            yield f"changed: {name} of the caller"
    charged = [] if case.ledger is None else case.ledger.history()[len(before.history) :]
    if error is None:
        yield from after_success(case, before, heard, charged)
    else:
        yield from after_failure(case, before, error, charged)
    if case.subject is not None:
        yield from changed_params(case.subject, before)


def changed_params(subject, before):
    for name, (value, leaves) in before.params.items():
        now = subject.get_params().get(name)
        if now is not value and type(value) is not float:
            yield f"parameter {name} is another object after the call"
        else:
            after = contents(now, name)
            if after.keys() != leaves.keys() or not all(same(after[k], leaves[k]) for k in leaves):
                yield f"parameter {name} holds other values after the call"


def after_failure(case, before, error, charged):
    if type(error) is Slow:
        yield f"slow: more than {SECONDS} s of CPU"
    elif type(error) not in REFUSALS:
        where = traceback.format_tb(error.__traceback__)[-1].strip().replace("\n", " ")
        yield f"error: {type(error).__name__}: {str(error)[:200]} at {where}"
    elif charged:
        yield f"charged: refused after the charge: {str(error)[:200]}"
    elif _takes_twin(case):
        yield f"twin: refused, and equal data in arrays are not: {str(error)[:200]}"
    if case.subject is None:
        return
    now = vars(case.subject)
    changed = {
        k for k in now.keys() | before.attributes if now.get(k) is not before.attributes.get(k)
    }
    if changed:
        yield f"state: {sorted(changed)} changed by a failed call of {type(case.subject).__name__}"
    elif not charged and _pickled(case.subject) != before.pickled:
        yield f"state: the pickle of {type(case.subject).__name__} changed by a failed call"


def _takes_twin(case):
    if case.twin is None:
        return False
    if "sparse" in case.given["X"].faults and not get_tags(case.subject).input_tags.sparse:
        return False
    return heard_of(case.twin).error is None


def after_success(case, before, heard, charged):
    subject = case.subject
    if case.must_refuse:
        yield f"taken: {sorted(case.must_refuse)}"
    if not case.changes and subject is not None and _pickled(subject) != before.pickled:
        yield f"state: the pickle of {type(subject).__name__} changed by a call that only reads"
    yield from wrong_charges(case, heard.value, charged)
    if heard.value is subject and subject is not None:
        yield from after_fit(case)
    elif _is_odd(heard.value) and "nan" not in case.given["X"].faults:
        yield "answers are not finite"


def _is_odd(value):
    floats = isinstance(value, np.ndarray) and value.dtype.kind == "f"
    return floats and not np.isfinite(value).all()


def wrong_charges(case, value, charged):
    """A fit, an evaluation or a statistic is charged as it says; nothing else is charged."""
    owner = case.subject if value is case.subject else value
    promised = getattr(owner, "guarantee_", None) or getattr(owner, "guarantee", None)
    if case.ledger is None or (
        value is case.subject and "ledger" not in owner.get_params(deep=False)
    ):
        promised = None
    if promised is None or promised.delta_at(0.0) == 0.0:  # nothing was learned
        if charged:
            yield f"charged: {charged} without a guarantee"
        return
    if hasattr(owner, "stages_"):  # each is charged
        return
    # A stream has one entry, which covers calls to come where their number is planned.
    if len(charged) != 1 and not (hasattr(owner, "partial_fit") and not charged):
        yield f"charged: {len(charged)} times for one call"
        return
    stated, paid = promised.with_caveats(), case.ledger.history()[-1].guarantee
    names = "adjacency", "unit", "epsilon", "delta"
    for here, there in ((getattr(stated, n, None), getattr(paid, n, None)) for n in names):
        if here != there:
            yield f"charged: {there}, stated {here}"


def _read(told):
    """Answers in an array; those for a source are one themselves."""
    if not hasattr(told, "blocks"):
        return told
    read = np.concatenate([np.asarray(part) for part in told.blocks()])
    return read[:, 0] if read.shape[1] == 1 else read


def _told_by(fitted, X):
    """Answers of a model, or why there are none."""
    try:
        told = outcome(fitted, X)
    except exceptions.BudgetExceededError as error:
        return str(error)
    if hasattr(told, "toarray"):
        told = told.toarray()
    told = np.asarray(_read(told))
    return told if told.dtype.kind in "fiub" else told.astype(str)


def after_fit(case):
    """Answers, pickles, twins, and what is kept."""
    subject, X = case.subject, case.given["X"]
    is_query = getattr(subject, "release", "") == "query"
    yield from kept_rows(case)
    pickled = pickle.dumps(subject)
    answers = heard_of(lambda: _told_by(subject, X.given))
    if answers.error is not None:
        yield f"no answers for the rows of the fit: {answers.error!r}"
        return
    told = answers.value
    if isinstance(told, str):
        return
    if len(told) != case.n_samples:
        yield f"{len(told)} answers for {case.n_samples} rows"
    if _is_odd(told) and not X.faults & {"nan", "inf"}:
        yield "answers are not finite"
    for one in answers.warnings:
        if one.category not in WARNINGS:
            yield f"warning of predict: {one.category.__name__}: {one.message}"
    if not is_query:
        again = _told_by(pickle.loads(pickled), X.given)
        if not np.array_equal(told, again, equal_nan=told.dtype.kind == "f"):
            yield "a pickle answers otherwise"
    if case.twin is not None:
        yield from unlike_twin(case, told)


def unlike_twin(case, told):
    """Rows of another container give the same model, to the last bit unless they are sparse."""
    subject, X = case.subject, case.given["X"]
    is_sparse = "sparse" in X.faults
    if is_sparse and getattr(subject, "gamma", None) == "auto":  # sparse rows have another one
        return
    twin = heard_of(case.twin)
    if twin.error is not None:
        yield f"twin: equal rows in an array are refused: {twin.error}"
        return
    # Products of rows in another order of memory differ by roundings.
    nearly = is_sparse or getattr(subject, "release", "") == "query"
    if not nearly:
        again = heard_of(lambda: _told_by(subject, X.exact))
        if again.error is not None:
            yield f"twin: no answers for equal rows in an array: {again.error!r}"
            return
        told = again.value
    there = twin.value
    if nearly and told.dtype.kind == "f" and told.shape == there.shape:
        largest = max(abs(there).max(initial=0.0), 1e-12)
        if abs(told - there).max(initial=0.0) <= 1e-6 * largest:
            return
    if not np.array_equal(told, there, equal_nan=told.dtype.kind == "f"):
        yield "twin: equal rows in an array give other answers"


def kept_rows(case):
    """Arrays as long as the rows, and exact private values."""
    subject, n = case.subject, case.n_samples
    if isinstance(subject, tuple(LIVE)) or getattr(subject, "keep_iterates", False):
        return
    if n > 40 and not case.is_plain:
        held = {k: v for k, v in vars(subject).items() if k not in subject.get_params(deep=False)}
        long = [path for path in parts_as_long_as(n, held)]
        if long:
            yield f"as long as the rows: {long}"


def shown_by(case, heard, seed):
    """Private values in messages: with others, a refusal must read the same."""
    # Under a key of rows, whether blocks have some depends on the key, which is public.
    if case.is_plain or isinstance(heard.error, Slow) or "row_key" in str(heard.error):
        return []
    seen = [canary for text in heard.texts for canary in containers.private_in(text)]
    if heard.error is None and not seen:
        return []
    other = heard_of(case_of(seed, 1).act)
    if "row_key" in str(other.error):
        return []
    if heard.error is not None and type(heard.error) is not type(other.error):
        return [f"shown: whether it is refused depends on the values: {heard.error}"]
    if heard.texts != other.texts and (seen or heard.error is not None):
        pairs = zip(heard.texts, other.texts, strict=False)
        here, there = next(((a, b) for a, b in pairs if a != b), (seen, ""))
        return [f"shown: {here!r:.300} and with other values {there!r:.300}"]
    return []
