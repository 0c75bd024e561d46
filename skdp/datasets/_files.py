"""Shared code of the fetchers: file locations and metadata of the rows."""

import os
import queue
import threading
from copy import deepcopy
from functools import partial
from pathlib import Path

import numpy as np
from sklearn.utils import Bunch

from skdp._validation import one_of, positive


class DataSet:
    """Files of a data set, and what is public of it.

    Parameters
    ----------
    *files : str
        Packed files below the folder ``SKDP_DATA``.

    page : str
        Where to get them.

    **public : dict
        What a Bunch of the set has besides its rows.
    """

    def __init__(self, *files, page, **public):
        self.files, self.page, self.public = files, page, public

    def load(self, read, fetch=None, timeout=None, files=None):
        """What ``read(*paths)`` makes of the files, or what ``fetch()`` of scikit-learn returns.

        Parameters
        ----------
        read : callable

        fetch : callable, default=None
            Takes ``n_retries`` and ``delay``. None where scikit-learn has no fetcher.

        timeout : float, default=None
            Limit in seconds of the fetch as a whole.

        files : tuple of str, default=None
            None are those of the set.
        """
        if timeout is not None:
            positive(timeout=timeout)
        files = files or self.files
        paths = [_local_file(name) for name in files]
        if all(paths):
            return read(*paths)
        reason, cause = "has no fetcher for the data", None
        if fetch is not None:
            try:
                return fetch() if timeout is None else _within(timeout, fetch)
            except Exception as error:  # whatever it is, the advice is the same
                reason = f"could not fetch the data ({type(error).__name__}: {error})"
                cause = error
        raise OSError(
            f"{' and '.join(files)} must be in the folder in the environment variable "
            f"SKDP_DATA ({os.environ.get('SKDP_DATA') or 'not set'}), as scikit-learn {reason}: "
            f"download missing files from {self.page}."
        ) from cause

    def bunch(self, data, target, return_X_y, **private):
        """Put together what a fetcher returns; public entries are copies."""
        if return_X_y:
            return data, target
        return Bunch(data=data, target=target, **private, **deepcopy(self.public))


class TableDataSet(DataSet):
    """Data set whose rows are a frame.

    Parameters
    ----------
    *files, page
        See `DataSet`.

    bounds, categories, indicators : default=()
        Of the columns by name, and names.

    **public : dict
        Further entries of a Bunch; ``feature_names`` are those above unless given.
    """

    def __init__(self, *files, page, bounds, categories=(), indicators=(), **public):
        known = {"bounds": bounds, "categories": dict(categories), "indicators": list(indicators)}
        names = [*bounds, *categories, *indicators]
        super().__init__(*files, page=page, **known, **{"feature_names": names, **public})

    def table(self, columns, fetch=None, timeout=None, **options):
        """Read a file with a header line, or fetch it, and check that it has these columns.

        Parameters
        ----------
        columns : list of str

        fetch, timeout
            See `DataSet.load`.

        **options : dict
            For ``pandas.read_csv``.
        """
        frame = self.load(partial(import_pandas().read_csv, **options), fetch, timeout)
        lacking = [name for name in columns if name not in frame.columns]
        if lacking:
            raise ValueError(
                f"{self.files[0]} must have a header line with {columns}; it lacks {lacking}: "
                f"download the file from {self.page}."
            )
        return frame

    def features(self, frame):
        """Columns of types that do not depend on the rows; refuse what the codebook lacks."""
        typed = {name: finite_numbers(frame[name]) for name in self.public["bounds"]}
        for name, values in self.public["categories"].items():
            typed[name] = listed(frame[name], values).astype(type(values[0]))
        return frame[self.public["feature_names"]].assign(**typed)

    def bunch(self, data, target, return_X_y, **private):
        """Put together what a fetcher returns, with a frame of all columns."""
        if not return_X_y:
            private["frame"] = data.assign(**{target.name: target})
        return super().bunch(data, target, return_X_y, **private)


def parts_of(subset):
    """Names of the parts that a fetcher was asked for."""
    one_of(("train", "test", "all"), subset=subset)
    return ["train", "test"] if subset == "all" else [subset]


def import_pandas():
    """Import pandas, which the package itself does not need."""
    try:
        import pandas
    except ImportError as error:
        raise ImportError("This data set is a DataFrame: install pandas to use it.") from error
    return pandas


def _local_file(name):
    """Path of a file, or of its unpacked form, below the folder ``SKDP_DATA``; else None."""
    folder = os.environ.get("SKDP_DATA")
    if not folder:
        return None
    packed = Path(folder).expanduser() / name
    return next((p for p in (packed, packed.with_suffix("")) if p.is_file()), None)


def _within(seconds, fetch):
    """What ``fetch()`` returns; the thread is left behind where it takes longer.

    A server that sends a byte a second, or a resolver that never answers, would hold others up.
    """
    outcome: queue.Queue = queue.Queue()

    def run():
        try:
            # Once more at once is the least that scikit-learn allows; it would wait for seconds.
            outcome.put((fetch(n_retries=1, delay=0.05), None))
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


def finite_numbers(column):
    """Column of a file as finite floats."""
    try:
        numbers = column.astype(np.float64)
    except ValueError as error:
        raise ValueError(damaged_column(column.name)) from error
    if not np.isfinite(numbers).all():
        raise ValueError(damaged_column(column.name))
    return numbers


def whole_numbers(column):
    """Column of a file as integers."""
    numbers = finite_numbers(column)
    if not (numbers == np.floor(numbers)).all():
        raise ValueError(damaged_column(column.name))
    return numbers.astype(np.int64)


def listed(column, values):
    """Column all of whose values are in the codebook."""
    if not column.isin(values).all():
        raise ValueError(damaged_column(column.name))
    return column


def damaged_column(name):
    """Message for a column that is not what its codebook says."""
    return (
        f"The data must hold the values of their codebook; column {name!r} of the file has "
        "others, so it is damaged or that of another data set."
    )
