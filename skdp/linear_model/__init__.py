"""Private linear classifiers."""

from skdp.linear_model._linear_svc import DPLinearSVC
from skdp.linear_model._logistic import DPLogisticRegression

__all__ = ["DPLinearSVC", "DPLogisticRegression"]
