"""What a ledger is charged by a search that stops by what it has seen."""

import os

from skdp.exceptions import BudgetExceededError
from skdp.learner import charge_stream, ledger_of

__all__ = ["StageCharges"]


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
