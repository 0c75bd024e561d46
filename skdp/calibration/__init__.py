"""Calibrated probabilities, tuned thresholds, and prediction sets and intervals."""

from skdp.calibration._classifiers import DPCalibratedClassifier, DPThresholdClassifier
from skdp.calibration._conformal import DPConformalClassifier, DPConformalRegressor

__all__ = [
    "DPCalibratedClassifier",
    "DPConformalClassifier",
    "DPConformalRegressor",
    "DPThresholdClassifier",
]
