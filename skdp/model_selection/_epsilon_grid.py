"""Stages of a search for the least epsilon: how much each is given, and what all of them cost."""

import math
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np

from skdp._defaults import pipeline as defaults
from skdp._grid import TINY
from skdp._validation import is_auto, plain, positive, short_repr
from skdp.exceptions import NoConversionError
from skdp.metrics import EvaluationPlan
from skdp.metrics._evaluation import units_of
from skdp.model_selection._candidates import needs_delta
from skdp.privacy import ApproxDP, Guarantee, compose, gaussian_epsilon, gaussian_mu, parallel
from skdp.privacy._guarantees import gaussian_behind

# From stage to stage, by whether they are pure. The last of epsilons that grow by r costs
# r / (r - 1) times itself with those before, and is (r - 1) / log r times as much as needed, on
# average: least where r is e. Sums of squares of mu that double are at most 4/3 of the last one.
_RATIO = {True: math.e, False: 2.0}
# Of each stage's part of delta, what all fits have together that need some of it as a point.
_POINTS = 0.5
_GRID_BASE, _GRID_DOWN, _TOLERANCE = 10.0, 0.99, 1e-9
_GRID_DIGITS = 4  # of automatic epsilons, rounded down


@dataclass(frozen=True)
class EpsilonGrid:
    """Stages of a search, each a fit on one block of rows and a score on another.

    Fit and score of a stage have the same mu, or the same epsilon if they are pure: a record
    loses as much in either block, and the worse of both is what a search costs.

    Parameters
    ----------
    points : tuple of ApproxDP
        What the fit of each stage is given, increasing.

    fits : tuple of Guarantee
        What it is charged.

    scores : tuple of EvaluationPlan
    """

    points: tuple[ApproxDP, ...]
    fits: tuple[Guarantee, ...]
    scores: tuple[EvaluationPlan, ...]

    @classmethod
    def plan(cls, epsilons, target, *, n_scoring, planned, evaluated):
        """Plan all stages, from public numbers.

        Parameters
        ----------
        epsilons : "auto" or list of float

        target : ApproxDP
            Whose epsilon bounds what an automatic grid costs, and whose delta is that of all.

        n_scoring : int or None
            Rows or users that score; None where their number is private.

        planned : callable
            ``planned(point)`` is what a fit is charged; a ValueError says that it needs more.

        evaluated : callable
            ``evaluated(target)`` is the `EvaluationPlan` that meets a target.

        Returns
        -------
        EpsilonGrid
        """

        def of(epsilons):
            points, fits = _fits(epsilons, target, planned)
            # A score may cost as much as the fit, which is for a record of the other block.
            costs = [point if point.delta == 0.0 else point.gaussian_target() for point in points]
            return cls(points, fits, tuple(map(evaluated, costs)))

        if not is_auto(epsilons):
            _check(epsilons, target.delta)
            return of(epsilons)._quotable(target)
        top, at_most = _size(target.epsilon, target.delta), math.inf
        while True:
            wanted = _automatic(top, target, n_scoring, at_most)
            try:
                grid = of(wanted)
            except ValueError:  # an estimator may need more than the first stages have
                at_most = len(wanted) - 1
                if at_most == 0:
                    raise
                continue
            excess = grid.declared(target.delta).epsilon
            if excess <= target.epsilon:
                return grid._quotable(target)
            # Fits that are not Gaussian compose to more than their mu says.
            top *= min(
                _GRID_DOWN, _size(target.epsilon, target.delta) / _size(excess, target.delta)
            )

    def __len__(self):
        return len(self.points)

    def spent(self, n_stages):
        """Guarantee of the first stages, for a record of the worse block.

        Returns
        -------
        Guarantee
            `GaussianDP` if all are, pure if all are.
        """
        fits = [gaussian_behind(fit) or fit for fit in self.fits[:n_stages]]
        scores = [score.guarantee for score in self.scores[:n_stages]]
        return parallel([compose(fits), compose(scores)])

    def declared(self, delta):
        """All stages, at the delta of the whole."""
        return _point(self.spent(len(self)), delta)

    def quoted(self, n_stages, delta):
        """What the first stages cost once it is seen that no other was needed.

        With a positive delta at an equal part of it for each stage, so that what can go wrong at
        any of them is within delta.
        """
        return _point(self.spent(n_stages), delta / len(self))

    def _quotable(self, target):
        """The grid, if what is spent can be stated wherever it ends: all stages are the most."""
        try:
            self.quoted(len(self), target.delta)
        except NoConversionError:
            raise ValueError(
                f"epsilons must be fewer than {len(self)}, or delta larger, so that the spent "
                "budget can be stated at a fraction of delta per stage; got "
                f"delta={target.delta!r}."
            ) from None
        return self


def _point(guarantee, delta):
    if delta == 0.0 and isinstance(guarantee, ApproxDP):
        return guarantee
    return guarantee.to_approx_dp(delta)


def _size(epsilon, delta):
    """Epsilon where it adds up, and mu, whose squares do, otherwise."""
    return epsilon if delta == 0.0 else gaussian_mu(epsilon=epsilon, delta=delta)


def _fits(epsilons, target, planned):
    points = tuple(replace(target, epsilon=float(epsilon)) for epsilon in epsilons)
    fits = tuple(map(planned, points))
    if target.delta > 0.0 and any(isinstance(fit, ApproxDP) and needs_delta(fit) for fit in fits):
        # Their deltas add up, and what all of them spent is told at one stage's part of delta.
        part = _POINTS * target.delta / len(points) ** 2
        if part < TINY:
            raise ValueError(
                f"delta must be large enough to be divided among {len(points)} stages; got "
                f"{target.delta!r}."
            )
        mus = [point.gaussian_target().mu for point in points]
        points = tuple(
            replace(target, epsilon=gaussian_epsilon(mu=mu, delta=part), delta=part) for mu in mus
        )
        fits = tuple(map(planned, points))
    return points, fits


def _automatic(top, target, n_scoring, at_most):
    """Epsilons of as many stages as are worth a score, which together cost ``top``."""
    is_pure = target.delta == 0.0
    ratio, power = _RATIO[is_pure], 1.0 if is_pure else 2.0
    least = _noise(1.0, is_pure) / (defaults.FIRST_NOISE * math.sqrt(n_scoring))
    growth = ratio**power
    n_stages = math.floor(math.log1p((growth - 1.0) * (top / least) ** power) / math.log(growth))
    if n_stages < 1:
        raise ValueError(
            f"max_epsilon must be at least {_epsilon(least, target.delta):.3g} for a score of "
            f"{n_scoring} {units_of(target)} to exceed its noise; got {target.epsilon!r}."
        )
    n_stages = min(n_stages, at_most)
    first = top * ((growth - 1.0) / (growth**n_stages - 1.0)) ** (1.0 / power)
    sizes = [first * ratio**stage for stage in range(n_stages)]
    down = 1 - 0.5 * _GRID_BASE ** (1 - _GRID_DIGITS)
    return [float(f"{_epsilon(size, target.delta) * down:.{_GRID_DIGITS}g}") for size in sizes]


def score_noise(point):
    """Standard deviation of the noise in a count of errors at a stage."""
    is_pure = point.delta == 0.0
    return _noise(point.epsilon if is_pure else point.gaussian_target().mu, is_pure)


def _noise(size, is_pure):
    return math.sqrt(2.0 if is_pure else 1.0) / size


def _epsilon(size, delta):
    return size if delta == 0.0 else gaussian_epsilon(mu=size, delta=delta)


def _check(epsilons: Any, delta: float) -> None:
    """Check given epsilons: what a search costs beyond its last stage is bounded by doubling."""
    values = [plain(e) for e in epsilons] if np.iterable(epsilons) else []
    if isinstance(epsilons, str) or not values:
        raise ValueError(
            "epsilons must be 'auto' or a non-empty list of increasing numbers; got "
            f"{short_repr(epsilons)}."
        )
    for position, epsilon in enumerate(values):
        positive(**{f"epsilons[{position}]": epsilon})
    sizes = [_size(float(epsilon), delta) for epsilon in values]
    what = "epsilons" if delta == 0.0 else "the mu of epsilons"
    for position, (low, high) in enumerate(pairwise(sizes)):
        if high < 2.0 * low * (1.0 - _TOLERANCE):
            at_least = _epsilon(2.0 * low, delta)
            raise ValueError(
                f"epsilons must be such that {what} at least double from stage to stage: "
                f"{values[position]!r} must be followed by at least {at_least:.6g}; got "
                f"{values[position + 1]!r}."
            )
