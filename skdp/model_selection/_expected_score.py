"""What score to expect, before anything is paid: fits on public or made-up rows."""

import warnings
from dataclasses import dataclass, field

import numpy as np
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.metrics import check_scoring

from skdp._config import config_context
from skdp._random._words import check_random_state, seed_sequence
from skdp._validation import positive, positive_int, shown
from skdp.exceptions import PrivacyWarning
from skdp.metrics._privacy_utility import PrivacyUtilityDisplay
from skdp.model_selection._expected_rows import MadeUpRows, PublicRows, named

__all__ = ["ExpectedScore", "expected_score"]

# An epsilon at which noise no longer matters. Rules for penalties that see even less of it hold
# nothing back, which scores worse.
_WITHOUT = 100.0


@dataclass(frozen=True, eq=False)
class ExpectedScore:
    """Scores of fits on public or made-up rows, as `expected_score` returns them.

    Parameters
    ----------
    epsilons : ndarray of shape (n_epsilons,)

    scores : ndarray of shape (n_epsilons, n_repetitions)
        NaN where a fit was refused.

    without_privacy : ndarray of shape (n_repetitions,)
        Scores of the same estimator at epsilon 100.

    constant : ndarray of shape (n_repetitions,)
        Scores of always predicting the most frequent class, or the mean.

    scoring : str
        What the scores are.

    made_up : bool
        Whether the rows were made up.

    refusals : dict of float to str, default={}
        For each epsilon at which fits were refused, why.

    See Also
    --------
    expected_score : Makes one.
    """

    epsilons: np.ndarray
    scores: np.ndarray
    without_privacy: np.ndarray
    constant: np.ndarray
    scoring: str
    made_up: bool
    refusals: dict[float, str] = field(default_factory=dict)

    @property
    def mean(self):
        """Mean score at each epsilon."""
        return self.scores.mean(axis=1)

    @property
    def standard_error(self):
        """Standard error of each mean; NaN with one repetition."""
        return _standard_error(self.scores)

    def quantile(self, q):
        """Quantile of the scores at each epsilon.

        Parameters
        ----------
        q : float from 0 to 1

        Returns
        -------
        ndarray of shape (n_epsilons,)
        """
        return np.quantile(self.scores, q, axis=1)

    def to_frame(self):
        """Return the table as a frame; needs pandas.

        Returns
        -------
        DataFrame
            One line an epsilon; the last, at infinity, is that without privacy.
        """
        import pandas as pd

        return pd.DataFrame(self._columns())

    def plot(self, ax=None, *, name=None, **kwargs):
        """Draw score against epsilon, with 10th and 90th percentiles; needs matplotlib.

        Parameters
        ----------
        ax, name, **kwargs
            See `~skdp.inspection.PrivacyUtilityDisplay.plot`.

        Returns
        -------
        PrivacyUtilityDisplay
        """
        display = PrivacyUtilityDisplay(
            self.epsilons,
            self.mean,
            self.standard_error,
            bands=np.stack([self.quantile(0.1), self.quantile(0.9)]),
            references={
                "without privacy": self.without_privacy.mean(),
                "always the same answer": self.constant.mean(),
            },
            score_name=self.scoring,
        )
        return display.plot(ax, name=name, **kwargs)

    def __str__(self):
        columns = self._columns()
        lines = [f"{self.scoring} on {'made-up' if self.made_up else 'public'} rows"]
        lines.append(" epsilon    mean  error     10%     90%")
        for epsilon, *cells in zip(*columns.values(), strict=True):
            mean, error, low, high = cells
            lines.append(f"{epsilon:8.4g}  {mean:6.3f}  {error:5.3f}  {low:6.3f}  {high:6.3f}")
        lines.append(f"always the same answer: {self.constant.mean():.3f}")
        for epsilon, why in self.refusals.items():
            lines.append(f"refused at epsilon={epsilon:g}: {why}")
        return "\n".join(lines)

    def _columns(self):
        scores = np.vstack([self.scores, self.without_privacy])
        return {
            "epsilon": np.append(self.epsilons, np.inf),
            "mean": scores.mean(axis=1),
            "standard_error": _standard_error(scores),
            "10%": np.quantile(scores, 0.1, axis=1),
            "90%": np.quantile(scores, 0.9, axis=1),
        }


def expected_score(
    estimator,
    n_samples,
    n_features=None,
    *,
    epsilons=(0.1, 0.3, 1.0, 3.0),
    X_public=None,
    y_public=None,
    best_score="auto",
    class_shares=None,
    scoring=None,
    n_repetitions=10,
    random_state=None,
):
    """Tell what score to expect with so many rows and columns, before any budget is spent.

    The estimator is fitted on rows that are made up or public, as many as there are of the private
    ones, at each epsilon and at 100, which is as good as without privacy, and scored on others.

    **Privacy.** Nothing is charged, because no private row is looked at: ``X_public`` and
    ``y_public`` *must be public*. What comes out are exact functions of them, without any
    guarantee. The numbers of rows and columns are what you state; under add-remove, where the
    number of rows is private, state a round one.

    Parameters
    ----------
    estimator : estimator
        Classifier or regressor with a parameter ``epsilon``, such as
        `~skdp.linear_model.DPLogisticRegression`, a `~skdp.pipeline.DPPipeline`, or a search. It
        is cloned. Its ledger and its ``random_state`` are not used.

    n_samples : int
        Number of rows of each fit.

    n_features : int, default=None
        Number of columns of the rows that are made up. Not to be given with ``X_public``.

    epsilons : list of float, default=(0.1, 0.3, 1.0, 3.0)
        Values of epsilon to try; equal ones count once.

    X_public : {array-like, sparse matrix, DataFrame}, default=None
        Public rows of the same kind as the private ones. In each repetition three in ten are set
        aside for the score, and of the others ``n_samples`` are drawn, with replacement if
        they are fewer. None makes rows up: see Notes. A pipeline that takes columns by name needs
        public rows, since columns that are made up have no names.

    y_public : array-like, default=None
        Targets of ``X_public``.

    best_score : float or "auto", default="auto"
        Of made-up rows: accuracy, or R^2, of the best prediction that is possible. "auto" is .85
        for classifiers and .8 for regressors.

    class_shares : list of float, default=None
        Of made-up rows: how frequent classes are. None makes two equally frequent ones, or those
        of the parameter ``classes``.

    scoring : str or callable, default=None
        As in scikit-learn. None is the score of the estimator: accuracy or R^2.

    n_repetitions : int, default=10
        Number of times that rows and noise are drawn.

    random_state : None, int, RandomState or Generator, default=None
        Seed for rows and noise that are the same each time. Nothing here is private.

    Returns
    -------
    ExpectedScore
        ``print`` shows it as a table; it has ``to_frame`` and ``plot``.

    Raises
    ------
    ValueError
        If a parameter is invalid, or a fit fails even at epsilon 100.

    See Also
    --------
    skdp.model_selection.DPEpsilonSearch : Finds the least epsilon that does, within a budget.
    skdp.inspection.PrivacyUtilityDisplay : The picture.

    Notes
    -----
    Made-up rows are simpler than yours may be; they tell what the noise costs among so many rows
    and columns rather than how well a model fits. Public rows of like kind tell both.

    Those for a classifier lie in the unit ball (of ``x_norm``), around a mean row that has half of
    the squared norm; the variance along the j-th column falls as ``1 / j``; log-odds of classes
    are linear. Those for a regressor lie in ``[-1, 1]^d`` and have three common factors; targets
    have a linear part, waves along five random directions, and normal noise, and lie within
    ``y_bounds``. All of these are drawn afresh in each repetition.

    Examples
    --------
    >>> from skdp.linear_model import DPLogisticRegression
    >>> from skdp.model_selection import expected_score
    >>> expected = expected_score(
    ...     DPLogisticRegression(delta=1e-6),
    ...     n_samples=1000,
    ...     n_features=50,
    ...     epsilons=[0.1, 3.0],
    ...     n_repetitions=5,
    ...     random_state=0,
    ... )
    >>> expected.mean.round(1)
    array([0.6, 0.8])
    """
    positive_int(n_samples=n_samples, n_repetitions=n_repetitions)
    check_random_state(random_state)
    epsilons = _checked_epsilons(epsilons)
    trial = _Trial(estimator, scoring)
    rows: MadeUpRows | PublicRows
    if X_public is None:
        rows = MadeUpRows(trial, n_features, best_score, class_shares)
    else:
        rows = PublicRows(X_public, y_public, n_features)
    seeded = random_state is not None
    root = seed_sequence(random_state) if seeded else np.random.SeedSequence()
    sequences = root.spawn(int(n_repetitions))
    table = np.full((len(epsilons) + 2, len(sequences)), np.nan)
    refusals: dict[float, ValueError] = {}
    for k, sequence in enumerate(sequences):
        train, test = rows.draw(int(n_samples), np.random.default_rng(sequence))
        seeds = sequence.generate_state(len(epsilons) + 1).tolist()
        table[-1, k] = trial.constant(train, test)
        # What fails here fails at every epsilon.
        table[-2, k] = trial.score(_WITHOUT, seeds[-1] if seeded else None, train, test)
        for j, epsilon in enumerate(epsilons):
            if epsilon in refusals:
                continue
            try:
                table[j, k] = trial.score(epsilon, seeds[j] if seeded else None, train, test)
            except ValueError as error:
                refusals[epsilon] = error
    return ExpectedScore(
        np.array(epsilons),
        table[:-2],
        table[-2],
        table[-1],
        trial.scoring,
        X_public is None,
        {epsilon: str(error) for epsilon, error in refusals.items()},
    )


class _Trial:
    """Fits and scores of clones, which have neither a ledger nor a seed of their own."""

    def __init__(self, estimator, scoring):
        if not (is_classifier(estimator) or is_regressor(estimator)):
            raise ValueError(
                f"estimator must be a classifier or a regressor; got {shown(estimator)}."
            )
        params = estimator.get_params(deep=True)
        names = ["epsilon"] if "epsilon" in params else named(params, "epsilon")
        if len(names) != 1:
            raise ValueError(
                "estimator must have one parameter epsilon; a DPPipeline divides one among its "
                f"steps; got {shown(estimator)} with {shown(names)}."
            )
        self.epsilon = names[0]
        self.seed = self.epsilon.removesuffix("epsilon") + "random_state"
        self.has_seed = self.seed in params
        self.estimator, self.params = estimator, params
        self.is_classifier = is_classifier(estimator)
        self.scorer = _scorer(estimator, scoring)
        self.scoring = scoring if isinstance(scoring, str) else "score"
        if scoring is None:
            self.scoring = "accuracy" if self.is_classifier else "R^2"
        # The ledger is shared by clones, and pays for nothing here.
        self.changed = dict.fromkeys(named(params, "ledger"))

    def public(self, name):
        """First value of a parameter of this name that is given, here or in a step."""
        found = (self.params[full] for full in named(self.params, name))
        return next((value for value in found if value is not None), None)

    def score(self, epsilon, seed, train, test):
        """Score of a fit, whose noise nobody needs to be warned of."""
        model = clone(self.estimator).set_params(**self.changed, **{self.epsilon: epsilon})
        if self.has_seed:
            model.set_params(**{self.seed: seed})
        with config_context(known_seeds=True), warnings.catch_warnings():
            warnings.simplefilter("ignore", PrivacyWarning)
            return self.scorer(model.fit(*train), *test)

    def constant(self, train, test):
        """Score of the same answer for each row."""
        dummy = DummyClassifier() if self.is_classifier else DummyRegressor()
        return self.scorer(dummy.fit(*train), *test)


def _scorer(estimator, scoring):
    try:
        return check_scoring(estimator, scoring)
    except (TypeError, ValueError):  # which lists all names that there are
        raise ValueError(
            "scoring must be None, a name that scikit-learn knows or a callable; got "
            f"{shown(scoring)}."
        ) from None


def _checked_epsilons(epsilons):
    try:
        found = [float(epsilon) for epsilon in epsilons]
    except (TypeError, ValueError):
        found = []
    if not found:
        raise ValueError(f"epsilons must be a list of positive numbers; got {shown(epsilons)}.")
    for epsilon in found:
        positive(epsilons=epsilon)
    return sorted(set(found))


def _standard_error(scores):
    n = scores.shape[1]
    return scores.std(axis=1, ddof=1) / np.sqrt(n) if n > 1 else np.full(len(scores), np.nan)
