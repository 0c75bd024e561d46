"""Times of fits beside scikit-learn's LogisticRegression, in turn on the same rows.

A slow moment of the machine meets all; what is compared are medians.
"""

import time
import warnings

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression

from skdp.exceptions import SolverError

__all__ = ["print_times"]


def _seconds(model, X, y):
    """Wall time of one fit; None where it could not be certified."""
    start = time.perf_counter()
    try:
        model.fit(X, y)
    except SolverError:
        return None
    return time.perf_counter() - start


def print_times(name, models, X, y, rounds, base=None):
    """Print a table of medians and of their ratios to scikit-learn's, after a warm-up.

    Parameters
    ----------
    name : str
        Of the data.

    models : dict of str to estimator

    X : {ndarray, CSR matrix or array}

    y : ndarray

    rounds : int

    base : estimator, default=None
        What ratios are to; None is a LogisticRegression.
    """
    base = LogisticRegression() if base is None else base
    fitted = {f"scikit-learn {type(base).__name__}": base, **models}
    times = {label: [] for label in fitted}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        for _ in range(rounds + 1):
            for label, model in fitted.items():
                times[label].append(_seconds(model, X, y))
    taken = {label: [s for s in found[1:] if s is not None] for label, found in times.items()}
    medians = {label: np.median(found) if found else np.nan for label, found in taken.items()}
    n_failed = sum(found.count(None) for found in times.values())
    certified = "all certified" if not n_failed else f"{n_failed} fits NOT certified"
    filled = f", {X.nnz / X.shape[0]:.0f} a row" if hasattr(X, "nnz") else ""
    print(f"{name}: {X.shape[0]} x {X.shape[1]}{filled}, {rounds} rounds, {certified}")
    first = next(iter(medians.values()))
    for label, median in medians.items():
        print(f"  {label:32s} {median:7.3f} s   ratio {median / first:5.2f}", flush=True)
