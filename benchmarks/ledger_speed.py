"""How long `charge`, a refusal, `remaining` and `spent` take on long ledgers, and opening one.

    python benchmarks/ledger_speed.py

Each line is a ledger with that many charges of that many kinds. Of 100 kinds, 25 are pure, 25
Gaussian with a claimed point, 25 objective perturbation under add-remove, and 25 zCDP. Figures are
medians in milliseconds of calls that each follow a new charge; "cold" is a new process that
imports skdp, opens the file and asks `remaining`, of which "ask" is the question alone.
"""

import argparse
import math
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from statistics import median

import numpy as np

from skdp.exceptions import BudgetExceededError
from skdp.linear_model import DPLogisticRegression
from skdp.privacy import ZCDP, ApproxDP, BudgetLedger, GaussianDP
from skdp.privacy import _ledger_file as file
from skdp.privacy._ledger_file import transaction

_EPSILON, _DELTA = 3.0, 1e-5
_COLD = """
import sys, time
from skdp.privacy import BudgetLedger
ledger = BudgetLedger(sys.argv[1])
start = time.perf_counter()
ledger.remaining()
print(time.perf_counter() - start)
"""


def kinds(n_kinds, n_charges):
    """Guarantees of which ``n_charges`` fill about half of the budget."""
    delta = _DELTA / 1e4 / n_charges
    size = 0.35 / math.sqrt(n_charges + 100)  # and those of the measurement
    context = {"adjacency": "add-remove"}
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 5)), np.arange(40) % 2
    found = []
    for k in range(n_kinds):
        epsilon = round(size * (0.5 + (k + 1) / n_kinds), 12)
        if k % 4 == 0:
            found.append(ApproxDP(epsilon, **context))
        elif k % 4 == 1:
            found.append(GaussianDP(epsilon / 3, **context).to_approx_dp(delta))
        elif k % 4 == 2:
            model = DPLogisticRegression(
                epsilon, delta=1e-9, adjacency="add-remove", mechanism="objective", C=1e-3
            )
            found.append(model.fit(X, y).guarantee_)
        else:
            found.append(ZCDP(epsilon**2 / 8, **context))
    return found


def fill(ledger, guarantees, n_charges):
    """Write charges in one transaction, as no user can."""
    bodies = [file.to_json(guarantee) for guarantee in guarantees]
    with transaction(ledger._place, "IMMEDIATE") as db:
        book = file.read(db)
        for k in range(n_charges):
            body = bodies[k % len(bodies)]
            last, digest = file.append(db, book, label="fit", body=body, team="")
            book = replace(book, last=last, digest=digest)


def timed(call):
    start = time.perf_counter()
    call()
    return 1e3 * (time.perf_counter() - start)


def measure(path, guarantees, n_charges, n_calls):
    ledger = BudgetLedger(path, _EPSILON, _DELTA)
    fill(ledger, guarantees, n_charges)
    start = time.perf_counter()
    command = [sys.executable, "-c", _COLD, str(path)]
    asking = float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    cold = time.perf_counter() - start
    too_much = ApproxDP(2.9, adjacency="add-remove")
    calls = {
        "charge": lambda k: ledger.charge(guarantees[k % len(guarantees)]),
        "refusal": lambda k: refuse(ledger, too_much),
        "remaining": lambda k: ledger.remaining(),
        "spent": lambda k: ledger.spent(),
    }
    times = {name: [] for name in calls}
    for k in range(-2, n_calls):
        for name, call in calls.items():
            if name in ("remaining", "spent"):
                ledger.charge(guarantees[(7 * k) % len(guarantees)])
            times[name].append(timed(lambda k=k, call=call: call(k)))
    return {name: median(row[2:]) for name, row in times.items()}, cold, asking, ledger.spent()


def refuse(ledger, guarantee):
    try:
        ledger.charge(guarantee)
    except BudgetExceededError:
        return
    raise RuntimeError("The budget was meant to be exceeded.")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--charges", type=int, nargs="*", default=[10, 1_000, 10_000, 100_000])
    parser.add_argument("--calls", type=int, default=15)
    options = parser.parse_args()
    print("charges  kinds   charge  refusal  remaining  spent   cold: all    ask   spent")
    with tempfile.TemporaryDirectory() as folder:
        for n_charges in options.charges:
            for n_kinds in (1, 4, 100):
                path = Path(folder) / f"{n_charges}-{n_kinds}.db"
                times, cold, asking, spent = measure(
                    path, kinds(n_kinds, n_charges), n_charges, options.calls
                )
                print(
                    f"{n_charges:7} {n_kinds:6} {times['charge']:8.1f} {times['refusal']:8.1f} "
                    f"{times['remaining']:10.1f} {times['spent']:6.1f} {cold:9.2f} s "
                    f"{asking:5.2f} s  {spent.epsilon:.3f}",
                    flush=True,
                )


if __name__ == "__main__":
    main()
