"""Evaluation of models on private rows with differential privacy."""

from skdp.metrics._dp_evaluate import DPScorer, EvaluationPlan, dp_evaluate, make_dp_scorer
from skdp.metrics._evaluation import Evaluation, EvaluationDisplay, ScoreValue
from skdp.metrics._releases import RowLoss, default_scoring, row_loss

__all__ = [
    "DPScorer",
    "Evaluation",
    "EvaluationDisplay",
    "EvaluationPlan",
    "RowLoss",
    "ScoreValue",
    "default_scoring",
    "dp_evaluate",
    "make_dp_scorer",
    "row_loss",
]
