"""Private linear models for classification, regression and counts."""

from skdp.linear_model._linear_regression import DPLinearRegression
from skdp.linear_model._linear_svc import DPLinearSVC
from skdp.linear_model._logistic import DPLogisticRegression
from skdp.linear_model._mutual_information._sgd import MIPrivateSGDRegressor
from skdp.linear_model._poisson import DPPoissonRegressor
from skdp.linear_model._summary import CoefficientSummary

__all__ = [
    "CoefficientSummary",
    "DPLinearRegression",
    "DPLinearSVC",
    "DPLogisticRegression",
    "DPPoissonRegressor",
    "MIPrivateSGDRegressor",
]
