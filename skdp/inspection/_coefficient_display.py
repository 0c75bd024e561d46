"""Forest plot of coefficients with their intervals."""

from dataclasses import dataclass

import numpy as np
from sklearn.base import is_classifier

from skdp._validation import boolean, short_repr
from skdp.inspection._axes import OneAxes
from skdp.inspection._coefficient_summary import coefficient_summary
from skdp.linear_model import CoefficientSummary
from skdp.linear_model._summary import deviate, in_percent

_HIDDEN = "cannot tell"


@dataclass(eq=False, repr=False)
class CoefficientDisplay(OneAxes):
    """Forest plot of the coefficients of a linear model with their intervals.

    Each interval is compared with the part that is due to sampling. Use `from_estimator` or
    `from_summary` to create a display.

    Privacy: estimates and standard errors are released with the model. The plot reads no row and
    costs nothing, at any level.

    Parameters
    ----------
    names : list of str

    estimates : ndarray of shape (n_coefficients,)

    intervals : ndarray of shape (n_coefficients, 2)
        Intervals for sampling error and noise together; NaN if noise hides the coefficient.

    sampling : ndarray of shape (n_coefficients, 2)
        Intervals for sampling error only, around the same estimates.

    level : float, default=0.95
        Confidence level of the intervals.

    exponentials : bool, default=False
        Whether to draw exponentials on a logarithmic axis.

    quantity : str, default="coefficient"
        Label of the horizontal axis.

    Attributes
    ----------
    figure_ : matplotlib Figure

    ax_ : matplotlib Axes

    line_ : matplotlib Line2D
        The estimates.

    intervals_ : matplotlib LineCollection
        The intervals, as thin lines.

    sampling_ : matplotlib LineCollection
        The intervals for sampling error only, as thick lines.

    See Also
    --------
    skdp.linear_model.CoefficientSummary : The same numbers as a table.

    Notes
    -----
    The variances of sampling and noise add up, not the standard errors. If noise doubles the width
    of an interval, three quarters of the variance are due to noise.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp.inspection import CoefficientDisplay
    >>> from skdp.linear_model import DPLinearRegression
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-0.5, 0.5, size=(5000, 3))
    >>> y = 0.2 + X @ [0.5, -0.3, 0.0] + 0.1 * rng.normal(size=5000)
    >>> model = DPLinearRegression(epsilon=1.0, y_bounds=(-1, 1)).fit(X, y)
    >>> display = CoefficientDisplay.from_estimator(model)
    >>> display.names, display.intervals.shape
    (['x0', 'x1', 'x2'], (3, 2))
    """

    names: list
    estimates: np.ndarray
    intervals: np.ndarray
    sampling: np.ndarray
    level: float = 0.95
    exponentials: bool = False
    quantity: str = "coefficient"

    @classmethod
    def from_estimator(
        cls, estimator, *, level=0.95, exponentials=False, ax=None, name=None, **kwargs
    ):
        """Plot the coefficients of a fitted model, without the intercept.

        Parameters
        ----------
        estimator : estimator
            See `~skdp.inspection.coefficient_summary`.

        level : float, default=0.95
            Confidence level of the intervals.

        exponentials : bool, default=False
            Whether to draw exponentials: odds ratios for classifiers, rate ratios for counts.

        ax, name, **kwargs
            See `plot`.

        Returns
        -------
        CoefficientDisplay
        """
        summary = coefficient_summary(estimator)
        options = {"level": level, "exponentials": exponentials}
        if exponentials:
            options["quantity"] = "odds ratio" if is_classifier(estimator) else "rate ratio"
        return cls.from_summary(summary, **options, ax=ax, name=name, **kwargs)

    @classmethod
    def from_summary(
        cls,
        summary,
        *,
        level=0.95,
        exponentials=False,
        quantity=None,
        ax=None,
        name=None,
        **kwargs,
    ):
        """Plot a coefficient summary, without the intercept.

        Parameters
        ----------
        summary : CoefficientSummary
            Summary such as ``summary_`` of a model or the result of its ``combined`` method.

        level : float, default=0.95
            Confidence level of the intervals.

        exponentials : bool, default=False
            Whether to draw exponentials.

        quantity : str, default=None
            Label of the horizontal axis. None means "coefficient" or "exponential of the
            coefficient".

        ax, name, **kwargs
            See `plot`.

        Returns
        -------
        CoefficientDisplay
        """
        if not isinstance(summary, CoefficientSummary):
            raise ValueError(f"summary must be a CoefficientSummary; got {short_repr(summary)}.")
        boolean(exponentials=exponentials)
        if exponentials and not summary.exponentials:
            raise ValueError(
                "exponentials must be False if coefficients are not logarithms of ratios, as in "
                "linear regression; got True."
            )
        drawn = list(range(len(summary.names) - summary.has_intercept))
        estimates, intervals = summary.estimates[drawn], summary.conf_int(level)[drawn]
        reach = deviate(level) * summary.error_parts[0]
        sampling = estimates[:, np.newaxis] + np.outer(reach[drawn], [-1.0, 1.0])
        sampling[np.isnan(intervals)] = np.nan
        if quantity is None:
            quantity = "exponential of the coefficient" if exponentials else "coefficient"
        display = cls(
            [summary.names[i] for i in drawn],
            estimates,
            intervals,
            sampling,
            float(level),
            exponentials,
            quantity,
        )
        return display.plot(ax, name=name, **kwargs)

    def plot(self, ax=None, *, name=None, **kwargs):
        """Draw the coefficients and intervals.

        Parameters
        ----------
        ax, name
            See `PrivacyProfileDisplay.plot`.

        **kwargs : dict
            Keyword arguments of matplotlib's ``plot`` for the estimates.

        Returns
        -------
        self : CoefficientDisplay
        """
        from matplotlib.ticker import LogLocator

        ax = self._axes(ax, None, height=1.7 + 0.32 * len(self.names))
        known = ~np.isnan(self.intervals[:, 0])
        places = np.arange(len(self.names))
        values, ends, inner = self.estimates, self.intervals, self.sampling
        if self.exponentials:
            values, ends, inner = np.exp(values), np.exp(ends), np.exp(inner)
            ax.set_xscale("log")
            ax.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
            ax.xaxis.set_major_formatter("{x:g}")
            ax.xaxis.set_minor_formatter("")
        neutral = 1.0 if self.exponentials else 0.0
        ax.axvline(neutral, color="0.7", linewidth=0.8, zorder=0)
        style = {"linestyle": "none", "marker": "|", "color": "black", "markersize": 9, **kwargs}
        told = f"{in_percent(self.level)} interval"
        self.intervals_ = ax.hlines(
            places[known], *ends[known].T, linewidth=1.4, color="tab:blue", label=told
        )
        self.sampling_ = ax.hlines(
            places[known],
            *inner[known].T,
            linewidth=6.0,
            color="tab:orange",
            label="sampling error only",
        )
        (self.line_,) = ax.plot(values[known], places[known], **{"label": "estimate", **style})
        for place in places[~known]:
            # Where noise hides a coefficient, its estimate would only stretch the axis.
            across = ax.get_yaxis_transform()
            ax.text(0.5, place, _HIDDEN, transform=across, ha="center", va="center", color="0.4")
        ax.set_yticks(places, self.names)
        ax.set(xlabel=self.quantity, ylim=(len(self.names) - 0.5, -0.5))
        if known.any():
            ax.legend(fontsize="small", loc="lower right", bbox_to_anchor=(1.0, 1.0), ncols=3)
        if name is not None:
            ax.set_title(name, pad=28.0 if known.any() else None)
        return self
