"""What finds the best weights in a ball: the minimum of a quadratic model, checks, an error."""

import numpy as np
from scipy import sparse
from scipy.linalg import eigh
from scipy.optimize import brentq

from skdp.exceptions import SolverError

__all__ = ["DENSE", "checked_problem", "quadratic_in_ball", "uncertified"]

DENSE = 400  # unknowns up to which a Hessian is formed


def quadratic_in_ball(hessian, linear, radius):
    """Minimise ``u^T H u / 2 - linear^T u`` over the ball, for ``H`` positive semidefinite."""
    values, vectors = eigh(hessian)
    coordinates = vectors.T @ linear
    size = float(np.linalg.norm(coordinates))
    if size == 0.0:
        return np.zeros_like(linear)
    # What is zero up to rounding gets a little curvature, so that no direction is flat.
    values = np.maximum(values, 1e-12 * max(float(values[-1]), size / radius))

    def excess(shift):
        return 1.0 / radius - 1.0 / float(np.linalg.norm(coordinates / (values + shift)))

    shift = 0.0
    if excess(0.0) > 0.0:
        shift = brentq(excess, 0.0, size / radius, xtol=1e-300, rtol=1e-13)
    solution = vectors @ (coordinates / (values + shift))
    return solution * min(1.0, radius / max(float(np.linalg.norm(solution)), 1e-300))


def checked_problem(rows, targets, name="targets"):
    """Check rows and one number for each."""
    rows = sparse.csr_array(rows) if sparse.issparse(rows) else np.asarray(rows, dtype=float)
    targets = np.asarray(targets, dtype=float)
    if rows.ndim != 2 or targets.ndim != 1 or rows.shape[0] != len(targets) or not rows.shape[0]:
        raise ValueError(
            f"rows and {name} must have the shapes (n_samples, n_features) and (n_samples,); "
            f"got {rows.shape} and {targets.shape}."
        )
    return rows, targets


def uncertified(tolerance, gap):
    """Error of a gap that stayed too large."""
    return SolverError(
        "The best weights in the ball could not be certified: the gap per row should be at most "
        f"{tolerance:.3g} and is {gap:.3g}. Ask for a larger tolerance."
    )
