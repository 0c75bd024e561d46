"""Choosing parameters and epsilon on private rows, within one budget."""

from skdp.model_selection._expected_score import ExpectedScore, expected_score

__all__ = ["ExpectedScore", "expected_score"]
