"""One run of what is audited: what it released, what it charged, what came out of it."""

import inspect
import io
import warnings
from collections.abc import Callable, Sequence
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass, field, fields, replace
from typing import Any

from sklearn.base import clone

from skdp._facts import facts_of_a_fit
from skdp._validation import shown
from skdp.audit._contents import contents, reported, what_leaves
from skdp.audit._data import DataSet
from skdp.audit._transcript import Transcript, listening
from skdp.inspection._report_subject import is_ours
from skdp.learner import StatedGuarantee
from skdp.learner._mixins import SEEDED, VOID
from skdp.privacy import BudgetLedger, Guarantee

__all__ = ["ANSWERS", "N_BETWEEN", "Program", "Run", "divides_budget", "last_part"]

N_BETWEEN = 3  # rows to ask about between calls
ANSWERS = ("predict", "predict_proba", "decision_function", "transform")


@dataclass(eq=False)
class Run:
    """What one run has shown.

    Attributes
    ----------
    transcript : Transcript

    outcome : dict
        Leaves, by their paths, of all that leaves: fitted attributes, pickles, answers, purposes
        of releases; or of what a function returned.

    report : dict or None
        The same of the report; None where it was not made.

    charges : list of (int, Guarantee)
        With how many releases there were before.

    claim : Guarantee or None

    spent : Guarantee or None
        Of ``spent_``, what a search that stops early says it has cost.

    error : str
        Type and text of the exception that ended it.

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

    def check_groups(self) -> None:
        """Refuse what cannot be told whose the rows are."""
        method = self.target.fit if self.is_estimator else self.target
        if not {"groups", "params", "fit_params"} & {*_parameters(method)}:
            what = "have a method fit with" if self.is_estimator else "be a callable with"
            raise ValueError(
                f"estimator must {what} a parameter groups where groups are given; got "
                f"an object of type {type(self.target).__name__}."
            )

    def check(self) -> None:
        """Refuse what could not be heard of."""
        kind = type(self.target).__name__  # the value may be data, by a slip of the order
        if not self.is_estimator:
            if not callable(self.target):
                raise ValueError(
                    "estimator must have a method fit, or be a callable of (X, y); "
                    f"got an object of type {kind}."
                )
            return
        if isinstance(self.target, type):
            name = self.target.__name__
            raise ValueError(f"estimator must be an instance, {name}(...); got the class {name}.")
        if not hasattr(self.target, "get_params"):
            raise ValueError(
                "estimator must have get_params and set_params, as a subclass of "
                f"sklearn.base.BaseEstimator has them; got an object of type {kind}."
            )
        for name, value in self.target.get_params(deep=True).items():
            if last_part(name) == "n_jobs" and value is not None:
                raise ValueError(
                    f"{name} must be None for an audit, which hears of no other thread or "
                    f"process; got {shown(value)}."
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

        printed = io.StringIO()
        with (
            warnings.catch_warnings(record=True) as caught,
            redirect_stdout(printed),
            redirect_stderr(printed),
            listening(hear),
            facts_of_a_fit() as facts,
        ):
            warnings.simplefilter("always")
            try:
                if self.is_estimator:
                    result = self._fit(run, data, queries, seed)
                else:
                    result = self._call(run, data, seed)
            except Exception as error:
                run.error, run.exception = _told(error), error
            if with_report and result is not None:
                run.report = reported(result)
        run.outcome.update(contents(facts.as_tuple(), "notes on releases"))
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
        if data.groups is not None:
            options["groups"] = data.groups
        given = (data.X,) if data.y is None else (data.X, data.y)
        returned = self.target(*given, **options)
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
        run.stream = hasattr(model, "n_samples_seen_")
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
        options = {}
        if self.classes is not None and "classes" in _parameters(method):
            options["classes"] = self.classes
        if part.groups is not None:
            options["groups"] = part.groups
        method(*((part.X,) if part.y is None else (part.X, part.y)), **options)


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
