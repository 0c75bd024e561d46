"""Private empirical risk minimisation of linear models (Chaudhuri et al., JMLR 2011)."""

import math

import numpy as np

from skdp.mechanisms import additive_mechanism
from skdp.solvers._releases import eigenvectors, noisy_release, release_second_moments
from skdp.solvers.certificates import descent_tolerance, linear_step, solver_tolerance
from skdp.solvers.newton import minimise
from skdp.theory.gradient_descent import plan_descent, split_budget

__all__ = ["gradient_descent", "objective_perturbation", "output_perturbation"]


def output_perturbation(loss, data, *, penalty, guarantee, noise):
    """Release the minimiser with noise.

    Privacy: satisfies ``guarantee`` for any rows, as ``data`` has clipped them.

    Parameters
    ----------
    loss : LogisticLoss, HuberHingeLoss or SoftmaxLoss

    data : RowBlocks

    penalty : float

    guarantee : ApproxDP

    noise : NoiseSource

    Returns
    -------
    ndarray of shape (n_outputs, n_features)

    References
    ----------
    Chaudhuri, Monteleoni and Sarwate, JMLR 2011, algorithm 1 and corollary 8.
    """
    tolerance = solver_tolerance(loss, data.row_norm)
    weights = minimise(loss, data, penalty=penalty, tolerance=tolerance)
    # A change of neighbours moves the gradient by at most `records` times the Lipschitz bound
    # of a record; strong convexity turns it into a distance. The solver adds its own error.
    return additive_mechanism(
        weights,
        l2_sensitivity=guarantee.n_records_changed * loss.lipschitz * data.row_norm / penalty,
        error=tolerance / penalty,
        guarantee=guarantee,
        random_state=noise,
    )


def objective_perturbation(loss, data, *, law, solver_guarantee, noise):
    """Minimise the objective with a random linear term, and mask the solver's error.

    Privacy: the exact minimiser satisfies ``law.guarantee``. What the solver returns differs
    from it by at most its certified error, a further query of that sensitivity, released
    under ``solver_guarantee``. The two compose.

    Parameters
    ----------
    loss : LogisticLoss, HuberHingeLoss or SoftmaxLoss

    data : RowBlocks

    law : ObjectiveNoise

    solver_guarantee : ApproxDP
        Pure.

    noise : NoiseSource

    Returns
    -------
    ndarray of shape (n_outputs, n_features)

    References
    ----------
    Chaudhuri, Monteleoni and Sarwate, JMLR 2011, algorithm 2; Iyengar, Near, Song, Thakkar,
    Thakurta and Wang, "Towards practical differentially private convex optimization", IEEE
    S&P 2019, algorithm 1, whose output noise is 2 tolerance / penalty as two points of a ball
    are a diameter apart.
    """
    shape = (loss.n_outputs, data.n_features)
    size = shape[0] * shape[1]
    tolerance = solver_tolerance(loss, data.row_norm)
    # The linear term is rounded to a lattice. The exact one is within `rounding`, which the
    # optimality condition cannot tell from an error of the solver.
    step = linear_step(loss, data.row_norm, size, law.norm_bound(size))
    rounding = step / 2 * math.sqrt(size)
    draw = noise.normal if law.gaussian else noise.k_norm
    linear = step * draw(size, law.scale / step).reshape(shape)
    weights = minimise(loss, data, penalty=law.penalty, tolerance=tolerance, linear=linear)
    return additive_mechanism(
        weights,
        l2_sensitivity=2 * (tolerance + rounding) / law.penalty,
        guarantee=solver_guarantee,
        random_state=noise,
    )


def gradient_descent(loss, data, *, clip_norm, guarantee, noise, penalty=0.0):
    """Full-batch descent along noisy sums of clipped gradients, preconditioned privately.

    Privacy: satisfies ``guarantee`` for any rows, as ``data`` has clipped them. The data are
    used in at most ``n_steps + 2`` releases: the number of rows where it is private, the
    second moments of the rows, and one sum of gradients a step, each at a released point.
    Gaussian releases compose by the root of summed squares, pure ones by their sum.

    Parameters
    ----------
    loss : LogisticLoss, HuberHingeLoss or SoftmaxLoss

    data : RowBlocks

    clip_norm : float
        Residuals are clipped to this norm, over all outputs together.

    guarantee : GaussianDP or pure ApproxDP

    noise : NoiseSource

    penalty : float, default=0.0
        Strength of ``penalty/2 ||W||^2``. It is public and needs no noise; without it the
        shortness of the descent is what keeps the weights small.

    Returns
    -------
    ndarray of shape (n_outputs, n_features)

    References
    ----------
    Bassily, Smith and Thakurta, "Private empirical risk minimization", FOCS 2014; Dong, Roth
    and Su, "Gaussian differential privacy", JRSS-B 2022, corollary 2.
    """
    count_guarantee, descent_guarantee = split_budget(guarantee)
    n_samples = data.n_samples
    if count_guarantee is not None:
        n_samples = noisy_release(float(n_samples), 1.0, count_guarantee, noise)
    n_samples = max(1.0, float(n_samples))
    plan = plan_descent(
        n_samples=n_samples,
        n_features=data.n_features,
        loss=loss,
        clip_norm=clip_norm,
        row_norm=data.row_norm,
        guarantee=descent_guarantee,
    )
    precondition = _preconditioner(data, plan, n_samples, penalty, guarantee, noise)
    # A record's gradient is the outer product of its residual and its row, both clipped.
    # Replacing it moves the sum by two such norms.
    l2_sensitivity = guarantee.n_records_changed * clip_norm * data.row_norm
    weights = np.zeros((loss.n_outputs, data.n_features))
    velocity = np.zeros_like(weights)
    for _ in range(plan.n_steps):
        ahead = weights + plan.momentum * velocity
        largest = descent_tolerance(clip_norm, data.row_norm)
        gradient = data.certified_gradient(loss, ahead, largest, clip_norm=clip_norm)
        released = noisy_release(gradient, l2_sensitivity, plan.step_guarantee, noise)
        step = precondition((released + penalty * ahead) / n_samples)
        velocity = plan.momentum * velocity - step
        weights = weights + velocity
    return weights


def _preconditioner(data, plan, n_samples, penalty, guarantee, noise):
    """Divide by the curvature bound of each direction, or by its floor."""
    ridge = penalty / n_samples
    if plan.gram_guarantee is None:
        return lambda gradient: gradient / (plan.floor + ridge)
    released = release_second_moments(
        data.second_moments(), data.row_norm, guarantee=plan.gram_guarantee, noise=noise
    )
    released /= n_samples
    values, vectors = eigenvectors(released)
    curvatures = np.maximum(plan.curvature * values, plan.floor) + ridge
    inverse = (vectors / curvatures) @ vectors.T
    return lambda gradient: gradient @ inverse
