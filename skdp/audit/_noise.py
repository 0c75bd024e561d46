"""Tests whether the drawn randomness is the declared noise."""

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache, partial
from itertools import chain, combinations, count
from typing import Any

import numpy as np
from scipy import stats
from scipy.optimize import minimize_scalar
from scipy.special import (
    betainc,
    gamma,
    gammainc,
    gammaincc,
    gammaincinv,
    gammaln,
    logsumexp,
    ndtr,
)

from skdp._recording import OneOfRuns, Perturbed, Selected
from skdp.audit._density import linear_findings
from skdp.audit._findings import Finding
from skdp.audit._runs import Transcript
from skdp.mechanisms import NoiseLaw, Released
from skdp.privacy import ApproxDP, GaussianDP

# Numbers of laws in arrays.
LAPLACE, K_NORM, GAUSSIAN = range(3)
_KINDS = ("laplace", "k_norm", "gaussian")
_LARGEST = 2.0**53  # where a lattice ends
_ROUNDING = 1e-9  # relative, of scales that were computed in another order


def broken_records(fits: Sequence[Sequence[Released]]) -> list[Finding]:
    """What single records show, without any chance: each fault once for each place."""
    found: dict[tuple[str, str], Finding] = {}
    for record in (one for fit in fits for one in fit):
        law = record.law
        of_law = _fault_of_law(law)
        faults = [("law", of_law)] if of_law else []
        if not record.scale >= law.scale * record.sensitivity * (1.0 - _ROUNDING):
            faults.append(("law", "the scale is below that of the law times the sensitivity"))
        if not record.step > 0.0:
            faults.append(("noise", "what is released is on no lattice"))
        if record.asked.shape != record.released.shape:
            faults.append(("law", "what is released has another shape than what is asked"))
        for kind, what in faults:
            found.setdefault((what, record.where), Finding(kind, what, record.where))
    return list(found.values())


@lru_cache(maxsize=256)
def _fault_of_law(law: NoiseLaw) -> str:
    """Why a law, for a sensitivity of 1, does not satisfy its guarantee; empty if it does."""
    guarantee = law.guarantee
    if law.kind != "gaussian":
        if not isinstance(guarantee, ApproxDP):
            return f"{law.kind} noise states a guarantee that is not pure"
        needed, name = guarantee.epsilon, "1 / epsilon"
    else:
        if isinstance(guarantee, ApproxDP) and guarantee.delta > 0.0:
            guarantee = guarantee.gaussian_target()
        if not isinstance(guarantee, GaussianDP):
            return "gaussian noise states a guarantee that is not Gaussian"
        needed, name = guarantee.mu, "1 / mu"
    enough = law.scale * needed >= 1.0 - _ROUNDING
    return "" if enough else f"the scale of the law is below {name} of its guarantee"


class Drawn:
    """Noise of many records, one after the other, fit by fit.

    Where what is asked is beyond the lattice, or the noise might be, both are clamped: such
    records say nothing. Which they are does not depend on the noise.

    Parameters
    ----------
    chosen : list of (Released, int, int)
        Vectors that are on a lattice and of a known scale, with their fit and position in it.

    Attributes
    ----------
    steps : ndarray of shape (n_numbers,)
        In steps of the lattice.

    half : ndarray of shape (n_numbers,)
        Half a step in units of the scale that was recorded: what rounding may have moved.

    low, high : ndarray of shape (n_numbers,)
        Bounds on the magnitude before it was rounded, in units of the scale.

    sizes, kinds, places, fits, positions : ndarray of shape (n_records,)
        Of each record: its numbers, law, place in the code, fit and number within the fit.

    wheres : list of str
        Places in the code.

    off_lattice : list of str
        Those that released what is no multiple of the step.
    """

    def __init__(self, chosen: list[tuple[Released, int, int]]) -> None:
        records, fit_of, position_of = zip(*chosen, strict=True)
        sizes, scale, step = np.array([(r.asked.size, r.scale, r.step) for r in records]).T
        sizes = sizes.astype(np.int64)
        starts = np.cumsum(sizes) - sizes
        asked = np.concatenate([one.asked.ravel() for one in records]).astype(np.float64)
        released = np.concatenate([one.released.ravel() for one in records])
        with np.errstate(over="ignore", invalid="ignore"):
            step_each = np.repeat(step, sizes)
            asked, released = asked / step_each, released.astype(np.float64) / step_each
            off = ~((np.rint(released) == released) & np.isfinite(released))
            far = ~(np.abs(asked) <= _LARGEST / 2.0) | ~np.isfinite(released)
            steps = released - np.rint(asked)
        wheres, places = np.unique([one.where for one in records], return_inverse=True)
        off_places = np.unique(places[np.add.reduceat(off, starts, dtype=np.int64) > 0])
        kept = (np.add.reduceat(far, starts, dtype=np.int64) == 0) & (scale / step < 2.0**46)
        numbers = np.repeat(kept, sizes)
        half, steps = np.repeat(0.5 * step / scale, sizes)[numbers], steps[numbers]
        size = np.abs(steps) * 2.0 * half
        self.steps, self.half = steps, half
        self.low = np.maximum(size - half, 0.0) * (1.0 - _ROUNDING)
        self.high = (size + half) * (1.0 + _ROUNDING)
        self.sizes, self.places = sizes[kept], places[kept]
        self.kinds = np.array([_KINDS.index(one.law.kind) for one in records])[kept]
        self.fits, self.positions = np.array(fit_of)[kept], np.array(position_of)[kept]
        self.wheres, self.off_lattice = wheres.tolist(), wheres[off_places].tolist()

    def __len__(self) -> int:
        return len(self.sizes)

    @cached_property
    def starts(self) -> np.ndarray:
        """Where the numbers of each record begin."""
        return np.cumsum(self.sizes) - self.sizes

    @cached_property
    def index(self) -> np.ndarray:
        """Of each number, within its record."""
        return np.arange(len(self.steps)) - self.each(self.starts)

    def each(self, values: np.ndarray) -> np.ndarray:
        """``values`` of records, for each of their numbers."""
        return np.repeat(values, self.sizes)

    @cached_property
    def signs(self) -> np.ndarray:
        """Of each number: -1, 0 or 1."""
        return np.sign(self.steps)

    def per_record(self, values: np.ndarray) -> np.ndarray:
        """Sums of ``values``, one for each number, over each record."""
        return np.add.reduceat(values, self.starts)

    def rows(self, chosen: np.ndarray, values: np.ndarray) -> np.ndarray:
        """``values`` of numbers of the chosen records, all of one size, one record a row."""
        starts, sizes = self.starts[chosen], self.sizes[chosen]
        return values[starts[:, np.newaxis] + np.arange(sizes[0])]

    def matched(self) -> tuple[np.ndarray, np.ndarray]:
        """Records of the fits that released vectors of the same laws and sizes as most others.

        Returns
        -------
        records : ndarray of shape (n_matched, n_positions)
            Numbers of records, one fit a row.

        fits : ndarray of shape (n_matched,)
        """
        names = np.unique(self.fits)
        bounds = np.searchsorted(self.fits, names), np.searchsorted(self.fits, names, "right")
        shapes = [
            (self.kinds[a:b].tobytes(), self.sizes[a:b].tobytes(), self.positions[a:b].tobytes())
            for a, b in zip(*bounds, strict=True)
        ]
        ((common, _),) = Counter(shapes).most_common(1)
        like = np.array([shape == common for shape in shapes])
        begins, ends = bounds[0][like], bounds[1][like]
        return begins[:, np.newaxis] + np.arange(ends[0] - begins[0]), names[like]

    def by_fit(self, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """``values`` of the fits that are `matched`, one fit a row, and which fits these are."""
        records, fits = self.matched()
        numbers = self.each(np.isin(np.arange(len(self)), records))
        return values[numbers].reshape(len(fits), -1), fits


@dataclass(frozen=True, eq=False)
class Suspicion:
    """p-values of one kind of test in several places.

    Parameters
    ----------
    share : float
        Of the alarm, for all of them together.

    p : ndarray
        Bounds on the probability, under what is declared, to see as much or more.

    what : str or callable
        The sentence of a finding, or ``what(i)`` is.

    where : callable, default=None
        ``where(i)`` is its place in the code.
    """

    share: float
    p: np.ndarray | float
    what: str | Callable[[int], str]
    where: Callable[[int], str] = lambda i: ""

    def confirmed(self, alarm: float) -> Iterator[Finding]:
        """Findings of tests whose p-values leave no doubt, the clearest first."""
        p = np.atleast_1d(self.p)
        clear = np.flatnonzero(p <= alarm * self.share / max(len(p), 1))
        for i in clear[np.argsort(p[clear], kind="stable")][:_SHOWN].tolist():
            what = self.what if isinstance(self.what, str) else self.what(i)
            yield Finding("noise", what, self.where(i))


def groups_of(drawn: Drawn, level: str) -> tuple[np.ndarray, Callable, Callable]:
    """Groups of records at a level.

    Parameters
    ----------
    drawn : Drawn

    level : {"all", "place", "position", "fit", "record"}

    Returns
    -------
    groups : ndarray of int, shape (n_records,)

    name : callable
        What a group is called in a sentence.

    where : callable
        What stands in a finding as the place in the code.
    """
    wheres, places, positions, fits = drawn.wheres, drawn.places, drawn.positions, drawn.fits
    if level == "place":
        return places, lambda i: "", lambda i: wheres[i]
    if level == "position":
        return positions, lambda i: f" in release {i + 1} of each fit", lambda i: ""
    if level == "fit":
        return fits, lambda i: f" in fit {i + 1}", lambda i: ""
    if level == "record":

        def name(i: int) -> str:
            return f" in release {positions[i] + 1} of fit {fits[i] + 1}"

        return np.arange(len(drawn)), name, lambda i: wheres[places[i]]
    return np.zeros(len(drawn), dtype=np.int64), lambda i: "", lambda i: ""


def too_little(drawn: Drawn, share: float, level: str) -> list[Suspicion]:
    """The statistic that is sufficient for the scale has a Gamma distribution.

    Parameters
    ----------
    drawn : Drawn

    share : float
        Of the alarm.

    level : {"all", "place", "position", "fit", "record"}
        Of which noise the scale is tested.
    """
    groups, name, where = groups_of(drawn, level)
    kinds, found = np.unique(drawn.kinds), []
    some_noise = np.bincount(groups, drawn.per_record(drawn.signs**2))
    for kind in kinds:
        chosen, each = drawn.kinds == kind, _energies(drawn, kind, drawn.high)
        shapes, energies = (np.bincount(groups[chosen], values[chosen]) for values in each)
        p = np.where(shapes > 0, gammainc(np.maximum(shapes, 0.5), energies), 1.0)
        ratio = energies / np.maximum(shapes, 0.5)
        ratio = np.sqrt(ratio) if kind == GAUSSIAN else ratio

        def what(i: int, ratio: np.ndarray = ratio) -> str:
            if not some_noise[i]:
                return f"there is no noise{name(i)}"
            return f"the noise is about {ratio[i]:.2g} times what is declared{name(i)}"

        found.append(Suspicion(share / len(kinds), p, what, where))
    return found


def too_little_in_coordinates(drawn: Drawn, share: float, level: str) -> list[Suspicion]:
    """One coordinate of releases: of K-norm noise, its part in the length of its vector.

    Each has a known distribution. The product of the probabilities to see less has that of as
    many uniform numbers (Fisher).
    """
    groups, name, where = groups_of(drawn, level)
    size = drawn.sizes.max()
    names, group = np.unique(drawn.each(groups) * size + drawn.index, return_inverse=True)
    losses = np.bincount(group, -np.log(np.maximum(_coordinate_levels(drawn), 1e-300)))

    def what(i: int) -> str:
        return f"coordinate {names[i] % size + 1} has too little noise{name(names[i] // size)}"

    p = gammaincc(np.bincount(group), losses)
    return [Suspicion(share, p, what, lambda i: where(names[i] // size))]


def _coordinate_levels(drawn: Drawn) -> np.ndarray:
    """Probability that the magnitude of a coordinate is less; of K-norm noise, given the norm."""
    kinds, sizes = drawn.each(drawn.kinds), drawn.each(drawn.sizes)
    high = drawn.high
    levels = -np.expm1(-high)
    normal = kinds == GAUSSIAN
    levels[normal] = gammainc(0.5, high[normal] ** 2 / 2.0)
    vector = (kinds == K_NORM) & (sizes > 1)
    squares = drawn.low**2
    others = np.maximum(drawn.each(drawn.per_record(squares)) - squares, 0.0)[vector]
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
    what = "more of the noise is small than the law that is declared allows"
    levels = _levels(drawn)
    p = [np.exp(-2.0 * len(each) * _excess(each) ** 2) for each in levels]
    return [Suspicion(share / len(levels), each, what) for each in p]


def too_short(drawn: Drawn, share: float) -> list[Suspicion]:
    """Is even the largest noise small, as where it is truncated? All levels are below u by u^n."""
    what = "the largest of the noise is smaller than the law that is declared allows"
    levels = _levels(drawn)
    p = [np.exp(len(each) * np.log(np.maximum(each.max(), 1e-300))) for each in levels]
    return [Suspicion(share / len(levels), each, what) for each in p]


def _levels(drawn: Drawn) -> list[np.ndarray]:
    """Of each law, probabilities to see less than each magnitude; of K-norm noise than a norm."""
    found = []
    for kind in np.unique(drawn.kinds):
        chosen = drawn.kinds == kind
        if kind == K_NORM:
            shape, energy = _energies(drawn, kind, drawn.high)
            found.append(gammainc(shape[chosen], energy[chosen]))
        else:
            found.append(_coordinate_levels(drawn)[drawn.each(chosen)])
    return found


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
        groups, _, where = groups_of(drawn, level)
        for kind in kinds:
            chosen = drawn.kinds == kind
            total = partial(_totals, groups[chosen], chosen)
            shape, energy = map(total, _energies(drawn, kind, drawn.low))
            # Best common factor of the declared scale; squared for a Gaussian law.
            factor = np.maximum(energy / np.maximum(shape, 0.5), 1e-12)
            declared = total(_log_peaks(drawn, kind)) - shape * np.log(factor) - energy / factor
            each = [
                total(constant) - total(n) * np.log(_SCALES) - total(power) / _SCALES**exponent
                for constant, n, power, exponent in others
            ]
            mixture = logsumexp(np.concatenate(each), axis=0) - np.log(len(each) * len(_SCALES))
            p = np.exp(-np.clip(mixture - declared, 0.0, 700.0))
            what = "the noise has another law than the one that is declared"
            found.append(Suspicion(share / 2 / len(kinds), p, what, where))
    return found


def _totals(groups: np.ndarray, chosen: np.ndarray, values: np.ndarray) -> np.ndarray:
    return np.bincount(groups, values[chosen])


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
            first = drawn.each(chosen) & (drawn.index % 2 == 0)
            first = np.flatnonzero(first & (drawn.index + 1 < drawn.each(drawn.sizes)))
            second = first + 1
        else:
            first, second = _in_twos(np.flatnonzero(drawn.each(chosen)))
        if not len(first):
            continue
        low, high = drawn.low, drawn.high
        least = low[first] / np.maximum(low[first] + high[second], 1e-300)
        most = high[first] / np.maximum(high[first] + low[second], 1e-300)
        if kind != LAPLACE:
            least, most = (2.0 / np.pi * np.arctan2(q, 1.0 - q) for q in (least, most))
        found.append(Suspicion(share / 4, _p_of_uniform(least, most), _OTHER_SHAPE))
    return found + _norm_ratios(drawn, share / 4)


def _norm_ratios(drawn: Drawn, share: float) -> list[Suspicion]:
    """Ratios of the norms of two K-norm vectors of one size have a Beta distribution."""
    levels = []
    low, high = (_energies(drawn, K_NORM, sizes)[1] for sizes in (drawn.low, drawn.high))
    for size in np.unique(drawn.sizes[drawn.kinds == K_NORM]).tolist():
        chosen = np.flatnonzero((drawn.kinds == K_NORM) & (drawn.sizes == size))
        first, second = _in_twos(chosen)
        for a, b in ((low[first], high[second]), (high[first], low[second])):
            levels.append(betainc(size, size, a / np.maximum(a + b, 1e-300)))
    if not sum(map(len, levels)):
        return []
    p = _p_of_uniform(np.concatenate(levels[::2]), np.concatenate(levels[1::2]))
    what = "norms of the noise have another law than the one that is declared"
    return [Suspicion(share, p, what)]


def _in_twos(places: np.ndarray) -> np.ndarray:
    """Each second place, and the one after it."""
    return places[: len(places) // 2 * 2].reshape(-1, 2).T


def _p_of_uniform(least: np.ndarray, most: np.ndarray) -> float:
    """Of numbers that are uniform, known up to bounds (DKW)."""
    distance = max(_excess(most), _excess(1.0 - least))
    return float(2.0 * np.exp(-2.0 * len(least) * distance**2))


MOST_PAIRED = 700  # of so many vectors or coordinates, each is compared with each
_LAGS = 16  # of more, each with these that follow


# Signs, which are fair coins whatever the magnitudes are


def coin(totals: np.ndarray, n: np.ndarray | int) -> np.ndarray:
    """Bound on the probability that ``n`` fair signs add up to as much in absolute value.

    Zeros are no signs. Where they fall may depend on earlier signs, by a scale that was chosen
    from earlier releases; no choice of when to stop reaches a total with more than twice the
    probability that all ``n`` have (reflection principle).
    """
    totals = np.abs(np.rint(totals))
    n = np.broadcast_to(np.asarray(n, dtype=np.float64), totals.shape)
    p = np.ones(totals.shape)
    some = totals > 0
    least = np.ceil((n[some] + totals[some]) / 2.0)
    p[some] = np.minimum(1.0, 4.0 * betainc(least, n[some] - least + 1.0, 0.5))
    return p


def asymmetric(drawn: Drawn, share: float, level: str) -> list[Suspicion]:
    """Noise of one sign more often than of the other, in the groups of a level."""
    groups, name, where = groups_of(drawn, level)
    p = coin(np.bincount(groups, drawn.per_record(drawn.signs)), np.bincount(groups, drawn.sizes))
    return [Suspicion(share, p, lambda i: f"the noise is not symmetric around 0{name(i)}", where)]


def shared_by_coordinates(drawn: Drawn, share: float) -> list[Suspicion]:
    """Coordinates of one vector: neighbours by place, and each pair."""
    products = np.zeros(len(drawn.signs))
    products[:-1] = drawn.signs[:-1] * drawn.signs[1:]
    products[drawn.starts + drawn.sizes - 1] = 0.0  # the next is of another record
    totals = np.bincount(drawn.places, drawn.per_record(products), len(drawn.wheres))
    n = np.bincount(drawn.places, drawn.sizes - 1, len(drawn.wheres))
    what = "coordinates of one release share their noise"
    found = [Suspicion(share / 2, coin(totals, n), what, lambda i: drawn.wheres[i])]
    sizes = [size for size in np.unique(drawn.sizes).tolist() if 2 < size <= MOST_PAIRED]
    for size in sizes:
        rows = drawn.rows(drawn.sizes == size, drawn.signs)
        found.append(Suspicion(share / 2 / len(sizes), _pairs(rows.T), what))
    return found


def _pairs(rows: np.ndarray) -> np.ndarray:
    """p-values of the agreement of each two rows of signs."""
    rows = rows.astype(np.float64 if rows.shape[1] > 2**23 else np.float32)
    above = np.triu_indices(len(rows), 1)
    return coin((rows @ rows.T)[above].astype(np.float64), rows.shape[1])


def _along(rows: np.ndarray, lag: int) -> tuple[float, int]:
    """Agreement of rows with those ``lag`` later, which is that of as many fair coins."""
    n = max(0, len(rows) - lag)
    return float(np.sum(rows[lag:] * rows[:n])), n * int(np.prod(rows.shape[1:]))


def shared_by_releases(drawn: Drawn, share: float) -> list[Suspicion]:
    """Releases of one fit that have as many numbers: those that follow, and each pair."""
    records, _ = drawn.matched()
    sizes, found = drawn.sizes[records[0]], []
    several = [size for size in np.unique(sizes).tolist() if np.sum(sizes == size) > 1]
    for size in several:
        places = np.flatnonzero(sizes == size)
        rows = drawn.rows(records[:, places].ravel(), drawn.signs)
        rows = rows.reshape(len(records), len(places), size).swapaxes(0, 1)
        lags = range(1, min(_LAGS, len(places) - 1) + 1)
        totals, n = np.transpose([_along(rows, lag) for lag in lags])
        each = share / len(several)
        found.append(Suspicion(each / 2, coin(totals, n), "releases of one fit share noise"))
        if len(places) <= MOST_PAIRED:
            above = [1 + places[side] for side in np.triu_indices(len(places), 1)]

            def what(i: int, above: list = above) -> str:
                return f"releases {above[0][i]} and {above[1][i]} of each fit share their noise"

            found.append(Suspicion(each / 2, _pairs(rows.reshape(len(places), -1)), what))
    return found


def shared_by_fits(drawn: Drawn, share: float) -> list[Suspicion]:
    """The same numbers in other fits: in those that follow, and in each pair."""
    rows, fits = drawn.by_fit(drawn.signs)
    if len(fits) < 2:
        return []
    totals, n = _along(rows, 1)
    found = [Suspicion(share / 2, coin(np.array([totals]), n), "the fits share their noise")]
    if len(fits) <= MOST_PAIRED:
        first, second = (1 + fits[side] for side in np.triu_indices(len(fits), 1))

        def what(i: int) -> str:
            return f"fits {first[i]} and {second[i]} share noise"

        found.append(Suspicion(share / 2, _pairs(rows), what))
    return found


# Repetitions, which tell of few seeds


def _repeats(n: np.ndarray, n_distinct: np.ndarray, log_mass: np.ndarray) -> np.ndarray:
    """Bound on the probability of as many repetitions among ``n`` draws.

    Given earlier draws, one repeats any of them with probability at most their number times the
    largest mass of a point. Chernoff's bound for independent events holds for such, too.
    """
    k = np.asarray(n - n_distinct, dtype=np.float64)
    log_mean = np.log(np.maximum(n, 1)) + np.log(np.maximum(n - 1, 1)) - np.log(2.0) + log_mass
    mean = np.exp(np.minimum(log_mean, 700.0))
    p = np.ones(k.shape)
    many = k > mean  # hence k >= 1
    k, mean, log_mean = k[many], mean[many], log_mean[many]
    p[many] = np.exp(k - mean + k * (log_mean - np.log(k)))
    return p


def _log_masses(drawn: Drawn) -> np.ndarray:
    """Bound on the log-mass of a point of the lattice, for each number given all others.

    Densities are at most ``1 / (2 scale)``, or ``1 / (sqrt(2 pi) scale)`` if Gaussian. Those of
    K-norm noise given the other coordinates, too: ``sqrt(x^2 + r^2) - r <= |x|``.
    """
    peak = np.where(drawn.kinds == GAUSSIAN, 1.0 / np.sqrt(2.0 * np.pi), 0.5)
    return np.minimum(0.0, np.log(2.0 * drawn.half * drawn.each(peak)))


def _distinct(rows: np.ndarray) -> int:
    rows = np.ascontiguousarray(rows + 0.0)  # one zero only
    return len(np.unique(rows.view(np.dtype((np.void, rows.shape[1] * rows.itemsize)))))


def repeated_fits(drawn: Drawn, share: float) -> list[Suspicion]:
    rows, fits = drawn.by_fit(drawn.steps)
    if len(fits) < 2:
        return []
    log_mass = drawn.by_fit(_log_masses(drawn))[0].sum(axis=1).max()
    p = _repeats(*map(np.atleast_1d, (len(rows), _distinct(rows), log_mass)))
    return [Suspicion(share, p, "fits repeat the noise of others")]


def repeated_records(drawn: Drawn, share: float) -> list[Suspicion]:
    """Whole vectors, among those of as many numbers."""
    log_masses, found = drawn.per_record(_log_masses(drawn)), []
    for size in np.unique(drawn.sizes).tolist():
        chosen = drawn.sizes == size
        rows = drawn.rows(chosen, drawn.steps)
        found.append((len(rows), _distinct(rows), log_masses[chosen].max()))
    p = _repeats(*np.transpose(found))
    return [Suspicion(share, p, "releases repeat the noise of others")]


def repeated_numbers(drawn: Drawn, share: float) -> list[Suspicion]:
    """Magnitudes of single numbers, among those of one law and lattice."""
    log_masses, group, n = np.unique(_log_masses(drawn), return_inverse=True, return_counts=True)
    sizes = np.abs(drawn.steps)
    order = np.lexsort((sizes, group))
    sizes, group = sizes[order], group[order]
    is_new = np.ones(len(sizes), dtype=bool)
    is_new[1:] = (np.diff(sizes) != 0.0) | (np.diff(group) != 0)
    p = _repeats(n, np.bincount(group[is_new]), log_masses + np.log(2.0))
    return [Suspicion(share, p, "the noise has too few distinct values")]


_WIDEST = 64  # numbers of a release that are compared
_MOST_PAIRS = 4000  # with a selection
_TILTS = np.array([0.5, 1.0, 2.0, 4.0, 8.0, 16.0])
_N_EVENTS = 5


@dataclass(frozen=True, eq=False)
class _Entry:
    """A release, or one selection: signs, and quantiles of the law at which it lies.

    Each quantile is known up to a cell. Of noise there are that of the first number and of its
    magnitude, with cells no wider than ``widest``; of a selection ``sums`` are the bounds of all
    cells.
    """

    where: str
    size: int
    signs: np.ndarray
    cells: tuple[tuple[float, float], ...] = ()
    sums: np.ndarray | None = None
    chosen: int = -1
    widest: float = 0.0
    is_additive: bool = False


def sharing_findings(
    transcripts: Sequence[Sequence], *, alarm: float
) -> tuple[list[Finding], list[str]]:
    """Look for randomness that two releases of one fit share; see `transcript_findings`."""
    rng = np.random.default_rng(0)  # of places within cells
    fits = [[e for record in fit for e in _entries(record, rng)] for fit in transcripts]
    n_entries = max(map(len, fits), default=0)
    told = []
    if n_entries > MOST_PAIRED:
        told.append(f"whether releases after the first {MOST_PAIRED} of a fit share randomness")
    fits = [fit[:MOST_PAIRED] for fit in fits]
    found = _by_signs(fits, alarm / 2)
    by_events, n_open = _by_events(fits, alarm / 2)
    if n_open:
        told.append(
            f"whether selections share randomness with other releases, in {n_open} pairs of which "
            "the outcomes are nearly certain, or too few"
        )
    return list(dict.fromkeys([*found, *by_events])), told


def _entries(record: Any, rng: np.random.Generator) -> list[_Entry]:
    if isinstance(record, Selected):
        return _selections(record, rng)
    if isinstance(record, Perturbed) and not record.law.pairs:
        linear = record.linear.ravel()
        return [_Entry(record.where, linear.size, np.sign(linear[:_WIDEST]))]
    if isinstance(record, Released) and isinstance(record.law, NoiseLaw):
        return [_noise(record)]
    return []


def _selections(record: Selected, rng: np.random.Generator) -> list[_Entry]:
    found = []
    rows = zip(record.utilities, record.rates.tolist(), record.chosen.tolist(), strict=True)
    for utilities, rate, chosen in rows:
        weights = np.exp((utilities - utilities.max()) * rate)
        sums = np.append(0.0, np.cumsum(weights)) / weights.sum()
        sums[-1] = 1.0
        low, high = sums[chosen], sums[chosen + 1]
        sign = np.sign(low + rng.random() * (high - low) - 0.5)
        found.append(_Entry(record.where, 1, np.array([sign]), ((low, high),), sums, chosen))
    return found


def _noise(record: Released) -> _Entry:
    size, step = record.asked.size, record.step
    entry = partial(_Entry, record.where, size, is_additive=True)
    nothing = entry(np.zeros(0))
    if record.asked.shape != record.released.shape or not (size and step > 0.0):
        return nothing
    with np.errstate(all="ignore"):
        asked = np.ravel(record.asked)[:_WIDEST].astype(np.float64) / step
        steps = np.ravel(record.released)[:_WIDEST] / step - np.rint(asked)
    if not (np.all(np.abs(asked) <= 2.0**52) and np.all(np.isfinite(steps))):
        return nothing
    signs, (kind, unit) = np.sign(steps), (record.law.kind, step / record.scale)
    if kind == "k_norm" and size > 1:
        return entry(signs)
    below = ndtr if kind == "gaussian" else _laplace
    low, high = (float(below((steps[0] + side) * unit)) for side in (-0.5, 0.5))
    nearer = max(abs(steps[0]) - 0.5, 0.0) * unit
    magnitude = 2.0 * float(below(-nearer - unit)), 2.0 * float(below(-nearer))
    return entry(signs, ((low, high), magnitude), widest=unit + _ROUNDING)


def _laplace(x: float) -> float:
    return float(np.where(x < 0.0, 0.5 * np.exp(-abs(x)), 1.0 - 0.5 * np.exp(-abs(x))))


# Signs: their products are fair coins


def _by_signs(fits: list[list[_Entry]], alarm: float) -> list[Finding]:
    """Pairs of which one is no noisy vector, or that have other sizes."""
    n = max(map(len, fits), default=0)
    if n < 2:
        return []
    width = max((len(e.signs) for fit in fits for e in fit), default=0)
    rows = np.zeros((n, len(fits), width), dtype=np.float32)
    where, sizes, additive = [""] * n, np.zeros(n), np.ones(n, dtype=bool)
    for f, fit in enumerate(fits):
        for i, entry in enumerate(fit):
            rows[i, f, : len(entry.signs)] = entry.signs
            where[i], sizes[i], additive[i] = entry.where, entry.size, entry.is_additive
    first, second = np.triu_indices(n, 1)
    # Noisy vectors of one size are compared elsewhere.
    other = (sizes[first] != sizes[second]) | ~additive[first] | ~additive[second]
    first, second = first[other], second[other]
    if not len(first):
        return []
    flat = rows.reshape(n, -1)
    totals, counts = flat @ flat.T, np.abs(flat) @ np.abs(flat).T
    p = coin(totals[first, second].astype(float), counts[first, second].astype(float))
    clear = np.flatnonzero(p <= alarm / len(p))[:_SHOWN]
    return [_shared(first[i], second[i], where[second[i]]) for i in clear]


def _shared(i: int, j: int, where: str) -> Finding:
    return Finding("noise", f"releases {i + 1} and {j + 1} of each fit share randomness", where)


# Quantiles: two that come from one uniform number agree


def _by_events(fits: list[list[_Entry]], alarm: float) -> tuple[list[Finding], int]:
    """Pairs with a selection: cells that meet, that meet mirrored, and equal candidates."""
    n = max(map(len, fits), default=0)
    has_choice = np.zeros(n, dtype=bool)
    for fit in fits:
        has_choice[: len(fit)] |= [entry.sums is not None for entry in fit]
    if not has_choice.any():
        return [], 0
    pairs = [(i, j) for i, j in combinations(range(n), 2) if has_choice[i] or has_choice[j]]
    pairs.sort(key=lambda pair: pair[1] - pair[0])
    found, n_open = [], max(0, len(pairs) - _MOST_PAIRS)
    least = np.log(max(1, len(pairs)) * _N_EVENTS / alarm)
    for i, j in pairs[:_MOST_PAIRS]:
        both = [(fit[i], fit[j]) for fit in fits if len(fit) > j]
        known = [pair for pair in both if pair[0].cells and pair[1].cells]
        # What is released before may decide which of two is a selection.
        known = [pair for pair in known if any(one.sums is not None for one in pair)]
        if not known:
            continue
        tests = np.array([_events(*pair) for pair in known])
        seen, probabilities = tests[:, 0], np.minimum(tests[:, 1] + _ROUNDING, 1.0)
        if any(_log_evidence(seen[:, k], probabilities[:, k]) > least for k in range(_N_EVENTS)):
            found.append(_shared(i, j, known[0][1].where))
        elif _log_evidence(np.ones(len(known)), probabilities[:, 0]) <= least:
            n_open += 1
    return found[:_SHOWN], n_open


def _events(one: _Entry, other: _Entry) -> tuple[np.ndarray, np.ndarray]:
    """What was seen of each event, and how probable it was given the first of the two."""
    seen, probabilities = np.zeros(_N_EVENTS), np.zeros(_N_EVENTS)
    sums, k = other.sums, 0
    for low, high in one.cells:
        for start, end in ((low, high), (1.0 - high, 1.0 - low)):
            if sums is not None:
                first = max(int(np.searchsorted(sums, start, side="right")) - 1, 0)
                last = min(int(np.searchsorted(sums, end, side="left")), len(sums) - 1)
                seen[k], probabilities[k] = first <= other.chosen < last, sums[last] - sums[first]
                k += 1
                continue
            for least, most in other.cells:
                seen[k] = least < end and most > start
                probabilities[k] = end - start + 2.0 * other.widest
                k += 1
    if sums is not None and one.sums is not None and len(one.sums) == len(sums):
        seen[-1] = one.chosen == other.chosen
        probabilities[-1] = sums[one.chosen + 1] - sums[one.chosen]
    return seen, probabilities


def _log_evidence(seen: np.ndarray, probabilities: np.ndarray) -> float:
    """Logarithm of a number that has a mean of 1 at most: p is at most its inverse.

    Of each tilt it is a product of ratios, each with a mean of 1 given what came before.
    """
    expected = np.log1p(np.multiply.outer(np.expm1(_TILTS), probabilities)).sum(axis=1)
    return float(logsumexp(_TILTS * seen.sum() - expected) - np.log(len(_TILTS)))


_SHOWN = 5  # places of one fault
_SCALE_SHARE = 0.2  # of the alarm, for the scale of all noise of one law


# By what they look for: tests with their shares, which add up to 1, and the level of their groups.
_TESTS: list[list[tuple]] = [
    [
        (too_little, 0.1, "place"),
        (too_little, _SCALE_SHARE, "all"),
        (too_little, 0.03, "position"),
        (too_little, 0.03, "fit"),
        (too_little, 0.01, "record"),
        (too_little_at_the_centre, 0.01),
        (too_short, 0.01),
        (too_little_in_coordinates, 0.005, "place"),
        (too_little_in_coordinates, 0.005, "position"),
    ],
    [
        (asymmetric, 0.03, "place"),
        (asymmetric, 0.04, "all"),
        (asymmetric, 0.02, "position"),
        (asymmetric, 0.01, "fit"),
    ],
    [(shared_by_coordinates, 0.1)],
    [(shared_by_releases, 0.1)],
    [(shared_by_fits, 0.1)],
    [(repeated_fits, 0.04), (repeated_records, 0.03), (repeated_numbers, 0.03)],
    [(other_laws, 0.05)],
    [(other_ratios, 0.05)],
]


def noise_findings(transcripts: Sequence[Transcript], *, alarm: float = 1e-7) -> list[Finding]:
    """Look for noise that is not what its transcript declares.

    Noise is what is released less what is asked, rounded to the lattice. Found are, without any
    chance: a scale below that of the law times the sensitivity, or a law below its guarantee;
    what is released off the lattice. And by tests: noise that is too little, everywhere, at one
    place in the code, in one release or in one fit; that is not symmetric; that coordinates,
    releases or fits share; that repeats itself; and that has another shape. Noise that is larger
    than declared by one factor breaks no promise and is not found.

    Not seen are noise that others can compute although it looks fresh (a seed that counts up, or
    the clock), and what differs from the law by less than that many numbers can tell.

    Parameters
    ----------
    transcripts : sequence of Transcript
        Of fits with fresh noise each (``random_state=None``, clones of one estimator) on the same
        data. Fits are compared with each other if they have as many releases of the same sizes
        and laws as most; each alone is tested in any case. One fit will do, with fewer tests.

    alarm : float, default=1e-7
        Probability at most of any finding if all noise is as declared, whatever the algorithm
        and the data are. It is divided among the tests, whose p-values are exact, or too large.

    Returns
    -------
    list of Finding
        Of kind "law" for what is declared, and "noise" for what is drawn.

    Notes
    -----
    How many numbers it takes is in `noise_runs_needed`. Scales are tested by the sum of
    squares (Gaussian noise), of magnitudes (Laplace) or of norms (K-norm), which has a Gamma
    distribution; signs as fair coins, whatever the magnitudes; repetitions by the largest mass of
    a point; shapes by likelihood ratios with a mixture of other laws, and by the distribution of
    ratios, with the Dvoretzky-Kiefer-Wolfowitz bound.

    Examples
    --------
    >>> from skdp.audit import recording
    >>> from skdp.audit._noise import noise_findings
    >>> from skdp.mechanisms import laplace_mechanism
    >>> from skdp.privacy import ApproxDP
    >>> with recording() as transcript:
    ...     told = laplace_mechanism([0.5] * 50, l1_sensitivity=1.0, guarantee=ApproxDP(1.0))
    >>> noise_findings([transcript])
    []
    """
    fits = [
        [one for one in transcript if isinstance(one, Released) and isinstance(one.law, NoiseLaw)]
        for transcript in transcripts
    ]
    found = broken_records(fits)
    # What else is wrong is said above.
    chosen = [
        (record, fit, position)
        for fit, records in enumerate(fits)
        for position, record in enumerate(records)
        if record.asked.size
        and record.asked.shape == record.released.shape
        and record.scale > 0.0
        and record.step > 0.0
    ]
    if not chosen:
        return found
    drawn = Drawn(chosen)
    what = "what is released is no multiple of the step of its lattice"
    found.extend(Finding("noise", what, where) for where in drawn.off_lattice)
    if len(drawn):
        for tests in _TESTS:
            for test, share, *level in tests:
                by_test = [f for each in test(drawn, share, *level) for f in each.confirmed(alarm)]
                found.extend(by_test)
                if by_test:
                    break  # the others would say it again
    return list(dict.fromkeys(found))


def noise_runs_needed(kind: str, *, size: int, alarm: float = 1e-7) -> int:
    """Fits after which `noise_findings` tells halved noise, with a probability of 0.99.

    Halved noise of one number a fit takes 78 fits if it is Gaussian, and 141 if Laplace; of three
    numbers 26 and 47, of ten 8 and 15, of a hundred 1 and 2. K-norm noise takes as many as
    Laplace noise. No test of as small an alarm needs much less, as the sum it rests on holds all
    that the numbers tell of their scale.

    Parameters
    ----------
    kind : {"laplace", "k_norm", "gaussian"}

    size : int
        Numbers that one fit releases, of all its releases together.

    alarm : float, default=1e-7
        As for `noise_findings`.

    Returns
    -------
    int
        For noise of one law, on a lattice that is fine beside it.

    Examples
    --------
    >>> from skdp.audit._noise import noise_runs_needed
    >>> [noise_runs_needed("gaussian", size=size) for size in (1, 3, 10, 100)]
    [78, 26, 8, 1]
    >>> [noise_runs_needed("laplace", size=size) for size in (1, 3, 10, 100)]
    [141, 47, 15, 2]
    """
    per_number, power = (0.5, 2) if kind == "gaussian" else (1.0, 1)
    for n in count(1):
        shape = n * size * per_number
        if gammainc(shape, gammaincinv(shape, alarm * _SCALE_SHARE) * 2.0**power) >= 0.99:
            break
    return n


_SELECTIONS = 250  # of all fits, after which twice the rate is told from it


class _Law:
    """One selection: levels of log-weights, how many candidates each has, what is chosen."""

    def __init__(self, utilities: np.ndarray, rate: float, chosen: int) -> None:
        own = utilities[chosen]
        levels, counts = np.unique(utilities - utilities.max(), return_counts=True)
        self.levels, self.log_counts = levels * rate, np.log(counts)
        self.log_total = logsumexp(self.levels + self.log_counts)
        self.own = float(own - utilities.max()) * rate
        alike = np.flatnonzero(utilities == own)
        self.place, self.n_alike = int(np.searchsorted(alike, chosen)), len(alike)
        self.chosen = chosen

    def log_moment(self, t: float) -> float:
        """Of the log-weight of what is chosen."""
        return float(logsumexp((1.0 + t) * self.levels + self.log_counts) - self.log_total)

    def same(self) -> float:
        """Probability that two selections agree."""
        return float(np.exp(self.log_moment(1.0) - self.log_total))


def _laws(record: Selected) -> list[_Law]:
    rows = zip(record.utilities, record.rates.tolist(), record.chosen.tolist(), strict=True)
    return [_Law(*row) for row in rows]


def _tail_of_weights(fits: list[list[_Law]]) -> float:
    """Logarithm of a bound on the probability of such a sum of log-weights."""
    laws = list(chain(*fits))
    total = sum(law.own for law in laws)

    def bound(t: float) -> float:
        return sum(law.log_moment(t) for law in laws) - t * total

    return np.log(2.0) + min(_least(bound, 0.0, 20.0), _least(bound, -0.95, 0.0))


def _tail_of_places(fits: list[list[_Law]]) -> float:
    """The same of places among equals, each uniform, by the inequality of Hoeffding."""
    laws = [law for law in chain(*fits) if law.n_alike > 1]
    if not laws:
        return 0.0
    off = sum((law.place + 0.5) / law.n_alike - 0.5 for law in laws)
    return float(np.log(2.0) - 2.0 * off**2 / len(laws))


def _tail_of_repeats(fits: list[list[_Law]]) -> float:
    """The same of the number of selections that are as in the fit before."""
    each_two = zip(fits[::2], fits[1::2], strict=False)
    pairs = [pair for two in each_two for pair in zip(*two, strict=False)]
    probabilities = np.array([max(a.same(), b.same()) for a, b in pairs])
    n_same = sum(a.chosen == b.chosen for a, b in pairs)

    def bound(t: float) -> float:
        return float(np.log1p(probabilities * np.expm1(t)).sum()) - t * n_same

    return _least(bound, 0.0, 30.0) if len(pairs) else 0.0


def _least(bound: Callable[[float], float], low: float, high: float) -> float:
    """Any value of the bound holds; a small one says more."""
    best = minimize_scalar(bound, bounds=(low, high), method="bounded", options={"maxiter": 30})
    return min(0.0, float(best.fun))


# Of a sum of log-weights, of places among equals, and of agreements: what is found, too.
_OF_SELECTIONS = (
    (_tail_of_weights, "what is selected has not the probabilities that are declared"),
    (_tail_of_places, "candidates of equal weight are not selected alike"),
    (_tail_of_repeats, "fits select the same too often"),
)


def selection_findings(transcripts: Sequence[Sequence], *, alarm: float) -> list[Finding]:
    """Whether what is selected has the law that is declared.

    Three sums have known moment generating functions, which bound their tails (Chernoff): of the
    log-weights of what is chosen, of the places of it among candidates of equal weight, and of
    the fits that choose what the one before them chose.

    Parameters
    ----------
    transcripts : sequence of transcripts
        One of each fit, with fresh randomness.

    alarm : float
        Probability at most that selections as declared are called something else.

    Returns
    -------
    list of Finding
    """
    findings = []
    selected = [[r for r in t if isinstance(r, Selected)] for t in transcripts]
    wheres = dict.fromkeys(r.where for r in chain(*selected))
    for where in wheres:
        fits = [fit for t in selected if (fit := [r for r in t if r.where == where])]
        if any(np.any(r.rates * r.spreads > r.epsilon * (1 + 1e-12)) for r in chain(*fits)):
            findings.append(Finding("law", "rates are above epsilon over the spread", where))
        drawn = [[law for record in fit for law in _laws(record)] for fit in fits]
        least = np.log(alarm / (len(_OF_SELECTIONS) * len(wheres)))
        for test, what in _OF_SELECTIONS:
            if test(drawn) < least:
                findings.append(Finding("noise", what, where))
    return findings


def run_findings(transcripts: Sequence[Sequence], *, alarm: float) -> list[Finding]:
    """Whether the number of runs has the law that is declared.

    Parameters
    ----------
    transcripts : sequence of transcripts
        One of each fit, with fresh randomness.

    alarm : float
        Probability at most that a number as declared is called something else.

    Returns
    -------
    list of Finding
    """
    fits = [[r for r in t if isinstance(r, OneOfRuns) and r.run is not None] for t in transcripts]
    laws = {(run.eta, run.gamma) for runs in fits for run in runs}
    if len(laws) > 1:
        return [Finding("law", "the law of the number of runs is not always the same")]
    if not laws:
        return []
    ((eta, gamma),) = laws
    below = _distribution(eta, gamma, max(map(len, fits)))
    rng = np.random.default_rng(0)
    # Uniform if the law is the declared one.
    places = [
        below[n - 1] + rng.random() * (below[n] - below[n - 1]) if n else 0.0
        for n in map(len, fits)
    ]
    if stats.kstest(places, "uniform").pvalue < alarm:
        return [Finding("noise", "the number of runs has not the law that is declared")]
    return []


def _distribution(eta: float, gamma: float, most: int) -> np.ndarray:
    """Probabilities of at most 0, 1, ... runs."""
    log = math.log(gamma)
    weight = (1.0 - gamma) * (eta / math.expm1(-eta * log) if eta else -1.0 / log)
    found = [0.0]
    for n in range(1, min(most, 10**6) + 1):
        found.append(found[-1] + weight)
        weight *= (1.0 - gamma) * (n + eta) / (n + 1)
    return np.array(found)


def transcript_findings(
    transcripts: Sequence[Transcript], *, alarm: float
) -> tuple[list[Finding], list[str]]:
    """Whether all that is drawn has the law that is declared.

    Parameters
    ----------
    transcripts : sequence of transcripts
        One of each fit, with fresh randomness.

    alarm : float
        Probability at most of a finding, of each kind of randomness, if all is as declared.

    Returns
    -------
    findings : list of Finding

    not_checked : list of str
        What could not be told, in words.
    """
    sharing, doubts = sharing_findings(transcripts, alarm=alarm)
    perturbed = [r for r in chain(*transcripts) if isinstance(r, Perturbed)]
    found = [
        *noise_findings(transcripts, alarm=alarm),
        *selection_findings(transcripts, alarm=alarm),
        *run_findings(transcripts, alarm=alarm),
        *sharing,
        *linear_findings(perturbed, alarm=alarm),
    ]
    return found, doubts


def fits_needed(transcript: Transcript, *, alarm: float) -> int:
    """Fits after which halved noise, and a doubled rate of selections, are told."""
    sizes: Counter[tuple[str, str]] = Counter()
    n_selected = 0
    for record in transcript:
        if isinstance(record, Selected):
            n_selected += len(record.chosen)
        elif isinstance(record, Released):
            sizes[record.law.kind, record.where] += int(np.size(record.asked))
    needed = [noise_runs_needed(kind, size=n, alarm=alarm) for (kind, _), n in sizes.items() if n]
    if n_selected:
        needed.append(-(-_SELECTIONS // n_selected))
    return max([2, *needed])
