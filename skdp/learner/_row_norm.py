"""A norm that rows are clipped to, of all that their bound allows, read before anything else.

A bound is stated before the data are seen, and rows are often far shorter: features in [-1, 1]
have a bound of the root of their number, and most rows half of it, or a tenth where most features
are small. Noise is in proportion to the bound.

To check the claim: this file, ``rows/_row_norms.py`` for the cells of rows,
``rows/_hits.py`` for how they are counted, and ``mechanisms/_exponential.py`` for the law of a
selection.
"""

import math
from dataclasses import dataclass
from typing import Any, ClassVar, cast

import numpy as np

from skdp._defaults import linear as defaults
from skdp._random._source import NoiseSource
from skdp.learner._sequence import Run, divided
from skdp.mechanisms import NoiseLaw, release, select
from skdp.privacy import ApproxDP, GaussianDP
from skdp.rows._hits import cell_counts
from skdp.rows._row_norms import length_cells
from skdp.rows._users import Users

__all__ = ["RowNorm"]

# The norm is the bound, that over the root of 2, half of it and so on, to a 128th.
_GRID_CELLS = 15
# Counts are whole numbers of so many parts, those of users too. Of as many rows as are certified
# they stay below 2**52.
_GRID_PARTS = 2**24


@dataclass(frozen=True)
class RowNorm:
    """Read how long most rows are, and clip them to that.

    The norm is the least of the bound, that over the root of 2, half of it and so on that hardly
    any row exceeds. Where rows have owners, each counts for the share that it has of its user.

    Privacy: the norm satisfies ``guarantee``. Whatever it is, what follows is planned for rows of
    the bound, and rows are multiplied, one by one, by the bound over the norm. A row is in one
    cell of lengths, and what cell that is depends on no other row; a user adds 1 at most, spread
    over cells. A pure reading is a selection by minus the number of rows that exceed a norm. What
    a row, or a user, adds to that only grows from norm to norm, from 0 to 1 at most. When it is
    replaced, the change is one such sequence less another, and differs by 1 at most between two
    norms. A Gaussian one is noisy counts of cells.

    Parameters
    ----------
    guarantee : ApproxDP or GaussianDP

    n_units : float
        Public number of rows, or of users.

    References
    ----------
    McSherry and Talwar, "Mechanism design via differential privacy", FOCS 2007.
    """

    guarantee: ApproxDP | GaussianDP
    n_units: float

    phrase: ClassVar[str] = "of rows clipped to a norm that is read first"

    @classmethod
    def planned(
        cls, budget: Any, n_samples: float
    ) -> tuple["RowNorm | None", ApproxDP | GaussianDP]:
        """Stage for its share of a budget, and the rest.

        Parameters
        ----------
        budget : GaussianDP or pure ApproxDP

        n_samples : float
            Public number of rows, or of users.

        Returns
        -------
        stage, rest
            None where noise would be all that is read.
        """
        part, rest = divided(budget, float(defaults.NORM_SHARE))
        noise = math.sqrt(2.0) / part.mu if isinstance(part, GaussianDP) else 2.0 / part.epsilon
        if noise > defaults.NORM_NOISE * n_samples:
            return None, budget
        return cls(part, n_samples), rest

    def check_n_rows(self, n_samples: int) -> None:
        """Any number of rows is counted without error."""

    def learn(self, run: Run, noise: NoiseSource) -> None:
        """Release the norm, to which rows are clipped from here on."""
        if "data" in vars(run):
            raise ValueError("first must read the norm before any stage that uses the rows.")
        rows = run.rows
        run.longer = self.longer(rows.X, rows.x_norm, rows.users, noise)

    def longer(self, X: Any, x_norm: float, users: Users | None, noise: NoiseSource) -> float:
        """Release by how much rows may be longer.

        Parameters
        ----------
        X : {ndarray, CSR matrix or array} of shape (n_samples, n_features)

        x_norm : float
            Bound on the norm of a row; longer ones count as of this norm.

        users : Users or None
            Owners of the rows, where the guarantee is theirs.

        noise : NoiseSource

        Returns
        -------
        float
            The bound over the norm: a power of the root of 2, from 1 to 128.
        """
        shares = None if users is None else users.shares
        counts = cell_counts(length_cells(X, x_norm, _GRID_CELLS), _GRID_CELLS, shares)
        place = self._counted if isinstance(self.guarantee, GaussianDP) else self._selected
        return 2.0 ** (place(counts, noise) / 2.0)

    def _selected(self, counts: np.ndarray, noise: NoiseSource) -> int:
        whole = (counts * _GRID_PARTS).astype(np.int64)
        exceed = np.cumsum(whole) - whole
        epsilon = cast(ApproxDP, self.guarantee).epsilon
        # A norm that is smaller by the root of 2 is worth so many rows that are clipped.
        worth = defaults.NORM_WORTH * np.arange(_GRID_CELLS) / epsilon
        worth = np.minimum(worth, defaults.MOST_CLIPPED * self.n_units)
        place = select(
            np.rint(worth * _GRID_PARTS).astype(np.int64) - exceed,
            epsilon=epsilon,
            spread=_GRID_PARTS,
            random_state=noise,
            purpose="norm that hardly any row exceeds",
        )
        return int(place)

    def _counted(self, counts: np.ndarray, noise: NoiseSource) -> int:
        law = NoiseLaw.of("gaussian", self.guarantee)
        # Two records are in two cells. Counts of users are not negative and add up to 1.
        sensitivity = math.sqrt(self.guarantee.n_records_changed)
        released = release(
            counts,
            law=law,
            sensitivity=sensitivity,
            error=0.0,
            random_state=noise,
            purpose="numbers of rows by their length",
        )
        exceed = np.cumsum(released)[:-1]  # each norm but the first
        deviations = law.scale * sensitivity * np.sqrt(np.arange(1, _GRID_CELLS))
        most = np.minimum(2.0 * deviations, defaults.MOST_CLIPPED * self.n_units)
        return int(np.flatnonzero(np.append(True, exceed <= most)).max())
