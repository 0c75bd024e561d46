"""The most frequent of public categories, by exponential mechanisms.

To check it: this file, and ``mechanisms/_exponential.py`` for the law of a selection.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from skdp._random._source import NoiseSource
from skdp._validation import counts, plain_arguments
from skdp.mechanisms import select
from skdp.privacy import ApproxDP, BoundedRangeDP, bounded_range_epsilon, n_records_changed

__all__ = ["MostFrequentRelease"]

_LIMIT_EPSILON = 1e-9  # of a selection


@dataclass(frozen=True)
class MostFrequentRelease:
    """For each column, the category that most rows have, or one that nearly as many have.

    Privacy: the utility of a category is the number of its rows. Replacing a record takes a row
    from one category at most and gives it to another, so that changes of utilities differ by at
    most 2 from category to category; adding or removing one changes one number by 1. Each
    selection has a bounded range of ``epsilon``. A record has one category in every column, and
    all selections compose. A column with one category is not looked at.

    Parameters
    ----------
    epsilon : float
        Bounded range of each selection.

    n_categories : tuple of int
        Of each column, public.

    guarantee : BoundedRangeDP

    References
    ----------
    McSherry and Talwar, "Mechanism design via differential privacy", FOCS 2007. Dong, Durfee and
    Rogers, "Optimal differential privacy composition for exponential mechanisms", ICML 2020.
    """

    epsilon: float
    n_categories: tuple[int, ...]
    guarantee: BoundedRangeDP

    @classmethod
    @plain_arguments
    def plan(cls, target: ApproxDP, *, n_categories: Sequence[int]) -> Self:
        """Release that meets ``target``, from public numbers.

        Parameters
        ----------
        target : ApproxDP

        n_categories : sequence of int
            Number of public categories of each column.

        Returns
        -------
        MostFrequentRelease
        """
        sizes = tuple(int(size) for size in counts(n_categories=n_categories, least=1))
        n_selections = sum(size > 1 for size in sizes)
        epsilon = bounded_range_epsilon(target, max(n_selections, 1))
        if epsilon < _LIMIT_EPSILON:
            raise ValueError(
                f"epsilon must be larger for {n_selections} columns; got {target.epsilon:g}."
            )
        guarantee = BoundedRangeDP(
            (epsilon,) * n_selections,
            adjacency=target.adjacency,
            unit=target.unit,
            mechanism="exponential mechanisms over public categories",
            source="Dong, Durfee and Rogers 2020",
            caveats=target.caveats,
        )
        return cls(epsilon, sizes, guarantee)

    def __call__(self, codes: np.ndarray, noise: NoiseSource) -> np.ndarray:
        """Release the places of the categories.

        Parameters
        ----------
        codes : ndarray of int, shape (n_samples, n_columns)
            Place of each row's category; -1 where it is missing or none of them.

        noise : NoiseSource

        Returns
        -------
        ndarray of int, shape (n_columns,)
        """
        places = np.zeros(len(self.n_categories), dtype=int)
        spread = n_records_changed(self.guarantee.adjacency)
        for j, size in enumerate(self.n_categories):
            if size > 1:
                frequency = np.bincount(codes[:, j] + 1, minlength=size + 1)[1:]
                places[j] = select(
                    frequency,
                    epsilon=self.epsilon,
                    spread=spread,
                    random_state=noise,
                    purpose="the most frequent category of a column",
                )
        return places
