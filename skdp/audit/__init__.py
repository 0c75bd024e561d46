"""Audits of privacy guarantees: recording, replay on neighbours and black-box bounds."""

from skdp.audit._black_box import EpsilonEstimate, estimate_epsilon
from skdp.audit._findings import Finding, ReleaseTally, ReplayReport
from skdp.audit._one_run import estimate_epsilon_one_run
from skdp.audit._replay import replay
from skdp.audit._runs import Transcript, recording

__all__ = [
    "EpsilonEstimate",
    "Finding",
    "ReleaseTally",
    "ReplayReport",
    "Transcript",
    "estimate_epsilon",
    "estimate_epsilon_one_run",
    "recording",
    "replay",
]
