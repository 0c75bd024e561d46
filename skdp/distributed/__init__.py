"""Private learning of many nodes that talk to their neighbours."""

from skdp.distributed._classifier import DistributedDPClassifier
from skdp.distributed._paper import PaperAlgorithm

__all__ = ["DistributedDPClassifier", "PaperAlgorithm"]
