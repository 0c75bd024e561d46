"""Sums over rows, and certified bounds on their rounding errors.

Below are counts of rows, and how the likelihood changes with the scale of the scores: what a row
adds to these depends on no other row. Where rows have owners, a user adds the shares of its rows.
"""

import math
from dataclasses import dataclass
from functools import partial

import numpy as np
from scipy import sparse

PART_BITS = 25
RESIDUAL_BITS = 52 - PART_BITS  # those of the number of rows in a block included


class PairwiseSum:
    """Sum of many arrays in pairs, pairs of pairs and so on: the error grows with the depth."""

    def __init__(self, shape):
        self._shape, self._stack, self._next = shape, [], 0

    def add(self, part, first=None, depth=0):
        """Add one array, or the sum of ``2**depth`` of them, of which the first has a number.

        Which are added is decided by their numbers alone: so sums over some of the arrays, made
        elsewhere, are those that would be made here.
        """
        first = self._next if first is None else first
        self._next = first + 2**depth
        while self._stack and first >> depth & 1 and self._stack[-1][1] == depth:
            first, _, before = self._stack.pop()
            part, depth = before + part, depth + 1
        self._stack.append((first, depth, part))

    @property
    def entries(self):
        """Sums that wait for others: number of the first array, depth, and sum."""
        return tuple(self._stack)

    def total(self):
        """Sum of all arrays so far."""
        parts = [part for *_, part in reversed(self._stack)]
        if len(parts) < 2:
            return parts[0].copy() if parts else np.zeros(self._shape)
        return sum(parts[1:], parts[0])


class PlainSum:
    """Sum of arrays of whole numbers, which no order changes."""

    def __init__(self, shape):
        self._total = np.zeros(shape)

    def add(self, part, first=None, depth=0):
        """Add an array, of whatever number."""
        self._total += part

    @property
    def entries(self):
        """The sum, as `PairwiseSum` has them."""
        return ((0, 0, self._total),)

    def total(self):
        """Sum of all arrays so far."""
        return self._total


def added(entries, sums):
    """Totals of sums, after arrays were added to each.

    Parameters
    ----------
    entries : iterable of (int, int, sequence of ndarray)
        Number of the first array, depth, and one array for each sum.

    sums : list of PairwiseSum or PlainSum

    Returns
    -------
    list of ndarray
    """
    for first, depth, found in entries:
        for total, one in zip(sums, found, strict=True):
            total.add(one, first, depth)
    return [total.total() for total in sums]


class ExactScores:
    """Scores of rows with an error in their own last place, whatever the weights.

    Rows and weights are cut into parts: 25 bits below the bounds on their norms, then as many as
    keep products with those, and all partial sums, integers below 2**53 in units of a power
    of two. So they have no rounding error, in whatever order they are formed.
    """

    def __init__(self, weights, row_norm):
        fine = 2.0 ** (math.ceil(math.log2(weights.shape[1]) / 2) - PART_BITS)
        self.row_step = part_step(row_norm)
        self.fine_row_step = self.row_step * fine
        step = part_step(float(np.linalg.norm(weights)))
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
        high = mapped(lambda entries: coarse(entries, step), rows)
        return high, mapped(np.subtract, rows, high)


def coarse(numbers, step):
    """Multiples of a power of two next to numbers that are below 2**51 of it."""
    large = 1.5 * 2.0**52 * step
    return (numbers + large) - large


def power_above(number):
    """Power of two that is larger, by a factor of two at most."""
    return 2.0 ** max(math.frexp(number)[1], -900)


def rounded(numbers, bits):
    """Round to multiples of a power of two, so that the largest takes ``bits`` bits."""
    largest = max(float(np.abs(numbers).max()), 1e-200)
    unit = 2.0 ** (math.ceil(math.log2(largest)) - bits)
    return np.rint(numbers / unit) * unit


def part_step(norm):
    """Step of the coarse part of what has a norm of at most this: 25 bits below it."""
    return power_above(norm) * 2.0**-PART_BITS


def mapped(function, rows, *others):
    """Rows with a function of each entry, of CSR matrices with the same places of those only."""
    if not sparse.issparse(rows):
        return function(rows, *others)
    data = function(rows.data, *(other.data for other in others))
    return sparse.csr_array((data, rows.indices, rows.indptr), shape=rows.shape)


UNIT_ROUNDOFF = 2.0**-53

# Error of a sum over blocks of rows, and of these in pairs, over the sum of all sizes.
SUM_ERROR = UNIT_ROUNDOFF * (4096.0 + 2.0 * 40.0)

# Dense rows of a block, of which sums are added in pairs.
LENGTH = 1024

# Entries of a dense row that are multiplied at once.
CHUNK = 256

# Rows with shares that are multiplied at once where products are to be exact.
FEW_ROWS = 256

# More rows than any machine holds: how many the users have is private, and decides no bound.
ANY_ROWS = 2.0**40

# Certified error of sums in floating point, as a share of the sensitivity.
ROUNDING_SHARE = 1e-4

# Rows of one fit; the errors of longer sums are not certified.
MOST_ROWS = 100_000_000


def solver_tolerance(loss, row_norm):
    """Bound on the gradient norm at which every solve stops; public, never loosened.

    A share of the largest gradient of one record, so that neither units nor the curvature of the
    loss decide how much noise the solver's error costs: 1e-5 of the sensitivity for output
    perturbation. It is about 20 times what 100 million rows can make of rounding errors.
    """
    return 1e-5 * row_norm * loss.lipschitz


def linear_step(loss, row_norm, size, noise_norm):
    """Step of the lattice that the ``size`` numbers of a random linear term are rounded to.

    The exact term is within an eighth of the solver's tolerance, unless noise of a huge
    ``noise_norm`` needs a coarser lattice for its integers to be those of a float.
    """
    rounding = solver_tolerance(loss, row_norm) / 8
    step = 2.0 ** math.floor(math.log2(2 * rounding / math.sqrt(size)))
    return max(step, power_above(noise_norm) * 2.0**-51)


def score_terms(n_features):
    """Longest chain of additions behind a score of a dense row."""
    return min(n_features, CHUNK) + n_features // CHUNK


@dataclass(frozen=True)
class SumShape:
    """What the error of a sum of gradients depends on, of the rows: public where all of it is.

    Parameters
    ----------
    n_samples, n_features : int

    row_norm : float
        Bound on the norm of a row.

    length : int, default=4096
        Rows that are summed at once, in whatever order; sums of blocks are added in pairs.

    n_terms : int, default=None
        Longest chain of additions behind a score; None is for one a feature.

    shared : bool, default=False
        Whether rows have shares of users: ``n_samples`` is then their number, and bounds hold
        for any number of rows. An error in proportion to the size of a term adds up to as large
        a part of the sum of all sizes, in which a user's rows count as one.
    """

    n_samples: float
    n_features: int
    row_norm: float
    length: int = 4096
    n_terms: int | None = None
    shared: bool = False

    def rounding_error(
        self, loss, weights_norm, *, exactly=True, mean_loss=math.inf, score_error=None
    ):
        """Bound on the norm of the error of a sum of gradients.

        Parameters
        ----------
        loss : Loss

        weights_norm : float

        exactly : bool, default=True
            As for `Blocks.gradient`.

        mean_loss : float, default=inf
            Mean of the losses at the weights, if known.

        score_error : float, default=None
            Mean bound on the norm of the errors of a row's scores in unit roundoffs, if known; not
            for ``exactly``.
        """
        n_terms = self.n_features if self.n_terms is None else self.n_terms
        slope = loss.mean_slope(mean_loss)
        depth = math.log2(max(1.0, (ANY_ROWS if self.shared else self.n_samples) / self.length))
        sums = (2 * depth + 10 + 8 * loss.n_outputs) * slope
        if self.shared:  # the product with a share, and the sum of the parts of a block
            sums += (2 + self.length / FEW_ROWS) * slope
        size = loss.curvature * self.row_norm * weights_norm
        relative = loss.relative_curvature(slope)
        relative = size if math.isinf(relative) else relative  # no score is longer
        root = math.sqrt(self.n_features)
        if exactly:
            # Coarse parts have no rounding error, and fine parts are small: of residuals
            # 2**(log2(length) - 27), of rows and weights 2**-25 times the bounds on their norms in
            # each entry. Beyond them scores err in their own last place.
            sums += 2 * slope + self.length * 2.0**-24 * root * slope
            fine = self.length**2 * 2.0 ** (2 - RESIDUAL_BITS) * loss.lipschitz
            if self.shared:
                # Of few rows the finest part is that of the largest residual, which may be all
                # that they weigh together: then each errs by as much.
                fine = FEW_ROWS**3 * 2.0 ** (2 - RESIDUAL_BITS) * loss.lipschitz
            sums += fine * math.sqrt(loss.n_outputs)
            rest = 2.0**-23 * root + n_terms * 2.0**-45 * self.n_features
            scores = 2 * relative + 4 * rest * size
        else:
            # A margin is rounded with the scores, though not small where they are.
            sums += self.length * slope
            if score_error is None:
                score_error = 2 * (n_terms + 4) * self.row_norm * weights_norm
            scores = loss.curvature * score_error + 2 * relative
        return UNIT_ROUNDOFF * self.n_samples * self.row_norm * (sums + scores)


def largest_n_rows(loss, *, n_features, row_norm, tolerance, penalty=None, noise_norm=0.0):
    """Number of rows up to which `gradient` is certified whatever the data; public.

    Parameters
    ----------
    loss, n_features, row_norm
        Of the gradients. The constant feature is included.

    tolerance : float
        What errors must stay below.

    penalty : float, default=None
        Strength of the penalty where the gradient is that of the minimiser's objective. None
        is for sums at released points, whose norm no data decide.

    noise_norm : float, default=0.0
        Norm that a random linear term is below.

    Returns
    -------
    int
        At most `MOST_ROWS`.
    """
    start = loss.total(np.zeros((1, loss.n_outputs)), np.array([loss.heaviest]))

    def is_certain(n_samples):
        norm = 0.0
        if penalty is not None:
            # The objective is at most that of zero weights, wherever the solver goes.
            others = 2.0 * n_samples * start / penalty
            norm = noise_norm / penalty + math.sqrt((noise_norm / penalty) ** 2 + others)
        shape = SumShape(n_samples, n_features, row_norm)
        error = shape.rounding_error(loss, norm, mean_loss=start)
        others = n_samples * loss.mean_slope(start) * row_norm + noise_norm
        return error + 16 * UNIT_ROUNDOFF * others <= tolerance / 2

    return largest_certain(is_certain)


def largest_certain(is_certain):
    """Number of rows, at most `MOST_ROWS`, up to which ``is_certain(n)`` is true."""
    if is_certain(MOST_ROWS):
        return MOST_ROWS
    low, high = 0, MOST_ROWS
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if is_certain(middle) else (low, middle)
    return low


def check_n_rows(loss, *, n_samples, adjacency, **numbers):
    """Refuse more rows than `largest_n_rows` certifies, before a ledger is charged.

    Parameters
    ----------
    loss : Loss

    n_samples : int

    adjacency : {"replace-one", "add-remove"}
        Under "add-remove" the message does not say how many there are.

    **numbers
        As for `largest_n_rows`.
    """
    refuse_rows(n_samples, largest_n_rows(loss, **numbers), adjacency)


def refuse_rows(n_samples, most, adjacency, *, unit="record"):
    """Raise `ValueError` if there are more rows, or users, than can be certified.

    The limit is public. Their number is not said where it is private.
    """
    if n_samples > most:
        given = f"; got {n_samples}" if adjacency == "replace-one" else ""
        what = "X must have at most {} rows"
        if unit == "user":
            what = "groups must name at most {} users"
        raise ValueError(
            f"{what.format(most)} with these parameters: rounding errors of longer sums are not "
            f"certified{given}."
        )


def products(high, low, residuals, largest, length):
    """Sum of the rows of a block times their residuals, with next to no rounding error."""
    bits = RESIDUAL_BITS - math.ceil(math.log2(length))
    most = coarse(residuals, power_above(largest) * 2.0**-bits)
    part = high.T @ most  # no rounding
    return part + (high.T @ (residuals - most) + low.T @ residuals)


def shared_products(high, low, residuals):
    """As `_products`, for residuals of any size: few rows at once, in units of the largest.

    That is no more than the loss may be steep times the shares of these rows together, so that
    the error of a sum is in proportion to the number of users, and not of rows.
    """
    parts = 0.0
    for start in range(0, len(residuals), FEW_ROWS):
        few = slice(start, start + FEW_ROWS)
        largest = float(np.abs(residuals[few]).max())
        parts = parts + products(high[few], low[few], residuals[few], largest, FEW_ROWS)
    return parts


def coarse_rows(rows, row_norm):
    """Coarse parts of rows: 25 bits below the bound on their norm."""
    return mapped(lambda entries: coarse(entries, part_step(row_norm)), rows)


def coarse_rest(n_features, row_norm):
    """Bound on the norm of what `coarse_rows` leave of a row."""
    return math.sqrt(n_features) * part_step(row_norm) / 2


def row_squares(rows):
    """Squared norms of rows, each a function of one row up to rounding."""
    if not sparse.issparse(rows):
        return np.einsum("ij,ij->i", rows, rows)
    return np.ravel(mapped(np.square, rows).sum(axis=1))


def times(rows, factors):
    """Rows times one number each."""
    if not sparse.issparse(rows):
        return rows * factors[:, np.newaxis]
    return mapped(lambda data: data * np.repeat(factors, np.diff(rows.indptr)), rows)


def few_rows(X, start, stop):
    """Rows of a CSR matrix, without a copy of their entries."""
    pointers = X.indptr[start : stop + 1]
    entries = slice(pointers[0], pointers[-1])
    parts = (X.data[entries], X.indices[entries], pointers - pointers[0])
    return sparse.csr_array(parts, shape=(len(pointers) - 1, X.shape[1]))


def with_constant(rows, constant):
    """Append a column to a CSR matrix."""
    column = sparse.csr_array(np.full((rows.shape[0], 1), constant))
    return sparse.csr_array(sparse.hstack([rows, column], format="csr"))


_FINE = 2.0**20  # grid that rows and weights are rounded to
# How far below the largest of a row its scores count, those of probabilities, which are 0 there to
# twenty digits, and others. A row of such a class is as far on the wrong side as matters.
_LOWEST, _LOWEST_ALONG = 64.0, 12.0
_FEW = 2**20  # rows that are counted at once
_SHARES = 2.0**-24  # that shares are rounded down to, of which sums are exact


def score_slopes(data, weights, steepest, largest, along=None):
    """First and second derivative of the log-likelihood along the length of scores.

    Rows and weights are rounded to integers of 21 bits and a sign, of which all sums are exact, of
    rows with up to 2**24 entries that are not 0. So what a row adds depends on no other row.

    Parameters
    ----------
    data : RowBlocks
        Without users.

    weights : ndarray of shape (n_outputs, n_features)
        One row a class, or a single one for the second of two. Scores are logits.

    steepest : float
        By which a row may lower the first sum, up to 32; scores count down to 64 below the top.

    largest : tuple of float
        Most that a row may add to the sums.

    along : ndarray of shape (n_outputs, n_features), default=None
        What is made longer, for more than two classes: weights less those that they started from.
        Its scores count down to 12 below the top. None for the weights.

    Returns
    -------
    sums : ndarray of shape (2,)
        Under the probabilities of its scores, a row adds how far that of its class, of those that
        are made longer, is above their mean, from ``-steepest`` on, and their variance.

    error : float
        `slopes_error`.
    """
    if len(weights) == 1:
        weights = np.vstack([np.zeros_like(weights), weights])
    model = _exact_model(data, weights)
    scaled = None if along is None else _exact_model(data, along)
    part = partial(_slopes_part, model, scaled, steepest, largest)
    error = slopes_error(data.n_samples, len(weights), steepest, is_along=along is not None)
    return data.sums_of(part, (2,))[0], error


def _slopes_part(model, scaled, steepest, largest, data, i, rows, codes):
    scores = _below_top(rows, model, _LOWEST)
    probabilities = np.exp(scores)
    probabilities /= probabilities.sum(axis=1, keepdims=True)
    if scaled is not None:
        scores = _below_top(rows, scaled, _LOWEST_ALONG)
    mean = (probabilities * scores).sum(axis=1)
    slope = scores[np.arange(len(codes)), codes] - mean
    variance = (probabilities * (scores - mean[:, np.newaxis]) ** 2).sum(axis=1)
    own = 1.0 if data.shares is None else data.shares[i]
    slopes = (own * np.clip(slope, -steepest, largest[0])).sum()
    return (np.array([slopes, (own * np.minimum(variance, largest[1])).sum()]),)


def slopes_error(n_samples, n_classes, steepest, is_along=False):
    """Bound on the rounding error of `score_slopes`, in whatever order a row's terms are added.

    Parameters
    ----------
    n_samples : int

    n_classes : int
        At least 2.

    steepest : float

    is_along : bool, default=False
        Whether other scores are made longer than those that probabilities are of.

    Returns
    -------
    float
        Of the sum of both errors.

    Notes
    -----
    A score has two roundings, an exponential as many beside those of its score, and a sum over the
    K classes one for each. So the errors of a row are means, under its probabilities, of powers of
    how far its scores are below the largest: of the first and second, K times over, and of the
    third, a few times. A mean of the power j is at most ``(log(K - 1) + j)^j``. Few rows of a
    block are added at a time, and blocks in pairs. Other scores are no further below their largest
    than 12, which bounds two of these powers, and the third is of the scores that probabilities
    are of.
    """
    reach = math.log(n_classes - 1) + 3.0
    largest = _LOWEST_ALONG if is_along else reach
    row = (n_classes + 8.0 + 20.0 * reach) * largest**2
    return n_samples * (row + 200.0 * (steepest + largest**2)) * UNIT_ROUNDOFF


def class_counts(data, n_outputs):
    """Number of rows of each class; of two, of the second one.

    Parameters
    ----------
    data : RowBlocks
        If rows have shares of users, they count by these: a user adds 1, spread over classes.

    n_outputs : int

    Returns
    -------
    ndarray of shape (n_outputs,)
        Without rounding errors.
    """
    counts = np.zeros(max(2, n_outputs))
    for i, codes in enumerate(data.labels()):
        shares = None if data.shares is None else data.shares[i]
        counts += cell_counts(codes, len(counts), shares)
    return counts[1:] if n_outputs == 1 else counts


def cell_counts(cells, n_cells, shares=None):
    """Number of rows in each cell.

    Parameters
    ----------
    cells : ndarray of shape (n_samples,), dtype int
        That of each row, from 0 on.

    n_cells : int

    shares : ndarray of shape (n_samples,), default=None
        Of users, whom rows count by: a user adds 1 at most, spread over cells.

    Returns
    -------
    ndarray of shape (n_cells,)
        Without rounding errors.
    """
    counts = np.zeros(n_cells)
    for start in range(0, len(cells), _FEW):  # in place of copies of all as long integers
        some, own = cells[start : start + _FEW], None
        if shares is not None:
            # Those of a user add up to 1 at most, and all sums are exact.
            own = np.floor(shares[start : start + _FEW] / _SHARES) * _SHARES
        counts += np.bincount(some, own, minlength=n_cells)
    return counts


def _exact_model(data, weights):
    """Integers in place of weights, the scale of rows, and the unit of the scores."""
    largest = float(np.abs(weights).max())
    scale = 2.0 ** max(0, math.ceil(math.log2(data.row_norm / 2.0)))
    if not 1e-250 < largest < math.inf:  # out of reach
        return np.zeros_like(weights), scale, 1.0
    # As scores have 53 bits at most, none times this unit is infinite.
    return np.rint(weights / largest * _FINE), scale, min(scale * largest / _FINE**2, 1e290)


def _below_top(rows, exact_model, lowest):
    """Exact scores of rows, less the largest of each, down to ``-lowest``."""
    model, scale, unit = exact_model
    whole = mapped(lambda entries: np.rint(entries * (_FINE / scale)), rows)
    scores = np.asarray(whole @ model.T)
    scores -= scores.max(axis=1, keepdims=True)
    scores *= unit
    return np.maximum(scores, -lowest)
