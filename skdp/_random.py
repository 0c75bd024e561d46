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

import os
from collections.abc import Callable, Sequence
from decimal import (
    MAX_EMAX,
    MIN_EMIN,
    ROUND_HALF_EVEN,
    Context,
    Decimal,
    DivisionByZero,
    InvalidOperation,
    Overflow,
    getcontext,
    localcontext,
)
from functools import cache
from math import prod
from statistics import NormalDist

import numpy as np

__all__ = ["NoiseSource", "check_random_state", "noise_source", "seed_sequence"]

# The float path errs by less than this in units of the scale. It is used only while at least
# 45 significant bits of the uniform u are known, hence for u > 2**-18 and quantiles below 13:
# - u is off by half a unit in the 63rd place and by one rounding, relative 2**-46 + 2**-53,
#   which moves log(u) by as much and the normal quantile by less (its Mills ratio is < 1.26);
# - log and ndtri are stated accurate to 2**-52 and 2**-50 relative; eight times that is < 2**-45.
# test_random.py compares these functions with multiple-precision arithmetic.
_FLOAT_ERROR = 2.0**-44
_FEW_BITS = 2.0**45
_LONG = 512  # words from which a cipher is worth its start
_BLOCK = 1 << 13
_LARGEST = 2.0**52


class _Uniform:
    """A uniform number in (0, 1) whose binary digits are drawn when they are asked for."""

    def __init__(self, digits: int, draw: Callable[[], int]):
        self.digits, self.length, self._draw = digits, 63, draw

    def to(self, length: int) -> Decimal:
        """Midpoint of the interval known once at least ``length`` digits are."""
        while self.length < length:
            self.append(self._draw())
        return Decimal(2 * self.digits + 1) / (2 << self.length)

    def append(self, word: int):
        """Go on with the digits of ``word``."""
        self.digits, self.length = (self.digits << 64) | word, self.length + 64

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
        return self._independent(size, scale, _minus_normal, _normal_magnitude)

    def laplace(self, size: int, scale: float) -> np.ndarray:
        """Draw ``rint(scale * Y)`` with ``Y`` of density ``exp(-|y|) / 2``; as for `normal`."""
        return self._independent(size, scale, _minus_laplace, _laplace_magnitude)

    def k_norm(self, size: int, scale: float) -> np.ndarray:
        """Draw ``rint(scale * Y)``, ``Y`` a vector of density proportional to ``exp(-||y||_2)``.

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
        return self.k_norms(1, size, scale)[0]

    def k_norms(self, n: int, size: int, scale: float) -> np.ndarray:
        """Draw ``n`` independent vectors of `k_norm` at once, the same as one after the other.

        The norm of ``Y`` has the Gamma distribution with shape ``size`` and its direction is
        uniform. The same law is a normal vector with one random scale, ``sqrt(2 G)`` with
        ``G`` of the Gamma distribution with shape ``(size + 1) / 2``: integrating ``G`` out
        leaves the Bessel function K of order 1/2, which is an exponential. That form needs no
        division by the norm of a rounded vector.

        Parameters
        ----------
        n : int
            Number of vectors.

        size : int
            Dimension.

        scale : float
            Scale of the norm in lattice steps.

        Returns
        -------
        ndarray of shape (n, size), dtype int64

        Examples
        --------
        >>> from skdp._random import noise_source
        >>> noise_source().k_norms(4, 10, 1000.0).shape
        (4, 10)
        """
        _check_span(scale)
        noise = np.empty((n, size), dtype=np.int64)
        n_shared = size // 2 + 1  # words that all coordinates of a vector share, for its radius
        height = max(1, _BLOCK // (n_shared + size))
        for start in range(0, n, height):
            out = noise[start : start + height]
            words = self._words(len(out) * (n_shared + size)).reshape(len(out), -1)
            self._fill(out, words[:, :n_shared], words[:, n_shared:].view(np.int64), scale)
        return noise

    def _fill(self, out, shared, words, scale):
        """Write one vector a row, its radius from ``shared`` and its direction from ``words``."""
        size = out.shape[1]
        exact: dict[int, _Radius] = {}

        def radius(row):  # rarely needed, and slow to make
            if row not in exact:
                uniforms = [self._uniform(int(word) >> 1) for word in shared[row]]
                exact[row] = _Radius(uniforms, self._more_words, size, scale)
            return exact[row]

        def settle(row, uniform):
            return _settle(
                lambda length: radius(row).at(length) * _upper_quantile(uniform.to(length) / 2),
                [uniform, radius(row)],
            )

        radii, errors, certain = _float_radii(shared, size)
        radii *= scale
        errors *= scale
        certain &= errors < 1e-4
        begin = 0
        for row in () if certain.all() else np.flatnonzero(~certain).tolist():
            # Row by row, so that further digits come in the same order however n is cut.
            self._round(out, words, begin, row, radii, errors, _minus_normal, settle)
            radii[row] = radius(row).to_float()
            errors[row] = _FLOAT_ERROR * radii[row]
            self._round(out, words, row, row + 1, radii, errors, _minus_normal, settle)
            begin = row + 1
        self._round(out, words, begin, len(out), radii, errors, _minus_normal, settle)

    def _independent(self, size, scale, law, magnitude):
        _check_span(scale)
        noise = np.empty((1, size), dtype=np.int64)

        def settle(_, uniform):
            return _settle(lambda length: magnitude(uniform.to(length), Decimal(scale)), [uniform])

        scales = np.array([scale], dtype=np.float64)
        errors = _FLOAT_ERROR * scales
        for start in range(0, size, _BLOCK):
            out = noise[:, start : start + _BLOCK]
            words = self._words(out.size).view(np.int64)[None]
            self._round(out, words, 0, 1, scales, errors, law, settle)
        return noise[0]

    def _uniform(self, digits: int) -> _Uniform:
        return _Uniform(digits, lambda: int(self._more_words(1)[0]))

    def _round(self, out, words, begin, end, scales, errors, law, settle):
        """Round ``scales * law(u)`` with random signs, exactly where float cannot tell.

        All arrays have a row for each scale, of which those from ``begin`` to ``end`` are done.
        """
        if begin == end:
            return
        scales = scales[begin:end, None]
        _check_span(scales.max())
        doubts = 0.5 - errors[begin:end, None]
        least_doubt = doubts.min()
        for start in range(0, out.shape[1], _BLOCK):
            place = (slice(begin, end), slice(start, start + _BLOCK))
            signed = words[place] + 0.5  # the sign bit is the sign, 63 digits follow
            digits = np.abs(signed)
            few_bits = digits < _FEW_BITS if digits.min() < _FEW_BITS else None
            value = law(digits)
            value *= scales
            nearest = np.rint(value)
            value -= nearest
            np.abs(value, out=value)
            np.copysign(nearest, signed, out=nearest)
            out[place] = nearest
            if few_bits is None and value.max() < least_doubt:
                continue
            undecided = value >= doubts
            if few_bits is not None:
                undecided |= few_bits
            for i, j in (np.argwhere(undecided) + (begin, start)).tolist():
                word = int(words[i, j])
                magnitude = settle(i, self._uniform(word if word >= 0 else ~word))
                out[i, j] = magnitude if word >= 0 else -magnitude


def _check_span(scale):
    if not scale < _LARGEST:
        raise ValueError(
            f"The noise spans {scale:.3g} lattice steps, more than an integer holds; "
            "ask for less noise or a coarser lattice."
        )


# In float. The argument holds the 63 leading digits of u as the midpoint of what is known.


def _minus_normal(digits):
    digits *= 2.0**-64  # |Z| has the quantile function -ndtri(u / 2), for u in (0, 1)
    return _ndtri()(digits, out=digits)


def _minus_laplace(digits):
    digits *= 2.0**-63
    return np.log(digits, out=digits)


@cache
def _ndtri():
    """Return scipy's normal quantile function, or else that of the standard library."""
    try:
        from scipy.special import ndtri
    except ImportError:
        inverse = NormalDist().inv_cdf

        def ndtri(probabilities, out):
            out.flat = [inverse(p) for p in probabilities.ravel().tolist()]
            return out

    return ndtri


def _float_radii(shared, size):
    """Return ``sqrt(2 G)`` of each row, error bounds of ``sqrt(2 G) |Z|`` and where they hold.

    The terms of ``G`` err by ``_FLOAT_ERROR / 2`` each, the half square of a normal quantile by
    that times the quantile, and all quantiles are below 5 where more than few bits are known.
    Hence ``G`` errs by less than ``(n_terms + 5) * _FLOAT_ERROR / 2`` and a relative 2**-48 from
    summation; divided by the radius these are the errors of the radius, if they are small
    beside ``G``. Another ``_FLOAT_ERROR / 2`` times the radius comes from ``Z``.
    """
    n_exponentials = (size + 1) // 2
    digits = (shared >> np.uint64(1)).astype(np.float64)
    digits += 0.5
    certain = digits.min(axis=1) > _FEW_BITS
    gamma = -_minus_laplace(digits[:, :n_exponentials].copy()).sum(axis=1)
    if size % 2 == 0:
        gamma += _minus_normal(digits[:, -1].copy()) ** 2 / 2
    least = (n_exponentials + 5) * 2.0**-20
    certain &= gamma > least
    radii = np.sqrt(2 * np.maximum(gamma, least))
    errors = _FLOAT_ERROR * (radii + 3 * (n_exponentials + 5) / radii)
    return radii, errors, certain


# In multiple precision: a decimal context of our own, whatever the caller has set.


def _precision(bits):
    return localcontext(
        Context(
            prec=bits * 302 // 1000 + 3,
            rounding=ROUND_HALF_EVEN,
            Emin=MIN_EMIN,
            Emax=MAX_EMAX,
            capitals=1,
            clamp=0,
            flags=[],
            traps=[InvalidOperation, DivisionByZero, Overflow],
        )
    )


class _Radius:
    """``scale * sqrt(2 G)`` of one K-norm vector, to as many digits as are asked for."""

    def __init__(self, uniforms: list[_Uniform], more_words, size: int, scale: float):
        self._uniforms, self._more_words = uniforms, more_words
        self._size, self._scale = size, scale
        self._length, self._value, self._inner = 0, Decimal(0), False

    def at(self, length: int) -> Decimal:
        """Compute it from ``length`` digits of each uniform number, or more."""
        if length > self._length:
            self._extend(length)
            gamma = -self._product((self._size + 1) // 2).ln()
            if self._size % 2 == 0:
                gamma += _upper_quantile(self._uniforms[-1].to(length) / 2) ** 2 / 2
            self._length, self._value = length, Decimal(self._scale) * (2 * gamma).sqrt()
            self._inner = all(uniform.is_inner() for uniform in self._uniforms)
        return self._value

    def is_inner(self) -> bool:
        """Whether all its uniform numbers are known to be away from 0 and from 1."""
        return self._inner

    def _extend(self, length):
        """Draw the digits of all numbers at once, in the order of one after the other."""
        n_words = -(-(length - self._uniforms[0].length) // 64)
        if n_words > 0:
            words = self._more_words(n_words * len(self._uniforms)).reshape(-1, n_words)
            for uniform, more in zip(self._uniforms, words.tolist(), strict=True):
                for word in more:
                    uniform.append(word)

    def _product(self, n_terms):
        """Multiply the first numbers, in groups of exact integers."""
        total = Decimal(1)
        for start in range(0, n_terms, 16):
            group = self._uniforms[start : min(start + 16, n_terms)]
            whole = prod(2 * uniform.digits + 1 for uniform in group)
            total *= Decimal(whole) / (1 << sum(uniform.length + 1 for uniform in group))
        return total

    def to_float(self) -> float:
        """Round it to the nearest float."""
        length = 192
        while True:
            with _precision(length + 64):
                value = self.at(length)
            if self._inner:
                return float(value)
            length *= 2


def _normal_magnitude(u: Decimal, scale: Decimal) -> Decimal:
    return scale * _upper_quantile(u / 2)


def _laplace_magnitude(u: Decimal, scale: Decimal) -> Decimal:
    return -scale * u.ln()


def _settle(magnitude: Callable[[int], Decimal], uniforms: Sequence[_Uniform | _Radius]) -> int:
    """Round ``magnitude(length)``, with as many digits of its uniforms as that takes."""
    length = 192
    while True:
        with _precision(length + 64):
            value = magnitude(length)
            # Inner uniforms are known to 2**(-3/4 length) relative, and so are their complements;
            # logarithms, quantiles, sums and roots of them lose a few digits more.
            error = (abs(value) + 1) / (1 << (length // 2))
            nearest = value.to_integral_value()
            is_clear = Decimal("0.5") - abs(value - nearest) > error
            if is_clear and all(uniform.is_inner() for uniform in uniforms):
                return int(nearest)
        length *= 2


def _upper_quantile(probability: Decimal) -> Decimal:
    """Where a standard normal is exceeded with a probability in (0, 1/2].

    Newton's method on the logarithm is safe in the tail and quadratic: a step shorter than half
    the digits leaves an error of all of them.
    """
    last = getcontext().prec
    root = Decimal(-NormalDist().inv_cdf(float(probability)) if probability > 1e-300 else 38)
    digits = 28
    for _ in range(64):
        with localcontext(prec=digits + 5):
            tail, density = _normal_tail(root)
            step = (tail / probability).ln() * tail / density
            root += step
            is_near = abs(step).scaleb(digits // 2) < 1
        if is_near and digits == last:
            return root
        if is_near:
            digits = min(2 * digits - 8, last)
    raise ArithmeticError("The normal quantile did not converge.")


def _normal_tail(x: Decimal) -> tuple[Decimal, Decimal]:
    """P(Z > x) and the density at ``x``, to the digits of the context."""
    with localcontext() as context:
        context.prec += 10 + int(x * x / 4)  # the tail is a difference of larger numbers
        square = x * x
        density = (-square / 2).exp() / (2 * _pi(context.prec)).sqrt()
        total, term, odd = Decimal(0), x, 1
        while total != (total := total + term):  # x + x^3 / 3 + x^5 / (3 * 5) + ...
            odd += 2
            term *= square / odd
        tail = Decimal("0.5") - density * total
    return +tail, +density


@cache
def _pi(digits: int) -> Decimal:
    """Evaluate pi by the arithmetic-geometric mean (Gauss; Brent and Salamin)."""
    with localcontext(prec=digits + 10):
        a, b, quarter, power = Decimal(1), 1 / Decimal(2).sqrt(), Decimal("0.25"), 1
        while abs(a - b).scaleb(digits + 5) > 1:
            mean = (a + b) / 2
            quarter -= power * (a - mean) ** 2
            a, b, power = mean, (a * b).sqrt(), 2 * power
        return (a + b) ** 2 / (4 * quarter)


def _system_words(n: int) -> np.ndarray:
    # No state is kept: a forked worker could otherwise repeat its parent's noise.
    stream = _key_stream() if n >= _LONG else None
    data = os.urandom(8 * n) if stream is None else stream(8 * n)
    return np.frombuffer(data, dtype=np.uint64)


@cache
def _key_stream() -> Callable[[int], bytes] | None:
    """AES-256 in counter mode under a new key of the system each time: ten times its speed."""
    try:
        from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
    except ImportError:
        return None

    def stream(n_bytes: int) -> bytes:
        cipher = Cipher(algorithms.AES(os.urandom(32)), modes.CTR(os.urandom(16)))
        return cipher.encryptor().update(bytes(n_bytes))

    return stream


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
    if random_state is None:
        raise ValueError("random_state must not be None where a seed is asked for; got None.")
    check_random_state(random_state)
    return np.random.SeedSequence(int(random_state))


def check_random_state(random_state):
    """Check what `noise_source` takes from users, without advancing a generator.

    Parameters
    ----------
    random_state : None, int, RandomState or Generator
    """
    if random_state is None or isinstance(
        random_state, np.random.Generator | np.random.RandomState
    ):
        return
    is_int = isinstance(random_state, int | np.integer) and not isinstance(random_state, bool)
    if not is_int or random_state < 0:
        raise ValueError(
            "random_state must be None, a non-negative int, a RandomState or a Generator; "
            f"got {random_state!r:.80}."
        )


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
