"""Where the files of the data sets are looked for."""

import os
import queue
import threading
from functools import partial
from pathlib import Path

import numpy as np

from skdp._validation import positive

__all__ = [
    "check_timeout",
    "damaged_column",
    "fetched",
    "finite_numbers",
    "local_file",
    "pandas_for",
    "required_file",
]


def local_file(name):
    """Path of ``name``, or of its unpacked form, below the folder ``SKDP_DATA``; else None."""
    folder = os.environ.get("SKDP_DATA")
    if not folder:
        return None
    packed = Path(folder).expanduser() / name
    return next((p for p in (packed, packed.with_suffix("")) if p.is_file()), None)


def pandas_for(function):
    """Import pandas, which the package itself does not need."""
    try:
        import pandas
    except ImportError as error:
        raise ImportError(f"{function} returns frames: install pandas to use it.") from error
    return pandas


def check_timeout(timeout):
    """Check a limit in seconds, or None."""
    if timeout is not None:
        positive(timeout=timeout)


def fetched(fetch, timeout, *, title, names, page):
    """What scikit-learn's ``fetch()`` returns, or the sentence that says how to get the data.

    The limit holds for the attempt as a whole: a server that sends a byte a second, or a
    resolver that never answers, is left behind in a thread that does not outlive the process.
    """
    try:
        if timeout is None:
            return fetch()
        # Once more at once is the least that scikit-learn allows; it would wait for seconds.
        return _within(timeout, partial(fetch, n_retries=1, delay=0.05))
    except Exception as error:  # whatever it is, the advice is the same
        raise OSError(
            f"{title} is neither in the folder named by the environment variable SKDP_DATA "
            f"({os.environ.get('SKDP_DATA') or 'not set'}) nor could scikit-learn fetch it "
            f"({type(error).__name__}: {error}): connect to the Internet, or put {names} there, "
            f"from {page}."
        ) from error


def _within(seconds, action):
    outcome: queue.Queue = queue.Queue()

    def run():
        try:
            outcome.put((action(), None))
        except BaseException as error:
            outcome.put((None, error))

    threading.Thread(target=run, daemon=True).start()
    try:
        result, error = outcome.get(timeout=seconds)
    except queue.Empty:
        raise TimeoutError(f"not done after {seconds:g} seconds") from None
    if error is not None:
        raise error
    return result


def required_file(name, page):
    """Path of a file that must be there, because scikit-learn cannot fetch it."""
    path = local_file(name)
    if path is None:
        raise OSError(
            f"{name} is not in the folder named by the environment variable SKDP_DATA "
            f"({os.environ.get('SKDP_DATA') or 'not set'}), and scikit-learn has no fetcher for "
            f"it: put it there, from {page}."
        )
    return path


def finite_numbers(column):
    """Column of a file as finite floats."""
    try:
        numbers = column.astype(np.float64)
    except ValueError as error:
        raise ValueError(damaged_column(column.name)) from error
    if not np.isfinite(numbers).all():
        raise ValueError(damaged_column(column.name))
    return numbers


def damaged_column(name):
    """Message for a column that is not what its codebook says."""
    return (
        f"The data must hold the values of their codebook; column {name!r} of the file has "
        "others, so it is damaged or that of another data set."
    )
