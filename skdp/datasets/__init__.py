"""Public data sets, with bounds and categories that are written down rather than computed."""

from skdp.datasets._adult import fetch_adult
from skdp.datasets._covertype import fetch_covertype
from skdp.datasets._regression import (
    fetch_bike_sharing,
    fetch_california_housing,
    fetch_ccpp,
    fetch_kin40k,
    fetch_nycflights13,
)

__all__ = [
    "fetch_adult",
    "fetch_bike_sharing",
    "fetch_california_housing",
    "fetch_ccpp",
    "fetch_covertype",
    "fetch_kin40k",
    "fetch_nycflights13",
]
