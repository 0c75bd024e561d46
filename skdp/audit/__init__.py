"""Is the promise kept? Recording, replay on neighbours, and bounds from outside."""

from skdp.audit._findings import Finding
from skdp.audit._transcript import Transcript, recording

__all__ = ["Finding", "Transcript", "recording"]
