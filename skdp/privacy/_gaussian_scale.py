"""Gaussian noise for a guarantee."""

from skdp._validation import plain_arguments, positive
from skdp.privacy._base import Guarantee
from skdp.privacy._calibration import ROUNDING
from skdp.privacy._guarantees import ApproxDP, GaussianDP

__all__ = ["gaussian_scale"]


@plain_arguments
def gaussian_scale(*, l2_sensitivity: float, guarantee: Guarantee) -> float:
    """Standard deviation of Gaussian noise that meets ``guarantee`` exactly.

    Parameters
    ----------
    l2_sensitivity : float
        Largest change in l2 norm between neighbours.

    guarantee : ApproxDP or GaussianDP
        Guarantee to meet; an `ApproxDP` needs ``delta > 0``.

    Returns
    -------
    float
        Rounded up.

    References
    ----------
    Balle and Wang, "Improving the Gaussian mechanism", ICML 2018, Theorem 8.
    """
    positive(l2_sensitivity=l2_sensitivity)
    if isinstance(guarantee, ApproxDP):
        guarantee = guarantee.gaussian_target()
    if not isinstance(guarantee, GaussianDP):
        raise ValueError(f"guarantee must be an ApproxDP or a GaussianDP; got {guarantee!r}.")
    positive(mu=guarantee.mu)
    return l2_sensitivity / guarantee.mu * (1 + ROUNDING)
