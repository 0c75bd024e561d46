"""One object a privacy claim: bound, reason, noise and guarantee in one place."""

from skdp.releases._protocol import Release, StreamRelease

__all__ = ["Release", "StreamRelease"]
