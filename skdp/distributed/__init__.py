"""Private learning of many nodes that talk to their neighbours."""

from skdp.distributed._classifier import DistributedDPClassifier

__all__ = ["DistributedDPClassifier"]
