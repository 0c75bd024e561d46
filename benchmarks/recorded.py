"""Compute the recorded tables of ``examples/recorded`` again, and compare them.

    python benchmarks/recorded.py [--quick] [--only erm_paper ...]

Each table was written by the script of the same name. A new value must be within six standard
errors of the recorded one, plus a margin; one without a standard error must be within the margin.
With ``--quick``, scripts run with fewer draws, and only lines that both tables have are compared.
Needs SKDP_DATA. The exit code is 1 if a value differs.
"""

import argparse
import csv
import math
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
RECORDED = HERE.parent / "examples" / "recorded"


@dataclass(frozen=True)
class Job:
    """A script, its options, and what its tables hold.

    Parameters
    ----------
    options : tuple of str
        ``{out}`` stands for the folder of the tables.

    quick : tuple of str
        Further options for ``--quick``.

    tables : dict of str to tuple of str
        Columns that name a line, by table.

    margin : float, default=0.0
        Absolute difference that is allowed beside the noise.

    share : float, default=0.0
        The same as a share of the recorded value.
    """

    options: tuple[str, ...]
    quick: tuple[str, ...]
    tables: dict[str, tuple[str, ...]]
    margin: float = 0.0
    share: float = 0.0


def short(part, table, *keys):
    """Part of the experiments of one paper that was recorded with few rows."""
    command = ("--part", part, "--quick", "--runs", "2", "--out", "{out}")
    return Job(command, (), {f"distributed_{table}": keys}, margin=0.01)


VALUES = {"value", "accuracy", "regret", "distance"}  # columns that are compared
EVERY = ("epsilon", "topology")
JOBS = {
    "erm_paper": Job(
        ("--out", "{out}"),
        ("--draws", "4"),
        {"erm_paper": ("set", "figure", "method", "x")},
        margin=0.01,
    ),
    "kernel_ridge_theory": Job(
        ("--output", "{out}/kernel_ridge_theory.png", "--draws", "5"),
        (),
        {"kernel_ridge_theory": ("r", "rule", "rows", "curve")},
        share=0.25,
    ),
    "online_theory": Job(
        ("--output", "{out}/online_theory"),
        (),
        {"online_theory": ("part", "parameter", "t", "curve")},
        share=0.25,
    ),
    "mi_regret": Job(
        ("--out", "{out}"),
        ("--runs", "30"),
        {f"mi_regret_{name}": ("stream", "sigma", "T") for name in ("gradients", "tradeoff")},
        share=0.01,
    ),
    "distributed_paper regret": Job(
        ("--part", "regret", "--out", "{out}"),
        ("--runs", "2"),
        {
            "distributed_regret": ("figure", "data", "algorithm", *EVERY, "records_per_node"),
            "distributed_consensus": (*EVERY, "round"),
        },
        margin=0.02,
        share=0.25,
    ),
    "distributed_paper mini": Job(
        ("--part", "mini", "--out", "{out}"),
        ("--runs", "2"),
        {"distributed_mini": ("figure", "arm", "epsilon", "records_per_node")},
        margin=0.02,
    ),
    "distributed_paper nodes": short(
        *("nodes", "nodes", "data", "columns", "algorithm", "epsilon", "nodes")
    ),
    "distributed_paper text": short(
        *("text", "sparsity", "data", "topology", "epsilon", "threshold")
    ),
}


def lines_of(path, keys):
    """Lines of a table by their names."""
    with open(path, newline="") as file:
        return {tuple(line[key] for key in keys): line for line in csv.DictReader(file)}


def error_of(line):
    """Standard error of a line, 0 where it has none."""
    error = float(line.get("standard_error") or 0.0)
    return 0.0 if math.isnan(error) else error


def compared(job, folder):
    """Print what differs, and return how many lines were compared and how many differ."""
    n_compared = n_wrong = 0
    for table, keys in job.tables.items():
        old, new = (lines_of(path / f"{table}.csv", keys) for path in (RECORDED, folder))
        for key in old.keys() & new.keys():
            column = next(name for name in old[key] if name in VALUES)
            was, found = float(old[key][column]), float(new[key][column])
            # A script with fewer runs may state no error, or one of two runs: the recorded one is
            # taken for it, twice.
            error = math.hypot(2.0 * error_of(old[key]), error_of(new[key]))
            allowed = 6.0 * error + job.margin + job.share * abs(was)
            n_compared += 1
            if not abs(found - was) <= allowed:
                n_wrong += 1
                print(f"  {table} {' '.join(key)}: {was:g} recorded, {found:g} now")
    return n_compared, n_wrong


def main():
    """Run the scripts and compare."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="fewer draws")
    parser.add_argument("--only", nargs="+", choices=JOBS, default=list(JOBS))
    arguments = parser.parse_args()
    is_wrong = False
    with tempfile.TemporaryDirectory() as folder:
        for name in arguments.only:
            job, start = JOBS[name], time.perf_counter()
            options = [option.format(out=folder) for option in job.options]
            options += job.quick if arguments.quick else ()
            script = HERE / f"{name.split()[0]}.py"
            with open(Path(folder) / "log", "w") as log:
                subprocess.run([sys.executable, script, *options], check=True, stdout=log)
            n_compared, n_wrong = compared(job, Path(folder))
            is_wrong |= n_wrong > 0 or n_compared == 0
            seconds = time.perf_counter() - start
            print(f"{name}: {n_compared} values, {n_wrong} differ, {seconds:.0f} s", flush=True)
    return int(is_wrong)


if __name__ == "__main__":
    sys.exit(main())
