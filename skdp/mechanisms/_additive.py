"""Clipping, additive noise (Laplace, K-norm, Gaussian), and the common release function."""

import math
import os
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from skdp._grid import UP, GridNoise
from skdp._random._source import NoiseSource, noise_source
from skdp._recording import Released, note, recorded
from skdp._validation import (
    between,
    non_negative,
    one_of,
    plain_arguments,
    positive,
    positive_int,
    short_repr,
)
from skdp.privacy import ApproxDP, GaussianDP, Guarantee, gaussian_scale


def row_norms(X: Any) -> np.ndarray:
    """Return the Euclidean norm of each row, computed from that row alone.

    Parameters
    ----------
    X : {ndarray, CSR matrix or array} of shape (n_samples, n_features)
        Duplicate entries of a sparse matrix are summed.

    Returns
    -------
    ndarray of shape (n_samples,)
        Norms in double precision; NaN for a row with a NaN.
    """
    relative, exponents = _split_norms(_canonical(X))
    with np.errstate(over="ignore"):
        return np.ldexp(relative, exponents)


def _canonical(X: Any) -> Any:
    """Sum repeated entries: huge ones may cancel, and would bring their rounding errors along."""
    if not sparse.issparse(X):
        return X
    if X.format != "csr":
        raise ValueError(f"X must be dense or in CSR format; got {X.format!r}.")
    if not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    return X


def _split_norms(X: Any) -> tuple[np.ndarray, np.ndarray]:
    """Norms as ``relative * 2**exponents``; the exponents are 0 unless squares would overflow."""
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        relative = _plain_norms(X)
        exponents = np.zeros(len(relative), dtype=int)
        # Squares leave the range of floats only for absurd entries. Such a row is scaled by the
        # exponent of its own largest entry.
        odd = np.flatnonzero(~((relative > 1e-150) & (relative < np.inf)))
        if odd.size and X.shape[1]:
            rows = X[odd].astype(np.float64)
            largest = abs(rows).max(axis=1)
            largest = largest.toarray() if sparse.issparse(largest) else largest
            exponents[odd] = np.frexp(np.ravel(largest))[1]
            relative[odd] = _plain_norms(_by_row(np.ldexp, rows, -exponents[odd]))
    return relative, exponents


def _plain_norms(X: Any) -> np.ndarray:
    if not sparse.issparse(X):
        if X.dtype == np.float64:
            return np.sqrt(np.vecdot(X, X))  # the fastest
        return np.sqrt(np.einsum("ij,ij->i", X, X, dtype=np.float64))
    squares = np.square(X.data, dtype=np.float64)
    squares = sparse.csr_array((squares, X.indices, X.indptr), shape=X.shape)
    return np.sqrt(np.asarray(squares.sum(axis=1)).ravel())


def _by_row(operation: np.ufunc, X: Any, numbers: np.ndarray) -> Any:
    if not sparse.issparse(X):
        return operation(X, numbers[:, np.newaxis])
    data = operation(X.data, np.repeat(numbers, np.diff(X.indptr)))
    return type(X)((data, X.indices.copy(), X.indptr.copy()), shape=X.shape)


@plain_arguments
def clip_rows(X: Any, norm: float) -> Any:
    """Scale rows whose norm exceeds ``norm`` down to that norm.

    Each row is clipped alone and distances do not grow, so clipping costs no privacy.

    Parameters
    ----------
    X : {ndarray, CSR matrix or array} of shape (n_samples, n_features)
        Finite values.

    norm : float, positive
        Euclidean bound.

    Returns
    -------
    same type as X
        A copy if a row was clipped or entries were duplicated, and ``X`` itself otherwise.
        Norms exceed ``norm`` at most by rounding. Integers become floats; single precision
        is kept.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp.mechanisms import clip_rows
    >>> clip_rows(np.array([[3.0, 4.0], [0.3, 0.4]]), 1.0)
    array([[0.6, 0.8],
           [0.3, 0.4]])
    """
    positive(norm=norm)
    X = _canonical(X)
    relative, exponents = _split_norms(X)
    if not np.isfinite(relative).all():
        raise ValueError("X must be finite to be clipped; got NaN or infinity.")
    with np.errstate(over="ignore"):
        is_long = np.ldexp(relative, exponents) > norm
    if not is_long.any():
        return X
    dtype = X.dtype if np.issubdtype(X.dtype, np.floating) else np.dtype(np.float64)
    exponents[~is_long] = 0
    if exponents.any():
        X = _by_row(np.ldexp, X.astype(np.float64), -exponents)
    factors = np.divide(norm, relative, out=np.ones_like(relative), where=is_long)
    return _by_row(np.multiply, X, factors).astype(dtype, copy=False)


_LARGEST = 2**53  # integers up to here are exact in a float


@dataclass(frozen=True)
class Lattice:
    """Public grid of multiples of a power of two, with the sensitivity of rounded values.

    Parameters
    ----------
    step : float
        Power of two, so that multiples are exact floats.

    sensitivity : float
        Largest change of the rounded value between neighbours.

    References
    ----------
    Mironov, "On significance of the least significant bits for differential privacy", CCS
    2012, for the attack that the lattice prevents.
    """

    step: float
    sensitivity: float

    @classmethod
    @plain_arguments
    def for_sensitivity(
        cls, sensitivity: float, *, size: int, order: int = 2, error: float = 0.0
    ) -> "Lattice":
        """Choose the step so that rounding costs about one percent.

        Parameters
        ----------
        sensitivity : float
            Largest change of the exact value between neighbours, in the norm of ``order``.

        size : int
            Number of coordinates.

        order : {1, 2}, default=2
            Norm of the sensitivity.

        error : float, default=0.0
            Certified distance, in the same norm, between the computed and the exact value.

        Returns
        -------
        Lattice
        """
        positive(sensitivity=sensitivity)
        between(1e-200, 1e200, sensitivity=sensitivity)
        non_negative(error=error)
        # Rounding moves each coordinate by at most half a step, on either data set.
        spread = max(1, size) ** (1 / order)
        step = 2.0 ** math.floor(math.log2(sensitivity / (100.0 * spread)))
        total = (sensitivity + 2.0 * error + step * spread) * (1 + 1e-12)
        return cls(step, total)

    def release(self, value: ArrayLike, noise: np.ndarray) -> np.ndarray:
        """Round ``value`` to the lattice and add the integer ``noise``.

        Parameters
        ----------
        value : ndarray
            Finite values.

        noise : ndarray of int64, same shape

        Returns
        -------
        ndarray of float
            Multiples of ``step``; out-of-range results are clamped, which is post-processing.
        """
        value = np.asarray(value, dtype=np.float64)
        if not np.isfinite(value).all():
            raise ValueError("value must be finite to be released; got other values.")
        # Clamping before the noise does not expand distances, after it is post-processing.
        limit = _LARGEST * self.step
        whole = np.rint(value.clip(-limit, limit) / self.step).astype(np.int64)
        whole += noise
        return whole.clip(-_LARGEST, _LARGEST) * self.step


KINDS = ("laplace", "k_norm", "gaussian")


@dataclass(frozen=True)
class NoiseLaw:
    """Law of additive noise for a sensitivity of 1, with the guarantee of one release.

    Parameters
    ----------
    kind : {"laplace", "k_norm", "gaussian"}
        "laplace" is Laplace noise in each coordinate, for an l1 sensitivity. "k_norm" is noise
        with density proportional to ``exp(-norm / scale)``, and "gaussian" is Gaussian noise,
        both for an l2 sensitivity.

    scale : float
        Scale of the law; for Gaussian noise, the standard deviation of a coordinate. The noise
        drawn has a slightly larger scale.

    guarantee : ApproxDP or GaussianDP
        Guarantee of one release, pure or Gaussian.

    Examples
    --------
    >>> from skdp.mechanisms import NoiseLaw
    >>> from skdp.privacy import ApproxDP
    >>> NoiseLaw.meeting(ApproxDP(1.0), size=3).kind
    'k_norm'
    >>> NoiseLaw.meeting(ApproxDP(1.0, 1e-5), size=100).kind
    'gaussian'
    """

    kind: str
    scale: float
    guarantee: ApproxDP | GaussianDP

    def __post_init__(self) -> None:
        one_of(KINDS, kind=self.kind)
        positive(scale=self.scale)

    @classmethod
    @plain_arguments
    def of(cls, kind: str, guarantee: Guarantee) -> "NoiseLaw":
        """Return the law of a given kind that meets ``guarantee`` in one release.

        Parameters
        ----------
        kind : {"laplace", "k_norm", "gaussian"}

        guarantee : ApproxDP or GaussianDP
            For an `ApproxDP` with a positive delta, Gaussian noise is calibrated to its
            :meth:`~skdp.privacy.ApproxDP.gaussian_target` and other noise to its epsilon.
        """
        one_of(KINDS, kind=kind)
        if kind == "gaussian":
            if isinstance(guarantee, ApproxDP):
                guarantee = guarantee.gaussian_target()
            if not isinstance(guarantee, GaussianDP):
                raise ValueError(
                    f"guarantee must be an ApproxDP or a GaussianDP; got {short_repr(guarantee)}."
                )
            return cls(kind, gaussian_scale(l2_sensitivity=1.0, guarantee=guarantee), guarantee)
        if not isinstance(guarantee, ApproxDP):
            raise ValueError(
                f"guarantee must be an ApproxDP for this noise; got {short_repr(guarantee)}."
            )
        positive(epsilon=guarantee.epsilon)
        pure = replace(guarantee, delta=0.0, refined=None)
        return cls(kind, 1.0 / guarantee.epsilon, pure)

    @classmethod
    @plain_arguments
    def meeting(cls, guarantee: Guarantee, *, size: int) -> "NoiseLaw":
        """Return the law with less noise for an l2 sensitivity: K-norm, or Gaussian if allowed.

        Parameters
        ----------
        guarantee : ApproxDP or GaussianDP

        size : int
            Number of coordinates.
        """
        if not isinstance(guarantee, ApproxDP) or guarantee.epsilon == 0.0 < guarantee.delta:
            return cls.of("gaussian", guarantee)
        pure = cls.of("k_norm", guarantee)
        if guarantee.delta == 0.0:
            return pure
        gaussian = cls.of("gaussian", guarantee)
        return pure if pure.level(size) < gaussian.level(size) else gaussian

    def repeated(self, n_releases: int) -> "NoiseLaw":
        """Return the law of each of several releases that together satisfy the guarantee.

        Pure epsilons add up; the mus of Gaussian guarantees add up in squares.
        """
        positive_int(n_releases=n_releases)
        share = math.sqrt(n_releases) if self.kind == "gaussian" else float(n_releases)
        one: ApproxDP | GaussianDP
        if isinstance(self.guarantee, GaussianDP):
            one = replace(self.guarantee, mu=self.guarantee.mu / share)
        else:
            one = replace(self.guarantee, epsilon=self.guarantee.epsilon / share)
        return replace(self, scale=self.scale * share, guarantee=one)

    @property
    def order(self) -> int:
        """Order of the sensitivity norm: 1 or 2."""
        return 1 if self.kind == "laplace" else 2

    def energy(self, size: int) -> float:
        """Return the mean squared norm of the noise of ``size`` numbers."""
        return size * self._variance(size) * self.scale**2

    def level(self, size: int) -> float:
        """Return the root mean square of the noise in a coordinate."""
        return math.sqrt(self._variance(size)) * self.scale

    def _variance(self, size: int) -> float:
        """Mean square in a coordinate, for a scale of 1."""
        return {"gaussian": 1.0, "laplace": 2.0, "k_norm": size + 1.0}[self.kind]

    def refining(self, target: ApproxDP) -> ApproxDP | GaussianDP | None:
        """Return this law's guarantee if it refines ``target``; None if it adds nothing."""
        return None if target.delta == 0.0 else self.guarantee

    def on(self, lattice: Lattice, size: int, purpose: str = "") -> GridNoise:
        """Return the noise of many releases of ``size`` numbers each, on one lattice.

        Parameters
        ----------
        lattice : Lattice
            Lattice with the sensitivity of one release.

        size : int

        purpose : str, default=""
            Description of the releases.
        """
        scale = self.scale * lattice.sensitivity * UP
        grid = self.kind, scale, lattice.step, size, lattice.sensitivity, self
        return GridNoise(*grid, purpose=purpose)

    def release(
        self,
        exact: np.ndarray,
        source: NoiseSource,
        *,
        step: float,
        sensitivity: float,
        purpose: str = "",
    ) -> np.ndarray:
        """Release one vector on a grid with its own sensitivity.

        Parameters
        ----------
        exact : ndarray of shape (size,)
            Multiples of the step. It must not be released in any other way.

        source : NoiseSource

        step : float
            Step of the grid, a power of two.

        sensitivity : float

        purpose : str, default=""
            Description of the release, for the account of the fit.

        Returns
        -------
        ndarray of shape (size,)
        """
        noisy = self.draw(source, 1, len(exact), sensitivity / step)[0] * step
        noisy += exact
        return self.made(exact, noisy, Lattice(step, sensitivity), sensitivity, purpose)

    def made(
        self, exact: np.ndarray, noisy: np.ndarray, lattice: Lattice, declared: float, purpose: str
    ) -> np.ndarray:
        """Record a release, whose declared sensitivity is that before rounding.

        Returns
        -------
        ndarray
            Released value.
        """
        scale = self.scale * lattice.sensitivity * UP
        bounds: dict[str, Any] = dict(scale=scale, sensitivity=declared, law=self)
        note(purpose, self.kind, exact.size, **bounds)
        return recorded(Released, noisy, asked=exact, released=noisy, step=lattice.step, **bounds)

    def draw(self, source: NoiseSource, n: int, size: int, steps: float) -> np.ndarray:
        """Draw the noise of ``n`` releases of ``size`` numbers each, in steps of a lattice.

        Parameters
        ----------
        source : NoiseSource

        n, size : int

        steps : float
            Sensitivity in steps.

        Returns
        -------
        ndarray of int64, shape (n, size)
        """
        return source.vectors(self.kind, n, size, self.scale * steps * UP)


@plain_arguments
def release(
    value: Any,
    *,
    law: NoiseLaw,
    sensitivity: float,
    error: float | None = None,
    lattice: Lattice | None = None,
    random_state: Any = None,
    purpose: str = "",
) -> np.ndarray:
    """Release a value with noise of ``law``. Every noisy release uses this function.

    Privacy: the result satisfies ``law.guarantee`` provided that ``value`` changes by at most
    ``sensitivity`` in the norm of the law between neighbouring data sets. The caller must ensure
    this bound, usually by clipping. The result is on a public lattice, so the low bits of a
    float reveal nothing. The sensitivity includes rounding to the lattice.

    Parameters
    ----------
    value : array-like of any shape, or a sum with its error
        Exact answer. It must not be released in any other way. A sum has ``total`` and ``error``,
        as returned by `~skdp.learner.exact_sum`.

    law : NoiseLaw

    sensitivity : float
        Largest change of the exact answer between neighbours, in the norm of the law.

    error : float, default=None
        Certified distance of ``value`` from the exact answer, in the same norm. Recorded releases
        report the sensitivity plus twice the error. None is for integers, whose error is 0, and
        for sums with an error of their own.

    lattice : Lattice, default=None
        Result of ``Lattice.for_sensitivity`` for these numbers, to reuse in many releases.

    random_state : None, int, RandomState, Generator or NoiseSource, default=None
        None draws from the operating system; anything else is for tests.

    purpose : str, default=""
        Description of the release, for the account of the fit. Public.

    Returns
    -------
    ndarray
        Noisy answer, of the shape of ``value``.

    Raises
    ------
    ValueError
        If floats are given without an error. The rounding error of a sum of floats depends on
        all rows.
    """
    if hasattr(value, "total"):
        value, error = value.total, value.error
    elif error is None and np.asarray(value).dtype.kind in "biu":
        error = 0.0
    if error is None:
        raise ValueError(
            "error must be the certified distance of floats from the exact answer: 0 without "
            "rounding errors, the error of the sum for a sum of floats; got None."
        )
    value = np.asarray(value, dtype=np.float64)
    if lattice is None:
        lattice = Lattice.for_sensitivity(
            sensitivity, size=value.size, order=law.order, error=error
        )
    noise = law.draw(noise_source(random_state), 1, value.size, lattice.sensitivity / lattice.step)
    noisy = lattice.release(value, noise.reshape(value.shape))
    # What was computed for neighbours may err on either side.
    return law.made(value, noisy, lattice, sensitivity + 2.0 * error, purpose)


def check_noise(level: float, size: int) -> None:
    """Refuse noise that no integer of the lattice could hold; ``level`` is for sensitivity 1."""
    if 1000.0 * level * math.sqrt(size) > 2.0**50:
        raise ValueError(
            "epsilon must be larger: the noise does not fit into the 53 bits of a float. With "
            "release='query', a smaller n_queries needs less noise."
        )


def check_memory(needed: float, rule: str, given: str | None = "") -> None:
    """Refuse what this machine could not hold; ``given=None`` if numbers are private."""
    try:
        available = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        available = 2**34
    if needed <= available:
        return
    if given is None:
        raise ValueError(f"{rule}: the fit needs more memory than this machine has.")
    raise ValueError(
        f"{rule}: the fit needs {needed / 2**30:.0f} GiB of the "
        f"{available / 2**30:.0f} GiB of this machine{given}."
    )


def least_level(size: int) -> float:
    """Level of noise below which rules need not go on.

    A lattice has steps of some ``1 / (200 sqrt(size))`` of the sensitivity. A rule that made that
    larger along with epsilon would round the weights to nothing.
    """
    return 1.0 / (20.0 * math.sqrt(size))


def check_span(
    law: NoiseLaw, size: int, target: ApproxDP | GaussianDP, *, growth: float = 1.0
) -> None:
    """Check that noise of ``size`` numbers fits its lattice, whatever the sensitivity.

    Parameters
    ----------
    law : NoiseLaw

    size : int

    target : ApproxDP or GaussianDP
        What the message names: epsilon, or the mu of a part of a budget.

    growth : float, default=1.0
        How often louder it may be.
    """
    # Steps are at least 1 / (200 sqrt(size)), and no norm of the noise is expected beyond.
    norm = growth * law.level(size) * (math.sqrt(size) + 60.0)
    refuse_span(200.0 * math.sqrt(size) * norm, size, target)


def refuse_span(n_steps: float, size: int, target: ApproxDP | GaussianDP) -> None:
    """Raise `ValueError` if noise may be more steps of its lattice than a float can count."""
    if not n_steps < 2.0**51:
        if isinstance(target, GaussianDP):
            got = f"mu={short_repr(target.mu)} for this release"
        else:
            got = short_repr(target.epsilon)
        raise ValueError(
            f"epsilon must be larger for {size} coefficients: the noise does not fit into "
            f"the 53 bits of a float; got {got}."
        )


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

    Privacy: as for `gaussian_mechanism`, with the sensitivity in l1 norm. The result satisfies
    pure ``guarantee.epsilon``-differential privacy.

    Parameters
    ----------
    value, guarantee, error, random_state
        As for `k_norm_mechanism`; an ``error`` is in l1 norm.

    l1_sensitivity : float
        Largest change in l1 norm between neighbours.

    Returns
    -------
    ndarray
        As for `gaussian_mechanism`.

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

    This is the pure mechanism for an l2 sensitivity. The norm of the noise has a Gamma
    distribution and its direction is uniform.

    Privacy: as for `gaussian_mechanism`. The result satisfies pure
    ``guarantee.epsilon``-differential privacy.

    Parameters
    ----------
    value, l2_sensitivity, guarantee, error, random_state
        As for `gaussian_mechanism`. ``guarantee`` is an `ApproxDP` whose epsilon is met.

    Returns
    -------
    ndarray
        As for `gaussian_mechanism`.

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

    Privacy: the result satisfies ``guarantee`` provided that ``value`` changes by at most
    ``l2_sensitivity`` in l2 norm between neighbouring data sets. The caller must ensure this
    bound, usually by clipping; this function cannot check it. The result is on a public lattice,
    so the low bits of a float reveal nothing. The sensitivity includes rounding to the lattice.

    Parameters
    ----------
    value : array-like of any shape
        Exact answer. It must not be released in any other way.

    l2_sensitivity : float
        Largest change in l2 norm between neighbours.

    guarantee : ApproxDP with positive delta, or GaussianDP
        Guarantee to meet.

    error, random_state
        As for `release`; an ``error`` is in l2 norm.

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
    """Release ``value`` with K-norm or Gaussian noise, whichever adds less noise.

    Privacy: as for `k_norm_mechanism` and `gaussian_mechanism`. The choice depends only on the
    dimension and the guarantee.

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
