"""Kinds of data frames, as far as the scikit-learn that is installed knows them."""

import pandas as pd
import polars as pl
import pytest
import sklearn
from sklearn.utils.fixes import parse_version

__all__ = ["FRAMES", "NEEDS_POLARS"]

# The oldest take names of columns from a protocol that new frames of polars no longer have.
NEEDS_POLARS = pytest.mark.skipif(
    parse_version(sklearn.__version__) < parse_version("1.8")
    and not hasattr(pl.DataFrame, "__dataframe__"),
    reason="names of columns of new frames of polars are unknown to it",
)
FRAMES = [pd.DataFrame, pytest.param(pl.DataFrame, marks=NEEDS_POLARS)]
