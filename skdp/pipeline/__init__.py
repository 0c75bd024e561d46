"""One budget for all steps: pipelines with one guarantee, and guarantees of others' pipelines."""

from skdp.pipeline._guarantee_of import guarantee_of
from skdp.pipeline._pipeline import DPPipeline

__all__ = ["DPPipeline", "guarantee_of"]
