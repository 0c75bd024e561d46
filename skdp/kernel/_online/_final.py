"""The function of a stream at the end of each call, with noise that is added once a call.

To check the claim: this file, `_sensitivity` for how far one record moves a function, and
`_account` for what several releases cost together.
"""

from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np

from skdp._validation import plain_arguments
from skdp.kernel._online._account import ReleaseAccount, cumulative
from skdp.kernel._online._base import Charge, FeatureStream, FunctionBounds, vector_law
from skdp.kernel._online._calls import CallsAccount
from skdp.kernel._online._recursion import run_features, run_users
from skdp.mechanisms import Lattice, release
from skdp.mechanisms._limits import check_noise
from skdp.privacy import ApproxDP
from skdp.rows import FeatureFunction
from skdp.rows._users import Visitors

__all__ = ["FinalRelease"]


@dataclass(frozen=True, kw_only=True)
class FinalRelease(FeatureStream):
    """Release the function where each call ends; the recursion itself goes on without noise.

    Privacy: each release alone satisfies the target, and all together what ``account`` says,
    from which the guarantee follows.

    Parameters
    ----------
    target, recursion, kappa, features, law, noise, time, calls, visits
        Target of the guarantee, recursion, bound on the norm of features, map to features, law and
        source of the noise, rows so far, calls in which a user may take a step, and how many each
        has come in.

    bounds : FunctionBounds

    gathered : ndarray of shape (n_components,)
        ``(time - 1 + t0)`` times the weights. Private.

    account : ReleaseAccount or CallsAccount
        Of all releases so far.
    """

    bounds: FunctionBounds
    gathered: np.ndarray = field(repr=False)
    account: ReleaseAccount | CallsAccount = field(repr=False)

    @classmethod
    @plain_arguments
    def plan(
        cls,
        target: ApproxDP,
        *,
        residual: str,
        bound: str,
        calls: int = 1,
        **stream: Any,
    ) -> Self:
        """Begin a stream.

        Parameters
        ----------
        target : ApproxDP
            Of one release.

        residual, bound
            As ``residual`` and ``sensitivity`` of :class:`~skdp.kernel.DPOnlineKernelRegressor`.

        calls : int, default=1

        **stream
            ``recursion``, ``kappa``, ``features`` and ``noise``, as for the class.
        """
        bounds = FunctionBounds(
            stream["recursion"],
            stream["kappa"],
            residual,
            target.adjacency,
            bound,
            of_users=target.unit == "user",
        )
        law = vector_law(target)
        kind = "gaussian" if law.kind == "gaussian" else "k-norm"
        account: ReleaseAccount | CallsAccount
        if calls == 1:  # who comes once is as a record, at the place of the step
            account = ReleaseAccount(noise=kind, **bounds.distances)
        else:
            account = CallsAccount(calls=calls, stream=bounds.distances, noise=kind)
        gathered = np.zeros(stream["features"].n_components)
        own = dict(bounds=bounds, gathered=gathered, account=account)
        return cls._begun(target, law, calls=calls, **own, **stream)

    def advance(
        self, X: Any, targets: np.ndarray, charge: Charge, visitors: Visitors | None = None
    ) -> tuple["FinalRelease", dict[str, Any]]:
        """Run the recursion without noise, and release where it ends."""
        time, size = self.time + self.n_steps(X.shape[0], visitors), self.features.n_components
        # The last record is the worst one: what an earlier one has moved has shrunk since. Who
        # comes in several calls is worst in the latest. Both neighbours are computed with a
        # rounding error of their own.
        l2_sensitivity = (
            self.account.sensitivity(time)
            if isinstance(self.account, CallsAccount)
            else self.bounds.sensitivity(time)
        )
        error = self.bounds.rounding_error(time, size)
        lattice = Lattice.for_sensitivity(l2_sensitivity, size=size, error=error)
        check_noise(self.law.scale, size)
        scale = self.law.on(lattice, size).scale

        def cost(account: Any) -> tuple[ApproxDP, Any]:
            # A record pays for each release after it: its own distance there over the scale.
            new = account.after(time, scale, slack=lattice.sensitivity - l2_sensitivity)
            return cumulative(new, self.target), new

        guarantee, account, visits = self.charged(charge, cost, visitors, self.account)

        gathered = self.gathered
        for rows, part, start, others in self.blocks(X, targets, visitors, visits):
            if others:
                gathered = run_users(rows, part, gathered, start, self.recursion, others)
            else:
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
        then = replace(self, time=time, gathered=gathered, account=account, visits=visits)
        return then, {
            "guarantee_": guarantee,
            "predictor": FeatureFunction(self.features, coef),
        }
