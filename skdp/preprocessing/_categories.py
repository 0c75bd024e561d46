"""Categories of columns: the names whose noisy counts reach a threshold.

To check the claim: this file, and ``mechanisms/_frequent.py`` for one column.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

from scipy.special import ndtri

from skdp._defaults import pipeline as defaults
from skdp._grid import UP
from skdp._random._source import NoiseSource
from skdp._validation import plain_arguments, positive_int, shown
from skdp.mechanisms import Lattice, NoiseLaw, escape_probability, frequent_names
from skdp.privacy import ApproxDP, GaussianDP, compose, gaussian_mu

__all__ = ["CategoryRelease"]

_LIMIT_ESCAPE = 1e-290  # far above where floats lose digits
_GRID_RELATIVE = 2.0**-40  # steps in which a threshold is looked for
_TOLERANCE = 1e-12  # that rounding does not pass
_GRID_STEP = 2.0**-7  # about one percent of a record, as of any other lattice


@dataclass(frozen=True)
class CategoryRelease:
    """Names of the categories of several columns that are frequent, by noisy counts.

    Privacy: a record has one category in each column. Replacing it moves two counts of a column
    by one, and adding it moves one, so that noise on the counts of all columns is Gaussian
    differential privacy. A category that is in one of two neighbours only is there with a count
    of one, and is released from that one with a small probability, which is paid for with delta,
    once for each column. One that is not in the data is never released.

    A pair of neighbours that pays in a column with probability pays there less in noise than is
    counted, so that both compose to no less than what any pair loses.

    Parameters
    ----------
    law : NoiseLaw
        Of the counts of one column, for a sensitivity of 1.

    threshold : float
        Least noisy count of a category that is released, above 1.

    n_columns : int

    guarantee : ApproxDP
        Of all columns.

    References
    ----------
    Korolova, Kenthapadi, Mishra and Ntoulas, "Releasing search queries and clicks privately",
    WWW 2009; Desfontaines, Voss, Gipson and Mandayam, "Differentially private partition
    selection", PoPETs 2022; Dong, Roth and Su, "Gaussian differential privacy", JRSS-B 2022,
    corollary 2.
    """

    law: NoiseLaw
    threshold: float
    n_columns: int
    guarantee: ApproxDP

    @classmethod
    @plain_arguments
    def plan(cls, target: ApproxDP, *, n_columns: int, min_frequency: int = 1) -> Self:
        """Release that meets a target with a positive delta.

        Parameters
        ----------
        target : ApproxDP

        n_columns : int
            Whose categories are released.

        min_frequency : int, default=1
            Public count below which the threshold is not to fall.

        Returns
        -------
        CategoryRelease

        Raises
        ------
        ValueError
            If delta is 0: what one record alone has could not be told by chance, either.

        Examples
        --------
        >>> from skdp.privacy import ApproxDP
        >>> from skdp.preprocessing._categories import CategoryRelease
        >>> release = CategoryRelease.plan(ApproxDP(1.0, 1e-6), n_columns=1)
        >>> round(release.threshold, 1)
        32.2
        """
        positive_int(n_columns=n_columns, min_frequency=min_frequency)
        guarantee = cls.guarantee_of(target)
        # Whatever their number: all columns share what all may cost.
        together, escape = _split(target)
        law = NoiseLaw.of("gaussian", together).repeated(n_columns)
        # Of columns that are independent, no more than this each makes that for all.
        escape = -math.expm1(math.log1p(-escape) / n_columns) * (1.0 - _TOLERANCE)
        lattice = _lattice(target)
        far = -float(ndtri(escape)) * law.scale * lattice.sensitivity * UP
        least = max(1.0 + _GRID_STEP / 2.0 + far, float(min_frequency))
        threshold = math.ceil(least / _GRID_STEP) * _GRID_STEP
        while threshold <= 1.0 or (
            escape_probability(threshold, law=law, lattice=lattice) > escape
        ):
            threshold += max(_GRID_STEP, _GRID_RELATIVE * threshold // _GRID_STEP * _GRID_STEP)
        return cls(law, threshold, n_columns, guarantee)

    @classmethod
    def guarantee_of(cls, target: ApproxDP) -> ApproxDP:
        """What any number of columns costs, which is ``target`` with what stands behind it."""
        if not isinstance(target, ApproxDP) or target.delta == 0.0:
            raise ValueError(
                "delta must be positive to learn categories: without it, no list could leave out "
                "the name that one record alone has. They may be stated instead: "
                'OneHotEncoder(categories=..., handle_unknown="ignore"); got delta=0.'
            )
        together, escape = _split(target)
        return replace(
            target,
            refined=compose(
                [together, ApproxDP(0.0, escape, adjacency=target.adjacency, unit=target.unit)]
            ),
            mechanism="Gaussian noise on the counts of categories, and a threshold",
            source="Korolova et al., WWW 2009; Dong, Roth and Su, JRSS-B 2022, corollary 2",
        )

    def __call__(
        self, counts: Sequence[Mapping[Any, int]], noise: NoiseSource
    ) -> tuple[tuple[Any, ...], ...]:
        """Release the names of frequent categories.

        Parameters
        ----------
        counts : sequence of n_columns mappings of hashable to int
            How many records have a category, of those that any record has.

        noise : NoiseSource

        Returns
        -------
        tuple of n_columns tuples
            In no public order.
        """
        if len(counts) != self.n_columns:
            raise ValueError(f"counts must be of {self.n_columns} columns; got {len(counts)}.")
        lattice = _lattice(self.guarantee)
        return tuple(
            frequent_names(
                column,
                law=self.law,
                lattice=lattice,
                threshold=self.threshold,
                random_state=noise,
                purpose="names of the frequent categories of a column",
            )
            for column in counts
        )


def _split(target: ApproxDP) -> tuple[GaussianDP, float]:
    """Noise on counts, and the probability that pays for names of one record."""
    escape = defaults.PREPARING * target.delta
    if not escape > _LIMIT_ESCAPE:
        raise ValueError(
            f"delta must be larger than {_LIMIT_ESCAPE / defaults.PREPARING:g} to learn "
            f"categories; got {shown(target.delta)}."
        )
    mu = gaussian_mu(epsilon=target.epsilon, delta=(target.delta - escape) * (1.0 - _TOLERANCE))
    return GaussianDP(mu, adjacency=target.adjacency, unit=target.unit), escape


def _lattice(target: ApproxDP) -> Lattice:
    """Counts are on it as they are: nothing is rounded."""
    # Replacing a record moves two counts of a column by one.
    return Lattice(_GRID_STEP, math.sqrt(target.n_records_changed))
