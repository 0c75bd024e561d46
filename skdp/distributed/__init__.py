"""Differentially private decentralised learning on a network of nodes."""

from skdp.distributed._classifier import DistributedDPClassifier
from skdp.distributed._paper import PaperAlgorithm
from skdp.distributed._secure_sums import SecureSums

__all__ = ["DistributedDPClassifier", "PaperAlgorithm", "SecureSums"]
