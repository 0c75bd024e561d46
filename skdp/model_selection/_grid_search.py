"""Search over a grid of parameters within one budget."""

from inspect import signature

from sklearn.model_selection import ParameterGrid
from sklearn.utils.parallel import Parallel, delayed

from skdp._defaults import search as defaults
from skdp._progress import told
from skdp._random._source import noise_source
from skdp._validation import boolean, is_auto, one_of, shown
from skdp.learner import (
    CallbackSupportMixin,
    begun_fit,
    charge,
    check_budget,
    progress_of,
    unchanged_on_error,
    with_callbacks,
)
from skdp.model_selection._blocks import Blocks
from skdp.model_selection._candidates import (
    check_estimator,
    check_jobs,
    check_names,
    constant,
    fitted_again,
    regrets,
    rehearse_candidate,
    tried,
)
from skdp.model_selection._grid_plan import GridPlanner, check_rows, plan_of, shares_of
from skdp.model_selection._search import BaseDPSearch, Searched
from skdp.pipeline._plan import seeds
from skdp.privacy import compose

__all__ = ["DPGridSearch"]

_BLOCK_SEEDS = 3  # of the choice, the score and the refit


STRATEGIES = ("blocks", "split")
# Results as they come, of which callbacks are told; joblib before 1.3 has none.
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
        Used, and needed, under "add-remove" alone, where positions of rows move: the column, by
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
        Candidates that are fitted at the same time, as in joblib.

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

    division_ : list of (str, float, str)
        Parts of the search, their planned shares, and their guarantees in words. Public.

    classes_ : ndarray
        Labels, of a classifier. Public.

    n_features_in_ : int
        Number of columns, where ``X`` has two dimensions. Public.

    feature_names_in_ : ndarray of shape ``(n_features_in_,)``
        Names of the columns, when all are strings. Public.

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

    Rows are records here, and the fits have no ``groups``. Where users have several rows, let
    `~skdp.preprocessing.bound_contributions` bound how many, and
    `~skdp.privacy.user_guarantee` say what that makes of the guarantee.

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
        self.estimator = estimator
        self.param_grid = param_grid
        self.epsilon = epsilon
        self.delta = delta
        self.scoring = scoring
        self.blocks = blocks
        self.shares = shares
        self.refit = refit
        self.strategy = strategy
        self.row_key = row_key
        self.classes = classes
        self.y_bounds = y_bounds
        self.adjacency = adjacency
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.ledger = ledger

    @with_callbacks
    def fit(self, X, y=None):
        """Search within ``(epsilon, delta)``, and fit what was chosen.

        Parameters
        ----------
        X : {array-like, frame, sparse matrix} of shape (n_samples, n_features)
            What the estimator takes.

        y : array-like of shape (n_samples,)

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
            searched = Searched.of(self, X, y)
            for params in candidates:  # what is wrong with them is easier to say than to plan
                given = searched.estimator, params, self._target()
                rehearse_candidate(*given, None, searched.X, searched.y)
            blocks = self._blocks(len(candidates))
            plan = self._plan(searched, candidates, blocks.sizes(searched.n_samples))
            parts = blocks.parts(searched.X, searched.n_samples)
            parts = [searched.rows(part) for part in parts]
            fitted = self._rows_of_fits(parts, len(candidates))
            _rehearse(plan, searched, candidates, fitted)
            charge(self, plan.guarantee)
            *own, choice, score, last = seeds(self.random_state, len(candidates) + _BLOCK_SEEDS)
            with progress_of(self, context) as progress:
                models, losses = self._compared(plan, searched, candidates, own, fitted, parts[-1])
                best = plan.choice(regrets(losses), noise_source(choice))
                model = models[best]
                scored = constant(searched) if model is None else model
                evaluation = plan.evaluation(scored, *parts[-1], noise_source(score))
                if self.refit:
                    with progress.part("fit to all rows"):
                        again = plan.refits[best], last
                        model = fitted_again(searched, candidates[best], *again)
            if model is None:
                raise RuntimeError(
                    "The candidate that was chosen could not be fitted, and nothing of this "
                    "search is kept."
                )
            self._store(plan, candidates, best, model, evaluation)
        return self

    def _store(self, plan, candidates, best, model, evaluation):
        self.best_estimator_, self.best_index_ = model, best
        self.best_params_, self.candidates_ = candidates[best], candidates
        self.best_evaluation_ = self._told(evaluation)
        self.best_score_ = next(iter(evaluation.values.values())).value
        self.guarantee_ = self._stated(compose([*plan.frozen, plan.guarantee]))
        self.division_ = plan.table

    def _check_parameters(self):
        """Check what does not depend on the rows; the candidates are returned."""
        check_budget(self)
        boolean(refit=self.refit)
        one_of(STRATEGIES, strategy=self.strategy)
        self._check_blocks()
        check_jobs(self.n_jobs)
        check_estimator(self)
        try:
            candidates = list(ParameterGrid(self.param_grid))
        except (TypeError, ValueError):
            raise ValueError(
                "param_grid must be a dict from parameters to lists of values, or a list of "
                f"such; got {shown(self.param_grid)}."
            ) from None
        if not candidates:
            raise ValueError(f"param_grid must not be empty; got {shown(self.param_grid)}.")
        check_names({name for params in candidates for name in params})
        return candidates

    def _blocks(self, n_candidates):
        n_parts = n_candidates if self.strategy == "split" else 1
        automatic = 1 / (n_parts + 1) if self.strategy == "split" else float(defaults.HELD_OUT)
        compared = automatic if is_auto(self.blocks) else float(self.blocks)
        fractions = [(1.0 - compared) / n_parts] * n_parts + [compared]
        return Blocks.of(fractions, row_key=self.row_key, adjacency=self.adjacency)

    def _plan(self, searched, candidates, sizes):
        disjoint, count = self.strategy == "split", len(candidates)
        rows = [None] * count if sizes is None else self._rows_of_fits(sizes, count)
        target = self._target()
        shares_of(self.shares, count, refit=self.refit)  # what is wrong with them is said first
        searched.check_sizes(sizes)

        def share_of(count):
            return shares_of(self.shares, count, refit=self.refit)["fits"]

        def planned(count):
            shares = shares_of(self.shares, count, refit=self.refit)
            some = candidates[:count], target, shares, rows[:count]
            return GridPlanner(searched, *some, disjoint=disjoint).plan(refit=self.refit)

        plan = plan_of(planned, count)
        if sizes is not None:
            check_rows(min(rows), target, count, share_of, disjoint=disjoint)
        return plan

    def _rows_of_fits(self, parts, n_candidates):
        """Of each candidate, what it is fitted to."""
        return list(parts[:-1]) if self.strategy == "split" else [parts[0]] * n_candidates

    def _compared(self, plan, searched, candidates, seeds, fitted, compared):
        """Fit candidates, and tell what the rows that compare lose with each."""
        tasks = zip(candidates, plan.fits, fitted, seeds, strict=True)
        found = Parallel(n_jobs=self.n_jobs, verbose=0, **_ONE_BY_ONE)(
            delayed(tried)(searched.estimator, *task, searched.loss, compared) for task in tasks
        )
        return tuple(zip(*told(found, "candidates", len(candidates)), strict=True))


def _rehearse(plan, searched, candidates, fitted):
    """Check that no fit would cost more than was planned, nor fail at once."""
    count, whole = len(candidates), (searched.X, searched.y)
    if searched.public_count is None:
        fitted = [whole] * count  # how many rows a block has is nobody's to know
    for i, params in enumerate(candidates):
        args = searched.estimator, params
        rehearse_candidate(*args, plan.fits[i], plan.planned[i], *fitted[i])
        if plan.refits:
            rehearse_candidate(*args, plan.refits[i], plan.planned[count + i], *whole)
