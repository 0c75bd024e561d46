"""Objective perturbation: the minimiser of an objective with a random linear term.

To check it: `calibrate` derives the noise of the linear term, `ObjectivePerturbation` releases,
``learner/_losses.py`` has the bounds of the loss, and ``learner/_newton.py`` the certificate of
the minimiser.
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
    """Law of the random linear term, with its penalty.

    Parameters
    ----------
    penalty : float
        Penalty, at least the requested one.

    scale : float
        Gaussian noise: standard deviation of the linear term. K-norm noise: scale of the norm of
        its row for each score, or of the largest norm of a pair.

    gaussian : bool
        Whether the noise is Gaussian.

    guarantee : ApproxDP
        Guarantee of the exact minimiser.

    pairs : bool, default=False
        Whether the K-norm is the largest norm of a pair of numbers, one from each half.
    """

    penalty: float
    scale: float
    gaussian: bool
    guarantee: ApproxDP
    pairs: bool = False

    @property
    def kind(self) -> str:
        """Kind of the noise in the row for each score."""
        if self.gaussian:
            return "gaussian"
        return "k_norm_pairs" if self.pairs else "k_norm"

    def draw(self, noise: NoiseSource, shape: tuple[int, int], step: float) -> np.ndarray:
        """Draw a linear term in multiples of ``step``.

        Parameters
        ----------
        noise : NoiseSource

        shape : (int, int)
            Numbers of scores and features.

        step : float

        Returns
        -------
        ndarray of this shape, dtype int64
        """
        scale = self.scale / step
        if self.gaussian:
            return noise.normal(shape[0] * shape[1], scale).reshape(shape)
        if self.pairs:
            return noise.k_norm_pairs(shape[1] // 2, scale).reshape(shape)
        return noise.k_norms(*shape, scale).reshape(shape)

    def level(self, n_features: int) -> float:
        """Return the root mean square of an entry of the linear term."""
        if self.gaussian:
            return self.scale
        # A number of a unit disc has a mean square of 1/4.
        inner = (n_features + 2.0) / 4.0 if self.pairs else 1.0
        return self.scale * math.sqrt((n_features + 1.0) * inner)

    def norm_bound(self, size: int) -> float:
        """Return a norm that a term of ``size`` entries exceeds with probability below 1e-20."""
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
    """Calibrate the noise of objective perturbation to ``guarantee``.

    Parameters
    ----------
    loss : Loss

    x_norm : float
        Bound on the norm of a row, including the constant feature.

    penalty : float
        Requested strength of ``penalty/2 ||w||^2``. It is increased if the budget cannot cover
        the curvature, which depends on public numbers only.

    guarantee : ApproxDP
        Target guarantee. ``delta == 0`` gives separate K-norm noise for each score, and
        ``delta > 0`` gives Gaussian noise.

    calibration : {"tight", "jmlr2011"}, default="tight"
        "jmlr2011" is the published calibration for ``delta == 0``, binary losses and replace-one.
        For add-remove it uses the same proof with one changed record.

    pair_norm : float, default=None
        Bound on the norm of each pair of entries of a row, one from each half. The K-norm is then
        the largest norm of a pair. Requires one score, ``delta == 0`` and "tight".

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
    """Refuse combinations without a proof."""
    gaussian = guarantee.delta > 0.0
    if gaussian and loss.gradient_corners() is None:
        raise ValueError(
            f"delta must be 0 for {type(loss).__name__}; got {short_repr(guarantee.delta)}."
        )
    if calibration != "tight":
        if loss.n_outputs > 1:
            raise ValueError(
                "calibration must be 'tight' for more than two classes: the published one is "
                f"proved for binary losses; got {short_repr(calibration)}."
            )
        if gaussian:
            raise ValueError(
                f"delta must be 0 for calibration={calibration!r}; got "
                f"{short_repr(guarantee.delta)}."
            )
    if pair_norm is not None:
        positive(pair_norm=pair_norm)
        if gaussian or loss.n_outputs > 1 or calibration != "tight":
            raise ValueError(
                "pair_norm must be None unless there is one score, delta=0 and "
                "calibration='tight'; "
                f"got {short_repr(pair_norm)}."
            )


def _affordable(loss: Loss, x_norm: float, penalty: float, epsilon: float) -> float:
    """Raise the penalty so that curvature takes a quarter of epsilon, if it would take most."""
    if loss.log_determinant(x_norm**2 / penalty) <= 0.75 * epsilon:
        return penalty
    # log_determinant is rank * log1p(factor * ratio); the factor shows at a small ratio.
    return _solve(
        lambda p: loss.log_determinant(x_norm**2 / p) - epsilon / 4.0, penalty, penalty * 2.0
    )


def _solve(excess: Callable[[float], float], low: float, high: float) -> float:
    """Return the root of a decreasing function, rounded to the side where it is <= 0."""
    bracketed = False
    while excess(high) > 0.0:
        low, high, bracketed = high, high * 2.0, True
        if math.isinf(high):
            raise ValueError("No finite noise meets the guarantee; use a larger epsilon or delta.")
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
    """Privacy loss at one point: log(1 + h'' q) + |h'| R / scale + L R / scale.

    The last term is for the other record under replace-one. Slopes are l1 norms of residuals. For
    noise of pairs, R in the slope terms is the norm bound of a pair.
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
    """Return the guarantee of objective perturbation with Gaussian noise of a given scale.

    Parameters
    ----------
    loss : Loss

    x_norm, penalty : float
        See `calibrate`.

    scale : float
        Standard deviation of the linear term.

    adjacency : {"replace-one", "add-remove"}

    Returns
    -------
    Guarantee
        Guarantee with the profile that follows from the tight bounds.
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
    """Calibrate by algorithm 2 of the paper, whose Delta becomes part of the penalty."""
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
    """Objective perturbation: minimise penalised losses with a random linear term.

    Privacy: the exact minimiser of ``sum_i loss(W x_i, y_i) + penalty/2 ||W - C||^2 + <B, W>``
    satisfies ``law.guarantee`` for any centre C made of public and released numbers: C adds
    ``-penalty C``, which does not depend on the rows, to the linear term to which a minimiser maps
    back. The solver's result differs from the exact minimiser by at most its certified error. This
    error is a further query of that sensitivity, released under ``masking``. The two compose.

    The noise of the linear term is not added to a value that could be recorded. A recorder of
    releases therefore receives the term before the minimisation, with the rows and everything else
    that determines the density of the exact minimiser. It then receives the masking, whose
    sensitivity is conditional on the exact minimiser.

    Parameters
    ----------
    loss : Loss
        Loss. With a delta, its `~Loss.gradient_corners` must not be None.

    n_features : int
        Number of features, including the constant.

    row_norm : float
        Bound on the norm of a row.

    law : ObjectiveNoise
        Law of the linear term, with its penalty.

    masking : NoiseLaw
        Law of the noise that masks the solver's error, for a sensitivity of 1.

    guarantee : ApproxDP
        Guarantee of both releases together.

    centre_norm : float, default=0.0
        Bound on the norm of the centre.

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
                "pair_norm must be a number if law.pairs is True and None otherwise; "
                f"got {short_repr(self.pair_norm)}."
            )
        if self.law.pairs and self.n_features % 2:
            raise ValueError(
                f"n_features must be even for noise of pairs; got {short_repr(self.n_features)}."
            )

    @property
    def penalty(self) -> float:
        """Strength of the penalty, at least the requested one."""
        return self.law.penalty

    def check_n_rows(self, n_samples: int) -> None:
        """Refuse more rows than can be certified for any data, before a ledger is charged."""
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
        """Return a bound on the linear term and centre that fails with probability below 1e-20."""
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
        """Plan a release that meets ``target``, from public numbers; see `calibrate`."""
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
            Rows clipped to ``row_norm``.

        noise : NoiseSource

        centre : ndarray of shape (n_outputs, n_features), default=None
            Centre of the penalty, made of public and released numbers, with norm at most
            ``centre_norm``. None means zero.

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
                f"centre must have norm at most centre_norm={self.centre_norm:g}; "
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
        """Release the minimiser as a stage of a sequence."""
        run.weights = self(run.data, noise, run.centre)
        run.spread = self.coefficient_noise()

    def coefficient_noise(self) -> CoefficientNoise:
        """Return a bound on the noise in the minimiser, from public numbers.

        A linear term moves the minimiser by the inverse of the Hessian, whose eigenvalues are at
        least the penalty. The noise that masks the solver's error is negligible in comparison.
        """
        level = self.law.level(self.n_features)
        return even_noise("bound", level / self.law.penalty, self.n_features)
