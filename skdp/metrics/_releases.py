"""The parts that an evaluation releases, and what they say together."""

import math
from dataclasses import dataclass, field, replace

import numpy as np

from skdp._defaults import pipeline as defaults
from skdp._grid import TINY
from skdp._random._source import NoiseSource
from skdp.mechanisms import NoiseLaw
from skdp.metrics._evaluation import FEWEST, LAPLACE_KURTOSIS, ScoreValue, Spread, nothing, scored
from skdp.metrics._precision_sum import PrecisionSum
from skdp.metrics._row_losses import OF_CONFUSION
from skdp.preprocessing._bounded_sums import BoundedSums
from skdp.preprocessing._column_sums import CountsRelease
from skdp.privacy import ApproxDP, GaussianDP

__all__ = ["MEANS", "Column", "Releases", "column_of", "shares_of"]

_LIMIT_FAR_OFF = 10.0  # standard errors of a number of rows, beyond which they are left out
_GRID_BASE = 10.0
_LIMIT_CLEAR = 6.0  # by how many it is with the number of rows that is advised

# Budgets of parts over that of a mean: of those that have to be precise twice as much, as a score
# divides by them or sums their noise over many bins, and of what corrects others a half.
_WEIGHTS = {
    **dict.fromkeys(("scores", "confusion", "rank", "square", "precision"), 2.0),
    **dict.fromkeys(("residuals", "rows", "y", "influence", "positive"), 0.5),
}
_COLUMNS = {
    "accuracy": "missed",
    "neg_log_loss": "log_loss",
    "neg_brier_score": "brier",
    "neg_mean_absolute_error": "absolute",
    "neg_mean_squared_error": "square",
    "neg_root_mean_squared_error": "square",
}
MEANS = tuple(_COLUMNS)
_NEEDED = {
    "roc_auc": ("scores", "rank"),
    "average_precision": ("precision", "positive"),
    "r2": ("y", "square", "deviation", "influence"),
    **dict.fromkeys(OF_CONFUSION, ("confusion",)),
}


def column_of(name: str) -> str:
    """Column of the losses whose mean a score is a function of."""
    return _COLUMNS[name]


def shares_of(names: tuple[str, ...], *, picture: str, is_counted: bool) -> dict[str, float]:
    """Part of the budget of each table and each sum, from public numbers.

    Parameters
    ----------
    names : tuple of str
        Scores.

    picture : str
        Table that no score needs; empty for none.

    is_counted : bool
        Whether the number of rows is private.
    """
    needed = [picture] if picture else []
    for name in names:
        own = _NEEDED.get(name, ())
        if not own:
            column = _COLUMNS[name]
            # Of zeros and ones the squares are the numbers.
            own = (column,) if column == "missed" else (column, f"{column}^2")
        needed += own
    if is_counted:
        needed.append("rows")
    shares = {
        part: float(defaults.SQUARES) if part.endswith("^2") else _WEIGHTS.get(part, 1.0)
        for part in needed
    }
    total = math.fsum(shares.values())
    return {part: share / total for part, share in shares.items()}


@dataclass(frozen=True, eq=False)
class Column:
    """Numbers to sum, one a row, and their bounds."""

    numbers: np.ndarray
    bounds: tuple[float, float] = (0.0, 1.0)


@dataclass(eq=False)
class Releases:
    """What has been released of the rows so far, and the budget of what follows.

    Parameters
    ----------
    target : ApproxDP or GaussianDP
        Of all together: pure, or Gaussian.

    shares : dict of str to float
        Part of the budget of each.

    n_rows : int
        Which is not looked at where it is private.

    confidence : float
        Of intervals.

    noise : NoiseSource
    """

    target: ApproxDP | GaussianDP
    shares: dict[str, float]
    n_rows: int
    confidence: float
    noise: NoiseSource
    values: dict[str, float] = field(default_factory=dict)
    variances: dict[str, float] = field(default_factory=dict)
    counts: dict[str, np.ndarray] = field(default_factory=dict)
    level: dict[str, float] = field(default_factory=dict)

    @property
    def kind(self) -> str:
        """Of the noise."""
        return "gaussian" if isinstance(self.target, GaussianDP) else "laplace"

    @property
    def is_counted(self) -> bool:
        """Whether the number of rows is private."""
        return self.target.adjacency == "add-remove"

    def _part(self, share: float) -> ApproxDP | GaussianDP:
        # Pure guarantees of releases one after the other add up, and squares of Gaussian ones.
        if isinstance(self.target, GaussianDP):
            return replace(self.target, mu=math.sqrt(share) * self.target.mu)
        return replace(self.target, epsilon=share * self.target.epsilon)

    def count(self, name: str, cells: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
        """Release how many rows are in each cell of a table."""
        counting = CountsRelease(NoiseLaw.of(self.kind, self._part(self.shares[name])))
        counts = np.bincount(cells, minlength=math.prod(shape)).astype(np.float64)
        self.counts[name] = counting(counts, self.noise).reshape(shape)
        self.level[name] = counting.level(len(counts))
        return self.counts[name]

    def sum(self, columns: dict[str, Column]) -> None:
        """Release sums over the rows, each divided among all by its share."""
        if self.is_counted and "rows" not in self.values:
            columns = {**columns, "rows": Column(np.ones(self.n_rows))}
        if not columns:
            return
        shares = tuple(self.shares[name] for name in columns)
        release = BoundedSums.plan(
            self._part(math.fsum(shares)),
            bounds=tuple(column.bounds for column in columns.values()),
            shares=shares,
        )
        numbers = np.array([column.numbers for column in columns.values()])
        self.values.update(zip(columns, release(numbers, self.noise).tolist(), strict=True))
        self.variances.update(zip(columns, (release.levels**2).tolist(), strict=True))

    def precision(self, scores: np.ndarray, is_positive: np.ndarray) -> None:
        """Release the sum behind average precision, of which the number of rows sets the noise."""
        most = self.n_rows
        if self.is_counted:
            self.sum({})  # the number of rows
            most = math.ceil(self.n + _LIMIT_FAR_OFF * math.sqrt(self.n_variance))
        part = self._part(self.shares["precision"])
        planned = PrecisionSum.plan(part, most_rows=most)
        self.values["precision"] = planned(scores, is_positive, self.noise)
        self.variances["precision"] = planned.level**2

    @property
    def n(self) -> float:
        """Number of rows: public, or released."""
        return max(self.values["rows"], 1.0) if self.is_counted else float(self.n_rows)

    @property
    def n_variance(self) -> float:
        """Of the noise in it."""
        return self.variances["rows"] if self.is_counted else 0.0

    @property
    def has_rows(self) -> bool:
        """Whether there are enough to divide by their number."""
        return self.n > max(1.0, FEWEST * math.sqrt(self.n_variance))

    def mean(self, name: str) -> float:
        """Sum divided by the number of rows."""
        return self.values[name] / self.n

    def noise_of_mean(self, name: str) -> float:
        """Variance of the noise of a mean."""
        return (self.variances[name] + self.mean(name) ** 2 * self.n_variance) / self.n**2

    def spread(self, normal: float, noise: float, kurtosis: float = LAPLACE_KURTOSIS) -> Spread:
        """Error of a number, from the variance of sampling and that of the noise."""
        if self.kind == "gaussian":
            return Spread(normal + noise)
        return Spread(normal, noise, kurtosis)

    def scored(
        self, value: float, normal: float, noise: float, bounds: tuple[float, float]
    ) -> ScoreValue:
        """Score from the variance of sampling, and that of the noise."""
        found = scored(value, self.spread(normal, noise), self.confidence, bounds)
        if not found.says_nothing:
            return found
        return self.cannot_tell(bounds, bounds[1] - bounds[0], math.sqrt(noise))

    def cannot_tell(self, bounds: tuple[float, float], size: float, error: float) -> ScoreValue:
        """Nothing, but how many rows of this kind would have noise that is a sixth of ``size``.

        Parameters
        ----------
        bounds : tuple of float
            Of the score.

        size, error : float
            What the score divides by, released, and the standard error of the noise in it.
        """
        rows = self.n * max(_LIMIT_CLEAR * error / max(size, error, TINY), 2.0)
        digit = _GRID_BASE ** max(math.floor(math.log10(rows)) - 1, 0)
        return nothing(bounds, digit * math.ceil(rows / digit))
