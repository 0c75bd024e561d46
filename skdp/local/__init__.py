"""Local privacy on users' devices: noise is added before data are sent. Requires only numpy.

Functions that compute the leakage of messages require scipy and are loaded on first use.
"""

import importlib

from skdp.local._gradient import GradientPrivatizer, OnePointPrivatizer
from skdp.local._value import ValuePrivatizer

TYPE_CHECKING = False  # type checkers know the name
if TYPE_CHECKING:
    from skdp.local._messages import (
        bandit_noise,
        gaussian_leakage,
        gaussian_sigma,
        implied_mu,
        implied_mu_of_budget,
        k_norm_leakage,
        k_norm_scale,
        laplace_leakage,
        laplace_scale,
        local_law,
        nats_of,
        scalar_leakage,
        scalar_sigma,
        vector_leakage,
        vector_sigma,
    )

__all__ = [
    "GradientPrivatizer",
    "OnePointPrivatizer",
    "ValuePrivatizer",
    "bandit_noise",
    "gaussian_leakage",
    "gaussian_sigma",
    "implied_mu",
    "implied_mu_of_budget",
    "k_norm_leakage",
    "k_norm_scale",
    "laplace_leakage",
    "laplace_scale",
    "local_law",
    "nats_of",
    "scalar_leakage",
    "scalar_sigma",
    "vector_leakage",
    "vector_sigma",
]

if not TYPE_CHECKING:

    def __getattr__(name):
        if name in __all__:
            return getattr(importlib.import_module("skdp.local._messages"), name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
