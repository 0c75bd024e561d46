"""What an evaluation says: values with intervals, made of released and public numbers only."""

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.special import ndtri

from skdp._grid import TINY
from skdp._validation import store
from skdp._views import card, note, table
from skdp.metrics._display import EvaluationDisplay
from skdp.privacy import Guarantee
from skdp.privacy._guarantee_view import parts

__all__ = ["Evaluation", "ScoreValue"]


@dataclass(frozen=True)
class ScoreValue:
    """A score on private rows, with what noise and sampling leave open.

    Parameters
    ----------
    value : float
        Score in scikit-learn's sign and units. NaN where the noise is too large to tell it.

    standard_error : float
        Standard error by noise and sampling together.

    low, high : float
        Interval that covers the score on the population of the rows.

    says_nothing : bool, default=False
        Whether the noise is too large to tell the score.

    n_needed : float, default=nan
        About how many such rows would tell it, where the noise is too large.
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

    Privacy: made of released and public numbers only, so that it may be stored, pickled and
    published under ``guarantee_``, which is for the rows that were scored.

    Attributes
    ----------
    values : dict of str to ScoreValue
        Released under ``guarantee_``.

    guarantee_ : Guarantee
        What the evaluation promises to the rows in X and y. Public.

    confidence : float
        Confidence of the intervals. Public.

    counts : dict of str to ndarray
        Released counts behind the pictures. Released under ``guarantee_``.

    level : dict of str to float
        Standard error of the noise in each of the counts. Public.

    classes : tuple
        Public.

    ranges : tuple of float
        Lower and upper end of predictions and of residuals in the picture of a regressor.
        Released under ``guarantee_``.
    """

    values: dict[str, ScoreValue]
    guarantee_: Guarantee
    confidence: float = CONFIDENCE
    counts: dict[str, np.ndarray] = field(default_factory=dict)
    level: dict[str, float] = field(default_factory=dict)
    classes: tuple = ()
    ranges: tuple[float, ...] = ()

    def __str__(self) -> str:
        width = max(map(len, self.values), default=0)
        lines = [f"{name:<{width}}  {value}" for name, value in self.values.items()]
        share = f"{100 * self.confidence:g} % intervals of noise and sampling."
        return "\n".join([*lines, share, str(self.guarantee_)])

    def _repr_html_(self) -> str:
        rows = [
            (name, f"{one.value:.4g}", f"{one.low:.4g} to {one.high:.4g}")
            if not one.says_nothing
            else (name, "", str(one))
            for name, one in self.values.items()
        ]
        share = f"{100 * self.confidence:g} % interval"
        scores = table(("score", "value", share), rows, numbers=(1,))
        of_what = "Intervals are of noise and sampling together."
        title = f"Scores on private rows: {self.guarantee_._claim()}"
        return card(title, scores, note(of_what), *parts(self.guarantee_))

    def plot(self, kind: str = "auto", ax: Any = None) -> EvaluationDisplay:
        """Draw what the released counts show.

        Parameters
        ----------
        kind : {"auto", "roc", "calibration", "confusion", "residuals"}, default="auto"
            "auto" draws all kinds for which there are counts: for two classes, where "roc_auc" was
            asked for, the first three; for more classes the third; for a regressor the last.

        ax : matplotlib Axes or array of them, default=None
            One for each kind. None makes a figure.

        Returns
        -------
        EvaluationDisplay
            With ``figure_`` and ``axes_``.
        """
        return EvaluationDisplay.of(self, kind).plot(ax)
