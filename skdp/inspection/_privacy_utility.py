"""Plot of scores against epsilon."""

import math
import textwrap
from dataclasses import KW_ONLY, dataclass
from numbers import Real
from typing import Any

import numpy as np
from sklearn.base import is_classifier
from sklearn.metrics import get_scorer

from skdp._validation import finite, positive, short_repr
from skdp.inspection._axes import OneAxes


@dataclass(eq=False, repr=False)
class PrivacyUtilityDisplay(OneAxes):
    """Plot of scores against epsilon, with scores without privacy for comparison.

    Use `from_search`, `from_cv_results`, `from_estimators` or numbers to create a display.

    Privacy: the plot shows the given numbers. Those of a private search are released under its
    guarantee. All others must come from public rows, such as public test rows: an exact score of
    private rows is a release that no guarantee covers.

    Parameters
    ----------
    epsilons : array-like of shape (n_epsilons,)

    scores : array-like of shape (n_epsilons,)
        Scores; NaN if missing.

    errors : array-like of shape (n_epsilons,), default=None
        Standard errors of the scores, drawn as bars.

    bands : array-like of shape (2, n_epsilons), default=None
        Lower and upper ends of a band.

    references : dict of str to float, default=None
        Scores without privacy, by name.

    target : float, default=None
        Target score.

    chosen : float, default=None
        Selected epsilon.

    price : str, default=None
        Text about the privacy budget spent on the shown scores.

    score_name : str, default="score"

    Attributes
    ----------
    figure_ : matplotlib Figure

    ax_ : matplotlib Axes

    lines_ : list of matplotlib Line2D
        The curve, then the references in the order given.

    errors_ : matplotlib ErrorbarContainer or None

    band_ : matplotlib PolyCollection or None

    chosen_ : matplotlib Line2D or None
        The mark of the selected epsilon.

    See Also
    --------
    skdp.model_selection.DPEpsilonSearch : Find the smallest epsilon that reaches a target score.

    Examples
    --------
    >>> from skdp.inspection import PrivacyUtilityDisplay
    >>> display = PrivacyUtilityDisplay(
    ...     [0.1, 1.0], [0.71, 0.84], [0.02, 0.01], references={"without privacy": 0.86}
    ... ).plot()
    >>> [line.get_label() for line in display.lines_]
    ['private', 'without privacy']
    """

    epsilons: Any
    scores: Any
    errors: Any = None
    _: KW_ONLY
    bands: Any = None
    references: dict[str, float] | None = None
    target: float | None = None
    chosen: float | None = None
    price: str | None = None
    score_name: str = "score"

    @classmethod
    def from_search(cls, search, *, references=None, ax=None, name=None, **kwargs):
        """Plot the stages of a search for the smallest epsilon.

        Parameters
        ----------
        search : DPEpsilonSearch
            Fitted search. Its noisy scores, the target and the budget spent are released, so the
            plot costs nothing more.

        references : dict of str to float, default=None
            Scores without privacy on public rows.

        ax, name, **kwargs
            See `plot`.

        Returns
        -------
        PrivacyUtilityDisplay
        """
        stages = getattr(search, "stages_", None)
        if not stages:
            raise ValueError(
                f"search must be a fitted DPEpsilonSearch with stages_; got {short_repr(search)}."
            )
        missed, spent = "" if search.reached_ else "target not reached; ", search.spent_
        point = f"epsilon={spent.epsilon:.3g}, delta={spent.delta:.3g}"
        score_name = search.scoring
        if not isinstance(score_name, str):
            score_name = "accuracy" if is_classifier(search.estimator) else "R^2"
        display = cls(
            [stage.epsilon for stage in stages],
            [stage.score for stage in stages],
            [stage.standard_error for stage in stages],
            references=references,
            target=search.target_score,
            chosen=search.best_epsilon_,
            price=f"{missed}spent by the whole search: {point}",
            score_name=score_name,
        )
        return display.plot(ax, name=name, **kwargs)

    @classmethod
    def from_cv_results(
        cls, search, *, parameter="epsilon", references=None, ax=None, name=None, **kwargs
    ):
        """Plot the results of a scikit-learn search on public rows.

        Parameters
        ----------
        search : GridSearchCV, RandomizedSearchCV or dict
            Search over epsilon that was fitted on public rows, or its ``cv_results_``. If other
            parameters were searched too, the best mean score of each epsilon is shown.

        parameter : str, default="epsilon"
            Name of the epsilon parameter, such as "model__epsilon".

        references : dict of str to float, default=None
            Scores without privacy.

        ax, name, **kwargs
            See `plot`.

        Returns
        -------
        PrivacyUtilityDisplay

        Notes
        -----
        **The rows must be public.** On private rows, ``cv_results_`` and this plot contain exact
        functions of the rows, which no charge of the fits covers.
        """
        results = getattr(search, "cv_results_", search)
        try:
            tried = np.array([float(point[parameter]) for point in results["params"]])
            means, spreads = results["mean_test_score"], results["std_test_score"]
        except (KeyError, TypeError, ValueError):
            raise ValueError(
                "search must have cv_results_ with one score and parameter "
                f"{short_repr(parameter)}; "
                f"got {short_repr(search)}."
            ) from None
        n_splits = sum(key.startswith("split") and key.endswith("_test_score") for key in results)
        epsilons = np.unique(tried)
        best = [_best(np.where(tried == epsilon, means, np.nan)) for epsilon in epsilons]
        errors = np.asarray(spreads)[best] / math.sqrt(max(n_splits - 1, 1))
        display = cls(
            epsilons,
            np.asarray(means)[best],
            errors,
            references=references,
            score_name="mean score",
        )
        return display.plot(ax, name=name, **kwargs)

    @classmethod
    def from_estimators(
        cls, estimators, X, y, *, scoring=None, references=None, ax=None, name=None, **kwargs
    ):
        """Plot scores of fitted estimators on public rows.

        Parameters
        ----------
        estimators : list of estimators
            Fitted estimators with a parameter ``epsilon``, their own or that of one step. Scores
            at equal epsilons are averaged, and their standard errors are drawn as bars.

        X, y : array-like
            Public rows and targets.

        scoring : str or callable, default=None
            Name of a scikit-learn scorer, or ``scoring(estimator, X, y)``. None uses the
            estimator's ``score``.

        references : dict of str to estimator or float, default=None
            Models without privacy, fitted on public rows, or their scores.

        ax, name, **kwargs
            See `plot`.

        Returns
        -------
        PrivacyUtilityDisplay
        """
        if not isinstance(estimators, list | tuple) or not estimators:
            raise ValueError(
                f"estimators must be a list of fitted estimators; got {short_repr(estimators)}."
            )
        score = scoring or (lambda estimator, X, y: estimator.score(X, y))
        score_name = "score"
        if isinstance(scoring, str):
            score, score_name = get_scorer(scoring), scoring
        tried = np.array([_epsilon_of(estimator) for estimator in estimators])
        found = np.array([score(estimator, X, y) for estimator in estimators])
        epsilons = np.unique(tried)
        groups = [found[tried == epsilon] for epsilon in epsilons]
        errors = None
        if all(len(group) > 1 for group in groups):
            errors = [group.std(ddof=1) / math.sqrt(len(group)) for group in groups]
        references = {
            label: float(one) if isinstance(one, Real) else score(one, X, y)
            for label, one in (references or {}).items()
        }
        means = [group.mean() for group in groups]
        display = cls(epsilons, means, errors, references=references, score_name=score_name)
        return display.plot(ax, name=name, **kwargs)

    def plot(self, ax=None, *, name=None, **kwargs):
        """Draw the scores.

        Parameters
        ----------
        ax
            See `PrivacyProfileDisplay.plot`.

        name : str, default=None
            Name of the curve in the legend. None means "private".

        **kwargs : dict
            Keyword arguments of matplotlib's ``plot`` for the curve.

        Returns
        -------
        self : PrivacyUtilityDisplay
        """
        epsilons, scores, errors, bands = self._checked()
        ax = self._axes(ax, None)
        style = {"marker": "o", "label": "private" if name is None else name, **kwargs}
        self.lines_ = ax.plot(epsilons, scores, **style)
        color = self.lines_[0].get_color()
        self.errors_ = self.band_ = self.chosen_ = None
        if errors is not None:
            self.errors_ = ax.errorbar(
                epsilons, scores, errors, fmt="none", ecolor=color, capsize=3
            )
        if bands is not None:
            self.band_ = ax.fill_between(epsilons, *bands, color=color, alpha=0.2, linewidth=0)
        references = self.references or {}
        for k, (label, score) in enumerate(references.items()):
            grey = str(0.65 * k / max(len(references) - 1, 1))
            self.lines_.append(ax.axhline(score, color=grey, linestyle="--", label=label))
        if self.target is not None:
            ax.axhline(self.target, color="tab:red", linestyle=":", label="target")
        if self.chosen is not None:
            label = f"chosen: epsilon {self.chosen:.3g}"
            self.chosen_ = ax.axvline(self.chosen, color=color, linestyle=":", label=label)
        ax.set(xscale="log", xlabel="epsilon; lower is more private", ylabel=self.score_name)
        ax.set_xticks(epsilons, [f"{epsilon:.3g}" for epsilon in epsilons])
        if ax.get_autoscalex_on() and epsilons[0] == epsilons[-1]:
            ax.set_xlim(epsilons[0] / 2, 2 * epsilons[0])  # one point has no range of its own
        ax.minorticks_off()
        if self.price is not None:
            ax.set_title("\n".join(textwrap.wrap(self.price, 80)), fontsize="small")
        ax.legend(fontsize="small")
        return self

    def _checked(self):
        """Check the numbers and return them in the order of epsilon."""
        epsilons = _numbers("epsilons", self.epsilons)
        if epsilons.ndim != 1 or not len(epsilons):
            raise ValueError(
                f"epsilons must be a list of numbers; got {short_repr(self.epsilons)}."
            )
        for epsilon in epsilons:
            positive(epsilons=float(epsilon))
        shape, order = epsilons.shape, np.argsort(epsilons, kind="stable")
        for label, score in (self.references or {}).items():
            finite(**{f"references[{label!r}]": score})
        scores = _numbers("scores", self.scores, shape)[order]
        errors, bands = self.errors, self.bands
        if errors is not None:
            errors = _numbers("errors", errors, shape)[order]
        if bands is not None:
            bands = _numbers("bands", bands, (2, *shape))[:, order]
        return epsilons[order], scores, errors, bands


def _numbers(name, values, shape=None):
    try:
        found = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        found = np.empty(0)
    if shape is not None and found.shape != shape:
        raise ValueError(f"{name} must hold numbers of shape {shape}; got {short_repr(values)}.")
    return found


def _best(scores):
    """Return the index of the highest finite score, or 0 if there is none."""
    return int(np.nanargmax(scores)) if np.isfinite(scores).any() else 0


def _epsilon_of(estimator):
    params = estimator.get_params(deep=True)
    named = [full for full in params if full == "epsilon" or full.endswith("__epsilon")]
    full = "epsilon" if "epsilon" in params else named[0] if len(named) == 1 else None
    if full is None:
        raise ValueError(
            "estimators must each have one parameter epsilon, their own or that of one step; "
            f"got {short_repr(estimator)}."
        )
    return float(params[full])
