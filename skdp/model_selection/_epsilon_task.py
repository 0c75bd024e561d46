"""What a search for the least epsilon will do with its rows, and what that costs."""

import math
import warnings
from dataclasses import dataclass
from typing import Any

from skdp._defaults import search as defaults
from skdp._validation import is_auto, level_of_the_user, shown
from skdp.model_selection._blocks import Blocks
from skdp.model_selection._candidates import planned_guarantee, rehearse_candidate, with_params
from skdp.model_selection._epsilon_grid import EpsilonGrid, score_noise
from skdp.model_selection._search import Searched
from skdp.pipeline._rehearsal import charge_of
from skdp.privacy import compose

__all__ = ["EpsilonTask"]

_TOLERANCE_COARSE = (
    0.05  # standard error, as part of the range of a score, that is worth a warning
)
_RANGES = {"r2": (-math.inf, 1.0)}  # of scorings that are no means over rows; else from 0 to 1


@dataclass(frozen=True)
class EpsilonTask:
    """What a search will do with its rows, and what that costs.

    Parameters
    ----------
    searched : Searched

    rows : pair of (X, y)
        To learn from, and to score.

    grid : EpsilonGrid

    frozen : tuple of Guarantee
        Of steps that were fitted before.

    resolution : float or None
        Standard error of a score at the target at the last stage.
    """

    searched: Searched
    rows: Any
    grid: EpsilonGrid
    frozen: tuple
    resolution: float | None

    @classmethod
    def of(cls, search, X, y):
        """Plan a search; all that public numbers show to be out of reach is refused."""
        searched = Searched.of(search, X, y, by_rows=False)
        _check_target(search, searched)
        part = float(defaults.HELD_OUT) if is_auto(search.blocks) else float(search.blocks)
        blocks = Blocks.of((1 - part, part), row_key=search.row_key, adjacency=search.adjacency)
        sizes = blocks.sizes(searched.n_samples)
        searched.check_sizes(sizes)
        sizes = sizes or (None, None)
        parts = blocks.parts(searched.X, searched.n_samples)
        rows = [searched.rows(part) for part in parts]
        fits = _Fits(searched, rows[0], sizes[0])

        grid = EpsilonGrid.plan(
            search.epsilons,
            search._target(),
            n_scoring=sizes[1],
            planned=fits.planned,
            evaluated=searched.evaluation,
        )
        # Rows that score are prepared as those of a fit, and would fail as they do.
        charge_of(with_params(searched.estimator, {}, grid.points[-1]), searched.X, searched.y)
        resolution = _resolution(search, searched, grid, sizes[1])
        task = cls(searched, rows, grid, tuple(fits.frozen.values()), resolution)
        task._tell(search, sizes[1])
        return task

    def known(self, guarantee):
        """The guarantee with that of steps that were fitted before."""
        return compose([guarantee, *self.frozen]) if self.frozen else guarantee

    def _tell(self, search, n_scoring):
        """Say beforehand what the rows that score cannot tell."""
        grid, told = self.grid, ""
        if self.resolution is not None:
            told = f"{n_scoring} rows score: steps below {self.resolution:.2g} cannot be told. "
            worst, best = _range(self.searched)
            if self.resolution > _TOLERANCE_COARSE * (best - worst):
                warnings.warn(
                    f"Scores of {n_scoring} rows have a standard error of {self.resolution:.2g} "
                    "at the target, and cannot tell smaller steps: the search may stop too soon "
                    "or go on for too long.",
                    UserWarning,
                    stacklevel=level_of_the_user(),
                )
        declared = grid.declared(float(search.delta)).epsilon
        search._tell(
            f"{told}{len(grid)} epsilons from {grid.points[0].epsilon:.6g} to "
            f"{grid.points[-1].epsilon:.6g}; all stages together cost {declared:.6g}."
        )


class _Fits:
    """What fits to a part of the rows cost, each rehearsed once: refusals come before a charge."""

    def __init__(self, searched, rows, n_samples):
        self._searched, self._rows, self._n_samples = searched, rows, n_samples
        self._known: dict = {}
        self.frozen: dict = {}

    def planned(self, point):
        """Guarantee that a fit will be charged; a ValueError says why there is none."""
        if point not in self._known:
            estimator, schema = self._searched.estimator, self._searched.schema
            found, frozen = planned_guarantee(estimator, {}, point, schema, self._n_samples)
            if found is None:
                raise ValueError("estimator must learn something; got one that learns nothing.")
            rehearse_candidate(estimator, {}, point, found, *self._rows)
            self._known[point] = found
            self.frozen |= frozen
        return self._known[point]


def _range(searched):
    """Worst and best value of the scoring."""
    if searched.loss is None or searched.scoring in _RANGES:
        return _RANGES.get(searched.scoring, (0.0, 1.0))
    return searched.loss.score(1.0), searched.loss.score(0.0) + 0.0  # not -0


def _check_target(search, searched):
    worst, best = _range(searched)
    if not worst < float(search.target_score) < best:
        raise ValueError(
            f"target_score must be above {worst:g} and below {best:g}, between which "
            f"{searched.scoring!r} ranges; got {shown(search.target_score)}."
        )


def _resolution(search, searched, grid, n_scoring):
    """Standard error at the last stage of losses in [0, 1] with the mean that is asked for."""
    linear = ("accuracy", "neg_log_loss", "neg_brier_score", "neg_mean_squared_error")
    if n_scoring is None or searched.scoring not in (*linear, "neg_mean_absolute_error"):
        return None
    worst, best = _range(searched)
    loss = (best - float(search.target_score)) / (best - worst)
    # Losses with a given mean vary most where each is 0 or 1.
    return (best - worst) * math.hypot(
        math.sqrt(loss * (1.0 - loss) / n_scoring), score_noise(grid.points[-1]) / n_scoring
    )
