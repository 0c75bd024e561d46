"""Tables and figures of what `compare.py` has found, for doc/peers.rst and doc/peers_tables.rst.

A peer is ahead in a cell (a set, an epsilon, a delta and a score) where its mean is above that of
our default under replace-one by more than two standard errors of the mean difference, draw by
draw. A pure guarantee counts at delta 1e-5, too. Of a tuned peer each score takes the setting that
is best for it on the test rows, the untuned one among them.
"""

import json
from pathlib import Path

import numpy as np
import pandas as pd

__all__ = ["RESULTS", "ahead", "ahead_text", "loaded", "summary", "tables", "write"]

RESULTS = Path(__file__).resolve().parent / "results" / "peers.csv"
DOC = Path(__file__).resolve().parents[2] / "doc"
BEGIN, END = ".. begin peers\n", ".. end peers\n"

TITLES = {
    "adult": "Adult",
    "adult additive": "Adult, additive models",
    "covertype2": "Covertype, class 2 or not",
    "kddcup": "KDD Cup 99, denial of service or normal",
    "diabetes130": "Diabetes-130",
    "late": "Flights of 2013, late or not",
    "spambase": "Spambase",
    "bike": "Bike sharing",
    "california": "California housing",
    "house16h": "House16H",
}
NAMES = {"accuracy": "accuracy", "auc": "AUC", "r2": ":math:`R^2`"}
REPLACE, ADD = "replace-one", "add-remove"
ADJACENCY = {
    "ours": REPLACE,
    "ours, add-remove": ADD,
    "ours, splines": REPLACE,
    "ours, splines, add-remove": ADD,
    "ours, kernel": REPLACE,
    "ours, kernel, add-remove": ADD,
    "ours, linear kernel": REPLACE,
    "ours, one column": REPLACE,
    "diffprivlib": REPLACE,
    "OpenDP, one column": ADD,
    "AdaSSP": REPLACE,
    "boosted AdaSSP": REPLACE,
    "DP-SGD": ADD,
    "DP-SGD, tuned": ADD,
    "DP-EBM": ADD,
    "DP-EBM, tuned": ADD,
}
OURS = ("ours", "ours, splines", "ours, kernel")
PURE_PEERS = ("diffprivlib", "OpenDP, one column")
TUNED = {"DP-SGD, tuned": "DP-SGD", "DP-EBM, tuned": "DP-EBM"}
OPEN = ("no privacy", "no privacy, splines", "constant")
DELTAS = (0.0, 1e-5)
SHOWN = 0.1, 1.0  # epsilons of the overview


def loaded(path: Path) -> pd.DataFrame:
    """Lines of the file, those of failed fits left out; tuned methods have the untuned setting."""
    frame = pd.read_csv(path, dtype={"setting": object, "error": object})
    frame = frame[frame["error"].isna()].fillna({"setting": ""})
    keys = ["set", "method", "setting", "epsilon", "delta", "draw"]
    frame = frame.drop_duplicates(keys, keep="last")
    parts = [frame]
    for tuned, untuned in TUNED.items():
        there = frame.loc[frame["method"] == tuned, "set"].unique()
        part = frame[(frame["method"] == untuned) & frame["set"].isin(there)]
        parts.append(part.assign(method=tuned))
    return pd.concat(parts, ignore_index=True)


def scores_of(frame):
    """Scores that a set has."""
    return [score for score in NAMES if frame[score].notna().any()]


def draws_of(frame, method, epsilon, delta, score):
    """Values of a score by draw, at the setting that is best; empty where it did not run."""
    if method in PURE_PEERS:
        delta = 0.0
    if method in OPEN:
        epsilon, delta = np.inf, 0.0
    here = frame["method"].eq(method) & frame["epsilon"].eq(epsilon) & frame["delta"].eq(delta)
    part = frame[here]
    if part["setting"].nunique() > 1:
        counts = part.groupby("setting")["draw"].size()
        full = part[part["setting"].isin(counts.index[counts == counts.max()])]
        part = full[full["setting"] == full.groupby("setting")[score].mean().idxmax()]
    return part.set_index("draw")[score].sort_index()


def gap(frame, method, other, epsilon, delta, score):
    """How far a method is ahead of another one, and the standard error; None without both."""
    left = draws_of(frame, method, epsilon, delta, score)
    right = draws_of(frame, other, epsilon, delta, score)
    gaps = (left - right).dropna()
    if len(gaps) < 2:
        return None
    return gaps.mean(), gaps.std(ddof=1) / np.sqrt(len(gaps))


def is_ahead(found):
    """Whether by more than two standard errors."""
    return found is not None and found[0] > 2.0 * found[1]


def ours_in(frame):
    """Our default on a set."""
    return next(name for name in OURS if name in set(frame["method"]))


def methods_in(frame):
    """Methods that ran on a set, in the order of the table."""
    return [name for name in ADJACENCY if name in set(frame["method"])]


def ahead(frame: pd.DataFrame) -> pd.DataFrame:
    """Cells where a peer is ahead.

    Returns
    -------
    cells : DataFrame
        With the columns "set", "score", "delta", "method", "epsilon", "gap", "error" and "also",
        whether it is ahead of ours under add-remove, too (False where it promises replace-one).
    """
    cells = []
    for name in [name for name in TITLES if name in set(frame["set"])]:
        part = frame[frame["set"] == name]
        ours = ours_in(part)
        peers = [method for method in methods_in(part) if not method.startswith("ours")]
        for score in scores_of(part):
            for delta in DELTAS:
                for method in peers:
                    for epsilon in epsilons_of(part):
                        place = epsilon, delta, score
                        found = gap(part, method, ours, *place)
                        if not is_ahead(found):
                            continue
                        also = ADJACENCY[method] == ADD and gap(
                            part, method, f"{ours}, add-remove", *place
                        )
                        cells.append(
                            dict(set=name, score=score, delta=delta, method=method)
                            | dict(epsilon=epsilon, gap=found[0], error=found[1])
                            | dict(also=bool(also) and is_ahead(also))
                        )
    columns = ["set", "score", "delta", "method", "epsilon", "gap", "error", "also"]
    return pd.DataFrame(cells, columns=columns)


def epsilons_of(part):
    """Finite ones."""
    return sorted(part.loc[np.isfinite(part["epsilon"]), "epsilon"].unique())


def ahead_text(cells: pd.DataFrame) -> str:
    """Return what `ahead` has found as a list."""
    lines = []
    for (name, score, delta, method), part in cells.groupby(
        ["set", "score", "delta", "method"], sort=False
    ):
        places = [
            f"{cell.epsilon:g} (+{cell.gap:.3f} ± {cell.error:.3f}{', *' if cell.also else ''})"
            for cell in part.itertuples()
        ]
        lines.append(
            f"- {TITLES[name]}, {NAMES[score]}, ``delta={_shown(delta)}``: {method} at "
            f":math:`\\varepsilon` = {', '.join(places)}"
        )
    return "\n".join(lines)


def _shown(delta):
    return f"{delta:g}".replace("e-0", "e-")


def _value(mean):
    if not np.isfinite(mean):
        return "–"
    return f"{mean:z.3f}" if mean > -0.9995 else f"{mean:.1f}"


def table_of(part, delta):
    """Rows of a set's table: method, adjacency, scores by epsilon, seconds."""
    scores, ours = scores_of(part), ours_in(part)
    for method in methods_in(part):
        cells = []
        for epsilon in epsilons_of(part):
            texts = []
            for score in scores:
                values = draws_of(part, method, epsilon, delta, score)
                shown = _value(values.mean()) if len(values) else "–"
                peer = not method.startswith("ours")
                if peer and is_ahead(gap(part, method, ours, epsilon, delta, score)):
                    shown = f"**{shown}**"
                texts.append(shown)
            cells.append(" / ".join(texts))
        if all(set(cell) <= set("– /") for cell in cells):
            continue
        here = part[(part["method"] == method) & (part["epsilon"] == 1.0)]
        if method not in PURE_PEERS:
            here = here[here["delta"] == delta]
        yield [method, ADJACENCY[method], *cells, f"{here['seconds'].median():.2g}"]


def section(frame, name):
    """Title, figure and tables of a set."""
    part = frame[frame["set"] == name]
    scores, title = scores_of(part), TITLES[name]
    names = " / ".join(NAMES[score] for score in scores)
    n_train, n_columns = part["n_train"].max(), part["n_features"].max()
    known = []
    for method in OPEN:
        values = [draws_of(part, method, np.inf, 0.0, score) for score in scores]
        if all(len(value) for value in values):
            shown = " / ".join(_value(value.mean()) for value in values)
            said = "the mean" if "r2" in scores else "the larger class"
            known.append(f"{said if method == 'constant' else 'without privacy'} {shown}")
    text = [f".. _{_label(name)}:", "", title, "-" * len(title), ""]
    text += [f"{n_train:,} rows to learn from, {n_columns} columns. {names}: {', '.join(known)}."]
    text += ["", f".. figure:: _static/peers/{name.replace(' ', '-')}.png", f"   :alt: {title}"]
    text += ["   :class: wide", "", "   Mean by epsilon, two standard errors as bars.", ""]
    header = ["method", "adjacency", *(f"{e:g}" for e in epsilons_of(part)), "seconds"]
    for delta in DELTAS:
        rows = list(table_of(part, delta))
        text += [f".. csv-table:: {title}, ``delta={_shown(delta)}``: {names} by epsilon"]
        text += ["   :header-rows: 1", "", *map(csv_line, [header, *rows]), ""]
    return "\n".join(text)


def csv_line(cells):
    """A row of a ``csv-table``."""
    return "   " + ", ".join(f'"{cell}"' if "," in str(cell) else str(cell) for cell in cells)


def _label(name):
    return f"peers-{name.replace(' ', '-')}"


def _best(part, epsilon, delta, score):
    """The best peer in a cell, its mean bold where it is ahead; a dash where none runs."""
    means = {}
    for method in methods_in(part):
        values = draws_of(part, method, epsilon, delta, score)
        if not method.startswith("ours") and len(values):
            means[method] = values.mean()
    if not means:
        return "–"
    best = max(means, key=means.get)
    shown = _value(means[best])
    if is_ahead(gap(part, best, ours_in(part), epsilon, delta, score)):
        shown = f"**{shown}**"
    return f"{shown}, {best}"


def overview(frame: pd.DataFrame, delta: float) -> str:
    """Return a table of one line a set: ours, the best peer, and what there is without privacy."""
    names = [name for name in TITLES if name in set(frame["set"])]
    rows = [["set"]]
    for epsilon in SHOWN:
        rows[0] += [f"ours at {epsilon:g}", "add-remove", "best peer"]
    rows[0] += ["without privacy"]
    for name in names:
        part = frame[frame["set"] == name]
        score, ours = scores_of(part)[0], ours_in(part)
        row = [f":ref:`{_label(name)}`"]
        for epsilon in SHOWN:
            for method in (ours, f"{ours}, add-remove"):
                values = draws_of(part, method, epsilon, delta, score)
                row.append(_value(values.mean()) if len(values) else "–")
            row.append(_best(part, epsilon, delta, score))
        values = (draws_of(part, method, np.inf, 0.0, score) for method in OPEN[:2])
        row.append(_value(max(value.mean() for value in values if len(value))))
        rows.append(row)
    title = f"``delta={_shown(delta)}``: accuracy, or {NAMES['r2']} for the last three sets"
    lines = [f".. csv-table:: {title}", "   :header-rows: 1"]
    lines += [f"   :widths: 20 {'9 10 18 ' * len(SHOWN)}11", "", *map(csv_line, rows)]
    return "\n".join(lines)


def tables(frame: pd.DataFrame) -> str:
    """Return the part of doc/peers_tables.rst that is computed."""
    return "\n\n".join(
        section(frame, name) for name in TITLES if name in set(frame["set"])
    ).strip()


def summary(frame: pd.DataFrame, path: Path) -> str:
    """The part of doc/peers.rst that is computed.

    Parameters
    ----------
    frame : DataFrame
        As `loaded` returns it.

    path : Path
        Of the file, which has the versions beside it.
    """
    about = json.loads(path.with_suffix(".json").read_text())
    versions = [
        f"{name} {value}"
        if isinstance(value, str)
        else " with ".join(f"{package} {number}" for package, number in value.items())
        for name, value in about["versions"].items()
    ]
    cells = ahead(frame)
    count = len(cells)
    n_also = int(cells["also"].sum())
    parts = [
        f"Measured on {about['date']}: {'; '.join(versions)}.",
        "The short answer\n----------------",
        "Our default and the best peer of each set at :math:`\\varepsilon` = "
        f"{SHOWN[0]:g} and {SHOWN[1]:g}. The best peer is chosen after the fact, the tuned ones "
        "among them. It is bold where it is ahead (see below).",
        *(overview(frame, delta) for delta in DELTAS),
        "Where a peer is ahead\n---------------------",
        f"A peer is ahead in {count} of {n_cells(frame)} cells that it shares with ours. They are "
        f"bold in the :doc:`tables <peers_tables>`. In {n_also} of them (marked with \\*) it is "
        "also ahead of ours under add-remove. In brackets: the mean difference and its standard "
        "error.",
        ahead_text(cells),
    ]
    return "\n\n".join(parts).replace(", *)", ", \\*)")


def n_cells(frame):
    """How many cells have a peer and ours."""
    total = 0
    for _, part in frame.groupby("set"):
        n_scores, n_epsilons = len(scores_of(part)), len(epsilons_of(part))
        for method in methods_in(part):
            if not method.startswith("ours"):
                deltas = DELTAS if method in PURE_PEERS else DELTAS[1:]
                total += n_scores * n_epsilons * len(deltas)
    return total


def write(frame: pd.DataFrame, path: Path) -> None:
    """Put tables and figures into the documentation."""
    for name, text in (("peers", summary(frame, path)), ("peers_tables", tables(frame))):
        page = DOC / f"{name}.rst"
        old = page.read_text(encoding="utf-8")
        before, after = old.split(BEGIN)[0], old.split(END)[1]
        page.write_text(f"{before}{BEGIN}\n{text}\n\n{END}{after}", encoding="utf-8")
    folder = DOC / "_static" / "peers"
    folder.mkdir(exist_ok=True)
    for name in TITLES:
        part = frame[frame["set"] == name]
        if len(part):
            draw(part, folder / f"{name.replace(' ', '-')}.png")


# What is below is left out of figures.
LEAST_R2 = -0.5
# Colour and marker.
STYLES = {
    "ours": ("C0", "o"),
    "ours, linear kernel": ("C9", "o"),
    "ours, one column": ("C7", "o"),
    "diffprivlib": ("C1", "s"),
    "OpenDP": ("C5", "P"),
    "AdaSSP": ("C2", "v"),
    "boosted AdaSSP": ("C8", "^"),
    "DP-SGD": ("C3", "D"),
    "DP-EBM": ("C4", "X"),
}


def draw(part: pd.DataFrame, path: Path) -> None:
    """Draw the figure of a set: a panel a score."""
    from matplotlib.figure import Figure

    scores = scores_of(part)
    figure = Figure(figsize=(8.0, 4.2), layout="constrained")
    axes = np.atleast_1d(figure.subplots(1, len(scores)))
    for axis, score in zip(axes, scores, strict=True):
        lowest = []
        for method in methods_in(part):
            for delta in DELTAS:
                if delta > 0.0 and method in PURE_PEERS:
                    continue
                lowest += _line(axis, part, method, delta, score)
        for method, style in zip(OPEN, ("-", "-", ":"), strict=True):
            values = draws_of(part, method, np.inf, 0.0, score)
            if len(values):
                label = "without privacy" if method != "constant" else "constant"
                axis.axhline(values.mean(), color="0.5", linestyle=style, lw=1.2, label=label)
                lowest.append(values.mean())
        if score == "r2":
            axis.set_ylim(max(LEAST_R2, min(lowest) - 0.05), 1.0)
        axis.set(xscale="log", xlabel="epsilon", ylabel=NAMES[score].replace(":math:`R^2`", "R²"))
        ticks = epsilons_of(part)
        axis.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
        axis.minorticks_off()
        axis.grid(alpha=0.25)
        axis.spines[["top", "right"]].set_visible(False)
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3, frameon=False, fontsize=8)
    figure.suptitle(TITLES[part["set"].iloc[0]], fontsize=11)
    figure.savefig(path, dpi=110)


def _line(axis, part, method, delta, score):
    """One line with bars, and the mean at each epsilon."""
    epsilons, means, bars = [], [], []
    for epsilon in epsilons_of(part):
        values = draws_of(part, method, epsilon, delta, score)
        if len(values):
            epsilons.append(epsilon)
            means.append(values.mean())
            outside = score == "r2" and means[-1] < LEAST_R2
            bar = 2.0 * values.std(ddof=1) / np.sqrt(len(values))
            bars.append(0.0 if outside else bar)
    if not means or (delta == 0.0 and method.startswith("ours, ") and method not in OURS):
        return []  # ours with a delta only, but for the defaults
    family = method if method in STYLES else method.split(",")[0]
    color, marker = STYLES[family]
    variant = method.split(", ")[-1]
    below = ", below" if score == "r2" and max(means) < LEAST_R2 else ""
    pale = variant in ("add-remove", "tuned")
    axis.errorbar(
        epsilons,
        means,
        bars,
        color=color,
        marker=marker,
        markersize=5,
        markerfacecolor="white" if pale else color,
        linestyle="--" if delta == 0.0 else "-",
        lw=2.2 if method in OURS else 1.2,
        zorder=3 if method in OURS else 2,
        label=f"{method} (delta {_shown(delta)}{below})",
    )
    return means
