"""Public data sets, with bounds and categories that are written down rather than computed."""

from skdp.datasets._adult import fetch_adult
from skdp.datasets._covertype import fetch_covertype

__all__ = ["fetch_adult", "fetch_covertype"]
