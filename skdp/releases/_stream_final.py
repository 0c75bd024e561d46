"""The function of a stream at the end of each call, with noise that is added once a call.

To check the claim: this file, `_stream_sensitivity` for how far one record moves a function, and
`_stream_account` for what several releases cost together.
"""

from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np

from skdp._random import NoiseSource
from skdp._validation import plain_arguments
from skdp.features import FeatureFunction
from skdp.mechanisms import Lattice, release
from skdp.privacy import ApproxDP
from skdp.releases._limits import check_noise
from skdp.releases._stream import Charge, FeatureStream, FunctionBounds, vector_law
from skdp.releases._stream_account import ReleaseAccount, cumulative
from skdp.solvers.online import Recursion, run_features

__all__ = ["FinalRelease"]


@dataclass(frozen=True, kw_only=True)
class FinalRelease(FeatureStream):
    """Release the function where each call ends; the recursion itself goes on without noise.

    Privacy: each release alone satisfies the target, and all together what ``account`` says,
    which `cumulative` makes the guarantee of.

    Parameters
    ----------
    target, recursion, kappa, features, law, noise, time
        See `FeatureStream`.

    bounds : FunctionBounds

    gathered : ndarray of shape (n_components,)
        ``(time - 1 + t0)`` times the weights. Private.

    account : ReleaseAccount
        Of all releases so far.
    """

    bounds: FunctionBounds
    gathered: np.ndarray = field(repr=False)
    account: ReleaseAccount = field(repr=False)

    @classmethod
    @plain_arguments
    def plan(
        cls,
        target: ApproxDP,
        *,
        recursion: Recursion,
        kappa: float,
        features: Any,
        noise: NoiseSource,
        residual: str,
        bound: str,
    ) -> Self:
        """Begin a stream.

        Parameters
        ----------
        target : ApproxDP
            Of one release.

        recursion, kappa, features, noise
            See `FeatureStream`.

        residual, bound
            See `FunctionBounds`.
        """
        bounds = FunctionBounds(recursion, kappa, residual, target.adjacency, bound)
        law = vector_law(target)
        kind = "gaussian" if law.kind == "gaussian" else "k-norm"
        return cls(
            target=target,
            recursion=recursion,
            kappa=kappa,
            features=features,
            law=law,
            noise=noise,
            bounds=bounds,
            gathered=np.zeros(features.n_components),
            account=ReleaseAccount(noise=kind, **bounds.distances),
        )

    def advance(
        self, X: Any, targets: np.ndarray, charge: Charge
    ) -> tuple["FinalRelease", dict[str, Any]]:
        """Run the recursion without noise, and release where it ends."""
        time, size = self.time + X.shape[0], self.features.n_components
        # The last record is the worst one: what an earlier one has moved has shrunk since. Both
        # neighbours are computed with a rounding error of their own.
        l2_sensitivity = self.bounds.sensitivity(time)
        error = self.bounds.rounding_error(time, size)
        lattice = Lattice.for_sensitivity(l2_sensitivity, size=size, error=error)
        check_noise(self.law.scale, size)
        scale = self.law.on(lattice, size).scale

        def cost(account: ReleaseAccount) -> tuple[ApproxDP, ReleaseAccount]:
            # A record pays for each release after it: its own distance there over the scale.
            new = account.after(time, scale, slack=lattice.sensitivity - l2_sensitivity)
            return cumulative(new, self.target), new

        guarantee, account = charge(cost, self.account)

        gathered = self.gathered
        for rows, part, start in self.blocks(X, targets):
            gathered = run_features(rows, part, gathered, start, self.recursion)
        coef = release(
            gathered / (time - 1.0 + self.recursion.t0),
            law=self.law,
            sensitivity=l2_sensitivity,
            error=error,
            lattice=lattice,
            random_state=self.noise,
            purpose="coefficients after a call",
        )
        then = replace(self, time=time, gathered=gathered, account=account)
        return then, {
            "guarantee_": guarantee,
            "predictor": FeatureFunction(self.features, coef),
        }
