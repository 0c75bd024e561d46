"""Transformers that use public bounds, or learn with differential privacy."""

from skdp.preprocessing._bounded_scaler import BoundedScaler
from skdp.preprocessing._column_kinds import schema_from
from skdp.preprocessing._column_statistics import (
    ColumnStatistic,
    dp_histogram,
    dp_mean,
    dp_quantile,
)
from skdp.preprocessing._datetime_parts import DatetimeParts
from skdp.preprocessing._fourier import RandomFourierTransformer
from skdp.preprocessing._one_hot_encoder import DPOneHotEncoder
from skdp.preprocessing._private import (
    bound_contributions,
    make_private_preprocessor,
    make_public_preprocessor,
)
from skdp.preprocessing._quantile_scaler import DPQuantileScaler
from skdp.preprocessing._row_norm_clipper import RowNormClipper
from skdp.preprocessing._simple_imputer import DPSimpleImputer
from skdp.preprocessing._splines import BoundedSplineTransformer, automatic_n_splines

__all__ = [
    "BoundedScaler",
    "BoundedSplineTransformer",
    "ColumnStatistic",
    "DPOneHotEncoder",
    "DPQuantileScaler",
    "DPSimpleImputer",
    "DatetimeParts",
    "RandomFourierTransformer",
    "RowNormClipper",
    "automatic_n_splines",
    "bound_contributions",
    "dp_histogram",
    "dp_mean",
    "dp_quantile",
    "make_private_preprocessor",
    "make_public_preprocessor",
    "schema_from",
]
