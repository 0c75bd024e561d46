"""A stream of noisy sums of gradients up to a public horizon, whose noise cancels in prefix sums.

To check the claim: this file; `_prefix_factors` for what is released (`run_matrix`),
how far one gradient moves all of it (`column_norm`), and what rounding adds (`encoding_error`);
and `step_sensitivity` in `_sensitivity`.
"""

import math
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np

from skdp._validation import plain_arguments, shown
from skdp.kernel._online._base import Charge, FeatureStream, check_horizon
from skdp.kernel._online._prefix_factors import (
    LONGEST,
    NoisyPrefix,
    PrefixFactors,
    calls_norm,
    calls_sum,
    column_norm,
    encoding_error,
    prefix_factors,
    run_matrix,
)
from skdp.kernel._online._sensitivity import step_sensitivity
from skdp.mechanisms import Lattice, NoiseLaw
from skdp.mechanisms._limits import check_noise
from skdp.privacy import ApproxDP
from skdp.rows import FeatureFunction
from skdp.rows._users import Visitors

__all__ = ["MatrixRelease"]

_FINENESS = 512.0  # rounding costs at most a part of this


@dataclass(frozen=True, kw_only=True)
class MatrixRelease(FeatureStream):
    """Release one noisy sum of the gradients so far a row, of which all prefix sums are made.

    Privacy: all sums up to the horizon satisfy ``guarantee``, which is paid at the first row.

    Parameters
    ----------
    target, recursion, kappa, features, noise, time, calls, visits
        Target of the guarantee, recursion, bound on the norm of features, map to features, source
        of the noise, rows so far, calls in which a user may take a step, and how many each has
        come in.

    law : NoiseLaw
        Of one sum, with what it satisfies alone.

    guarantee : ApproxDP

    horizon : int
        Number of steps in all, of rows or users.

    factors : PrefixFactors
        Of the sums.

    prefix : NoisyPrefix
        Its exact sums are private.
    """

    guarantee: ApproxDP
    horizon: int
    factors: PrefixFactors = field(repr=False)
    prefix: NoisyPrefix = field(repr=False)

    @classmethod
    @plain_arguments
    def plan(
        cls,
        target: ApproxDP,
        *,
        horizon: int,
        calls: int = 1,
        **stream: Any,
    ) -> Self:
        """Begin a stream.

        Parameters
        ----------
        target : ApproxDP
            Of all sums, with a positive delta.

        horizon : int
            At most 8,388,608.

        calls : int, default=1

        **stream
            ``recursion``, whose cap must be finite, ``kappa``, ``features`` and ``noise``, as for
            the class.
        """
        if target.delta == 0.0:
            raise ValueError(
                f"delta must be positive for Gaussian noise of correlated sums; got {shown(0.0)}."
            )
        if horizon > LONGEST:
            raise ValueError(f"horizon must be at most {LONGEST}; got {shown(horizon)}.")
        together = target.gaussian_target()
        # A record moves all sums from its own on: together as far as the longest column says.
        one = replace(together, mu=together.mu / column_norm(horizon, stream["recursion"]))
        if calls > 1:
            # A user moves them by a column a call, at worst all in one direction, and one of them
            # by as many entries of a row. Where a gradient of the user is taken depends on what
            # was released before, but the distance of all sums is bounded whatever that was.
            share = calls_sum(horizon, calls) / calls_norm(horizon, stream["recursion"], calls)
            one = replace(together, mu=together.mu * share)
        factors = prefix_factors(horizon)
        guarantee = replace(
            target,
            refined=together,
            mechanism="matrix mechanism on noisy gradient sums",
            source="Denisov, McMahan, Rush, Smith and Guha Thakurta, NeurIPS 2022",
        )
        prefix = NoisyPrefix.start(stream["features"].n_components, factors)
        own: Any = dict(guarantee=guarantee, horizon=horizon, factors=factors, prefix=prefix)
        law = NoiseLaw("gaussian", 1.0 / one.mu, one)
        return cls._begun(target, law, calls=calls, **own, **stream)

    def advance(
        self, X: Any, targets: np.ndarray, charge: Charge, visitors: Visitors | None = None
    ) -> tuple["MatrixRelease", dict[str, Any]]:
        """Take gradients at noisy prefix sums; all sums were paid at the first row."""
        time, size = self.time + self.n_steps(X.shape[0], visitors), self.features.n_components
        recursion, horizon = self.recursion, self.horizon
        check_horizon(time, horizon, self.step_name)
        # A gradient is taken at a point that earlier releases determine.
        change = step_sensitivity(
            width=recursion.cap, kappa=self.kappa, adjacency=self.target.adjacency
        )
        # Of the record, all sums up to the horizon hold a column of C times its gradient. On
        # either side each was computed with an error, and rounded to the lattice.
        norm, most = column_norm(horizon, recursion), 1.0
        if self.calls > 1:
            norm = calls_norm(horizon, recursion, self.calls)
            most = calls_sum(horizon, self.calls)
        error = encoding_error(horizon) * recursion.cap * self.kappa
        spread = math.sqrt(float(size) * horizon)
        step = 2.0 ** math.floor(math.log2(change * norm / (_FINENESS * spread)))
        together = (change * norm + 2.0 * error + step * spread) * (1.0 + 1e-12)
        # The noise of one sum is that for the whole column: its law is of a part of mu.
        lattice = Lattice(step, together / norm * most)
        check_noise(8.0 * self.law.scale, size * horizon)
        grid = self.law.on(lattice, size, "sum of gradients of the stream")
        *_, visits = self.charged(charge, lambda account: (self.guarantee, account), visitors)

        prefix, gathered = self.prefix, np.zeros(size)
        for rows, part, start, others in self.blocks(X, targets, visitors, visits):
            prefix, gathered = run_matrix(
                rows,
                part,
                prefix,
                start,
                recursion,
                factors=self.factors,
                grid=grid,
                noise=self.noise,
                others=others,
            )
        coef = gathered / (time - 1.0 + recursion.t0)
        length = float(np.linalg.norm(coef))
        coef = coef * min(1.0, recursion.radius / length) if length > 0.0 else coef
        return replace(self, time=time, prefix=prefix, visits=visits), {
            "guarantee_": self.guarantee,
            "predictor": FeatureFunction(self.features, coef),
        }
