"""Objective perturbation: the minimiser of an objective with a random linear term.

To check it: `calibrate` says how much noise the linear term needs, and why;
`ObjectivePerturbation` releases; ``learner/_losses.py`` has the bounds of the loss, and
``learner/_newton.py`` the certificate of the minimiser.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from scipy.optimize import brentq

from skdp._random._source import NoiseSource
from skdp._recording import Perturbed, note, recorded
from skdp._validation import one_of, plain_arguments, positive, short_repr
from skdp.learner._losses import LogisticLoss, Loss, check_loss
from skdp.learner._newton import minimise
from skdp.learner._sequence import CoefficientNoise, Run, even_noise
from skdp.mechanisms import NoiseLaw, release
from skdp.mechanisms import _additive as additive
from skdp.privacy import ApproxDP, Guarantee, JointLogisticDP, ShiftedGaussianDP, compose
from skdp.rows import _sums as sums
from skdp.rows._blocks import RowBlocks

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
    loss: Loss,
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
    loss : Loss

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


def _refuse(loss: Loss, guarantee: ApproxDP, calibration: str, pair_norm: float | None) -> None:
    """Refuse what no rule is proved for."""
    gaussian = guarantee.delta > 0.0
    if gaussian and loss.gradient_corners() is None:
        raise ValueError(
            f"delta must be 0 for {type(loss).__name__}; got {short_repr(guarantee.delta)}."
        )
    if calibration != "tight":
        if loss.n_outputs > 1:
            raise ValueError(
                "calibration must be 'tight' with more than two classes: the published one is "
                f"proved for binary losses; got {short_repr(calibration)}."
            )
        if gaussian:
            raise ValueError(
                f"calibration={calibration!r} needs delta=0; got "
                f"delta={short_repr(guarantee.delta)}."
            )
    if pair_norm is not None:
        positive(pair_norm=pair_norm)
        if gaussian or loss.n_outputs > 1 or calibration != "tight":
            raise ValueError(
                "pair_norm must be None but for one score, delta=0 and calibration='tight'; "
                f"got {short_repr(pair_norm)}."
            )


def _affordable(loss: Loss, x_norm: float, penalty: float, epsilon: float) -> float:
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
    loss: Loss,
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
    loss: Loss, *, x_norm: float, penalty: float, scale: float, adjacency: str
) -> ShiftedGaussianDP | JointLogisticDP:
    """Privacy of objective perturbation with Gaussian noise of a given scale.

    Parameters
    ----------
    loss : Loss

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


def _tight_gaussian(loss: Loss, x_norm: float, penalty: float, guarantee: ApproxDP) -> Rule:
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


def _jmlr2011(loss: Loss, x_norm: float, penalty: float, guarantee: ApproxDP) -> Rule:
    """Algorithm 2 of the paper: its Delta becomes part of the penalty."""
    share = guarantee.epsilon - 2.0 * math.log1p(loss.curvature * x_norm**2 / penalty)
    if share <= 0.0:
        share = guarantee.epsilon / 2.0
        penalty = loss.curvature * x_norm**2 / math.expm1(guarantee.epsilon / 4.0)
    return penalty, guarantee.n_records_changed * loss.lipschitz * x_norm / share, None


# Share of epsilon for masking the solver's error. At the solver's tolerance the noise it
# buys is lost beside that of the objective.
_SOLVER_SHARE = 0.002


@dataclass(frozen=True)
class ObjectivePerturbation:
    """Minimise the penalised losses with a random linear term, and mask the solver's error.

    Privacy: the exact minimiser of ``sum_i loss(W x_i, y_i) + penalty/2 ||W - C||^2 + <B, W>``
    satisfies ``law.guarantee`` for any centre C of public and of released numbers: it adds
    ``-penalty C``, which is the same whatever the rows, to the linear term that a minimiser maps
    back to. What the solver returns differs from it by at most its certified
    error, a further query of that sensitivity, released under ``masking``. The two compose.

    The noise of the linear term is not added to a value that could be asked for. Who records
    releases hears of it before the minimisation, with the rows and all else that the density of
    the exact minimiser follows from, and then of the masking, whose sensitivity is that given the
    exact minimiser.

    Parameters
    ----------
    loss : Loss
        The last without a delta only.

    n_features : int
        Constant feature included.

    row_norm : float
        Bound on the norm of a row.

    law : ObjectiveNoise
        Of the linear term, with the penalty that goes with it.

    masking : NoiseLaw
        Of the noise over the solver's error, for a sensitivity of 1.

    guarantee : ApproxDP
        Of both.

    centre_norm : float, default=0.0
        Norm that the centre is within.

    pair_norm : float, default=None
        Bound on the norm of each pair of a row, for K-norm noise of pairs.

    References
    ----------
    Chaudhuri, Monteleoni and Sarwate, JMLR 2011, algorithm 2; Iyengar, Near, Song, Thakkar,
    Thakurta and Wang, "Towards practical differentially private convex optimization", IEEE
    S&P 2019, algorithm 1, whose output noise is 2 tolerance / penalty as two points of a ball
    are a diameter apart.
    """

    loss: Loss
    n_features: int
    row_norm: float
    law: ObjectiveNoise
    masking: NoiseLaw
    guarantee: ApproxDP
    centre_norm: float = 0.0
    pair_norm: float | None = None

    def __post_init__(self) -> None:
        if self.law.pairs != (self.pair_norm is not None):
            raise ValueError(
                "pair_norm must be that of the law, and None for noise that is not for pairs; "
                f"got {short_repr(self.pair_norm)}."
            )
        if self.law.pairs and self.n_features % 2:
            raise ValueError(
                f"n_features must be even for noise for pairs; got {short_repr(self.n_features)}."
            )

    @property
    def penalty(self) -> float:
        """Strength of the penalty: at least what was asked for."""
        return self.law.penalty

    def check_n_rows(self, n_samples: int) -> None:
        """Refuse more rows than can be certified whatever they are, before a ledger is charged."""
        sums.check_n_rows(
            self.loss,
            n_samples=n_samples,
            adjacency=self.guarantee.adjacency,
            n_features=self.n_features,
            row_norm=self.row_norm,
            tolerance=sums.solver_tolerance(self.loss, self.row_norm),
            penalty=self.penalty,
            noise_norm=self._linear_norm(),
        )

    def _linear_norm(self) -> float:
        """Norm that the linear term exceeds with a chance below 1e-20, with that of the centre."""
        size = self.loss.n_outputs * self.n_features
        return self.law.norm_bound(size) + self.penalty * self.centre_norm

    @classmethod
    @plain_arguments
    def plan(
        cls,
        target: ApproxDP,
        *,
        loss: Loss,
        n_features: int,
        row_norm: float,
        penalty: float,
        calibration: str = "tight",
        centre_norm: float = 0.0,
        pair_norm: float | None = None,
    ) -> Self:
        """Release that meets ``target``, from public numbers; arguments as for `calibrate`."""
        check_loss(loss, is_minimised=True)
        size = loss.n_outputs * n_features
        solver = replace(target, epsilon=_SOLVER_SHARE * target.epsilon, delta=0.0)
        masking = NoiseLaw.meeting(solver, size=size)
        additive.check_span(masking, size, target)
        # A minimiser maps back to the linear term that leads to it. A record moves that term by
        # its gradient, `residual x^T`, and the determinant of the map by a factor. The noise of
        # the term covers the losses of both, which are those of one point: `_objective_noise` has
        # the norms, the bounds and the proofs.
        law = calibrate(
            loss,
            x_norm=row_norm,
            penalty=penalty,
            guarantee=replace(target, epsilon=target.epsilon - solver.epsilon),
            calibration=calibration,
            pair_norm=pair_norm,
        )
        # Beyond, adding the linear term rounds a gradient by too much to certify any solution.
        longest = law.norm_bound(size) + law.penalty * centre_norm
        n_steps = longest / sums.solver_tolerance(loss, row_norm) * 2.0**4
        additive.refuse_span(n_steps, size, target)
        refined = None if target.delta == 0.0 else compose([law.guarantee, solver])
        guarantee = replace(law.guarantee, epsilon=target.epsilon, refined=refined)
        return cls(loss, n_features, row_norm, law, masking, guarantee, centre_norm, pair_norm)

    def __call__(
        self, data: RowBlocks, noise: NoiseSource, centre: np.ndarray | None = None
    ) -> np.ndarray:
        """Release the minimiser of the noisy objective.

        Parameters
        ----------
        data : RowBlocks
            Clipped to ``row_norm``.

        noise : NoiseSource

        centre : ndarray of shape (n_outputs, n_features), default=None
            Weights around which the penalty is, from public and from released numbers: within
            ``centre_norm``. None is zero.

        Returns
        -------
        ndarray of shape (n_outputs, n_features)
        """
        data.check_norm(self.row_norm)
        if self.pair_norm is not None:
            data.check_pairs(self.pair_norm)
        law, shape = self.law, (self.loss.n_outputs, self.n_features)
        centre = np.zeros(shape) if centre is None else centre
        if not np.linalg.norm(centre) <= self.centre_norm * (1 + 1e-9):
            raise ValueError(
                f"centre must be within centre_norm={self.centre_norm:g}; "
                f"got a norm of {np.linalg.norm(centre):g}."
            )
        size = shape[0] * shape[1]
        tolerance = sums.solver_tolerance(self.loss, self.row_norm)
        # The linear term is rounded to a lattice. The exact one is within `rounding`, which the
        # optimality condition cannot tell from an error of the solver.
        step = sums.linear_step(self.loss, self.row_norm, size, self._linear_norm())
        rounding = step / 2 * math.sqrt(size)
        # On the same lattice, so that their sum is exact.
        pull = -step * np.rint(law.penalty * centre / step)
        purpose = "random linear term of the objective, whose minimiser is released"
        kind = "k_norm_rows" if law.kind == "k_norm" and shape[0] > 1 else law.kind
        note(purpose, kind, size, law, scale=law.scale)
        linear = step * law.draw(noise, shape, step)
        linear = recorded(
            Perturbed,
            linear,
            linear=linear,
            loss=self.loss,
            data=data,
            penalty=law.penalty,
            law=law,
            step=step,
            tolerance=tolerance,
            pull=pull,
        )
        linear = linear + pull
        weights = minimise(
            self.loss, data, penalty=law.penalty, tolerance=tolerance, linear=linear
        )
        # Whatever the rows, this is within (tolerance + rounding) / penalty of the exact
        # minimiser, which `law` makes private. Two points of such a ball are a diameter apart.
        return release(
            weights,
            law=self.masking,
            sensitivity=2 * (tolerance + rounding) / law.penalty,
            error=0.0,  # it is what the noise is for
            random_state=noise,
            purpose="solver error, masked by noise",
        )

    def learn(self, run: Run, noise: NoiseSource) -> None:
        """Release the minimiser, as a stage of a sequence."""
        run.weights = self(run.data, noise, run.centre)
        run.spread = self.coefficient_noise()

    def coefficient_noise(self) -> CoefficientNoise:
        """Bound on the noise in the minimiser, by public numbers.

        A linear term moves the minimiser by the inverse of the Hessian, of which no more is known
        than that no curvature is below the penalty. The noise over the solver's error is as good
        as none beside it.
        """
        level = self.law.level(self.n_features)
        return even_noise("bound", level / self.law.penalty, self.n_features)
