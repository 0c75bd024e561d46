"""
A custom private learner: Poisson regression
============================================

The loss states its Lipschitz constant, and the learner plans its releases. The base class provides
checks, users, the charge, the guarantee, pipelines, searches and audits.
"""

# %%
import numpy as np
from scipy.special import xlogy
from sklearn.base import RegressorMixin

from skdp.learner import Loss, NoisyDescent, PrivateEstimator, RowCount, Sequence


class PoissonLoss(Loss):
    """Poisson loss ``exp(z) - y z`` of scores z, linear where ``exp(z)`` exceeds ``most``."""

    lipschitz = curvature = heaviest = most = 20.0

    def total(self, scores, y):
        z, top = scores[:, 0], np.log(self.most)
        beyond = self.most * np.maximum(z - top, 0.0)
        return float((np.exp(np.minimum(z, top)) + beyond - y * z + xlogy(y, y) - y).sum())

    def residuals(self, scores, y):
        return np.minimum(np.exp(np.minimum(scores, 9.0)), self.most) - y[:, np.newaxis]


class PoissonRegressor(RegressorMixin, PrivateEstimator):
    """Poisson regression for counts from 0 to 20 and rows with norm at most 1."""

    def plan(self, public):
        sizes = dict(n_features=public.n_features, row_norm=public.row_norm(1.0))
        count = [RowCount.planned] if public.n_samples is None else []
        return Sequence.plan(
            public.target,
            release=lambda budget, n: NoisyDescent.plan(budget, loss=PoissonLoss(), **sizes),
            n_samples=public.n_samples,
            before=count,
        )

    def learn(self, data, run):
        found = run(data.rows(x_norm=1.0, y_bounds=(0.0, PoissonLoss.most)))
        self.coef_ = found.weights[0]

    def predict(self, X):
        scores = self.validated(X) @ self.coef_
        return np.minimum(np.exp(scores), PoissonLoss.most)
