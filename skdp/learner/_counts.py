"""How many rows there are, and of how many classes: stages that count, where rules need it.

To check the claims: `RowCount` and `ClassCounts`.
"""

import math
from collections.abc import Sequence as Several
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np

from skdp._defaults import linear as defaults
from skdp._grid import TINY
from skdp._random._source import NoiseSource
from skdp._validation import plain_arguments, shown
from skdp.learner._losses._multiclass import SoftmaxLoss
from skdp.learner._sequence import Planner, Run, divided
from skdp.mechanisms import NoiseLaw, release
from skdp.mechanisms._limits import check_span
from skdp.privacy import ApproxDP, GaussianDP, n_records_changed
from skdp.rows._certificates import ROUNDING_SHARE
from skdp.rows._hits import class_counts

__all__ = [
    "ClassCounts",
    "RowCount",
    "after_count",
    "counted",
    "drawn_together",
    "largest_score",
    "starting_scores",
]

# A share that is noise alone, and of which sums are precise.
_LIMIT_SHARE = 1e6


@dataclass(frozen=True)
class RowCount:
    """Number of rows, or of users where the rows are theirs, where it is private.

    Privacy: a record, or a user, more or less is one more or less.

    Parameters
    ----------
    guarantee : GaussianDP or pure ApproxDP
    """

    guarantee: GaussianDP | ApproxDP

    phrase: ClassVar[str] = "planned after a noisy count"

    @classmethod
    def planned(cls, budget: Any, n_samples: float) -> tuple["RowCount", Any]:
        """Stage for its share of a budget, and the rest; ``n_samples`` decides nothing."""
        part, rest = divided(budget, float(defaults.ROWS_SHARE))
        return cls(part), rest

    def check_n_rows(self, n_samples: int) -> None:
        """Any number of rows is counted without error."""

    def learn(self, run: Run, noise: NoiseSource) -> None:
        """Release the number, at least 1."""
        run.n_samples = self(run.rows.n_units, noise)

    def __call__(self, n_units: int, noise: NoiseSource) -> float:
        """Release a number, at least 1."""
        count = release(
            float(n_units),
            law=NoiseLaw.meeting(self.guarantee, size=1),
            sensitivity=1.0,
            error=ROUNDING_SHARE,
            random_state=noise,
            purpose="how many there are",
        )
        return max(1.0, float(count))


def after_count(budget: Any) -> Any:
    """What is left of a budget where rows are counted first, as their number is private."""
    return budget if budget.adjacency == "replace-one" else RowCount.planned(budget, 1.0)[1]


def counted(n_units: int, budget: Any, noise: NoiseSource) -> tuple[float, Any]:
    """Number of rows to go on with, released where it is private, and what is left."""
    if budget.adjacency == "replace-one":
        return max(1.0, float(n_units)), budget
    stage, rest = RowCount.planned(budget, 1.0)
    return stage(n_units, noise), rest


@dataclass(frozen=True)
class ClassCounts:
    """Number of rows of each of three classes or more, for a penalty around their log-odds.

    Where noise hides what the features tell, a penalty around zero leaves a model that takes all
    classes to be as likely. Around the log-odds it leaves one that knows which are.

    Privacy: a record is in one count. When it is replaced, two change by 1.

    Parameters
    ----------
    guarantee : ApproxDP
        Pure.

    loss : SoftmaxLoss
        Its number of classes, their weights, and the temperature of scores.
    """

    guarantee: ApproxDP
    loss: SoftmaxLoss

    phrase: ClassVar[str] = "planned after noisy counts of classes"

    @classmethod
    def planner(cls, loss: SoftmaxLoss) -> Planner:
        """Planner of the stage for a loss: its share falls with epsilon times the rows."""
        if loss.n_outputs <= 2:
            raise ValueError(f"loss must have three classes or more; got {shown(loss)}.")
        return partial(cls._planned, loss)

    @classmethod
    def _planned(
        cls, loss: SoftmaxLoss, budget: ApproxDP, n_samples: float
    ) -> tuple["ClassCounts", ApproxDP]:
        if not isinstance(budget, ApproxDP):
            raise ValueError(f"budget must be pure to count classes; got {shown(budget)}.")
        signal = defaults.COUNT_SIGNAL * math.sqrt(loss.n_outputs)
        signal *= n_records_changed(budget.adjacency) / 2.0
        share = min(signal / max(budget.epsilon * n_samples, TINY), 0.5)
        part, rest = divided(budget, float(share))
        check_span(NoiseLaw.of("laplace", part), loss.n_outputs, budget.epsilon)
        return cls(part, loss), rest

    def check_n_rows(self, n_samples: int) -> None:
        """Any number of rows is counted without error."""

    def learn(self, run: Run, noise: NoiseSource) -> None:
        """Release the counts: weights whose scores are the log-odds, and the number of rows."""
        loss, data = self.loss, run.data
        law = NoiseLaw.of("laplace", self.guarantee)
        sensitivity = self.guarantee.n_records_changed
        released = release(
            class_counts(data, loss.n_outputs),
            law=law,
            sensitivity=sensitivity,
            error=0.0,
            random_state=noise,
            purpose="numbers of the classes",
        )
        if run.n_samples is None:
            run.n_samples = max(1.0, float(released.sum()))
        deviation = law.level(1) * sensitivity / run.n_samples
        odds = starting_scores(released / run.n_samples, deviation, loss.weights)
        run.centre = np.zeros((loss.n_outputs, data.n_features))
        run.centre[:, -1] = loss.temperature * odds / data.constant


def drawn_together(shares: np.ndarray, deviation: float) -> np.ndarray:
    """Shares of three classes or more, as far apart as noise does not explain.

    They are drawn towards equal ones by the positive part of the estimator of James and Stein.

    Parameters
    ----------
    shares : ndarray of shape (n_classes,)
        Released.

    deviation : float
        Public standard deviation of the noise of each.

    Returns
    -------
    ndarray of shape (n_classes,)
    """
    equal = 1.0 / len(shares)
    spread = math.hypot(*(shares - equal)) / math.sqrt(len(shares))
    if deviation >= spread:
        return np.full(len(shares), equal)
    return equal + (1.0 - (deviation / spread) ** 2) * (shares - equal)


def starting_scores(
    shares: np.ndarray, deviation: float, weights: Several[float] = ()
) -> np.ndarray:
    """Scores of a typical row to start from: log-odds of the classes, as far as they are known.

    Parameters
    ----------
    shares : ndarray of shape (n_outputs,)
        Released share of the second of two classes, or of each of several.

    deviation : float
        Public standard deviation of the noise of each.

    weights : sequence of float, default=()
        Public weights of several classes, with which losses are minimised.

    Returns
    -------
    ndarray of shape (n_outputs,)
    """
    if len(shares) == 1:
        least = min(defaults.LEAST_OF_TWO + deviation, 0.5)
        share = np.clip(shares, least, 1.0 - least)
        return np.log(share / (1.0 - share))
    likely = _likely(drawn_together(shares, deviation), deviation)
    logs = np.log(np.maximum(likely, defaults.LEAST_SHARE / len(shares)))
    if weights:
        logs += np.log(weights)
    return logs - logs.mean()


def _likely(shares: np.ndarray, deviation: float) -> np.ndarray:
    """Shares that are positive and add up to one: the nearest, and then as much as the noise more.

    Noise makes some of the small ones of many classes zero. Each may be as large as noise, and all
    of them together may not: the sum is known.
    """
    shares = np.clip(shares, -_LIMIT_SHARE, _LIMIT_SHARE)
    ordered = np.sort(shares)[::-1]
    beyond = (np.cumsum(ordered) - 1.0) / np.arange(1, len(shares) + 1)
    likely = np.maximum(shares - beyond[ordered >= beyond][-1], 0.0) + deviation
    return likely / likely.sum()


@plain_arguments
def largest_score(n_outputs: int, weights: Several[float] = ()) -> float:
    """Largest norm of the log-odds at which a fit of three classes or more starts.

    Parameters
    ----------
    n_outputs : int

    weights : sequence of float, default=()

    Returns
    -------
    float
    """
    spread = math.log(max(weights) / min(weights)) if weights else 0.0
    return math.sqrt(n_outputs) * (math.log(n_outputs / defaults.LEAST_SHARE) + spread)
