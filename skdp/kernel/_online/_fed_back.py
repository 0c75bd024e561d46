"""A stream of noisy gradients that are fed back: the transcript, for ever, for one budget.

To check the claim: this file, `run_noisy` in `_recursion` for what is done with a noisy gradient,
and `step_sensitivity` in `_sensitivity`.
"""

from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np

from skdp._validation import counts, fraction, plain_arguments, positive
from skdp.kernel._online._base import Charge, FeatureStream, vector_law
from skdp.kernel._online._recursion import run_noisy
from skdp.kernel._online._sensitivity import power_sums, step_sensitivity
from skdp.mechanisms import Lattice
from skdp.mechanisms._limits import check_noise
from skdp.privacy import ApproxDP
from skdp.rows import FeatureFunction
from skdp.rows._users import Visitors

__all__ = ["FedBackRelease", "sgd_noise"]


@dataclass(frozen=True, kw_only=True)
class FedBackRelease(FeatureStream):
    """Release every gradient with noise, and go on from what was released.

    Privacy: the whole transcript, however long, satisfies ``guarantee``, which is paid at the
    first row. Nothing that is kept is private.

    Parameters
    ----------
    target, recursion, kappa, features, law, noise, time, calls, visits
        Target of the guarantee, recursion, bound on the norm of features, map to features, law and
        source of the noise, rows so far, calls in which a user may take a step, and how many each
        has come in.

    guarantee : ApproxDP

    gathered : ndarray of shape (n_components,)
        ``(time - 1 + t0)`` times the weights. Released.

    average : ndarray of shape (n_components,)
        Mean of the weights in which late ones weigh more. Released.
    """

    guarantee: ApproxDP
    gathered: np.ndarray = field(repr=False)
    average: np.ndarray = field(repr=False)

    @classmethod
    @plain_arguments
    def plan(
        cls,
        target: ApproxDP,
        *,
        calls: int = 1,
        **stream: Any,
    ) -> Self:
        """Begin a stream.

        Parameters
        ----------
        target : ApproxDP
            Of the whole transcript.

        calls : int, default=1

        **stream
            ``recursion``, whose cap must be finite, ``kappa``, ``features`` and ``noise``, as for
            the class.
        """
        together = vector_law(target)
        # Who comes in several calls is in so many gradients, whose releases compose.
        law = together if calls == 1 else together.repeated(calls)
        guarantee = replace(
            target,
            refined=together.refining(target),
            mechanism="noisy online gradient descent",
            source="Bassily, Smith and Thakurta, FOCS 2014",
        )
        nothing = np.zeros(stream["features"].n_components)
        own = dict(guarantee=guarantee, gathered=nothing, average=nothing)
        return cls._begun(target, law, calls=calls, **own, **stream)

    def advance(
        self, X: Any, targets: np.ndarray, charge: Charge, visitors: Visitors | None = None
    ) -> tuple["FedBackRelease", dict[str, Any]]:
        """Feed noise back at every step; what it costs was paid at the first."""
        size, recursion = self.features.n_components, self.recursion
        # A record enters one gradient, of norm at most the cap times that of its features, and so
        # does a user in one call, with the mean of such gradients. It is taken at a point that
        # earlier releases determine, so that later ones cost it nothing.
        change = step_sensitivity(
            width=recursion.cap, kappa=self.kappa, adjacency=self.target.adjacency
        )
        lattice = Lattice.for_sensitivity(change, size=size, error=1e-12 * change)
        check_noise(self.law.scale, size)
        grid = self.law.on(lattice, size, "gradient of the stream, one step")
        *_, visits = self.charged(charge, lambda account: (self.guarantee, account), visitors)

        gathered, average = self.gathered, self.average
        for rows, part, start, others in self.blocks(X, targets, visitors, visits):
            gathered, average = run_noisy(
                rows,
                part,
                gathered,
                average,
                start,
                recursion,
                grid=grid,
                noise=self.noise,
                others=others,
            )
        time = self.time + self.n_steps(X.shape[0], visitors)
        then = replace(self, time=time, gathered=gathered, average=average, visits=visits)
        return then, {
            "guarantee_": self.guarantee,
            "predictor": FeatureFunction(self.features, average.copy()),
        }


@plain_arguments
def sgd_noise(times: Any, *, theta: float, t0: float, scale: float) -> np.ndarray:
    """Standard deviation of a coordinate of ``w_t`` when every gradient is noisy.

    Parameters
    ----------
    times : int or array-like of int
        Each ``t``.

    theta, t0 : float
        Step sizes.

    scale : float
        Standard deviation of a coordinate of the noise of one gradient.

    Returns
    -------
    ndarray of the shape of ``times``
        Of order ``t^(1/2 - theta)``, as if the noise did not change later gradients. It does, and
        they contract: in total, less of it stays.

    Notes
    -----
    ``V_{t+1} = (1 - 1/X)^2 V_t + eta_t^2 scale^2``, which times ``X^2`` is a sum of powers.

    Examples
    --------
    >>> sgd_noise([100, 10_000], theta=0.75, t0=3.0, scale=2.0).round(3)
    array([0.515, 0.163])
    """
    fraction(theta=theta)
    positive(t0=t0, scale=scale)
    times = counts(least=1, times=times)
    return scale * np.sqrt(power_sums(times, t0, 2.0 - 2.0 * theta)) / (times - 1.0 + t0)
