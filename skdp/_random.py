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
"""

import os
from collections.abc import Callable
from functools import lru_cache

import mpmath
import numpy as np
from scipy.special import ndtri

__all__ = ["NoiseSource", "noise_source", "seed_sequence"]

# The float path errs by less than this in units of the scale. It is used only while at least
# 45 significant bits of the uniform u are known, hence for u > 2**-18 and quantiles below 13:
# - u is off by half a unit in the 63rd place and by one rounding, relative 2**-46 + 2**-53,
#   which moves log(u) by as much and the normal quantile by less (its Mills ratio is < 1.26);
# - log and ndtri are stated accurate to 2**-52 and 2**-50 relative; eight times that is < 2**-45.
# test_random.py compares both functions with multiple-precision arithmetic.
_FLOAT_ERROR = 2.0**-44
_FEW_BITS = 2.0**45
_BLOCK = 1 << 13


class _Uniform:
    """A uniform number in (0, 1) whose binary digits are drawn when they are asked for."""

    def __init__(self, digits: int, length: int, draw: Callable[[], int]):
        self.digits, self.length, self._draw = digits, length, draw

    def to(self, length: int) -> mpmath.mpf:
        """Midpoint of the interval known once at least ``length`` digits are."""
        while self.length < length:
            self.digits, self.length = (self.digits << 64) | self._draw(), self.length + 64
        return mpmath.ldexp(mpmath.mpf(2 * self.digits + 1), -self.length - 1)

    def is_inner(self) -> bool:
        """Whether the known digits keep the number well away from 0 and from 1."""
        margin = self.length - self.length // 4
        complement = (1 << self.length) - 1 - self.digits
        return min(self.digits, complement).bit_length() > margin


class NoiseSource:
    """Exact integer noise from a source of random 64-bit words.

    Parameters
    ----------
    words : callable
        ``words(n)`` returns ``n`` independent uniform unsigned 64-bit integers.

    more_words : callable, default=None
        The same for the digits that are rarely needed. With a source of their own, draws of
        several sizes give the same sequence of noise as one. None takes ``words``.
    """

    def __init__(
        self,
        words: Callable[[int], np.ndarray],
        more_words: Callable[[int], np.ndarray] | None = None,
    ):
        self._words = words
        self._more_words = words if more_words is None else more_words

    def normal(self, size: int, scale: float) -> np.ndarray:
        """Draw ``rint(scale * Z)`` with ``Z`` standard normal.

        Parameters
        ----------
        size : int
            Number of draws.

        scale : float
            Standard deviation in lattice steps.

        Returns
        -------
        ndarray of shape (size,), dtype int64
        """

        def exact(uniform, length):
            return -mpmath.mpf(scale) * _mp_ndtri(uniform.to(length) / 2)

        return self._rounded(size, scale, _FLOAT_ERROR, _minus_normal, exact)

    def laplace(self, size: int, scale: float) -> np.ndarray:
        """Draw ``rint(scale * Y)`` with ``Y`` of density ``exp(-|y|) / 2``; as for `normal`."""

        def exact(uniform, length):
            return -mpmath.mpf(scale) * mpmath.log(uniform.to(length))

        return self._rounded(size, scale, _FLOAT_ERROR, _minus_laplace, exact)

    def k_norm(self, size: int, scale: float) -> np.ndarray:
        """Draw ``rint(scale * Y)``, ``Y`` a vector of density proportional to ``exp(-||y||_2)``.

        The norm of ``Y`` has the Gamma distribution with shape ``size`` and its direction is
        uniform. The same law is a normal vector with one random scale, ``sqrt(2 G)`` with
        ``G`` of the Gamma distribution with shape ``(size + 1) / 2``: integrating ``G`` out
        leaves the Bessel function K of order 1/2, which is an exponential. That form needs no
        division by the norm of a rounded vector.

        Parameters
        ----------
        size : int
            Dimension.

        scale : float
            Scale of the norm in lattice steps.

        Returns
        -------
        ndarray of shape (size,), dtype int64
        """
        n_exponentials, half = divmod(size + 1, 2)
        words = self._words(n_exponentials + half)

        @lru_cache
        def uniforms():  # rarely needed, and slow to make
            return [_Uniform(int(word) >> 1, 63, self._draw_word) for word in words]

        @lru_cache
        def root(length):  # scale * sqrt(2 G)
            gamma = -mpmath.log(mpmath.fprod(u.to(length) for u in uniforms()[:n_exponentials]))
            if half:
                gamma += _mp_ndtri(uniforms()[-1].to(length) / 2) ** 2 / 2
            return mpmath.mpf(scale) * mpmath.sqrt(2 * gamma)

        @lru_cache
        def is_settled(length):
            return all(u.is_inner() for u in uniforms() if u.length >= length)

        def exact(uniform, length):
            return -root(length) * _mp_ndtri(uniform.to(length) / 2)

        digits = (words >> np.uint64(1)).astype(np.float64) + 0.5
        gamma = -_minus_laplace(digits[:n_exponentials].copy()).sum()
        if half:
            gamma += float(_minus_normal(digits[n_exponentials:].copy())[0]) ** 2 / 2
        approximate = scale * float(np.sqrt(2 * gamma))
        error = 16 * _FLOAT_ERROR  # relative 2**-44 times quantiles below 5, and _FLOAT_ERROR
        if not (gamma > size / 4 and digits.min() > _FEW_BITS and approximate * error < 1e-4):
            with mpmath.workprec(256):
                approximate = float(root(192))
            error = 2 * _FLOAT_ERROR
        return self._rounded(size, approximate, error, _minus_normal, exact, is_settled)

    def _draw_word(self) -> int:
        return int(self._more_words(1)[0])

    def _rounded(self, size, scale, error, law, exact, is_settled=None):
        """Round ``scale * law(u)`` with a random sign, exactly where float cannot tell."""
        if not scale < 2.0**52:
            raise ValueError(
                f"The noise spans {scale:.3g} lattice steps, more than an integer holds; "
                "ask for less noise or a coarser lattice."
            )
        noise = np.empty(size, dtype=np.int64)
        doubt = 0.5 - scale * error
        for start in range(0, size, _BLOCK):
            out = noise[start : start + _BLOCK]
            words = self._words(len(out)).view(np.int64)
            signed = words + 0.5  # the sign bit is the sign, 63 digits follow
            digits = np.abs(signed)
            few_bits = digits.min() < _FEW_BITS and digits < _FEW_BITS
            value = law(digits)
            value *= scale
            nearest = np.rint(value)
            value -= nearest
            np.abs(value, out=value)
            undecided = few_bits | (value >= doubt) if value.max() >= doubt else few_bits
            np.copysign(nearest, signed, out=nearest)
            out[:] = nearest
            for i in np.flatnonzero(undecided):
                word = int(words[i])
                uniform = _Uniform(word if word >= 0 else ~word, 63, self._draw_word)
                nearest_integer = _settle(exact, uniform, is_settled)
                out[i] = nearest_integer if word >= 0 else -nearest_integer
        return noise


# The argument holds the 63 leading digits of u as the midpoint of what is known, in place.


def _minus_normal(digits):
    digits *= 2.0**-64  # |Z| has the quantile function -ndtri(u / 2), for u in (0, 1)
    return ndtri(digits, out=digits)


def _minus_laplace(digits):
    digits *= 2.0**-63
    return np.log(digits, out=digits)


def _settle(magnitude, uniform, is_settled):
    """Round ``magnitude``, with as many digits of its uniforms as that takes."""
    length = 192
    while True:
        with mpmath.workprec(length + 64):
            value = magnitude(uniform, length)
            # Inner uniforms are known to 2**(-3/4 length) relative, and so are their complements;
            # logarithms, quantiles, sums and roots of them lose a few digits more.
            error = (abs(value) + 1) * mpmath.ldexp(1, -length // 2)
            nearest = mpmath.nint(value)
            inner = uniform.is_inner() and (is_settled is None or is_settled(length))
            if inner and 0.5 - abs(value - nearest) > error:
                return int(nearest)
        length *= 2


def _mp_ndtri(probability):
    """Normal quantile in the working precision, for a probability in (0, 1/2)."""
    start = float(ndtri(float(probability))) if probability > 1e-300 else -38.0
    root = mpmath.mpf(start)
    for _ in range(64):  # Newton on the logarithm: quadratic, and safe in the tail
        distribution = mpmath.ncdf(root)
        step = mpmath.log(distribution / probability) * distribution / mpmath.npdf(root)
        root -= step
        if abs(step) <= abs(root) * mpmath.ldexp(1, -mpmath.mp.prec + 16):
            return root
    raise ArithmeticError("The normal quantile did not converge.")


def _system_words(n: int) -> np.ndarray:
    # No buffer is kept: a forked worker could otherwise repeat its parent's noise.
    return np.frombuffer(os.urandom(8 * n), dtype=np.uint64)


def seed_sequence(random_state) -> np.random.SeedSequence:
    """Turn an int, RandomState or Generator into a seed without numpy's global state.

    Parameters
    ----------
    random_state : int, RandomState or Generator
        An instance is advanced, so that two calls differ.

    Returns
    -------
    SeedSequence
    """
    if isinstance(random_state, np.random.Generator):
        return np.random.SeedSequence(random_state.integers(2**63, size=4).tolist())
    if isinstance(random_state, np.random.RandomState):
        return np.random.SeedSequence(random_state.randint(2**31 - 1, size=8).tolist())
    is_int = isinstance(random_state, int | np.integer) and not isinstance(random_state, bool)
    if not is_int or random_state < 0:
        raise ValueError(
            "random_state must be None, a non-negative int, a RandomState or a Generator; "
            f"got {random_state!r}."
        )
    return np.random.SeedSequence(int(random_state))


def noise_source(random_state=None) -> NoiseSource:
    """Source of noise: the operating system, or a reproducible stream for tests.

    Parameters
    ----------
    random_state : None, int, RandomState, Generator or NoiseSource, default=None
        None draws from the operating system. Anything else makes the noise computable by
        whoever knows it: no privacy, only for tests and figures.

    Returns
    -------
    NoiseSource
    """
    if isinstance(random_state, NoiseSource):
        return random_state
    if random_state is None:
        return NoiseSource(_system_words)
    seed = seed_sequence(random_state)
    more = seed.spawn(1)[0]
    return NoiseSource(_SeededWords(np.random.PCG64(seed)), _SeededWords(np.random.PCG64(more)))


class _SeededWords:
    """Words of a generator; unlike a closure it can be pickled, and goes on where it was."""

    def __init__(self, bits):
        self._bits = bits

    def __call__(self, n):
        return np.atleast_1d(self._bits.random_raw(n))
