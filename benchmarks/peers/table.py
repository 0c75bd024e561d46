"""Scores of our defaults and of peers on the sets of `peers.data`, line by line.

    python benchmarks/peers/table.py --out FILE.csv [--sets ...] [--sizes 1000 5000 full]
        [--epsilons ...] [--deltas 0 1e-5] [--methods ...] [--draws 20] [--jobs 2]
        [--most 20000] [--label NAME] [--rows short]

Appends one line a set, size, epsilon, delta, method and draw, and leaves out what is in the file
already, so that a run may be stopped and started. Draw i splits the set with the seed i and fits
with random_state=i, which makes the tables reproducible and their fits void of privacy. Lines
without privacy have an infinite epsilon. A fit that raises leaves a line with the error.

``--label`` names the checkout: "ours" is then called so, and other methods get it in front. To
compare with another state of the library, put that one on PYTHONPATH. ``peers/report.py`` prints
the tables. ``--rows short`` has features in [-1, 1] over the root of their number, and no rows of
norm 1, for classifiers. diffprivlib runs with an interpreter that has it: see pyproject.toml.
"""

import argparse
import csv
import math
import sys
import time
import warnings
from contextlib import contextmanager
from multiprocessing import get_context
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from threadpoolctl import threadpool_limits

from peers import data, methods
from peers.scores import SCORES

KEYS = ("set", "n", "epsilon", "delta", "method", "draw")
FIELDS = (*KEYS, "setting", "n_train", "n_features", *SCORES, "seconds", "error")
EPSILONS = (0.1, 0.5, 1.0, 3.0, 8.0)
DELTAS = (0.0, 1e-5)


def key_of(line):
    """What tells a line from others, the setting apart."""
    numbers = float(line["epsilon"]), float(line["delta"]), int(line["draw"])
    return line["set"], line["n"], line["method"], *numbers


def labelled(method, label):
    """Name of a method in the file."""
    if not label:
        return method
    return label + method[4:] if method.startswith("ours") else f"{label} {method}"


def missing(arguments, done):
    """Tasks: a set, a size, a draw and what is still to be computed there."""
    tasks = []
    smaller = dict(zip(arguments.sizes[1:], arguments.sizes, strict=False))
    for n in arguments.sizes:
        for draw in range(arguments.draws):
            for name in arguments.sets:
                cells = []
                for method in arguments.methods:
                    label = labelled(method, arguments.label)
                    for delta in arguments.deltas:
                        served = methods.METHODS[method]
                        if not served.serves(data.kind_of(name), delta):
                            continue
                        asked = arguments.epsilons if served.deltas else [math.inf]
                        left = [e for e in asked if (name, n, label, e, delta, draw) not in done]
                        if left:
                            cells.append((method, label, delta, left))
                if cells:
                    most, rows = arguments.most, arguments.rows
                    tasks.append((name, n, draw, most, rows, smaller.get(n), cells))
    return tasks


def run(task):
    """Lines of a task."""
    name, n, draw, most, rows, smaller, cells = task
    n_rows = most if n == "full" else min(int(n), most)
    try:
        split = data.split(name, n_rows, draw, rows=rows)
    except (ImportError, OSError, AttributeError) as error:  # no file, or an older checkout
        return [], f"{name}: {error}"
    if smaller is not None and len(split.y) <= int(smaller):
        return [], None  # all rows are in the smaller size
    lines = []
    for method, label, delta, epsilons in cells:
        found = methods.METHODS[method].run
        # One by one, so that a failure at one epsilon leaves the others.
        groups = [epsilons] if method == "tuned descent" else [[e] for e in epsilons]
        for group in groups:
            start, common = time.perf_counter(), dict(set=name, n=n, delta=delta, draw=draw)
            common |= dict(method=label, n_train=len(split.y), n_features=split.X.shape[1])
            try:
                results = [
                    common | dict(epsilon=epsilon, setting=setting) | rounded(scores)
                    for epsilon, setting, scores in found(split, group, delta, draw)
                ]
            except Exception as error:
                text = f"{type(error).__name__}: {error}"[:150].replace("\n", " ")
                results = [common | dict(epsilon=epsilon, error=text) for epsilon in group]
            seconds = (time.perf_counter() - start) / len(results)
            lines += [line | dict(seconds=f"{seconds:.3f}") for line in results]
    return lines, None


def rounded(scores):
    """Scores as text."""
    return {name: f"{value:.6g}" for name, value in scores.items()}


def _quietly(task):
    """Lines of a task by one thread, without warnings about convergence and the like."""
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return run(task)


@contextmanager
def _results(tasks, jobs):
    """Results of tasks as they come, in this process where one is enough."""
    if jobs == 1:
        yield map(_quietly, tasks)
        return
    with get_context("fork").Pool(jobs) as pool:
        yield pool.imap_unordered(_quietly, tasks)


def main():
    """Compute what is missing in the file."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, required=True, metavar="FILE.csv")
    parser.add_argument("--sets", nargs="+", choices=list(data.SETS), default=list(data.SETS))
    parser.add_argument("--sizes", nargs="+", default=["1000", "5000", "full"])
    parser.add_argument("--epsilons", type=float, nargs="+", default=list(EPSILONS))
    parser.add_argument("--deltas", type=float, nargs="+", default=list(DELTAS))
    parser.add_argument(
        "--methods", nargs="+", choices=list(methods.METHODS), default=methods.DEFAULT
    )
    parser.add_argument("--draws", type=int, default=20)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--most", type=int, default=20_000, help="rows to learn from")
    parser.add_argument("--label", default="")
    parser.add_argument("--rows", choices=["auto", "short"], default="auto")
    arguments = parser.parse_args()

    done = set()
    if arguments.out.exists():
        with open(arguments.out, newline="") as file:
            done = {key_of(line) for line in csv.DictReader(file)}
    else:
        with open(arguments.out, "w", newline="") as file:
            csv.DictWriter(file, FIELDS).writeheader()
    tasks = missing(arguments, done)
    print(f"{len(tasks)} tasks; {len(done)} cells are in {arguments.out}", flush=True)
    start, said = time.perf_counter(), set()
    with _results(tasks, arguments.jobs) as results, open(arguments.out, "a", newline="") as file:
        writer = csv.DictWriter(file, FIELDS)
        for i, (lines, trouble) in enumerate(results, 1):
            writer.writerows(lines)
            file.flush()
            if trouble and trouble not in said:
                said.add(trouble)
                print(f"left out: {trouble}", flush=True)
            if i % 20 == 0 or i == len(tasks):
                seconds = time.perf_counter() - start
                print(f"{i} of {len(tasks)} tasks, {seconds:.0f} s", flush=True)


if __name__ == "__main__":
    main()
