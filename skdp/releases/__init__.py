"""One object a privacy claim: bound, reason, noise and guarantee in one place."""

from skdp.releases._protocol import Release, StreamRelease
from skdp.releases._queries import QueryAnswers, QueryPlan
from skdp.releases._stream_account import ReleaseAccount
from skdp.releases._stream_fed_back import FedBackRelease, sgd_noise
from skdp.releases._stream_final import FinalRelease
from skdp.releases._stream_query import QueryRelease
from skdp.releases._stream_sensitivity import (
    automatic_t0,
    created_distances,
    norm_bounds,
    step_sensitivity,
    stream_sensitivities,
    stream_sensitivity,
)
from skdp.releases._stream_tree import TreeRelease

__all__ = [
    "FedBackRelease",
    "FinalRelease",
    "QueryAnswers",
    "QueryPlan",
    "QueryRelease",
    "Release",
    "ReleaseAccount",
    "StreamRelease",
    "TreeRelease",
    "automatic_t0",
    "created_distances",
    "norm_bounds",
    "sgd_noise",
    "step_sensitivity",
    "stream_sensitivities",
    "stream_sensitivity",
]
