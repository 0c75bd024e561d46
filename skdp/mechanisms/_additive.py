"""Additive noise: Laplace, K-norm and Gaussian."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from skdp._validation import plain_arguments, positive
from skdp.mechanisms._law import NoiseLaw, release
from skdp.privacy import Guarantee

__all__ = [
    "additive_mechanism",
    "gaussian_mechanism",
    "k_norm_mechanism",
    "laplace_mechanism",
]


@plain_arguments
def laplace_mechanism(
    value: ArrayLike,
    *,
    l1_sensitivity: float,
    guarantee: Guarantee,
    error: float = 0.0,
    random_state: Any = None,
) -> np.ndarray:
    """Release ``value`` with Laplace noise in every coordinate.

    Privacy: the result satisfies pure ``guarantee.epsilon``-differential privacy provided that two
    neighbouring data sets move ``value`` by at most ``l1_sensitivity`` in l1 norm. The caller must
    ensure that bound. The release lives on a public lattice; rounding is part of the sensitivity.

    Parameters
    ----------
    value : array-like of any shape
        Exact answer. It must not be released in any other way.

    l1_sensitivity : float
        Largest change in l1 norm between neighbours.

    guarantee : ApproxDP
        Guarantee to meet.

    error : float, default=0.0
        Certified l1 distance of ``value`` from the exact answer.

    random_state : None, int, RandomState or Generator, default=None
        None draws from the operating system; anything else is for tests.

    Returns
    -------
    ndarray
        Noisy answer, of the shape of ``value``.

    References
    ----------
    Dwork, McSherry, Nissim and Smith, "Calibrating noise to sensitivity in private data
    analysis", TCC 2006, proposition 1.

    Examples
    --------
    >>> from skdp.mechanisms import laplace_mechanism
    >>> from skdp.privacy import ApproxDP
    >>> laplace_mechanism([10.0], l1_sensitivity=1.0, guarantee=ApproxDP(1.0)).shape
    (1,)
    """
    positive(l1_sensitivity=l1_sensitivity)
    law = NoiseLaw.of("laplace", guarantee)
    return release(
        value, law=law, sensitivity=l1_sensitivity, error=error, random_state=random_state
    )


@plain_arguments
def k_norm_mechanism(
    value: ArrayLike,
    *,
    l2_sensitivity: float,
    guarantee: Guarantee,
    error: float = 0.0,
    random_state: Any = None,
) -> np.ndarray:
    """Release ``value`` with noise of density proportional to ``exp(-||b||_2 / scale)``.

    The norm of the noise has a Gamma distribution and its direction is uniform: the pure
    mechanism for an l2 sensitivity.

    Privacy: the result satisfies pure ``guarantee.epsilon``-differential privacy provided that two
    neighbouring data sets move ``value`` by at most ``l2_sensitivity`` in l2 norm. The caller must
    ensure that bound. The release lives on a public lattice; rounding is part of the sensitivity.

    Parameters
    ----------
    value : array-like of any shape
        Exact answer. It must not be released in any other way.

    l2_sensitivity : float
        Largest change in l2 norm between neighbours.

    guarantee : ApproxDP
        Guarantee to meet.

    error : float, default=0.0
        Certified l2 distance of ``value`` from the exact answer.

    random_state : None, int, RandomState or Generator, default=None
        None draws from the operating system; anything else is for tests.

    Returns
    -------
    ndarray
        Noisy answer, of the shape of ``value``.

    References
    ----------
    Hardt and Talwar, "On the geometry of differential privacy", STOC 2010, section 4;
    Chaudhuri, Monteleoni and Sarwate, JMLR 2011, algorithm 1.

    Examples
    --------
    >>> from skdp.mechanisms import k_norm_mechanism
    >>> from skdp.privacy import ApproxDP
    >>> k_norm_mechanism([1.0, 2.0], l2_sensitivity=1.0, guarantee=ApproxDP(1.0)).shape
    (2,)
    """
    positive(l2_sensitivity=l2_sensitivity)
    law = NoiseLaw.of("k_norm", guarantee)
    return release(
        value, law=law, sensitivity=l2_sensitivity, error=error, random_state=random_state
    )


@plain_arguments
def gaussian_mechanism(
    value: ArrayLike,
    *,
    l2_sensitivity: float,
    guarantee: Guarantee,
    error: float = 0.0,
    random_state: Any = None,
) -> np.ndarray:
    """Release ``value`` with Gaussian noise in every coordinate.

    Privacy: the result satisfies ``guarantee`` provided that two neighbouring data sets move
    ``value`` by at most ``l2_sensitivity`` in l2 norm. The caller must ensure that bound, usually
    by clipping; nothing here can check it. The release lives on a public lattice, so that the low
    bits of a float reveal nothing; rounding is part of the sensitivity.

    Parameters
    ----------
    value : array-like of any shape
        Exact answer. It must not be released in any other way.

    l2_sensitivity : float
        Largest change in l2 norm between neighbours.

    guarantee : ApproxDP with positive delta, or GaussianDP
        Guarantee to meet.

    error : float, default=0.0
        Certified l2 distance of ``value`` from the exact answer.

    random_state : None, int, RandomState or Generator, default=None
        None draws from the operating system; anything else is for tests.

    Returns
    -------
    ndarray
        Noisy answer, of the shape of ``value``.

    References
    ----------
    Balle and Wang, "Improving the Gaussian mechanism", ICML 2018, Theorem 8.

    Examples
    --------
    >>> from skdp.mechanisms import gaussian_mechanism
    >>> from skdp.privacy import ApproxDP
    >>> gaussian_mechanism([1.0], l2_sensitivity=1.0, guarantee=ApproxDP(1.0, 1e-5)).shape
    (1,)
    """
    positive(l2_sensitivity=l2_sensitivity)
    law = NoiseLaw.of("gaussian", guarantee)
    return release(
        value, law=law, sensitivity=l2_sensitivity, error=error, random_state=random_state
    )


@plain_arguments
def additive_mechanism(
    value: ArrayLike,
    *,
    l2_sensitivity: float,
    guarantee: Guarantee,
    error: float = 0.0,
    random_state: Any = None,
) -> np.ndarray:
    """Release ``value`` with the quieter of K-norm and Gaussian noise for ``guarantee``.

    Privacy: as `k_norm_mechanism` and `gaussian_mechanism`; the choice looks at the
    dimension and the guarantee only.

    Parameters
    ----------
    value, l2_sensitivity, guarantee, error, random_state
        As for `gaussian_mechanism`; with ``delta == 0`` the noise is K-norm.

    Returns
    -------
    ndarray
        Noisy answer, of the shape of ``value``.
    """
    positive(l2_sensitivity=l2_sensitivity)
    law = NoiseLaw.meeting(guarantee, size=np.size(value))
    return release(
        value, law=law, sensitivity=l2_sensitivity, error=error, random_state=random_state
    )
