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
they stand in what calibrates or bounds, in `CALIBRATIONS`.
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
    "mechanisms/_additive.py",
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
# What holds no rule: modules, or what is named of them.
CALIBRATIONS: dict[str, tuple[str, ...]] = {
    # Noise for its sensitivity, with the roundings on the way, and bounds on what it leaks.
    "kernel/_online/_base.py": (),
    "kernel/_online/_fed_back.py": (),
    "kernel/_online/_matrix.py": (),
    "kernel/_online/_query.py": (),
    "kernel/_online/_sensitivity.py": (),
    "kernel/_pure.py": ("FeatureOutput",),
    "kernel/_queries.py": (),
    "kernel/_ridge_problem.py": ("suggest_epsilon",),
    "learner/_objective.py": (),
    "linear_model/_mutual_information/_channels.py": ("Channel", "Gradients"),
    "local/_messages.py": (),
    "mechanisms/_additive.py": (),
    "mechanisms/_cells.py": (),
    "metrics/_releases.py": ("_SUM_ERROR", "PrecisionSum", "LARGEST_LOG_LOSS", "_WIDEST"),
    "model_selection/_choice.py": ("StageCharges",),
    "preprocessing/_column_statistics.py": (
        *("_SUM_ERROR", "_MOST_ROWS"),
        *("BoundedSums", "MeanRelease", "CountsRelease"),
    ),
    "preprocessing/_target_bounds.py": (),
    "rows/_features.py": (),
    # A model of the noise in coefficients, of which no fit depends.
    "learner/_descent.py": ("_MOST_KEPT", "descent_variances", "_mean_slopes"),
    # Bytes of hashes and of seeds, ranges of integers, and how objects are stored.
    "learner/_estimator.py": ("_IN_CACHE", "StatedGuarantee"),
    "learner/_sequence.py": ("_UP",),
    "learner/_streams.py": (),
    "learner/_sums.py": (),
    "model_selection/_searched.py": ("_SEED", "_place"),
    "preprocessing/_private.py": ("_SEEDS",),
    "preprocessing/_datetime_parts.py": (),
    "preprocessing/_splines.py": ("ROUNDED_UP",),
    # Definitions of scores, their intervals, and pictures of them.
    "metrics/_evaluation.py": (),
    "linear_model/_summary.py": (),
    # What papers state, and the steps and rates that follow from it.
    "distributed/papers.py": (),
    "kernel/_ridge_theory.py": (),
    "kernel/papers.py": (),
    "linear_model/_mutual_information/_theory.py": (),
    "linear_model/papers.py": (),
    # How minima, sums and recursions are computed, and losses with their bounds.
    "distributed/_gossip.py": ("_KEPT", "run_gossip", "_FEW_ROWS", "USER_BITS"),
    "distributed/_secure_sums.py": (
        *("_KEY", "_SPARSE", "Session", "pad", "_neighbours", "_as_words", "_words_of"),
    ),
    "distributed/_shares.py": (),
    "distributed/_whitened_gossip.py": (
        *("_GRAIN", "_MOST_MIXINGS", "mixings_for", "largest_norm"),
        *("NodeWeights", "Network", "NodeRows", "NodeSums"),
    ),
    "kernel/_online/_recursion.py": (),
    "learner/_losses.py": (),
    "learner/_newton.py": (),
    "learner/_stages.py": ("_MANTISSA", "_MOST_BITS", "_LEEWAY"),
    "linear_model/_comparator.py": (),
    "local/_ogd.py": (),
}
FREE = (0, 1, 2, 0.5)


def literals(path: Path, named: tuple[str, ...] = ()) -> list[tuple[int, float]]:
    """Lines and values of the numbers in a module that count; what is ``named`` has no rule."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    skipped: set[int] = set()
    for node in tree.body:
        if isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            bound = [ast.unparse(target).lstrip("(") for target in targets]
            skip = (
                any(name.startswith(ARITHMETIC) for name in bound)
                or bound[0].split(",")[0] in named
            )
        else:
            skip = getattr(node, "name", None) in named
        if skip:
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
            named = CALIBRATIONS.get(name, (None,))
            if path.exists() and named:
                found[name] = literals(path, named)
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
            setattr(module, number, value)
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
