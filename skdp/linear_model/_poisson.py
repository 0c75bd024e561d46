"""Private Poisson regression: counts, with a mean that is the exponential of a linear function.

To check it: this file for the bounds of the loss and of the mean that targets are divided by, and
``learner/_descent.py`` or ``learner/_objective.py`` for the release of the coefficients.
"""

import math
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, ClassVar

import numpy as np
from scipy.special import xlogy
from sklearn.base import RegressorMixin
from sklearn.metrics import d2_tweedie_score

from skdp._defaults import linear as defaults
from skdp._random._source import NoiseSource
from skdp._validation import LARGEST, LEAST, between, store
from skdp.learner import (
    Loss,
    NoisyDescent,
    ObjectivePerturbation,
    PrivateEstimator,
    RowCount,
    RowNorm,
    Run,
    Sequence,
    exact_sum,
)
from skdp.learner._sequence import divided
from skdp.linear_model._base import LinearRows
from skdp.linear_model._rules import objective_penalty
from skdp.mechanisms import NoiseLaw, clip_rows, release
from skdp.privacy import ApproxDP, GaussianDP
from skdp.rows._sums import MOST_ROWS, refuse_rows

_LIMIT_SCORE = 700.0  # whose exponential is a float


@dataclass(frozen=True)
class PoissonLoss(Loss):
    """Poisson loss ``exp(score) - target * score``, straight where the mean is above ``most``.

    Parameters
    ----------
    most : float
        At least 1: the largest target, and the largest mean.
    """

    most: float
    usual_slope: float = field(init=False)

    def __post_init__(self):
        store(self, usual_slope=1.0 / self.most)  # a residual is about as large as the mean

    @property
    def lipschitz(self):
        """Largest residual: mean and target are between 0 and ``most``."""
        return self.most

    @property
    def curvature(self):
        """Largest second derivative, which is the mean."""
        return self.most

    @property
    def typical_curvature(self):
        """Of targets that were divided by their mean."""
        return 2.0

    @property
    def heaviest(self):
        """A target whose loss is largest at a score of 0."""
        return self.most if self.most > math.e else 0.0

    def total(self, scores, targets):
        """Sum of the losses, each at least 0: half the deviance where the loss is not straight."""
        scores, top = scores[:, 0], math.log(self.most)
        beyond = self.most * np.maximum(scores - top, 0.0)
        means = np.exp(np.minimum(scores, top))
        least = targets - xlogy(targets, targets)
        return float((means + beyond - targets * scores - least).sum())

    def residuals(self, scores, targets):
        """Mean less target, of the shape (n_samples, 1)."""
        return self.inverse_link(scores) - targets[:, np.newaxis]

    def hessian_weights(self, scores, targets):
        """Second derivatives, of the shape (n_samples,)."""
        scores = scores[:, 0]
        return np.where(scores < math.log(self.most), self.inverse_link(scores), 0.0)

    def inverse_link(self, scores):
        """Mean of the target."""
        return np.minimum(np.exp(np.minimum(scores, _LIMIT_SCORE)), self.most)

    def relative_curvature(self, mean_slope):
        """The largest of ``exp(z) |z|``."""
        return max(self.most * math.log(self.most), 1.0)


@dataclass(frozen=True)
class TargetMean:
    """Mean of the targets, which they are divided by from there on.

    Privacy: a target between 0 and a bound, over the bound, adds 1 at most to the sum.

    Parameters
    ----------
    guarantee : GaussianDP or pure ApproxDP

    y_max : float
        Bound on the targets.

    """

    guarantee: GaussianDP | ApproxDP
    y_max: float

    phrase: ClassVar[str] = "of counts over their noisy mean"

    @classmethod
    def planned(cls, y_max: float, budget: Any, n_samples: float) -> tuple[Any, Any]:
        """Stage for its share of a budget, and the rest.

        The share is that of squared mu, or of squared epsilon.
        """
        share = float(defaults.NORM_SHARE)
        part, rest = divided(budget, share if isinstance(budget, GaussianDP) else math.sqrt(share))
        return cls(part, y_max), rest

    def check_n_rows(self, n_samples: int) -> None:
        """Refuse more rows than are added without rounding."""
        refuse_rows(n_samples, MOST_ROWS, self.guarantee.adjacency, unit=self.guarantee.unit)

    def learn(self, run: Run, noise: NoiseSource) -> None:
        """Release the mean as ``run.total``, and divide the targets by it."""
        rows, law = run.rows, NoiseLaw.meeting(self.guarantee, size=1)
        shares = rows.codes[:, np.newaxis] / self.y_max
        exact = exact_sum(shares, users=rows.users, bound=1.0)
        total = release(
            exact,
            law=law,
            sensitivity=1.0,  # whether a target comes, goes or is another
            random_state=noise,
            purpose="sum of the targets",
        )
        # Below its noise the mean is not known.
        mean = max(float(total[0]), 2.0 * law.level(1)) / run.known_n_samples
        run.total = np.array([min(mean, 1.0) * self.y_max])
        most = float(defaults.LARGEST_TARGET)
        run.rows = replace(rows, codes=np.minimum(rows.codes / run.total[0], most))


class DPPoissonRegressor(LinearRows, RegressorMixin, PrivateEstimator):
    """Poisson regression with differential privacy.

    The mean of a count is the exponential of a linear function of its row.

    Parameters
    ----------
    epsilon : float, default=1.0
        Budget of one fit.

    delta : float, default=0.0
        0 is pure differential privacy, which needs many rows here: take a positive number, well
        below one over the number of rows, where you can. It allows Gaussian noise.

    y_max : float, default=100.0
        Public bound on the target. Targets are clipped to [0, ``y_max``], and to 4 times their
        noisy mean; predictions to ``y_max``.

    x_norm : float, default=1.0
        Public bound on the Euclidean norm of a row, from 1e-50 to 1e50. Longer rows are scaled
        back onto the ball, in `fit` and in `predict`. Under "replace-one" `fit` first reads a
        smaller norm from the rows, ``x_norm_``, as `DPLogisticRegression` does.

    fit_intercept : bool, default=True
        Whether to fit an intercept, as the coefficient of a constant feature.

    intercept_scaling : float or "auto", default="auto"
        Value of the constant feature, from 1e-50 to 1e50; public. "auto" is 0.3 times ``x_norm_``.

    adjacency : {"replace-one", "add-remove"}, default="replace-one"
        Which data sets are neighbours. Under "replace-one" the number of rows is public.

    random_state : None, int, RandomState or Generator, default=None
        None draws the noise from the operating system. Anything else makes it reproducible
        and void of privacy, for tests and figures.

    ledger : BudgetLedger or path, default=None
        Budget that each fit is charged to before it uses the data.

    Attributes
    ----------
    coef_ : ndarray of shape ``(n_features_in_,)``
        Coefficients, for rows no longer than ``x_norm_``. Released under ``guarantee_``.

    intercept_ : float
        Released under ``guarantee_``.

    x_norm_ : float
        Norm to which rows are clipped. Released under ``guarantee_``.

    guarantee_ : ApproxDP
        What the fit promises, with its privacy profile. Public.

    n_features_in_ : int
        Number of features. Public.

    feature_names_in_ : ndarray of shape ``(n_features_in_,)``
        Names of the features, if ``X`` has them. Public.

    See Also
    --------
    DPLogisticRegression : For classes.
    skdp.kernel.DPKernelRidge : Regression with smooth functions of the row.

    Notes
    -----
    **Privacy.** Targets are divided by their noisy mean, for 2 % of the squared mu, or 14 % of
    epsilon with ``delta=0``. The coefficients are released by noisy gradient descent with a
    positive ``delta`` and of users, and by objective perturbation otherwise, whose penalty is that
    of logistic regression times the square of the largest slope. Everything that `fit` stores is
    public or made of these releases.

    **Users.** With ``groups`` the guarantee is for users: it covers all rows of a user, however
    many, who count by their mean.

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
        adjacency="replace-one",
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

    def check_parameters(self):
        """Check the parameters, before the rows are looked at."""
        self._check_row_parameters()
        between(LEAST, LARGEST, y_max=self.y_max)

    def _planned_guarantee(self, n_features):
        target = self._target()
        return replace(target, refined=target.gaussian_target()) if self.delta > 0.0 else target

    def plan(self, public):
        """The norm or the number of rows, the mean of the targets, the coefficients."""
        mean = partial(TargetMean.planned, float(self.y_max))
        return Sequence.plan(
            public.target,
            release=partial(self._release, public),
            n_samples=public.n_samples,
            before=[RowCount.planned if public.n_samples is None else RowNorm.planned, mean],
        )

    def _release(self, public, budget, n_samples):
        loss, sizes = PoissonLoss(float(defaults.LARGEST_TARGET)), self._sizes(public.n_features)
        if isinstance(budget, GaussianDP) or public.unit == "user":
            return NoisyDescent.plan(budget, loss=loss, **sizes)
        numbers = dict(n_features=sizes["n_features"], n_samples=n_samples)
        penalty = objective_penalty(budget, loss=loss, **numbers) * sizes["row_norm"] ** 2
        # That is for slopes of at most a half. Noise and curvature are in proportion to the slope.
        penalty *= (loss.lipschitz / 0.5) ** 2
        return ObjectivePerturbation.plan(budget, loss=loss, penalty=penalty, **sizes)

    def report_notes(self):
        """Sentences for the privacy report."""
        return (
            f"Targets were clipped to [0, {float(self.y_max):g}], and to "
            f"{defaults.LARGEST_TARGET:g} times their noisy mean.",
        )

    def learn(self, data, run):
        """Release the coefficients, for targets over their mean."""
        found = run(self._rows(data.X, np.clip(data.y, 0.0, float(self.y_max)), data.users))
        self.x_norm_ = float(self.x_norm) / found.norm_scale
        coef, intercept = self._in_units(found.weights, found.norm_scale)
        self.coef_, self.intercept_ = coef[0], float(intercept[0] + math.log(found.total[0]))

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
        """Share of the Poisson deviance that the model explains, as scikit-learn's regressor.

        Privacy: of the rows given, which the score is not protected against.

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
