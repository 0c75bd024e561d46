"""The most frequent of public categories, by a selection for each column.

To check it: this file, and ``mechanisms/_exponential.py`` for the law of a selection.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Self

import numpy as np

from skdp._random._source import NoiseSource
from skdp._validation import counts, plain_arguments
from skdp.mechanisms import select
from skdp.preprocessing._base import label_codes
from skdp.preprocessing._quantiles import selections_guarantee
from skdp.privacy import (
    ApproxDP,
    BoundedRangeDP,
    bounded_range_epsilon,
    n_records_changed,
)
from skdp.rows._source_frames import total_of
from skdp.rows._users import USER_PARTS, Users


@dataclass(frozen=True)
class MostFrequentRelease:
    """For each column, the category that most rows have, or one that nearly as many have.

    Privacy: the utility of a category is the number of its rows, or over users the sum of its
    shares of their rows, in whole parts. Replacing a record takes a row
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
        guarantee = selections_guarantee(target, epsilon, n_selections, "categories")
        return cls(epsilon, sizes, guarantee)

    def __call__(
        self, columns: Any, lists: Any, noise: NoiseSource, users: Users | None = None
    ) -> np.ndarray:
        """Release the places of the categories.

        Parameters
        ----------
        columns : ndarray or ColumnsOfSource of shape (n_samples, n_columns)

        lists : list of list
            Categories of each column.

        noise : NoiseSource

        users : Users, default=None
            Owners of the rows, where the guarantee is for users.

        Returns
        -------
        ndarray of int, shape (n_columns,)
        """
        places = np.zeros(len(self.n_categories), dtype=int)
        spread = n_records_changed(self.guarantee.adjacency)
        spread *= 1 if users is None else USER_PARTS
        for j, size in enumerate(self.n_categories):
            if size > 1:
                if users is None:
                    counts = total_of(columns, j, partial(_counts_of_listed, lists[j]))
                else:
                    counts = users.shares_of(label_codes(columns[:, j], lists[j]), size)
                places[j] = select(
                    counts,
                    epsilon=self.epsilon,
                    spread=spread,
                    random_state=noise,
                    purpose="the most frequent category of a column",
                )
        return places


def _counts_of_listed(listed: list, values: np.ndarray) -> np.ndarray:
    """How many values are each of a list; what is missing or none of them does not count."""
    return np.bincount(label_codes(values, listed) + 1, minlength=len(listed) + 1)[1:]
