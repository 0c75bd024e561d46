"""What runs on users' own devices: noise is added before anything leaves. Needs numpy only."""

from skdp.local._privatizers import (
    GradientPrivatizer,
    OnePointPrivatizer,
    ValuePrivatizer,
)

__all__ = ["GradientPrivatizer", "OnePointPrivatizer", "ValuePrivatizer"]
