"""Pictures of an evaluation, drawn from released counts; matplotlib is imported when needed."""

import math

import numpy as np

from skdp._validation import one_of, shown
from skdp.metrics._ranking import N_BINS, Ranking, bin_probabilities

__all__ = ["EvaluationDisplay"]

_TABLES = {
    "roc": ("scores",),
    "calibration": ("scores",),
    "confusion": ("confusion", "scores"),
    "residuals": ("residuals",),
}
_SEEN = 3.0  # standard errors by which a count is above 0, where it is drawn


class EvaluationDisplay:
    """ROC curve, calibration, confusion matrix or residuals of an evaluation.

    Made by `Evaluation.plot`.

    Privacy: drawn from released counts and public numbers, so that a picture costs nothing. Bands
    and bars show two standard errors: those of ROC curves by the noise alone, the others by noise
    and sampling together.

    Parameters
    ----------
    evaluation : Evaluation

    kinds : tuple of {"roc", "calibration", "confusion", "residuals"}

    Attributes
    ----------
    figure_ : matplotlib Figure

    axes_ : ndarray of matplotlib Axes
        One a kind.
    """

    def __init__(self, evaluation, kinds):
        self.evaluation = evaluation
        self.kinds = kinds

    @classmethod
    def of(cls, evaluation, kind="auto"):
        """Display of one kind, or of all there are counts for."""
        one_of(("auto", *_TABLES), kind=kind)
        there = tuple(
            name for name, tables in _TABLES.items() if set(tables) & set(evaluation.counts)
        )
        if not there:
            raise ValueError(
                "scoring of an evaluation that is drawn must release counts, as 'auto', 'roc_auc' "
                f"and 'balanced_accuracy' do; got {shown(list(evaluation.values))}."
            )
        if kind != "auto" and kind not in there:
            raise ValueError(
                f"kind must be one of those whose counts were released, {shown(there)}; got "
                f"{shown(kind)}."
            )
        return cls(evaluation, there if kind == "auto" else (kind,))

    def plot(self, ax=None):
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes or array of them, default=None
            One a kind. None makes a figure.

        Returns
        -------
        self : EvaluationDisplay
        """
        import matplotlib.pyplot as plt

        n = len(self.kinds)
        if ax is None:
            _, ax = plt.subplots(1, n, figsize=(3.8 * n, 3.6), layout="constrained")
        axes = np.asarray(ax, dtype=object).ravel()
        if len(axes) != n:
            raise ValueError(f"ax must hold {n} axes, one a kind; got {len(axes)}.")
        for kind, one in zip(self.kinds, axes, strict=True):
            _DRAWN[kind](self.evaluation, one)
        self.axes_, self.figure_ = axes, axes[0].figure
        return self


def _ranking(evaluation):
    return Ranking.of(evaluation.counts["scores"], None)


def _roc(evaluation, ax):
    """Shares of both classes above each edge, with the noise in that of the second."""
    area = evaluation.values.get("roc_auc")
    ax.plot([0, 1], [0, 1], linestyle=":", color="gray")
    ax.set(
        xlabel="false positive rate",
        ylabel=f"true positive rate ({evaluation.classes[1]})",
        title="ROC curve" if area is None else f"AUC {area}",
    )
    if area is not None and area.says_nothing:
        ax.set_title("AUC: cannot tell")
        return
    ranking, level = _ranking(evaluation), evaluation.level["scores"]
    above = np.cumsum(ranking.shares[:, ::-1], axis=1)
    above = np.concatenate([np.zeros((2, 1)), above], axis=1)
    cells = np.arange(N_BINS + 1)
    noise = np.sqrt(cells * (N_BINS - cells) / N_BINS) * level / ranking.sizes[1]
    (line,) = ax.plot(above[0], above[1], marker=".", color="C0")
    ax.fill_between(
        above[0],
        np.clip(above[1] - 2 * noise, 0, 1),
        np.clip(above[1] + 2 * noise, 0, 1),
        alpha=0.25,
        color=line.get_color(),
        linewidth=0,
    )


def _calibration(evaluation, ax):
    """Share of the second class among the rows of each bin that is seen."""
    counts, level = evaluation.counts["scores"], evaluation.level["scores"]
    both = counts.sum(axis=0)
    seen = both > _SEEN * math.sqrt(2.0) * level
    share = counts[1, seen] / both[seen]
    inside = np.clip(share, 0.0, 1.0)
    noise = level**2 * (inside**2 + (1.0 - inside) ** 2) / both[seen] ** 2
    error = np.sqrt(inside * (1.0 - inside) / both[seen] + noise)
    ax.errorbar(bin_probabilities()[seen], inside, yerr=2.0 * error, marker="o", capsize=2)
    ax.plot([0, 1], [0, 1], linestyle=":", color="gray")
    ax.set(
        xlabel=f"predicted probability of {evaluation.classes[1]}",
        ylabel=f"share of {evaluation.classes[1]}",
        title="Calibration",
        xlim=(-0.02, 1.02),
        ylim=(-0.02, 1.02),
    )


def _confusion(evaluation, ax):
    """Counts of each label and prediction, with the standard error of the noise."""
    if "confusion" in evaluation.counts:
        counts, level = evaluation.counts["confusion"], evaluation.level["confusion"]
    else:  # predictions are those by a probability of 1/2
        scores = evaluation.counts["scores"]
        counts = scores.reshape(2, 2, N_BINS // 2).sum(axis=2)
        level = evaluation.level["scores"] * math.sqrt(N_BINS // 2)
    shares = np.clip(counts, 0.0, None) / np.maximum(counts.sum(axis=1, keepdims=True), 1.0)
    ax.imshow(np.clip(shares, 0.0, 1.0), vmin=0.0, vmax=1.0, cmap="Blues")
    if len(counts) <= 12:
        for (row, column), count in np.ndenumerate(counts):
            color = "white" if shares[row, column] > 0.5 else "black"
            label = str(round(count))  # not -0
            ax.text(column, row, label, ha="center", va="center", color=color, fontsize=8)
    ticks = np.arange(len(counts))
    ax.set_xticks(ticks, [str(label) for label in evaluation.classes])
    ax.set_yticks(ticks, [str(label) for label in evaluation.classes])
    ax.set(xlabel="predicted", ylabel="true", title=f"Rows, each ± {_short(level)} of noise")


def _residuals(evaluation, ax):
    """How many rows have such predictions and residuals, above the noise."""
    counts, level = evaluation.counts["residuals"], evaluation.level["residuals"]
    low, high, down, up = evaluation.ranges
    across = np.linspace(low, high, counts.shape[0] + 1)
    along = np.linspace(down, up, counts.shape[1] + 1)
    seen = np.ma.masked_less(counts, level)
    mesh = ax.pcolormesh(across, along, seen.T, cmap="Blues", vmin=0.0)
    ax.figure.colorbar(mesh, ax=ax, label=f"rows, each ± {_short(level)} of noise")
    ax.axhline(0.0, linestyle=":", color="gray")
    ax.set(xlabel="prediction", ylabel="target less prediction", title="Residuals")


def _short(level):
    return f"{float(f'{level:.2g}'):,g}"


_DRAWN = {
    "roc": _roc,
    "calibration": _calibration,
    "confusion": _confusion,
    "residuals": _residuals,
}
