"""Losses of linear models, with the constants that sensitivities and solvers need.

A loss sees scores ``Z = X W^T`` of shape (n_samples, n_outputs) and label codes. Its *residual*
is the derivative with respect to the scores; a record's gradient is the outer product of
its residual and its row, with norm at most ``lipschitz`` times the norm of the row.
"""

from skdp.learner._losses._margin import HingeLoss, HuberHingeLoss, LogisticLoss
from skdp.learner._losses._multiclass import MulticlassHingeLoss, SoftmaxLoss
from skdp.learner._losses._residual import AbsoluteLoss, EpsilonInsensitiveLoss, HuberLoss

__all__ = [
    "AbsoluteLoss",
    "EpsilonInsensitiveLoss",
    "HingeLoss",
    "HuberHingeLoss",
    "HuberLoss",
    "LogisticLoss",
    "MulticlassHingeLoss",
    "SoftmaxLoss",
]
