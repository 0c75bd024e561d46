"""One object a privacy claim: bound, reason, noise and guarantee in one place."""

from skdp.releases._protocol import Release, StreamRelease
from skdp.releases._queries import QueryAnswers, QueryPlan

__all__ = ["QueryAnswers", "QueryPlan", "Release", "StreamRelease"]
