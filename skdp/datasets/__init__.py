"""Public data sets with fixed public bounds and categories, not computed from the records."""

from skdp.datasets._classification import fetch_adult, fetch_covertype, fetch_fair
from skdp.datasets._diabetes130 import fetch_diabetes130
from skdp.datasets._regression import (
    fetch_bike_sharing,
    fetch_california_housing,
    fetch_ccpp,
    fetch_kin40k,
    fetch_nycflights13,
)
from skdp.datasets._text import fetch_imdb, fetch_newsgroups20

__all__ = [
    "fetch_adult",
    "fetch_bike_sharing",
    "fetch_california_housing",
    "fetch_ccpp",
    "fetch_covertype",
    "fetch_diabetes130",
    "fetch_fair",
    "fetch_imdb",
    "fetch_kin40k",
    "fetch_newsgroups20",
    "fetch_nycflights13",
]
