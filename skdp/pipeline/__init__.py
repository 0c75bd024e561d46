"""Pipelines with one privacy budget, and guarantees of scikit-learn pipelines."""

from skdp.pipeline._guarantee_of import guarantee_of
from skdp.pipeline._pipeline import DPPipeline

__all__ = ["DPPipeline", "guarantee_of"]
