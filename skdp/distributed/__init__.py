"""Private learning of many nodes that talk to their neighbours."""

from skdp.distributed._classifier import DistributedDPClassifier
from skdp.distributed._paper import PaperAlgorithm
from skdp.distributed._secure_sums import SecureSums

__all__ = ["DistributedDPClassifier", "PaperAlgorithm", "SecureSums"]
