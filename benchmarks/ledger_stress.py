"""Stress a `BudgetLedger`: many processes against one budget, and kill -9 in the midst of charges.

    python benchmarks/ledger_stress.py

The first figure must be exactly 1,000 accepted charges. The second must be 0 missing fits: a fit
starts when `charge` has returned, and its charge must be in the history whatever happens next.
"""

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from skdp.exceptions import BudgetExceededError
from skdp.privacy import ApproxDP, BudgetLedger


def charge_repeatedly(path, n_charges, epsilon):
    """Run in a child: charge again and again, and say at once which fits may start."""
    ledger = BudgetLedger(path)
    for k in range(n_charges):
        try:
            ledger.charge(ApproxDP(epsilon), label=f"fit {k}")
        except BudgetExceededError:
            continue
        os.write(1, f"fit {k}\n".encode())


def _start(path, n_charges, epsilon):
    command = [sys.executable, __file__, "--child", path, str(n_charges), str(epsilon)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def compete(path, n_processes, n_charges, n_allowed):
    """Let processes compete for a budget; return how many charges each won."""
    epsilon = 1.0 / n_allowed
    BudgetLedger(path, epsilon=1.0)
    children = [_start(path, n_charges, epsilon) for _ in range(n_processes)]
    won = [len(child.communicate()[0].splitlines()) for child in children]
    if any(child.returncode for child in children):
        raise RuntimeError("A child failed.")
    return won


def crash(path, rng, n_processes=2):
    """Kill processes that charge at full speed; return what was started, by process.

    Returns
    -------
    started : dict of int to list of str
        The fits that each process reported.

    interrupted : bool
        Whether a transaction was under way.
    """
    children = [_start(path, 10**6, 1e-9) for _ in range(n_processes)]
    first = [child.stdout.readline() for child in children]
    time.sleep(rng.uniform(0.0, 0.05))
    for child in children:
        child.send_signal(signal.SIGKILL)
    # A line that the kill cut short was not reported.
    texts = [line + child.communicate()[0] for line, child in zip(first, children, strict=True)]
    started = {
        child.pid: text[: text.rfind("\n") + 1].splitlines()
        for child, text in zip(children, texts, strict=True)
    }
    return started, os.path.exists(f"{path}-journal")


def missing_fits(path, started):
    """Fits that started and are not in the history; raise if there are charges too many."""
    charged = Counter((record.pid, record.label) for record in BudgetLedger(path).history())
    for pid, fits in started.items():
        if sum(n for (owner, _), n in charged.items() if owner == pid) > len(fits) + 1:
            raise RuntimeError("The ledger charged twice.")
    return [(pid, fit) for pid, fits in started.items() for fit in fits if not charged[pid, fit]]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--processes", type=int, default=8)
    parser.add_argument("--charges", type=int, default=200)
    parser.add_argument("--allowed", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=50)
    options = parser.parse_args()

    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "compete.db")
        start = time.perf_counter()
        won = compete(path, options.processes, options.charges, options.allowed)
        seconds = time.perf_counter() - start
        ledger = BudgetLedger(path)
        print(
            f"{options.processes} processes x {options.charges} charges, budget for "
            f"{options.allowed}: {sum(won)} accepted {won}, {len(ledger.history())} in the file, "
            f"epsilon {ledger.spent().epsilon} of 1.0 spent, {seconds:.1f} s"
        )

        path = str(Path(folder) / "crash.db")
        BudgetLedger(path, epsilon=1.0)
        rng = random.Random(0)
        n_started = n_interrupted = n_missing = 0
        for _ in range(options.rounds):
            started, interrupted = crash(path, rng)
            n_started += sum(map(len, started.values()))
            n_interrupted += interrupted
            n_missing += len(missing_fits(path, started))
        print(
            f"{options.rounds} rounds of kill -9: {n_started} fits started, {n_missing} missing, "
            f"{n_interrupted} kills inside a transaction, the file opened every time"
        )


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        charge_repeatedly(sys.argv[2], int(sys.argv[3]), float(sys.argv[4]))
    else:
        main()
