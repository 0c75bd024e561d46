"""Tables of what `peers/table.py` has found.

    python benchmarks/peers/report.py FILE.csv [FILE.csv ...] [--ours ours] [--sets]
        [--guide [FILE.rst ...]]

Means over sets and sizes, at each epsilon and delta, of each method; ours against each other
method on the cells of both; the cells where another one is ahead by more than two standard errors,
and those where ours is below the larger class or the mean. A cell is a set, a size, an epsilon and
a delta. Differences are taken draw by draw, which have their splits in common, and the standard
error is that of their mean. Of a tuned method each score takes the setting that is best for it in
the mean over draws on the test rows.

``--guide`` prints the tables of the documentation, what to expect by n * epsilon, or puts them
into the pages that are named. ``--sets`` prints ours by set and size.
"""

import argparse
import sys
from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from peers.comparison import csv_line
from peers.data import kind_of

HIGHER = {"accuracy": 1.0, "auc": 1.0, "log_loss": -1.0, "r2": 1.0}
CELL = ["kind", "set", "n", "epsilon", "delta"]
# Of n * epsilon in the guide.
ENDS = (0, 500, 2_000, 10_000, 50_000, np.inf)
RANGES = list(pairwise(ENDS))
KINDS = ("binary", "multiclass", "regression")
NAMES = {"accuracy": "accuracy", "r2": ":math:`R^2`"}
WITHOUT_PRIVACY = ("constant", "best", "best linear", "plain", "plain kernel")


def loaded(paths):
    """Scores, one line a method, setting and draw; sizes that a set does not reach left out."""
    frame = pd.concat(
        [pd.read_csv(path, dtype={"n": str, "setting": object}) for path in paths],
        ignore_index=True,
    )
    frame["setting"] = frame["setting"].fillna("")
    frame["kind"] = frame["set"].map(kind_of)
    smaller = {"5000": 1000, "full": 5000}
    keep = frame["n_train"] > frame["n"].map(smaller).fillna(0)
    keys = ["set", "n", "epsilon", "delta", "method", "draw", "setting"]
    return frame[keep].drop_duplicates(keys, keep="last")


def by_score(frame, score):
    """Values of a score: cells in rows, methods and draws in columns; settings chosen."""
    values = frame[frame[score].notna()]
    private = np.isfinite(values["epsilon"])
    chosen = values[private]
    keys = [*CELL, "method"]
    means = chosen.groupby([*keys, "setting"])[score].mean() * HIGHER[score]
    best = means.reset_index().sort_values(score).drop_duplicates(keys, keep="last")
    chosen = chosen.merge(best[[*keys, "setting"]])
    table = chosen.pivot_table(index=CELL, columns=["method", "draw"], values=score)
    others = values[~private].pivot_table(
        index=["kind", "set", "n"], columns=["method", "draw"], values=score
    )
    if len(others.columns):
        table = table.join(
            others.reindex(table.index.droplevel(["epsilon", "delta"])).set_index(table.index)
        )
    return table


def differences(table, ours, other, score):
    """Mean of ours minus the other (positive: ours is better), its standard error, both means."""
    if other not in table.columns.get_level_values("method"):
        return None
    both = sorted(set(table[ours].columns) & set(table[other].columns))
    left, right = table[ours][both], table[other][both]
    gaps = (left - right) * HIGHER[score]
    counts = gaps.notna().sum(axis=1)
    found = pd.DataFrame(
        {
            "gap": gaps.mean(axis=1),
            "error": gaps.std(axis=1, ddof=1) / np.sqrt(counts),
            "ours": left.where(gaps.notna()).mean(axis=1),
            "other": right.where(gaps.notna()).mean(axis=1),
        }
    )
    return found[counts >= 2]


def methods_of(table, ours):
    """Other methods, those without privacy last."""
    names = list(dict.fromkeys(table.columns.get_level_values("method")))
    private = sorted(name for name in names if name not in (ours, *WITHOUT_PRIVACY))
    return private + [name for name in WITHOUT_PRIVACY if name in names]


def print_means(tables, kind, delta, ours):
    """Means over sets and sizes by epsilon, and ours against others on the cells of both."""
    for score, table in tables.items():
        index = table.index
        here = index.get_level_values("kind") == kind
        part = table[here & (index.get_level_values("delta") == delta)]
        if part.empty or ours not in part.columns.get_level_values("method"):
            continue
        print(f"\n{kind}, delta={delta:g}: {score}, mean over sets and sizes by epsilon")
        print("    (+: how much better ours is), cells where the other is ahead / cells")
        epsilons = sorted(part.index.unique("epsilon"))
        print(f"  {'epsilon':22s}" + "".join(f"{epsilon:<24g}" for epsilon in epsilons))
        own = part[ours].mean(axis=1)
        own_by = own.groupby("epsilon").mean()
        print(f"  {ours:22s}" + "".join(f"{own_by[e]:<24.3f}" for e in epsilons))
        for other in methods_of(part, ours):
            found = differences(part, ours, other, score)
            if found is None or found.empty:
                continue
            cells = []
            for epsilon in epsilons:
                if epsilon not in found.index.unique("epsilon"):
                    cells.append(f"{'':24s}")
                    continue
                here = found.xs(epsilon, level="epsilon")
                ahead = (here["gap"] < -2.0 * here["error"]).sum()
                text = (
                    f"{here['other'].mean():.3f} ({here['gap'].mean():+.3f}) {ahead}/{len(here)}"
                )
                cells.append(f"{text:24s}")
            print(f"  {other:22s}" + "".join(cells))


def print_summary(tables, ours):
    """For each other method the share of cells where it is ahead by more than two errors."""
    print(f"\nCells where another one is ahead of {ours} by more than two standard errors")
    print(f"  {'':22s}" + "".join(f"{score:20s}" for score in tables))
    names = {name: None for table in tables.values() for name in methods_of(table, ours)}
    for other in names:
        if other in WITHOUT_PRIVACY:
            continue
        cells = []
        for score, table in tables.items():
            known = ours in table.columns.get_level_values("method")
            found = differences(table, ours, other, score) if known else None
            if found is None or found.empty:
                cells.append("")
                continue
            ahead = int((found["gap"] < -2.0 * found["error"]).sum())
            cells.append(f"{ahead}/{len(found)} ({ahead / len(found):.1%})")
        print(f"  {other:22s}" + "".join(f"{cell:20s}" for cell in cells))


def print_ahead(tables, ours, most):
    """Cells where a private method is ahead by more than two standard errors."""
    for score, table in tables.items():
        if ours not in table.columns.get_level_values("method"):
            continue
        for other in methods_of(table, ours):
            if other in WITHOUT_PRIVACY:
                continue
            found = differences(table, ours, other, score)
            if found is None or found.empty:
                continue
            ahead = found[found["gap"] < -2.0 * found["error"]].sort_values("gap")
            share = len(ahead) / len(found)
            print(f"\n{score}: {other} is ahead of {ours} in {len(ahead)} of {len(found)} cells")
            print(f"    ({share:.1%}); gap, standard error, ours, the other")
            for (_, name, n, epsilon, delta), line in ahead.head(most).iterrows():
                print(
                    f"  {name:14s} {n:>5s} eps={epsilon:<4g} delta={delta:<6g}"
                    f" {line['gap']:+.4f} {line['error']:.4f} {line['ours']:8.4f}"
                    f" {line['other']:8.4f}"
                )


def print_floor(tables, frame, ours):
    """Cells below the larger class - .005, or with R^2 below -.02, where n * epsilon >= 500."""
    n_train = frame.groupby(["kind", "set", "n"])["n_train"].first()
    print(f"\nBelow majority - .005, or R^2 < -.02, at n * epsilon >= 500: {ours}")
    for score in ("accuracy", "r2"):
        table = tables[score]
        if ours not in table.columns.get_level_values("method"):
            continue
        own = table[ours].mean(axis=1)
        floor = pd.Series(-0.02, own.index)
        if score == "accuracy":
            floor = differences(table, ours, "constant", score)["other"] - 0.005
            own = differences(table, ours, "constant", score)["ours"]
        sizes = n_train.reindex(own.index.droplevel(["epsilon", "delta"])).to_numpy()
        n_epsilon = sizes * own.index.get_level_values("epsilon")
        below = own[(own < floor) & (n_epsilon >= 500)]
        asked = int((n_epsilon >= 500).sum())
        print(f"  {score}: {len(below)} of {asked} cells")
        for (_, name, n, epsilon, delta), value in below.items():
            print(
                f"  {name:14s} {n:>5s} eps={epsilon:<4g} delta={delta:<6g} {value:.4f}"
                f"  floor {floor[(_, name, n, epsilon, delta)]:.4f}"
            )


def print_monotone(tables, ours):
    """Cells where less epsilon, or delta = 0 in place of delta > 0, is better beyond noise."""
    print(f"\nWhere a stronger guarantee of {ours} is better by more than two standard errors")
    for score, table in tables.items():
        if ours not in table.columns.get_level_values("method"):
            continue
        wide = table[ours].mul(HIGHER[score]).unstack("delta")
        deltas = sorted(table.index.unique("delta"))
        worse = []
        for low, high in pairwise(deltas):
            gaps = wide.xs(low, axis=1, level="delta") - wide.xs(high, axis=1, level="delta")
            worse.append((f"delta={low:g} beats {high:g}", gaps))
        wide = table[ours].mul(HIGHER[score]).unstack("epsilon")
        epsilons = sorted(table.index.unique("epsilon"))
        for low, high in pairwise(epsilons):
            gaps = wide.xs(low, axis=1, level="epsilon") - wide.xs(high, axis=1, level="epsilon")
            worse.append((f"epsilon={low:g} beats {high:g}", gaps))
        for name, gaps in worse:
            counts = gaps.notna().sum(axis=1)
            error = gaps.std(axis=1, ddof=1) / np.sqrt(counts)
            gaps = gaps.mean(axis=1)[counts >= 2]
            bad = gaps[gaps > 2.0 * error[counts >= 2]].sort_values(ascending=False)
            cells = "; ".join(
                f"{' '.join(f'{part:g}' if isinstance(part, float) else part for part in key[1:])}"
                f" {value:.4f}"
                for key, value in bad.head(6).items()
            )
            print(f"  {score:9s} {name:22s} {len(bad):3d} of {len(gaps):3d}  {cells}")


def guide(tables, frame, ours, kind):
    """What to expect by n * epsilon, as a table in reStructuredText."""
    score, constant = ("r2", "the mean") if kind == "regression" else ("accuracy", "larger class")
    table = tables[score]
    part = table[table.index.get_level_values("kind") == kind]
    means = part.T.groupby("method").mean().T
    if missing := {ours, "constant", "best"} - set(means):
        return f".. {kind}: no lines of {', '.join(sorted(missing))}"
    means = means[[ours, "constant", "best"]]
    wide = means.unstack("delta").dropna()
    deltas = sorted(wide.columns.unique("delta"))
    n_train = frame.groupby(["kind", "set", "n"])["n_train"].first()
    sizes = n_train.reindex(wide.index.droplevel("epsilon")).to_numpy()
    n_epsilon = sizes * wide.index.get_level_values("epsilon")
    named = [f"``delta={delta:g}``".replace("e-0", "e-") for delta in deltas]
    header = [":math:`n \\varepsilon`", constant, *named, "not private"]
    header += [f"{name}: below {constant}" for name in named]
    rows = []
    for low, high in RANGES:
        cells = wide[(n_epsilon >= low) & (n_epsilon < high)]
        if cells.empty:
            continue
        row = [f"{low:,} to {high:,}" if np.isfinite(high) else f"from {low:,}"]
        row[0] = row[0] if low else f"below {high:,}"
        floors = cells["constant"][deltas[0]]
        values = [floors, *(cells[ours][delta] for delta in deltas), cells["best"][deltas[0]]]
        row += [f"{value.mean() + 0.0:.2f}".replace("-0.00", "0.00") for value in values]
        margin = 0.02 if kind == "regression" else 0.005
        below = [(cells[ours][delta] < floors - margin).mean() for delta in deltas]
        rows.append(row + [f"{100 * share:.0f} %" for share in below])
    n_sets = len(wide.index.unique("set"))
    title = {"binary": "two classes", "multiclass": "more classes", "regression": "regression"}
    text = [f".. csv-table:: {n_sets} sets, {title[kind]}: mean {NAMES[score]}"]
    return "\n".join([*text, "   :header-rows: 1", "", *map(csv_line, [header, *rows])])


def write_guide(path, tables, frame, ours):
    """Put the tables between the comments that ask for them."""
    text = path.read_text(encoding="utf-8")
    for kind in KINDS:
        start, end = f".. begin guide {kind}\n", f".. end guide {kind}\n"
        if start in text:
            before, after = text.split(start)[0], text.split(end)[1]
            text = before + start + f"\n{guide(tables, frame, ours, kind)}\n\n" + end + after
    path.write_text(text, encoding="utf-8")


def print_sets(tables, ours):
    """Ours by set and size, with standard errors."""
    for score, table in tables.items():
        if ours not in table.columns.get_level_values("method"):
            continue
        own = table[ours]
        means, errors = own.mean(axis=1), own.std(axis=1, ddof=1) / np.sqrt(own.count(axis=1))
        print(f"\n{ours}: {score} (standard error in units of the last digit)")
        epsilons = sorted(own.index.unique("epsilon"))
        print(f"  {'epsilon':30s}" + "".join(f"{epsilon:<12g}" for epsilon in epsilons))
        for (_, name, n, delta), part in means.groupby(level=["kind", "set", "n", "delta"]):
            parts = part.droplevel(["kind", "set", "n", "delta"])
            cells = [
                f"{parts[e]:.3f}({1e3 * errors[(_, name, n, e, delta)]:.0f})" for e in parts.index
            ]
            print(f"  {name:14s} {n:>5s} {delta:<8g}" + "".join(f"{cell:12s}" for cell in cells))


def print_errors(frame):
    """Fits that raised."""
    failed = frame[frame["error"].notna()]
    print(f"\nFits that raised: {len(failed)}")
    for (method, text), part in failed.groupby(["method", "error"]):
        sets = ", ".join(sorted(set(part["set"] + " " + part["n"])))
        print(f"  {method}: {len(part)} times on {sets}: {text}")


def main():
    """Print what is asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("files", nargs="+", metavar="FILE.csv")
    parser.add_argument("--ours", default="ours", help="the method to compare with others")
    parser.add_argument("--sizes", nargs="+", help="only these")
    parser.add_argument("--most", type=int, default=30, help="cells a list shows")
    parser.add_argument("--guide", nargs="*", type=Path, metavar="FILE.rst")
    parser.add_argument("--sets", action="store_true")
    arguments = parser.parse_args()
    frame = loaded(arguments.files)
    if arguments.sizes:
        frame = frame[frame["n"].isin(arguments.sizes)]
    tables = {score: by_score(frame, score) for score in HIGHER}
    if arguments.guide is not None:
        for path in arguments.guide:
            write_guide(path, tables, frame, arguments.ours)
        for kind in KINDS if not arguments.guide else ():
            print(f"\n{guide(tables, frame, arguments.ours, kind)}")
        return
    if arguments.sets:
        print_sets(tables, arguments.ours)
        return
    deltas = sorted(frame.loc[np.isfinite(frame["epsilon"]), "delta"].unique())
    for kind in KINDS:
        for delta in deltas:
            print_means(tables, kind, delta, arguments.ours)
    print_summary(tables, arguments.ours)
    print_ahead(tables, arguments.ours, arguments.most)
    print_floor(tables, frame, arguments.ours)
    print_monotone(tables, arguments.ours)
    print_errors(frame)


if __name__ == "__main__":
    main()
