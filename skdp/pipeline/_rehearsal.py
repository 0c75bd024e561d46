"""A fit without rows, up to the charge: what is wrong with a parameter should not cost one."""

import math
import sys
import warnings
from numbers import Real
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix
from sklearn.base import clone

from skdp.learner import without_callbacks
from skdp.pipeline._told import quiet
from skdp.privacy import BudgetLedger

__all__ = ["charge_of", "rehearse"]

_BLOCK_UNKNOWN = 8  # columns for a model, where nothing says how many there will be
_LIMIT_DENSE = 10**7  # numbers; more are not written out


class _Reached(Exception):
    """A fit came to its charge, so that its parameters are fine."""

    def __init__(self, guarantee):
        super().__init__()
        self.guarantee = guarantee


class _Stop(BudgetLedger):
    """Stands where a ledger would be, and stops what wants to be paid."""

    def __init__(self):
        pass

    def __repr__(self):
        return "a ledger that stops what wants to be paid"

    def charge(self, guarantee, label=""):
        raise _Reached(guarantee)

    def charge_stream(self, guarantee, **named):
        raise _Reached(guarantee)

    def check(self, guarantee, **named):
        raise _Reached(guarantee)


def rehearse(learn, free, X, y, n_samples, groups=None):
    """Fit steps to zeros and to the labels, each until it would charge a ledger.

    Estimators check their parameters, their labels and the number of rows before that.

    Parameters
    ----------
    learn, free : list of Leaf
        Steps with their parts of the budget, and those that learn nothing.

    X : {array-like, frame, sparse matrix}
        Of which only the kind is looked at.

    y : array-like or None

    n_samples : int

    groups : array-like or None
        Of all that learn.
    """
    owned = {} if groups is None else {"groups": groups}
    for leaf in [*free, *learn]:
        path, estimator = leaf.around or (leaf.path, leaf.estimator)
        estimator = without_callbacks(clone(estimator))
        within = leaf.path.removeprefix(path).removeprefix("__")
        within = f"{within}__" if within else ""
        n_features = leaf.n_features
        if n_features is None and not hasattr(estimator, "transform"):
            n_features = _BLOCK_UNKNOWN
        if not n_features:
            continue
        if leaf in learn:
            estimator.set_params(**{f"{within}ledger": _Stop(), f"{within}random_state": None})
        stated = _stated(estimator, n_features)
        if leaf in learn or stated is None:
            rows = _zeros(X, (n_samples if leaf in learn else 1, n_features), leaf.names)
        else:
            rows = _framed(X, stated, leaf.names)
        with warnings.catch_warnings(), quiet(path):
            warnings.simplefilter("ignore")  # the fit itself will warn
            try:
                if leaf in learn:
                    estimator.fit(rows, y, **owned)
                else:
                    estimator.fit(rows)
            except _Reached:
                continue


def charge_of(estimator, X, y):
    """Guarantee that a fit to these rows would charge, for which it uses none of them.

    Parameters
    ----------
    estimator : estimator
        With a budget. A clone of it is fitted, until it would charge a ledger.

    X : {array-like, frame, sparse matrix}

    y : array-like or None

    Returns
    -------
    Guarantee or None
        None of one that learns nothing.
    """
    estimator = without_callbacks(clone(estimator))
    estimator.set_params(ledger=_Stop(), random_state=None)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the fit itself will warn
        try:
            estimator.fit(X, y)
        except _Reached as reached:
            return reached.guarantee
    return None


def _zeros(X, shape, names):
    """Rows of the kind of ``X``, if their columns have names."""
    if math.prod(shape) > _LIMIT_DENSE:
        return csr_matrix(shape)
    return _framed(X, np.zeros(shape), names)


def _stated(estimator, n_features):
    """A row that a step with stated categories knows: 0 need not be one of them."""
    stated = getattr(estimator, "categories", None)
    if isinstance(stated, str | None) or len(stated) != n_features:
        return None
    if not all(len(known) for known in stated):
        return None
    first = [known[0] for known in stated]
    kind = float if all(isinstance(one, Real) for one in first) else object
    return np.array([first], dtype=kind)


def _framed(X, rows, names):
    """Rows as a frame where ``X`` is one, if their columns have names."""
    frames: Any = sys.modules.get(type(X).__module__.partition(".")[0])
    if not names or not hasattr(frames, "DataFrame"):
        return rows
    if frames.__name__ == "pandas":
        return frames.DataFrame(rows, columns=list(names))
    return frames.DataFrame(
        {name: list(column) for name, column in zip(names, rows.T, strict=True)}
    )
