"""Ridge regression on features of bounded norm from noisy sufficient statistics.

To check the claim: this file, `_moments`, which releases second moments, and
`skdp.rows._feature_blocks`, which bounds and certifies what is summed.
"""

import math
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from skdp._random._source import NoiseSource
from skdp._validation import plain_arguments
from skdp.kernel._rules import spectral_noise
from skdp.learner._moments import eigenvectors, release_second_moments
from skdp.mechanisms import NoiseLaw, release
from skdp.privacy import ApproxDP, GaussianDP
from skdp.rows._feature_blocks import ERROR_SHARE, FeatureBlocks, certified

__all__ = ["FeatureStatistics", "statistics_budgets", "statistics_penalty"]


@plain_arguments
def statistics_budgets(guarantee: GaussianDP) -> tuple[GaussianDP, GaussianDP]:
    """Split a budget between second moments of the features and their products with targets.

    Parameters
    ----------
    guarantee : GaussianDP

    Returns
    -------
    gram, moments : GaussianDP
    """
    half = GaussianDP(guarantee.mu / math.sqrt(2.0), adjacency=guarantee.adjacency)
    return half, half


@plain_arguments
def statistics_penalty(*, n_components: int, guarantee: GaussianDP) -> float:
    """Penalty for a regression from noisy statistics: the norm of the noise in the second moments.

    Parameters
    ----------
    n_components : int

    guarantee : GaussianDP
        Whole budget.

    Returns
    -------
    float
    """
    return spectral_noise(n_components, statistics_budgets(guarantee)[0])


@dataclass(frozen=True)
class FeatureStatistics:
    """Ridge regression from noisy second moments and noisy products with the targets.

    Privacy: two Gaussian releases that compose to ``budget``, for any rows and targets.
    Neither depends on the number of rows, and solving the system is post-processing. Where rows
    have owners it holds for users, as both sums are over users, of the means of their rows' terms.

    Parameters
    ----------
    guarantee : ApproxDP

    budget : GaussianDP
        What stands behind the guarantee.

    penalty : float
        Negative eigenvalues of the noisy matrix are set to zero first.

    References
    ----------
    Vu and Slavkovic, "Differential privacy for clinical trial data", ICDM workshops 2009; Wang,
    "Revisiting differentially private linear regression", UAI 2018.
    """

    guarantee: ApproxDP
    budget: GaussianDP
    penalty: float

    @classmethod
    @plain_arguments
    def plan(cls, target: ApproxDP, *, n_components: int, penalty: float | None = None) -> Self:
        """Statistics that meet a target with a positive delta, and a penalty by their noise."""
        budget = target.gaussian_target()
        guarantee = replace(
            target,
            refined=budget,
            mechanism="noisy sufficient statistics of random features",
            source="Balle and Wang, ICML 2018, theorem 8, composed by Dong, Roth and Su, "
            "JRSS-B 2022, corollary 2",
        )
        if penalty is None:
            penalty = statistics_penalty(n_components=n_components, guarantee=budget)
        return cls(guarantee, budget, penalty)

    def __call__(self, data: FeatureBlocks, noise: NoiseSource) -> tuple[np.ndarray, float]:
        """Weights of the features, and 0.0: nothing is added to values."""
        gram_guarantee, target_guarantee = statistics_budgets(self.budget)
        records = self.budget.n_records_changed
        # Two outer products of rows are at most sqrt(2) times the square of the norm apart.
        error = ERROR_SHARE * math.sqrt(records) * data.row_norm**2
        moments = release_second_moments(
            certified(data.second_moments(), error),
            data.row_norm,
            guarantee=gram_guarantee,
            noise=noise,
            error=error,
        )
        # A record adds its features times its target, which is at most one.
        nothing = np.zeros(data.n_features)
        exact = -certified(data.capped_sum(nothing, 1.0), ERROR_SHARE * data.row_norm)
        products = release(
            exact,
            law=NoiseLaw.of("gaussian", target_guarantee),
            sensitivity=records * data.row_norm,
            error=ERROR_SHARE * data.row_norm,
            random_state=noise,
            purpose="sums of the products of features and target",
        )
        values, vectors = eigenvectors(moments)
        weights = (vectors.T @ products) / (np.maximum(values, 0.0) + self.penalty)
        return vectors @ weights, 0.0
