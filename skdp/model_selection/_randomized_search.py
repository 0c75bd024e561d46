"""Search over random parameters within one budget, however many are drawn."""

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
    """Search over random parameters, under one guarantee that hardly grows with their number.

    A run draws parameters, fits with them to one public block of the rows, and scores the model on
    another under a guarantee. There is a random number of runs, which stays secret, and only the
    best of them is released: it costs about one and a half times what one run costs, or twice if
    runs are pure. It is then fitted again, to all rows. This is for large spaces of parameters,
    where `DPGridSearch` would have to divide its budget among many candidates.

    Parameters
    ----------
    estimator : estimator
        A private estimator with defaults of epsilon, delta, adjacency, random_state and ledger,
        or a `~skdp.pipeline.DPPipeline` of steps that have them.

    param_distributions : dict or list of dict
        As for :class:`~sklearn.model_selection.RandomizedSearchCV`: lists, or distributions with
        a method ``rvs``, of parameters, those of steps included. Public: it must not be chosen by
        a look at the rows.

    epsilon : float, default=1.0
        Budget of the whole search.

    delta : float, default=0.0
        0 is pure differential privacy; a positive number is well below one over the number of
        rows.

    n_iter_mean : float, default=10
        Mean of the number of runs, larger than 1. The number is drawn anew in each search, is
        often far from its mean, and nothing limits it.

    eta : "auto" or float, default="auto"
        Shape of its law, larger than -1; see `~skdp.privacy.RandomRunsDP`. The larger it is, the
        fewer searches have very few runs, and the more they cost: with ``n_iter_mean=10`` one
        search in ten has a single run at 1, the geometric law, and one in four at 0. "auto" is 0
        for ``delta=0``, where pure runs cost ``2 + eta`` times their epsilon, and 1 otherwise.

    scoring : str, default=None
        Name of one scoring that `~skdp.metrics.dp_evaluate` knows, such as "accuracy", "roc_auc"
        or "neg_log_loss" of a classifier, "r2" or "neg_mean_absolute_error" of a regressor. None
        is that of ``score``.

    blocks : "auto" or float, default="auto"
        Part of the rows that score and are not fitted to; "auto" is a fifth.

    shares : "auto" or dict, default="auto"
        Part of the budget of the "refit", or of the "runs", which have what the last fit leaves:
        of mu^2 with a positive delta and of epsilon otherwise. "auto" gives three quarters to the
        refit.

    refit : bool, default=True
        Whether the winner is fitted again, to all rows. Otherwise it stays as it was scored, and
        the runs have the whole budget.

    row_key : str, int or callable, default=None
        Needed under "add-remove" without groups, as for `DPGridSearch`: what decides on the block
        of a row.

    classes : list, default=None
        Public labels. None takes those of the estimator, or those present in ``y``, which are
        treated as public.

    y_bounds : (float, float), default=None
        Public range of the target, for the score and for an estimator without its own. None
        takes that of the estimator.

    adjacency : {"replace-one", "add-remove"}, default="replace-one"
        Which data sets are neighbours. Under "replace-one" the number of rows is public.

    n_jobs : int, default=None
        Runs at the same time, as in joblib; one of rows of a source.

    random_state : None, int, RandomState or Generator, default=None
        None draws the noise, the parameters and the number of runs from the operating system.
        Anything else makes them reproducible and void of privacy, for tests and figures.

    ledger : BudgetLedger or path, default=None
        Budget that each search is charged to, once, before it uses a row.

    Attributes
    ----------
    best_estimator_ : estimator
        The best estimator, fitted to all rows; without ``refit``, as it was scored. Released under
        ``guarantee_``.

    best_params_ : dict
        Parameters of the best run. Released under ``guarantee_``.

    best_score_ : float
        Noisy score of its first fit, on rows that this fit has not read. It is the largest of
        many, hence biased upwards, by up to several times the standard error of its noise; the
        last fit has more of the budget. Released under ``guarantee_``.

    best_evaluation_ : Evaluation
        ``best_score_`` with an interval, which holds for one run and not for the best of many.
        Released under ``guarantee_``.

    guarantee_ : ApproxDP
        What the search promises, with its privacy profile. Public.

    budget_ : list of (str, float, str)
        Parts of the search, their planned shares, and their guarantees in words. Public.

    classes_ : ndarray
        Labels, of a classifier. Public.

    n_features_in_ : int
        As of a `~skdp.pipeline.DPPipeline`. Public.

    feature_names_in_ : ndarray of str
        As of a `~skdp.pipeline.DPPipeline`. Public.

    See Also
    --------
    DPGridSearch : Compares a few candidates that are known beforehand.
    skdp.privacy.RandomRunsDP : What the best of a random number of runs satisfies.

    Notes
    -----
    **Privacy.** A record is in one block, which follows from its position or from its own key:
    runs are fitted to it, or scored by it, at the same cost. The best run satisfies
    `~skdp.privacy.RandomRunsDP`, with which the last fit composes; ``guarantee_`` is the worse of
    both blocks. All of it is charged at once, before a row is used. The promise rests on the law
    of the number of runs: it is drawn exactly, it is never cut, and neither it nor the parameters
    and scores of other runs are kept. How long a search takes tells much about that number. Nobody
    who is not trusted with the rows may observe the time, and no progress is shown.

    With ``groups`` the guarantee is for users. All rows of a user are in one block, by the
    position of the user in the order in which users first come, or under "add-remove" by a hash
    of their id. Fits are given the groups, and scores count each user once,
    by the mean over their rows. Scores are those of `~skdp.metrics.dp_evaluate` with groups.

    A run whose fit fails counts as the worst, and nothing says so, since failures may depend on
    the rows. So does a run whose parameters make a fit cost something that was not found
    beforehand, when all parameters of lists and 64 public draws of distributions were looked at. A
    run that refuses rows, or parameters which were not looked at, ends the search with an error:
    one row would decide that it is the worst.

    Where the rows of a fit times its mu (without a delta: its epsilon) are fewer than 200, runs
    hardly tell some parameters from others, and `fit` warns; below 60 it refuses.

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
        """Search within ``(epsilon, delta)``, and fit what was best.

        Parameters
        ----------
        X : {array-like, frame, sparse matrix} of shape (n_samples, n_features), or source
            What the estimator takes.

        y : array-like of shape (n_samples,) or str
            Labels or targets, or the name of their column in ``X``.

        groups : array-like of shape (n_samples,) or str, default=None
            Id of the user who owns each row, or the name of their column. All guarantees are then
            for users, each of whom has all rows in one block and counts once; the estimator must
            take groups. None protects single rows.

        Returns
        -------
        self : object

        Raises
        ------
        ValueError
            If a parameter or the input is invalid, or the budget is too small.
        BudgetExceededError
            If the ledger cannot pay; what was found before stays.
        RuntimeError
            If no run could be fitted; the ledger stays charged, and what was found before stays.
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
                raise RuntimeError(
                    "No run of this search could be fitted, and nothing of it is kept."
                )
            if self.refit:
                model = searched.fitted(params, plan.last, last)
                if not plan.covers(model, plan.lasts):
                    raise RuntimeError(
                        "The last fit spent more than was planned for it, and nothing of this "
                        "search is kept."
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
                f"distributions with a method rvs, or a list of such; got {short_repr(given)}."
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
