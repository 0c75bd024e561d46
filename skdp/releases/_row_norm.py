"""A norm that rows are clipped to, of all that their bound allows, read before anything else.

A bound is stated before the data are seen, and rows are often far shorter: features in [-1, 1]
have a bound of the root of their number, and most rows half of it, or a tenth where most features
are small. Noise is in proportion to the bound.

To check the claim: this file, ``solvers/row_lengths.py`` for the cells of rows,
``solvers/hits.py`` for how they are counted, and ``mechanisms/_exponential.py`` for the law of a
selection.
"""

import math
from dataclasses import dataclass, replace
from typing import Any, Self, cast

import numpy as np

from skdp._defaults import linear as defaults
from skdp._random import NoiseSource
from skdp._users import Users
from skdp._validation import plain_arguments, shown
from skdp.mechanisms import NoiseLaw, release, select
from skdp.privacy import ApproxDP, GaussianDP
from skdp.releases._coefficient_noise import CoefficientNoise, with_noise
from skdp.releases._moments import split_mu
from skdp.solvers.hits import cell_counts
from skdp.solvers.row_lengths import length_cells
from skdp.solvers.rows import RowBlocks

__all__ = ["NormedRelease", "split_for_norm"]

# The norm is the bound, that over the root of 2, half of it and so on, to a 128th.
_GRID_CELLS = 15
# Counts are whole numbers of so many parts, those of users too. Of as many rows as are certified
# they stay below 2**52.
_GRID_PARTS = 2**24


@dataclass(frozen=True)
class NormedRelease:
    """Read how long most rows are, clip them to that, and release what follows.

    The norm is the least of the bound, that over the root of 2, half of it and so on that hardly
    any row exceeds. Where rows have owners, each counts for the share that it has of its user.

    Privacy: the norm satisfies ``reading``, and, whatever it is, what follows satisfies the rest
    of the budget: it is planned for rows of the bound, and rows are multiplied, one by one, by the
    bound over the norm. A row is in one cell of lengths, and what cell that is depends on no other
    row; a user adds 1 at most, spread over cells. A pure reading is a selection by minus the
    number of rows that exceed a norm. What a row, or a user, adds to that only grows from norm to
    norm, from 0 to 1 at most. When it is replaced, the change is one such sequence less another,
    and differs by 1 at most between two norms. A Gaussian one is noisy counts of cells. Pure
    guarantees of releases that are made one after the other add up to ``guarantee``, and so do
    squares of mu.

    Parameters
    ----------
    reading : ApproxDP or GaussianDP
        Of the norm.

    release : NoisyDescent, OutputPerturbation, ObjectivePerturbation or what plans one of these
        Planned for rows of the bound.

    n_units : int
        Public number of rows, or of users.

    guarantee : ApproxDP or GaussianDP
        Of both.

    References
    ----------
    Dwork and Roth, "The algorithmic foundations of differential privacy", 2014, theorem 3.16.
    McSherry and Talwar, "Mechanism design via differential privacy", FOCS 2007.
    Dong, Roth and Su, "Gaussian differential privacy", JRSS-B 2022, corollary 2.
    """

    reading: ApproxDP | GaussianDP
    release: Any
    n_units: int
    guarantee: ApproxDP | GaussianDP

    @classmethod
    @plain_arguments
    def plan(
        cls,
        target: ApproxDP,
        *,
        reading: ApproxDP | GaussianDP,
        release: Any,
        n_units: int,
    ) -> Self:
        """Release that meets a target, from public numbers.

        Parameters
        ----------
        target : ApproxDP
            What both together are to meet.

        reading : ApproxDP or GaussianDP
            What `split_for_norm` sets aside.

        release : object
            Planned for the rest.

        n_units : int
            Public number of rows, or of users.
        """
        if target.adjacency != "replace-one":
            raise ValueError(
                "target must be for 'replace-one', where n_units is public; "
                f"got {shown(target.adjacency)}."
            )
        behind = release.guarantee
        if (target.delta == 0.0) != (getattr(behind, "refined", None) is None):
            raise ValueError(
                "release must have a profile where delta is positive, and only there."
            )
        mechanism = f"{behind.mechanism}, of rows clipped to a norm that is read first"
        guarantee = replace(behind, epsilon=target.epsilon, mechanism=mechanism)
        return cls(reading, release, n_units, guarantee)

    def check_n_rows(self, n_samples: int) -> None:
        """Refuse more rows than can be certified, before a ledger is charged."""
        self.release.check_n_rows(n_samples)

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
        place = self._counted if isinstance(self.reading, GaussianDP) else self._selected
        return 2.0 ** (place(counts, noise) / 2.0)

    def _selected(self, counts: np.ndarray, noise: NoiseSource) -> int:
        whole = (counts * _GRID_PARTS).astype(np.int64)
        exceed = np.cumsum(whole) - whole
        epsilon = cast(ApproxDP, self.reading).epsilon
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
        law = NoiseLaw.of("gaussian", self.reading)
        # Two records are in two cells. Counts of users are not negative and add up to 1.
        sensitivity = math.sqrt(self.reading.n_records_changed)
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

    def with_noise(
        self, data: RowBlocks, noise: NoiseSource
    ) -> tuple[np.ndarray, CoefficientNoise]:
        """Release what follows, with how much of it is noise.

        Parameters
        ----------
        data : RowBlocks
            Clipped to the released norm, and then as much longer as `longer` says.

        noise : NoiseSource

        Returns
        -------
        weights : ndarray of shape (n_outputs, n_features)

        spread : CoefficientNoise
        """
        return with_noise(self.release, data, noise)


@plain_arguments
def split_for_norm(
    guarantee: ApproxDP | GaussianDP, *, n_samples: float | None
) -> tuple[Any, ApproxDP | GaussianDP]:
    """Set a share aside for a `NormedRelease`.

    Parameters
    ----------
    guarantee : GaussianDP or pure ApproxDP
        Budget of both.

    n_samples : float or None
        Number of rows, or of users; None where it is private.

    Returns
    -------
    reading, rest
        ``reading`` is None where nothing is read: where noise would be all that it tells, or the
        number of rows is private, so that nobody knows.
    """
    if n_samples is None:
        return None, guarantee
    share = float(defaults.NORM_SHARE)
    reading: Any
    rest: Any
    if isinstance(guarantee, GaussianDP):
        reading, rest = split_mu(guarantee, share)
        noise = math.sqrt(2.0) / reading.mu
    else:
        reading = replace(guarantee, epsilon=share * guarantee.epsilon)
        rest = replace(guarantee, epsilon=guarantee.epsilon - reading.epsilon)
        noise = 2.0 / reading.epsilon
    return (reading, rest) if noise <= defaults.NORM_NOISE * n_samples else (None, guarantee)
