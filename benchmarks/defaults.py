"""The numbers that our rules go by: how many there are, and what each is worth.

    python benchmarks/defaults.py --count [FOLDER]     # by file; FOLDER holds another checkout
    python benchmarks/defaults.py linear [--numbers CAP TIME ...] [--sets ...] [--sizes ...]
        [--epsilons ...] [--deltas ...] [--draws 4]    # or kernel

The second form fits with each number as it is, halved and doubled, and prints how much of the
scores is lost, in means over sets of all sizes and budgets, with the standard error of that mean
over sets. Draw i splits a set with the seed i and fits with random_state=i, alike for all. Needs
SKDP_DATA.

Counted are the numeric literals but 0, 1, 2 and 1/2 of ``skdp/_defaults`` and of what plans: the
modules in `PLANS`. Numbers of arithmetic and of theorems are no rules. They are module constants
that begin with one of the words in `ARITHMETIC`, such as ``_TOLERANCE`` and ``_GRID_CELLS``, or
they stand in functions that calibrate or bound, in `CALIBRATIONS`.
"""

import argparse
import ast
import importlib
import sys
import warnings
from functools import cache
from multiprocessing import get_context
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parent))

import numpy as np
from peers import data, methods
from threadpoolctl import threadpool_limits

ROOT = Path(__file__).resolve().parents[1]

# What plans: modules, and folders with all that is in them.
PLANS = (
    "_defaults",
    "rows/_features.py",
    "learner",
    "mechanisms/_limits.py",
    "linear_model",
    "kernel",
    "distributed",
    "pipeline",
    "model_selection",
    "preprocessing",
    "metrics",
    "local",
)
# Words that names of module constants begin with, which are no rules.
ARITHMETIC = ("_TOLERANCE", "_GRID", "_BLOCK", "_LIMIT", "_THEOREM")
# Modules that hold no rule: bounds with their proofs, noise calibrated to them, and how things are
# computed.
CALIBRATIONS: tuple[str, ...] = (
    # Noise for its sensitivity, and when a budget is too small or rows too many for floats.
    "mechanisms/_limits.py",
    "learner/_objective.py",
    "learner/_objective_noise.py",
    "metrics/_precision_sum.py",
    # A model of the noise in coefficients, of which no fit depends.
    "learner/_coefficient_noise.py",
    # Kernels and how features are drawn and rounded; the noise of streams with its proofs; the
    # paper's bounds; noise of exact answers and of minimisers; selections composed with noise.
    "rows/_features.py",
    "kernel/_exact_queries.py",
    "kernel/_output.py",
    "kernel/_ridge_risk.py",
    "kernel/_online/_base.py",
    "kernel/_online/_account.py",
    "kernel/_online/_calls.py",
    "kernel/_online/_fed_back.py",
    "kernel/_online/_matrix.py",
    "kernel/_online/_query.py",
    "kernel/_online/_sensitivity.py",
    "kernel/_online/_tree.py",
    "kernel/_online/_users.py",
    "preprocessing/_target_bounds.py",
    # Noise for its sensitivity, with the roundings on the way, and bounds on what it leaks.
    "preprocessing/_bounded_sums.py",
    "mechanisms/_cells.py",
    "preprocessing/_column_sums.py",
    "local/_gradient_messages.py",
    "learner/_units.py",
    "linear_model/_mutual_information/_channels.py",
    # Bytes of hashes and of seeds, ranges of integers, and how objects are stored.
    "kernel/_queries.py",
    "learner/_mixins.py",
    "learner/_streams.py",
    "model_selection/_blocks.py",
    "model_selection/_stage_charges.py",
    "preprocessing/_column_values.py",
    "preprocessing/_contributions.py",
    "preprocessing/_spline_basis.py",
    # Definitions of scores, their intervals, and pictures of them.
    "metrics/_display.py",
    "metrics/_evaluation.py",
    "metrics/_privacy_utility.py",
    "metrics/_ranking.py",
    "metrics/_row_losses.py",
    # How minima, sums and recursions are computed, and losses with their bounds.
    "distributed/_solver_gossip.py",
    "distributed/_solver_gossip_sums.py",
    "distributed/_solver_gossip_whitened.py",
    "kernel/_exact_solver.py",
    "kernel/_online/_exact_kernel.py",
    "kernel/_online/_prefix_factors.py",
    "kernel/_online/_recursion.py",
    "learner/_losses/_margin.py",
    "learner/_losses/_weights.py",
    "learner/_newton.py",
    "linear_model/_comparator.py",
    "local/_ogd.py",
)
FREE = (0, 1, 2, 0.5)


def literals(path: Path) -> list[tuple[int, float]]:
    """Lines and values of the numbers in a module that count."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    skipped: set[int] = set()
    for node in tree.body:
        if isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            if any(ast.unparse(target).lstrip("(").startswith(ARITHMETIC) for target in targets):
                skipped |= {id(child) for child in ast.walk(node)}
    return [
        (node.lineno, node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant)
        and isinstance(node.value, int | float)
        and not isinstance(node.value, bool)
        and node.value not in FREE
        and id(node) not in skipped
    ]


def counted(root: Path) -> dict[str, list[tuple[int, float]]]:
    """Numbers by module."""
    package = root / "skdp"
    found = {}
    for place in PLANS:
        where = package / place
        for path in sorted(where.rglob("*.py") if where.is_dir() else [where]):
            name = str(path.relative_to(package))
            if path.exists() and name not in CALIBRATIONS:
                found[name] = literals(path)
    return {name: numbers for name, numbers in found.items() if numbers}


def numbers_of(learner: str) -> dict[str, float]:
    """Numbers of a learner by name."""
    module = importlib.import_module(f"skdp._defaults.{learner}")
    return {name: float(value) for name, value in vars(module).items() if name.isupper()}


@cache
def splits(name: str, size: int, draw: int) -> data.Split:
    """Rows of a set, prepared once a process."""
    return data.split(name, size, draw)


def scored(task) -> tuple[tuple, dict[str, float]]:
    """Scores of one fit with one number changed."""
    learner, number, value, name, size, epsilon, delta, draw = task
    module = importlib.import_module(f"skdp._defaults.{learner}")
    usual = getattr(module, number) if number else None
    split = splits(name, size, draw)
    try:
        if number:
            setattr(module, number, type(usual)(value, usual.why, usual.worth))
        with threadpool_limits(1), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            (_, _, scores), *_ = methods.METHODS["ours"].run(split, [epsilon], delta, draw)
    except ValueError:  # what a number makes impossible
        scores = {}
    finally:
        if number:
            setattr(module, number, usual)
    return task, scores


def worths(arguments) -> None:
    """Print what each number is worth."""
    learner = arguments.learner
    kinds = [data.REGRESSION] if learner == "kernel" else [data.BINARY, data.MULTICLASS]
    sets = arguments.sets or [name for kind in kinds for name in kind]
    every = numbers_of(learner)
    changes = [("", 0.0)]
    for number in arguments.numbers or every:
        changes += [(number, 0.5 * every[number]), (number, 2.0 * every[number])]
    tasks = [
        (learner, *change, name, size, epsilon, delta, draw)
        for name in sets
        for size in arguments.sizes
        for draw in range(arguments.draws)
        for epsilon in arguments.epsilons
        for delta in arguments.deltas
        for change in changes
    ]
    found: dict[tuple, dict[str, dict[str, list[float]]]] = {}
    with get_context("fork").Pool(2) as pool:
        for task, scores in pool.imap_unordered(scored, tasks, chunksize=len(changes)):
            of_set = found.setdefault(task[1:3], {}).setdefault(task[3], {})
            for name, score in scores.items():
                of_set.setdefault(name, []).append(score)
    usual = found[changes[0]]
    for change in changes[1:]:
        parts = []
        if any(of_set.keys() != usual[one].keys() for one, of_set in found[change].items()):
            print(f"{change[0]:18} {every[change[0]]:>8g} -> {change[1]:<8g} refused")
            continue
        for name in next(iter(usual.values())):
            lost = [
                float(np.mean(usual[one][name]) - np.mean(found[change][one][name]))
                for one in usual
            ]
            lost = [-x for x in lost] if name == "log_loss" else lost
            error = np.std(lost, ddof=1) / np.sqrt(len(lost)) if len(lost) > 1 else np.nan
            parts.append(f"{name} {np.mean(lost):+.4f} +- {error:.4f}")
        if all(found[change][one] == usual[one] for one in usual):
            parts = ["no effect: not met by these fits, or read where a module is loaded"]
        print(f"{change[0]:18} {every[change[0]]:>8g} -> {change[1]:<8g} {', '.join(parts)}")


def main() -> None:
    """Print what is asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("learner", nargs="?", choices=["linear", "kernel"])
    parser.add_argument("--numbers", nargs="+")
    parser.add_argument("--sets", nargs="+", choices=list(data.SETS))
    parser.add_argument("--sizes", type=int, nargs="+", default=[1_000, 5_000, 20_000])
    parser.add_argument("--epsilons", type=float, nargs="+", default=[0.1, 0.5, 1.0, 3.0])
    parser.add_argument("--deltas", type=float, nargs="+", default=[0.0, 1e-5])
    parser.add_argument("--draws", type=int, default=4)
    parser.add_argument("--count", nargs="?", const=ROOT, type=Path, metavar="FOLDER")
    parser.add_argument("--show", action="store_true", help="each number with its line")
    arguments = parser.parse_args()
    if arguments.learner:
        worths(arguments)
        return
    found = counted(arguments.count or ROOT)
    for name, numbers in sorted(found.items(), key=lambda item: len(item[1])):
        shown = " ".join(f"{line}:{value:g}" for line, value in numbers) if arguments.show else ""
        print(f"{len(numbers):5}  {name}  {shown}")
    print(f"{sum(map(len, found.values())):5}  in all")


if __name__ == "__main__":
    main()
