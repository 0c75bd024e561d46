"""Tests of randomness that releases of one fit share, whatever their kinds are.

Selections, linear terms of objectives and noisy vectors are compared with each other. Given all
that came before it, a release as declared has fair signs, and a selection falls into a set of
candidates with the probabilities of its law, so that bounds hold for every algorithm.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from scipy.special import logsumexp, ndtr

from skdp._recording import Perturbed, Released, Selected
from skdp.audit._findings import Finding
from skdp.audit._noise_sharing import MOST_PAIRED, coin
from skdp.mechanisms import NoiseLaw

__all__ = ["sharing_findings"]

_WIDEST = 64  # numbers of a release that are compared
_MOST_PAIRS = 4000  # with a selection
_TILTS = np.array([0.5, 1.0, 2.0, 4.0, 8.0, 16.0])
_N_EVENTS = 5
_ROUNDING = 1e-9


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
    """Look for randomness that two releases of one fit share.

    Parameters
    ----------
    transcripts : sequence of transcripts
        One of each fit, with fresh randomness.

    alarm : float
        Probability at most of any finding if all is drawn as declared.

    Returns
    -------
    findings : list of Finding

    not_checked : list of str
        What could not be told, in words.
    """
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
    nothing = _Entry(record.where, size, np.zeros(0), is_additive=True)
    if record.asked.shape != record.released.shape or not (size and step > 0.0):
        return nothing
    with np.errstate(all="ignore"):
        asked = np.ravel(record.asked)[:_WIDEST].astype(np.float64) / step
        steps = np.ravel(record.released)[:_WIDEST] / step - np.rint(asked)
    if not (np.all(np.abs(asked) <= 2.0**52) and np.all(np.isfinite(steps))):
        return nothing
    signs, (kind, unit) = np.sign(steps), (record.law.kind, step / record.scale)
    if kind == "k_norm" and size > 1:
        return _Entry(record.where, size, signs, is_additive=True)
    below = ndtr if kind == "gaussian" else _laplace
    low, high = (float(below((steps[0] + side) * unit)) for side in (-0.5, 0.5))
    nearer = max(abs(steps[0]) - 0.5, 0.0) * unit
    magnitude = 2.0 * float(below(-nearer - unit)), 2.0 * float(below(-nearer))
    widest = 1.0 * unit + _ROUNDING
    cells = (low, high), magnitude
    return _Entry(record.where, size, signs, cells, None, -1, widest, is_additive=True)


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
    clear = np.flatnonzero(p <= alarm / len(p))
    return [_finding(int(first[i]), int(second[i]), where[second[i]]) for i in clear[:5]]


def _finding(i: int, j: int, where: str) -> Finding:
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
    pairs = sorted(pairs, key=lambda pair: pair[1] - pair[0])
    n_left = max(0, len(pairs) - _MOST_PAIRS)
    found, n_open = [], n_left
    least = np.log(max(1, len(pairs)) * _N_EVENTS / alarm)
    for i, j in pairs[:_MOST_PAIRS]:
        both = [(fit[i], fit[j]) for fit in fits if len(fit) > j]
        known = [pair for pair in both if pair[0].cells and pair[1].cells]
        if not known:
            continue
        tests = np.array([_events(*pair) for pair in known])
        seen, chances = tests[:, 0], np.minimum(tests[:, 1] + _ROUNDING, 1.0)
        if any(_log_evidence(seen[:, k], chances[:, k]) > least for k in range(_N_EVENTS)):
            found.append(_finding(i, j, known[0][1].where))
        elif _log_evidence(np.ones(len(known)), chances[:, 0]) <= least:
            n_open += 1
    return found[:5], n_open


def _events(one: _Entry, other: _Entry) -> tuple[np.ndarray, np.ndarray]:
    """What was seen of each event, and how probable it was given the first of the two."""
    seen, chances = np.zeros(_N_EVENTS), np.zeros(_N_EVENTS)
    sums, k = other.sums, 0
    for low, high in one.cells:
        for start, end in ((low, high), (1.0 - high, 1.0 - low)):
            if sums is not None:
                first = max(int(np.searchsorted(sums, start, side="right")) - 1, 0)
                last = min(int(np.searchsorted(sums, end, side="left")), len(sums) - 1)
                seen[k], chances[k] = first <= other.chosen < last, sums[last] - sums[first]
                k += 1
                continue
            for least, most in other.cells:
                seen[k] = least < end and most > start
                chances[k] = end - start + 2.0 * other.widest
                k += 1
    if sums is not None and one.sums is not None and len(one.sums) == len(sums):
        seen[-1] = one.chosen == other.chosen
        chances[-1] = sums[one.chosen + 1] - sums[one.chosen]
    return seen, chances


def _log_evidence(seen: np.ndarray, chances: np.ndarray) -> float:
    """Logarithm of a number that has a mean of 1 at most: p is at most its inverse.

    Of each tilt it is a product of ratios, each with a mean of 1 given what came before.
    """
    expected = np.log1p(np.multiply.outer(np.expm1(_TILTS), chances)).sum(axis=1)
    return float(logsumexp(_TILTS * seen.sum() - expected) - np.log(len(_TILTS)))
