"""Where the files of the data sets are looked for."""

import os
from pathlib import Path

__all__ = ["local_file", "pandas_for", "unavailable"]


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


def unavailable(title, names, page, error):
    """Return the error that tells in one sentence how to get the data."""
    return OSError(
        f"{title} is neither in the folder named by the environment variable SKDP_DATA "
        f"({os.environ.get('SKDP_DATA') or 'not set'}) nor could scikit-learn fetch it "
        f"({type(error).__name__}: {error}): connect to the Internet, or put {names} there, "
        f"from {page}."
    )
