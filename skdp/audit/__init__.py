"""Is the promise kept? Recording, replay on neighbours, and bounds from outside."""

from skdp.audit._findings import Finding
from skdp.audit._replay import replay
from skdp.audit._report import ReleaseTally, ReplayReport
from skdp.audit._transcript import Transcript, recording

__all__ = ["Finding", "ReleaseTally", "ReplayReport", "Transcript", "recording", "replay"]
