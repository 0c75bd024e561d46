"""Selection of parameters and epsilon on private rows within one budget."""

from skdp.model_selection._epsilon_search import DPEpsilonSearch, SearchStage
from skdp.model_selection._grid_search import DPGridSearch
from skdp.model_selection._randomized_search import DPRandomizedSearch

__all__ = ["DPEpsilonSearch", "DPGridSearch", "DPRandomizedSearch", "SearchStage"]
