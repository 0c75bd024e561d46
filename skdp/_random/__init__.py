"""Noise that is exact: integers with the law of a rounded continuous variable.

A float is a poor carrier of noise. The floats that ``value + noise`` can reach depend on
``value``, and the low bits of the sum give it away (Mironov, "On significance of the least
significant bits for differential privacy", CCS 2012). Here noise is an integer,
``rint(scale * Y)``, with ``Y`` a continuous variable of unit scale, and values are rounded to
integers as well. Since ``rint(q + y) = q + rint(y)`` for an integer ``q``, adding it to a
rounded value is post-processing of the textbook mechanism and inherits its guarantee to the
last digit, provided that the integer has *exactly* the law of ``rint(scale * Y)``.

That law is met as follows. ``Y`` is an inverse distribution function at a uniform number of
infinitely many bits, of which 63 are drawn at first. Floating point then gives ``scale * Y`` up
to a certified error. Almost always no half-integer is that near and the rounding is settled;
otherwise more bits are drawn and multiple-precision arithmetic decides.

Only numpy and the standard library are needed: a device that takes part may have nothing else.
scipy is used where it is installed, for speed.
"""

from skdp._random._source import NoiseSource, check_random_state, noise_source, seed_sequence

__all__ = ["NoiseSource", "check_random_state", "noise_source", "seed_sequence"]
