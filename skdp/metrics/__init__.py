"""Scores of models on private rows, within a budget."""

from skdp.metrics._dp_evaluate import dp_evaluate
from skdp.metrics._evaluation import Evaluation, ScoreValue
from skdp.metrics._plan import EvaluationPlan
from skdp.metrics._row_losses import RowLoss, default_scoring, row_loss

__all__ = [
    "Evaluation",
    "EvaluationPlan",
    "RowLoss",
    "ScoreValue",
    "default_scoring",
    "dp_evaluate",
    "row_loss",
]
