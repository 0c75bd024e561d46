"""Clipping, additive noise (Laplace, K-norm, Gaussian), and the call that releases go through."""

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
    """Euclidean norm of each row; no row has a say in the norm of another.

    Parameters
    ----------
    X : {ndarray, CSR matrix or array} of shape (n_samples, n_features)
        Repeated entries of a sparse matrix count by their sum.

    Returns
    -------
    ndarray of shape (n_samples,)
        In double precision; NaN where a row holds one.
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
    """Scale rows longer than ``norm`` back onto the ball of that radius.

    Each row is treated alone and the map does not expand distances, so that clipping costs
    no privacy.

    Parameters
    ----------
    X : {ndarray, CSR matrix or array} of shape (n_samples, n_features)
        Finite values.

    norm : float, positive
        Euclidean bound.

    Returns
    -------
    same type as X
        A copy if a row was too long or entries were repeated, and ``X`` itself otherwise.
        Norms exceed ``norm`` by rounding at most. Integers become floats, and single
        precision stays.

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
        raise ValueError("X must be finite to be clipped.")
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
    """Multiples of a power of two, with the sensitivity of a value rounded to them.

    Parameters
    ----------
    step : float
        A power of two, so that multiples are exact floats.

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
            Certified distance, in the same norm, of the computed from the exact value.

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
            raise ValueError("value must be finite to be released.")
        # Clamping before the noise does not expand distances, after it is post-processing.
        limit = _LARGEST * self.step
        whole = np.rint(value.clip(-limit, limit) / self.step).astype(np.int64)
        whole += noise
        return whole.clip(-_LARGEST, _LARGEST) * self.step


KINDS = ("laplace", "k_norm", "gaussian")


@dataclass(frozen=True)
class NoiseLaw:
    """Law of additive noise for a sensitivity of 1, with what one release under it satisfies.

    Parameters
    ----------
    kind : {"laplace", "k_norm", "gaussian"}
        Laplace noise in each coordinate, for a sensitivity in l1 norm; noise of density
        proportional to ``exp(-norm / scale)``, and Gaussian noise, for one in l2 norm.

    scale : float
        Of the law, or standard deviation in a coordinate. What is drawn has a little more.

    guarantee : ApproxDP or GaussianDP
        Pure, or Gaussian.

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
        """Law of a kind that meets ``guarantee`` in one release.

        Parameters
        ----------
        kind : {"laplace", "k_norm", "gaussian"}

        guarantee : ApproxDP or GaussianDP
            An `ApproxDP` with a positive delta takes Gaussian noise by its
            :meth:`~skdp.privacy.ApproxDP.gaussian_target`, other noise by its epsilon.
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
        """Quieter law for a sensitivity in l2 norm: K-norm, or Gaussian if that is allowed.

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
        """Law of each of several releases that together satisfy the guarantee.

        Pure guarantees add up; Gaussian ones by the root of summed squares.
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
        """Norm of the sensitivity: 1 or 2."""
        return 1 if self.kind == "laplace" else 2

    def energy(self, size: int) -> float:
        """Mean squared norm of the noise of ``size`` numbers."""
        return size * self._variance(size) * self.scale**2

    def level(self, size: int) -> float:
        """Root mean square in a coordinate."""
        return math.sqrt(self._variance(size)) * self.scale

    def _variance(self, size: int) -> float:
        """Mean square in a coordinate, for a scale of 1."""
        return {"gaussian": 1.0, "laplace": 2.0, "k_norm": size + 1.0}[self.kind]

    def refining(self, target: ApproxDP) -> ApproxDP | GaussianDP | None:
        """What stands behind ``target`` where this law meets it; None if it says no more."""
        return None if target.delta == 0.0 else self.guarantee

    def on(self, lattice: Lattice, size: int, purpose: str = "") -> GridNoise:
        """Noise of many releases of ``size`` numbers each, on one lattice.

        Parameters
        ----------
        lattice : Lattice
            Its sensitivity is that of one release.

        size : int

        purpose : str, default=""
            Of the releases, in words.
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
        """Release one vector that is on a grid, whose sensitivity no other shares.

        Parameters
        ----------
        exact : ndarray of shape (size,)
            Multiples of the step. It must not be released in any other way.

        source : NoiseSource

        step : float
            Of the grid, a power of two.

        sensitivity : float

        purpose : str, default=""
            In words, for the account of the fit.

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
        """Account for a release that is made, whose declared sensitivity is that before rounding.

        Returns
        -------
        ndarray
            What goes on as released.
        """
        scale = self.scale * lattice.sensitivity * UP
        bounds: dict[str, Any] = dict(scale=scale, sensitivity=declared, law=self)
        note(purpose, self.kind, exact.size, **bounds)
        return recorded(Released, noisy, asked=exact, released=noisy, step=lattice.step, **bounds)

    def draw(self, source: NoiseSource, n: int, size: int, steps: float) -> np.ndarray:
        """Noise of ``n`` releases of ``size`` numbers each, in steps of a lattice.

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
    """Release a value with noise of ``law``: the one call through which every release passes.

    Privacy: the result satisfies ``law.guarantee`` provided that two neighbouring data sets move
    ``value`` by at most ``sensitivity`` in the norm of the law. The caller must ensure that bound,
    usually by clipping. The release lives on a public lattice, so that the low bits of a float
    reveal nothing; rounding is part of the sensitivity.

    Parameters
    ----------
    value : array-like of any shape, or a sum that knows its error
        Exact answer. It must not be released in any other way. A sum has ``total`` and ``error``,
        as `~skdp.learner.exact_sum` returns it.

    law : NoiseLaw

    sensitivity : float
        Largest change between neighbours, in the norm of the law.

    error : float, default=None
        Certified distance of ``value`` from the exact answer, in the same norm. ``sensitivity``
        is that of the exact answer; who records releases hears of their sum, twice the error.
        None is for integers, whose error is 0, and for sums that know theirs.

    lattice : Lattice, default=None
        That of ``Lattice.for_sensitivity`` for these numbers, if there are many such releases.

    random_state : None, int, RandomState, Generator or NoiseSource, default=None
        None draws from the operating system; anything else is for tests.

    purpose : str, default=""
        What is released, in words, for the account of the fit. Public.

    Returns
    -------
    ndarray
        Noisy answer, of the shape of ``value``.

    Raises
    ------
    ValueError
        If a value of floats comes without an error: a sum of floats has a rounding error, which
        depends on all rows.
    """
    if hasattr(value, "total"):
        value, error = value.total, value.error
    elif error is None and np.asarray(value).dtype.kind in "biu":
        error = 0.0
    if error is None:
        raise ValueError(
            "error must be the certified distance of floats from the exact answer: 0 for numbers "
            "without a rounding error, and that of the sum for a sum of floats; got None."
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
            "epsilon must be larger: the noise would not fit into the 53 bits of a float. With "
            "release='query', fewer n_queries need less noise."
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
        raise ValueError(f"{rule}: the fit would take more memory than this machine has.")
    raise ValueError(
        f"{rule}: the fit would take {needed / 2**30:.0f} GiB of the "
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
            f"epsilon must be larger for {size} coefficients: the noise would not fit into "
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

    The norm of the noise has a Gamma distribution and its direction is uniform: the pure
    mechanism for an l2 sensitivity.

    Privacy: as for `gaussian_mechanism`. The result satisfies pure
    ``guarantee.epsilon``-differential privacy.

    Parameters
    ----------
    value, l2_sensitivity, guarantee, error, random_state
        As for `gaussian_mechanism`, the guarantee an ApproxDP whose epsilon is met.

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
