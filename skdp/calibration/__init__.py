"""Probabilities, thresholds, and sets and intervals for new rows, within the budget."""

from skdp.calibration._classifiers import DPCalibratedClassifier, DPThresholdClassifier
from skdp.calibration._conformal import DPConformalClassifier, DPConformalRegressor

__all__ = [
    "DPCalibratedClassifier",
    "DPConformalClassifier",
    "DPConformalRegressor",
    "DPThresholdClassifier",
]
