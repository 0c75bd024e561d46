"""A second fit of one object is charged as the first one is."""

import io
import warnings
from contextlib import redirect_stderr, redirect_stdout

from skdp.audit._claims import charge_findings
from skdp.audit._data import DataSet
from skdp.audit._findings import Finding
from skdp.audit._runs import Program, Run
from skdp.audit._transcript import listening
from skdp.exceptions import BudgetExceededError

__all__ = ["second_fit"]


def second_fit(program: Program, data: DataSet, seed: int) -> tuple[list[Finding], str]:
    """Fit one object twice, with a ledger.

    Parameters
    ----------
    program : Program

    data : DataSet

    seed : int

    Returns
    -------
    findings : list of Finding

    not_checked : str
        What could not be told, in words; empty if nothing.
    """
    if not program.is_estimator:
        return [], ""
    if not program.ledgers:
        return [], "charges: the estimator has no parameter ledger"
    run = Run()
    quiet = io.StringIO()
    with (
        warnings.catch_warnings(),
        redirect_stdout(quiet),
        redirect_stderr(quiet),
        listening(run.transcript.append),
    ):
        warnings.simplefilter("ignore")
        model = program.model(run, seed)
        for _ in range(2):
            run.calls.append((len(run.transcript), len(run.charges)))
            try:
                program.fit_part(model, data)
            except BudgetExceededError:
                return [], ""
            except Exception as error:
                return [], f"a second fit of one object: it ends in {type(error).__name__}"
    (n_before, charged_before), n_after = run.calls[1], len(run.transcript)
    if n_after == n_before:
        return [], ""  # it tells what was released before
    run.charges = run.charges[charged_before:]
    run.calls = [(n_before, 0), (n_after, len(run.charges))]
    program.take_claim(run, model)
    found = charge_findings(run, ledgers=True)
    return [Finding("charge", f"a second fit of one object: {one.what}") for one in found], ""
