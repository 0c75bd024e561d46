"""Coefficients of a pipeline in units of its input columns."""

from itertools import pairwise
from numbers import Real

import numpy as np
from sklearn.utils.validation import check_is_fitted

from skdp._validation import short_repr
from skdp.inspection._additive_effects import column_parts, flat_steps, row_factor

_LIMIT_ROUNDING = 1e-9  # of what is linear


def coefficient_summary(estimator, *, references=None):
    """Return the coefficients of a fitted pipeline in units of its input columns.

    Privacy: the summary uses only released and public numbers, and costs nothing.

    Parameters
    ----------
    estimator : estimator or Pipeline
        Fitted model with ``summary_``, or a pipeline that ends with one: `~skdp.linear_model.
        DPLinearRegression`, or `~skdp.linear_model.DPLogisticRegression` and
        `~skdp.linear_model.DPPoissonRegressor` with ``inference=True``. The other steps may be
        column transformers, such as those of
        `~skdp.preprocessing.make_public_preprocessor`, and a step that scales or clips rows.

    references : dict, default=None
        Reference category of each categorical column, ``{column: category}``. The default is the
        first category of the encoder. A category that is unknown to the encoder has no indicator
        and is also allowed; a note in the summary then says so.

    Returns
    -------
    CoefficientSummary
        Rows are, in this order of columns: one for each scaled numeric column, per unit of the
        column; one for each category except the reference; and one for each segment of a curve,
        such as splines, between two knots, or for each of four segments if there are no knots.
        The intercept comes last. It is for a row with 0 in each scaled column, the first value of
        each curve and the reference categories.

    Raises
    ------
    ValueError
        If the model has no intervals, or a step is not supported.

    Notes
    -----
    If bounds or categories were learned from the same rows, intervals are conditional on them:
    they ignore how much other bounds would have changed the coefficients.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.pipeline import make_pipeline
    >>> from skdp.inspection import coefficient_summary
    >>> from skdp.linear_model import DPLinearRegression
    >>> from skdp.preprocessing import BoundedScaler, RowNormClipper
    >>> X = np.random.default_rng(0).uniform(20, 80, size=(5000, 2))
    >>> y = 100 + X @ [0.5, 0.0]
    >>> model = make_pipeline(
    ...     BoundedScaler((20, 80)),
    ...     RowNormClipper(1.5),
    ...     DPLinearRegression(8.0, x_norm=1.5, y_bounds=(100, 150)),
    ... )
    >>> summary = coefficient_summary(model.fit(X, y))
    >>> summary.names, bool(abs(summary.estimates[0] - 0.5) < 0.05)
    (('x0', 'x1', 'intercept'), True)
    """
    steps = flat_steps(estimator)
    model = steps[-1]
    check_is_fitted(model)
    if not hasattr(model, "summary_"):
        raise ValueError(
            "estimator must end with a model that has summary_, such as DPLinearRegression, or "
            f"DPLogisticRegression fitted with inference=True; got {short_repr(model)}."
        )
    summary = model.summary_
    if len(steps) < 2:
        return summary
    parts = column_parts(steps)
    factor = row_factor(steps, parts, model)
    size, n_features = len(summary.names), model.n_features_in_
    names, rows, base, compared = [], [], np.zeros(size), []
    references = dict(references or {})
    for part in parts:
        constant = getattr(part.transformer, "value", None)
        if not part.is_numeric and isinstance(constant, Real):  # in place of a column
            base[part.start] = constant
            continue
        for j, name in enumerate(part.names):
            reference = references.pop(name, _FIRST)
            told, changes, start, to = _changes(part, j, name, reference)
            names += told
            compared += [] if to is None else [f"{name} = {to}"]
            for change in changes:
                rows.append(_placed(change, part.start, size))
            base += _placed(start, part.start, size)
    rows = [factor * row for row in rows]
    if size > n_features:
        base = factor * base
        base[-1] = 1.0
        names, rows = [*names, summary.names[-1]], [*rows, base]
    if references:
        raise ValueError(
            "references must name categorical columns; got others among "
            f"{short_repr(list(references))}."
        )
    notes = tuple(_notes(steps, factor, compared))
    has_intercept = size > n_features
    return summary.combined(np.array(rows), names, has_intercept=has_intercept, notes=notes)


def _placed(change, start, size):
    row = np.zeros(size)
    row[start : start + len(change)] = change
    return row


_FIRST = object()
_GRID_PLACES, _GRID_PARTS = 65, 4  # a curve is looked at, and told, at as many


def _outputs(part, j, n_values):
    """Return values of a column and the outputs that depend on it."""
    values = part.values(j, n_values)
    out = part.outputs(j, values)
    return values, np.where(np.ptp(out, axis=0) > 0.0, out, 0.0)


def _alike(value, other):
    return value == other or (value != value and other != other)


def _changes(part, j, name, reference):
    """Return names, changes of the output, the output at the first value or 0, and reference."""
    if not (part.is_numeric or len(part.categories)):
        raise ValueError(
            f"estimator must have a range or categories for each column; got {name!r}."
        )
    values, out = _outputs(part, j, 2)
    if not part.is_numeric:
        listed = list(values)
        reference = listed[0] if reference is _FIRST else reference
        same = [_alike(value, reference) for value in listed]
        # What is not listed has zeros in place of an indicator.
        start = out[same.index(True)] if any(same) else np.zeros(out.shape[1])
        others = [i for i in range(len(listed)) if not same[i]]
        told = [f"{name} = {listed[i]}" for i in others]
        if not any(same):
            reference = f"{reference} (a category without an indicator)"
        return told, out[others] - start, start, reference
    if reference is not _FIRST:
        raise ValueError(f"references must name categorical columns; got {name!r} among them.")
    places, line = _outputs(part, j, _GRID_PLACES)
    slopes = np.diff(line, axis=0) / np.diff(places)[:, np.newaxis]
    if np.ptp(slopes, axis=0).max() <= _LIMIT_ROUNDING * np.abs(slopes).max():
        return [name], slopes[:1], out[0] - values[0] * slopes[0], None
    if len(values) == 2:  # a curve without knots that it states
        values, out = _outputs(part, j, _GRID_PARTS + 1)
    ends = pairwise(values)
    told = [f"{name} {low:g} to {high:g}" for low, high in ends]
    return told, np.diff(out, axis=0), out[0], None


def _notes(steps, factor, compared):
    if compared:
        yield f"Categories are compared to {', '.join(compared)}."
    if any(getattr(step, "guarantee_", None) is not None for step in _inner(steps[:-1])):
        yield "Bounds or categories were learned: intervals are conditional on them."
    if factor < 1.0 - _LIMIT_ROUNDING:
        yield (
            "Rows are scaled or clipped to one norm, so the effect of a column depends on the "
            "others: coefficients are for rows of typical norm. norm=None keeps units."
        )


def _inner(steps):
    """Yield steps and the parts of column transformers."""
    for step in steps:
        yield step
        for _, part, _ in getattr(step, "transformers_", ()):
            if not isinstance(part, str):
                yield from _inner(flat_steps(part))
