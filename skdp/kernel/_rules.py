"""Regression on features of unit norm by noisy gradients: the budget, steps and how far they go.

Every rule reads public or released numbers only. Targets lie in [-1, 1].
"""

import math
from dataclasses import dataclass, replace

import numpy as np

from skdp._defaults import kernel as defaults
from skdp._validation import plain_arguments
from skdp.learner._sequence import divided
from skdp.privacy import GaussianDP

__all__ = ["FeaturePlan", "Schedule", "automatic_components", "plan_features", "spectral_noise"]

N_STEPS = int(defaults.STEPS)

# Schedules to choose from, the shortest first: floors in units of the least, then momenta in units
# of the largest.
_GRID_FLOORS = np.geomspace(1e12, 1.0, 256)
_GRID_MOMENTA = np.linspace(0.0, 1.0, 33)


@plain_arguments
def automatic_components(*, n_samples: float | None, guarantee: GaussianDP) -> int:
    """Number of random features by what their second moments can show.

    Parameters
    ----------
    n_samples : float or None
        Public number of rows; None where it is private.

    guarantee : GaussianDP
        Whole budget.

    Returns
    -------
    int
        A share of ``mu n_samples``, between a least and a largest number. The noise of second
        moments hides curvatures below ``edge``, which grows with the root of this number: fewer
        features show more where ``mu n_samples`` is small, and more of them approximate the
        kernel better where it is large. Without a number of rows it is the one for many, as the
        loss is larger where too few features are taken of many rows.
    """
    if n_samples is None:
        return int(defaults.MOST_FEATURES)
    wanted = max(defaults.FEATURES * guarantee.mu * n_samples, defaults.FEWEST_FEATURES)
    return round(min(wanted, defaults.MOST_FEATURES))


@dataclass(frozen=True)
class Schedule:
    """Steps of one descent on features, by released numbers.

    Parameters
    ----------
    momentum : float

    floor : float
        Least number that a gradient is divided by.

    divisors : ndarray of shape (n_components,)
        What it is divided by in each direction.

    clip_norm : float
        Largest norm of a whitened row times its residual.

    shares : ndarray of shape (n_steps,)
        Of the squared mu of all steps together, for each.

    variance : float
        That noise adds to a prediction, by an estimate.
    """

    momentum: float
    floor: float
    divisors: np.ndarray
    clip_norm: float
    shares: np.ndarray
    variance: float


@dataclass(frozen=True)
class FeaturePlan:
    """Public numbers of one descent on features, in units of the mean over rows.

    Parameters
    ----------
    n_samples : float
        Number of rows, public or released.

    target_guarantee, level_guarantee, gram_guarantee, steps_guarantee : GaussianDP
        Guarantees of mean and mean square of the targets, of the mean of what the weights predict,
        of the second moments of the features, and of all noisy gradients together.

    noise : float
        Standard deviation of a mean of gradients of norm one along a direction, over all steps
        together.

    edge : float
        Norm of the noise of the released second moments: smaller curvatures are invisible.
    """

    n_samples: float
    target_guarantee: GaussianDP
    level_guarantee: GaussianDP
    gram_guarantee: GaussianDP
    steps_guarantee: GaussianDP
    noise: float
    edge: float

    def target_scale(
        self, mean: float, square: float, *, deviations: tuple[float, float]
    ) -> tuple[float, float]:
        """Offset and variance of the targets.

        Parameters
        ----------
        mean, square : float
            Released mean of the targets and of their squares.

        deviations : tuple of two floats
            Standard deviations of the noise in them.

        Returns
        -------
        offset, variance : float
            The offset is the mean, drawn to the middle of the bounds as the best guess of a normal
            one is by the noise in it. The variance is a cautious one, less by the standard
            deviation of its noise: where it is too large, so is the noise that it allows. Half of
            that is supposed at least.
        """
        offset = min(max(mean, -1.0), 1.0)
        noise = math.hypot(2.0 * offset * deviations[0], deviations[1])
        variance = min(max(square - offset**2 - noise, noise / 2.0), 1.0)
        usual = defaults.OFFSET**2
        return offset * usual / (usual + deviations[0] ** 2), variance

    def residual_cap(self, variance: float) -> float:
        """Typical limit of a residual: half a standard deviation of the targets."""
        return min(math.sqrt(variance) / 2.0, 1.0)

    def prediction_cap(self, variance: float) -> float:
        """Limit of a prediction in the mean of them: predictions vary less than targets do."""
        return math.sqrt(2.0 * variance)

    def level_trust(self, variance: float) -> float:
        """Share of the released mean of predictions that is taken off them.

        Noise is in it, and in the offset, which is what predictions are to have as their mean.

        Parameters
        ----------
        variance : float
            That of the targets, of which the mean is supposed to be off by a share.
        """
        records = self.level_guarantee.n_records_changed
        noise = records * self.prediction_cap(variance) / self.level_guarantee.mu
        # Replaced, a target moves by 2 at most, and is weighted in their release for that.
        offset = math.sqrt(2.0 * records) / self.target_guarantee.mu
        supposed = defaults.LEVEL * variance
        return supposed / (supposed + (math.hypot(noise, offset) / self.n_samples) ** 2)

    def schedule(self, curvatures: np.ndarray, *, variance: float, cap: float) -> Schedule:
        """Longest descent whose noise has the variance that is allowed in a prediction.

        Parameters
        ----------
        curvatures : ndarray
            Eigenvalues of the released second moments; their sum without noise is at most 1.

        variance : float
            That of the targets.

        cap : float
            Typical limit of a residual.

        Returns
        -------
        Schedule
        """
        seen, rest = self._seen(curvatures)
        hidden = seen == 0.0
        mean = rest / max(1, int(np.count_nonzero(hidden)))
        supposed = np.where(hidden, mean, seen)
        # A hidden direction that is alone has half the edge at most; what many have in common is
        # their mean, which the edge hides. A true curvature may be larger than a released one by
        # the edge, where many are about equal. Nesterov's iteration stands steps that are too
        # long by (2 + 2m) / (1 + 2m).
        least = self.edge / 2.0 + mean
        shown = np.where(hidden, 0.0, curvatures + self.edge / 2.0)
        grid = [(0.0, least * factor) for factor in _GRID_FLOORS]
        grid += [(defaults.MOMENTUM * factor, least) for factor in _GRID_MOMENTA]

        def at(place: int) -> Schedule:
            momentum, floor = grid[place]
            return self._at(float(momentum), float(floor), np.maximum(shown, floor), supposed, cap)

        low, high = 0, len(grid)
        while high - low > 1:
            middle = (low + high) // 2
            within = at(middle).variance <= defaults.ALLOWED * variance
            low, high = (middle, high) if within else (low, middle)
        return at(low)

    def step_guarantees(self, shares: np.ndarray) -> list[GaussianDP]:
        """Guarantee of each noisy gradient, which compose to that of all."""
        mu = self.steps_guarantee.mu
        return [replace(self.steps_guarantee, mu=mu * root) for root in np.sqrt(shares).tolist()]

    def _at(
        self,
        momentum: float,
        floor: float,
        divisors: np.ndarray,
        supposed: np.ndarray,
        cap: float,
    ) -> Schedule:
        weights = supposed / divisors
        clip_norm = cap * math.sqrt(float(weights.sum()))  # root mean square of a whitened row
        # Shares in proportion to how far noise of a step leads have the least noise in the end;
        # even ones have it where curvature has later steps undo it. These are between the two.
        shares = np.sqrt(_responses(np.zeros(1), momentum)[0])
        shares /= shares.sum()
        ratios, places = np.unique(weights, return_inverse=True)
        gathered = (_responses(ratios, momentum) ** 2 @ (1.0 / shares))[places]
        variance = (self.noise * clip_norm) ** 2 * float(weights @ gathered)
        return Schedule(momentum, floor, divisors, clip_norm, shares, variance)

    def _seen(self, curvatures: np.ndarray) -> tuple[np.ndarray, float]:
        """Curvatures above the noise, without what it adds to them, and the sum of others."""
        # Symmetric noise of norm e moves an eigenvalue c > e/2 to c + (e/2)^2/c (Benaych-Georges
        # and Nadakuditi 2011), which is solved for c; a smaller one stays hidden.
        root = np.sqrt(np.maximum(curvatures**2 - self.edge**2, 0.0))
        seen = np.where(curvatures > self.edge, (curvatures + root) / 2.0, 0.0)
        seen /= max(1.0, float(seen.sum()))
        n_hidden = int(np.count_nonzero(seen == 0.0))
        return seen, min(max(self.edge / 2.0, 1.0 - float(seen.sum())), 1.0, n_hidden * self.edge)


@plain_arguments
def plan_features(*, n_samples: float, n_components: int, guarantee: GaussianDP) -> FeaturePlan:
    """Split the budget of a descent on features.

    Parameters
    ----------
    n_samples : float
        Number of rows, public or released.

    n_components : int
        Number of features.

    guarantee : GaussianDP
        Budget of the descent.

    Returns
    -------
    FeaturePlan

    Notes
    -----
    The share of mean and mean square of the targets falls with mu times the number of rows: their
    noise has a variance in proportion to one over the share times the square of that, and what
    they take costs the weights in proportion to the share. The mean of predictions, which a cap
    of the residuals draws to the median of the targets, and the second moments of the features
    have fixed shares of what is left.
    """
    rows = guarantee.mu * n_samples
    target, rest = divided(guarantee, defaults.TARGET_ROWS / (defaults.TARGET_ROWS + rows))
    level, rest = divided(rest, defaults.LEVEL_SHARE)
    gram, steps = divided(rest, defaults.SHARE)
    noise = guarantee.n_records_changed / (steps.mu * n_samples)
    edge = spectral_noise(n_components, gram) / n_samples
    return FeaturePlan(n_samples, target, level, gram, steps, noise, edge)


def spectral_noise(n_components: int, guarantee: GaussianDP) -> float:
    """Spectral norm of the noise of second moments, whose entries have variance sigma^2/2."""
    sigma = math.sqrt(guarantee.n_records_changed) / guarantee.mu
    return math.sqrt(2.0 * n_components) * sigma


def _responses(ratios: np.ndarray, momentum: float) -> np.ndarray:
    """How far noise in each step moves the mean of the later half of the iterates.

    Along directions of these curvatures over their divisors; of shape (n_ratios, n_steps).
    """
    moved, velocity = np.ones((2, len(ratios)))
    sums = np.zeros((len(ratios), N_STEPS + 1))
    for step in range(N_STEPS):
        sums[:, step + 1] = sums[:, step] + moved
        velocity = momentum * velocity - ratios * (moved + momentum * velocity)
        moved = moved + velocity
    ends = np.arange(N_STEPS, 0, -1)
    return (sums[:, ends] - sums[:, np.maximum(ends - N_STEPS // 2, 0)]) / (N_STEPS // 2)
