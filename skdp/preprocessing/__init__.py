"""Transformers that know public bounds only, and never a statistic of the data."""

from skdp.preprocessing._bounded_scaler import BoundedScaler
from skdp.preprocessing._one_hot_encoder import DPOneHotEncoder
from skdp.preprocessing._public import make_public_preprocessor
from skdp.preprocessing._row_norm_clipper import RowNormClipper

__all__ = ["BoundedScaler", "DPOneHotEncoder", "RowNormClipper", "make_public_preprocessor"]
