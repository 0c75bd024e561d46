"""Checks of the exponents of steps and of source conditions."""

from skdp._validation import fraction, positive, shown

__all__ = ["check_smoothness", "check_theta"]


def check_theta(theta):
    """Check an exponent of the step sizes."""
    fraction(theta=theta)
    if theta <= 0.5:
        raise ValueError(f"theta must be more than 1/2; got {shown(theta)}.")


def check_smoothness(r):
    """Check the exponent of a source condition."""
    positive(r=r)
    if not 0.5 < r <= 1.5:
        raise ValueError(f"r must be more than 1/2 and at most 3/2; got {shown(r)}.")
