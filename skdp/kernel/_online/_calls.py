"""What several releases of a stream cost a user who comes in several calls."""

import math
from copy import copy
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from skdp.kernel._online._sensitivity import stream_sensitivity
from skdp.privacy import ApproxDP, GaussianDP

__all__ = ["CallsAccount"]

# Candidates for the worst calls that are told apart, and the powers of two that tell others.
_MOST, _FINENESS = 256, 128.0

Front = tuple[np.ndarray, np.ndarray]


@dataclass(frozen=True, eq=False, kw_only=True)
class CallsAccount:
    """The like of `ReleaseAccount` for users who take a step in several calls; public numbers.

    Parameters
    ----------
    calls : int
        Largest number of calls that hold a step of one user, at most one each.

    stream : dict
        Keywords of `created_distances`.

    noise : {"gaussian", "k-norm"}

    time, n_releases : int, default=0

    Notes
    -----
    A step at s on other rows of the user creates at most ``D_s``, from whatever function it
    starts. If both streams were ``d`` apart before it, they are at most ``(1 - 1/X) d + D_s``
    apart after it: compare both with the step on the first stream's rows from the second stream's
    function. It spreads no difference, and what it and the second stream's step make of one
    function is at most ``D_s`` apart. So distances of a user's steps add up, and each shrinks as
    if it was alone: after steps in a set C of calls they are at most
    ``sum_C D_s (s + t0) / (T - 1 + t0)`` apart at T. The summands do not decrease with s. Hence a
    step is worst at the end of its call, and a release sees the user most who came in the latest
    calls.

    A user pays for each release as a record does, for all that its steps before have moved:
    Gaussian noise by the sum of squares of these distances over the scale, K-norm noise by their
    sum. The guarantee is the largest over all C of at most ``calls`` calls. What C has come to is
    a pair: its sum of ``D_s (s + t0)``, and what was spent. A pair that is in neither larger than
    another for as many calls never will be, and is dropped. Beyond 256 pairs, those whose sums are
    within one part in 128 share the larger sum and the larger expense.
    """

    calls: int
    stream: dict[str, Any]
    noise: str
    time: int = 0
    n_releases: int = 0
    # D_s (s + t0) at the end of each of the latest calls, one less than a user may have.
    _latest: tuple[float, ...] = field(default=(), init=False, repr=False)
    # By number of calls, from 1: sums of D_s (s + t0), and mu^2 or epsilon so far.
    _fronts: tuple[Front, ...] = field(default=(), init=False, repr=False)

    def _reach(self, time: int) -> float:
        return stream_sensitivity(time, **self.stream) * (time - 1 + self.stream["t0"])

    def sensitivity(self, time: int) -> float:
        """Largest distance after ``time`` steps, the latest call included."""
        reach = math.fsum((*self._latest, self._reach(time)))
        return reach / (time - 1 + self.stream["t0"]) * (1.0 + 1e-14)

    def after(self, time: int, scale: float, *, slack: float = 0.0) -> "CallsAccount":
        """Account for one more release, at the end of a call.

        Parameters
        ----------
        time : int
            Steps so far.

        scale : float
            Of the noise.

        slack : float, default=0.0
            What two neighbours may differ by in addition, once the user has come.
        """
        if time < self.time:
            raise ValueError(
                f"time must not be less than at the last release, {self.time}; got {time}."
            )
        fronts, latest = list(self._fronts), self._latest
        if time > self.time:
            reach = self._reach(time)
            latest = (*latest, reach)[-(self.calls - 1) :] if self.calls > 1 else ()
            fronts = self._with_one_more(reach)
        span = time - 1 + self.stream["t0"]
        paid = []
        for reaches, spent in fronts:
            cost = (reaches / span + slack) / scale
            paid.append(_pruned(reaches, spent + (cost**2 if self._is_gaussian else cost)))
        account = copy(self)
        for name, value in [
            ("time", int(time)),
            ("n_releases", self.n_releases + 1),
            ("_latest", latest),
            ("_fronts", tuple(paid)),
        ]:
            object.__setattr__(account, name, value)
        return account

    def _with_one_more(self, reach: float) -> list[Front]:
        """Whoever came before comes in this call, too, or does not."""
        none = np.zeros(1)
        before = [(none, none), *self._fronts]
        fronts = []
        for n in range(1, min(self.calls, len(before)) + 1):
            sums, spent = before[n - 1]
            sums = sums + reach
            if n < len(before):
                sums = np.concatenate([before[n][0], sums])
                spent = np.concatenate([before[n][1], spent])
            fronts.append((sums, spent))
        return fronts

    @property
    def _is_gaussian(self) -> bool:
        return self.noise == "gaussian"

    @property
    def guarantee(self) -> ApproxDP | GaussianDP:
        """Guarantee of all releases together, as of a `ReleaseAccount`."""
        total = max((float(spent.max()) for _, spent in self._fronts), default=0.0)
        total *= 1.0 + 1e-15 * (8 + self.n_releases + self.calls)
        kind, size = (GaussianDP, math.sqrt(total)) if self._is_gaussian else (ApproxDP, total)
        return kind(
            size, adjacency=self.stream["adjacency"], unit="user", mechanism="output perturbation"
        )


def _pruned(reach: np.ndarray, spent: np.ndarray) -> Front:
    """Leave out what is in neither larger than another, and round up the rest if it is much."""
    order = np.argsort(reach, kind="stable")
    reach, spent = reach[order], spent[order]
    later = np.maximum.accumulate(spent[::-1])[::-1]
    keep = np.append(spent[:-1] > later[1:], True)
    reach, spent = reach[keep], spent[keep]
    if len(reach) <= _MOST:
        return reach, spent
    places = np.flatnonzero(np.diff(np.floor(np.log(reach) * _FINENESS)))
    # Sums increase and expenses decrease: the larger ones of a group are at either end.
    return reach[np.append(places, len(reach) - 1)], spent[np.append(0, places + 1)]
