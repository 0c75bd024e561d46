"""One run of an audited estimator: its releases, charges and outputs."""

import copyreg
import inspect
import io
import math
import re
import types
import warnings
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout, suppress
from dataclasses import dataclass, field, fields, replace
from enum import Enum
from itertools import chain
from pickle import PicklingError
from typing import Any

import numpy as np
from scipy.special import log_ndtr
from sklearn.base import BaseEstimator, clone

from skdp._recording import Kept, Released, facts_of_a_fit, released_values
from skdp._validation import short_repr
from skdp.audit._data import DataSet
from skdp.engines import Engine
from skdp.inspection import privacy_report
from skdp.inspection._report import is_ours
from skdp.kernel import DPKernelRidge, DPOnlineClassifier, DPOnlineKernelRegressor
from skdp.learner import StatedGuarantee
from skdp.learner._estimator import SEEDED, VOID
from skdp.learner._streams import Token
from skdp.privacy import BudgetLedger, Guarantee


class Transcript(Sequence):
    """List of releases in order, as recorded by `recording`.

    Each is a :class:`~skdp.mechanisms.Released`: the computed value, the declared sensitivity,
    the law of the noise with its guarantee, its scale and lattice, the released value and the
    code location. The computed values are private, and so is the transcript. Its text
    representation shows no values, and it cannot be pickled.
    """

    def __init__(self) -> None:
        self._records: list[Any] = []

    def __getitem__(self, place: Any) -> Any:
        return self._records[place]

    def __len__(self) -> int:
        return len(self._records)

    def append(self, record: Any) -> None:
        """Append a record with copies of its arrays, which later code may modify."""
        if isinstance(record, Released):
            asked, released = np.array(record.asked), np.array(record.released)
            record = replace(record, asked=asked, released=released)
        self._records.append(record)

    def __repr__(self) -> str:
        return f"<Transcript of {len(self)} releases>"

    def __reduce__(self) -> Any:
        raise PicklingError("A transcript has private values and must not leave its process.")


@contextmanager
def listening(listener: Callable[[Any], Any]) -> Iterator[None]:
    """Let ``listener`` hear of each release; what it returns, if not None, goes on instead."""
    token = released_values.set(listener)
    try:
        yield
    finally:
        released_values.reset(token)


@contextmanager
def heard(listener: Callable[[Any], Any]) -> Iterator[tuple[io.StringIO, list]]:
    """Let ``listener`` hear of each release; yield what is printed meanwhile, and warnings."""
    printed = io.StringIO()
    with (
        warnings.catch_warnings(record=True) as caught,
        redirect_stdout(printed),
        redirect_stderr(printed),
        listening(listener),
    ):
        warnings.simplefilter("always")
        yield printed, caught


@contextmanager
def recording() -> Iterator[Transcript]:
    """Record every release within the block, with its exact private value.

    Privacy: none. The transcript has exact values computed from the data. The ``guarantee_`` of a
    model fitted in the block has a caveat, and the model cannot be pickled.

    Only releases of the current thread and process are recorded, not those of workers
    (``n_jobs``). Each process of an MPI job records its own nodes.

    Yields
    ------
    Transcript

    Examples
    --------
    >>> from skdp.audit import recording
    >>> from skdp.mechanisms import laplace_mechanism
    >>> from skdp.privacy import ApproxDP
    >>> with recording() as transcript:
    ...     told = laplace_mechanism([3.0], l1_sensitivity=1.0, guarantee=ApproxDP(0.5))
    >>> len(transcript), transcript[0].law.kind, transcript[0].sensitivity
    (1, 'laplace', 1.0)
    """
    transcript, outer = Transcript(), released_values.get()

    def listener(record: Any) -> Any:
        transcript.append(record)
        return None if outer is None else outer(record)

    with listening(listener):
        yield transcript


def public_size(release: Released) -> Any:
    """Shape of what is released; of names, of which the number is private, the threshold."""
    return release.threshold if isinstance(release, Kept) else np.shape(release.asked)


def over_names_of_both(one: Transcript, other: Transcript) -> tuple[Transcript, Transcript, float]:
    """Counts of the same names in both, and what names of one alone may tell.

    Parameters
    ----------
    one, other : Transcript
        Of neighbours, with the same releases.

    Returns
    -------
    one, other : Transcript
        With plain releases of those counts that differ, two at least, for that is how many a
        record changes.

    escape : float
        Probability that a name is released which only one of them has; of the worse one.
    """
    if not any(isinstance(record, Kept) for record in one):
        return one, other, 0.0
    here, there = Transcript(), Transcript()
    unseen = np.zeros(2)  # logarithms
    for a, b in zip(one, other, strict=True):
        if not (isinstance(a, Kept) and isinstance(b, Kept)):
            here.append(a)
            there.append(b)
            continue
        mine, yours = (dict(zip(r.names, r.asked.tolist(), strict=True)) for r in (a, b))
        both = [name for name in mine if name in yours and mine[name] != yours[name]]
        pad = [0.0] * max(0, 2 - len(both))
        here.append(_plainly(a, [mine[name] for name in both] + pad))
        there.append(_plainly(b, [yours[name] for name in both] + pad))
        unseen += _log_unseen(a, mine, yours), _log_unseen(b, yours, mine)
    return here, there, -math.expm1(float(unseen.min()))


def _plainly(release: Kept, counts: list[float]) -> Released:
    counted, (law, scale) = np.array(counts), (release.law, release.scale)
    return Released(counted, release.sensitivity, law, scale, release.step, counted, release.where)


def _log_unseen(release: Kept, counts: dict[Any, float], others: dict[Any, float]) -> float:
    """Logarithm of the probability that counts of own names stay below the threshold."""
    own = np.array([count for name, count in counts.items() if name not in others])
    far = (release.threshold - own - release.step / 2.0) / release.scale
    return float(log_ndtr(far).sum())


def _left_of_stream(model: DPOnlineKernelRegressor) -> Any:
    if not model._holds_private_numbers:
        return model
    return None if model.release == "query" else model.released()


# Classes whose live objects hold private numbers by design, and what of them leaves instead of a
# pickle: None is nothing but public attributes and answers. Every other object is walked whole.
LIVE: dict[type, Any] = {
    # Goes on with private sums; with release="query" it answers from the rows.
    DPOnlineKernelRegressor: _left_of_stream,
    # With users it keeps ids.
    DPOnlineClassifier: lambda model: None if model._holds_private_numbers else model,
    # With release="query" it answers from the rows.
    DPKernelRidge: lambda model: None if model.release == "query" else model,
}

# What may differ between runs with equal releases, by name, and why it tells nothing.
LEFT_OUT = {
    "refit_time_": "time: how long a fit takes is outside of every guarantee",
    "privacy_report.made": "time: the day on which the report was made",
    "privacy_report.ledger": "its file is new for each run; charges are compared one by one",
}
# Types of the same kind.
_LEFT_OUT_TYPES: tuple[type, ...] = (
    BudgetLedger,  # a new file for each run; charges are compared, one by one
    Engine,  # connections of this process
    Token,  # random bytes that tell streams apart
    weakref.ref,  # identities; what they refer to is walked where it is held
)
_VIEWS: tuple[type, ...] = (type({}.keys()), type({}.values()), type({}.items()), memoryview)
_SCALARS = {type(None), bool, int, float, complex, str, bytes}
_BY_NAME = (type, types.BuiltinFunctionType, types.ModuleType, np.ufunc)


def what_leaves(model: Any, name: str = "") -> dict[str, Any]:
    """Fitted attributes, and all that a pickle of an object holds.

    Parameters
    ----------
    model : object

    name : str, default=""
        What the paths of the leaves begin with.

    Returns
    -------
    dict of str to object
        Leaves by their paths: numbers, texts and arrays.
    """
    pickled = contents(model, f"{name}pickle of {type(model).__name__}")
    return dict(_attributes(model, name)) | pickled


def reported(model: Any) -> dict[str, Any]:
    """All that `~skdp.inspection.privacy_report` says of a fitted object, or why it says nothing.

    Parameters
    ----------
    model : object

    Returns
    -------
    dict of str to object
        Leaves by their paths.
    """
    try:
        report = privacy_report(model)
    except Exception as error:
        return {"privacy_report": f"{type(error).__name__}: {error}"}
    # Keys of the report are those of a public schema.
    leaves = [_leaves(part, f"privacy_report.{key}", ()) for key, part in report.data.items()]
    return dict(chain.from_iterable(leaves))


def contents(value: Any, name: str) -> dict[str, Any]:
    """Leaves of a value by their paths, as a pickle would hold them.

    Parameters
    ----------
    value : object

    name : str
        What the paths begin with.

    Returns
    -------
    dict of str to object
    """
    return dict(_leaves(value, name, ()))


def _leaves(value: Any, path: str, around: tuple[int, ...]) -> Iterator[tuple[str, Any]]:
    kind = type(value)
    if _is_left_out(value, path):
        return
    if kind in _SCALARS or isinstance(value, Enum | np.generic):
        yield path, value
    elif kind is np.ndarray and value.dtype != object:
        yield path, value
        if value.dtype.metadata:
            yield from _leaves(dict(value.dtype.metadata), f"{path}.dtype.metadata", around)
    elif isinstance(value, _BY_NAME):
        yield path, getattr(value, "__qualname__", None) or value.__name__
    elif id(value) in around:
        yield path, "an object around it"
    else:
        yield path, kind
        for part, inner in _parts(value, path):
            yield from _leaves(inner, part, (*around, id(value)))


def _is_left_out(value: Any, path: str) -> bool:
    if isinstance(value, _LEFT_OUT_TYPES):  # what somebody derived from them may hold anything
        return is_ours(value) or type(value).__module__ == "weakref"
    if path.startswith("privacy_report."):
        return path in LEFT_OUT
    return path.rpartition(".")[2] in LEFT_OUT and isinstance(value, float | np.floating)


def _parts(value: Any, path: str) -> Iterator[tuple[str, Any]]:
    kind = type(value)
    if kind is np.ndarray:
        yield f"{path}.shape", value.shape
        value, kind = value.ravel().tolist(), list
    if kind is dict:
        # Keys may be private: they are compared, and a finding shows their places only.
        yield f"{path}.<keys>", [*value]
        yield f"{path}.<values>", [*value.values()]
    elif kind in (list, tuple):
        yield from ((f"{path}[{i}]", inner) for i, inner in enumerate(value))
    elif kind in (set, frozenset):
        yield from ((f"{path}[{i}]", inner) for i, inner in enumerate(sorted(value, key=repr)))
    elif kind is types.MappingProxyType:
        yield f"{path}.<mapping>", dict(value)
    elif kind in _VIEWS:
        yield f"{path}.<entries>", value.tolist() if kind is memoryview else list(value)
    elif kind is types.FunctionType:
        yield from _of_function(value, path)
    else:
        yield from _of_object(value, path)


def _of_function(value: Any, path: str) -> Iterator[tuple[str, Any]]:
    """A pickle holds its name; other ways to store it hold what it was made of."""
    yield f"{path}.__qualname__", f"{value.__module__}.{value.__qualname__}"
    for name in ("__defaults__", "__kwdefaults__", "__dict__"):
        if held := getattr(value, name):
            yield f"{path}.{name}", held
    yield f"{path}.<constants>", [value.__doc__, *_constants(value.__code__)]
    names = value.__code__.co_freevars
    for name, cell in zip(names, value.__closure__ or (), strict=True):
        with suppress(ValueError):  # an empty cell
            yield f"{path}.<{name}>", cell.cell_contents


def _constants(code: types.CodeType) -> Iterator[Any]:
    for one in code.co_consts:
        if isinstance(one, types.CodeType):
            yield from _constants(one)
        else:
            yield one


def _of_object(value: Any, path: str) -> Iterator[tuple[str, Any]]:
    for kind, leaving in LIVE.items():
        if isinstance(value, kind) and hasattr(value, "guarantee_"):
            left = leaving(value)
            if left is not value:
                if left is not None:
                    yield f"{path}.released()", left
                return
    try:
        recipe = _recipe(value)
    except Exception:  # it cannot be pickled
        recipe = None, (), getattr(value, "__dict__", None)
    if isinstance(recipe, str):
        yield f"{path}.__name__", recipe
        return
    for name, part in zip(("arguments", "state", "items", "entries"), recipe[1:5], strict=False):
        if isinstance(part, dict) and name == "state":
            yield from ((f"{path}.{key}", inner) for key, inner in part.items())
        elif part is not None:
            yield f"{path}.<{name}>", list(part) if isinstance(part, Iterator) else part


def _recipe(value: Any) -> Any:
    """How a pickle makes the object anew."""
    if reduce := copyreg.dispatch_table.get(type(value)):
        return reduce(value)
    if isinstance(value, StatedGuarantee):  # whose pickles are refused where releases are recorded
        return super(StatedGuarantee, value).__reduce_ex__(4)
    return value.__reduce_ex__(4)


def _attributes(model: Any, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Leaves of fitted attributes, those of the steps of a pipeline among them."""
    for name in sorted({*vars(model), *dir(type(model))} if hasattr(model, "__dict__") else ()):
        # Parameters among them: a fit leaves them alone.
        if (name.endswith("_") or name in vars(model)) and not name.startswith("_"):
            try:
                value = getattr(model, name)
            except AttributeError:
                continue
            if isinstance(value, BaseEstimator):
                yield from _attributes(value, f"{prefix}{name}.")
            else:
                yield from _leaves(value, prefix + name, (id(model),))
    for name, step in getattr(model, "steps", None) or ():
        if hasattr(step, "fit"):
            yield from _attributes(step, f"{prefix}{name}.")


def same(here: Any, there: Any) -> bool:
    """Whether two leaves are equal, to the last bit.

    Parameters
    ----------
    here, there : object

    Returns
    -------
    bool
    """
    if type(here) is not type(there):
        return False
    if isinstance(here, np.ndarray | np.generic):
        kinds = [(each.shape, each.dtype, each.flags.fnc) for each in (here, there)]
        return kinds[0] == kinds[1] and here.tobytes() == there.tobytes()
    if isinstance(here, float | complex):
        return repr(here) == repr(there)
    return bool(here == there)


N_BETWEEN = 3  # rows to ask about between calls
ANSWERS = ("predict", "predict_proba", "decision_function", "transform")


@dataclass(eq=False)
class Run:
    """Result of one run.

    Attributes
    ----------
    transcript : Transcript

    outcome : dict
        Outputs by path: fitted attributes, pickles, answers and purposes of releases, or the
        result of a function.

    report : dict or None
        Contents of the report by path; None if no report was made.

    charges : list of (int, Guarantee)
        Charges, each with the number of earlier releases.

    claim : Guarantee or None

    spent : Guarantee or None
        ``spent_``, the stated cost of a search that stops early.

    error : str
        Type and text of the exception that ended the run.

    warned : list of str
    """

    transcript: Transcript = field(default_factory=Transcript)
    outcome: dict[str, Any] = field(default_factory=dict)
    report: dict[str, Any] | None = None
    charges: list[tuple[int, Guarantee]] = field(default_factory=list)
    calls: list[tuple[int, int]] = field(default_factory=list)
    claim: Guarantee | None = None
    spent: Guarantee | None = None
    error: str = ""
    exception: Exception | None = None
    warned: list[str] = field(default_factory=list)
    stream: bool = False

    def check_answers(self) -> None:
        """Raise an error if no method accepts the queries: nothing would be compared."""
        first = [(name, self.outcome.get(f"{name}[0]")) for name in ANSWERS]
        answers = [(name, answer) for name, answer in first if answer is not None]
        if answers and all(isinstance(answer, str) for _, answer in answers):
            name, error = answers[0]
            raise ValueError(f"queries must be valid rows for {name}; it raised {error}")

    def nothing_but_nan(self) -> list[str]:
        """Return the paths of answers, fitted attributes and results that are all NaN."""
        found = []
        for path, value in self.outcome.items():
            name = re.split(r"[.\[<: ]", path)[0]
            is_fitted = name.endswith("_") and not name.startswith("_")
            is_number = isinstance(value, float | np.generic | np.ndarray)
            if is_number and (is_fitted or name in (*ANSWERS, "returned")):
                numbers = np.asarray(value)
                if numbers.dtype.kind == "f" and numbers.size and np.isnan(numbers).all():
                    found.append(path)
        return found


class _Throwaway(BudgetLedger):
    """A ledger for one run, that notes when it is charged."""

    def __init__(self, run: Run, original: BudgetLedger | None) -> None:
        if original is None:
            super().__init__(epsilon=1e9, delta=0.5)
        else:
            super().__init__(epsilon=original.epsilon, delta=original.delta)
            for record in original.history():
                if not record.is_replaced:
                    super().charge(record.guarantee, label=record.label)
        self._run_noted = run

    def charge(self, guarantee: Guarantee, label: str = "") -> None:
        super().charge(guarantee, label)
        self._note(guarantee)

    def charge_stream(self, guarantee: Guarantee, **options: Any) -> None:
        super().charge_stream(guarantee, **options)
        self._note(guarantee)

    def _note(self, guarantee: Guarantee) -> None:
        self._run_noted.charges.append((len(self._run_noted.transcript), guarantee))


@dataclass(frozen=True)
class Program:
    """What is audited, and how it is run on a data set.

    Parameters
    ----------
    target : estimator or callable

    n_calls : int
        Over how many calls of ``partial_fit`` the rows are spread; one is a call of ``fit``.

    classes : ndarray or None
        Labels, for classifiers: public.

    guarantee : Guarantee or None
        Claimed where the target tells none.
    """

    target: Any
    n_calls: int = 1
    classes: Any = None
    guarantee: Guarantee | None = None

    @property
    def is_estimator(self) -> bool:
        return hasattr(self.target, "fit")

    def check(self, *, with_groups: bool) -> None:
        """Refuse what could not be heard of, and what cannot be told whose the rows are."""
        target = self.target
        kind = type(target).__name__  # the value may be data, by a slip of the order
        if not self.is_estimator and not callable(target):
            raise ValueError(
                "estimator must have a method fit, or be a callable of (X, y); "
                f"got an object of type {kind}."
            )
        if self.is_estimator and isinstance(target, type):
            name = target.__name__
            raise ValueError(f"estimator must be an instance, {name}(...); got the class {name}.")
        if self.is_estimator and not hasattr(target, "get_params"):
            raise ValueError(
                "estimator must have get_params and set_params, like a subclass of "
                f"sklearn.base.BaseEstimator; got an object of type {kind}."
            )
        method = target.fit if self.is_estimator else target
        if with_groups and not {"groups", "params", "fit_params"} & {*_parameters(method)}:
            what = "have a method fit with" if self.is_estimator else "be a callable with"
            raise ValueError(
                f"estimator must {what} a parameter groups if groups are given; got "
                f"an object of type {kind}."
            )
        params = target.get_params(deep=True) if self.is_estimator else {}
        for name, value in params.items():
            if last_part(name) == "n_jobs" and value is not None:
                raise ValueError(
                    f"{name} must be None for an audit, which records only its own thread; "
                    f"got {short_repr(value)}."
                )

    def refuse_silence(self) -> None:
        """Refuse what was not heard to release anything."""
        raise ValueError(
            "estimator must release by skdp.mechanisms.release to be replayed; got "
            f"{short_repr(self.target)}, which recorded no release in this thread and process. "
            "For other code, use skdp.audit.estimate_epsilon."
        )

    @property
    def ledgers(self) -> dict[str, Any]:
        """Parameters that hold a ledger."""
        if not self.is_estimator:
            return {}
        params = _settable(self.target)
        return {name: value for name, value in params.items() if last_part(name) == "ledger"}

    def run(
        self,
        data: DataSet,
        queries: Any,
        listener: Callable[[Any], Any],
        seed: int | None,
        *,
        with_report: bool = False,
    ) -> Run:
        """Run on a data set.

        Parameters
        ----------
        data : DataSet

        queries : list of array-like, or None
            Public rows to ask a fitted estimator about, one block after the other.

        listener : callable
            ``listener(record)`` is what goes on in place of a release, or None.

        seed : int or None
            Of all randomness, where it can be set.

        with_report : bool, default=False
            Whether the report is made, too: it takes longer than many a fit.

        Returns
        -------
        Run
        """
        run, result = Run(), None

        def hear(record: Any) -> Any:
            run.transcript.append(record)
            return listener(run.transcript[-1])

        with heard(hear) as (printed, caught), facts_of_a_fit() as facts:
            try:
                if self.is_estimator:
                    result = self._fit(run, data, queries, seed)
                else:
                    result = self._call(run, data, seed)
            except Exception as error:
                run.error, run.exception = _told(error), error
            if with_report and result is not None:
                run.report = reported(result)
        run.outcome |= contents(facts.as_tuple(), "notes on releases")
        if printed.getvalue():
            run.outcome["what is printed"] = printed.getvalue()
        run.warned = sorted(f"{w.category.__name__}: {w.message}" for w in caught)
        return run

    def _call(self, run: Run, data: DataSet, seed: int | None) -> Any:
        options: dict[str, Any] = {}
        if "random_state" in _parameters(self.target):
            parameter = inspect.signature(self.target).parameters["random_state"]
            if seed is not None or parameter.default is parameter.empty:
                options["random_state"] = seed
        returned = data.passed_to(self.target, **options)
        run.outcome.update(contents(returned, "returned"))
        run.claim = self.guarantee
        return returned

    def _fit(self, run: Run, data: DataSet, queries: Any, seed: int | None) -> Any:
        model = self.model(run, seed)
        for part in [data] if self.n_calls == 1 else data.calls(self.n_calls):
            before = len(run.transcript), len(run.charges)
            self.fit_part(model, part)
            run.calls.append(before)
            if len(run.calls) < self.n_calls:
                after = f"after call {len(run.calls)}: "
                if queries is not None and hasattr(model, "predict"):
                    said = _attempt(model.predict, queries[0][:N_BETWEEN])
                    run.outcome.update(contents(said, f"{after}predict"))
                run.outcome.update(what_leaves(model, after))
        self.take_claim(run, model)
        run.stream = getattr(model, "_has_time_stamps", hasattr(model, "n_samples_seen_"))
        run.calls.append((len(run.transcript), len(run.charges)))
        if queries is not None:
            for name in ANSWERS:
                if hasattr(model, name):
                    ask = getattr(model, name)
                    said = [_attempt(ask, rows) for rows in queries]
                    run.outcome.update(contents(said, name))
        run.outcome.update(what_leaves(model))
        return model

    def take_claim(self, run: Run, model: Any) -> None:
        """Note what a fitted model claims, and what it says it has cost."""
        run.claim = self.guarantee if self.guarantee is not None else _claim(model)
        if isinstance(spent := getattr(model, "spent_", None), Guarantee):
            run.spent = _without_caveats(spent)

    def model(self, run: Run, seed: int | None) -> Any:
        """An unfitted clone, with a seed and with a ledger that is thrown away."""
        model = clone(self.target)
        changed: dict[str, Any] = {}
        for name, value in _settable(model).items():
            last = last_part(name)
            if last == "random_state":  # None draws afresh, whatever it was
                changed[name] = seed
            elif last == "ledger":
                original = self.ledgers[name]
                if isinstance(original, str) or hasattr(original, "__fspath__"):
                    original = BudgetLedger(original)
                changed[name] = _Throwaway(run, original)
            elif last == "classes" and value is None and self.classes is not None:
                changed[name] = list(self.classes)
        return model.set_params(**changed)

    def fit_part(self, model: Any, part: DataSet) -> None:
        """One call of ``fit`` or ``partial_fit``."""
        method = model.fit if self.n_calls == 1 else model.partial_fit
        takes_classes = self.classes is not None and "classes" in _parameters(method)
        part.passed_to(method, **({"classes": self.classes} if takes_classes else {}))


def last_part(name: str) -> str:
    """Name of a parameter where it stands, without those of the estimators around it."""
    return name.rpartition("__")[2]


def divides_budget(model: Any) -> bool:
    """Whether it is a pipeline or a search of this package, which has one budget for its parts."""
    return is_ours(model) and getattr(model, "_divides_budget", False)


def _settable(model: Any) -> dict[str, Any]:
    """Parameters, but for those that a step of a pipeline with one budget has from it."""
    params = model.get_params(deep=True)

    def is_given(name: str) -> bool:
        *path, last = name.split("__")
        if last not in ("ledger", "random_state"):
            return False
        around = [model, *(params.get("__".join(path[:i])) for i in range(1, len(path) + 1))]
        owner = around.pop()
        divided = any(divides_budget(other) for other in around)
        return divided and isinstance(owner, StatedGuarantee)

    return {name: value for name, value in params.items() if not is_given(name)}


def _parameters(function: Any) -> Sequence[str]:
    try:
        return list(inspect.signature(function).parameters)
    except (TypeError, ValueError):
        return []


def _told(error: BaseException | None) -> str:
    """An error with its notes, and those that it was raised from."""
    texts = []
    while error is not None:
        notes = getattr(error, "__notes__", ())
        texts.append(" ".join([f"{type(error).__name__}: {error}", *map(str, notes)]))
        hidden = error.__suppress_context__
        error = error.__cause__ or (None if hidden else error.__context__)
    return " from ".join(texts)


def _attempt(method: Callable[[Any], Any], queries: Any) -> Any:
    try:
        return method(queries)
    except Exception as error:
        return f"{type(error).__name__}: {error}"


def _claim(model: Any) -> Guarantee | None:
    """What a fitted estimator claims; of a pipeline without a claim, what its last step does."""
    held: Any
    for held in (model, getattr(model, "best_estimator_", None)):
        while True:
            claim = getattr(held, "guarantee_", None)
            if isinstance(claim, Guarantee):
                return _without_caveats(claim)
            if not isinstance(getattr(held, "steps", None), list):
                break
            held = held.steps[-1][1]
    return None


def _without_caveats(claim: Any) -> Any:
    """The claim as it is outside of an audit, which records releases and sets seeds."""
    if isinstance(claim, tuple):
        return tuple(map(_without_caveats, claim))
    if not isinstance(claim, Guarantee) or not {SEEDED, VOID} & {*claim.caveats}:
        return claim
    parts = {f.name: _without_caveats(getattr(claim, f.name)) for f in fields(claim)}
    parts["caveats"] = tuple(told for told in claim.caveats if told not in (SEEDED, VOID))
    return replace(claim, **parts)
