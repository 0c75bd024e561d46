"""Sensitivity of the online recursion to one record of a stream.

The paper is "A study on differential private online learning", J. Comput. Commun. 5, 2017,
doi:10.4236/jcc.2017.52004. From
``f_0 = 0`` it sets ``f_{t+1} = f_t - eta_t [psi(f_t(x_t) - y_t) K_{x_t} + lam_t f_t]`` with the
step ``eta_t = (t + t0)^-theta`` and ``eta_t lam_t = 1 / (t + t0)``, so that ``f_t`` depends on
the records 0 to ``t - 1``. Targets lie in ``[-M, M]``, ``K(x, x) <= kappa^2``. ``psi`` maps
residuals:

- "plain": unchanged, the recursion of the paper;
- "ball": unchanged, but ``f_{t+1}`` is projected onto the ball of the given radius;
- "huber": clipped to ``[-width, width]``.

Time stamps are public, and records enter in the order of time. Under ``adjacency="replace-one"``
neighbours differ in one record. Under ``adjacency="add-remove"`` one neighbour has a null record
at that time, whose step only shrinks: ``f_{t+1} = (1 - eta_t lam_t) f_t``. Removing a record
together with its time would move all later records to other step sizes.

Later records do not increase a difference. With ``psi(r) = a r``, ``0 <= a <= 1`` (likewise for a
difference of two residuals), a step acts on ``f_t - f'_t`` as ``(1 - eta lam) I - eta a K_x
K_x^*``. If ``eta_0 (lam_0 + kappa^2) <= 1``, that operator is positive with norm at most ``1 -
1/(t + t0)``, and a projection does not increase distances. A difference created at ``s`` has
therefore shrunk by the factor ``(s + t0) / (t - 1 + t0)`` at ``t``.

No function here reads data. Bounds are rounded up.
"""

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
from scipy.optimize import brentq

from skdp._validation import counts, fraction, one_of, plain_arguments, positive, short_repr
from skdp.privacy import ADJACENCIES, n_records_changed

RESIDUALS = ("plain", "ball", "huber")

_ROUNDING = 1e-12  # relative, and far above the error of a sum of powers
_HEAD = 128  # terms that are added up one by one
_SPAN = 256  # times that are done at once


@plain_arguments
def automatic_t0(theta: float, kappa: float = 1.0) -> float:
    """Return the smallest ``t0`` for which no step increases a difference.

    Parameters
    ----------
    theta : float in (0, 1)
        Exponent of the step sizes; convergence requires more than 1/2.

    kappa : float, default=1.0
        Bound on ``sqrt(K(x, x))``.

    Returns
    -------
    float
        Solution of ``eta_0 (lam_0 + kappa^2) = 1/t0 + kappa^2 t0^-theta = 1``. The paper requires
        ``t0^theta >= kappa^2 + 1``, which is sufficient.

    Examples
    --------
    >>> round(automatic_t0(0.75), 4), round(2.0 ** (1 / 0.75), 4)
    (2.2207, 2.5198)
    """
    fraction(theta=theta)
    positive(kappa=kappa)
    high = 2.0 * (kappa**2 + 1.0) ** (1.0 / theta)
    low = max(1.0, kappa ** (2.0 / theta))
    t0 = brentq(lambda t: _first_step(t, theta, kappa) - 1.0, low, high, xtol=1e-15, rtol=1e-15)
    t0 = max(t0, 1.0 + 1e-12)  # 1 is where a tiny kappa leads in floating point
    while _first_step(t0, theta, kappa) > 1.0:
        t0 *= 1.0 + 4e-16
    return t0


def _first_step(t0: float, theta: float, kappa: float) -> float:
    return 1.0 / t0 + kappa**2 * t0**-theta


@plain_arguments
def norm_bounds(
    times: Any,
    *,
    theta: float,
    t0: float,
    y_bound: float,
    kappa: float = 1.0,
    residual: str = "plain",
    radius: float | None = None,
    width: float | None = None,
) -> np.ndarray:
    """Bound the RKHS norm of ``f_t``.

    Parameters
    ----------
    times : int or array-like of int
        Values of ``t``, the number of records so far.

    theta, t0 : float
        Parameters of the step sizes; ``t0`` is at least `automatic_t0`.

    y_bound : float
        Bound on the absolute target.

    kappa : float, default=1.0
        Bound on ``sqrt(K(x, x))``.

    residual : {"plain", "ball", "huber"}, default="plain"
        How residuals are bounded: unchanged, projected onto the ball, or clipped.

    radius : float, default=None
        Radius of the ball, for "ball".

    width : float, default=None
        Largest residual, for "huber".

    Returns
    -------
    ndarray of the shape of ``times``
        Bounds of order ``M t^((1 - theta)/2)``, non-decreasing. Each takes O(1) time.

    Notes
    -----
    Write ``X = t + t0``, ``u = f_t(x_t)`` and ``psi = a (u - y)``. Expanding the square,
    ``||f_{t+1}||^2 <= (1 - 1/X)^2 ||f_t||^2 - 2 eta (1 - 1/X) psi u + eta^2 kappa^2 psi^2``. Since
    ``eta kappa^2 <= 1 - 1/X``, the last two terms are at most ``eta (1 - 1/X) a ((u - y)^2 - 2 (u
    - y) u) <= eta (1 - 1/X) M^2``: the energy recursion. If residuals are clipped to ``c < M``,
    they are at most ``eta (1 - 1/X) c (2 M - c)``. The triangle inequality gives ``||f_{t+1}|| <=
    (1 - 1/X) ||f_t|| + eta kappa min(M, c)``, the linear recursion. Multiplied by ``X^2`` and
    ``X``, both become sums of powers.

    Lemma 2 of the paper, ``kappa M t^(1 - theta)``, is valid and has twice the exponent.

    Examples
    --------
    >>> norm_bounds([0, 1, 100, 10_000], theta=0.75, t0=3.0, y_bound=1.0).round(3)
    array([0.   , 0.439, 1.184, 2.108])
    """
    fraction(theta=theta)
    positive(t0=t0, kappa=kappa, y_bound=y_bound)
    one_of(RESIDUALS, residual=residual)
    if residual == "ball":
        positive(radius=radius)
    if residual == "huber":
        positive(width=width)
    if t0 <= 1.0 or _first_step(t0, theta, kappa) > 1.0:
        raise ValueError(
            f"t0 must be at least automatic_t0(theta, kappa) = {automatic_t0(theta, kappa)!r}, "
            f"so that steps do not increase differences; got {short_repr(t0)}."
        )
    times = counts(times=times)
    energy, slope = y_bound**2, y_bound
    if residual == "huber" and width is not None and width < y_bound:
        energy, slope = width * (2.0 * y_bound - width), width
    roots = power_sums(times, t0, 1.0 - theta)
    squares = energy * np.maximum(power_sums(times, t0, 2.0 - theta) - roots, 0.0)
    bounds = np.minimum(np.sqrt(squares), kappa * slope * roots) / (times - 1.0 + t0)
    if residual == "ball" and radius is not None:
        bounds = np.minimum(bounds, radius)
    return bounds * (1.0 + _ROUNDING)


@plain_arguments
def created_distances(
    positions: Any,
    *,
    theta: float,
    t0: float,
    y_bound: float,
    kappa: float = 1.0,
    residual: str = "plain",
    radius: float | None = None,
    width: float | None = None,
    adjacency: str = "replace-one",
    bound: str = "tight",
) -> np.ndarray:
    """Return the distance ``||f_{s+1} - f'_{s+1}||`` that one record creates when it enters.

    Parameters
    ----------
    positions : int or array-like of int
        Values of ``s``, the position of the record in the stream, from 0.

    theta, t0, y_bound, kappa, residual, radius, width
        See `norm_bounds`.

    adjacency : {"replace-one", "add-remove"}, default="replace-one"
        Whether the record is replaced by another record, or by a null record that keeps its time
        and contributes nothing.

    bound : {"tight", "paper"}, default="tight"
        "paper" is ``2 kappa (kappa^2 + 1) M (s + t0)^(1 - 2 theta)``, which gives (17) of the
        paper divided by kappa in `stream_sensitivities`; half of it under "add-remove".

    Returns
    -------
    ndarray of the shape of ``positions``
        Distances; their product with ``s + t0`` does not decrease with ``s``.

    Notes
    -----
    Before the record enters, both streams have the same ``f = f_s``, of norm at most B
    (`norm_bounds`). Replace the two representers by unit vectors ``k, k'`` at an angle ``phi``.
    The difference over ``eta`` is ``kappa^2 (k' k'^* - k k^*) f + kappa (y k - y' k')``. The
    difference of two projections is ``sin(phi)`` times a reflection of their plane. The second
    term is at most ``2 kappa M cos(phi/2)`` for ``phi <= pi/2`` (a larger angle becomes smaller
    when ``k`` changes its sign). Both bounds are attained together, so the cost of replacing a
    record is exactly

    ``eta kappa max_phi [kappa B sin(phi) + 2 M cos(phi/2)]``,

    maximal where ``sin(phi/2) = 2 kappa B / (M + sqrt(M^2 + 8 kappa^2 B^2))``. It is up to 13%
    below ``eta kappa (kappa B + 2 M)``, the sum of both maxima. Representers of smaller norm gain
    nothing, because norm can be replaced by an extra direction. Clipped residuals ``a (u - y)``
    gain nothing either: they are those of the representer ``sqrt(a) K_x`` and the target ``sqrt(a)
    y``. Clipped residuals also move by at most ``2 eta kappa width``, which is attained while
    ``width <= M``. A null record costs ``eta kappa`` times one residual: ``kappa B + M``, or
    ``width`` if that is less. Two functions in the ball are at most ``2 radius`` apart.

    The paper's Theorem 1 prints the density of the noise without its minus sign, and (12) without
    a factor kappa. The proof gives (17), ``2 kappa^2 (kappa^2 + 1) M / (t - 1 + t0)^(2 theta -
    1)`` for the supremum norm, with ``kappa = sup sqrt(K(x, x))`` rather than ``sup K``.
    Definition 2 compares sequences of different lengths; it means the records 0 to ``t - 1``. It
    considers the last record only; see `stream_sensitivities` for the others. ``B_t`` after (17)
    is ``C_t``.

    Examples
    --------
    >>> stream = {"theta": 0.75, "t0": 3.0, "y_bound": 1.0}
    >>> float(created_distances(99, **stream).round(4))
    0.086
    >>> float(created_distances(99, residual="huber", width=1.0, **stream).round(4))
    0.0623
    """
    one_of(ADJACENCIES, adjacency=adjacency)
    one_of(["tight", "paper"], bound=bound)
    positions = counts(positions=positions)
    norms = norm_bounds(
        positions,
        theta=theta,
        t0=t0,
        y_bound=y_bound,
        kappa=kappa,
        residual=residual,
        radius=radius,
        width=width,
    )
    steps, records = (positions + t0) ** -theta, n_records_changed(adjacency)
    if bound == "paper":
        residuals = records * (kappa**2 + 1.0) * y_bound * (positions + t0) ** (1.0 - theta)
        return steps * kappa * residuals * (1.0 + _ROUNDING)
    values = kappa * norms
    if adjacency == "replace-one":
        sine = 2.0 * values / (y_bound + np.sqrt(y_bound**2 + 8.0 * values**2))
        residuals = 2.0 * np.sqrt(1.0 - sine**2) * (values * sine + y_bound)
    else:
        residuals = values + y_bound
    if residual == "huber" and width is not None:
        residuals = np.minimum(residuals, records * width)
    distances = steps * kappa * residuals
    if residual == "ball" and radius is not None:
        distances = np.minimum(distances, 2.0 * radius)
    return distances * (1.0 + _ROUNDING)


@plain_arguments
def stream_sensitivities(times: Any, **stream: Any) -> np.ndarray:
    """Return the largest RKHS distance of ``f_t`` between neighbours, over all positions.

    Parameters
    ----------
    times : int or array-like of int
        Values of ``t``, at least 1.

    **stream
        Keywords of `created_distances`.

    Returns
    -------
    ndarray of the shape of ``times``
        Distances. A prediction moves by at most ``kappa`` times the distance.

    Notes
    -----
    A distance ``D_s`` created at ``s`` is ``D_s (s + t0) / (t - 1 + t0)`` at ``t``. The numerator
    does not decrease with ``s``. Therefore **the last record is the worst one** and the maximum
    over the whole stream is ``D_{t-1}``:

    ``D_s (s + t0)`` is ``(s + t0)^(1 - theta)``, which increases, times a non-decreasing function
    of the norm bound ``B_s``, or ``2 radius (s + t0)`` if that is less. ``B_s`` does not decrease:
    the linear recursion averages it with ``kappa M X^(1 - theta)``, and the energy recursion
    averages its square with ``M^2 X^(1 - theta) (X - 1) / (2 X - 1)``. Both targets increase with
    ``X = s + t0``, and a value that starts below an increasing target never decreases.

    Examples
    --------
    >>> stream = {"theta": 0.75, "t0": 3.0, "y_bound": 1.0}
    >>> stream_sensitivities([100, 10_000], residual="ball", radius=1.0, **stream).round(4)
    array([0.0809, 0.0026])
    """
    return created_distances(counts(least=1, times=times) - 1.0, **stream)


@plain_arguments
def stream_sensitivity(n_steps: int, **stream: Any) -> float:
    """Largest RKHS distance between the functions after ``n_steps`` records.

    Parameters
    ----------
    n_steps : int
        At least 1.

    **stream
        Keywords of `created_distances`.

    Returns
    -------
    float
        The worst record is the last one, see `stream_sensitivities`.

    Examples
    --------
    >>> stream = {"theta": 0.75, "t0": 3.0, "y_bound": 1.0}
    >>> round(stream_sensitivity(10_000, **stream), 5)
    0.00362
    >>> round(stream_sensitivity(10_000, bound="paper", **stream), 5)
    0.04
    """
    counts(least=1, times=n_steps)
    span, place = divmod(int(n_steps), _SPAN)
    return float(_of_span(stream_sensitivities, span, **stream)[place])


def norm_bound(time: int, **lengths: Any) -> float:
    """`norm_bounds` at one time, at least 1."""
    span, place = divmod(time, _SPAN)
    return float(_of_span(norm_bounds, span, **lengths)[place])


# What one release asks for the next ones will: many times cost little more than one. Numbers
# here are public. A truth value is not the number that it equals.
@lru_cache(maxsize=128, typed=True)
def _of_span(bounds: Callable[..., np.ndarray], span: int, **stream: Any) -> np.ndarray:
    return bounds(np.maximum(np.arange(span * _SPAN, (span + 1) * _SPAN), 1), **stream)


@plain_arguments
def step_sensitivity(*, width: float, kappa: float = 1.0, adjacency: str = "replace-one") -> float:
    """Largest change of one clipped gradient ``psi(w(x) - y) K_x``.

    With noise added to every gradient before it is used,
    ``w_{t+1} = (1 - 1/X) w_t - eta_t (g_t + n_t)``, all iterates are functions of the noisy
    gradients. A record enters one of them, which sees earlier records only through what is
    released. The whole transcript, however long, has therefore the guarantee of one step.

    Parameters
    ----------
    width : float
        Largest residual.

    kappa : float, default=1.0
        Bound on ``sqrt(K(x, x))``.

    adjacency : {"replace-one", "add-remove"}, default="replace-one"
        See `created_distances`.

    Returns
    -------
    float

    Examples
    --------
    >>> step_sensitivity(width=0.5)
    1.0
    """
    positive(width=width, kappa=kappa)
    one_of(ADJACENCIES, adjacency=adjacency)
    return n_records_changed(adjacency) * kappa * width


def power_sums(times: np.ndarray, t0: float, power: float) -> np.ndarray:
    """Sum of ``(j + t0)^power`` over ``0 <= j < t``, to about 1e-13 for powers in (0, 2).

    The first terms are added, the others follow from the Euler-Maclaurin formula, whose
    next term is below 1e-17 of the sum.
    """
    head = np.concatenate([[0.0], np.cumsum((np.arange(_HEAD) + t0) ** power)])
    start = _HEAD + t0
    gap = np.maximum(times - _HEAD, 0.0)
    end = start + gap

    def change(q: float) -> np.ndarray:
        # Not as a difference: a large t0 would cancel its digits.
        return start**q * np.expm1(q * np.log1p(gap / start))

    tail = change(power + 1.0) / (power + 1.0) - (end**power - start**power) / 2.0
    tail += power / 12.0 * (end ** (power - 1.0) - start ** (power - 1.0))
    third = power * (power - 1.0) * (power - 2.0) / 720.0
    tail -= third * (end ** (power - 3.0) - start ** (power - 3.0))
    return head[np.minimum(times, _HEAD).astype(int)] + np.where(gap > 0.0, tail, 0.0)
