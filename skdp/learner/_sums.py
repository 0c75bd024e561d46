"""Sums of one vector per row, added without rounding error and released with noise.

To check it: this file, and ``mechanisms/_additive.py`` for the recorded call.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from scipy import sparse

from skdp._random._source import NoiseSource
from skdp._validation import (
    LARGEST,
    LEAST,
    between,
    plain_arguments,
    positive,
    positive_int,
    short_repr,
)
from skdp.learner._sequence import Run
from skdp.mechanisms import NoiseLaw, clip_rows, release
from skdp.mechanisms._additive import check_span
from skdp.privacy import ApproxDP, GaussianDP
from skdp.rows._blocks import every, row_blocks
from skdp.rows._sums import MOST_ROWS, power_above, refuse_rows, times
from skdp.rows._users import Users

# Bits of an entry: sums of as many rows as a fit may have are below 2**53 units.
_THEOREM_BITS = 53 - math.ceil(math.log2(MOST_ROWS))


@dataclass(frozen=True, eq=False)
class PartialSum:
    """Exact sum over some rows, which can be added to the sums over other rows in any order.

    Privacy: the sum is exact. Release it only with noise.

    Parameters
    ----------
    total : ndarray
        Sum in multiples of ``step``, without rounding error.

    step : float
        Power of two.

    n_rows : int
        Number of rows in the sum.

    Attributes
    ----------
    error : float
        Certified distance from the sum of the rounded rows: 0.
    """

    total: np.ndarray
    step: float
    n_rows: int
    error = 0.0

    def __add__(self, other: "PartialSum") -> "PartialSum":
        if self.step != other.step or self.n_rows + other.n_rows > MOST_ROWS:
            raise ValueError(
                f"step must be {short_repr(self.step)}, and n_rows at most {MOST_ROWS} in total; "
                f"got {short_repr(other.step)} and {self.n_rows + other.n_rows}."
            )
        return PartialSum(self.total + other.total, self.step, self.n_rows + other.n_rows)


def exact_sum(
    rows: Any, weights: Any = None, users: Users | None = None, *, bound: float
) -> PartialSum:
    """Return the weighted sum of rows, which is the same to the last bit in any order.

    Privacy: entries are rounded towards zero to a public grid, each as a function of its row
    alone. Rounding does not increase the norm of a row, so the sum has the sensitivity of the
    exact one.

    Parameters
    ----------
    rows : {ndarray, CSR matrix} of shape (n_samples, size), or iterable of such blocks
        Rows. Entries are clipped to ``bound`` in absolute value; NaN counts as 0.

    weights : ndarray of shape (n_samples,), default=None
        Weights, clipped to [0, 1]. None means 1.

    users : Users, default=None
        Owners of all rows. If given, the sum is over users, of the means of their rows.

    bound : float
        Public bound on the absolute value of an entry.

    Returns
    -------
    PartialSum

    Examples
    --------
    >>> import numpy as np
    >>> from skdp.learner import exact_sum
    >>> rows = np.random.default_rng(0).uniform(size=(1000, 3))
    >>> whole = exact_sum(rows, bound=1.0)
    >>> parts = exact_sum(rows[::3], bound=1.0) + exact_sum(
    ...     (rows[1::3], rows[2::3]), bound=1.0
    ... )
    >>> bool((whole.total == parts.total).all()), whole.error
    (True, 0.0)
    """
    between(LEAST, LARGEST, bound=bound)
    step = power_above(bound) * 2.0**-_THEOREM_BITS
    blocks: Iterable[Any] = [rows] if hasattr(rows, "shape") else rows
    factors = None if weights is None else np.clip(_finite(weights), 0.0, 1.0)
    if users is not None:
        if factors is not None and len(factors) != len(users.shares):
            raise ValueError("weights and users must be those of the rows, one for each.")
        factors = users.shares if factors is None else factors * users.shares
    total: Any = 0.0
    n_rows = 0
    for block in blocks:
        block = _finite(block)
        if block.ndim != 2:
            raise ValueError(f"rows must have two dimensions; got {block.ndim}.")
        n = block.shape[0]
        if factors is not None:
            block = times(block, factors[n_rows : n_rows + n])
        total = total + _rounded_sum(block, bound, step)
        n_rows += n
    if factors is not None and len(factors) != n_rows:
        raise ValueError("weights and users must be those of the rows, one for each.")
    refuse_rows(n_rows, MOST_ROWS, "add-remove")
    return PartialSum(np.asarray(total), step, n_rows)


def _finite(block: Any) -> Any:
    """Return rows with 0 in place of NaN, each sparse entry stored once."""
    if not sparse.issparse(block):
        block = np.asarray(block, dtype=float)
        return block if np.isfinite(block).all() else np.nan_to_num(block, nan=0.0)
    block = sparse.csr_array(block, dtype=float)
    if block.has_canonical_format and np.isfinite(block.data).all():
        return block
    block = block.copy()
    block.sum_duplicates()
    block.data = np.nan_to_num(block.data, nan=0.0)
    return block


def _rounded_sum(block: Any, bound: float, step: float) -> np.ndarray:
    entries = block.data if sparse.issparse(block) else block
    entries = np.trunc(np.clip(entries, -bound, bound) / step) * step
    if not sparse.issparse(block):
        return entries.sum(axis=0)
    return np.bincount(block.indices, weights=entries, minlength=block.shape[1])


@dataclass(frozen=True)
class SumRelease:
    """Release of the sum of one vector per row, as a stage of a `Sequence`.

    Privacy: satisfies ``guarantee``. Vectors are scaled down to at most ``norm``. Replacing a row
    then changes the sum by at most twice the norm, and adding a row by at most the norm. If rows
    have owners, each user contributes the mean of their vectors.

    Parameters
    ----------
    size : int
        Length of a vector.

    norm : float
        Bound on the l1 norm for Laplace noise, on the l2 norm otherwise.

    law : NoiseLaw
        Law of the noise for a sensitivity of 1.

    guarantee : ApproxDP or GaussianDP

    References
    ----------
    Dwork and Roth, "The algorithmic foundations of differential privacy", 2014, theorem 3.6.
    """

    size: int
    norm: float
    law: NoiseLaw
    guarantee: ApproxDP | GaussianDP

    @classmethod
    @plain_arguments
    def plan(
        cls,
        target: ApproxDP | GaussianDP,
        n_samples: float | None = None,
        *,
        size: int,
        l2_norm: float,
        l1_norm: float | None = None,
    ) -> Self:
        """Plan a release that meets ``target``, from public numbers, for any number of rows.

        With ``l1_norm``, Laplace noise is used if it is smaller.
        """
        positive_int(size=size)
        positive(l2_norm=l2_norm)
        law, norm = NoiseLaw.meeting(target, size=size), l2_norm
        if l1_norm is not None and isinstance(target, ApproxDP):
            positive(l1_norm=l1_norm)
            plain = NoiseLaw.of("laplace", target)
            if plain.level(size) * l1_norm < law.level(size) * l2_norm:
                law, norm = plain, l1_norm
        named: Any = dict(
            mechanism=f"a noisy sum with {_NAMES[law.kind]} noise",
            source="Dwork and Roth 2014, theorem 3.6",
        )
        check_span(law, size, target)
        if isinstance(target, ApproxDP):
            named["refined"] = law.refining(target)
        return cls(size, norm, law, replace(target, **named))

    def check_n_rows(self, n_samples: int) -> None:
        """Refuse more rows than can be added exactly, before a ledger is charged."""
        refuse_rows(n_samples, MOST_ROWS, self.guarantee.adjacency, unit=self.guarantee.unit)

    def learn(self, run: Run, noise: NoiseSource) -> None:
        """Release the sum of ``run.rows.X`` as ``run.total`` and append it to ``run.totals``."""
        X = run.rows.X
        if X.shape[1] != self.size:
            raise ValueError(f"rows must have {self.size} columns; got {X.shape[1]}.")
        parts = [X] if sparse.issparse(X) else row_blocks(X, every(X.shape[0]))
        vectors = (_shortened(_finite(part), self.norm, self.law.order) for part in parts)
        exact = exact_sum(vectors, run.rows.weights, run.rows.users, bound=self.norm)
        # A sum of vectors in a ball, of which one comes, goes or is another.
        run.total = release(
            exact,
            law=self.law,
            sensitivity=self.guarantee.n_records_changed * self.norm,
            random_state=noise,
            purpose="sum of one bounded vector a row",
        )
        run.totals.append(run.total)


_NAMES = {"laplace": "Laplace", "k_norm": "K-norm", "gaussian": "Gaussian"}


def _shortened(X: Any, norm: float, order: int) -> Any:
    """Scale rows down to at most a norm, each as a function of itself alone."""
    norm *= 1.0 - 1e-12
    if order == 2:
        return clip_rows(X, norm)
    with np.errstate(over="ignore"):
        lengths = np.ravel(abs(X).sum(axis=1))
    return times(X, norm / np.maximum(lengths, norm))
