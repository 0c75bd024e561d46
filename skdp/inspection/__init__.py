"""Pictures of what is public or released; matplotlib is imported when one is drawn."""

from skdp.inspection._topology_display import TopologyDisplay

__all__ = ["TopologyDisplay"]
