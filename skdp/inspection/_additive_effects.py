"""Additive effects of the columns of a linear model, with bands for the noise."""

import math
import warnings
from dataclasses import KW_ONLY, dataclass
from numbers import Real
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import Normalizer
from sklearn.utils.validation import check_is_fitted

from skdp._validation import non_negative, positive_int, short_repr
from skdp.inspection._axes import checked_axes
from skdp.preprocessing import DatetimeParts


@dataclass(frozen=True, eq=False)
class AdditiveEffect:
    """Additive effect of one column on the scores of a model.

    Parameters
    ----------
    column : str

    values : ndarray of shape (n_values,)
        Values of the column: a grid between its bounds, or its categories.

    curves : ndarray of shape (n_outputs, n_values)
        Contribution of each value to each score, minus the mean over ``values``.

    deviations : ndarray of shape (n_values,) or None
        Standard deviation of the noise in a curve, the same for each output; None if unknown.
    """

    column: str
    values: np.ndarray
    curves: np.ndarray
    deviations: np.ndarray | None


@dataclass(eq=False, repr=False)
class AdditiveEffectsDisplay:
    """Plot of the additive effect of each column on the scores of a linear model.

    Use `from_estimator` to create a display.

    Privacy: curves use only coefficients, public bounds and the law of the noise. No row is read,
    so the plot costs nothing beyond the fit. It cannot show the distribution of the rows, which
    is private.

    Parameters
    ----------
    effects : list of AdditiveEffect

    kind : {"exact", "bound", "approximation"} or None
        Whether the deviations are exact, bounds or approximations; see
        `~skdp.learner.CoefficientNoise`. None if the noise is unknown.

    classes : ndarray, default=None
        Labels of the curves if each column has several.

    Attributes
    ----------
    figure_ : matplotlib Figure

    axes_ : ndarray of matplotlib Axes
        One for each column.

    lines_ : list of list of matplotlib Line2D
        The curves of each column.

    bands_ : list of list of matplotlib PolyCollection
        The bands of each column; empty if the noise is unknown.

    See Also
    --------
    skdp.preprocessing.make_public_preprocessor : With ``n_splines``, makes rows for such models.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.pipeline import make_pipeline
    >>> from skdp.inspection import AdditiveEffectsDisplay
    >>> from skdp.linear_model import DPLogisticRegression
    >>> from skdp.preprocessing import BoundedSplineTransformer, RowNormClipper
    >>> X = np.random.default_rng(0).uniform(-1, 1, size=(500, 2))
    >>> y = abs(X[:, 0]) > 0.5
    >>> model = make_pipeline(
    ...     BoundedSplineTransformer(), RowNormClipper(), DPLogisticRegression(8.0, 1e-5)
    ... )
    >>> display = AdditiveEffectsDisplay.from_estimator(model.fit(X, y), columns=["x0"])
    >>> display.effects[0].curves.shape, display.kind
    ((1, 106), 'approximation')
    """

    effects: list[AdditiveEffect]
    kind: str | None = None
    _: KW_ONLY
    classes: np.ndarray | None = None

    @classmethod
    def from_estimator(cls, estimator, columns=None, *, n_values=101, ax=None, **kwargs):
        """Plot the effects of the columns of a fitted pipeline.

        Parameters
        ----------
        estimator : Pipeline
            Fitted pipeline. It begins with column transformers that use public or released
            numbers, such as those of `~skdp.preprocessing.make_public_preprocessor`, may then
            scale or clip rows, and ends with a linear model: a classifier, or a regressor such as
            `~skdp.linear_model.DPLinearRegression`. Only classifiers have bands of noise.

        columns : list of str, default=None
            Numeric or categorical columns to draw. None draws all numeric columns. Columns
            without names are called "x0", "x1" and so on.

        n_values : int, default=101
            Minimum number of values of a numeric column, including its knots.

        ax, **kwargs
            See `plot`.

        Returns
        -------
        AdditiveEffectsDisplay

        Notes
        -----
        A model of rows that are scaled or clipped to a norm is not strictly additive: the effect
        of a column depends on the norm of the row. Curves are for rows of typical norm, computed
        from values that are spread evenly between the bounds of their columns.

        The deviations come from ``coef_noise_``. They measure how much fresh noise would change
        the curves, not how much other rows would. For output perturbation they are exact. For
        logistic regression by gradient descent they are an approximation: the noise of each step,
        reduced by later steps according to the released second moments. If ``coef_noise_`` is
        None, no band is drawn. Noise in a released factor is ignored, except for descents on two
        classes. Bias is not included, such as that of a penalty, early stopping or gradient
        clipping.
        """
        positive_int(n_values=n_values)
        steps = _steps(estimator)
        model, parts = steps[-1], column_parts(steps)
        known = {name: part for part in parts for name in part.names}
        if columns is None:
            columns = [name for part in parts if part.is_numeric for name in part.names]
        columns = _checked_columns(columns, known)
        factor = row_factor(steps, parts, model)
        noise = getattr(model, "coef_noise_", None)
        coef = np.atleast_2d(model.coef_)
        effects = [
            known[name].effect(name, int(n_values), factor, coef, noise) for name in columns
        ]
        classes = model.classes_ if len(coef) > 1 else None
        kind = None if noise is None else noise.kind
        return cls(effects, kind, classes=classes).plot(ax, **kwargs)

    def plot(self, ax=None, *, n_deviations=2.0, **kwargs):
        """Draw the curves.

        Parameters
        ----------
        ax : matplotlib Axes or array of them, default=None
            One axes for each column. None creates a figure with at most three axes in a row.

        n_deviations : float, default=2.0
            Half-width of the bands in standard deviations of the noise; 0 draws no bands.

        **kwargs : dict
            Keyword arguments of matplotlib's ``plot`` for the curves.

        Returns
        -------
        self : AdditiveEffectsDisplay
        """
        import matplotlib.pyplot as plt

        non_negative(n_deviations=n_deviations)
        n = len(self.effects)
        if ax is None:
            width, height = min(3, n), math.ceil(n / min(3, n))
            figure = plt.figure(figsize=(3.2 * width, 2.4 * height), layout="constrained")
            ax = [figure.add_subplot(height, width, place + 1) for place in range(n)]
            for one in ax[1:]:
                one.sharey(ax[0])
        axes = checked_axes(ax, n, f"{n} axes, one per column")
        self.axes_, self.figure_ = axes, axes[0].figure
        drawn = [
            self._draw(one, effect, float(n_deviations), kwargs)
            for one, effect in zip(axes, self.effects, strict=True)
        ]
        self.lines_ = [lines for lines, _ in drawn]
        self.bands_ = [bands for _, bands in drawn]
        if self.classes is not None:
            axes[0].legend(title="class", fontsize="small")
        return self

    def _draw(self, ax, effect, n_deviations, kwargs):
        numeric = effect.values.dtype.kind == "f"
        places = effect.values if numeric else np.arange(len(effect.values))
        style = {} if numeric else {"marker": "o", "linestyle": "none"}
        lines, bands = [], []
        for output, curve in enumerate(effect.curves):
            label = None if self.classes is None else str(self.classes[output])
            lines += ax.plot(places, curve, **{"label": label, **style, **kwargs})
            if effect.deviations is None or not n_deviations:
                continue
            half, color = n_deviations * effect.deviations, lines[-1].get_color()
            if numeric:
                ends = (curve - half, curve + half)
                bands.append(ax.fill_between(places, *ends, color=color, alpha=0.2, linewidth=0))
            else:
                bands.append(ax.errorbar(places, curve, half, fmt="none", ecolor=color))
        ax.axhline(0.0, color="0.8", linewidth=0.8, zorder=0)
        if numeric and places[0] >= 0.0 and np.diff(places).max() > 10.0 * (places[1] - places[0]):
            # Knots in the logarithm; the first of them is where the scale begins to be one.
            least = float(places[np.searchsorted(places - places[0], 1.0)] - places[0])
            ax.set_xscale("symlog", linthresh=least)
            ax.set_xlim(places[0], places[-1])
        if not numeric:
            ax.set_xticks(places, [str(value) for value in effect.values], rotation=90)
        ax.set(xlabel=effect.column)
        if ax.get_subplotspec() is None or ax.get_subplotspec().is_first_col():
            ax.set(ylabel="added to the score")
        return lines, bands


class _Part:
    """A fitted transformer of some columns, and where its output is in the rows."""

    def __init__(self, transformer, names, start):
        self.transformer, self.names, self.start = transformer, names, start
        self.ranges = _ranges(transformer, len(self.names))
        self.is_numeric = self.ranges is not None
        self.categories = getattr(transformer, "categories_", ())

    def values(self, j, n_values):
        """Return a grid over a column's range, knots included, or its categories."""
        if not self.is_numeric:
            return np.asarray(self.categories[j])
        knots = self.ranges[j]
        between = max(1, math.ceil((n_values - 1) / (len(knots) - 1)))
        places = np.arange((len(knots) - 1) * between + 1) / between
        return np.interp(places, np.arange(len(knots)), knots)

    def outputs(self, j, values):
        """Return the output for values of one column, with the other columns constant."""
        kind = np.float64 if self.is_numeric else object
        rows = np.empty((len(values), len(self.names)), dtype=kind)
        for other in range(len(self.names)):
            rows[:, other] = self.values(other, 2)[0]
        rows[:, j] = values
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="X does not have valid feature names")
            out = self.transformer.transform(rows)
        if sparse.issparse(out):
            out = out.toarray()
        return np.asarray(out, dtype=np.float64)

    def effect(self, name, n_values, factor, coef, noise):
        """Return the effect of a column for rows of one norm."""
        j = self.names.index(name)
        values = self.values(j, n_values)
        out = self.outputs(j, values)
        centred = factor * (out - out.mean(axis=0))
        own = np.flatnonzero(np.ptp(out, axis=0) > 0.0)
        features = self.start + own
        curves = coef[:, features] @ centred[:, own].T
        spread = None if noise is None else noise.of(centred[:, own], features)
        values = values if self.is_numeric else values.astype(object)
        return AdditiveEffect(name, values, curves, spread)

    def mean_square(self):
        """Return the mean squared norm of the output for evenly spread values."""
        if not (self.is_numeric or len(self.categories)):
            return 1.0
        total = 0.0
        for j in range(len(self.names)):
            out = self.outputs(j, self.values(j, 101))
            own = np.ptp(out, axis=0) > 0.0
            total += float((out[:, own] ** 2).sum(axis=1).mean())
        return total


def _steps(estimator):
    """Return the fitted steps in order, including those of nested pipelines."""
    steps = flat_steps(estimator)
    if len(steps) < 2:
        raise ValueError(
            "estimator must be a pipeline of transformers that ends with a linear model; "
            f"got {short_repr(estimator)}."
        )
    check_is_fitted(steps[-1])
    coef: Any = getattr(steps[-1], "coef_", 0.0)
    is_one = np.ndim(coef) == 1 or np.shape(coef)[:1] == (1,)
    if not (is_one or (np.ndim(coef) == 2 and hasattr(steps[-1], "classes_"))):
        raise ValueError(
            "estimator must end with a linear model of classes or of one target, with coef_; "
            f"got {short_repr(steps[-1])}."
        )
    return steps


def flat_steps(estimator):
    steps = getattr(estimator, "steps_", None) or getattr(estimator, "steps", None)
    if not isinstance(steps, list):
        return [estimator]
    inner = [step for _, step in steps if step is not None and step != "passthrough"]
    return [step for part in inner for step in flat_steps(part)]


def column_parts(steps):
    """Return the column transformers, which are the first step or within it."""
    first = steps[0]
    for step in steps[1:-1]:
        if _longest_row(step) is None:
            raise ValueError(
                "estimator must have only a Normalizer or RowNormClipper between the column "
                f"transformers and the model; got {short_repr(step)}."
            )
    check_is_fitted(first)
    numbered = [f"x{i}" for i in range(first.n_features_in_)]
    given = list(getattr(first, "feature_names_in_", numbered))
    return _column_parts(first, given, 0)


def _column_parts(transformer, given, start):
    """Return the parts of a transformer of ``given`` columns; its output begins at ``start``."""
    of_dates = isinstance(transformer, Pipeline) and isinstance(transformer[0], DatetimeParts)
    if of_dates and len(transformer) == 2:
        dates, scaled = transformer
        return _column_parts(scaled, list(dates.get_feature_names_out(given)), start)
    if not isinstance(transformer, ColumnTransformer):
        return [_Part(transformer, given, start)]
    parts = []
    for name, part, columns in transformer.transformers_:
        if isinstance(part, str):  # "drop"
            continue
        own = _columns_of(columns, given)
        if not own:  # and nothing was fitted
            continue
        parts += _column_parts(part, own, start + transformer.output_indices_[name].start)
    return parts


def _columns_of(columns, given):
    """Return the column names of a part of a ColumnTransformer."""
    if isinstance(columns, str):
        return [columns]
    if isinstance(columns, slice):
        ends = columns.start, columns.stop
        first, last = (given.index(end) if isinstance(end, str) else end for end in ends)
        last = last + 1 if isinstance(columns.stop, str) else last  # names include the last
        return given[slice(first, last, columns.step)]
    columns = np.asarray(columns)
    if columns.dtype == bool:
        columns = np.flatnonzero(columns)
    return [column if isinstance(column, str) else given[column] for column in columns.tolist()]


def _longest_row(step):
    """Return the norm to which a step scales or clips rows, or None if it does neither."""
    norm = getattr(step, "norm", None)
    if isinstance(step, Normalizer):
        return 1.0 if norm == "l2" else None
    return float(norm) if isinstance(norm, Real) else None


def _ranges(transformer, n_columns):
    """Return the bounds or knots of each numeric column, or None."""
    knots = getattr(transformer, "knots_", None)
    if knots is not None:
        return [np.asarray(own, dtype=np.float64) for own in knots]
    bounds = getattr(transformer, "bounds_", None)
    if bounds is None or np.shape(bounds) != (n_columns, 2):
        return None
    return list(np.asarray(bounds, dtype=np.float64))


def row_factor(steps, parts, model):
    """Return the factor that scales the output of columns in a row of typical norm."""
    norm = math.sqrt(sum(part.mean_square() for part in parts))
    length = norm
    for step in steps[1:-1]:
        length = 1.0 if isinstance(step, Normalizer) else min(length, _longest_row(step))
    most = getattr(model, "x_norm_", getattr(model, "x_norm", math.inf))
    return min(length, float(most)) / norm if norm else 1.0


def _checked_columns(columns, known):
    if isinstance(columns, str):
        raise ValueError(f"columns must be a list of names; got {short_repr(columns)}.")
    columns = list(columns)
    drawable = [name for name, part in known.items() if part.is_numeric or len(part.categories)]
    unknown = [name for name in columns if name not in drawable]
    if unknown or not columns:
        raise ValueError(
            "columns must name columns that have a range or categories, among "
            f"{short_repr(drawable)}; "
            f"got {short_repr(unknown or columns)}."
        )
    return columns
