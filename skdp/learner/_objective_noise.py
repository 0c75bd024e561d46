"""How much noise objective perturbation needs: a published calibration and a tight one.

Minimise ``sum_i loss_i(w) + penalty/2 ||w||^2 + <b, w>`` for a random ``b``. The minimiser is
private because it maps back to the ``b`` that produced it: the privacy loss at ``w`` is the
loss of ``b`` moving by a record's gradient, plus the log ratio of two Hessian determinants.

Notation: R bounds the norm of a row, L the slope of the loss, c its curvature,
``q = R^2 / penalty``.

The tight calibration rests on three observations. With ``B`` the Hessian of the other records,
``B >= penalty I``, so that replacing or adding a record changes the determinant by at most
``1 + h'' x^T B^-1 x <= 1 + c q``, not its square. Gradient and curvature are those of the same
point. And under Gaussian noise the loss of the gradient part is a convex function of the
record's residual, so that it is largest at one of finitely many corners. All of it holds of
losses with weights of classes, of at most 1: see `skdp.learner._losses._weights`.

K-norm noise of several scores has a density that falls with the sum over scores of l2 norms: the
row of the linear term for each score is K-norm noise, and rows are independent. The gradient of a
record, ``residual x^T``, has the norm ``||residual||_1 ||x||`` in that sense, at most 2 R where a
residual is the difference of two probability vectors. With the l2 norm of all entries it would be
sqrt(2) R, and the noise of each entry sqrt(n_scores / 2) times as large.

Where rows are pairs of equal norm, as cosines and sines are, its density falls with the largest
norm of a pair. The gradient of a record has ``residual * S`` in that sense, with S the norm of a
pair, ``R / sqrt(d / 2)`` for d numbers. Noise is uniform in discs, of ``(d + 2) / (2 d)`` of the
mean square that it has in a ball: a row is never long in one pair and short in the others.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import brentq

from skdp._random._source import NoiseSource
from skdp._validation import one_of, plain_arguments, positive, shown
from skdp.learner._losses._margin import LogisticLoss
from skdp.learner._losses._residual import HuberLoss
from skdp.learner._protocol import LinearLoss, PerturbedLoss
from skdp.privacy import ApproxDP, Guarantee, JointLogisticDP, ShiftedGaussianDP

__all__ = ["CALIBRATIONS", "ObjectiveNoise", "calibrate", "gaussian_profile"]

# Penalty, scale of the noise, and what is proven beyond the target.
Rule = tuple[float, float, Guarantee | None]

CALIBRATIONS = ("tight", "jmlr2011")

# Above this ratio the joint bound is evaluated too coarsely to be worth its time.
_JOINT_RATIO = 4.0

_SOURCES = {
    "tight": "same-point determinant and corner bounds, after Chaudhuri et al., JMLR 2011, and "
    "Redberg et al., NeurIPS 2023",
    "jmlr2011": "Chaudhuri, Monteleoni and Sarwate, JMLR 2011, theorem 9",
}


@dataclass(frozen=True)
class ObjectiveNoise:
    """Law of the random linear term and the penalty that goes with it.

    Parameters
    ----------
    penalty : float
        At least the penalty asked for.

    scale : float
        Standard deviation (Gaussian) of the linear term, or scale of the norm of its row for each
        score, or of the longest pair (K-norm).

    gaussian : bool
        Whether the noise is Gaussian.

    guarantee : ApproxDP
        What the exact minimiser satisfies.

    pairs : bool, default=False
        Whether K-norm noise is for the largest norm of a pair, one of each half of the numbers.
    """

    penalty: float
    scale: float
    gaussian: bool
    guarantee: ApproxDP
    pairs: bool = False

    @property
    def kind(self) -> str:
        """Of the noise of the row for each score."""
        if self.gaussian:
            return "gaussian"
        return "k_norm_pairs" if self.pairs else "k_norm"

    def draw(self, noise: NoiseSource, shape: tuple[int, int], step: float) -> np.ndarray:
        """Draw a linear term of a shape, in steps.

        Parameters
        ----------
        noise : NoiseSource

        shape : (int, int)
            Scores and features.

        step : float

        Returns
        -------
        ndarray of that shape, dtype int64
        """
        scale = self.scale / step
        if self.gaussian:
            return noise.normal(shape[0] * shape[1], scale).reshape(shape)
        if self.pairs:
            return noise.k_norm_pairs(shape[1] // 2, scale).reshape(shape)
        return noise.k_norms(*shape, scale).reshape(shape)

    def level(self, n_features: int) -> float:
        """Root mean square of a number of the linear term."""
        if self.gaussian:
            return self.scale
        # A number of a unit disc has a mean square of 1/4.
        inner = (n_features + 2.0) / 4.0 if self.pairs else 1.0
        return self.scale * math.sqrt((n_features + 1.0) * inner)

    def norm_bound(self, size: int) -> float:
        """Norm that a linear term of ``size`` numbers exceeds with a chance below 1e-20."""
        # Tails of the chi and of the Gamma distribution (Laurent and Massart, 2000, lemma 1). Sums
        # of norms of rows have that of one row that is as long.
        if self.gaussian:
            return self.scale * (math.sqrt(size) + 10.0)
        longest = self.scale * (size + 10.0 * math.sqrt(size) + 50.0)
        return longest * math.sqrt(size / 2.0) if self.pairs else longest


@plain_arguments
def calibrate(
    loss: PerturbedLoss,
    *,
    x_norm: float,
    penalty: float,
    guarantee: ApproxDP,
    calibration: str = "tight",
    pair_norm: float | None = None,
) -> ObjectiveNoise:
    """Choose the noise of objective perturbation for ``guarantee``.

    Parameters
    ----------
    loss : LogisticLoss, HuberHingeLoss or SoftmaxLoss

    x_norm : float
        Bound on the norm of a row, constant feature included.

    penalty : float
        Wanted strength of ``penalty/2 ||w||^2``. Raised where the budget could not pay for
        the curvature; that depends on public numbers only.

    guarantee : ApproxDP
        Target. ``delta == 0`` gives K-norm noise, of each score for itself, and ``delta > 0``
        Gaussian noise.

    calibration : {"tight", "jmlr2011"}, default="tight"
        "jmlr2011" is the published one, for ``delta == 0``, binary losses and replace-one. For
        add-remove the same proof is carried through with one changed record.

    pair_norm : float, default=None
        Bound on the norm of each pair of a row, one number of either half of it. K-norm noise is
        then for the largest norm of a pair. For one score, ``delta == 0`` and "tight".

    Returns
    -------
    ObjectiveNoise

    References
    ----------
    Chaudhuri, Monteleoni and Sarwate, "Differentially private empirical risk
    minimization", JMLR 2011, algorithm 2; Awan and Slavkovic, "Structure and sensitivity in
    differential privacy: comparing K-norm mechanisms", JASA 116, 2021, for norms that fit the
    gradients; Redberg, Koskela and Wang, "Improving the privacy and practicality of objective
    perturbation for differentially private linear learners", NeurIPS 2023.

    Examples
    --------
    >>> from skdp.learner import LogisticLoss
    >>> from skdp.privacy import ApproxDP
    >>> from skdp.learner import calibrate
    >>> noise = calibrate(
    ...     LogisticLoss(), x_norm=1.0, penalty=2.0, guarantee=ApproxDP(1.0)
    ... )
    >>> round(noise.scale, 3)  # 2 R / epsilon: the determinant is free
    2.0
    """
    positive(x_norm=x_norm, penalty=penalty, epsilon=guarantee.epsilon)
    one_of(CALIBRATIONS, calibration=calibration)
    _refuse(loss, guarantee, calibration, pair_norm)
    # Bisections end where floats of double precision do.
    x_norm, penalty = float(x_norm), float(penalty)
    guarantee = replace(guarantee, epsilon=float(guarantee.epsilon), delta=float(guarantee.delta))
    gaussian = guarantee.delta > 0.0
    rules: dict[str, Callable[..., Rule]] = {
        "tight": _tight_gaussian if gaussian else _tight_pure,
        "jmlr2011": _jmlr2011,
    }
    public = dict(loss=loss, x_norm=x_norm, penalty=penalty, guarantee=guarantee)
    if pair_norm is not None:
        public["pair_norm"] = float(pair_norm)
    penalty, scale, refined = rules[calibration](**public)
    law = "Gaussian" if gaussian else "K-norm"
    met = replace(
        guarantee,
        refined=refined,
        mechanism=f"objective perturbation with {law} noise",
        source=_SOURCES[calibration],
    )
    return ObjectiveNoise(penalty, scale * (1 + 1e-9), gaussian, met, pair_norm is not None)


def _refuse(
    loss: PerturbedLoss, guarantee: ApproxDP, calibration: str, pair_norm: float | None
) -> None:
    """Refuse what no rule is proved for."""
    if isinstance(loss, HuberLoss) and guarantee.delta > 0.0:
        raise ValueError(f"delta must be 0 for HuberLoss; got {shown(guarantee.delta)}.")
    gaussian = guarantee.delta > 0.0
    if calibration != "tight":
        if loss.n_outputs > 1:
            raise ValueError(
                "calibration must be 'tight' with more than two classes: the published one is "
                f"proved for binary losses; got {shown(calibration)}."
            )
        if gaussian:
            raise ValueError(
                f"calibration={calibration!r} needs delta=0; got delta={shown(guarantee.delta)}."
            )
    if pair_norm is not None:
        positive(pair_norm=pair_norm)
        if gaussian or loss.n_outputs > 1 or calibration != "tight":
            raise ValueError(
                "pair_norm must be None but for one score, delta=0 and calibration='tight'; "
                f"got {shown(pair_norm)}."
            )


def _affordable(loss: PerturbedLoss, x_norm: float, penalty: float, epsilon: float) -> float:
    """Raise the penalty to spend a quarter of epsilon on curvature where it would take most."""
    if loss.log_determinant(x_norm**2 / penalty) <= 0.75 * epsilon:
        return penalty
    # log_determinant is rank * log1p(factor * ratio); the factor shows at a small ratio.
    return _solve(
        lambda p: loss.log_determinant(x_norm**2 / p) - epsilon / 4.0, penalty, penalty * 2.0
    )


def _solve(excess: Callable[[float], float], low: float, high: float) -> float:
    """Root of a decreasing function, on the side where it is not positive."""
    bracketed = False
    while excess(high) > 0.0:
        low, high, bracketed = high, high * 2.0, True
        if math.isinf(high):
            raise ValueError("No finite noise meets the guarantee; ask for less privacy.")
    if bracketed:
        # A guess, which may err to either side: what counts is the sign at the ends.
        root = brentq(excess, low, high, xtol=1e-300, rtol=1e-14, disp=False)
        for end in (root * (1.0 - 4e-14), root * (1.0 + 4e-14)):
            if low < end < high:
                low, high = (end, high) if excess(end) > 0.0 else (low, end)
    while high - low > 1e-13 * high:
        middle = (low + high) / 2.0
        if not low < middle < high:
            break
        low, high = (middle, high) if excess(middle) > 0.0 else (low, middle)
    return high


def _tight_pure(
    loss: PerturbedLoss,
    x_norm: float,
    penalty: float,
    guarantee: ApproxDP,
    pair_norm: float | None = None,
) -> Rule:
    """Loss at one point: log(1 + h'' q) + |h'| R / scale, plus L R / scale for the other record.

    Replacing a record compares its curvature and slope, and the slope of its substitute. Slopes
    are l1 norms of residuals. In the norm of pairs, that of a pair is R where slopes are.
    """
    penalty = _affordable(loss, x_norm, penalty, guarantee.epsilon)
    ratio = x_norm**2 / penalty
    others = guarantee.n_records_changed - 1.0
    longest = x_norm if pair_norm is None else pair_norm

    def excess(scale: float) -> float:
        weight = longest / scale
        worst = loss.worst_trade(ratio, weight) + others * weight * loss.lipschitz_l1
        return worst - guarantee.epsilon

    return penalty, _solve(excess, 0.0, longest / guarantee.epsilon), None


@plain_arguments
def gaussian_profile(
    loss: LinearLoss, *, x_norm: float, penalty: float, scale: float, adjacency: str
) -> ShiftedGaussianDP | JointLogisticDP:
    """Privacy of objective perturbation with Gaussian noise of a given scale.

    Parameters
    ----------
    loss : LogisticLoss, HuberHingeLoss or SoftmaxLoss

    x_norm, penalty : float
        As for `calibrate`.

    scale : float
        Standard deviation of the linear term.

    adjacency : {"replace-one", "add-remove"}

    Returns
    -------
    Guarantee
        With the profile that follows from the tight bounds.
    """
    positive(x_norm=x_norm, penalty=penalty, scale=scale)
    x_norm, penalty, scale = float(x_norm), float(penalty), float(scale)
    ratio = x_norm**2 / penalty
    corners = [(norm * x_norm / scale, count) for norm, count in loss.gradient_corners()]
    if adjacency == "replace-one":
        # Two records, each at one of its corners or at zero: both, or either.
        both = [(mu + nu, k * m) for mu, k in corners for nu, m in corners]
        corners = both + [(mu, 2.0 * k) for mu, k in corners]
    elif isinstance(loss, LogisticLoss) and loss.slope_cap > 0.5 and ratio <= _JOINT_RATIO:
        return JointLogisticDP(ratio, x_norm / scale, loss.slope_cap, adjacency=adjacency)
    return ShiftedGaussianDP(loss.log_determinant(ratio), tuple(corners), adjacency=adjacency)


def _tight_gaussian(loss: LinearLoss, x_norm: float, penalty: float, guarantee: ApproxDP) -> Rule:
    penalty = _affordable(loss, x_norm, penalty, guarantee.epsilon)

    def profile(scale: float) -> Guarantee:
        return gaussian_profile(
            loss, x_norm=x_norm, penalty=penalty, scale=scale, adjacency=guarantee.adjacency
        )

    scale = _solve(
        lambda scale: profile(scale).delta_at(guarantee.epsilon) - guarantee.delta,
        0.0,
        x_norm / guarantee.epsilon,
    )
    return penalty, scale, profile(scale)


def _jmlr2011(loss: PerturbedLoss, x_norm: float, penalty: float, guarantee: ApproxDP) -> Rule:
    """Algorithm 2 of the paper: its Delta becomes part of the penalty."""
    share = guarantee.epsilon - 2.0 * math.log1p(loss.curvature * x_norm**2 / penalty)
    if share <= 0.0:
        share = guarantee.epsilon / 2.0
        penalty = loss.curvature * x_norm**2 / math.expm1(guarantee.epsilon / 4.0)
    return penalty, guarantee.n_records_changed * loss.lipschitz * x_norm / share, None
