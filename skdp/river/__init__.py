"""Streams without end behind the interface of river, which has to be installed."""

from skdp.river._in_chunks import RiverClassifier, RiverRegressor

__all__ = ["RiverClassifier", "RiverRegressor"]
