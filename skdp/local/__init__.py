"""What runs on users' own devices: noise is added before anything leaves. Needs numpy only."""

from skdp.local._gradient import GradientPrivatizer
from skdp.local._one_point import OnePointPrivatizer
from skdp.local._value import ValuePrivatizer

__all__ = ["GradientPrivatizer", "OnePointPrivatizer", "ValuePrivatizer"]
