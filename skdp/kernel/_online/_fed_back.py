"""A stream of noisy gradients that are fed back: the transcript, for ever, for one budget.

To check the claim: this file, `run_noisy` in `_recursion` for what is done with a noisy gradient,
and `step_sensitivity` in `_sensitivity`.
"""

from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from skdp._validation import counts, fraction, plain_arguments, positive
from skdp.kernel._online._base import Run, TranscriptRelease
from skdp.kernel._online._recursion import run_noisy
from skdp.kernel._online._sensitivity import power_sums
from skdp.mechanisms import Lattice, NoiseLaw
from skdp.mechanisms._additive import check_noise


@dataclass(frozen=True, kw_only=True)
class FedBackRelease(TranscriptRelease):
    """Release every gradient with noise, and go on from what was released.

    Privacy: the whole transcript, however long, satisfies ``guarantee``, which is paid at the
    first row. Nothing that is kept is private.

    Parameters
    ----------
    target, recursion, kappa, gamma, features, law, noise, time, calls, participation, guarantee
        See `TranscriptRelease`; there is no horizon.

    gathered : ndarray of shape (n_components,)
        ``(time - 1 + t0)`` times the weights. Released.

    average : ndarray of shape (n_components,)
        Mean of the weights in which late ones weigh more. Released.
    """

    gathered: np.ndarray = field(repr=False)
    average: np.ndarray = field(repr=False)

    _mechanism = "noisy online gradient descent"
    _source = "Bassily, Smith and Thakurta, FOCS 2014"
    _state = ("gathered", "average")

    def _laws(self, together: NoiseLaw) -> tuple[NoiseLaw, Any]:
        # Who comes in several calls is in so many gradients, whose releases compose.
        law = together if self.calls == 1 else together.repeated(self.calls)
        return law, together.refining(self.target)

    @classmethod
    def _start(cls, size: int, horizon: Any) -> dict[str, Any]:
        return dict(gathered=np.zeros(size), average=np.zeros(size))

    def _run(self) -> Run:
        """Feed noise back at every step."""
        size, change = self.features.n_components, self._change
        lattice = Lattice.for_sensitivity(change, size=size, error=1e-12 * change)
        check_noise(self.law.scale, size)
        grid = self.law.on(lattice, size, "gradient of the stream, one step")

        return partial(run_noisy, recursion=self.recursion, grid=grid, noise=self.noise)

    def _coef(self, gathered: np.ndarray, time: int) -> np.ndarray:
        return gathered.copy()


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
