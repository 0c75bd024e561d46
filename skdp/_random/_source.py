"""Integer noise: in floating point where that is certain, and exactly where it is not."""

import math
import os
from collections.abc import Callable
from decimal import Decimal
from functools import cache
from statistics import NormalDist
from typing import Any

import numpy as np

from skdp._random import _exact
from skdp._random._exact import Radius, Uniform

_LONG_STREAM = 512  # words from which a cipher is worth its start


def system_words(n: int) -> np.ndarray:
    """Words of the operating system."""
    # No state is kept: a forked worker could otherwise repeat its parent's noise.
    stream = key_stream() if n >= _LONG_STREAM else None
    data = os.urandom(8 * n) if stream is None else stream(8 * n)
    return np.frombuffer(data, dtype=np.uint64)


@cache
def key_stream() -> Callable[[int], bytes] | None:
    """AES-256 in counter mode under a new key of the system each time: ten times its speed."""
    try:
        from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
    except ImportError:
        return None

    def stream(n_bytes: int) -> bytes:
        cipher = Cipher(algorithms.AES(os.urandom(32)), modes.CTR(os.urandom(16)))
        return cipher.encryptor().update(bytes(n_bytes))

    return stream


def seed_sequence(random_state: Any) -> np.random.SeedSequence:
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


def check_random_state(random_state: Any) -> None:
    """Check what `noise_source` takes from users, without advancing a generator.

    Parameters
    ----------
    random_state : None, int, RandomState or Generator
    """
    kinds = np.random.Generator | np.random.RandomState | None
    if isinstance(random_state, kinds):
        return
    is_int = isinstance(random_state, int | np.integer) and not isinstance(random_state, bool)
    if not is_int or random_state < 0:
        raise ValueError(
            "random_state must be None, a non-negative int, a RandomState or a Generator; "
            f"got {random_state!r:.80}."
        )


class SeededWords:
    """Words of a generator; unlike a closure it can be pickled, and goes on where it was."""

    def __init__(self, bits: np.random.PCG64) -> None:
        self._bits = bits

    def __call__(self, n: int) -> np.ndarray:
        return np.atleast_1d(self._bits.random_raw(n))


# The float path errs by less than this in units of the scale. It is used only while at least
# 45 significant bits of the uniform u are known, hence for u > 2**-18 and quantiles below 13:
# - u is off by half a unit in the 63rd place and by one rounding, relative 2**-46 + 2**-53,
#   which moves log(u) by as much and the normal quantile by less (its Mills ratio is < 1.26);
# - log and ndtri are stated accurate to 2**-52 and 2**-50 relative; eight times that is < 2**-45.
# test_random.py compares these functions with multiple-precision arithmetic.
_FLOAT_ERROR = 2.0**-44
_FEW_BITS = 2.0**45
_BLOCK = 1 << 13
_DRAWN = 8 * _BLOCK  # words at once: a key for each costs more than its words
_LARGEST = 2.0**52
_MANY = 16  # numbers in doubt from which a closer look at all of them pays
_LEAST_DIGITS = 2**20
_MORE_WORDS = 3  # those of 192 digits and more, as a `Radius` asks for
_LONG = 64  # coordinates of a vector from which its radius is worth a shorter way


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

    @property
    def is_repeatable(self) -> bool:
        """Whether its noise can be drawn again, which is void of privacy."""
        return self._words is not system_words

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
        return self._independent(size, scale, _minus_normal, _exact.normal_magnitude)

    def laplace(self, size: int, scale: float) -> np.ndarray:
        """Draw ``rint(scale * Y)`` with ``Y`` of density ``exp(-|y|) / 2``; as for `normal`."""
        return self._independent(size, scale, _minus_laplace, _exact.laplace_magnitude)

    def uniforms(self, n: int) -> list[Uniform]:
        """Draw ``n`` uniform numbers in (0, 1), of which 63 binary digits are known at first.

        Parameters
        ----------
        n : int

        Returns
        -------
        list of Uniform
        """
        return [self._uniform(word >> 1) for word in self._words(n).tolist()]

    def vectors(self, kind: str, n: int, size: int, scale: float) -> np.ndarray:
        """Draw ``n`` vectors of a law by its name: "laplace", "k_norm" or "gaussian".

        Parameters
        ----------
        kind : str

        n, size : int

        scale : float
            In lattice steps.

        Returns
        -------
        ndarray of shape (n, size), dtype int64
        """
        if kind == "k_norm":
            return self.k_norms(n, size, scale)
        draw = self.normal if kind == "gaussian" else self.laplace
        return draw(n * size, scale).reshape(n, size)

    def k_norm(self, size: int, scale: float) -> np.ndarray:
        """Draw ``rint(scale * Y)``, ``Y`` a vector of density proportional to ``exp(-||y||_2)``.

        As for `k_norms`, of which it is one.
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

    def _fill(self, out: np.ndarray, shared: np.ndarray, words: np.ndarray, scale: float) -> None:
        """Write one vector a row, its radius from ``shared`` and its direction from ``words``."""
        size = out.shape[1]
        exact: dict[int, Radius] = {}
        near: dict[int, tuple[Decimal, float] | None] = {}
        drawn: dict[int, np.ndarray] = {}  # further words of a row's radius

        def radius(row: int) -> Radius:  # rarely needed, and slow to make
            if row not in exact:
                uniforms = [self._uniform(int(word) >> 1) for word in shared[row]]
                first = [drawn[row]] if row in drawn else []
                more = self._more_words
                exact[row] = Radius(
                    uniforms, lambda n: first.pop() if first else more(n), size, scale
                )
            return exact[row]

        def nearly(row: int) -> tuple[Decimal, float] | None:  # a shorter way for a long vector
            if row not in near:
                near[row], digits = None, shared[row] >> np.uint64(1)
                # A radius has further digits once: who has drawn them keeps to them.
                if size > _LONG and row not in exact and digits.min() > _LEAST_DIGITS:
                    drawn[row] = self._more_words(_MORE_WORDS * len(digits))
                    found = _exact.near_radius(digits, drawn[row][::_MORE_WORDS], size, scale)
                    near[row] = found if found[1] < 2.0**-53 else None
            return near[row]

        def settle(row: int, uniform: Uniform) -> int:
            closer = nearly(row) if uniform.digits > _LEAST_DIGITS else None
            magnitude = _exact.near_rounded(*closer, uniform) if closer else None
            if magnitude is not None:
                return magnitude
            return _exact.rounded(
                lambda length: (
                    radius(row).at(length) * _exact.upper_quantile(uniform.to(length) / 2)
                ),
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
            closer = nearly(row)
            radii[row] = float(closer[0]) if closer else radius(row).to_float()
            errors[row] = _FLOAT_ERROR * radii[row]
            self._round(out, words, row, row + 1, radii, errors, _minus_normal, settle)
            begin = row + 1
        self._round(out, words, begin, len(out), radii, errors, _minus_normal, settle)

    def k_norm_pairs(self, n_pairs: int, scale: float) -> np.ndarray:
        """Draw ``rint(scale * Y)``, ``Y`` of density proportional to ``exp(-max_j ||Y_j||_2)``.

        The maximum is over pairs of coordinates, of which the first are one half of the vector and
        the second the other half. ``Y`` is ``G U`` with ``U`` uniform in the product of unit discs
        and ``G`` of the Gamma distribution with shape ``2 n_pairs + 1``: integrating ``G`` out
        leaves the exponential of the maximum. Points of discs are those of squares that are in
        them.

        Parameters
        ----------
        n_pairs : int

        scale : float
            In lattice steps.

        Returns
        -------
        ndarray of shape (2 * n_pairs,), dtype int64
        """
        _check_span(scale)
        order = 4 * n_pairs + 1  # of normal coordinates whose half square of a radius is G
        shared = self._words(order // 2 + 1)[None]
        words, known = _exact.disc_words(n_pairs, self._words, self._uniform)
        uniforms = [self._uniform(int(word) >> 1) for word in shared[0]]
        exact = Radius(uniforms, self._more_words, order, 1.0)

        def settle(_: int, uniform: Uniform) -> int:
            u = known.get(uniform.digits, uniform)
            return _exact.rounded(
                lambda length: Decimal(scale) * exact.at(length) ** 2 / 2 * u.to(length),
                [u, exact],
            )

        radii, errors, certain = _float_radii(shared, order)
        if not certain.all() or scale * radii[0] * errors[0] >= 1e-4:
            radii = np.array([exact.to_float()])
            errors = _FLOAT_ERROR * radii
        # The square errs by twice the relative error of the radius, and rounding comes on top.
        sizes = scale * radii**2 / 2
        errors = sizes * (2.1 * errors / radii + _FLOAT_ERROR)
        noise = np.empty((1, 2 * n_pairs), dtype=np.int64)
        self._round(noise, words[None], 0, 1, sizes, errors, _uniform, settle)
        return noise[0]

    def polya(self, size: int, scale: float, share: float) -> np.ndarray:
        """Draw a share of discrete Laplace noise: differences of two negative binomial numbers.

        Independent draws whose shares add up to 1 have a sum ``k`` with probability proportional
        to ``exp(-abs(k) / scale)``. A negative binomial number is a sum of logarithmic ones, whose
        number has a Poisson law (Quenouille, Biometrics 1949); these follow from two uniform
        numbers (Kemp, Applied Statistics 1981, algorithm LK).

        Parameters
        ----------
        size : int
            Number of draws.

        scale : float
            Of the sum, in lattice steps; from 1 to 2**32.

        share : float
            From 0, not included, to 1.

        Returns
        -------
        ndarray of shape (size,), dtype int64
        """
        _check_share(scale, share)
        thresholds, counts = _exact.poisson_thresholds(scale, share), np.empty(size, dtype=int)
        for start in range(0, size, _DRAWN):
            digits = self._words(min(_DRAWN, size - start)) >> np.uint64(1)
            here = np.searchsorted(thresholds, digits, side="left")
            # Next to a threshold, or beyond the last one, further digits tell.
            known = thresholds[np.minimum(here, len(thresholds) - 1)]
            doubtful = (digits == known) | (here == len(thresholds))
            for i in np.flatnonzero(doubtful).tolist():
                uniform = self._uniform(int(digits[i]))
                here[i] = _exact.poisson_number(scale, share, uniform)
            counts[start : start + len(here)] = here
        noise, owners = np.zeros(size, dtype=np.int64), np.repeat(np.arange(size), counts)
        for start in range(0, len(owners), _DRAWN):
            part = owners[start : start + _DRAWN]
            words = self._words(2 * len(part)).reshape(2, -1)
            np.add.at(noise, part, self._logarithmic(words, scale))
        return noise

    def _logarithmic(self, words: np.ndarray, scale: float) -> np.ndarray:
        """Logarithmic numbers with random signs, from two words each."""
        digits = words >> np.uint64(1)
        first, second = digits.astype(np.float64) + 0.5
        rate = math.log(-1.0 / math.expm1(-1.0 / scale))
        far = rate * first * 2.0**-63
        # Logarithms of 1 - exp(-far) and of the other number, each where it loses no digits.
        below = np.where(far < 0.7, np.log(-np.expm1(-far)), np.log1p(-np.exp(-far)))
        u = second * 2.0**-63
        beside = ((np.uint64(2**63) - digits[1]).astype(np.float64) - 0.5) * 2.0**-63
        above = np.where(u < 0.5, np.log(u), np.log1p(-beside))
        value = above / below + 0.5
        nearest = np.rint(value)
        doubts = 0.5 - _FLOAT_ERROR * (value + 1.0)
        undecided = (np.abs(value - nearest) >= doubts) | (first < _FEW_BITS)
        undecided |= (second < _FEW_BITS) | (second > 2.0**63 - _FEW_BITS)
        found = nearest.astype(np.int64)
        for i in np.flatnonzero(undecided).tolist():
            found[i] = _exact.logarithmic([self._uniform(int(one)) for one in digits[:, i]], scale)
        return np.where(words[1] & np.uint64(1), -found, found)

    def _independent(
        self,
        size: int,
        scale: float,
        law: Callable[[np.ndarray], np.ndarray],
        magnitude: Callable[[Decimal, Decimal], Decimal],
    ) -> np.ndarray:
        _check_span(scale)
        noise = np.empty((1, size), dtype=np.int64)

        def settle(_: int, uniform: Uniform) -> int:
            if law is _minus_normal and uniform.digits > _LEAST_DIGITS:
                nearest = _exact.near_rounded(Decimal(scale), 0.0, uniform)
                if nearest is not None:
                    return nearest
            return _exact.rounded(
                lambda length: magnitude(uniform.to(length), Decimal(scale)), [uniform]
            )

        scales = np.array([scale], dtype=np.float64)
        errors = _FLOAT_ERROR * scales
        for start in range(0, size, _DRAWN):
            out = noise[:, start : start + _DRAWN]
            words = self._words(out.size).view(np.int64)[None]
            self._round(out, words, 0, 1, scales, errors, law, settle)
        return noise[0]

    def _uniform(self, digits: int) -> Uniform:
        return Uniform(digits, lambda: int(self._more_words(1)[0]))

    def _round(
        self,
        out: np.ndarray,
        words: np.ndarray,
        begin: int,
        end: int,
        scales: np.ndarray,
        errors: np.ndarray,
        law: Callable[[np.ndarray], np.ndarray],
        settle: Callable[[int, Uniform], int],
    ) -> None:
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
            places = np.argwhere(undecided)
            if len(places) > _MANY:
                at = tuple(places.T)
                row_errors = errors[begin:end] - _FLOAT_ERROR * scales[:, 0]
                close = _close_errors(np.abs(nearest[at]), signed[at], scales[at[0], 0])
                close += np.maximum(row_errors, 0.0)[at[0]]
                places = places[(value[at] >= 0.5 - close) | (np.abs(signed[at]) < _FEW_BITS)]
            for i, j in (places + (begin, start)).tolist():
                word = int(words[i, j])
                magnitude = settle(i, self._uniform(word if word >= 0 else ~word))
                out[i, j] = magnitude if word >= 0 else -magnitude


def _check_span(scale: float) -> None:
    if not scale < _LARGEST:
        raise ValueError(
            f"The noise spans {scale:.3g} lattice steps, more than an integer holds; "
            "ask for less noise or a coarser lattice."
        )


# In float. The argument holds the 63 leading digits of u as the midpoint of what is known.


def _check_share(scale: float, share: float) -> None:
    if not 1.0 <= scale <= 2.0**32:
        raise ValueError(
            f"The noise spans {scale:.3g} lattice steps, which must be 1 to 2**32: ask for less "
            "noise or another lattice."
        )
    if not 0.0 < share <= 1.0:
        raise ValueError(f"share must be above 0 and at most 1; got {share}.")


def _close_errors(nearest: np.ndarray, signed: np.ndarray, scales: np.ndarray) -> np.ndarray:
    """Bounds on the errors of single magnitudes, which are mostly far below that of the largest.

    The quantile errs by a relative 2**-47, the product by 2**-52. The uniform number is rounded
    twice and known to half a unit, and moves the quantile by less than 1.3 times that.
    """
    missing = 2.0**-52 + 0.5 / np.abs(signed)
    return (nearest + 1.0) * (2.0**-47 + 2.0**-51) + 1.3 * scales * missing


def _minus_normal(digits: np.ndarray) -> np.ndarray:
    digits *= 2.0**-64  # |Z| has the quantile function -ndtri(u / 2), for u in (0, 1)
    return _ndtri()(digits, out=digits)


def _uniform(digits: np.ndarray) -> np.ndarray:
    digits *= 2.0**-63
    return digits


def _minus_laplace(digits: np.ndarray) -> np.ndarray:
    digits *= 2.0**-63
    return np.log(digits, out=digits)


@cache
def _ndtri() -> Callable[..., np.ndarray]:
    """Return scipy's normal quantile function, or else that of the standard library."""
    try:
        from scipy.special import ndtri
    except ImportError:
        inverse = NormalDist().inv_cdf

        def ndtri(probabilities: np.ndarray, out: np.ndarray) -> np.ndarray:
            out.flat[:] = [inverse(p) for p in probabilities.ravel().tolist()]
            return out

    return ndtri


def _float_radii(shared: np.ndarray, size: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
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


def noise_source(random_state: Any = None) -> NoiseSource:
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
        return NoiseSource(system_words)
    seed = seed_sequence(random_state)
    more = seed.spawn(1)[0]
    return NoiseSource(SeededWords(np.random.PCG64(seed)), SeededWords(np.random.PCG64(more)))
