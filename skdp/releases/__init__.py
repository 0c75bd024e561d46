"""One object a privacy claim: bound, reason, noise and guarantee in one place."""

from skdp.releases._gradient_messages import (
    GradientMessages,
    gaussian_leakage,
    gaussian_sigma,
    implied_mu,
    implied_mu_of_budget,
    k_norm_leakage,
    k_norm_scale,
    local_law,
    nats_of,
)
from skdp.releases._protocol import Release, StreamRelease
from skdp.releases._value_messages import (
    OnePointMessages,
    ValueMessages,
    bandit_noise,
    laplace_leakage,
    laplace_scale,
    scalar_leakage,
    scalar_sigma,
    vector_leakage,
    vector_sigma,
)

__all__ = [
    "GradientMessages",
    "OnePointMessages",
    "Release",
    "StreamRelease",
    "ValueMessages",
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
