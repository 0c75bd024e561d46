"""Grid search within one privacy budget."""

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
    """Grid search over parameters with one privacy guarantee.

    Each candidate is fitted to one public block of the rows with a small share of the budget. An
    exponential mechanism then chooses one by the losses on another block. The winner is refitted
    to all rows with most of the budget.

    Parameters
    ----------
    estimator : estimator
        A private estimator with default epsilon, delta, adjacency, random_state and ledger, or a
        `~skdp.pipeline.DPPipeline` of such steps.

    param_grid : dict or list of dict
        As for :class:`~sklearn.model_selection.GridSearchCV`, including parameters of steps.
        Public: it must not be chosen by looking at the rows.

    epsilon : float, default=1.0
        Privacy budget of the whole search.

    delta : float, default=0.0
        0 gives pure differential privacy. A positive value, well below 1 / n_samples, makes many
        candidates much cheaper.

    scoring : str, default=None
        "accuracy", "neg_log_loss" or "neg_brier_score" for a classifier; "r2",
        "neg_mean_absolute_error" or "neg_mean_squared_error" for a regressor: scores with a
        bounded range for each row. None uses the metric of ``score``. In the choice, a row counts
        by its excess loss over its best candidate, clipped to a fifth of the range of the loss.

    blocks : "auto" or float, default="auto"
        Fraction of the rows on which candidates are compared. "auto" is a fifth, or with
        ``strategy="split"`` the fraction that each candidate is fitted to.

    shares : "auto" or dict, default="auto"
        Budget shares of the "fits" of all candidates, the "choice" among them, the "score" of the
        winner, and the "refit": of mu^2 with a positive delta and of epsilon otherwise. Fits and
        refit sum to at most 1, and so do choice, score and refit, because fits read other rows
        than choice and score. "auto" gives all but the refit .15 times the square root of the
        number of candidates, between .15 and .5. The refit gets exactly the remainder.

    refit : bool, default=True
        Whether to refit the winner to all rows. Otherwise its first fit is kept, and fits, choice
        and score share the whole budget.

    strategy : {"blocks", "split"}, default="blocks"
        "split" fits each candidate to separate rows with the whole budget of the fits, as in
        Chaudhuri, Monteleoni and Sarwate.

    row_key : str, int or callable, default=None
        Key that determines the block of each row; required under "add-remove" without groups,
        since row positions may change. It is the name or position of a key column, or a function
        of ``X`` that returns one number or string per row, computed from that row alone. A key
        column stays in ``X``: drop it in the first step of a pipeline, or use a function that
        reads the index of a frame.

    classes : list, default=None
        Public labels. None uses those of the estimator, or those present in ``y``, which are then
        treated as public.

    y_bounds : (float, float), default=None
        Public range of the target, for the score and for an estimator without bounds of its own.
        None uses the bounds of the estimator.

    adjacency : {"replace-one", "add-remove"}, default="replace-one"
        Neighbouring relation. Under "replace-one" the number of rows is public.

    n_jobs : int, default=None
        Number of candidates fitted in parallel, as in joblib; 1 for rows of a source.

    random_state : None, int, RandomState or Generator, default=None
        None draws noise from the operating system. Any other value makes the noise reproducible,
        which voids privacy; use it for tests and figures only.

    ledger : BudgetLedger or path, default=None
        Ledger that each search charges once, before it uses any row.

    Attributes
    ----------
    best_estimator_ : estimator
        Chosen estimator, refitted to all rows; without ``refit``, its first fit. Released under
        ``guarantee_``.

    best_params_ : dict
        Parameters of the chosen candidate. Released under ``guarantee_``.

    best_index_ : int
        Index of the chosen candidate in ``candidates_``. Released under ``guarantee_``.

    best_score_ : float
        Noisy score of the first fit of the chosen candidate, which has a small share of the
        budget, on rows that this fit has not read. These rows were used in the choice, so the
        score is slightly optimistic for that fit; the refit is usually better. Released under
        ``guarantee_``.

    best_evaluation_ : Evaluation
        ``best_score_`` with a confidence interval. Released under ``guarantee_``.

    candidates_ : list of dict
        Parameters of all candidates. Public.

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
    skdp.metrics.dp_evaluate : Scores a model within a budget.
    skdp.pipeline.DPPipeline : One budget for preprocessing and model.

    Notes
    -----
    **Privacy.** Each record is in one block, determined by its position or its own key. For a
    record in the fitting block, all fits and the refit are released; for a record in the
    comparison block, the choice, the score and the refit are. ``guarantee_`` is the larger of both
    compositions. It is the maximum of their privacy profiles, since a maximum taken part by part
    would be too small. The cost of the choice does not depend on the number of candidates; the
    cost of the fits does. Everything is charged at once, before any row is used. Labels, columns,
    the grid and, under "replace-one", the number of rows are public.

    With ``groups`` the guarantee protects users. All rows of a user are in one block, determined
    by the order in which users first appear or, under "add-remove", by a hash of their ID. Fits
    get the groups, and the choice counts each user once, with the mean over their rows. Scores are
    those of `~skdp.metrics.dp_evaluate` with groups.

    A candidate whose fit fails silently counts as the worst and stays in the choice, because
    failures may depend on the rows. The parameters, scores and warnings of other candidates are
    not stored. Invalid parameters are found before the charge. If the fit of a candidate refuses a
    row, such as a missing value without an imputer, the search ends with an error; otherwise that
    row would make the candidate the worst. A candidate that cannot predict a comparison row gets
    the largest loss for it.

    The guarantee does not cover the run time of a search, errors about malformed input, including
    keys that leave a block empty, failures of a solver, or other uses of the same data.

    If the number of rows of a fit times its mu (without a delta, its epsilon) is below 200, the
    fits hardly distinguish the candidates, and `fit` warns; below 60 it raises an error. Under
    "add-remove", where that number is private, there is no warning or error. Parameters fixed by
    prior knowledge or public data are better than any search.

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
            If a parameter or the input is invalid, or the budget is too small for the number of
            candidates. An error about rows that a candidate refuses may come after the charge.
        BudgetExceededError
            If the remaining budget of the ledger is too small; earlier results are kept.
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
                    "The chosen candidate could not be fitted; no results of this search are "
                    "stored."
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
                "param_grid must be a dict from parameters to lists of values, or a list of such "
                f"dicts; got {short_repr(self.param_grid)}."
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
