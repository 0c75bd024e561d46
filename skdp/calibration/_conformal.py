"""Conformal prediction sets and intervals with differential privacy."""

import math
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from scipy.special import expit, lambertw, logit
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils.validation import check_is_fitted

from skdp._random._source import NoiseSource
from skdp._validation import fraction, is_auto, plain_arguments, short_repr
from skdp.calibration._after_fit import AfterFit, codes_of, log_odds
from skdp.mechanisms import select
from skdp.mechanisms._cells import counts_below
from skdp.metrics._releases import public_range
from skdp.pipeline._wrappers import learner_of
from skdp.privacy import ApproxDP, BoundedRangeDP, GaussianDP, Guarantee
from skdp.rows._users import USER_PARTS, Users

_LIMIT_CELLS, _LIMIT_FEW, _LIMIT_ROWS = 128, 4, 2**31
_THEOREM_BEST = 2.0  # least exp(epsilon / 2) / epsilon
_GRID_BOUNDS = 21
_GRID_DECADES = 3.0  # of residuals, below the range of the target


def ranks_for_noise(epsilon: float, n_cells: int) -> float:
    """Upper bound on the mean rank deficit of a noisy selection.

    Parameters
    ----------
    epsilon : float
        Of the selection.

    n_cells : int

    Returns
    -------
    float
    """
    return 2.0 / epsilon * float(lambertw((n_cells - 1) / math.e).real)


def cells_for(n_units: int | None) -> int:
    """Number of cells: fewer for few rows, which reduces the rank deficit."""
    if n_units is None:  # plans of a pipeline may come before it is known
        return _LIMIT_CELLS
    return max(_LIMIT_FEW, min(_LIMIT_CELLS, n_units // _LIMIT_FEW))


@dataclass(frozen=True)
class RankSelection:
    """Upper edge of a cell near which a number of scores lie below.

    Privacy: satisfies ``guarantee``. Cells are public. A cell's utility is minus the distance of
    the target number from the numbers of scores below its two edges, which a record moves by 1 at
    most, up or down, and a user with shares of their rows as well.

    Parameters
    ----------
    edges : tuple of float
        Public, ascending; the last one may be infinite.

    rank : int
        Target number of scores.

    epsilon : float

    guarantee : Guarantee

    References
    ----------
    McSherry and Talwar, "Mechanism design via differential privacy", FOCS 2007. Smith, "Privacy-
    preserving statistical estimation with optimal convergence rates", STOC 2011.
    """

    edges: tuple[float, ...]
    rank: int
    epsilon: float
    guarantee: Guarantee

    @classmethod
    @plain_arguments
    def plan(
        cls,
        target: ApproxDP | GaussianDP,
        *,
        edges: Any,
        n_units: int | None,
        level: float,
        is_split: bool = True,
        swapped: Guarantee | None = None,
    ) -> Self:
        """Selection that meets a target and covers a new row with probability ``level``.

        Parameters
        ----------
        target : ApproxDP or GaussianDP

        edges : tuple of float

        n_units : int or None
            Public number of rows, or of users; None plans the guarantee alone.

        level : float

        is_split : bool, default=True
            Whether the model did not read these rows.

        swapped : Guarantee, default=None
            Of all that read these rows, where the model did.
        """
        guarantee: Guarantee
        if isinstance(target, GaussianDP):
            epsilon = 2.0 * target.mu
            guarantee = BoundedRangeDP((epsilon,), adjacency=target.adjacency, unit=target.unit)
        else:
            # Where the model did not read these rows the bound is least there.
            epsilon = min(target.epsilon, _THEOREM_BEST if is_split else math.inf)
            guarantee = ApproxDP(epsilon, adjacency=target.adjacency, unit=target.unit)
        if n_units is None:
            return cls(tuple(edges), 0, epsilon, guarantee)
        miss = 0.0 if swapped is None else _miss_within(swapped, 1.0 - level)

        def rank_for(n: int, n_cells: int) -> int:
            missing = ranks_for_noise(epsilon, n_cells)
            if swapped is None:
                return math.ceil(level * (n + 1) + math.exp(epsilon / 2.0) * missing)
            return math.ceil((1.0 - miss) * n + missing)

        rank = rank_for(n_units, len(edges) - 1)
        if rank > n_units:
            least = n_units
            while rank_for(least, cells_for(least)) > least and least < _LIMIT_ROWS:
                least += max(1, least // 50)
            unit = "users" if target.unit == "user" else "rows"
            cure = "a larger epsilon or holdout" if is_split else "a holdout"
            kept = "held-out " if is_split else ""
            raise ValueError(
                f"level must be lower for {n_units} {kept}{unit} at this budget; got {level:g}, "
                f"which needs {least:,} {kept}{unit}, or {cure}."
            )
        return cls(tuple(edges), rank, epsilon, guarantee)

    def __call__(self, scores: np.ndarray, users: Users | None, noise: NoiseSource) -> float:
        """Release the edge.

        Parameters
        ----------
        scores : ndarray of shape (n_rows,)

        users : Users or None

        noise : NoiseSource
        """
        edges, parts, unit = np.array(self.edges), None, 1
        # A score that is no number counts as the worst.
        scores = np.where(np.isnan(scores), edges[-1], scores)
        if users is not None:
            parts, unit = users.rank_parts(scores), USER_PARTS
        # Of a score on an edge the cell above is taken, whose upper edge it does not exceed.
        below = counts_below(scores, edges, parts)
        rank = self.rank * unit
        distance = np.maximum(np.maximum(below[:-1] - rank, rank - below[1:]), 0)
        place = select(
            -distance,
            epsilon=self.epsilon,
            spread=2 * unit,
            random_state=noise,
            purpose="quantile of the scores",
        )
        return float(edges[int(place) + 1])


def _miss_within(guarantee: Guarantee, miss: float) -> float:
    """Largest share of rows within the fit that may be missed, for a share outside of it."""
    # Each bound holds, and so does the best of any.
    most = float(getattr(guarantee, "epsilon", _THEOREM_BEST))
    epsilons = np.linspace(0.0, most, _GRID_BOUNDS)
    deltas = np.array([float(guarantee.delta_at(one)) for one in epsilons])
    return max(0.0, float(np.max((miss - deltas) * np.exp(-epsilons))))


class _Conformal(AfterFit):
    """Base of both conformal estimators."""

    _share = 0.2

    def __init__(
        self,
        estimator,
        level=0.9,
        *,
        epsilon=1.0,
        delta=0.0,
        holdout=0.3,
        share="auto",
        adjacency="replace-one",
        public=(),
        random_state=None,
        ledger=None,
    ):
        self.estimator = estimator
        self.level = level
        self.epsilon, self.delta = epsilon, delta
        self.holdout, self.share = holdout, share
        self.adjacency = adjacency
        self.public = public
        self.random_state = random_state
        self.ledger = ledger

    def _check(self):
        fraction(level=self.level)
        if self.adjacency != "replace-one":
            raise ValueError(
                "adjacency must be 'replace-one': the coverage level depends on the number of "
                f"rows; got {short_repr(self.adjacency)}."
            )

    def _release(self, budget, n_units, n_outputs, total=None):
        # A model may know its own rows better, as far as both together tell them apart.
        is_split = self.holdout is not None or self._is_frozen
        swapped = None if is_split else total
        if not is_split and total is None:
            n_units = None
        edges = tuple(self._edges(cells_for(n_units)).tolist())
        options = {"edges": edges, "n_units": n_units, "level": float(self.level)}
        return RankSelection.plan(budget, is_split=is_split, swapped=swapped, **options)

    def predict(self, X):
        """Return the predictions of the model.

        Parameters
        ----------
        X : {array-like, frame, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        check_is_fitted(self)
        return self.estimator_.predict(X)


class DPConformalClassifier(ClassifierMixin, _Conformal):
    """Classifier with conformal prediction sets under differential privacy.

    The model is fitted to some of the rows. The others are used to release one number: the
    smallest probability that the true class may have. A prediction set contains all classes to
    which the model gives at least that probability.

    Parameters
    ----------
    estimator : estimator
        A classifier of skdp, or a `~skdp.pipeline.DPPipeline` that ends with one, which is fitted
        within the budget; or a `~sklearn.frozen.FrozenEstimator` of a fitted classifier that has a
        guarantee and was fitted to other rows.

    level : float, default=0.9
        Probability that a set contains the label, for rows drawn from the same distribution as
        those of the fit.

    epsilon : float, default=1.0
        Budget of the model and the sets together; with a frozen estimator, of the sets only.

    delta : float, default=0.0
        0 gives pure differential privacy.

    holdout : float or None, default=0.3
        Fraction of the rows withheld from the model and used to calibrate the sets. Which rows
        these are is public, so the model and the sets each have the whole budget. None uses the
        rows of the model. The sets are then larger, because a model fits its own rows better; the
        guarantee bounds by how much.

    share : float or "auto", default="auto"
        Fraction of the budget for the sets if ``holdout`` is None: of epsilon, or of the squared
        mu with a delta. "auto" is 0.2.

    adjacency : {"replace-one"}, default="replace-one"
        Definition of neighbouring data sets.

    public : tuple of str, default=()
        ``("estimator",)`` declares that a frozen estimator learned nothing from private rows. The
        guarantee states this as a caveat.

    random_state : None, int, RandomState or Generator, default=None
        None draws the noise from the operating system; any other value is for tests.

    ledger : BudgetLedger or path, default=None
        Budget ledger that is charged before the rows are used.

    Attributes
    ----------
    estimator_ : estimator
        The fitted model. Released under ``guarantee_``.

    threshold_ : float
        Smallest probability at which a class is in a set; with more than two classes, relative to
        the most likely class. Released under ``guarantee_``.

    classes_ : ndarray of shape (n_classes,)
        Class labels. Public.

    guarantee_ : Guarantee
        Guarantee of the model and the sets. Public.

    n_features_in_ : int
        Number of features. Public.

    feature_names_in_ : ndarray of shape ``(n_features_in_,)``
        Names of the features, if ``X`` has them. Public.

    See Also
    --------
    DPConformalRegressor : Intervals.
        Prediction intervals.

    Notes
    -----
    **Coverage.** For new rows exchangeable with those of the holdout, the probability that a set
    contains the label is at least ``level``, averaged over fits, for any model and any
    distribution of the rows. The rank of the released number is raised by as much as its noise may
    lower it. With ``groups`` this holds for a row of a new user. The coverage is an average: some
    kinds of rows may be covered less often, and others more.

    **Privacy.** The number is the edge of one of at most 128 public cells of scores, chosen by an
    exponential mechanism.

    References
    ----------
    Vovk, Gammerman and Shafer, "Algorithmic learning in a random world", 2005. Sadinle, Lei and
    Wasserman, "Least ambiguous set-valued classifiers with bounded error levels", JASA 2019, for
    the score. Angelopoulos, Bates, Zrnic and Jordan, "Private prediction sets", HDSR 2022.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp.calibration import DPConformalClassifier
    >>> from skdp.linear_model import DPLogisticRegression
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, size=(20_000, 2)) / 2**0.5
    >>> y = X[:, 0] > 0.3 * rng.standard_normal(20_000)
    >>> model = DPConformalClassifier(DPLogisticRegression(), epsilon=1.0, delta=1e-6).fit(X, y)
    >>> model.predict_set(X[:2]).shape
    (2, 2)
    """

    def _edges(self, n_cells):
        # Of minus the score of the label: from as likely as can be to as unlikely.
        return np.append(np.linspace(-_LIMIT_SCORE, _LIMIT_SCORE, n_cells), math.inf)

    def _numbers(self, model, said, y):
        scores, codes = _of_classes(log_odds(model, said)), codes_of(model, y)
        own = scores[np.arange(len(codes)), np.maximum(codes, 0)]
        # A label that the model does not know is in no set.
        return np.where(codes >= 0, -own, math.inf)

    def _keep(self, found, model):
        # Beyond the last edge all classes are in.
        least = -found
        self.threshold_ = float(expit(least) if len(model.classes_) == 2 else np.exp(least))

    def predict_set(self, X):
        """Return the prediction set of each row.

        Parameters
        ----------
        X : {array-like, frame, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        ndarray of bool, shape (n_samples, n_classes)
            Whether each class, in the order of ``classes_``, is in the set. A set may be empty.
        """
        scores = self._scores(X)
        with np.errstate(divide="ignore"):
            least = (logit if len(self.classes_) == 2 else np.log)(self.threshold_)
        # A little less, for rounding there and back.
        return _of_classes(scores) >= least - _TOLERANCE


_LIMIT_SCORE = 8.0
_TOLERANCE = 1e-9


def _of_classes(scores: np.ndarray) -> np.ndarray:
    """Score of each class: its logit, of several that of the likeliest class subtracted."""
    return np.column_stack([-scores, scores]) if scores.ndim == 1 else scores


class DPConformalRegressor(RegressorMixin, _Conformal):
    """Regressor with conformal prediction intervals under differential privacy.

    The model is fitted to some of the rows. The others are used to release one number: the largest
    distance of a target from its prediction.

    Parameters
    ----------
    estimator : estimator
        A regressor of skdp, or a `~skdp.pipeline.DPPipeline` that ends with one, which is fitted
        within the budget; or a `~sklearn.frozen.FrozenEstimator` of a fitted regressor that has a
        guarantee and was fitted to other rows.

    level : float, default=0.9
        Probability that an interval contains the target, for rows drawn from the same distribution
        as those of the fit.

    epsilon : float, default=1.0
        Budget of the model and the intervals together; with a frozen estimator, of the intervals
        only.

    delta : float, default=0.0
        0 gives pure differential privacy.

    holdout : float or None, default=0.3
        Fraction of the rows withheld from the model and used to calibrate the intervals. Which
        rows these are is public, so the model and the intervals each have the whole budget. None
        uses the rows of the model. The intervals are then wider, because a model fits its own rows
        better; the guarantee bounds by how much.

    share : float or "auto", default="auto"
        Fraction of the budget for the intervals if ``holdout`` is None: of epsilon, or of the
        squared mu with a delta. "auto" is 0.2.

    adjacency : {"replace-one"}, default="replace-one"
        Definition of neighbouring data sets.

    public : tuple of str, default=()
        ``("estimator",)`` declares that a frozen estimator learned nothing from private rows. The
        guarantee states this as a caveat.

    random_state : None, int, RandomState or Generator, default=None
        None draws the noise from the operating system; any other value is for tests.

    ledger : BudgetLedger or path, default=None
        Budget ledger that is charged before the rows are used.

    Attributes
    ----------
    estimator_ : estimator
        The fitted model. Released under ``guarantee_``.

    half_width_ : float
        Half the width of an interval, in units of the target; infinite if even the largest
        residual may be exceeded. Released under ``guarantee_``.

    guarantee_ : Guarantee
        Guarantee of the model and the intervals. Public.

    n_features_in_ : int
        Number of features. Public.

    feature_names_in_ : ndarray of shape ``(n_features_in_,)``
        Names of the features, if ``X`` has them. Public.

    See Also
    --------
    DPConformalClassifier : Sets of classes.
        Prediction sets.

    Notes
    -----
    **Coverage.** For new rows exchangeable with those of the holdout, the probability that an
    interval contains the target is at least ``level``, averaged over fits, for any model and any
    distribution of the rows. The rank of the released number is raised by as much as its noise may
    lower it. With ``groups`` this holds for a row of a new user.

    **Privacy.** The number is the edge of one of at most 128 public cells of residuals, chosen by
    an exponential mechanism. Each cell is 5 % wider than the previous one, up to twice the range
    of ``y_bounds`` of the model.

    References
    ----------
    Lei, G'Sell, Rinaldo, Tibshirani and Wasserman, "Distribution-free predictive inference for
    regression", JASA 2018. Angelopoulos, Bates, Zrnic and Jordan, "Private prediction sets", HDSR
    2022.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp.calibration import DPConformalRegressor
    >>> from skdp.linear_model import DPLinearRegression
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, size=(20_000, 2)) / 2**0.5
    >>> y = X[:, 0] + 0.1 * rng.standard_normal(20_000)
    >>> model = DPConformalRegressor(
    ...     DPLinearRegression(y_bounds=(-1, 1)), epsilon=1.0, delta=1e-6
    ... ).fit(X, y)
    >>> model.predict_interval(X[:2]).shape
    (2, 2)
    >>> 0.15 < model.half_width_ < 0.25
    True
    """

    def _check(self):
        super()._check()
        last = self.estimator
        while getattr(last, "steps", None):
            last = last.steps[-1][1]
        last = learner_of(last)
        learns = getattr(last, "y_bounds", ()) is None or is_auto(getattr(last, "y_bounds", ()))
        if self._is_frozen or not learns:
            self._length(self.estimator.estimator if self._is_frozen else self.estimator)

    @staticmethod
    def _length(model):
        """Of the range of the target, public or learned by the model."""
        y_range = public_range(model, None)
        return y_range.high - y_range.low

    def _edges(self, n_cells):
        # In units of the range.
        places = 10.0 ** np.linspace(-_GRID_DECADES, 0.0, n_cells - 1)
        return np.concatenate([[0.0], 2.0 * places, [math.inf]])

    def _numbers(self, model, said, y):
        residuals = y - np.asarray(said("predict"), dtype=np.float64).ravel()
        residuals = np.abs(residuals) / self._length(model)
        return np.where(np.isfinite(residuals), residuals, math.inf)

    def _keep(self, found, model):
        self.half_width_ = found * self._length(model)

    def predict_interval(self, X):
        """Return the prediction interval of each row.

        Parameters
        ----------
        X : {array-like, frame, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, 2)
            Lower and upper bounds.
        """
        middle = np.asarray(self.predict(X), dtype=np.float64)
        return np.column_stack([middle - self.half_width_, middle + self.half_width_])
