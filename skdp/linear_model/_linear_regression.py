"""Private linear regression, with standard errors, intervals and p-values.

To check it: ``learner/_inference.py``, for the moments, the second release and the budget.
"""

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import RegressorMixin

from skdp._defaults.pipeline import DELTA
from skdp._validation import TARGET_SEARCH_RANGE, TargetRange, is_auto, short_repr
from skdp.learner import RowCount, Sequence
from skdp.learner._estimator import Weighted
from skdp.learner._inference import CutShares, RegressionMoments
from skdp.linear_model._base import LinearRows
from skdp.linear_model._summary import CoefficientInference
from skdp.mechanisms import clip_rows
from skdp.preprocessing._target_bounds import BoundsStage, check_search_range


class DPLinearRegression(LinearRows, CoefficientInference, RegressorMixin, Weighted):
    """Linear regression with differential privacy and confidence intervals.

    Least squares, as in :class:`~sklearn.linear_model.LinearRegression`. ``summary_`` has standard
    errors, confidence intervals and p-values that account for both sampling and noise.

    Parameters
    ----------
    epsilon : float, default=1.0
        Privacy budget of one fit.

    delta : float, default=1e-6
        Positive, and well below one over the number of rows. The noise is Gaussian.

    y_bounds : (float, float) or "auto", default=None
        Public bounds on the target, which is clipped to them. "auto" releases bounds first, for
        5 % of the squared mu, or up to half of it for few rows. None is "auto" under "replace-one"
        if the budget and the number of rows suffice, and otherwise (-1, 1), with a warning.

    y_search_range : (float, float), default=(-1e12, 1e12)
        Public range that is searched for bounds.

    x_norm : float, default=1.0
        Public bound on the Euclidean norm of a row, from 1e-50 to 1e50. Rows with a larger norm
        are scaled down to it, in `fit` and in `predict`, and intervals are then for the clipped
        rows. The noise is proportional to it: use the smallest norm that no row exceeds.

    fit_intercept : bool, default=True
        Whether to fit an intercept, as the coefficient of a constant feature.

    intercept_scaling : float or "auto", default="auto"
        Public value of the constant feature, from 1e-50 to 1e50. "auto" is 0.3 times ``x_norm``.

    adjacency : {"replace-one", "add-remove"}, default="replace-one"
        Definition of neighbouring data sets. Under "replace-one" the number of rows is public.

    max_sample_weight : float, default=None
        Public upper bound on ``sample_weight``, from 1e-6 to 1e6; larger weights are clipped to
        it. The noise is proportional to it. None uses 1 and warns in a fit with weights. Ignored
        without weights.

    random_state : None, int, RandomState or Generator, default=None
        None draws the noise from the operating system. Any other value makes the noise
        reproducible and voids the privacy; use it for tests and figures.

    ledger : BudgetLedger or path, default=None
        Budget ledger that each fit is charged to before it uses the data.

    Attributes
    ----------
    coef_ : ndarray of shape ``(n_features_in_,)``
        Coefficients, for rows with norm at most ``x_norm``. Released under ``guarantee_``.

    intercept_ : float
        Intercept. Released under ``guarantee_``.

    y_bounds_ : tuple of two floats
        Bounds of the target, given or learned. Released under ``guarantee_``.

    summary_ : CoefficientSummary
        Standard errors, confidence intervals and p-values. Released under ``guarantee_``.

    covariance_ : ndarray
        Covariance of the coefficients, with the intercept last. Released under ``guarantee_``.

    guarantee_ : ApproxDP
        Guarantee of the fit, with its privacy profile. Public.

    n_features_in_ : int
        Number of features. Public.

    feature_names_in_ : ndarray of shape ``(n_features_in_,)``
        Names of the features, if ``X`` has them. Public.

    See Also
    --------
    DPLogisticRegression : For classes; with ``inference=True`` it has intervals, too.
        Classification; it has intervals with ``inference=True``.
    skdp.kernel.DPKernelRidge : Regression with smooth functions of the row.
        Nonlinear regression with smooth functions.

    Notes
    -----
    **Privacy.** Sums of products of rows and targets are released together, with their joint
    sensitivity, for two fifths of the squared mu. If these sums resolve all directions, the rest
    of the budget releases the gradient and the squared residuals at the coefficients; otherwise it
    releases the products again. The fractions of clipped rows take 2 %. Everything that `fit`
    stores is public or a function of these releases.

    **Intervals** are for the least squares fit to the clipped rows and targets. A warning gives
    the clipped fraction if it matters relative to the standard errors. The second release clips
    residuals at five times their standard deviation, or more for many rows, so that for skewed
    errors the coefficients are those of a robust regression. With it, standard errors hold for
    errors of any variance (Huber and White); otherwise they assume a single error variance. A
    coefficient hidden by noise has no interval. Tests after model selection on the same rows are
    not covered.

    **Users.** With ``groups`` the guarantee is for users: it covers all rows of a user, however
    many. Each user contributes the mean over their rows. Intervals are then for a sample of users,
    whose rows may depend on each other.

    **Weights.** ``sample_weight`` multiplies what a row adds to each sum that is released. The sum
    of weights takes 2 % of the budget and replaces the number of rows in all rules. The guarantee
    holds if each weight is a function of its own row and of public or released numbers;
    ``guarantee_`` states this as a caveat. Where rows are few, standard errors are upper bounds
    unless all weights are near ``max_sample_weight``.

    References
    ----------
    Dong, Roth and Su, "Gaussian differential privacy", JRSS-B 2022, theorem 1 and corollary 2.
    White, "A heteroskedasticity-consistent covariance matrix estimator and a direct test for
    heteroskedasticity", Econometrica 1980. Fieller, "Some problems in interval estimation",
    JRSS-B 1954.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp.linear_model import DPLinearRegression
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-0.5, 0.5, size=(5000, 3))
    >>> y = 0.2 + X @ [0.5, -0.3, 0.0] + 0.1 * rng.normal(size=5000)
    >>> model = DPLinearRegression(epsilon=1.0, y_bounds=(-1, 1)).fit(X, y)
    >>> model.conf_int().shape
    (4, 2)
    >>> bool(model.summary_.p_values[0] < 0.001)
    True
    """

    def __init__(
        self,
        epsilon=1.0,
        delta=DELTA,
        *,
        y_bounds=None,
        y_search_range=TARGET_SEARCH_RANGE,
        x_norm=1.0,
        fit_intercept=True,
        intercept_scaling="auto",
        adjacency="replace-one",
        max_sample_weight=None,
        random_state=None,
        ledger=None,
    ):
        super().__init__(
            epsilon, delta, adjacency=adjacency, random_state=random_state, ledger=ledger
        )
        self.y_bounds = y_bounds
        self.y_search_range = y_search_range
        self.x_norm = x_norm
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.max_sample_weight = max_sample_weight

    def check_parameters(self):
        """Check the parameters, before the rows are looked at."""
        self._check_row_parameters()
        if self.delta == 0.0:
            raise ValueError(
                "delta must be positive, because intervals require Gaussian noise. For delta=0 "
                "use DPKernelRidge(kernel='linear'), which has no intervals; got "
                f"{short_repr(self.delta)}."
            )
        check_search_range(self.y_search_range)
        if not is_auto(self.y_bounds):
            TargetRange.of(self.y_bounds)

    @property
    def _reads_count(self):
        may_learn = self.y_bounds is None or is_auto(self.y_bounds)
        return may_learn and self.adjacency == "replace-one"

    def _planned_guarantee(self, n_features):
        target = self._target()
        return replace(target, refined=target.gaussian_target())

    def plan(self, public):
        """Releases: the number of rows if private, the moments, the clipped fractions."""
        sizes = self._sizes(public.n_features)
        sizes["constant"] = self._constant() / self._unit()
        is_counted = public.n_samples is None or public.is_weighted
        before: list[Any] = [RowCount.planned] if is_counted else []
        low, high = map(float, self.y_search_range)
        named: Any = dict(n_units=public.n_samples, is_even=not self.fit_intercept)
        before.append(partial(BoundsStage.planned, self.y_bounds, (low, high), **named))
        return Sequence.plan(
            public.target,
            release=lambda budget, n_samples: RegressionMoments.plan(budget, **sizes),
            n_samples=public.n_samples,
            before=before,
            after=[CutShares.planned],
            is_counted=public.is_weighted,
        )

    def learn(self, data, run):
        """Release the coefficients and their summary."""
        found = run(self._rows(data, data.y)).found
        bounds, scale = found["bounds"], found["scale"]
        self.y_bounds_ = bounds.low, bounds.high
        self._store_summary(found, scale.half * self._scales(1.0), scale.middle)
        self.coef_ = self.summary_.estimates[: self.n_features_in_]
        self.intercept_ = float(self.summary_.estimates[-1]) if self.fit_intercept else 0.0

    def report_notes(self):
        """Sentences for the privacy report."""
        low, high = self.y_bounds_
        return (f"Targets were clipped to [{low:g}, {high:g}].",)

    def predict(self, X):
        """Predict the target of each row, within ``y_bounds``; costs no privacy.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        X = self.validated(X)
        targets = TargetRange.of(self.y_bounds_)
        with np.errstate(all="ignore"):  # a warning would tell huge rows from others
            values = clip_rows(X, float(self.x_norm)) @ self.coef_ + self.intercept_
        return np.clip(values, targets.low, targets.high)
