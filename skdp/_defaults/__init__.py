"""The numbers that rules go by: one file a learner, and each number with its reason.

A number is here because it follows from something, which its sentence says, or because leaving it
out costs more than reading it: ``benchmarks/defaults.py`` prints what each is worth.
"""

from skdp._defaults._default import Default

__all__ = ["Default"]
