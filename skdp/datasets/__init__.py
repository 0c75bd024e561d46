"""Public data sets, with bounds and categories that are written down rather than computed."""

from skdp.datasets._adult import fetch_adult
from skdp.datasets._bike_sharing import fetch_bike_sharing
from skdp.datasets._california_housing import fetch_california_housing
from skdp.datasets._ccpp import fetch_ccpp
from skdp.datasets._covertype import fetch_covertype
from skdp.datasets._diabetes130 import fetch_diabetes130
from skdp.datasets._fair import fetch_fair
from skdp.datasets._kin40k import fetch_kin40k
from skdp.datasets._nycflights13 import fetch_nycflights13
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
