"""Score against epsilon, and what privacy costs."""

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
    """Score against epsilon, beside scores without privacy, with what was spent.

    Make one with `from_search`, `from_cv_results`, `from_estimators` or from numbers.

    Privacy: the picture shows the numbers that it is given. Those of a private search are released
    under its guarantee. All others must come from rows that are public, such as public test rows:
    an exact score of private rows is a release that no guarantee covers.

    Parameters
    ----------
    epsilons : array-like of shape (n_epsilons,)

    scores : array-like of shape (n_epsilons,)
        NaN where there is none.

    errors : array-like of shape (n_epsilons,), default=None
        Standard error of each score; the bars.

    bands : array-like of shape (2, n_epsilons), default=None
        Low and high ends of a band.

    references : dict of str to float, default=None
        Scores without privacy, by name.

    target : float, default=None
        Score that a model was to reach.

    chosen : float, default=None
        Epsilon that was chosen.

    price : str, default=None
        What was spent for all that is shown, in words.

    score_name : str, default="score"

    Attributes
    ----------
    figure_ : matplotlib Figure

    ax_ : matplotlib Axes

    lines_ : list of matplotlib Line2D
        The curve, then the references in their order.

    errors_ : matplotlib ErrorbarContainer or None

    band_ : matplotlib PolyCollection or None

    chosen_ : matplotlib Line2D or None
        The mark of the epsilon that was chosen.

    See Also
    --------
    skdp.model_selection.DPEpsilonSearch : Finds the least epsilon that reaches a target.

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
        """Draw the stages of a search for the least epsilon.

        Parameters
        ----------
        search : DPEpsilonSearch
            Fitted. Its noisy scores, the target and what was spent are released, so that the
            picture costs nothing more.

        references : dict of str to float, default=None
            Scores without privacy, of public rows.

        ax, name, **kwargs
            See `plot`.

        Returns
        -------
        PrivacyUtilityDisplay
        """
        stages = getattr(search, "stages_", None)
        if not stages:
            raise ValueError(
                f"search must be a fitted DPEpsilonSearch, with stages_; got {short_repr(search)}."
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
        """Draw what a search of scikit-learn found on public rows.

        Parameters
        ----------
        search : GridSearchCV, RandomizedSearchCV or dict
            Fitted on rows that are public, with epsilon among its parameters; or its
            ``cv_results_``. Where other parameters were searched, too, the best mean score of each
            epsilon is shown.

        parameter : str, default="epsilon"
            Name of epsilon among the parameters, such as "model__epsilon".

        references : dict of str to float, default=None
            Scores without privacy.

        ax, name, **kwargs
            See `plot`.

        Returns
        -------
        PrivacyUtilityDisplay

        Notes
        -----
        **The rows must be public.** On private rows ``cv_results_`` is a table of exact functions
        of them, whatever its fits are charged, and so is this picture.
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
        """Draw scores of fitted estimators on public rows.

        Parameters
        ----------
        estimators : list of estimators
            Fitted, each with a parameter ``epsilon``, itself or in one of its steps. Those of
            equal epsilons are averaged, and their standard errors are the bars.

        X, y : array-like
            Rows and targets that are public.

        scoring : str or callable, default=None
            Name of a scoring of scikit-learn's, or ``scoring(estimator, X, y)``. None is the
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
        """Draw.

        Parameters
        ----------
        ax
            As for `PrivacyProfileDisplay.plot`.

        name : str, default=None
            Name of the curve in the legend. None is "private".

        **kwargs : dict
            For matplotlib's ``plot``, which draws the curve.

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
        ax.set(xscale="log", xlabel="epsilon; less is more private", ylabel=self.score_name)
        ax.set_xticks(epsilons, [f"{epsilon:.3g}" for epsilon in epsilons])
        if ax.get_autoscalex_on() and epsilons[0] == epsilons[-1]:
            ax.set_xlim(epsilons[0] / 2, 2 * epsilons[0])  # one point has no range of its own
        ax.minorticks_off()
        if self.price is not None:
            ax.set_title("\n".join(textwrap.wrap(self.price, 80)), fontsize="small")
        ax.legend(fontsize="small")
        return self

    def _checked(self):
        """Numbers to draw, in the order of epsilon."""
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
        raise ValueError(
            f"{name} must hold numbers in the shape {shape}; got {short_repr(values)}."
        )
    return found


def _best(scores):
    """Place of the highest score that is one; the first where there is none."""
    return int(np.nanargmax(scores)) if np.isfinite(scores).any() else 0


def _epsilon_of(estimator):
    params = estimator.get_params(deep=True)
    named = [full for full in params if full == "epsilon" or full.endswith("__epsilon")]
    full = "epsilon" if "epsilon" in params else named[0] if len(named) == 1 else None
    if full is None:
        raise ValueError(
            "estimators must have one parameter epsilon each, themselves or in one step; "
            f"got {short_repr(estimator)}."
        )
    return float(params[full])
