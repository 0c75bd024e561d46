"""Tests of noise that is not fresh: shared, repeated, or not symmetric."""

import numpy as np
from scipy.special import betainc

from skdp.audit._drawn import GAUSSIAN, Drawn
from skdp.audit._suspicion import Suspicion, groups_of, place_of

__all__ = [
    "MOST_PAIRED",
    "asymmetric",
    "coin",
    "repeated_fits",
    "repeated_numbers",
    "repeated_records",
    "shared_by_coordinates",
    "shared_by_fits",
    "shared_by_releases",
]

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


def asymmetric(drawn: Drawn, level: str, share: float) -> list[Suspicion]:
    """Noise of one sign more often than of the other, in the groups of a level."""
    groups, name = groups_of(drawn, level)
    p = coin(np.bincount(groups, drawn.per_record(drawn.signs)), np.bincount(groups, drawn.sizes))
    return [
        Suspicion(
            share,
            p,
            lambda i: f"the noise is not symmetric around 0{name(i)}",
            place_of(drawn, level),
        )
    ]


def shared_by_coordinates(drawn: Drawn, share: float) -> list[Suspicion]:
    """Coordinates of one vector: neighbours by place, and each pair."""
    products = np.zeros(len(drawn.signs))
    products[:-1] = drawn.signs[:-1] * drawn.signs[1:]
    products[drawn.starts + drawn.sizes - 1] = 0.0  # the next is of another record
    totals = np.bincount(drawn.places, drawn.per_record(products), len(drawn.wheres))
    n = np.bincount(drawn.places, drawn.sizes - 1, len(drawn.wheres))
    what = "coordinates of one release share their noise"
    found = [Suspicion(share / 2, coin(totals, n), lambda i: what, place_of(drawn, "place"))]
    sizes = [size for size in np.unique(drawn.sizes).tolist() if 2 < size <= MOST_PAIRED]
    for size in sizes:
        rows = drawn.rows(drawn.sizes == size, drawn.signs)
        p = _pairs(rows.T)
        found.append(Suspicion(share / 2 / len(sizes), p, lambda i: what))
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
        found.append(
            Suspicion(each / 2, coin(totals, n), lambda i: "releases of one fit share noise")
        )
        if len(places) <= MOST_PAIRED:
            above = np.triu_indices(len(places), 1)

            def what(i: int, above: tuple = above, places: np.ndarray = places) -> str:
                first, second = (1 + places[side[i]] for side in above)
                return f"releases {first} and {second} of each fit share their noise"

            found.append(Suspicion(each / 2, _pairs(rows.reshape(len(places), -1)), what))
    return found


def shared_by_fits(drawn: Drawn, share: float) -> list[Suspicion]:
    """The same numbers in other fits: in those that follow, and in each pair."""
    records, fits = drawn.matched()
    if len(fits) < 2:
        return []
    numbers = np.isin(np.arange(len(drawn)), records.ravel())
    rows = drawn.signs[np.repeat(numbers, drawn.sizes)].reshape(len(fits), -1)
    totals, n = _along(rows, 1)
    total = np.array([totals])
    found = [Suspicion(share / 2, coin(total, n), lambda i: "the fits share their noise")]
    if len(fits) <= MOST_PAIRED:
        above = np.triu_indices(len(fits), 1)
        found.append(
            Suspicion(
                share / 2,
                _pairs(rows),
                lambda i: f"fits {1 + fits[above[0][i]]} and {1 + fits[above[1][i]]} share noise",
            )
        )
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
    # Without a lattice the unit is far below any repetition by chance.
    step = np.maximum(2.0 * drawn.half, 2.0**-40)
    return np.minimum(0.0, np.log(step * np.repeat(peak, drawn.sizes)))


def _distinct(rows: np.ndarray) -> int:
    rows = np.ascontiguousarray(rows + 0.0)  # one zero only
    return len(np.unique(rows.view(np.dtype((np.void, rows.shape[1] * rows.itemsize)))))


def repeated_fits(drawn: Drawn, share: float) -> list[Suspicion]:
    records, fits = drawn.matched()
    if len(fits) < 2:
        return []
    numbers = np.repeat(np.isin(np.arange(len(drawn)), records.ravel()), drawn.sizes)
    rows = drawn.steps[numbers].reshape(len(fits), -1)
    log_mass = _log_masses(drawn)[numbers].reshape(len(fits), -1).sum(axis=1).max()
    p = _repeats(*map(np.atleast_1d, (len(rows), _distinct(rows), log_mass)))
    return [Suspicion(share, p, lambda i: "fits repeat the noise of others")]


def repeated_records(drawn: Drawn, share: float) -> list[Suspicion]:
    """Whole vectors, among those of as many numbers."""
    log_masses, found = drawn.per_record(_log_masses(drawn)), []
    for size in np.unique(drawn.sizes).tolist():
        chosen = drawn.sizes == size
        rows = drawn.rows(chosen, drawn.steps)
        found.append((len(rows), _distinct(rows), log_masses[chosen].max()))
    p = _repeats(*np.transpose(found))
    return [Suspicion(share, p, lambda i: "releases repeat the noise of others")]


def repeated_numbers(drawn: Drawn, share: float) -> list[Suspicion]:
    """Magnitudes of single numbers, among those of one law and lattice."""
    log_masses, group, n = np.unique(_log_masses(drawn), return_inverse=True, return_counts=True)
    sizes = np.abs(drawn.steps)
    order = np.lexsort((sizes, group))
    sizes, group = sizes[order], group[order]
    is_new = np.ones(len(sizes), dtype=bool)
    is_new[1:] = (np.diff(sizes) != 0.0) | (np.diff(group) != 0)
    p = _repeats(n, np.bincount(group[is_new]), log_masses + np.log(2.0))
    return [Suspicion(share, p, lambda i: "the noise has too few distinct values")]
