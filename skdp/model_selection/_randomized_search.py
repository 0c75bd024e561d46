"""Randomized search within one privacy budget."""

import math
import warnings
from collections.abc import Mapping

from sklearn.model_selection import ParameterGrid, ParameterSampler
from sklearn.utils.parallel import Parallel, delayed

from skdp._defaults import pipeline as defaults
from skdp._random._source import noise_source
from skdp._recording import one_of_runs, without_facts
from skdp._validation import boolean, finite, is_auto, short_repr
from skdp.learner import charge, unchanged_on_error
from skdp.mechanisms import n_random_runs
from skdp.model_selection._candidates import about_the_rows
from skdp.model_selection._plans import (
    RandomPlanner,
    check_rows_of_runs,
    drawn_params,
    refit_share,
)
from skdp.model_selection._search import BaseDPSearch, check_names, value_of
from skdp.model_selection._searched import Searched, jobs_of
from skdp.pipeline._plan import quiet, seeds
from skdp.privacy import parallel, random_runs_gamma

_BLOCK_SEEDS = 3  # of the number, the runs and the refit; and of a run


class DPRandomizedSearch(BaseDPSearch):
    """Randomized search over parameters with one privacy guarantee.

    Each run draws parameters, fits a model to one public block of the rows, and scores it on
    another block under a guarantee. The number of runs is random and secret, and only the best run
    is released. This costs about 1.5 times as much as one run, or twice as much for pure runs, and
    hardly depends on the number of runs. The winner is then refitted to all rows. Use this class
    for large parameter spaces, where `DPGridSearch` would have to divide its budget among many
    candidates.

    Parameters
    ----------
    estimator : estimator
        A private estimator with default epsilon, delta, adjacency, random_state and ledger, or a
        `~skdp.pipeline.DPPipeline` of such steps.

    param_distributions : dict or list of dict
        As for :class:`~sklearn.model_selection.RandomizedSearchCV`: lists, or distributions with a
        method ``rvs``, including parameters of steps. Public: it must not be chosen by looking at
        the rows.

    epsilon : float, default=1.0
        Privacy budget of the whole search.

    delta : float, default=0.0
        0 gives pure differential privacy. A positive value should be well below 1 / n_samples.

    n_iter_mean : float, default=10
        Mean number of runs, greater than 1. Each search draws a new number, which is often far
        from the mean and has no upper limit.

    eta : "auto" or float, default="auto"
        Shape of the distribution of the number of runs, greater than -1; see
        `~skdp.privacy.RandomRunsDP`. A larger value makes very few runs less likely and the search
        more expensive: with ``n_iter_mean=10`` one search in ten has a single run for ``eta=1``,
        the geometric distribution, and one in four for ``eta=0``. "auto" is 0 for ``delta=0``,
        where pure runs cost ``2 + eta`` times their epsilon, and 1 otherwise.

    scoring : str, default=None
        Name of a score of `~skdp.metrics.dp_evaluate`, such as "accuracy", "roc_auc" or
        "neg_log_loss" for a classifier, "r2" or "neg_mean_absolute_error" for a regressor. None
        uses the metric of ``score``.

    blocks : "auto" or float, default="auto"
        Fraction of the rows used for scoring instead of fitting; "auto" is a fifth.

    shares : "auto" or dict, default="auto"
        Budget share of the "refit" or of the "runs", which get the remainder of the refit: of mu^2
        with a positive delta and of epsilon otherwise. "auto" gives three quarters to the refit.

    refit : bool, default=True
        Whether to refit the winner to all rows. Otherwise its first fit is kept, and the runs get
        the whole budget.

    row_key : str, int or callable, default=None
        Key that determines the block of a row; required under "add-remove" without groups, as for
        `DPGridSearch`.

    classes : list, default=None
        Public labels. None uses those of the estimator, or those present in ``y``, which are then
        treated as public.

    y_bounds : (float, float), default=None
        Public range of the target, for the score and for an estimator without bounds of its own.
        None uses the bounds of the estimator.

    adjacency : {"replace-one", "add-remove"}, default="replace-one"
        Neighbouring relation. Under "replace-one" the number of rows is public.

    n_jobs : int, default=None
        Number of parallel runs, as in joblib; 1 for rows of a source.

    random_state : None, int, RandomState or Generator, default=None
        None draws the noise, the parameters and the number of runs from the operating system. Any
        other value makes them reproducible, which voids privacy; use it for tests and figures
        only.

    ledger : BudgetLedger or path, default=None
        Ledger that each search charges once, before it uses any row.

    Attributes
    ----------
    best_estimator_ : estimator
        Best estimator, refitted to all rows; without ``refit``, its first fit. Released under
        ``guarantee_``.

    best_params_ : dict
        Parameters of the best run. Released under ``guarantee_``.

    best_score_ : float
        Noisy score of the first fit of the best run, on rows that this fit has not read. As the
        largest of many scores it is biased upwards, by up to several times the standard error of
        its noise. The refit has a larger share of the budget. Released under ``guarantee_``.

    best_evaluation_ : Evaluation
        ``best_score_`` with a confidence interval, which is valid for one run but not for the best
        of many. Released under ``guarantee_``.

    guarantee_ : ApproxDP
        Guarantee of the search, with its privacy profile. Public.

    budget_ : list of (str, float, str)
        Stages of the search, with their planned shares and guarantees as text. Public.

    classes_ : ndarray
        Labels, for classifiers. Public.

    n_features_in_ : int
        As in `~skdp.pipeline.DPPipeline`. Public.

    feature_names_in_ : ndarray of str
        As in `~skdp.pipeline.DPPipeline`. Public.

    See Also
    --------
    DPGridSearch : Compares a few given candidates.
    skdp.privacy.RandomRunsDP : Guarantee of the best of a random number of runs.

    Notes
    -----
    **Privacy.** Each record is in one block, determined by its position or its own key: runs are
    fitted to it or scored on it, at the same cost. The best run satisfies
    `~skdp.privacy.RandomRunsDP`, which is composed with the refit; ``guarantee_`` is the worse of
    both blocks. Everything is charged at once, before any row is used. The guarantee depends on
    the distribution of the number of runs: the number is sampled exactly and never truncated, and
    neither it nor the parameters and scores of other runs are stored. The run time of a search
    reveals much about that number. Only people trusted with the rows may observe the run time, and
    no progress is shown.

    With ``groups`` the guarantee protects users. All rows of a user are in one block, determined
    by the order in which users first appear or, under "add-remove", by a hash of their ID. Fits
    get the groups, and scores are those of `~skdp.metrics.dp_evaluate` with groups, which count
    each user once, with the mean over their rows.

    A run whose fit fails silently counts as the worst, because failures may depend on the rows. So
    does a run whose parameters make a fit cost something that was not found in advance, when all
    listed parameters and 64 public draws of distributions were checked. If a run refuses rows, or
    parameters that were not checked, the search ends with an error; otherwise one row would make
    that run the worst.

    If the number of rows of a fit times its mu (without a delta, its epsilon) is below 200, runs
    hardly distinguish parameters, and `fit` warns; below 60 it raises an error.

    References
    ----------
    Liu and Talwar, "Private selection from private candidates", STOC 2019. Papernot and Steinke,
    "Hyperparameter tuning with Renyi differential privacy", ICLR 2022. Koskela, Redberg and Wang,
    "Privacy profiles for private selection", ICML 2024.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.stats import loguniform
    >>> from skdp import DPKernelRidge, DPRandomizedSearch, config_context
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, size=(10_000, 1))
    >>> y = np.sin(5 * X[:, 0])
    >>> search = DPRandomizedSearch(
    ...     DPKernelRidge(y_bounds=(-1, 1)),
    ...     {"gamma": loguniform(0.01, 100.0)},
    ...     epsilon=1.0,
    ...     delta=1e-6,
    ...     random_state=0,
    ... )
    >>> with config_context(known_seeds=True):
    ...     search = search.fit(X[:8000], y[:8000])
    >>> bool(search.score(X[8000:], y[8000:]) > 0.8)  # synthetic data is public
    True
    >>> print(search.guarantee_)
    (epsilon=1, delta=1e-06)-differential privacy when replacing one record, by the best of 10 ...
    """

    def __init__(
        self,
        estimator,
        param_distributions,
        epsilon=1.0,
        delta=0.0,
        *,
        n_iter_mean=int(defaults.N_ITER_MEAN),
        eta="auto",
        scoring=None,
        blocks="auto",
        shares="auto",
        refit=True,
        row_key=None,
        classes=None,
        y_bounds=None,
        adjacency="replace-one",
        n_jobs=None,
        random_state=None,
        ledger=None,
    ):
        shared = estimator, delta, blocks, row_key, classes, y_bounds, adjacency
        super().__init__(*shared, random_state, ledger)
        self.scoring = scoring
        self.param_distributions = param_distributions
        self.epsilon = epsilon
        self.n_iter_mean = n_iter_mean
        self.eta = eta
        self.shares = shares
        self.refit = refit
        self.n_jobs = n_jobs

    def fit(self, X, y=None, groups=None):
        """Run the search within ``(epsilon, delta)``.

        Parameters
        ----------
        X : {array-like, frame, sparse matrix} of shape (n_samples, n_features), or source
            Rows in a form that the estimator accepts.

        y : array-like of shape (n_samples,) or str
            Labels or targets, or the name of their column in ``X``.

        groups : array-like of shape (n_samples,) or str, default=None
            User ID of each row, or the name of the ID column. All guarantees then protect users.
            All rows of a user are in one block, and each user counts once. The estimator must
            accept groups. None protects single rows.

        Returns
        -------
        self : object

        Raises
        ------
        ValueError
            If a parameter or the input is invalid, or the budget is too small.
        BudgetExceededError
            If the remaining budget of the ledger is too small; earlier results are kept.
        RuntimeError
            If no run could be fitted; the ledger stays charged, and earlier results are kept.
        """
        with unchanged_on_error(self):
            self._check_parameters()
            searched = Searched.of(self, X, y, groups, by_rows=False)
            blocks = self._two_blocks(searched.unit)
            plan = self._plan(searched, searched.sizes(blocks)[0])
            rows = searched.parts(blocks)
            _dry_run(plan, rows[0])
            charge(self, plan.guarantee)
            number, runs, last = seeds(self.random_state, _BLOCK_SEEDS)
            params, model, evaluation = self._best_of(plan, rows, number, runs)
            if model is None:
                raise RuntimeError("No run of this search could be fitted; no results are stored.")
            if self.refit:
                model = searched.fitted(params, plan.last, last)
                if not plan.covers(model, plan.lasts):
                    raise RuntimeError(
                        "The refit spent more than its planned budget; no results of this search "
                        "are stored."
                    )
            self._store(plan, params, model, evaluation)
        return self

    def _check_parameters(self):
        self._check_common()
        boolean(refit=self.refit)
        finite(n_iter_mean=self.n_iter_mean)
        try:
            random_runs_gamma(float(self.n_iter_mean), self._eta())
        except ValueError as error:
            raise ValueError(str(error).replace("n_runs_mean", "n_iter_mean")) from None
        given = self.param_distributions
        try:
            ParameterSampler(given, 1)
            parts = [given] if isinstance(given, Mapping) else list(given)
            for part in parts:
                ParameterGrid({name: one for name, one in part.items() if not hasattr(one, "rvs")})
            names = {name for part in parts for name in part}
        except (TypeError, ValueError, AttributeError):
            names = set()
        if not names:
            raise ValueError(
                "param_distributions must be a dict from parameters to lists of values or to "
                "distributions with a method rvs, or a list of such dicts; got "
                f"{short_repr(given)}."
            )
        check_names(names)

    def _eta(self):
        """Shape of the law of the number of runs."""
        if is_auto(self.eta):
            return 0.0 if self.delta == 0.0 else 1.0
        finite(eta=self.eta)
        return float(self.eta)

    def _plan(self, searched, size):
        share = refit_share(self.shares, refit=self.refit)
        law = float(self.n_iter_mean), self._eta()
        asked = self.param_distributions, self._target(searched.unit)
        plan = RandomPlanner(searched, *asked, share, *law, size).plan()
        if size is not None:
            check_rows_of_runs(size, plan.fit)
        return plan

    def _best_of(self, plan, rows, number, runs):
        """Parameters, model and evaluation of the best run."""
        source = noise_source(number)
        count = n_random_runs(eta=plan.eta, gamma=plan.gamma, random_state=source)  # never cut
        own = seeds(runs, _BLOCK_SEEDS * count)
        found = Parallel(n_jobs=jobs_of(self, rows[0]["X"]), verbose=0)(
            delayed(_run)(plan, self.param_distributions, rows, *own[i : i + _BLOCK_SEEDS])
            for i in range(0, _BLOCK_SEEDS * count, _BLOCK_SEEDS)
        )
        # Of equal runs the first: they are alike, whichever is taken.
        return max(found, key=lambda run: (run[1] is not None, _ranked(run[2])))


def _run(plan, distributions, rows, drawn, fitted, scored):
    """Draw parameters, fit with them to one block and score on the other; None where it fails."""
    params = drawn_params(distributions, drawn)
    claim = parallel([*plan.fits, plan.evaluation.guarantee])
    # How many runs there are is private: their releases are in no account but their models' own.
    with without_facts(), one_of_runs(claim, eta=plan.eta, gamma=plan.gamma):
        try:
            plan.searched.with_params(params, plan.fit)
        except ValueError:  # parameters that are none
            return None, None, None
        model = plan.searched.fitted_or_none(params, plan.fit, fitted, rows[0])
        if model is None or not plan.covers(model, plan.fits):
            return None, None, None
        with warnings.catch_warnings(), about_the_rows(), quiet():
            warnings.simplefilter("ignore")  # which run would warn may depend on the rows
            return params, model, plan.evaluation(model, **rows[1], noise=noise_source(scored))


def _ranked(evaluation):
    """Score, the least where the noise says nothing or there is none."""
    value = math.nan if evaluation is None else value_of(evaluation)
    return -math.inf if math.isnan(value) else value


def _dry_run(plan, fitted):
    """Find before the charge what is wrong with parameters or rows."""
    for params in plan.params:
        planned = plan.planned(params, plan.fit, plan.size)
        plan.searched.dry_run(params, plan.fit, planned, fitted)
        # Rows that score are among all rows, and would fail as they do; they are too few to fit.
        plan.searched.dry_run(params, plan.last or plan.fit)
