"""Scores of models on private rows, within a budget."""

from skdp.metrics._row_losses import RowLoss, default_scoring, row_loss

__all__ = ["RowLoss", "default_scoring", "row_loss"]
