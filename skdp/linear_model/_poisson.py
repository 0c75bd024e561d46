"""Private Poisson regression of counts, with a log link.

To check it: `PoissonLoss` for its bounds, `TargetMean` for what targets are divided by, and
``learner/_descent.py`` or ``learner/_objective.py`` for the coefficients.
"""

import math
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.metrics import d2_tweedie_score

from skdp._defaults import linear as defaults
from skdp._validation import LARGEST, LEAST, between
from skdp.learner import (
    NoisyDescent,
    ObjectivePerturbation,
    RowCount,
    RowNorm,
    Sequence,
)
from skdp.learner._estimator import Weighted
from skdp.learner._inference import CutShares, JointSteps
from skdp.learner._losses import PoissonLoss
from skdp.learner._stages import TargetMean
from skdp.linear_model._base import LinearRows
from skdp.linear_model._rules import objective_penalty
from skdp.linear_model._summary import CONFIDENCE, CoefficientInference
from skdp.mechanisms import clip_rows
from skdp.privacy import GaussianDP


class SteadyPoissonLoss(PoissonLoss):
    """Poisson loss with second derivatives that end in a ramp, where it becomes straight.

    Privacy: rounding a score moves them by no more than ``curvature`` times as much.
    """

    def hessian_weights(self, scores, targets):
        """Second derivatives, of the shape (n_samples,)."""
        beyond = scores[:, 0] - math.log(self.most)
        return self.inverse_link(scores)[:, 0] * np.clip(1.0 - beyond, 0.0, 1.0)


class PoissonSteps(JointSteps):
    """Newton steps on the loss for what targets were clipped to, which is released before."""

    def learn(self, run: Any, noise: Any) -> None:
        """Release ``run.found["estimate"]``."""
        JointSteps.learn(replace(self, loss=SteadyPoissonLoss(run.found["most"])), run, noise)


class DPPoissonRegressor(LinearRows, CoefficientInference, RegressorMixin, Weighted):
    """Poisson regression with differential privacy.

    The log of the expected count is a linear function of the row.

    Parameters
    ----------
    epsilon : float, default=1.0
        Privacy budget of one fit.

    delta : float, default=0.0
        0 gives pure differential privacy, which requires many rows here. Prefer a positive value,
        well below one over the number of rows, which allows Gaussian noise.

    y_max : float, default=100.0
        Public bound on the target. Targets are clipped to [0, ``y_max``] and to 4 times their
        noisy mean; predictions are clipped to ``y_max``.

    x_norm : float, default=1.0
        Public bound on the Euclidean norm of a row, from 1e-50 to 1e50. Rows with a larger norm
        are scaled down to it, in `fit` and in `predict`. Under "replace-one" `fit` first releases
        a smaller norm, ``x_norm_``, as in `DPLogisticRegression`.

    fit_intercept : bool, default=True
        Whether to fit an intercept, as the coefficient of a constant feature.

    intercept_scaling : float or "auto", default="auto"
        Public value of the constant feature, from 1e-50 to 1e50. "auto" is 0.3 times ``x_norm_``.

    inference : bool, default=False
        Whether to release standard errors, confidence intervals and p-values with the
        coefficients; see ``summary_``. Requires a positive ``delta``. They hold for any
        distribution of the counts, including overdispersed ones. The budget then goes to Newton
        steps, as in `DPLogisticRegression`.

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
        Coefficients, for rows with norm at most ``x_norm_``. Released under ``guarantee_``.

    intercept_ : float
        Intercept. Released under ``guarantee_``.

    summary_ : CoefficientSummary
        Standard errors, confidence intervals and p-values, if ``inference=True``. Released under
        ``guarantee_``.

    covariance_ : ndarray of shape (n_coefficients, n_coefficients)
        Covariance of the coefficients, with the intercept last, if ``inference=True``. Released
        under ``guarantee_``.

    x_norm_ : float
        Norm to which rows are clipped. Released under ``guarantee_``.

    guarantee_ : ApproxDP
        Guarantee of the fit, with its privacy profile. Public.

    n_features_in_ : int
        Number of features. Public.

    feature_names_in_ : ndarray of shape ``(n_features_in_,)``
        Names of the features, if ``X`` has them. Public.

    See Also
    --------
    DPLogisticRegression : For classes.
        Classification.
    skdp.kernel.DPKernelRidge : Regression with smooth functions of the row.
        Nonlinear regression with smooth functions.

    Notes
    -----
    **Privacy.** Targets are divided by their noisy mean, which costs 2 % of the squared mu, or 14
    % of epsilon with ``delta=0``. The coefficients are released by noisy gradient descent with a
    positive ``delta`` and for users, and by objective perturbation otherwise. The penalty of the
    latter is that of logistic regression times the square of the largest slope. Everything that
    `fit` stores is public or a function of these releases.

    **Users.** With ``groups`` the guarantee is for users: it covers all rows of a user, however
    many. Each user contributes the mean over their rows.

    **Weights.** ``sample_weight`` multiplies what a row adds to each sum that is released. The sum
    of weights takes 2 % of the budget and replaces the number of rows in all rules. The guarantee
    holds if each weight is a function of its own row and of public or released numbers;
    ``guarantee_`` states this as a caveat.

    References
    ----------
    Bassily, Smith and Thakurta, "Private empirical risk minimization", FOCS 2014. Chaudhuri,
    Monteleoni and Sarwate, "Differentially private empirical risk minimization", JMLR 2011,
    theorem 9.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp.linear_model import DPPoissonRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-0.5, 0.5, size=(5000, 4))
    >>> y = rng.poisson(np.exp(1.0 + 3.0 * X[:, 0]))
    >>> model = DPPoissonRegressor(epsilon=1.0, delta=1e-6, y_max=50.0).fit(X, y)
    >>> print(model.guarantee_.epsilon)
    1.0
    """

    def __init__(
        self,
        epsilon=1.0,
        delta=0.0,
        *,
        y_max=100.0,
        x_norm=1.0,
        fit_intercept=True,
        intercept_scaling="auto",
        inference=False,
        adjacency="replace-one",
        max_sample_weight=None,
        random_state=None,
        ledger=None,
    ):
        super().__init__(
            epsilon, delta, adjacency=adjacency, random_state=random_state, ledger=ledger
        )
        self.y_max = y_max
        self.x_norm = x_norm
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.max_sample_weight = max_sample_weight
        self.inference = inference

    def check_parameters(self):
        """Check the parameters, before the rows are looked at."""
        self._check_row_parameters()
        between(LEAST, LARGEST, y_max=self.y_max)
        self._check_inference()

    def _planned_guarantee(self, n_features):
        target = self._target()
        return replace(target, refined=target.gaussian_target()) if self.delta > 0.0 else target

    def plan(self, public):
        """Releases: the norm or the number of rows, the mean target, the coefficients."""
        mean = partial(TargetMean.planned, float(self.y_max), follows_spread=self.inference)
        # Intervals are for the norm that is stated.
        is_read = public.n_samples is not None and not self.inference
        first: list[Any] = [RowNorm.planned] if is_read else []
        if public.n_samples is None or public.is_weighted:
            first.append(RowCount.planned)
        return Sequence.plan(
            public.target,
            release=partial(self._release, public),
            n_samples=public.n_samples,
            before=[*first, mean],
            after=[CutShares.planned] if self.inference else (),
            is_counted=public.is_weighted,
        )

    def _release(self, public, budget, n_samples):
        loss, sizes = PoissonLoss(float(defaults.LARGEST_TARGET)), self._sizes(public.n_features)
        if self.inference:
            return PoissonSteps.plan(budget, loss=loss, **sizes)
        if isinstance(budget, GaussianDP) or public.unit == "user":
            return NoisyDescent.plan(budget, loss=loss, **sizes)
        numbers = dict(n_features=sizes["n_features"], n_samples=n_samples)
        penalty = objective_penalty(budget, loss=loss, **numbers) * sizes["row_norm"] ** 2
        # That is for slopes of at most a half. Noise and curvature are in proportion to the slope.
        penalty *= (loss.lipschitz / 0.5) ** 2
        return ObjectivePerturbation.plan(budget, loss=loss, penalty=penalty, **sizes)

    def report_notes(self):
        """Sentences for the privacy report."""
        more = " plus a margin for the spread of a Poisson distribution" if self.inference else ""
        return (
            f"Targets were clipped to [0, {float(self.y_max):g}], and to "
            f"{defaults.LARGEST_TARGET:g} times their noisy mean{more}.",
        )

    def learn(self, data, run):
        """Release the coefficients, for targets divided by their mean."""
        most = float(self.y_max)
        rows = self._rows(data, np.clip(data.y, 0.0, most))
        found = run(replace(rows, beyond=data.y > most))
        self.x_norm_ = float(self.x_norm) / found.norm_scale
        coef, intercept = self._in_units(found.weights, found.norm_scale)
        shift = math.log(found.total[0])
        self.coef_, self.intercept_ = coef[0], float(intercept[0] + shift)
        if not self.inference:
            self.__dict__.pop("summary_", None)
            return
        self._store_summary(found.found, self._scales(found.norm_scale), shift, exponentials=True)

    def rate_ratios(self, level=CONFIDENCE):
        """Return the rate ratio of each feature with its interval; costs no privacy.

        Parameters
        ----------
        level : float, default=0.95

        Returns
        -------
        DataFrame
            One row per feature: the ratio, the interval bounds, the p-value.
        """
        self._check_summary()
        return self.summary_.exponential(level)

    def predict(self, X):
        """Predict the mean count of each row; costs no privacy.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        X = self.validated(X)
        with np.errstate(all="ignore"):  # a warning would tell huge rows from others
            scores = clip_rows(X, self.x_norm_) @ self.coef_ + self.intercept_
        return np.exp(np.minimum(scores, math.log(float(self.y_max))))

    def score(self, X, y, sample_weight=None):
        """Return the fraction of Poisson deviance explained, as scikit-learn's regressor.

        Privacy: the score is computed without noise and does not protect the rows given.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        y : array-like of shape (n_samples,)

        sample_weight : array-like of shape (n_samples,), default=None

        Returns
        -------
        float
        """
        means = self.predict(X)
        return float(d2_tweedie_score(y, means, sample_weight=sample_weight, power=1))
