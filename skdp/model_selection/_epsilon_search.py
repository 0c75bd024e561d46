"""Search for the smallest epsilon whose model reaches a target score."""

import math
from dataclasses import astuple, dataclass, fields
from functools import cache

from skdp._config import config_context
from skdp._random._source import noise_source
from skdp._validation import boolean, finite, is_auto, positive, short_repr
from skdp._views import note, table
from skdp.learner import (
    CallbackSupportMixin,
    begun_fit,
    progress_of,
    unchanged_on_error,
    warn_of_seed,
    with_callbacks,
)
from skdp.model_selection._candidates import warn_user
from skdp.model_selection._choice import StageCharges
from skdp.model_selection._epsilon_grid import EpsilonGrid, score_noise
from skdp.model_selection._search import BaseDPSearch
from skdp.model_selection._searched import Searched
from skdp.pipeline._plan import quiet, seeds
from skdp.privacy import ApproxDP, compose

_TOLERANCE_COARSE = 0.05  # standard error, in ranges of a score, that is worth a warning
# Scorings that are means of losses with a range.
_MEANS = (
    *("accuracy", "neg_log_loss", "neg_brier_score"),
    *("neg_mean_squared_error", "neg_mean_absolute_error"),
)


def _range(searched):
    """Worst and best value of the scoring."""
    if searched.scoring == "r2":
        return -math.inf, 1.0
    if searched.loss is None:
        return 0.0, 1.0
    return searched.loss.score(1.0), searched.loss.score(0.0) + 0.0  # not -0


_LIMIT_EPSILON = 8.0
_EX_POST = "ex-post: of this outcome, stated after it was seen"
# Standard errors that a score must be above the target, by whether stages are pure: then one too
# many costs three times as much, and not twice.
_MARGIN = {True: 0.5, False: 1.0}


@dataclass(frozen=True)
class SearchStage:
    """Released results of one stage of a `DPEpsilonSearch`.

    Parameters
    ----------
    epsilon : float
        Budget of the fit.

    score : float
        Noisy score on rows that the model was not fitted to; NaN if the noise is too large.

    standard_error : float
        Standard error of the score, from noise and sampling together.

    spent : float
        Epsilon of all stages up to this one, including scores.
    """

    epsilon: float
    score: float
    standard_error: float
    spent: float


class DPEpsilonSearch(CallbackSupportMixin, BaseDPSearch):
    """Search for the smallest epsilon whose model reaches a target score.

    Models are fitted to a public part of the rows with increasing budget. Each is scored under a
    guarantee on the other part, until one reaches the target. The total cost is little more than
    that of the last model alone: if mu doubles at each stage, all earlier stages together have a
    third of its squared mu.

    Parameters
    ----------
    estimator : estimator
        Private estimator or `~skdp.pipeline.DPPipeline`, with default epsilon, delta, adjacency,
        random_state and ledger. `fit` fits clones of it.

    target_score : float
        Score that the model must reach, in scikit-learn's sign and units.

    scoring : str, default=None
        Name of a score with a bounded range, such as "accuracy", "roc_auc" or "neg_log_loss" for a
        classifier, "r2" or "neg_mean_absolute_error" for a regressor. None is "accuracy" or "r2".

    epsilons : "auto" or list of float, default="auto"
        Budget of the fit at each stage, at ``delta``. From one stage to the next, epsilon must at
        least double if ``delta`` is 0, and mu otherwise. "auto" starts at the mu at which a score
        exceeds its noise, doubles mu, or multiplies epsilon by e if ``delta`` is 0, and ends such
        that all stages together cost ``max_epsilon``.

    delta : float, default=0.0
        Delta of the whole search. 0 gives pure differential privacy: epsilons then add up, and all
        stages before the last one cost up to half as much as the last one.

    max_epsilon : float, default=8.0
        Cost of an automatic grid if no stage reaches the target, as stated by ``guarantee_``.

    blocks : "auto" or float, default="auto"
        Fraction of the rows used for scoring instead of fitting; "auto" is a fifth.

    row_key : str, int or callable, default=None
        Required under adjacency="add-remove" without groups: a column, or a function of ``X``,
        with a distinct key per row that determines the part of the row.

    classes : list of labels, default=None
        Public labels of a classifier. None uses the labels present in all of ``y`` and treats them
        as public.

    y_bounds : (float, float), default=None
        Public bounds of the target of a regressor, which bound the range of scores. None uses
        those of the estimator.

    adjacency : {"replace-one", "add-remove"}, default="replace-one"
        Neighbouring relation. Under "replace-one" the number of rows is public; otherwise
        ``epsilons`` must be given.

    verbose : bool, default=False
        Whether to print the resolution of the scores before the fit, and each score when it is
        released.

    random_state : None, int, RandomState or Generator, default=None
        None draws noise from the operating system. Any other value makes the noise reproducible,
        which voids privacy; use it for tests and figures only.

    ledger : BudgetLedger or path, default=None
        Ledger whose remaining budget must cover all stages; it is charged for each stage before
        the stage begins.

    Attributes
    ----------
    best_estimator_ : estimator
        Model of the last stage. Released under ``guarantee_``.

    best_epsilon_ : float
        Epsilon of the fit of the last stage, at ``delta``, or at a fraction of it if the deltas of
        stages add up, as ``best_estimator_.guarantee_`` states. Released under ``guarantee_``.

    best_score_ : float
        Noisy score of that model, on rows that it was not fitted to. It is optimistic, by less
        than a standard error, because the search stopped at this score. Released under
        ``guarantee_``.

    reached_ : bool
        Whether the score was far enough above the target, see Notes. If not, the model is from the
        last stage. Released under ``guarantee_``.

    stages_ : list of SearchStage
        Results of each stage that was run: ``epsilon`` of the fit, the noisy ``score``, its
        ``standard_error`` from noise and sampling together, and ``spent``, the epsilon of all
        stages so far, quoted like ``spent_``. Released under ``guarantee_``.

    guarantee_ : Guarantee
        Guarantee of the whole search: of all its stages, regardless of where it stopped. It is
        known before the search. Report this one as the guarantee of the procedure. Public.

    spent_ : ApproxDP
        Ex-post cost of the stages that were run, for a record of the part with the larger loss. If
        any set of outcomes has probability ``P`` on these rows and ``P'`` on a neighbour, ``P`` is
        at most the sum over stages of ``exp(epsilon_j) P'`` of the outcomes that stop at stage
        ``j``, plus delta. It is not a bound on the loss of this outcome: with a positive delta the
        loss exceeds ``spent_`` with a probability that can be many times delta. It is quoted at
        delta divided by the number of stages, so that the deltas of all stages add up to delta;
        after the last stage that may exceed ``guarantee_``, which holds as well. A ledger that can
        be charged stage by stage stores it, see Notes. Released under ``guarantee_``.

    resolution_ : float or None
        Standard error of a score at the target in the last stage, from public numbers. Smaller
        differences cannot be detected. None if public numbers do not suffice. Public.

    classes_ : ndarray
        Labels of the estimator, if it has any. Public.

    n_features_in_ : int
        As in `~skdp.pipeline.DPPipeline`. Public.

    feature_names_in_ : ndarray of str
        As in `~skdp.pipeline.DPPipeline`. Public.

    See Also
    --------
    DPGridSearch : Search over other parameters, at one budget.
    skdp.inspection.PrivacyUtilityDisplay : Plot of the stages.

    Notes
    -----
    **Privacy.** Each record is in one of two public parts, determined by its position or its key.
    Models are fitted to records of one part and scored on records of the other, at every stage. A
    fit and the score of its model cost the same mu, or the same epsilon if they are pure. A record
    therefore loses the cost of all fits or of all scores, and ``guarantee_`` is the worse of both.
    The stopping point follows from scores that were released under the guarantee. Nothing else
    about models below the target is stored.

    With ``groups`` the guarantee protects users. All rows of a user are in one block, determined
    by the order in which users first appear or, under "add-remove", by a hash of their ID. Fits
    get the groups, and scores are those of `~skdp.metrics.dp_evaluate` with groups, which count
    each user once, with the mean over their rows.

    The ledger must have enough budget for all stages, because any may be the last. If all its
    charges and those of the search are Gaussian, or if all are pure and its delta is 0, the search
    has one ledger entry, which grows before each stage: the sizes of such charges may depend on
    released results. Later charges must then be of that kind too. A ledger accepts others, but its
    total is proven to cover all charges together only if their sizes were fixed beforehand.
    Otherwise all stages are charged at once, and nothing is refunded. A search that is
    interrupted, or refused because the ledger was charged elsewhere in the meantime, stays charged
    for the stages that it began and keeps the old model.

    A stage reaches the target if its score exceeds it by one standard error, so that a model below
    the target is rarely released as reaching it. If ``delta`` is 0, where an unnecessary stage
    costs the most, half a standard error suffices.

    The charge of a fit depends on its parameters, the columns, and the public number of rows. A
    fit that fails for another reason ends the search with its error; the ledger stays charged.

    References
    ----------
    Rogers, Roth, Ullman and Vadhan, "Privacy odometers and filters: pay-as-you-go composition",
    NeurIPS 2016.

    Ligett, Neel, Roth, Waggoner and Wu, "Accuracy first: selecting a differential privacy level
    for accuracy-constrained ERM", NIPS 2017, for the question and for ex-post privacy.

    Smith and Thakurta, "Fully adaptive composition for Gaussian differential privacy", 2022.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import DPEpsilonSearch, DPLogisticRegression, config_context
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, size=(20000, 3))
    >>> y = X[:, 0] + 0.2 * rng.normal(size=20000) > 0
    >>> search = DPEpsilonSearch(DPLogisticRegression(), 0.85, delta=1e-6, random_state=0)
    >>> with config_context(known_seeds=True):
    ...     search = search.fit(X, y)
    >>> search.reached_, search.best_epsilon_
    (True, 0.1548)
    >>> round(search.spent_.epsilon, 2), round(search.guarantee_.epsilon, 2)
    (0.17, 8.0)
    """

    def __init__(
        self,
        estimator,
        target_score,
        scoring=None,
        epsilons="auto",
        delta=0.0,
        *,
        max_epsilon=_LIMIT_EPSILON,
        blocks="auto",
        row_key=None,
        classes=None,
        y_bounds=None,
        adjacency="replace-one",
        verbose=False,
        random_state=None,
        ledger=None,
    ):
        shared = estimator, delta, blocks, row_key, classes, y_bounds, adjacency
        super().__init__(*shared, random_state, ledger)
        self.scoring = scoring
        self.target_score = target_score
        self.epsilons = epsilons
        self.max_epsilon = max_epsilon
        self.verbose = verbose

    @with_callbacks
    def fit(self, X, y=None, groups=None):
        """Search for the smallest epsilon and keep the model of the last stage.

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
            If a parameter or the input is invalid. Nothing was charged.
        BudgetExceededError
            If the remaining budget of the ledger is too small for all stages; nothing is charged
            then. Or if it is too small for the next stage, because it was charged elsewhere in the
            meantime. The old model is kept.

        Warns
        -----
        UserWarning
            If no stage reached the target.
        """
        context = begun_fit(self)
        with unchanged_on_error(self):
            self._check_parameters()
            searched, rows, grid, frozen, resolution = self._plan(X, y, groups)
            charges = StageCharges(self, grid)
            warn_of_seed(self.random_state is not None, self.ledger)
            with progress_of(self, context) as progress:
                found = self._stages(searched, rows, grid, charges, progress)
            self.best_estimator_, self.stages_, self.reached_ = found
            self.resolution_ = resolution
            last, delta = self.stages_[-1], float(self.delta)
            self.best_epsilon_, self.best_score_ = last.epsilon, last.score
            spent = compose([grid.quoted(len(self.stages_), delta), *frozen])
            self.spent_ = self._stated(spent.with_caveats(_EX_POST))
            self.guarantee_ = self._stated(compose([grid.declared(delta), *frozen]))
            if not self.reached_:
                warn_user(
                    f"No stage reached target_score={short_repr(self.target_score)}. The model is "
                    f"from the last stage, with epsilon={self.best_epsilon_:.6g} and a score of "
                    f"{self.best_score_:.4g}."
                )
        return self

    def _plan(self, X, y, groups):
        """Plan a search; all that public numbers show to be out of reach is refused.

        Returns
        -------
        searched : Searched

        rows : pair of dict
            To learn from, and to score.

        grid : EpsilonGrid

        frozen : collection of Guarantee
            Of steps that were fitted before.

        resolution : float or None
            Standard error of a score at the target at the last stage.
        """
        searched = Searched.of(self, X, y, groups, by_rows=False)
        worst, best = _range(searched)
        if not worst < float(self.target_score) < best:
            raise ValueError(
                f"target_score must be above {worst:g} and below {best:g}, the range of "
                f"{searched.scoring!r}; got {short_repr(self.target_score)}."
            )
        blocks = self._two_blocks(searched.unit)
        n_fit, n_scoring = searched.sizes(blocks)
        rows, frozen = searched.parts(blocks), {}

        @cache
        def planned(point):
            found, before = searched.planned({}, point, n_fit)
            if found is None:
                raise ValueError("estimator must learn something; got one that learns nothing.")
            searched.dry_run({}, point, found, rows[0])  # refusals come before a charge
            frozen.update(before)
            return found

        grid = EpsilonGrid.plan(
            self.epsilons,
            self._target(searched.unit),
            n_scoring=n_scoring,
            planned=planned,
            evaluated=searched.evaluation,
        )
        # Rows that score are prepared as those of a fit, and would fail as they do.
        searched.dry_run({}, grid.points[-1])
        message, resolution = "", None
        if n_scoring is not None and searched.scoring in _MEANS:
            loss = (best - float(self.target_score)) / (best - worst)
            # Losses with a given mean vary most where each is 0 or 1.
            sampling = math.sqrt(loss * (1.0 - loss) / n_scoring)
            noise = score_noise(grid.points[-1]) / n_scoring
            resolution = (best - worst) * math.hypot(sampling, noise)
            scoring = f"{n_scoring} {searched.units}"
            message = f"{scoring} score: steps below {resolution:.2g} cannot be told. "
            if resolution > _TOLERANCE_COARSE * (best - worst):
                warn_user(
                    f"Scores of {scoring} have a standard error of {resolution:.2g} at the target "
                    "and cannot resolve smaller steps: the search may stop too early or too "
                    "late."
                )
        declared = grid.declared(float(self.delta)).epsilon
        self._print(
            f"{message}{len(grid)} epsilons from {grid.points[0].epsilon:.6g} to "
            f"{grid.points[-1].epsilon:.6g}; all stages together cost {declared:.6g}."
        )
        return searched, rows, grid, frozen.values(), resolution

    def _stages(self, searched, rows, grid, charges, progress):
        """Fit and score, each stage paid before it begins, until a score is reached."""
        target, delta = float(self.target_score), float(self.delta)
        fitted, scored = rows
        drawn = seeds(self.random_state, 2 * len(grid))
        stages = []
        for stage, point in enumerate(grid.points):
            charges.pay(stage + 1)
            # Of a seed was warned. That there is this stage has been released by the one before.
            with progress.part(f"epsilon {point.epsilon:.6g}"):
                model = searched.fitted({}, point, drawn[2 * stage], fitted)
                with config_context(known_seeds=True), quiet():
                    noise = noise_source(drawn[2 * stage + 1])
                    found = grid.scores[stage](model, **scored, noise=noise)
            (found,) = found.values.values()
            score, error = float(found.value), float(found.standard_error)
            spent = grid.quoted(stage + 1, delta).epsilon
            stages.append(SearchStage(point.epsilon, score, error, spent))
            self._print(f"epsilon {point.epsilon:.6g}: {found}")
            # A score of which the noise says nothing is NaN.
            is_reached = score - _MARGIN[delta == 0.0] * error >= target
            if is_reached:
                break
        return model, stages, is_reached

    def _print(self, text):
        if self.verbose:
            print(text)

    def _target(self, unit="record"):
        """Most that an automatic grid may cost."""
        most, delta = float(self.max_epsilon), float(self.delta)
        return ApproxDP(most, delta, adjacency=self.adjacency, unit=unit)

    def _planned_guarantee(self, n_features):
        raise ValueError("A DPEpsilonSearch must not be inside another search.")

    def _check_parameters(self):
        positive(max_epsilon=self.max_epsilon)
        self._check_common(self.max_epsilon)
        finite(target_score=self.target_score)
        boolean(verbose=self.verbose)
        if is_auto(self.epsilons) and self.adjacency == "add-remove":
            raise ValueError(
                "epsilons must be given under adjacency='add-remove', as 'auto' needs the number "
                "of rows, which is private; got 'auto'."
            )

    def _planned_title(self):
        return f"Budget of one search: at most epsilon={self.max_epsilon!r}, delta={self.delta!r}"

    def _view_parts(self):
        """Show the stages of the search."""
        names = [one.name.replace("_", " ") for one in fields(SearchStage)]
        rows = [[f"{number:.4g}" for number in astuple(stage)] for stage in self.stages_]
        reached = "reached" if self.reached_ else "not reached"
        caption = f"Stages: a score of {self.target_score!r} was {reached}"
        spent = note(f"What was looked at so far: {self.spent_}")
        return spent, table(names, rows, caption=caption, numbers=range(len(names)))
