"""Products of features that are integers of 7 bits, in single precision and without error.

Weights and residuals are cut into digits of so few bits that all partial sums of their products
with features are integers below 2**24, which single precision has in whatever order they are
formed; double precision joins the digits. Half as much memory is read, and twice as many numbers
are multiplied at once.
"""

import math

import numpy as np

__all__ = [
    "FEWEST_FEATURES",
    "LARGEST",
    "MOST_FEATURES",
    "MOST_ROWS",
    "exact_scores",
    "residual_units",
    "rounded",
    "times",
]

LARGEST = 127.0  # its square times the length of a block is below 2**24

# Rows that are multiplied by residuals at once.
MOST_ROWS = 128

# Of more features, weights have more than four digits, and double precision is as fast; of fewer,
# the digits cost more than they save.
FEWEST_FEATURES = 640
MOST_FEATURES = 1032

_WEIGHT_BITS = 30  # at least


def exact_scores(weights, n_features):
    """Return the map from integer rows to their products with weights, these rounded.

    Parameters
    ----------
    weights : ndarray of shape (n_features,)

    n_features : int

    Returns
    -------
    callable

    Notes
    -----
    Of n digits of b bits the joined products are integers below ``2**(24 + (n - 1) b)``, up to a
    part of ``2**-b`` of that. As ``(n - 1) b`` is below 30, and no b divides 29, these are below
    2**53.
    """
    bits = _digit_bits(n_features)
    n_digits = -(-_WEIGHT_BITS // bits)
    # Digits up to half their base reach as far as a number of one bit less.
    weights = rounded(weights, n_digits * bits - 1)
    largest = max(float(np.abs(weights).max()), 1e-200)
    units = _units(2.0 ** (math.ceil(math.log2(largest)) - bits + 1), bits, n_digits)
    digits = np.asfortranarray(_cut(weights, units).T)
    return lambda rows: (rows @ digits).astype(np.float64) @ units


def residual_units(n_bits):
    """Units of the digits of whole residuals of so many bits."""
    bits = _digit_bits(MOST_ROWS)
    n_digits = -(-(n_bits + 1) // bits)
    return _units(2.0 ** (bits * (n_digits - 1)), bits, n_digits)


def times(residuals, rows, units):
    """Sum of at most `MOST_ROWS` rows times their whole residuals, in units of their digits."""
    return units @ (_cut(residuals, units) @ rows).astype(np.float64)


def rounded(numbers, bits):
    """Round to multiples of a power of two, so that the largest takes ``bits`` bits."""
    largest = max(float(np.abs(numbers).max()), 1e-200)
    unit = 2.0 ** (math.ceil(math.log2(largest)) - bits)
    return np.rint(numbers / unit) * unit


def _digit_bits(n_terms):
    """Bits of digits whose products with features, ``n_terms`` of them, add up to 2**24 at most.

    Digits are at most half of their base.
    """
    return math.floor(math.log2(2.0**24 / (LARGEST * n_terms))) + 1


def _units(first, bits, n_digits):
    return first * 2.0 ** (-bits * np.arange(float(n_digits)))


def _cut(numbers, units):
    """Digits of multiples of the last unit, each at most half of a base."""
    digits = np.empty((len(units), len(numbers)), dtype=np.float32)
    for digit, unit in zip(digits[:-1], units[:-1], strict=True):
        np.rint(numbers / unit, out=digit, casting="same_kind")
        numbers = numbers - digit * unit  # in double precision, as units are
    digits[-1] = numbers / units[-1]
    return digits
