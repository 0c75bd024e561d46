"""Sums and products whose rounding errors are small or none."""

import math

import numpy as np
from scipy import sparse

__all__ = [
    "PART_BITS",
    "RESIDUAL_BITS",
    "ExactScores",
    "PairwiseSum",
    "coarse",
    "power_above",
    "with_entries",
]

PART_BITS = 25
RESIDUAL_BITS = 52 - PART_BITS  # those of the number of rows in a block included


class PairwiseSum:
    """Sum of many arrays in pairs, pairs of pairs and so on: the error grows with the depth."""

    def __init__(self, shape):
        self._shape, self._stack = shape, []

    def add(self, part):
        """Add one array."""
        depth = 0
        while self._stack and self._stack[-1][0] == depth:
            part = self._stack.pop()[1] + part
            depth += 1
        self._stack.append((depth, part))

    def total(self):
        """Sum of all arrays so far."""
        parts = [part for _, part in reversed(self._stack)]
        if len(parts) < 2:
            return parts[0].copy() if parts else np.zeros(self._shape)
        return sum(parts[1:], parts[0])


class ExactScores:
    """Scores of rows with an error in their own last place, whatever the weights.

    Rows and weights are cut into parts: 25 bits below the bounds on their norms, then as many as
    keep products with those, and all partial sums, integers below 2**53 in units of a power
    of two. So they have no rounding error, in whatever order they are formed.
    """

    def __init__(self, weights, row_norm):
        fine = 2.0 ** (math.ceil(math.log2(weights.shape[1]) / 2) - PART_BITS)
        self.row_step = power_above(row_norm) * 2.0**-PART_BITS
        self.fine_row_step = self.row_step * fine
        step = power_above(float(np.linalg.norm(weights))) * 2.0**-PART_BITS
        self.weights = weights
        self.first = coarse(weights, step)
        self.others = weights - self.first
        self.second = coarse(self.others, step * fine)
        self.third = self.others - self.second

    def __call__(self, rows):
        """Coarse part of the rows, the rest of them, and the scores."""
        high, low = self._parts(rows, self.row_step)
        middle, lowest = self._parts(low, self.fine_row_step)
        first = high @ self.first.T
        second = high @ self.second.T + middle @ self.first.T
        rest = high @ self.third.T + middle @ self.others.T + lowest @ self.weights.T
        second += rest
        if first.shape[1] > 1:
            # What all scores of a row have in common moves no residual, and would be rounded.
            largest = first.argmax(axis=1)[:, np.newaxis]
            first -= np.take_along_axis(first, largest, axis=1)
            second -= np.take_along_axis(second, largest, axis=1)
        return high, low, first + second

    @staticmethod
    def _parts(rows, step):
        if not sparse.issparse(rows):
            high = coarse(rows, step)
            return high, rows - high
        high = coarse(rows.data, step)
        return with_entries(rows, high), with_entries(rows, rows.data - high)


def coarse(numbers, step):
    """Multiples of a power of two next to numbers that are below 2**51 of it."""
    large = 1.5 * 2.0**52 * step
    return (numbers + large) - large


def power_above(number):
    """Power of two that is larger, by a factor of two at most."""
    return 2.0 ** max(math.frexp(number)[1], -900)


def with_entries(rows, data):
    """CSR matrix with other entries in the same places; indices are shared."""
    return sparse.csr_array((data, rows.indices, rows.indptr), shape=rows.shape)
