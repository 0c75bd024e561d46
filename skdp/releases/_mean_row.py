"""The mean row, and how far rows reach beside it: for more features than second moments are for.

Of each the bound, its reason and the noise. The rows are read as `~skdp.solvers.sketches` does it.
"""

import math

import numpy as np

from skdp._random import NoiseSource
from skdp._validation import plain_arguments
from skdp.exceptions import SolverError
from skdp.mechanisms import NoiseLaw, release
from skdp.privacy import GaussianDP
from skdp.solvers.certificates import SUM_ERROR
from skdp.solvers.exact_sums import on_lattice
from skdp.solvers.rows import RowBlocks
from skdp.solvers.sketches import SKETCH_REACH, sketch_error, sketched_spread
from skdp.solvers.whitening import CAP_SHARE

__all__ = ["can_read_mean", "denoised", "release_mean_row", "release_spread"]


@plain_arguments
def can_read_mean(n_samples: float, n_features: int) -> bool:
    """Whether sums over as many rows of as many features are certified, whatever the rows are."""
    # Of the two sums the one that errs by more of its sensitivity.
    return n_samples * sketch_error(n_features) <= CAP_SHARE / 2.0 * SKETCH_REACH


def _certified(error: float, sensitivity: float) -> float:
    if error > CAP_SHARE * sensitivity:
        raise SolverError("There are too many rows for the certified error of a sum.")
    return CAP_SHARE * sensitivity


def release_mean_row(
    data: RowBlocks,
    row_norm: float,
    n_samples: float,
    *,
    guarantee: GaussianDP,
    noise: NoiseSource,
) -> tuple[np.ndarray, float]:
    """Mean row with noise, and its noise's standard deviation.

    Parameters
    ----------
    data : RowBlocks

    row_norm : float
        Bound on the norm of a row.

    n_samples : float
        Public or released.

    guarantee : GaussianDP

    noise : NoiseSource

    Returns
    -------
    mean : ndarray of shape (n_features,)

    deviation : float
        Of the noise in each entry.
    """
    # Replacing a row moves the sum by two norms of a row, adding one by one.
    sensitivity = guarantee.n_records_changed * row_norm
    law = NoiseLaw.of("gaussian", guarantee)
    released = release(
        data.total(),
        law=law,
        sensitivity=sensitivity,
        error=_certified(data.n_units * row_norm * SUM_ERROR, sensitivity),
        random_state=noise,
        purpose="sum of the rows",
    )
    return released / n_samples, law.level(data.n_features) * sensitivity / n_samples


def release_spread(
    data: RowBlocks,
    row_norm: float,
    n_samples: float,
    direction: np.ndarray | None,
    *,
    guarantee: GaussianDP,
    noise: NoiseSource,
) -> float:
    """Estimate how far rows reach beside a direction: the largest second moment there.

    Parameters
    ----------
    data : RowBlocks

    row_norm : float
        Bound on the norm of a row.

    n_samples : float
        Public or released.

    direction : ndarray of shape (n_features,), default=None
        Released, as `denoised` returns it. None is for beside nothing.

    guarantee : GaussianDP

    noise : NoiseSource

    Returns
    -------
    float
        Over the squared norm of a row, and with a standard deviation of the noise added.
    """
    # A row adds itself, less what it has along the direction, times a number that is cut: to each
    # image. The norm of an image moves by no more than the image, and the largest by no more than
    # the one that moves most.
    sensitivity = guarantee.n_records_changed * SKETCH_REACH
    law = NoiseLaw.of("gaussian", guarantee)
    released = release(
        sketched_spread(data, row_norm, direction),
        law=law,
        sensitivity=sensitivity,
        error=_certified(data.n_units * sketch_error(data.n_features), sensitivity),
        random_state=noise,
        purpose="how far rows reach beside their mean",
    )
    return (max(float(released), 0.0) + law.level(1) * sensitivity) / n_samples


@plain_arguments
def denoised(mean: np.ndarray, deviation: float) -> tuple[np.ndarray | None, float]:
    """Direction of a released mean row, and its squared length, with less of the noise.

    Parameters
    ----------
    mean : ndarray of shape (n_features,)

    deviation : float
        Standard deviation of the noise in each entry.

    Returns
    -------
    direction : ndarray of shape (n_features,) or None
        Of norm about 1, on a lattice; None where nothing is seen.

    square : float
        Of the mean row, as far as it is seen.

    Notes
    -----
    Entries are moved towards 0 by a threshold: the one with the least estimate of the risk, or,
    where few entries are more than noise, as of text, that which noise rarely exceeds (SureShrink;
    Donoho and Johnstone, "Adapting to unknown smoothness via wavelet shrinkage", JASA 1995).
    """
    d = len(mean)
    sizes = np.abs(mean) / deviation
    most = math.sqrt(2.0 * math.log(max(d, 2)))
    threshold = most
    if (sizes**2).sum() - d > math.sqrt(d) * math.log2(max(d, 2)) * math.sqrt(
        math.log2(max(d, 2))
    ):
        squares = np.sort(sizes**2)
        ranks = np.arange(1, d + 1)
        risks = d - 2.0 * ranks + np.cumsum(squares) + squares * (d - ranks)
        risks[squares > most**2] = np.inf
        threshold = math.sqrt(squares[risks.argmin()]) if np.isfinite(risks).any() else 0.0
    kept = sizes > threshold
    square = float((mean[kept] ** 2).sum()) - np.count_nonzero(kept) * deviation**2
    if square <= 0.0:
        return None, 0.0
    direction = np.where(kept, mean - np.sign(mean) * threshold * deviation, 0.0)
    return on_lattice(direction / np.linalg.norm(direction)), square
