"""What several releases of one stream cost together: exactly, over the positions of a record."""

import math
from copy import copy
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from skdp._validation import counts, non_negative, one_of, positive, shown
from skdp.kernel._online._calls import CallsAccount
from skdp.kernel._online._sensitivity import stream_sensitivity
from skdp.privacy import ApproxDP, GaussianDP

__all__ = ["ReleaseAccount", "cumulative"]


@dataclass(frozen=True, eq=False, kw_only=True)
class ReleaseAccount:
    """What all releases of the recursion so far cost together; public numbers only.

    Parameters
    ----------
    theta, t0, y_bound, kappa, residual, radius, width, adjacency, bound
        See `created_distances`.

    noise : {"gaussian", "k-norm"}, default="gaussian"
        Gaussian noise of standard deviation ``scale`` in each coordinate, or noise of density
        proportional to ``exp(-norm / scale)``, which is pure. Laplace noise of scale b on one
        prediction is a K-norm release of scale ``b / kappa``.

    Notes
    -----
    With releases at times ``T_j``, the record at ``s`` changes those with ``T_j > s``, each by at
    most ``D_s (s + t0) / (T_j - 1 + t0)`` in the RKHS norm. It is protected with
    ``mu(s)^2 = sum_{T_j > s} (that / scale_j)^2``, or
    ``epsilon(s) = sum_{T_j > s} that / scale_j``, and the guarantee is the largest over ``s``.
    Later records may depend on earlier releases; times and scales are fixed without looking at
    them.

    The records between two releases share the sum of scales and differ in ``D_s (s + t0)`` only.
    The largest of these stands for all, and is that of the last among them
    (`stream_sensitivities`): the release at T sees it as ``stream_sensitivity(T) (T - 1 + t0)``.
    What another record has with less of it and no higher sum so far, it has for ever, and is
    dropped. Memory and the time of one update are therefore at most proportional to the number
    of releases.

    Examples
    --------
    >>> start = ReleaseAccount(theta=0.75, t0=3.0, y_bound=1.0, residual="huber", width=1.0)
    >>> once = start.after(100, scale=0.1)
    >>> twice = once.after(200, scale=0.1)
    >>> print(once.guarantee)
    0.623132-Gaussian differential privacy when replacing one record, by output perturbation.
    >>> round(twice.guarantee.mu, 4)
    0.6981
    """

    theta: float
    t0: float
    y_bound: float
    kappa: float = 1.0
    residual: str = "plain"
    radius: float | None = None
    width: float | None = None
    adjacency: str = "replace-one"
    bound: str = "tight"
    noise: str = "gaussian"
    time: int = field(default=0, init=False)
    n_releases: int = field(default=0, init=False)
    # One entry a group of records: its D_s (s + t0), and its mu^2 or epsilon so far.
    _reach: np.ndarray = field(default_factory=lambda: np.empty(0), init=False, repr=False)
    _spent: np.ndarray = field(default_factory=lambda: np.empty(0), init=False, repr=False)

    def __post_init__(self) -> None:
        one_of(["gaussian", "k-norm"], noise=self.noise)
        stream_sensitivity(1, **self._stream())

    def _stream(self) -> dict[str, Any]:
        return {
            "theta": self.theta,
            "t0": self.t0,
            "y_bound": self.y_bound,
            "kappa": self.kappa,
            "residual": self.residual,
            "radius": self.radius,
            "width": self.width,
            "adjacency": self.adjacency,
            "bound": self.bound,
        }

    def after(self, time: int, scale: float, *, slack: float = 0.0) -> "ReleaseAccount":
        """Account for one more release.

        Parameters
        ----------
        time : int
            Number of records that the released function depends on, public and never
            less than at the last release.

        scale : float
            Of the noise.

        slack : float, default=0.0
            What two neighbours may differ by in addition, wherever the record is: certified
            errors of both and their rounding to a lattice.

        Returns
        -------
        ReleaseAccount
        """
        counts(least=1, time=time)
        positive(scale=scale)
        non_negative(slack=slack)
        if time < self.time:
            raise ValueError(
                f"time must not be less than at the last release, {self.time}; got {shown(time)}."
            )
        span = time - 1 + self.t0
        reach, spent = self._reach, self._spent
        if time > self.time:
            reach = np.append(reach, stream_sensitivity(time, **self._stream()) * span)
            spent = np.append(spent, 0.0)
        cost = (reach / span + slack) / scale
        spent = spent + (cost**2 if self.noise == "gaussian" else cost)
        # Reach increases: whatever stands before the highest sum will never be higher.
        highest = len(spent) - 1 - int(np.argmax(spent[::-1]))
        account = copy(self)  # its numbers were checked when it began
        for name, value in [
            ("time", int(time)),
            ("n_releases", self.n_releases + 1),
            ("_reach", reach[highest:]),
            ("_spent", spent[highest:]),
        ]:
            object.__setattr__(account, name, value)
        return account

    @property
    def guarantee(self) -> ApproxDP | GaussianDP:
        """Guarantee of all releases together.

        `GaussianDP`, or a pure `ApproxDP` for K-norm noise. A ledger replaces that of an earlier
        account by it. What it has grown by is no guarantee: another record may be the worst one
        now, and increases of a pure guarantee, composed otherwise than by their sum, come to less
        than what one record has paid.
        """
        # Reach increases and sums decrease along the groups that are kept.
        total = float(self._spent[0]) if self.n_releases else 0.0
        total *= 1.0 + 1e-15 * (8 + self.n_releases)
        gaussian = self.noise == "gaussian"
        kind, size = (GaussianDP, math.sqrt(total)) if gaussian else (ApproxDP, total)
        return kind(size, adjacency=self.adjacency, mechanism="output perturbation")


def cumulative(account: ReleaseAccount | CallsAccount, target: ApproxDP) -> ApproxDP:
    """What all releases so far satisfy, at the delta of the target of one."""
    guarantee = account.guarantee
    if guarantee.unit != target.unit:
        guarantee = replace(guarantee, unit=target.unit)
    # The first release satisfies the target by its calibration, and later ones add to it.
    epsilon = target.epsilon
    if account.n_releases > 1:
        epsilon = max(epsilon, guarantee.epsilon_at(target.delta))
    return replace(
        target,
        epsilon=epsilon,
        refined=guarantee if target.delta > 0.0 else None,
        mechanism=f"{account.n_releases} release(s) of online kernel regression",
        source="output perturbation as in Chaudhuri, Monteleoni and Sarwate, JMLR 2011, "
        "composed exactly over the positions of a record",
    )
