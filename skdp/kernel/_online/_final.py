"""The function of a stream at the end of each call, with noise that is added once a call.

To check the claim: this file, `_sensitivity` for how far one record moves a function, and
`ReleaseAccount` for what several releases cost together.
"""

from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np

from skdp._validation import plain_arguments
from skdp.kernel._online._base import (
    Charge,
    FeatureStream,
    FunctionRelease,
    ReleaseAccount,
    cumulative,
    vector_law,
)
from skdp.kernel._online._recursion import run_users
from skdp.mechanisms import Lattice, release
from skdp.mechanisms._additive import check_noise
from skdp.privacy import ApproxDP
from skdp.rows import FeatureFunction
from skdp.rows._users import Participants


@dataclass(frozen=True, kw_only=True)
class FinalRelease(FunctionRelease, FeatureStream):
    """Release the function where each call ends; the recursion itself goes on without noise.

    Privacy: each release alone satisfies the target, and all together what ``account`` says,
    from which the guarantee follows.

    Parameters
    ----------
    target, recursion, kappa, gamma, residual, bound, features, law, noise, time, calls
        See `FunctionRelease` and `FeatureStream`.

    gathered : ndarray of shape (n_components,)
        ``(time - 1 + t0)`` times the weights. Private.

    account : ReleaseAccount
        Of all releases so far.
    """

    gathered: np.ndarray = field(repr=False)
    account: Any = field(default=None, repr=False)

    @classmethod
    @plain_arguments
    def plan(cls, target: ApproxDP, *, calls: int = 1, **stream: Any) -> Self:
        """Begin a stream.

        Parameters
        ----------
        target : ApproxDP
            Of one release.

        calls : int, default=1

        **stream
            ``recursion``, ``kappa``, ``gamma``, ``residual``, ``bound``, ``features``, ``noise``
            and ``participation``, as for the class.
        """
        gathered, law = np.zeros(stream["features"].n_components), vector_law(target)
        begun = cls(target=target, law=law, gathered=gathered, calls=calls, **stream)
        kind = "gaussian" if law.kind == "gaussian" else "k-norm"
        return replace(begun, account=ReleaseAccount(noise=kind, calls=calls, **begun.distances))

    def advance(
        self, X: Any, targets: np.ndarray, charge: Charge, participants: Participants | None = None
    ) -> tuple["FinalRelease", dict[str, Any]]:
        """Run the recursion without noise, and release where it ends."""
        time, size = self.time_after(X, participants), self.features.n_components
        # The last record is the worst one: what an earlier one has moved has shrunk since. Who
        # comes in several calls is worst in the latest. Both neighbours are computed with a
        # rounding error of their own.
        l2_sensitivity = self.account.sensitivity(time)
        error = self.rounding_error(time, size)
        lattice = Lattice.for_sensitivity(l2_sensitivity, size=size, error=error)
        check_noise(self.law.scale, size)
        scale = self.law.on(lattice, size).scale

        def cost(account: ReleaseAccount) -> tuple[ApproxDP, ReleaseAccount]:
            # A record pays for each release after it: its own distance there over the scale.
            new = account.after(time, scale, slack=lattice.sensitivity - l2_sensitivity)
            return cumulative(new, self.target), new

        guarantee, account, participation = self.charged(charge, cost, participants, self.account)

        gathered = self.gathered
        for block in self.blocks(X, targets, participants, participation):
            gathered = run_users(block, gathered, self.recursion)
        coef = release(
            gathered / (time - 1.0 + self.recursion.t0),
            law=self.law,
            sensitivity=l2_sensitivity,
            error=error,
            lattice=lattice,
            random_state=self.noise,
            purpose="coefficients after a call",
        )
        then = replace(
            self, time=time, gathered=gathered, account=account, participation=participation
        )
        return then, {
            "guarantee_": guarantee,
            "predictor": FeatureFunction(self.features, coef),
        }
