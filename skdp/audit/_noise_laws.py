"""Tests of the magnitudes of noise: too little, or of another law than declared.

Magnitudes are known up to half a step of the lattice; it counts for the law that is declared.
"""

from collections.abc import Iterator

import numpy as np
from scipy.special import betainc, gamma, gammainc, gammaincc, gammaln, logsumexp

from skdp.audit._drawn import GAUSSIAN, K_NORM, LAPLACE, Drawn
from skdp.audit._suspicion import Suspicion, groups_of, place_of

__all__ = [
    "other_laws",
    "other_ratios",
    "too_little",
    "too_little_at_the_centre",
    "too_little_in_coordinates",
    "too_short",
]


def too_little(drawn: Drawn, level: str, share: float) -> list[Suspicion]:
    """The statistic that is sufficient for the scale has a Gamma distribution.

    Parameters
    ----------
    drawn : Drawn

    level : {"all", "place", "position", "fit", "record"}
        Of which noise the scale is tested.

    share : float
        Of the alarm.
    """
    groups, name = groups_of(drawn, level)
    kinds, found = np.unique(drawn.kinds), []
    some_noise = np.bincount(groups, drawn.per_record(drawn.signs**2))
    for kind in kinds:
        chosen = drawn.kinds == kind
        shape, energy = _energies(drawn, kind, drawn.high)
        shapes, energies = (np.bincount(groups[chosen], v[chosen]) for v in (shape, energy))
        p = np.ones(len(shapes))
        present = shapes > 0
        p[present] = gammainc(shapes[present], energies[present])
        ratio = energies / np.maximum(shapes, 0.5)
        ratio = np.sqrt(ratio) if kind == GAUSSIAN else ratio

        def what(i: int, ratio: np.ndarray = ratio) -> str:
            if not some_noise[i]:
                return f"there is no noise{name(i)}"
            return f"the noise is about {ratio[i]:.2g} times what is declared{name(i)}"

        found.append(Suspicion(share / len(kinds), p, what, place_of(drawn, level)))
    return found


def too_little_in_coordinates(drawn: Drawn, level: str, share: float) -> list[Suspicion]:
    """One coordinate of releases: of K-norm noise, its part in the length of its vector.

    Each has a known distribution. The product of the probabilities to see less has that of as
    many uniform numbers (Fisher).
    """
    groups, name = groups_of(drawn, level)
    size = drawn.sizes.max()
    index = np.arange(len(drawn.steps)) - np.repeat(drawn.starts, drawn.sizes)
    names, group = np.unique(np.repeat(groups, drawn.sizes) * size + index, return_inverse=True)
    losses = np.bincount(group, -np.log(np.maximum(_coordinate_levels(drawn), 1e-300)))
    place = place_of(drawn, level)
    return [
        Suspicion(
            share,
            gammaincc(np.bincount(group), losses),
            lambda i: (
                f"coordinate {names[i] % size + 1} has too little noise{name(names[i] // size)}"
            ),
            lambda i: place(names[i] // size),
        )
    ]


def _coordinate_levels(drawn: Drawn) -> np.ndarray:
    """Probability that the magnitude of a coordinate is less; of K-norm noise, given the norm."""
    kinds, sizes = np.repeat(drawn.kinds, drawn.sizes), np.repeat(drawn.sizes, drawn.sizes)
    high = drawn.high
    levels = -np.expm1(-high)
    normal = kinds == GAUSSIAN
    levels[normal] = gammainc(0.5, high[normal] ** 2 / 2.0)
    vector = (kinds == K_NORM) & (sizes > 1)
    squares = drawn.low**2
    others = np.maximum(np.repeat(drawn.per_record(squares), drawn.sizes) - squares, 0.0)[vector]
    square = np.maximum(high[vector] ** 2, 1e-300)
    levels[vector] = betainc(0.5, (sizes[vector] - 1) / 2.0, square / (square + others))
    return levels


def _energies(drawn: Drawn, kind: int, sizes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Shape of the Gamma distribution of each record, and its value, for magnitudes ``sizes``."""
    if kind == LAPLACE:
        return drawn.sizes.astype(np.float64), drawn.per_record(sizes)
    squares = drawn.per_record(sizes**2)
    if kind == K_NORM:
        return drawn.sizes.astype(np.float64), np.sqrt(squares)
    return drawn.sizes / 2.0, squares / 2.0


def too_little_at_the_centre(drawn: Drawn, share: float) -> list[Suspicion]:
    """Is more noise small than should be? As where some of it is missing. (DKW, one-sided.)"""
    kinds, found = np.unique(drawn.kinds), []
    for kind in kinds:
        levels = _levels(drawn, kind)
        p = np.exp(-2.0 * len(levels) * _excess(levels) ** 2)
        found.append(
            Suspicion(
                share / len(kinds),
                np.array([p]),
                lambda i: "more of the noise is small than the law that is declared allows",
            )
        )
    return found


def too_short(drawn: Drawn, share: float) -> list[Suspicion]:
    """Is even the largest noise small, as where it is truncated? All levels are below u by u^n."""
    kinds = np.unique(drawn.kinds)
    what = "the largest of the noise is smaller than the law that is declared allows"
    found = []
    for kind in kinds:
        levels = _levels(drawn, kind)
        p = np.exp(len(levels) * np.log(np.maximum(levels.max(), 1e-300)))
        found.append(Suspicion(share / len(kinds), np.array([p]), lambda i: what))
    return found


def _levels(drawn: Drawn, kind: int) -> np.ndarray:
    """Probabilities to see less than each magnitude; of K-norm noise than each norm."""
    chosen = drawn.kinds == kind
    if kind == K_NORM:
        shape, energy = _energies(drawn, kind, drawn.high)
        return gammainc(shape[chosen], energy[chosen])
    high = drawn.high[np.repeat(chosen, drawn.sizes)]
    return -np.expm1(-high) if kind == LAPLACE else gammainc(0.5, high**2 / 2.0)


def _excess(levels: np.ndarray) -> float:
    """Largest excess of the empirical distribution over the uniform one."""
    levels, n = np.sort(levels), len(levels)
    return max(0.0, float(np.max(np.arange(1, n + 1) / n - levels)))


# Of other laws, in units of the declared scale.
_SCALES = 2.0 ** np.arange(-8.0, 10.1, 0.25)[:, np.newaxis]
_OTHER_SHAPE = "the noise of single numbers has another shape than the law that is declared"

# Another shape, at any scale: one that is larger than declared breaks no promise.


def other_laws(drawn: Drawn, share: float) -> list[Suspicion]:
    """Likelihood of other laws over that of the declared one at the scale that suits it best.

    Such a ratio is above 1 / p with probability p at most (Markov; Wasserman, Ramdas and
    Balakrishnan, "Universal inference", PNAS 2020, for the unknown scale). The other laws are a
    mixture, each at many scales. Magnitudes are rounded to what is worse for them, and better for
    the declared law.
    """
    found, kinds = [], np.unique(drawn.kinds)
    others = list(_alternatives(drawn))
    for level in ("place", "all"):
        groups, _ = groups_of(drawn, level)
        for kind in kinds:
            chosen = drawn.kinds == kind

            def total(
                values: np.ndarray, groups: np.ndarray = groups, chosen: np.ndarray = chosen
            ) -> np.ndarray:
                return np.bincount(groups[chosen], values[chosen])

            shape, energy = map(total, _energies(drawn, kind, drawn.low))
            # Best common factor of the declared scale; squared for a Gaussian law.
            factor = np.maximum(energy / np.maximum(shape, 0.5), 1e-12)
            declared = total(_log_peaks(drawn, kind)) - shape * np.log(factor) - energy / factor
            each = [
                total(constant) - total(n) * np.log(_SCALES) - total(power) / _SCALES**exponent
                for constant, n, power, exponent in others
            ]
            mixture = logsumexp(np.concatenate(each), axis=0) - np.log(len(each) * len(_SCALES))
            found.append(
                Suspicion(
                    share / 2 / len(kinds),
                    np.exp(-np.clip(mixture - declared, 0.0, 700.0)),
                    lambda i: "the noise has another law than the one that is declared",
                    place_of(drawn, level),
                )
            )
    return found


def _alternatives(drawn: Drawn) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray, float]]:
    """Laws of each record: ``constant - n log(scale) - power / scale^exponent``, less or equal.

    Independent coordinates of density ``exp(-|x|^exponent)``, from heavy tails to almost uniform,
    or with a hole at 0 (Gamma); and vectors of uniform direction with a Gamma norm, from almost
    nothing to a sphere.
    """
    n = drawn.sizes.astype(np.float64)
    for exponent in (0.5, 1.0, 2.0, 4.0, 8.0):
        constant = n * np.log(exponent / 2.0 / gamma(1.0 / exponent))
        with np.errstate(over="ignore"):
            yield constant, n, drawn.per_record(drawn.high**exponent), exponent
    logs = drawn.per_record(np.log(np.maximum(drawn.low, 1e-300)))
    total = drawn.per_record(drawn.high)
    for shape in (2.0, 4.0, 8.0, 20.0):
        yield (shape - 1.0) * logs - n * np.log(2.0 * gamma(shape)), n * shape, total, 1.0
    least, most = (np.sqrt(drawn.per_record(sizes**2)) for sizes in (drawn.low, drawn.high))
    log_sphere = np.log(2.0) + n / 2.0 * np.log(np.pi) - gammaln(n / 2.0)
    for ratio in (0.25, 0.5, 1.0, 2.0, 4.0, 16.0):
        norms = n * ratio
        log_norm = np.log(np.maximum(least if ratio > 1.0 else most, 1e-300))
        yield (norms - n) * log_norm - log_sphere - gammaln(norms), norms, most, 1.0


def _log_peaks(drawn: Drawn, kind: int) -> np.ndarray:
    """Log-density at 0 of each record, as if all were of one law."""
    d = drawn.sizes.astype(np.float64)
    if kind == LAPLACE:
        return -d * np.log(2.0)
    if kind == GAUSSIAN:
        return -d / 2.0 * np.log(2.0 * np.pi)
    return gammaln(d / 2.0 + 1.0) - gammaln(d + 1.0) - d / 2.0 * np.log(np.pi)


def other_ratios(drawn: Drawn, share: float) -> list[Suspicion]:
    """Ratios of two magnitudes, which no scale enters, have a known law. (DKW.)"""
    found: list[Suspicion] = []
    for kind in (LAPLACE, K_NORM, GAUSSIAN):
        chosen = drawn.kinds == kind
        if kind == K_NORM:  # of the same vector, for others have another length
            index = np.arange(len(drawn.steps)) - np.repeat(drawn.starts, drawn.sizes)
            first = np.repeat(chosen, drawn.sizes) & (index % 2 == 0)
            first &= index + 1 < np.repeat(drawn.sizes, drawn.sizes)
            first = np.flatnonzero(first)
            second = first + 1
        else:
            numbers = np.flatnonzero(np.repeat(chosen, drawn.sizes))
            first, second = numbers[: len(numbers) // 2 * 2].reshape(-1, 2).T
        if not len(first):
            continue
        low, high = drawn.low, drawn.high
        least = low[first] / np.maximum(low[first] + high[second], 1e-300)
        most = high[first] / np.maximum(high[first] + low[second], 1e-300)
        if kind != LAPLACE:
            least, most = (2.0 / np.pi * np.arctan2(q, 1.0 - q) for q in (least, most))
        distance = max(_excess(most), _excess(1.0 - least))
        p = 2.0 * np.exp(-2.0 * len(first) * distance**2)
        found.append(Suspicion(share / 4, np.array([p]), lambda i: _OTHER_SHAPE))
    return found + _norm_ratios(drawn, share / 4)


def _norm_ratios(drawn: Drawn, share: float) -> list[Suspicion]:
    """Ratios of the norms of two K-norm vectors of one size have a Beta distribution."""
    levels = []
    norms = [_energies(drawn, K_NORM, sizes)[1] for sizes in (drawn.low, drawn.high)]
    for size in np.unique(drawn.sizes[drawn.kinds == K_NORM]).tolist():
        chosen = np.flatnonzero((drawn.kinds == K_NORM) & (drawn.sizes == size))
        first, second = chosen[: len(chosen) // 2 * 2].reshape(-1, 2).T
        low, high = norms
        for a, b in ((low[first], high[second]), (high[first], low[second])):
            levels.append(betainc(size, size, a / np.maximum(a + b, 1e-300)))
    if not levels or not sum(map(len, levels)):
        return []
    least, most = np.concatenate(levels[::2]), np.concatenate(levels[1::2])
    distance = max(_excess(most), _excess(1.0 - least))
    p = 2.0 * np.exp(-2.0 * len(least) * distance**2)
    what = "norms of the noise have another law than the one that is declared"
    return [Suspicion(share, np.array([p]), lambda i: what)]
