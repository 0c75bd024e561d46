"""Errors of steps that are not ours, told without values of the data."""

import re
from contextlib import contextmanager

import numpy as np

from skdp.rows._inputs import raised_here, without_values

__all__ = ["quiet"]

_INSTEAD = {
    r"Input y contains NaN": "takes no NaN in y: leave such rows out",
    r"Input (\w+ )?contains NaN": "takes no NaN: put a DPSimpleImputer before it",
    r"Only binary classification is supported": "takes targets of two classes",
}


@contextmanager
def quiet(path=None):
    """Raise what is not ours again without values, and keep floating point silent.

    Messages of ours are known to hold none.

    Parameters
    ----------
    path : str, default=None
        Of the step, for messages.
    """
    ours = None
    with np.errstate(all="ignore"), without_values("X"):
        try:
            yield
        except Exception as error:
            if raised_here(error):
                ours = error
            elif path is not None and (found := _known(error)) is not None:
                ours = ValueError(f"Step {path!r} {found}.")
            else:
                raise
    if ours is not None:
        raise ours


def _known(error):
    """What an error says that holds no values, in our words; or None."""
    return next((told for start, told in _INSTEAD.items() if re.match(start, str(error))), None)
