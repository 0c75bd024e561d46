"""The choice among candidates by what the rows of a block lose with each.

To check it: this file, and ``mechanisms/_exponential.py`` for the law of a selection.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Self

import numpy as np

from skdp._random._source import NoiseSource
from skdp._validation import plain_arguments, positive, positive_int
from skdp.mechanisms import select
from skdp.privacy import BoundedRangeDP, n_records_changed

__all__ = ["ChoiceRelease"]

_GRID = 2**20  # steps of the loss of a row, from the best to the worst


@dataclass(frozen=True)
class ChoiceRelease:
    """One of several candidates, mostly one that the rows of a block lose little with.

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
    def plan(cls, epsilon: float, *, n_candidates: int, adjacency: str = "replace-one") -> Self:
        """Choice of a bounded range, from public numbers.

        Parameters
        ----------
        epsilon : float
            Bounded range.

        n_candidates : int

        adjacency : {"replace-one", "add-remove"}, default="replace-one"

        Returns
        -------
        ChoiceRelease
        """
        positive(epsilon=epsilon)
        positive_int(n_candidates=n_candidates)
        guarantee = BoundedRangeDP(
            (epsilon,) if n_candidates > 1 else (),
            adjacency=adjacency,
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
            purpose="which of the candidates loses least",
        )
        return int(place)


def _whole(losses: np.ndarray) -> int:
    """Sum of the losses of a candidate, each a whole number of the grid."""
    bounded = np.clip(np.nan_to_num(np.asarray(losses, dtype=float), nan=1.0), 0.0, 1.0)
    return int(np.rint(_GRID * bounded).astype(np.int64).sum())
