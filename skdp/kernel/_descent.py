"""Regression on features of bounded norm by noisy gradients: budget, steps, and releases.

To check the claim: this file, `skdp.learner._descent` for the release of second moments, and
`skdp.rows._blocks`, which bounds and certifies what is summed; what whitening costs in
rounding is in `skdp.rows._whitening`.

Every rule reads public or released numbers only. Targets lie in [-1, 1].
"""

import math
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from skdp._defaults import kernel as defaults
from skdp._random._source import NoiseSource
from skdp._recording import with_progress
from skdp._validation import plain_arguments
from skdp.learner._descent import eigenvectors, release_second_moments
from skdp.learner._sequence import divided
from skdp.learner._stages import counted
from skdp.mechanisms import NoiseLaw, release
from skdp.mechanisms._additive import check_memory, check_noise
from skdp.privacy import ApproxDP, GaussianDP
from skdp.rows._blocks import ERROR_SHARE, FeatureBlocks, certified
from skdp.rows._sums import MOST_ROWS, refuse_rows
from skdp.rows._whitening import Whitening

N_STEPS = int(defaults.STEPS)
FEWEST_FEATURES = int(defaults.FEWEST_FEATURES)

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
    wanted = max(defaults.FEATURES * guarantee.mu * n_samples, FEWEST_FEATURES)
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
        visible = np.where(hidden, 0.0, curvatures + self.edge / 2.0)
        grid = [(0.0, least * factor) for factor in _GRID_FLOORS]
        grid += [(defaults.MOMENTUM * factor, least) for factor in _GRID_MOMENTA]

        def at(place: int) -> Schedule:
            momentum, floor = grid[place]
            return self._at(
                float(momentum), float(floor), np.maximum(visible, floor), supposed, cap
            )

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
        seen = without_noise(curvatures, self.edge)
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


def without_noise(values: np.ndarray, edge: float) -> np.ndarray:
    """Eigenvalues above noise of a norm, without what it adds to them; 0 where they are hidden."""
    # Symmetric noise of norm e moves an eigenvalue c > e/2 to c + (e/2)^2/c (Benaych-Georges
    # and Nadakuditi 2011), which is solved for c; a smaller one stays hidden.
    root = np.sqrt(np.maximum(values**2 - edge**2, 0.0))
    return np.where(values > edge, (values + root) / 2.0, 0.0)


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


# Bytes of matrices that are held together, by the squares of their sizes and by their products.
_LIMIT_BYTES_OF_SQUARES = 48.0
_LIMIT_BYTES_OF_FREQUENCIES = 16.0


def check_features(
    target: ApproxDP, n_samples: int, n_features: int, size: int, *, rule: str, growth: float
) -> None:
    """Refuse what memory, the lattice of the noise or sums of rows could not hold.

    Parameters
    ----------
    target : ApproxDP

    n_samples : int
        Number of rows, or of users.

    n_features, size : int
        Columns of the rows, and of their features.

    rule : str
        What is to be smaller where memory does not suffice.

    growth : float
        Of the loudest release, in units of a single one for the whole target.
    """
    check_memory(
        _LIMIT_BYTES_OF_SQUARES * size**2 + _LIMIT_BYTES_OF_FREQUENCIES * size * n_features,
        rule,
        f"; got {size}",
    )
    check_noise(growth * NoiseLaw.meeting(target, size=size).level(size), size)
    refuse_rows(n_samples, MOST_ROWS, target.adjacency)


def _release_sum(
    total: tuple[Any, float],
    largest: float,
    guarantee: GaussianDP,
    noise: NoiseSource,
    purpose: str,
) -> np.ndarray:
    """Release a sum, with the bound on its error, to which a record adds ``largest`` at most."""
    error = ERROR_SHARE * largest
    return release(
        certified(total, error),
        law=NoiseLaw.of("gaussian", guarantee),
        sensitivity=guarantee.n_records_changed * largest,
        error=error,
        random_state=noise,
        purpose=purpose,
    )


def _release_eigenvectors(
    data: FeatureBlocks, guarantee: GaussianDP, noise: NoiseSource
) -> tuple[np.ndarray, np.ndarray]:
    """Eigenvalues and eigenvectors of the second moments of features, after their release."""
    # Two outer products of rows are at most sqrt(2) times the square of the norm apart.
    error = ERROR_SHARE * math.sqrt(guarantee.n_records_changed) * data.row_norm**2
    moments = certified(data.second_moments(), error)
    return eigenvectors(
        release_second_moments(
            moments, data.row_norm, guarantee=guarantee, noise=noise, error=error
        )
    )


@dataclass(frozen=True)
class FeatureStatistics:
    """Ridge regression from noisy second moments and noisy products with the targets.

    Privacy: two Gaussian releases that compose to ``budget``, for any rows and targets.
    Neither depends on the number of rows, and solving the system is post-processing. Where rows
    have owners it holds for users, as both sums are over users, of the means of their rows' terms.

    Parameters
    ----------
    guarantee : ApproxDP

    budget : GaussianDP
        What stands behind the guarantee.

    penalty : float
        Negative eigenvalues of the noisy matrix are set to zero first.

    References
    ----------
    Vu and Slavkovic, "Differential privacy for clinical trial data", ICDM workshops 2009; Wang,
    "Revisiting differentially private linear regression", UAI 2018.
    """

    guarantee: ApproxDP
    budget: GaussianDP
    penalty: float

    @classmethod
    @plain_arguments
    def plan(cls, target: ApproxDP, *, n_components: int, penalty: float | None = None) -> Self:
        """Statistics that meet a target with a positive delta, and a penalty by their noise."""
        budget = target.gaussian_target()
        guarantee = replace(
            target,
            refined=budget,
            mechanism="noisy sufficient statistics of random features",
            source="Balle and Wang, ICML 2018, theorem 8, composed by Dong, Roth and Su, "
            "JRSS-B 2022, corollary 2",
        )
        if penalty is None:  # the norm of the noise in the second moments
            penalty = spectral_noise(n_components, _half(budget))
        return cls(guarantee, budget, penalty)

    def __call__(self, data: FeatureBlocks, noise: NoiseSource) -> tuple[np.ndarray, float]:
        """Weights of the features, and 0.0: nothing is added to values."""
        guarantee = _half(self.budget)
        values, vectors = _release_eigenvectors(data, guarantee, noise)
        # A record adds its features times its target, which is at most one.
        total, error = data.capped_sum(np.zeros(data.n_features), 1.0)
        purpose = "sums of the products of features and target"
        products = _release_sum((-total, error), data.row_norm, guarantee, noise, purpose)
        weights = (vectors.T @ products) / (np.maximum(values, 0.0) + self.penalty)
        return vectors @ weights, 0.0


def _half(budget: GaussianDP) -> GaussianDP:
    """Guarantee of either of two releases that share a budget."""
    return GaussianDP(budget.mu / math.sqrt(2.0), adjacency=budget.adjacency)


def release_target_scale(
    data: FeatureBlocks, plan: FeaturePlan, noise: NoiseSource
) -> tuple[float, float]:
    """Offset and variance of the targets, from one release of the sums of them and their squares.

    Parameters
    ----------
    data : FeatureBlocks

    plan : FeaturePlan

    noise : NoiseSource

    Returns
    -------
    offset, variance : float
    """
    # A target y in [-1, 1] adds (y, k y^2). Two are apart by |t| sqrt(1 + k^2 s^2) with t = y - z,
    # s = y + z and |s| <= 2 - |t|. The square, at most t^2 + k^2 t^2 (2 - t)^2, has the derivative
    # 2 t (1 + 2 k^2 (2 - t) (1 - t)) for t in [0, 2]; the product is -1/4 at least, so that it
    # is not negative up to k^2 = 2. Hence t = 2 is the worst, where s = 0: the distance is 2, and
    # y = 1, z = -1 attain it. One record alone is sqrt(1 + k^2) at most.
    if plan.target_guarantee.adjacency == "replace-one":
        weight, sensitivity = math.sqrt(2.0), 2.0
    else:
        weight, sensitivity = 1.0, math.sqrt(2.0)
    error = ERROR_SHARE * sensitivity
    law = NoiseLaw.of("gaussian", plan.target_guarantee)
    sums = certified(data.target_moments(), error / math.sqrt(1.0 + weight**2))
    first, second = release(
        sums * [1.0, weight],
        law=law,
        sensitivity=sensitivity,
        error=error,
        random_state=noise,
        purpose="mean and mean square of the target",
    )
    n_samples, deviation = plan.n_samples, law.scale * sensitivity / plan.n_samples
    means = float(first) / n_samples, float(second) / weight / n_samples
    return plan.target_scale(*means, deviations=(deviation, deviation / weight))


@dataclass(frozen=True)
class FeatureDescent:
    """Full-batch descent along noisy sums of whitened gradients with capped residuals.

    Privacy: satisfies ``guarantee`` for any rows and targets. The data are used in at most
    ``n_steps + 4`` Gaussian releases: the number of rows where it is private, mean and mean square
    of the targets, the second moments of the features, one sum of gradients a step, each at a
    released point, and the mean of the predictions with the released weights. They compose to
    ``budget`` by the root of summed squares. Everything else is a function of public and of
    released numbers. Where rows have owners it holds for users: each sum is over users, of the
    means of their rows' terms, and their number takes the place of that of rows.

    Parameters
    ----------
    guarantee : ApproxDP

    budget : GaussianDP
        What stands behind the guarantee.

    clip_norm : float or None
        Typical limit of a residual. None follows from the released variance of the targets.

    penalty : float
        Strength of ``penalty/2 ||w||^2``, public.

    References
    ----------
    Bassily, Smith and Thakurta, "Private empirical risk minimization", FOCS 2014; Dong, Roth
    and Su, "Gaussian differential privacy", JRSS-B 2022, corollary 2.
    """

    guarantee: ApproxDP
    budget: GaussianDP
    clip_norm: float | None = None
    penalty: float = 0.0

    @classmethod
    @plain_arguments
    def plan(
        cls, target: ApproxDP, *, clip_norm: float | None = None, penalty: float = 0.0
    ) -> Self:
        """Descent that meets a target with a positive delta."""
        budget = target.gaussian_target()
        guarantee = replace(
            target,
            refined=budget,
            mechanism="noisy gradient descent on random features",
            source="Bassily, Smith and Thakurta, FOCS 2014, composed by Dong, Roth and Su, "
            "JRSS-B 2022, corollary 2",
        )
        return cls(guarantee, budget, clip_norm, penalty)

    def __call__(self, data: FeatureBlocks, noise: NoiseSource) -> tuple[np.ndarray, float]:
        """Weights of the features, the mean of the last iterates, and what is added to values."""
        n_samples, descent = counted(data, self.budget, noise)
        plan = plan_features(n_samples=n_samples, n_components=data.n_features, guarantee=descent)
        offset, variance = release_target_scale(data, plan, noise)
        cap = plan.residual_cap(variance) if self.clip_norm is None else self.clip_norm
        moments, vectors = _release_eigenvectors(data, plan.gram_guarantee, noise)
        schedule = plan.schedule(moments / n_samples, variance=variance, cap=cap)
        weights = self._descend(data.centred(offset), plan, schedule, vectors, noise)
        purpose = "mean of the predictions with released weights"
        limit = plan.prediction_cap(variance)  # where they are cut
        total = data.score_sum(weights, limit)
        level = _release_sum(total, limit, plan.level_guarantee, noise, purpose)
        offset -= plan.level_trust(variance) * (float(level) / n_samples)
        return weights, min(max(offset, -1.0), 1.0)

    def _descend(
        self,
        data: FeatureBlocks,
        plan: FeaturePlan,
        schedule: Schedule,
        vectors: np.ndarray,
        noise: NoiseSource,
    ) -> np.ndarray:
        ridge = self.penalty / plan.n_samples
        whitening = Whitening.of(schedule.divisors + ridge, vectors, schedule.floor + ridge)
        # A record's gradient is its whitened features times its residual, which is limited such
        # that the norm is this at most, in floating point. Replacing it moves the sum by twice
        # as much.
        largest = schedule.clip_norm
        limits = data.residual_limits(whitening, largest)
        guarantees = plan.step_guarantees(schedule.shares)
        purpose = "sum of clipped gradients, one step of gradient descent"
        weights = np.zeros(data.n_features)
        velocity, mean = np.zeros((2, data.n_features))
        for step in with_progress(range(N_STEPS), "noisy gradient steps", N_STEPS):
            ahead = weights + schedule.momentum * velocity
            total = data.whitened_sum(ahead, whitening, limits)
            released = _release_sum(total, largest, guarantees[step], noise, purpose)
            mean_gradient = released / plan.n_samples + ridge * whitening.apply(ahead)
            velocity = schedule.momentum * velocity - whitening.apply(mean_gradient)
            weights = weights + velocity
            if 2 * step >= N_STEPS:
                mean += weights / (N_STEPS // 2)
        return mean
