"""Pictures of what is public or released; matplotlib is imported when one is drawn."""

from skdp.inspection._additive_effects import AdditiveEffect, AdditiveEffectsDisplay
from skdp.metrics._privacy_utility import PrivacyUtilityDisplay
from skdp.inspection._topology_display import TopologyDisplay

__all__ = ["AdditiveEffect", "AdditiveEffectsDisplay", "PrivacyUtilityDisplay", "TopologyDisplay"]
