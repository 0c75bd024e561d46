"""Scores with intervals, computed from released and public numbers only."""

import math
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Self

import numpy as np
from scipy.special import expit, logit, ndtri
from sklearn.calibration import CalibrationDisplay

from skdp._grid import TINY
from skdp._validation import one_of, short_repr, store
from skdp._views import card, note, table
from skdp.privacy import Guarantee
from skdp.privacy._guarantees import parts

N_BINS = 16
_LIMIT = 5.0  # in the logit, beyond which a bin goes to the end
_EDGES = np.linspace(-_LIMIT, _LIMIT, N_BINS - 1)  # one of them is 0, a probability of 1/2


def bin_positions(probabilities: np.ndarray) -> np.ndarray:
    """Position of each probability among the bins: the number of the bin and how far it is in it.

    Within a bin it is linear in the logit, and in the first and the last one in the probability.
    Ranks of probabilities are ranks of positions.
    """
    probabilities = np.where(np.isfinite(probabilities), np.clip(probabilities, 0.0, 1.0), 0.5)
    inner = np.clip(logit(probabilities), -_LIMIT, _LIMIT)
    position = 1.0 + (inner + _LIMIT) * ((N_BINS - 2) / (2.0 * _LIMIT))
    end = expit(-_LIMIT)
    position = np.where(probabilities < end, probabilities / end, position)
    position = np.where(1.0 - probabilities < end, N_BINS - (1.0 - probabilities) / end, position)
    return np.clip(position, 0.0, N_BINS - 2.0**-30)


@dataclass(frozen=True, eq=False)
class Ranking:
    """What released counts say of the scores of two classes.

    Parameters
    ----------
    shares : ndarray of shape (2, N_BINS)
        Of the rows of each class in each bin: positive, with sum 1.

    sizes : tuple of float
        Rows of each class, from the counts; positive.

    size_error : float
        Standard error of a size, where that of a count is 1.
    """

    shares: np.ndarray
    sizes: tuple[float, float]
    size_error: float

    @classmethod
    def of(cls, counts: np.ndarray, n_rows: float | None) -> Self:
        """Estimate from noisy counts, none of which is cut at 0 before they are summed.

        Parameters
        ----------
        counts : ndarray of shape (2, N_BINS)

        n_rows : float or None
            Of both classes together, if it is public.
        """
        sizes, error = counts.sum(axis=1), float(np.sqrt(N_BINS))
        if n_rows is not None:  # the mean of two estimates of each
            sizes, error = sizes + (n_rows - sizes.sum()) / 2.0, float(np.sqrt(N_BINS / 2.0))
        sizes = np.maximum(sizes, 1.0)
        shares = np.array([on_simplex(own / max(own.sum(), 1.0)) for own in counts])
        return cls(shares, (float(sizes[0]), float(sizes[1])), error)

    @property
    def area(self) -> float:
        """Under the ROC curve."""
        return float(self.shares[1] @ self._below(0, np.arange(N_BINS) + 0.5))

    def _below(self, label: int, position: np.ndarray) -> np.ndarray:
        """Share of a class at lower positions."""
        cumulated = np.concatenate([[0.0], np.cumsum(self.shares[label])])
        return np.clip(np.interp(position, np.arange(N_BINS + 1), cumulated), 0.0, 1.0)

    def influence(self, position: np.ndarray, codes: np.ndarray) -> np.ndarray:
        """How each row moves the area, in units of the smaller class: within 1 of each other."""
        smaller = min(self.sizes)
        up = (self._below(0, position) - self.area) * (smaller / self.sizes[1])
        down = (1.0 - self._below(1, position) - self.area) * (smaller / self.sizes[0])
        return np.where(codes == 1, up, down)

    @property
    def bounds(self) -> tuple[float, float]:
        """Of the influence."""
        return -self.area, 1.0 - self.area

    def sampling_variance(self, area: float, sizes: Any) -> float:
        """Of the area in samples of such sizes, where it is ``area``: DeLong's, from shares."""
        middles = np.arange(N_BINS) + 0.5
        below, above = self._below(0, middles), 1.0 - self._below(1, middles)
        positive = self.shares[1] @ below**2 - self.area**2
        negative = self.shares[0] @ above**2 - self.area**2
        return max(positive, 0.0) / sizes[1] + max(negative, 0.0) / sizes[0]

    def remainder_variance(self, level: float) -> float:
        """Of the product of the errors of both histograms, with noise of a level in each count."""
        each = level * level / (self.sizes[0] * self.sizes[1])
        return each * each * _order_norm()


@cache
def _order_norm() -> float:
    order = np.sign(np.subtract.outer(np.arange(N_BINS), np.arange(N_BINS))) / 2.0
    order -= order.mean(axis=0)
    order -= order.mean(axis=1, keepdims=True)
    return float((order * order).sum())


def on_simplex(shares: np.ndarray) -> np.ndarray:
    """Nearest shares that are positive and have the sum 1."""
    ordered = np.sort(shares)[::-1]
    excess = (np.cumsum(ordered) - 1.0) / np.arange(1, len(shares) + 1)
    level = excess[np.flatnonzero(ordered > excess)[-1]]
    return np.maximum(shares - level, 0.0)


_SEEN = 3.0  # standard errors by which a count is above 0, where it is drawn


@dataclass(eq=False, repr=False)
class EvaluationDisplay:
    """Plots of an evaluation: ROC curve, calibration, confusion matrix or residuals.

        Returned by `Evaluation.plot`.

        Privacy: plots use released counts and public numbers only; they cost no budget. Bands and
        bars show two standard errors: from the noise alone for ROC curves, from noise and sampling
        together otherwise.

        Parameters
        ----------
        evaluation : Evaluation

        kinds : tuple of {"roc", "calibration", "confusion", "residuals"}

        Attributes
        ----------
        figure_ : matplotlib Figure

                One a kind.
    axes_ : ndarray of matplotlib Axes
            One per kind.
            One a kind.
    """

    evaluation: Any
    kinds: tuple[str, ...]

    @classmethod
    def of(cls, evaluation, kind="auto"):
        """Make a display of one kind, or of all kinds with released counts."""
        one_of(("auto", *_KINDS), kind=kind)
        there = tuple(
            name for name, (tables, _) in _KINDS.items() if set(tables) & set(evaluation.counts)
        )
        if not there:
            raise ValueError(
                "scoring of a plotted evaluation must release counts, as 'auto', 'roc_auc' and "
                f"'balanced_accuracy' do; got {short_repr(list(evaluation.values))}."
            )
        if kind != "auto" and kind not in there:
            raise ValueError(
                f"kind must be one with released counts, {short_repr(there)}; got "
                f"{short_repr(kind)}."
            )
        return cls(evaluation, there if kind == "auto" else (kind,))

    def plot(self, ax=None):
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes or array of them, default=None
            One per kind. None makes a figure.

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
            raise ValueError(f"ax must hold {n} axes, one per kind; got {len(axes)}.")
        for kind, one in zip(self.kinds, axes, strict=True):
            _KINDS[kind][1](self.evaluation, one)
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
    low, high = np.clip([above[1] - 2 * noise, above[1] + 2 * noise], 0, 1)
    (line,) = ax.plot(above[0], above[1], marker=".", color="C0")
    ax.fill_between(above[0], low, high, alpha=0.25, color=line.get_color(), linewidth=0)


def _calibration_points(evaluation):
    """Of each bin that is seen: its probability, the share of the second class, and its error."""
    counts, level = evaluation.counts["scores"], evaluation.level["scores"]
    both = counts.sum(axis=0)
    seen = both > _SEEN * math.sqrt(2.0) * level
    share = counts[1, seen] / both[seen]
    inside = np.clip(share, 0.0, 1.0)
    noise = level**2 * (inside**2 + (1.0 - inside) ** 2) / both[seen] ** 2
    error = np.sqrt(inside * (1.0 - inside) / both[seen] + noise)
    end = expit(-_LIMIT) / 2.0
    middles = np.concatenate([[end], expit((_EDGES[1:] + _EDGES[:-1]) / 2.0), [1.0 - end]])
    return middles[seen], inside, error


def _calibration(evaluation, ax):
    """Share of the second class among the rows of each bin that is seen."""
    middles, inside, error = _calibration_points(evaluation)
    ax.errorbar(middles, inside, yerr=2.0 * error, marker="o", capsize=2)
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
    for set_ticks in (ax.set_xticks, ax.set_yticks):
        set_ticks(np.arange(len(counts)), map(str, evaluation.classes))
    title = f"{units_of(evaluation.guarantee_).title()}, each ± {_short(level)} of noise"
    ax.set(xlabel="predicted", ylabel="true", title=title)


def _residuals(evaluation, ax):
    """How many rows, or users, have such predictions and residuals, above the noise."""
    counts, level = evaluation.counts["residuals"], evaluation.level["residuals"]
    low, high, down, up = evaluation.ranges
    across = np.linspace(low, high, counts.shape[0] + 1)
    along = np.linspace(down, up, counts.shape[1] + 1)
    seen = np.ma.masked_less(counts, level)
    mesh = ax.pcolormesh(across, along, seen.T, cmap="Blues", vmin=0.0)
    ax.figure.colorbar(
        mesh, ax=ax, label=f"{units_of(evaluation.guarantee_)}, each ± {_short(level)} of noise"
    )
    ax.axhline(0.0, linestyle=":", color="gray")
    ax.set(xlabel="prediction", ylabel="target less prediction", title="Residuals")


def units_of(guarantee):
    """What there is a number of, in words: rows, or users if the guarantee is for them."""
    return "users" if guarantee.unit == "user" else "rows"


def _short(level):
    return f"{float(f'{level:.2g}'):,g}"


# Kinds of pictures: the tables that each can be drawn from, and what draws it.
_KINDS = {
    "roc": (("scores",), _roc),
    "calibration": (("scores",), _calibration),
    "confusion": (("confusion", "scores"), _confusion),
    "residuals": (("residuals",), _residuals),
}


@dataclass(frozen=True)
class ScoreValue:
    """Score on private rows with its uncertainty from noise and sampling.

    Parameters
    ----------
    value : float
        Score in scikit-learn's sign and units. NaN if the noise is too large.

    standard_error : float
        Standard error by noise and sampling together.

    low, high : float
        Confidence interval of the score on the population of the rows.

    says_nothing : bool, default=False
        Whether the noise is too large to estimate the score.

    n_needed : float, default=nan
        Approximate number of such rows, or users, needed if the noise is too large.
    """

    value: float
    standard_error: float
    low: float
    high: float
    says_nothing: bool = False
    n_needed: float = math.nan

    def __post_init__(self) -> None:
        for name in ("value", "standard_error", "low", "high", "n_needed"):
            store(self, **{name: float(getattr(self, name))})

    def __str__(self) -> str:
        if self.says_nothing:
            needs = f"; needs n of {self.n_needed:,.0f} or more" if self.n_needed > 0.0 else ""
            return f"cannot tell: the noise is as large as the score{needs}"
        return f"{self.value:.4g} [{self.low:.4g}, {self.high:.4g}]"


LAPLACE_KURTOSIS = 3.0  # beyond that of a normal number
CONFIDENCE = 0.95
FEWEST = 3.0  # standard errors by which a count is above 0, if one can divide by it


@dataclass(frozen=True)
class Spread:
    """Error of a number: normal, and of Laplace noise.

    Parameters
    ----------
    normal, laplace : float
        Variances.

    kurtosis : float, default=3.0
        Excess kurtosis of the second part: 3 of one number's noise, less of a sum.
    """

    normal: float
    laplace: float = 0.0
    kurtosis: float = LAPLACE_KURTOSIS

    @property
    def variance(self) -> float:
        """Of both."""
        return self.normal + self.laplace

    def quantile(self, confidence: float) -> float:
        """Half of the width of an interval, in standard errors: Cornish and Fisher's."""
        z = float(ndtri(0.5 + confidence / 2.0))
        tail = self.kurtosis * (self.laplace / max(self.variance, TINY)) ** 2
        return z + tail * (z**3 - 3.0 * z) / 24.0


def scored(
    value: float, spread: Spread, confidence: float, bounds: tuple[float, float]
) -> ScoreValue:
    """Value with its interval, cut to what the score can be."""
    error = math.sqrt(spread.variance)
    reach = spread.quantile(confidence) * error
    low, high = max(value - reach, bounds[0]), min(value + reach, bounds[1])
    if not math.isfinite(value + reach) or (low <= bounds[0] and high >= bounds[1]):
        return nothing(bounds)
    value = min(max(value, bounds[0]), bounds[1])
    return ScoreValue(value, error, min(low, value), max(high, value))


def nothing(bounds: tuple[float, float], n_needed: float = math.nan) -> ScoreValue:
    """What is said where the noise says nothing."""
    return ScoreValue(math.nan, math.inf, *bounds, says_nothing=True, n_needed=n_needed)


@dataclass(frozen=True, eq=False)
class Evaluation:
    """Scores of a model on private rows, with intervals; see `dp_evaluate`.

    Privacy: contains released and public numbers only, so it may be stored, pickled and published
    under ``guarantee_``, which protects the scored rows or their users.

    Attributes
    ----------
    values : dict of str to ScoreValue
        Released under ``guarantee_``.

    guarantee_ : Guarantee
        Guarantee for the rows in X and y, or for their users. Public.

    confidence : float
        Confidence level of the intervals. Public.

    counts : dict of str to ndarray
        Counts used in plots. Released under ``guarantee_``.

    level : dict of str to float
        Standard error of the noise in each count. Public.

    classes : tuple
        Public.

    ranges : tuple of float
        Lower and upper ends of predictions and residuals in the plot of a regressor. Released
        under ``guarantee_``.
    """

    values: dict[str, ScoreValue]
    guarantee_: Guarantee
    confidence: float = CONFIDENCE
    counts: dict[str, np.ndarray] = field(default_factory=dict)
    level: dict[str, float] = field(default_factory=dict)
    classes: tuple = ()
    ranges: tuple[float, ...] = ()

    _report_kind = "evaluation"

    def __str__(self) -> str:
        width = max(map(len, self.values), default=0)
        lines = [f"{name:<{width}}  {value}" for name, value in self.values.items()]
        share = f"{100 * self.confidence:g} % intervals of noise and sampling."
        return "\n".join([*lines, share, str(self.guarantee_)])

    def _repr_html_(self) -> str:
        rows = [
            (name, "", str(one))
            if one.says_nothing
            else (name, f"{one.value:.4g}", f"{one.low:.4g} to {one.high:.4g}")
            for name, one in self.values.items()
        ]
        share = f"{100 * self.confidence:g} % interval"
        scores = table(("score", "value", share), rows, numbers=(1,))
        of_what = "Intervals are of noise and sampling together."
        title = f"Scores on private rows: {self.guarantee_._claim()}"
        return card(title, scores, note(of_what), *parts(self.guarantee_))

    def plot(self, kind: str = "auto", ax: Any = None) -> EvaluationDisplay:
        """Plot the released counts.

        Parameters
        ----------
        kind : {"auto", "roc", "calibration", "confusion", "residuals"}, default="auto"
            "auto" draws all kinds with released counts: the first three for two classes if
            "roc_auc" was requested; the third for more classes; the last for a regressor.

        ax : matplotlib Axes or array of them, default=None
            One per kind. None makes a figure.

        Returns
        -------
        EvaluationDisplay
            With ``figure_`` and ``axes_``.
        """
        return EvaluationDisplay.of(self, kind).plot(ax)

    def calibration_display(self) -> CalibrationDisplay:
        """Return a scikit-learn calibration display of released counts; costs no budget.

        Returns
        -------
        CalibrationDisplay
            Its ``plot`` draws the fraction of the second class in each probability bin. `plot`
            with kind "calibration" also shows the noise.

        Raises
        ------
        ValueError
            If no score counts were released; "roc_auc" for two classes releases them.
        """
        EvaluationDisplay.of(self, "calibration")
        chances, shares, _ = _calibration_points(self)
        return CalibrationDisplay(
            shares, chances, chances, estimator_name="released counts", pos_label=self.classes[1]
        )
