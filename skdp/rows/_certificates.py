"""Bounds on the errors of sums of gradients, and how many rows they certify.

All are functions of public numbers. What is not certified is refused, never loosened.
"""

import math

import numpy as np

from skdp.rows._exact_sums import RESIDUAL_BITS, power_above

__all__ = [
    "CHUNK",
    "FEW_ROWS",
    "MOST_ROWS",
    "ROUNDING_SHARE",
    "SUM_ERROR",
    "UNIT_ROUNDOFF",
    "check_n_rows",
    "largest_certain",
    "largest_n_rows",
    "linear_step",
    "refuse_rows",
    "rounding_error",
    "score_terms",
    "solver_tolerance",
]

UNIT_ROUNDOFF = 2.0**-53

# Error of a sum over blocks of rows, and of these in pairs, over the sum of all sizes.
SUM_ERROR = UNIT_ROUNDOFF * (4096.0 + 2.0 * 40.0)

# Entries of a dense row that are multiplied at once.
CHUNK = 256

# Rows with shares that are multiplied at once where products are to be exact.
FEW_ROWS = 256

# More rows than any machine holds: how many the users have is private, and decides no bound.
_ANY_ROWS = 2.0**40

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


def rounding_error(
    loss,
    weights_norm,
    *,
    n_samples,
    n_features,
    length,
    n_terms,
    row_norm,
    exactly,
    mean_loss=math.inf,
    score_error=None,
    shared=False,
):
    """Bound on the norm of the error of a sum of gradients.

    Parameters
    ----------
    loss : LogisticLoss, HuberHingeLoss, SoftmaxLoss or HuberLoss

    weights_norm : float

    n_samples, n_features : int

    length : int
        Rows that are summed at once, in whatever order; sums of blocks are added in pairs.

    n_terms : int
        Longest chain of additions behind a score.

    row_norm : float

    exactly : bool
        As for `Blocks.gradient`.

    mean_loss : float, default=inf
        Mean of the losses at the weights, if known.

    score_error : float, default=None
        Mean bound on the norm of the errors of a row's scores in unit roundoffs, if known; not
        for ``exactly``.

    shared : bool, default=False
        Whether rows have shares of users: ``n_samples`` is then their number, and the bound holds
        for any number of rows. An error in proportion to the size of a term adds up to as large
        a part of the sum of all sizes, in which a user's rows count as one.
    """
    slope = loss.mean_slope(mean_loss)
    depth = math.log2(max(1.0, (_ANY_ROWS if shared else n_samples) / length))
    sums = (2 * depth + 10 + 8 * loss.n_outputs) * slope
    if shared:  # the product with a share, and the sum of the parts of a block
        sums += (2 + length / FEW_ROWS) * slope
    size = loss.curvature * row_norm * weights_norm
    root = math.sqrt(n_features)
    if exactly:
        # Coarse parts have no rounding error, and fine parts are small: of residuals
        # 2**(log2(length) - 27), of rows and weights 2**-25 times the bounds on their norms in
        # each entry. Beyond them scores err in their own last place.
        sums += 2 * slope + length * 2.0**-24 * root * slope
        fine = length**2 * 2.0 ** (2 - RESIDUAL_BITS) * loss.lipschitz
        if shared:
            # Of few rows the finest part is that of the largest residual, which may be all that
            # they weigh together: then each errs by as much.
            fine = FEW_ROWS**3 * 2.0 ** (2 - RESIDUAL_BITS) * loss.lipschitz
        sums += fine * math.sqrt(loss.n_outputs)
        rest = 2.0**-23 * root + n_terms * 2.0**-45 * n_features
        scores = 2 * loss.relative_curvature(slope) + 4 * rest * size
    else:
        # A margin is rounded with the scores, though not small where they are.
        sums += length * slope
        if score_error is None:
            score_error = 2 * (n_terms + 4) * row_norm * weights_norm
        scores = loss.curvature * score_error + 2 * loss.relative_curvature(slope)
    return UNIT_ROUNDOFF * n_samples * row_norm * (sums + scores)


def largest_n_rows(loss, *, n_features, row_norm, tolerance, penalty=None, noise_norm=0.0):
    """Number of rows up to which `gradient` is certified whatever the data; public.

    Parameters
    ----------
    loss : LogisticLoss, HuberHingeLoss, SoftmaxLoss or HuberLoss

    n_features : int
        Constant feature included.

    row_norm : float

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
        error = rounding_error(
            loss,
            norm,
            n_samples=n_samples,
            n_features=n_features,
            length=4096,
            n_terms=n_features,
            row_norm=row_norm,
            exactly=True,
            mean_loss=start,
        )
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
    loss : LogisticLoss, HuberHingeLoss, SoftmaxLoss or HuberLoss

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
            f"{what.format(most)} with these parameters: the rounding errors of longer sums are "
            f"not certified{given}."
        )
