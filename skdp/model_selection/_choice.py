"""The choice among candidates by what the rows of a block lose with each.

To check it: this file, and ``mechanisms/_exponential.py`` for the law of a selection.
"""

import os
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Self

import numpy as np

from skdp._random._source import NoiseSource
from skdp._validation import plain_arguments, positive, positive_int
from skdp.exceptions import BudgetExceededError
from skdp.learner import charge_stream, ledger_of
from skdp.mechanisms import select
from skdp.privacy import BoundedRangeDP, n_records_changed

_GRID = 2**20  # steps of the loss of a row, from the best to the worst


@dataclass(frozen=True)
class ChoiceRelease:
    """One of several candidates, mostly one that the rows of a block lose little with.

    With users, the loss of a row is in what follows that of a user: the mean over their rows.

    Privacy: the loss of a row with a candidate is a whole number from 0 to ``2**20``, whatever the
    row. Candidates do not depend on the rows of the block. Replacing a row changes the sum for a
    candidate by at most that in either direction, so that changes differ by at most twice the
    range from one candidate to another; adding or removing a row moves all sums the same way, and
    changes differ by once the range. The selection has a bounded range of ``epsilon``, however
    many candidates there are. A single candidate is not looked at.

    Parameters
    ----------
    epsilon : float
        Bounded range of the selection.

    n_candidates : int

    guarantee : BoundedRangeDP

    References
    ----------
    McSherry and Talwar, "Mechanism design via differential privacy", FOCS 2007. Dong, Durfee and
    Rogers, "Optimal differential privacy composition for exponential mechanisms", ICML 2020.
    """

    epsilon: float
    n_candidates: int
    guarantee: BoundedRangeDP

    @classmethod
    @plain_arguments
    def plan(
        cls,
        epsilon: float,
        *,
        n_candidates: int,
        adjacency: str = "replace-one",
        unit: str = "record",
    ) -> Self:
        """Choice of a bounded range, from public numbers.

        Parameters
        ----------
        epsilon : float
            Bounded range.

        n_candidates : int

        adjacency : {"replace-one", "add-remove"}, default="replace-one"

        unit : {"record", "user"}, default="record"

        Returns
        -------
        ChoiceRelease
        """
        positive(epsilon=epsilon)
        positive_int(n_candidates=n_candidates)
        guarantee = BoundedRangeDP(
            (epsilon,) if n_candidates > 1 else (),
            adjacency=adjacency,
            unit=unit,
            mechanism=f"an exponential mechanism over {n_candidates} candidates",
            source="Dong, Durfee and Rogers 2020",
        )
        return cls(epsilon, n_candidates, guarantee)

    def __call__(self, losses: Iterable[np.ndarray], noise: NoiseSource) -> int:
        """Release the place of a candidate.

        Parameters
        ----------
        losses : iterable of ndarray of shape (n_rows,)
            Of each candidate, the loss of each row: 0 is the best and 1 the worst. What is
            outside is clipped, and what is not a number is the worst.

        noise : NoiseSource

        Returns
        -------
        int
        """
        if self.n_candidates == 1:
            return 0
        sums = np.array([_whole(loss) for loss in losses])
        spread = _GRID * n_records_changed(self.guarantee.adjacency)
        place = select(
            -sums,
            epsilon=self.epsilon,
            spread=spread,
            random_state=noise,
            purpose="candidate with the smallest loss",
        )
        return int(place)


def _whole(losses: np.ndarray) -> int:
    """Sum of the losses of a candidate, each a whole number of the grid."""
    bounded = np.clip(np.nan_to_num(np.asarray(losses, dtype=float), nan=1.0), 0.0, 1.0)
    return int(np.rint(_GRID * bounded).astype(np.int64).sum())


class StageCharges:
    """Charges of a search, each before its stage reads a row.

    Privacy: how many stages there are follows from what was released, and so does the sum of
    what they cost. That such sums may be charged as they come is proven where all charges of the
    ledger are Gaussian, and where all are pure and add up. The search has one entry then, which
    grows by each stage. In other cases the whole grid is charged at once, and nothing is refunded.

    Parameters
    ----------
    search : estimator
        With a ledger, or none.

    grid : EpsilonGrid

    References
    ----------
    Rogers, Roth, Ullman and Vadhan, "Privacy odometers and filters: pay-as-you-go composition",
    NeurIPS 2016, for pure guarantees; Smith and Thakurta, "Fully adaptive composition for Gaussian
    differential privacy", 2022.
    """

    def __init__(self, search, grid):
        self._search, self._grid = search, grid
        self._ledger = ledger_of(search)
        self._stream = os.urandom(16).hex()
        self._charged = 0  # stages that are paid
        if self._ledger is not None:
            self._check_whole()

    def _check_whole(self):
        """Refuse a ledger that could not bear all stages: which one is the last is not known."""
        grid, ledger, delta = self._grid, self._ledger, float(self._search.delta)
        if ledger.delta == 0.0 and delta > 0.0:
            raise BudgetExceededError(
                f"Asked: stages of a search with delta={delta:g}. Left: nothing with a delta, as "
                "the ledger has delta=0. Search with delta=0. Nothing was charged."
            )
        if ledger.affords(grid.spent(len(grid))):
            return
        least = len(grid) - 1
        while least and not ledger.affords(grid.spent(least)):
            least -= 1
        able = "enough for none of them"
        if least:
            able = (
                f"enough for the first {least}, up to epsilon={grid.points[least - 1].epsilon:.6g}"
            )
        raise BudgetExceededError(
            f"Asked: {len(grid)} stages of a search, up to epsilon={grid.points[-1].epsilon:.6g}, "
            f"any of which may be the last. Left: {able}. Pass a smaller max_epsilon, or fewer "
            "epsilons. Nothing was charged."
        )

    def pay(self, n_stages):
        """Charge what the first stages cost together, unless they are paid.

        Raises
        ------
        BudgetExceededError
            If somebody else has charged the ledger since, such that it cannot bear them.
        """
        if self._ledger is None or n_stages <= self._charged:
            return
        self._charge(n_stages if self._is_filter(n_stages) else len(self._grid))
        if not self._is_filter(n_stages):  # somebody charged between the question and the charge
            self._charge(len(self._grid))

    def _is_filter(self, n_stages):
        return self._ledger._is_filter_for(self._grid.spent(n_stages))

    def _charge(self, n_stages):
        if n_stages <= self._charged:
            return
        charge_stream(
            self._search,
            self._grid.spent(n_stages),
            stream=self._stream,
            version=n_stages,
            continues=self._charged or None,
        )
        self._charged = n_stages
