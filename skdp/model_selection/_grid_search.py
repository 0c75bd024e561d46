"""Search over a grid of parameters within one budget."""

from inspect import signature

from sklearn.model_selection import ParameterGrid
from sklearn.utils.parallel import Parallel, delayed

from skdp._random._source import noise_source
from skdp._recording import with_progress
from skdp._validation import boolean, is_auto, one_of, short_repr
from skdp.learner import (
    CallbackSupportMixin,
    begun_fit,
    charge,
    progress_of,
    unchanged_on_error,
    with_callbacks,
)
from skdp.model_selection._candidates import regrets
from skdp.model_selection._plans import GridPlanner, check_rows_of_grid, plan_of, shares_of
from skdp.model_selection._search import BaseDPSearch, check_names
from skdp.model_selection._searched import Searched, jobs_of
from skdp.pipeline._plan import seeds

STRATEGIES = ("blocks", "split")
_BLOCK_SEEDS = 3  # of the choice, the score and the refit
# Results as they come, for callbacks; joblib before 1.3 has none.
_ONE_BY_ONE = {"return_as": "generator"} if "return_as" in signature(Parallel).parameters else {}


class DPGridSearch(CallbackSupportMixin, BaseDPSearch):
    """Search over a grid of parameters, under one guarantee.

    Each candidate is fitted to one public block of the rows with little of the budget. An
    exponential mechanism then chooses among them by their losses on the rows of another block. The
    chosen one is fitted again to all rows with most of the budget.

    Parameters
    ----------
    estimator : estimator
        A private estimator with defaults of epsilon, delta, adjacency, random_state and ledger,
        or a `~skdp.pipeline.DPPipeline` of steps that have them.

    param_grid : dict or list of dict
        As for :class:`~sklearn.model_selection.GridSearchCV`, parameters of steps included.
        Public: it must not be chosen by a look at the rows.

    epsilon : float, default=1.0
        Budget of the whole search.

    delta : float, default=0.0
        0 is pure differential privacy; a positive number, well below one over the number of
        rows, lets many candidates cost much less.

    scoring : str, default=None
        "accuracy", "neg_log_loss" or "neg_brier_score" of a classifier, "r2" or
        "neg_mean_absolute_error" or "neg_mean_squared_error" of a regressor: what has a bounded
        range in each row. None is that of ``score``. In the choice a row counts by how much more
        it loses than with the candidate that is best for it, at most a fifth of the range of a
        loss.

    blocks : "auto" or float, default="auto"
        Part of the rows by which candidates are compared. "auto" is a fifth, or as many as each
        candidate has with ``strategy="split"``.

    shares : "auto" or dict, default="auto"
        Parts of the budget: for the "fits" of all candidates, the "choice" among them, the "score"
        of the winner, and the "refit". They are parts of mu^2 with a positive delta and of epsilon
        otherwise. Fits and refit sum to at most 1, and so do choice, score and refit, because fits
        read other rows than choice and score. "auto" is .15 times the root of the number of
        candidates for all but the refit, .15 to .5. The last fit takes exactly what is left.

    refit : bool, default=True
        Whether the winner is fitted again, to all rows. Otherwise it stays as it was compared,
        and fits, choice and score have the whole budget.

    strategy : {"blocks", "split"}, default="blocks"
        "split" fits each candidate to a part of the rows of its own with all that is there for
        fits, as Chaudhuri, Monteleoni and Sarwate do.

    row_key : str, int or callable, default=None
        Used, and needed, under "add-remove" without groups, where rows move: the column, by
        name or position, that holds a key of each row, or a function of ``X`` that gives one of
        each row, made of that row alone, a number or a text. Its hash decides on the block. A
        column stays in ``X``: leave it out by the first step of a pipeline, or use a function that
        reads the index of a frame.

    classes : list, default=None
        Public labels. None takes those of the estimator, or those present in ``y``, which are
        treated as public.

    y_bounds : (float, float), default=None
        Public range of the target, for the score and for an estimator without its own. None
        takes that of the estimator.

    adjacency : {"replace-one", "add-remove"}, default="replace-one"
        Which data sets are neighbours. Under "replace-one" the number of rows is public.

    n_jobs : int, default=None
        Candidates that are fitted at the same time, as in joblib; one of rows of a source.

    random_state : None, int, RandomState or Generator, default=None
        None draws the noise from the operating system. Anything else makes it reproducible and
        void of privacy, for tests and figures.

    ledger : BudgetLedger or path, default=None
        Budget that each search is charged to, once, before it uses a row.

    Attributes
    ----------
    best_estimator_ : estimator
        The chosen estimator, fitted to all rows; without ``refit``, as it was compared. Released
        under ``guarantee_``.

    best_params_ : dict
        Parameters of the chosen candidate. Released under ``guarantee_``.

    best_index_ : int
        Its place in ``candidates_``. Released under ``guarantee_``.

    best_score_ : float
        Noisy score of its first fit, with little of the budget, on rows that this fit has not
        read. These rows took part in the choice, so that the score is a little optimistic for that
        fit; the last fit is mostly better. Released under ``guarantee_``.

    best_evaluation_ : Evaluation
        ``best_score_`` with its interval. Released under ``guarantee_``.

    candidates_ : list of dict
        Parameters of all candidates. Public.

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
    skdp.metrics.dp_evaluate : Scores a model within a budget.
    skdp.pipeline.DPPipeline : One budget for preparation and model.

    Notes
    -----
    **Privacy.** A record is in one block, which follows from its position or from its own key.
    About a record that candidates are fitted to, all fits and the last one are released; about one
    that they are compared by, the choice, the score and the last fit are. ``guarantee_`` is the
    larger of both compositions. It is the maximum of their profiles, since a maximum part by part
    would count too little. The choice costs the same however many candidates there are, the fits
    do not. All of it is charged at once, before a row is used. Labels, columns, the grid and,
    under "replace-one", the number of rows are public.

    With ``groups`` the guarantee is for users. All rows of a user are in one block, by the
    position of the user in the order in which users first come, or under "add-remove" by a hash
    of their id. Fits are given the groups, and the choice counts each user once,
    by the mean over their rows. Scores are those of `~skdp.metrics.dp_evaluate` with groups.

    A candidate whose fit fails counts as the worst and stays in the choice, and nothing says so:
    failures may depend on the rows. The parameters, scores and warnings of others are not kept.
    What is wrong with parameters is found before the charge. A candidate whose fit refuses a row,
    as one without an imputer does a missing value, ends the search with an error instead: that row
    would decide that it is the worst. A candidate that cannot predict a row of the comparison has
    the largest loss there.

    What the guarantee does not cover: the time that a search takes, errors about malformed input,
    of which keys that leave a block without rows are one, whether a solver fails, and other uses
    of the same data.

    Where the rows of a fit times its mu (without a delta: its epsilon) are fewer than 200, the
    fits hardly tell one candidate from another, and `fit` warns; below 60 it refuses. Under
    "add-remove", where their number is private, nothing is said. Whatever is fixed by knowledge or
    by public data is better than any search.

    References
    ----------
    Chaudhuri, Monteleoni and Sarwate, "Differentially private empirical risk minimization",
    JMLR 2011, section 6, for the choice by an exponential mechanism and for ``strategy="split"``.
    Dong, Durfee and Rogers, "Optimal differential privacy composition for exponential
    mechanisms", ICML 2020, for what a choice costs.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import DPGridSearch, DPKernelRidge
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, size=(10_000, 1))
    >>> y = np.sin(5 * X[:, 0])
    >>> search = DPGridSearch(
    ...     DPKernelRidge(y_bounds=(-1, 1)),
    ...     {"gamma": [0.001, 0.01, 10.0]},
    ...     epsilon=1.0,
    ...     delta=1e-6,
    ... )
    >>> search.fit(X, y).best_params_
    {'gamma': 10.0}
    >>> print(search.guarantee_)
    (epsilon=1, delta=1e-06)-differential privacy when replacing one record, by a search over 3 ...
    """

    def __init__(
        self,
        estimator,
        param_grid,
        epsilon=1.0,
        delta=0.0,
        *,
        scoring=None,
        blocks="auto",
        shares="auto",
        refit=True,
        strategy="blocks",
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
        self.param_grid = param_grid
        self.epsilon = epsilon
        self.shares = shares
        self.refit = refit
        self.strategy = strategy
        self.n_jobs = n_jobs

    @with_callbacks
    def fit(self, X, y=None, groups=None):
        """Search within ``(epsilon, delta)``, and fit what was chosen.

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
            If a parameter or the input is invalid, or the budget is too small for so many
            candidates. That a candidate refuses rows may be found after the charge.
        BudgetExceededError
            If the ledger cannot pay; what was found before stays.
        """
        context = begun_fit(self)
        with unchanged_on_error(self):
            candidates = self._check_parameters()
            searched = Searched.of(self, X, y, groups)
            target = self._target(searched.unit)
            for params in candidates:  # what is wrong with them is easier to say than to plan
                searched.dry_run(params, target)
            blocks = self._blocks(len(candidates), searched.unit)
            plan = self._plan(searched, candidates, blocks)
            *fitted, compared = searched.parts(blocks)
            fitted = self._rows_of_fits(fitted, len(candidates))
            self._dry_run(plan, searched, candidates, fitted)
            charge(self, plan.guarantee)
            *own, choice, score, last = seeds(self.random_state, len(candidates) + _BLOCK_SEEDS)
            with progress_of(self, context) as progress:
                jobs = jobs_of(self, searched.X)
                tasks = zip(candidates, plan.fits, fitted, own, strict=True)
                found = Parallel(n_jobs=jobs, verbose=0, **_ONE_BY_ONE)(
                    delayed(searched.tried)(*task, compared) for task in tasks
                )
                progressing = with_progress(found, "candidates", len(candidates))
                models, losses = zip(*progressing, strict=True)
                best = plan.choice(regrets(losses), noise_source(choice))
                model = models[best]
                scored = searched.constant() if model is None else model
                evaluation = plan.evaluation(scored, **compared, noise=noise_source(score))
                if self.refit:
                    with progress.part("fit to all rows"):
                        model = searched.fitted(candidates[best], plan.refits[best], last)
            if model is None:
                raise RuntimeError(
                    "The candidate that was chosen could not be fitted, and nothing of this "
                    "search is kept."
                )
            self._store(plan, candidates[best], model, evaluation)
            self.best_index_, self.candidates_ = best, candidates
        return self

    def _check_parameters(self):
        """Check what does not depend on the rows; the candidates are returned."""
        self._check_common()
        boolean(refit=self.refit)
        one_of(STRATEGIES, strategy=self.strategy)
        try:
            candidates = list(ParameterGrid(self.param_grid))
        except (TypeError, ValueError):
            raise ValueError(
                "param_grid must be a dict from parameters to lists of values, or a list of "
                f"such; got {short_repr(self.param_grid)}."
            ) from None
        if not candidates:
            raise ValueError(f"param_grid must not be empty; got {short_repr(self.param_grid)}.")
        check_names({name for params in candidates for name in params})
        return candidates

    def _blocks(self, n_candidates, unit):
        if self.strategy == "blocks":
            return self._two_blocks(unit)
        compared = 1 / (n_candidates + 1) if is_auto(self.blocks) else float(self.blocks)
        fractions = [(1.0 - compared) / n_candidates] * n_candidates + [compared]
        return self._blocks_of(fractions, unit)

    def _plan(self, searched, candidates, blocks):
        disjoint, target = self.strategy == "split", self._target(searched.unit)

        def shares(count):
            return shares_of(self.shares, count, refit=self.refit)

        shares(len(candidates))  # what is wrong with them is said first
        sizes = self._rows_of_fits(searched.sizes(blocks)[:-1], len(candidates))

        def planned(count):
            some = candidates[:count], target, shares(count), sizes[:count]
            return GridPlanner(searched, *some, disjoint=disjoint).plan(refit=self.refit)

        plan = plan_of(planned, len(candidates))
        if None not in sizes:
            check_rows_of_grid(
                min(sizes),
                target,
                len(candidates),
                lambda count: shares(count)["fits"],
                disjoint=disjoint,
            )
        return plan

    def _rows_of_fits(self, parts, n_candidates):
        """Of each candidate, what it is fitted to."""
        return list(parts) if self.strategy == "split" else [parts[0]] * n_candidates

    def _dry_run(self, plan, searched, candidates, fitted):
        """Check that no fit would cost more than was planned, nor fail at once."""
        if searched.public_count is None:
            fitted = [None] * len(candidates)  # how many rows a block has is nobody's to know
        for args in zip(candidates, plan.fits, plan.planned_fits, fitted, strict=True):
            searched.dry_run(*args)
        for again in zip(candidates, plan.refits, plan.planned_refits, strict=False):
            searched.dry_run(*again)
