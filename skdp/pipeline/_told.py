"""Errors of steps that are not ours, told without values of the data."""

from contextlib import contextmanager

import numpy as np

from skdp._inputs import without_values

__all__ = ["quiet"]


@contextmanager
def quiet():
    """Raise what is not ours again without values, and keep floating point silent.

    Messages of ours are known to hold none.
    """
    ours = None
    with np.errstate(all="ignore"), without_values("X"):
        try:
            yield
        except Exception as error:
            if not _is_ours(error):
                raise
            ours = error
    if ours is not None:
        raise ours


def _is_ours(error):
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    module = "" if trace is None else trace.tb_frame.f_globals.get("__name__", "")
    return module.partition(".")[0] == "skdp"
