"""Scaling by bounds that are learned within a budget."""

import math
from collections.abc import Mapping

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from skdp._defaults import pipeline as defaults
from skdp._random._source import noise_source
from skdp._tables import names_of
from skdp._validation import SEARCH_RANGE, boolean, int_or_auto, is_auto, one_of, shown
from skdp.learner import (
    LinkedDocumentation,
    StatedGuarantee,
    charge,
    check_budget,
    unchanged_on_error,
    warn_of_delta,
)
from skdp.preprocessing._bounded_scaler import by_name
from skdp.preprocessing._quantiles import QuantileRelease, least_guarantee
from skdp.preprocessing._spline_basis import (
    ROUNDED_UP,
    columns_named,
    spline_names,
    spline_weights,
    stacked_splines,
)
from skdp.preprocessing._splines import AUTOMATIC_SPLINES
from skdp.privacy import ApproxDP
from skdp.rows._inputs import checked_rows

__all__ = ["DPQuantileScaler", "check_names", "numbers_of", "of_columns", "planned"]

_LIMIT_SPLINES, _LIMIT_ROWS = 10_000, 2**31


class DPQuantileScaler(LinkedDocumentation, StatedGuarantee, TransformerMixin, BaseEstimator):
    """Learn bounds of each column within a budget, map them to [-1, 1] and clip.

    For columns whose range nobody has written down. The bounds are two quantiles of the column,
    each chosen by an exponential mechanism among the public cells of a wide search range, and
    moved outwards to where nearly all values of a normal column would lie.

    Privacy: the cells that are chosen satisfy ``guarantee_`` together, whatever the data are, and
    nothing else is kept of the rows. Rows are transformed one by one. With
    ``adjacency="replace-one"`` the number of rows is public. How many values of a column are
    missing is private.

    Parameters
    ----------
    epsilon : float, default=1.0
        Budget of the fit, for all columns together.

    delta : float, default=0.0
        With a positive ``delta`` many columns cost far less.

    quantiles : "auto" or pair of float, default="auto"
        Low and high quantile, between 0 and 1. "auto" goes as far out as the budget and the number
        of rows allow, from .01 and .99 to the quartiles, and widens the bounds accordingly. Bounds
        from quantiles that are given are not widened.

    search_range : pair, sequence of pairs, or dict, default=(-1e6, 1e6)
        Public range ``(low, high)`` in which bounds are looked for: one for all columns, one a
        column, or a dict by name. Cells are narrow near 0 and wide far from it, so that a wide
        range costs little. Values outside count as the nearest inside.

    n_splines : int, "auto" or None, default=None
        None scales each column. A number replaces each column by as many hat functions (B-splines
        of degree 1) on knots between its bounds, so that a linear model can bend. "auto" is 8; in
        a `~skdp.pipeline.DPPipeline` it follows a rule for the budget and the number of rows. 1 is
        the straight line, as None.

    missing : {"error", "center"}, default="center"
        What to do with NaN: refuse it, or map it to 0, the middle of [-1, 1]; with splines to
        zeros in all splines of the column.

    sparse_output : bool, default=True
        Whether splines come out as a CSR matrix, two entries a column in each row. Frames need
        False.

    adjacency : {"replace-one", "add-remove"}, default="replace-one"
        Which data sets are neighbours. Under "add-remove" the number of rows is private; with
        ``quantiles="auto"`` a noisy count of them is part of the budget.

    random_state : None, int, RandomState or Generator, default=None
        None draws the noise from the operating system. Anything else makes it reproducible and
        void of privacy, for tests and figures.

    ledger : BudgetLedger or path, default=None
        Charged before the values of the rows are used.

    Attributes
    ----------
    bounds_ : ndarray of shape ``(n_features_in_, 2)``
        Bounds of each column in its units. Released under ``guarantee_``.

    spikes_ : ndarray of bool, shape ``(n_features_in_, 2)``
        Whether a low or high quantile was found at 0, as it is where many values are 0 and none
        are beyond. There the bound is not moved outwards, and splines are narrow next to 0.
        Released under ``guarantee_``.

    n_splines_ : int
        Splines of each column, or 1. Public.

    x_norm_ : float
        Bound on the Euclidean norm of every row that comes out, for the ``x_norm`` of a model.
        Public.

    x_l1_norm_ : float
        The same for the sum of absolute values. Public.

    guarantee_ : BoundedRangeDP
        What the fit satisfies. Public.

    n_features_in_ : int
        Number of columns. Public.

    feature_names_in_ : ndarray of shape ``(n_features_in_,)``
        Names of the columns, when all are strings. Public.

    See Also
    --------
    BoundedScaler : For bounds that are public, free of charge.
    BoundedSplineTransformer : Splines on public knots.
    DPSimpleImputer : Replaces missing values.

    Notes
    -----
    Each quantile gets the same share of the budget, a bounded range of ``e``. Among n rows "auto"
    takes ``q = 32 / (n e)``, from .01 to .25, and 1 - q: further out the mechanism may well choose
    a cell beyond all values, whatever the data are. Bounds at q of a normal column are multiplied
    to bounds at .01. A budget with which q would be above .25 is refused. Under "add-remove" a
    refusal would tell the number of rows, and q is .25 instead.

    Where the low quantile lies in the cell of 0, and likewise the high one, the column has a
    spike, as columns of amounts do in which most are 0. Splines are then even in ``asinh(100 t)``
    for the distance t from it in units of the width. A straight line is not bent.

    What the guarantee does not cover: the time `fit` takes, errors about malformed input, and
    other uses of the same data.

    References
    ----------
    Smith, "Privacy-preserving statistical estimation with optimal convergence rates", STOC 2011.
    Dong, Durfee and Rogers, "Optimal differential privacy composition for exponential
    mechanisms", ICML 2020.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp.preprocessing import DPQuantileScaler
    >>> rng = np.random.default_rng(0)
    >>> X = np.column_stack([rng.normal(170, 10, 20000), rng.lognormal(10, 1, 20000)])
    >>> scaler = DPQuantileScaler(epsilon=0.5, delta=1e-6).fit(X)
    >>> bool(np.all(np.abs(scaler.bounds_[0] - (145, 195)) < 10))
    True
    >>> float(np.abs(scaler.transform(X)).max())
    1.0
    """

    _budget_share = float(defaults.PREPARING)

    def __init__(
        self,
        epsilon=1.0,
        delta=0.0,
        *,
        quantiles="auto",
        search_range=SEARCH_RANGE,
        n_splines=None,
        missing="center",
        sparse_output=True,
        adjacency="replace-one",
        random_state=None,
        ledger=None,
    ):
        self.epsilon = epsilon
        self.delta = delta
        self.quantiles = quantiles
        self.search_range = search_range
        self.n_splines = n_splines
        self.missing = missing
        self.sparse_output = sparse_output
        self.adjacency = adjacency
        self.random_state = random_state
        self.ledger = ledger

    def fit(self, X, y=None):
        """Learn the bounds under ``(epsilon, delta)``-differential privacy.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Numbers; NaN is a missing value.

        y : None
            Ignored.

        Returns
        -------
        self : object

        Raises
        ------
        ValueError
            If a parameter or the input is invalid, or the budget too small for the number of
            rows and columns; nothing is charged then.
        BudgetExceededError
            If the ledger cannot pay; the old bounds stay.
        """
        with unchanged_on_error(self):
            self._check_parameters()
            X = self._validated(X, reset=True)
            release = self._plan(X.shape[1], len(X))
            warn_of_delta(self, len(X))
            charge(self, release.guarantee)
            bounds, spikes = release.bounds_and_spikes(X, noise_source(self.random_state))
            self._store(release.guarantee, bounds, spikes)
        return self

    def transform(self, X):
        """Scale and clip each row, and replace its columns by splines where that was asked for.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        {ndarray, CSR matrix} of shape (n_samples, n_features_out)
            Values in [-1, 1]; splines are in [0, 1].
        """
        check_is_fitted(self)
        with np.errstate(all="ignore"):
            X = self._validated(X, reset=False)
            places = _places(X, self.bounds_)
            if self.n_splines_ == 1:
                return np.nan_to_num(2.0 * places - 1.0, nan=0.0)
            knots = np.linspace(0.0, 1.0, self.n_splines_)
            parts = [
                spline_weights(_bent(place, *ends), knots)
                for place, ends in zip(places.T, self.spikes_, strict=True)
            ]
            out = stacked_splines(parts, [self.n_splines_] * len(parts))
        return out if self.sparse_output else out.toarray()

    def get_feature_names_out(self, input_features=None):
        """Names of the columns that come out: those of the input, or ``<column>_sp_<number>``.

        Parameters
        ----------
        input_features : array-like of str, default=None
            Names of the columns. None takes ``feature_names_in_``, or "x0", "x1" and so on.

        Returns
        -------
        ndarray of str
        """
        check_is_fitted(self)
        names = columns_named(self, input_features)
        return spline_names(names, [self.n_splines_] * len(names))

    def _check_parameters(self):
        check_budget(self)
        one_of(("error", "center"), missing=self.missing)
        boolean(sparse_output=self.sparse_output)
        if self.n_splines is not None:
            int_or_auto(n_splines=self.n_splines)
            if not is_auto(self.n_splines) and self.n_splines > _LIMIT_SPLINES:
                raise ValueError(
                    f"n_splines must be at most {_LIMIT_SPLINES:,}; got {self.n_splines}."
                )
        _check_quantiles(self.quantiles)

    def _validated(self, X, reset):
        X = numbers_of(self, X, reset=reset)
        if self.missing == "error" and np.isnan(X).any():
            raise ValueError(
                "Input X contains NaN: pass missing='center' to map it to the middle of the "
                "bounds, or put a DPSimpleImputer before this step."
            )
        return X

    def _plan(self, n_columns, n_samples):
        names = getattr(self, "feature_names_in_", None)
        return QuantileRelease.plan(
            ApproxDP(self.epsilon, self.delta, adjacency=self.adjacency),
            n_columns=n_columns,
            n_samples_public=n_samples if self.adjacency == "replace-one" else None,
            quantiles=self.quantiles,
            search_range=of_columns(names, search_range=self.search_range),
        )

    def _planned_guarantee(self, n_features):
        """What a fit is charged, from parameters and the number of columns alone."""
        target = ApproxDP(self.epsilon, self.delta, adjacency=self.adjacency)
        return target if n_features is None else planned(target, n_features, self.quantiles)

    def _n_outputs(self, n_features):
        """Number of columns that come out; None where it is not known yet."""
        if n_features is None or is_auto(self.n_splines):
            return None
        return n_features * (self.n_splines or 1)

    def _least_guarantee(self, n_features, n_samples):
        """Of bounds that are hardly more than noise, of a public number of rows."""
        if n_features is None or not is_auto(self.quantiles):
            return ApproxDP(0.0, adjacency=self.adjacency)
        return least_guarantee(n_samples, n_columns=n_features, adjacency=self.adjacency)

    def _store(self, guarantee, bounds, spikes):
        self.bounds_, self.spikes_ = bounds, spikes
        number = 1 if self.n_splines is None else self.n_splines
        self.n_splines_ = AUTOMATIC_SPLINES if is_auto(number) else int(number)
        self.x_norm_ = math.sqrt(self.n_features_in_) * ROUNDED_UP
        self.x_l1_norm_ = float(self.n_features_in_) * ROUNDED_UP
        self.guarantee_ = self._stated(guarantee)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = self.missing == "center"
        return tags


def numbers_of(estimator, X, *, reset):
    """Rows as float64, NaN where a value is missing; columns with names of their own.

    Parameters
    ----------
    estimator : BaseEstimator

    X : array-like of shape (n_samples, n_features)

    reset : bool
        Whether names and number of columns are stored, or compared.

    Returns
    -------
    ndarray of shape (n_samples, n_features)
    """
    check_names(X)
    try:
        X = checked_rows(
            estimator,
            X,
            reset=reset,
            accept_sparse=False,
            dtype=np.float64,
            ensure_all_finite="allow-nan",
        )
    except ValueError as error:
        if not str(error).startswith("could not convert"):
            raise
        message = (
            "X must hold numbers in every column: choose the numeric columns with a "
            "ColumnTransformer, and encode those of text with DPOneHotEncoder."
        )
    else:
        return X
    raise ValueError(message)


def planned(target, n_columns, quantiles):
    """Guarantee of quantiles of any number of rows and any search ranges."""
    release = QuantileRelease.plan(
        target, n_columns=n_columns, n_samples_public=_LIMIT_ROWS, quantiles=quantiles, n_cells=2
    )
    return release.guarantee


def check_names(X):
    """Refuse a frame whose columns share a name: what is told of one could mean the other."""
    names = names_of(X) or []
    repeated = sorted({str(name) for name in names if names.count(name) > 1})
    if repeated:
        raise ValueError(f"X must have a name of its own for each column; got {repeated} twice.")


def of_columns(names, **given):
    """A parameter by column in the order of the columns, where it is a dict."""
    ((_, value),) = given.items()
    return by_name(names, **given) if isinstance(value, Mapping) else value


def _check_quantiles(quantiles):
    if is_auto(quantiles):
        return
    try:
        low, high = quantiles
        valid = 0.0 < float(low) < float(high) < 1.0
    except (OverflowError, TypeError, ValueError):
        valid = False
    if not valid:
        raise ValueError(
            "quantiles must be 'auto' or a pair (low, high) with 0 < low < high < 1; "
            f"got {shown(quantiles)}."
        )


def _places(X, bounds):
    """Where values lie between bounds, from 0 to 1; halves, for their width may not be a float."""
    low, high = bounds.T
    return np.clip((np.clip(X, low, high) / 2 - low / 2) / (high / 2 - low / 2), 0.0, 1.0)


def _bent(places, low, high):
    """Places in asinh distance from a spike at the low bound, or at the high one."""
    if low:
        return _distances(places)
    return 1.0 - _distances(1.0 - places) if high else places


def _distances(places):
    return np.clip(
        np.arcsinh(defaults.STEEPNESS * places) / math.asinh(defaults.STEEPNESS), 0.0, 1.0
    )
