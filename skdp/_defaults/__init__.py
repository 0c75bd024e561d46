"""The numbers that rules go by: one file a learner, and each number with its reason.

A number is here because it follows from something, which its comment says, or because leaving it
out costs more than reading it. What is lost without it is its worth, with the standard error over
data sets: ``benchmarks/defaults.py`` prints it. Numbers without one are derived.
"""
