"""Numbers of rounds, as the bounds of online learning take them."""

import numpy as np

from skdp._validation import shown

__all__ = ["as_given", "rounds_of"]


def rounds_of(values, name="horizon"):
    """Check numbers of rounds; floats of the same shape."""
    rounds = np.asarray(values)
    whole = rounds.dtype.kind in "iuf"
    if not (whole and np.all((rounds >= 1) & (rounds < 2**53) & (rounds == np.rint(rounds)))):
        raise ValueError(f"{name} must hold integers of at least 1; got {shown(values)}.")
    return rounds.astype(float)


def as_given(values):
    """Result of an array of rounds: a float for one number, an array otherwise."""
    return float(values) if np.ndim(values) == 0 else np.asarray(values)
