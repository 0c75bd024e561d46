"""Choosing parameters and epsilon on private rows, within one budget."""

from skdp.model_selection._epsilon_search import DPEpsilonSearch
from skdp.model_selection._expected_score import ExpectedScore, expected_score
from skdp.model_selection._grid_search import DPGridSearch

__all__ = ["DPEpsilonSearch", "DPGridSearch", "ExpectedScore", "expected_score"]
