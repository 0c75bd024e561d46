"""What a fit owes its budget: the checks, the charge, failures that change nothing."""

import os
import warnings
from contextlib import contextmanager, suppress
from contextvars import ContextVar

import numpy as np

from skdp._config import get_config
from skdp._facts import facts_of_a_fit
from skdp._progress import heard_by
from skdp._random._words import check_random_state
from skdp._validation import level_of_the_user, one_of, plain, positive, probability, shown
from skdp.exceptions import PrivacyWarning
from skdp.privacy import ADJACENCIES, BudgetLedger

__all__ = [
    "charge",
    "charge_quietly",
    "charge_stream",
    "check_budget",
    "ledger_of",
    "parameter_names",
    "restored_on_error",
    "unchanged_on_error",
    "warn_of_delta",
    "warn_of_seed",
]


def check_budget(estimator, *, epsilon=None):
    """Check ``epsilon``, ``delta``, ``adjacency``, ``random_state`` and ``ledger``."""
    positive(epsilon=estimator.epsilon if epsilon is None else epsilon)
    probability(delta=estimator.delta)
    one_of(ADJACENCIES, adjacency=estimator.adjacency)
    check_random_state(estimator.random_state)
    ledger_of(estimator)


def ledger_of(estimator):
    """Ledger of an estimator, opened where it gives a path; None if it has none.

    A path must name a ledger that exists: what a slip of the pen would make is a fresh budget.
    """
    ledger = estimator.ledger
    if ledger is None or isinstance(ledger, BudgetLedger):
        return ledger
    if isinstance(ledger, str | os.PathLike):
        with suppress(FileNotFoundError):
            return BudgetLedger(ledger)
    raise ValueError(
        "ledger must be None, a BudgetLedger or the path of one that exists "
        f"(BudgetLedger(path, epsilon, delta) makes it); got {shown(ledger)}."
    )


# How many fits are around this point, this one included: a step of a pipeline is at 2.
_depth: ContextVar[int] = ContextVar("depth", default=0)
_names: dict[type, tuple[str, ...]] = {}


def parameter_names(estimator):
    """Names of the parameters, which are those of the class; to find them out takes a while."""
    kind = type(estimator)
    if kind not in _names:
        _names[kind] = tuple(kind._get_param_names())
    return _names[kind]


@contextmanager
def restored_on_error(estimator):
    """Give an estimator its attributes back if the block fails, an interrupt included."""
    before = dict(vars(estimator))
    try:
        yield
    except BaseException:
        vars(estimator).clear()
        vars(estimator).update(before)
        raise


@contextmanager
def unchanged_on_error(estimator, *, fresh=True):
    """Leave a fitted model whole if a new fit fails, what validation stores included.

    Within the block parameters are Python's own numbers, and floating point is silent: a warning
    about an overflow would depend on the data. What is released within it is noted, in public
    numbers, beside what was noted before unless ``fresh``. Who hears of a fit around this one does
    not hear of this one.
    """
    told = () if fresh else vars(estimator).get("_facts", ())
    given = {name: getattr(estimator, name) for name in parameter_names(estimator)}
    token = _depth.set(_depth.get() + 1)
    try:
        with restored_on_error(estimator):
            vars(estimator).update({name: plain(value) for name, value in given.items()})
            with facts_of_a_fit(told) as facts, heard_by(None), np.errstate(all="ignore"):
                yield
            vars(estimator).update(given, _facts=facts.as_tuple())
    finally:
        _depth.reset(token)


def charge(estimator, guarantee):
    """Charge the ledger, if there is one, before the data are used; a known seed warns."""
    warn_of_seed(estimator.random_state is not None, estimator.ledger)
    charge_quietly(estimator, guarantee)


def charge_quietly(estimator, guarantee):
    """Charge the ledger, if there is one, where a seed has been warned of."""
    ledger = ledger_of(estimator)
    if ledger is not None:
        ledger.charge(guarantee, label=getattr(estimator, "_label", type(estimator).__name__))


def charge_stream(estimator, guarantee, *, stream, version, continues):
    """Let the ledger's one entry of a stream cover ``guarantee``, before the data are used."""
    ledger = ledger_of(estimator)
    if ledger is None:
        return
    label = type(estimator).__name__
    ledger.charge_stream(
        guarantee, stream=stream, version=version, continues=continues, label=label
    )


def warn_of_delta(model, n_units, unit="record"):
    """Warn of a delta that allows for the release of a record, once for all fits within another.

    Where records are added or removed their number is private, and nothing can be said.

    Parameters
    ----------
    model : object
        With parameters ``delta`` and ``adjacency``.

    n_units : int or None
        Number of records, or of users.

    unit : str, default="record"
    """
    delta, is_public = model.delta, model.adjacency == "replace-one"
    # Without rows a fit is refused.
    if not is_public or not n_units or _depth.get() > 1 or delta < 1.0 / n_units:
        return
    warnings.warn(
        f"delta={delta:g} is at least 1 over the {n_units} {unit}s: a mechanism that publishes "
        f"one {unit} at random satisfies it. Take a delta well below {1.0 / n_units:.2g}.",
        PrivacyWarning,
        stacklevel=level_of_the_user(),
    )


def warn_of_seed(is_seeded, ledger=None):
    """Warn whoever fits with noise that can be recomputed, once a call and before it is charged.

    ``config_context(known_seeds=True)`` says that this is meant, unless a ledger pays for it.
    """
    if not is_seeded or (ledger is None and get_config()["known_seeds"]):
        return
    if ledger is None:
        means = (
            "and its guarantee protects nobody. Leave random_state=None on real data; figures and "
            "tests are fitted within skdp.config_context(known_seeds=True)"
        )
    else:
        means = (
            "and the charge to the ledger buys no privacy. Leave random_state=None on real data"
        )
    warnings.warn(
        f"random_state is set, so that the noise of this fit can be recomputed, {means}.",
        PrivacyWarning,
        stacklevel=level_of_the_user(),
    )
