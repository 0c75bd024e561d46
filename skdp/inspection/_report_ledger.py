"""What a report tells of the ledger of the data set."""

import os
from contextlib import suppress
from pathlib import Path

from skdp._validation import shown
from skdp.inspection._report_meaning import how_sure
from skdp.inspection._report_texts import one_in, rounded_up
from skdp.privacy import BudgetLedger

__all__ = ["ledger_of"]


def ledger_of(fitted, ledger):
    """What a ledger holds: the one that is given, or that of the estimator if it can be opened.

    Parameters
    ----------
    fitted : object

    ledger : BudgetLedger or path, default=None

    Returns
    -------
    dict or None
    """
    if ledger is None:
        with suppress(OSError, ValueError, RuntimeError):
            return _told(_opened(getattr(fitted, "ledger", None)))
        return None
    return _told(_opened(ledger))


def _opened(ledger):
    if isinstance(ledger, str | os.PathLike):
        return BudgetLedger(ledger)
    if ledger is not None and not isinstance(ledger, BudgetLedger):
        raise ValueError(f"ledger must be a BudgetLedger, its path or None; got {shown(ledger)}.")
    return ledger


def _told(ledger):
    if ledger is None:
        return None
    told = ledger._summary()
    return {
        "name": Path(ledger.path).name if ledger.path else "in memory",
        "unit": told.spent.unit,
        "adjacency": told.spent.adjacency,
        "budget": _point(told.budget, at_length=True),
        "spent": _point(told.spent, at_length=True),
        "left": [{"delta": one.delta, "epsilon": one.epsilon} for one in told.left],
        "by_label": [_line("label", one) for one in told.by_label],
        "by_day": [_line("day", one) for one in told.by_day],
        "means": [
            {"what": "spent", **how_sure(told.spent)},
            {"what": "budget", **how_sure(told.budget)},
        ],
    }


def _line(name, line):
    return {name: line.name, "charges": line.charges, "guarantee": _point(line.guarantee)}


def _point(guarantee, at_length=False):
    if not guarantee.delta:
        return f"epsilon={rounded_up(guarantee.epsilon, 6)}"
    often = f" ({one_in(guarantee.delta)})" if at_length else ""
    return f"epsilon={rounded_up(guarantee.epsilon, 6)} at delta={guarantee.delta:.6g}{often}"
