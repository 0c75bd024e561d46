"""What floats cannot settle, in multiple precision: digits on demand, quantiles, roots."""

import decimal
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from decimal import Context, Decimal, getcontext, localcontext
from functools import cache
from math import prod
from statistics import NormalDist

import numpy as np

_POISSON_BITS = 256


class Uniform:
    """A uniform number in (0, 1) whose binary digits are drawn when they are asked for."""

    def __init__(self, digits: int, draw: Callable[[], int]) -> None:
        self.digits, self.length, self._draw = digits, 63, draw

    def to(self, length: int) -> Decimal:
        """Midpoint of the interval known once at least ``length`` digits are."""
        while self.length < length:
            self.append(self._draw())
        return Decimal(2 * self.digits + 1) / (2 << self.length)

    def append(self, word: int) -> None:
        """Go on with the digits of ``word``."""
        self.digits, self.length = (self.digits << 64) | word, self.length + 64

    def is_inner(self) -> bool:
        """Whether the known digits keep the number well away from 0 and from 1."""
        margin = self.length - self.length // 4
        complement = (1 << self.length) - 1 - self.digits
        return min(self.digits, complement).bit_length() > margin


def precision(bits: int) -> AbstractContextManager[Context]:
    """Decimal context of our own, whatever the caller has set."""
    return localcontext(
        Context(
            prec=bits * 302 // 1000 + 3,
            rounding=decimal.ROUND_HALF_EVEN,
            Emin=decimal.MIN_EMIN,
            Emax=decimal.MAX_EMAX,
            capitals=1,
            clamp=0,
            flags=[],
            traps=[decimal.InvalidOperation, decimal.DivisionByZero, decimal.Overflow],
        )
    )


class Radius:
    """``scale * sqrt(2 G)`` of one K-norm vector, to as many digits as are asked for."""

    def __init__(
        self,
        uniforms: list[Uniform],
        more_words: Callable[[int], np.ndarray],
        size: int,
        scale: float,
    ) -> None:
        self._uniforms, self._more_words = uniforms, more_words
        self._size, self._scale = size, scale
        self._length, self._value, self._inner = 0, Decimal(0), False

    def at(self, length: int) -> Decimal:
        """Compute it from ``length`` digits of each uniform number, or more."""
        if length > self._length:
            self._extend(length)
            gamma = -self._product((self._size + 1) // 2).ln()
            if self._size % 2 == 0:
                gamma += upper_quantile(self._uniforms[-1].to(length) / 2) ** 2 / 2
            self._length, self._value = length, Decimal(self._scale) * (2 * gamma).sqrt()
            self._inner = all(uniform.is_inner() for uniform in self._uniforms)
        return self._value

    def is_inner(self) -> bool:
        """Whether all its uniform numbers are known to be away from 0 and from 1."""
        return self._inner

    def _extend(self, length: int) -> None:
        """Draw the digits of all numbers at once, in the order of one after the other."""
        n_words = -(-(length - self._uniforms[0].length) // 64)
        if n_words > 0:
            words = self._more_words(n_words * len(self._uniforms)).reshape(-1, n_words)
            for uniform, more in zip(self._uniforms, words.tolist(), strict=True):
                for word in more:
                    uniform.append(word)

    def _product(self, n_terms: int) -> Decimal:
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
            with precision(length + 64):
                value = self.at(length)
            if self._inner:
                return float(value)
            length *= 2


def near_radius(
    digits: np.ndarray, later: np.ndarray, size: int, scale: float
) -> tuple[Decimal, float]:
    """``scale * sqrt(2 G)`` from the first 127 digits of each uniform number, with an error bound.

    A long vector has very many of them, of which so many digits are nearly always enough.

    Parameters
    ----------
    digits, later : ndarray of shape (n_terms,), unsigned 64-bit integers
        The first 63 digits, more than ``2**20``, and the 64 that follow.

    size : int

    scale : float

    Returns
    -------
    radius : Decimal

    relative_error : float
    """
    n_exponentials = (size + 1) // 2
    # A float holds the digits after the 43rd to 2**-33 of a unit of the 63rd.
    missing = 2.0**-32 / digits.astype(np.float64)
    with precision(192):
        gamma = -_near_product(digits[:n_exponentials], later[:n_exponentials])
        error = float(missing[:n_exponentials].sum()) + n_exponentials * 2.0**-90
        if size % 2 == 0:
            whole = (int(digits[-1]) << 64) | int(later[-1])
            quantile, slack = near_quantile(whole, 127)
            gamma += quantile**2 / 2
            error += (float(quantile) + slack) * slack
        # A root errs by half as much as its square, up to the square of that.
        relative = 1.01 * error / float(gamma)
        return Decimal(scale) * (2 * gamma).sqrt(), relative if relative < 1e-3 else 1.0


def near_rounded(factor: Decimal, relative_error: float, uniform: Uniform) -> int | None:
    """Round a factor times a normal magnitude, if 127 digits tell its nearest integer.

    Parameters
    ----------
    factor : Decimal

    relative_error : float
        Of the factor, at most.

    uniform : Uniform
        What the magnitude is the quantile of; most of the time it draws no further digits.
    """
    for length in (63, 127):
        with precision(192):
            uniform.to(length)
            quantile, slack = near_quantile(uniform.digits, uniform.length)
            product = factor * quantile
            error = float(product) * relative_error + 1.01 * float(factor) * slack
            nearest = product.to_integral_value()
            if Decimal("0.5") - abs(product - nearest) > Decimal(2 * error + 1e-20):
                return int(nearest)
    return None


def near_quantile(digits: int, length: int) -> tuple[Decimal, float]:
    """Normal magnitude of a uniform number of so many digits, and a bound on its error.

    One step of Newton's method leaves less than half the square of it. The digits that are not
    known move the quantile by less than 1.26, a bound on the Mills ratio, times their share.
    """
    probability = Decimal(2 * digits + 1) / (4 << length)
    root = Decimal(-NormalDist().inv_cdf(float(probability)))
    tail, density = _normal_tail(root)
    step = (tail / probability).ln() * tail / density
    missing = float(1 / Decimal(2 * digits))
    return root + step, 1.3 * missing + float(step) ** 2 + 1e-40


def _near_product(digits: np.ndarray, later: np.ndarray) -> Decimal:
    """Logarithm of the product of uniform numbers in (0, 1), in pairs of floats.

    A product of pairs errs by a relative 2**-98 at most.
    """
    high = (digits >> np.uint64(20)).astype(np.float64) * 2.0**-43  # 43 bits, no rounding
    low = (digits & np.uint64(0xFFFFF)).astype(np.float64) + later.astype(np.float64) * 2.0**-64
    high, low = _summed(high, low * 2.0**-63)
    exponent = 0
    while len(high) > 1:
        if len(high) % 2:
            high, low = np.append(high, 1.0), np.append(low, 0.0)
        high, low = _multiplied(high[::2], low[::2], high[1::2], low[1::2])
        _, shifts = np.frexp(high)
        high, low = np.ldexp(high, -shifts), np.ldexp(low, -shifts)
        exponent += int(shifts.sum())
    return (Decimal(float(high[0])) + Decimal(float(low[0]))).ln() + exponent * Decimal(2).ln()


def _multiplied(
    a: np.ndarray, a_low: np.ndarray, b: np.ndarray, b_low: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Multiply pairs of floats, by Dekker's product."""
    product = a * b
    (a_first, a_rest), (b_first, b_rest) = _halves(a), _halves(b)
    rest = a_rest * b_rest - (
        ((product - a_first * b_first) - a_rest * b_first) - a_first * b_rest
    )
    rest += a * b_low + a_low * b
    return _summed(product, rest)


def _summed(large: np.ndarray, small: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Sum to a float and what it leaves, by Dekker's sum."""
    total = large + small
    return total, small - (total - large)


def _halves(number: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Cut floats into a first half of 26 bits and the rest."""
    large = (2.0**27 + 1.0) * number
    first = large - (large - number)
    return first, number - first


def normal_magnitude(u: Decimal, scale: Decimal) -> Decimal:
    """Absolute value of Gaussian noise from a uniform number."""
    return scale * upper_quantile(u / 2)


def laplace_magnitude(u: Decimal, scale: Decimal) -> Decimal:
    """Absolute value of Laplace noise from a uniform number."""
    return -scale * u.ln()


@cache
def poisson_thresholds(scale: float, share: float) -> np.ndarray:
    """63 digits of the distribution function of how many logarithmic numbers there are.

    Parameters
    ----------
    scale, share : float
        Of `NoiseSource.polya`.

    Returns
    -------
    ndarray of unsigned 64-bit integers
    """
    with precision(_POISSON_BITS):
        found = []
        for total in _poisson_totals(scale, share):
            found.append(int(total * 2**63))
            if 1 - total < Decimal(2) ** -70:
                return np.array(found, dtype=np.uint64)
    raise AssertionError("a distribution function comes to 1")


def poisson_number(scale: float, share: float, uniform: Uniform) -> int:
    """The number that a uniform one belongs to, with as many digits as that takes."""
    length = 192
    while True:
        with precision(length + 64):
            value, error = uniform.to(length), Decimal(2) ** (16 - length)
            for number, total in enumerate(_poisson_totals(scale, share)):
                if abs(value - total) <= error or 1 - total <= error:
                    break
                if value < total:
                    return number
        length *= 2


def _poisson_totals(scale: float, share: float) -> Iterator[Decimal]:
    """Distribution function, number by number, in the precision of the context."""
    mean = -2 * Decimal(share) * (1 - (-1 / Decimal(scale)).exp()).ln()
    term, total, number = (-mean).exp(), Decimal(0), 0
    while True:
        total += term
        yield total
        number += 1
        term *= mean / number


def rounded(magnitude: Callable[[int], Decimal], uniforms: Sequence[Uniform | Radius]) -> int:
    """Round ``magnitude(length)``, with as many digits of its uniforms as that takes."""
    length = 192
    while True:
        with precision(length + 64):
            value = magnitude(length)
            # Inner uniforms are known to 2**(-3/4 length) relative, and so are their complements;
            # logarithms, quantiles, sums and roots of them lose a few digits more.
            error = (abs(value) + 1) / (1 << (length // 2))
            nearest = value.to_integral_value()
            is_clear = Decimal("0.5") - abs(value - nearest) > error
            if is_clear and all(uniform.is_inner() for uniform in uniforms):
                return int(nearest)
        length *= 2


def logarithmic(uniforms: Sequence[Uniform], scale: float) -> int:
    """A logarithmic number with ``p = exp(-1 / scale)``, from two uniform ones."""
    first, second = uniforms

    def magnitude(length: int) -> Decimal:
        power = (first.to(length) * (1 - (-1 / Decimal(scale)).exp()).ln()).exp()
        return second.to(length).ln() / (1 - power).ln() + Decimal("0.5")

    return rounded(magnitude, uniforms)


def upper_quantile(probability: Decimal) -> Decimal:
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


def disc_words(
    n_points: int,
    draw: Callable[[int], np.ndarray],
    uniform: Callable[[int], Uniform],
) -> tuple[np.ndarray, dict[int, Uniform]]:
    """Draw points of the square ``(-1, 1)^2`` until so many are in the disc.

    Whether a point is in it is told by the first 63 digits of its numbers but for one in a
    trillion, whose numbers keep the digits that told.

    Parameters
    ----------
    n_points : int

    draw : callable
        ``draw(n)`` returns ``n`` uniform unsigned 64-bit integers.

    uniform : callable
        ``uniform(digits)`` is a number of which 63 digits are known.

    Returns
    -------
    words : ndarray of shape (2 * n_points,), dtype int64
        A sign and 63 digits each: the first coordinates of all points, then the second ones.

    known : dict
        By their first digits, numbers of which more are known.
    """
    kept: list[np.ndarray] = []
    known: dict[int, Uniform] = {}
    missing = n_points
    while missing > 0:
        words = draw(2 * (missing + missing // 2 + 8)).view(np.int64).reshape(-1, 2)
        squares = (((words + 0.5) * 2.0**-63) ** 2).sum(axis=1)
        inside = squares < 1.0
        for place in np.flatnonzero(np.abs(squares - 1.0) < 2.0**-40).tolist():
            digits = [word if word >= 0 else ~word for word in words[place].tolist()]
            pair = [uniform(first) for first in digits]
            inside[place] = is_inside(*pair)
            if inside[place]:
                known |= dict(zip(digits, pair, strict=True))
        kept.append(words[inside][:missing])
        missing -= len(kept[-1])
    return np.concatenate(kept).T.ravel(), known


def is_inside(x: Uniform, y: Uniform) -> bool:
    """Whether a point of the square is in the unit disc, by as many digits as that takes."""
    length = 128
    while True:
        with precision(2 * length + 64):
            beyond = x.to(length) ** 2 + y.to(length) ** 2 - 1
            # Numbers are known to half a unit in the last place, and at most 1.
            if abs(beyond) > Decimal(3) / (1 << length):
                return beyond < 0
        length *= 2
