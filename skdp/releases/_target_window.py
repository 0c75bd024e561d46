"""Where most targets lie, of all that their bounds allow, from noisy counts in cells.

Bounds are stated before the data are seen, and are often far wider than the targets. Noise in the
mean of these is in proportion to their range: a first look at where they lie makes that small.

To check the claim: `release_window`, with ``solvers/hits.py`` for what it counts, and
`release_parts`, with `TargetWindow.parts` for what it adds up. The other functions read public and
released numbers only. All constants of the rule stand here; they were
chosen on the ten sets of `plan_features`, with the bounds of their targets as they are and up to
five times as wide, and on targets of which a few are far from all others.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from skdp._random import NoiseSource
from skdp._validation import plain_arguments
from skdp.mechanisms import NoiseLaw, release
from skdp.privacy import GaussianDP
from skdp.releases._moments import split_mu
from skdp.solvers.feature_rows import ERROR_SHARE, FeatureBlocks, certified
from skdp.solvers.hits import cell_counts

__all__ = [
    "TargetParts",
    "TargetWindow",
    "narrowest",
    "release_parts",
    "release_window",
    "split_for_window",
]

N_CELLS = 32

# Noise in the share of a cell is a deviation of 0.031 of replaced records, unless that takes more
# than the most of the squared mu, or less than the least. Where rows times mu is below the last
# number nothing is released.
_SIGNAL, _LEAST_SHARE, _MOST_SHARE, _LEAST_SIGNAL = 45.0, 1e-3, 0.1, 95.0

# The narrowest interval is to hold all targets but for so many deviations of that noise, less so
# many of the noise in what it holds. It is then widened on either side by a part of its width, and
# by a cell.
_OUTSIDE, _CERTAIN, _WIDER = 3.0, 0.5, 1.0

# Deviations of its noise from which the mean square of the targets outside counts, and counts in
# full. Noise alone is beyond two in one fit of forty-four, and would cost much there.
_DOUBTED, _SEEN = 2.0, 3.5


@dataclass(frozen=True)
class TargetWindow:
    """An interval of targets.

    Parameters
    ----------
    centre, half_width : float, default=0.0 and 1.0
        By default all that the bounds of the target allow.
    """

    centre: float = 0.0
    half_width: float = 1.0

    @property
    def reach(self) -> float:
        """Distance from the centre to the farther end of [-1, 1]."""
        return 1.0 + abs(self.centre)

    def parts(self, targets: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Targets less the centre, in [-1, 1]: those inside, and those outside; else zeros.

        The former are in units of `half_width`, the latter of `reach`.
        """
        distances = targets - self.centre
        inside = np.abs(distances) <= self.half_width
        near = np.clip(distances / self.half_width, -1.0, 1.0)
        far = np.clip(distances / self.reach, -1.0, 1.0)
        return np.where(inside, near, 0.0), np.where(inside, 0.0, far)


@dataclass(frozen=True)
class TargetParts:
    """Mean and mean square of the targets inside of a window and outside.

    Parameters
    ----------
    window : TargetWindow

    near, far : tuple of two floats
        Released sums of `TargetWindow.parts` and of their squares, over the number of rows.

    deviation : float
        Public standard deviation of the noise in each.
    """

    window: TargetWindow
    near: tuple[float, float]
    far: tuple[float, float]
    deviation: float

    def scale(self, rule: Callable[..., tuple[float, float]]) -> tuple[float, float, float]:
        """Offset and variance of the targets, and the range that noise in them goes by.

        Parameters
        ----------
        rule : callable
            ``rule(mean, square, deviations=(a, b))``: offset and variance of targets in [-1, 1].

        Returns
        -------
        offset, variance, unit : float
            Of the targets inside, and of others as far as there are more of these than noise
            explains: a few that are far away decide.
        """
        window, noise = self.window, self.deviation
        trust = (self.far[1] / noise - _DOUBTED) / (_SEEN - _DOUBTED)
        trust = min(max(trust, 0.0), 1.0) if window.half_width < 1.0 else 0.0
        unit = window.half_width + trust * (window.reach - window.half_width)
        near, far = window.half_width / unit, window.reach / unit
        parts = [(near, trust * far), (near**2, trust * far**2)]  # of the mean and of the square
        mean, square = (
            a * inside + b * outside
            for (a, b), inside, outside in zip(parts, self.near, self.far, strict=True)
        )
        deviations = noise * math.hypot(*parts[0]), noise * math.hypot(*parts[1])
        offset, variance = rule(mean, square, deviations=deviations)
        offset = min(max(window.centre + unit * offset, -1.0), 1.0)
        return offset, min(unit**2 * variance, 1.0), unit


@plain_arguments
def split_for_window(
    guarantee: GaussianDP, *, n_samples: float
) -> tuple[GaussianDP | None, GaussianDP]:
    """Set a share aside, for `release_window`.

    Parameters
    ----------
    guarantee : GaussianDP
        Budget of a regression.

    n_samples : float
        Number of rows, public or released.

    Returns
    -------
    window, rest : GaussianDP
        ``window`` is None where noise would be all that it tells.
    """
    signal = min(max(guarantee.mu * n_samples, 1e-9), 1e12)
    if signal < _LEAST_SIGNAL:
        return None, guarantee
    share = min(max((_SIGNAL / signal) ** 2, _LEAST_SHARE), _MOST_SHARE)
    return split_mu(guarantee, share)


def release_window(
    data: FeatureBlocks, *, n_samples: float, guarantee: GaussianDP, noise: NoiseSource
) -> TargetWindow:
    """Release in which cells the targets are, and find where most of them lie.

    Privacy: satisfies ``guarantee``. A record is in one of the cells. Where rows have owners, a
    user adds 1 in all, spread over cells.

    Parameters
    ----------
    data : FeatureBlocks

    n_samples : float
        Number of rows, public or released.

    guarantee : GaussianDP

    noise : NoiseSource

    Returns
    -------
    TargetWindow
    """
    # Targets lie in [-1, 1]. Which cell one is in depends on no other.
    cells = np.floor((data.targets + 1.0) * (N_CELLS / 2.0)).astype(np.intp)
    shares = None if data.users is None else data.users.shares
    law = NoiseLaw.of("gaussian", guarantee)
    # Two records are in two cells. Counts of users are not negative and add up to one at most.
    sensitivity = math.sqrt(guarantee.n_records_changed)
    counts = release(
        cell_counts(np.minimum(cells, N_CELLS - 1), N_CELLS, shares),
        law=law,
        sensitivity=sensitivity,
        error=0.0,
        random_state=noise,
        purpose="numbers of targets in cells of their range",
    )
    return narrowest(counts / n_samples, deviation=law.scale * sensitivity / n_samples)


def release_parts(
    data: FeatureBlocks,
    window: TargetWindow,
    *,
    n_samples: float,
    guarantee: GaussianDP,
    noise: NoiseSource,
) -> TargetParts:
    """Release mean and mean square of the targets inside of a window, and of those outside.

    Privacy: satisfies ``guarantee`` for a released window. A record is inside or outside: it adds
    to two of the four sums, a vector of norm sqrt(2) at most, and in place of another one moves
    all four by 2 at most.

    Parameters
    ----------
    data : FeatureBlocks

    window : TargetWindow

    n_samples : float
        Number of rows, public or released.

    guarantee : GaussianDP

    noise : NoiseSource

    Returns
    -------
    TargetParts
    """
    # A record adds (t, t^2) to one of two pairs, with |t| <= 1: at most sqrt(2) in norm. Two in
    # different pairs are 2 apart at most; two in one are |t - u| sqrt(1 + (t + u)^2), which is
    # largest, 2, at t = 1 and u = -1. Means over rows of a user are no farther apart.
    sensitivity = math.sqrt(2.0 * guarantee.n_records_changed)
    error = ERROR_SHARE * sensitivity
    law = NoiseLaw.of("gaussian", guarantee)
    sums = [
        certified(data.with_targets(part).target_moments(), error / 2.0)
        for part in window.parts(data.targets)
    ]
    released = release(
        np.concatenate(sums),
        law=law,
        sensitivity=sensitivity,
        error=error,
        random_state=noise,
        purpose="mean and mean square of the target, inside and outside of a window",
    )
    means = (released / n_samples).tolist()
    deviation = law.scale * sensitivity / n_samples
    return TargetParts(window, (means[0], means[1]), (means[2], means[3]), deviation)


def narrowest(shares: np.ndarray, *, deviation: float) -> TargetWindow:
    """Window around the fewest cells in a row that hold most of the targets, widened.

    Parameters
    ----------
    shares : ndarray of shape (n_cells,)
        Released, of cells of one width that fill [-1, 1].

    deviation : float
        Public standard deviation of the noise in each.

    Returns
    -------
    TargetWindow
    """
    n_cells = len(shares)
    shares = shares - (shares.sum() - 1.0) / n_cells
    sums = np.concatenate([[0.0], np.cumsum(shares)])
    for width in range(1, n_cells):
        inside = sums[width:] - sums[:-width]
        doubt = math.sqrt(width * (1.0 - width / n_cells))  # as all shares add up to one
        if inside.max() >= 1.0 - (_OUTSIDE - _CERTAIN * doubt) * deviation:
            first = int(inside.argmax())
            wider = _WIDER * width + 1.0
            low, high = max(first - wider, 0.0), min(first + width + wider, float(n_cells))
            return TargetWindow((low + high) / n_cells - 1.0, (high - low) / n_cells)
    return TargetWindow()
