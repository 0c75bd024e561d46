"""Selections by exponential mechanisms: how far log-weights move, and what is chosen."""

from collections.abc import Callable, Iterable, Sequence

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import logsumexp

from skdp._recording import Selected
from skdp.audit._findings import Finding

__all__ = ["moved_ranges", "selection_findings", "selections"]


def selections(transcript: Iterable) -> list[Selected]:
    """Those among all records."""
    return [record for record in transcript if isinstance(record, Selected)]


def moved_ranges(one: Sequence[Selected], other: Sequence[Selected]) -> list[np.ndarray]:
    """Of each selection, largest change of a log-weight between two worlds less the least one.

    Parameters
    ----------
    one, other : sequence of Selected
        With the same shapes and rates.

    Returns
    -------
    list of ndarray of shape (n_selections,)
    """
    found = []
    for here, there in zip(one, other, strict=True):
        change = there.utilities - here.utilities
        found.append((change.max(axis=1) - change.min(axis=1)) * here.rates)
    return found


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
    found: dict[str, list[list[Selected]]] = {}
    for transcript in transcripts:
        here: dict[str, list[Selected]] = {}
        for record in selections(transcript):
            here.setdefault(record.where, []).append(record)
        for where, records in here.items():
            found.setdefault(where, []).append(records)
    findings = []
    for where, fits in found.items():
        all_records = [record for fit in fits for record in fit]
        if any(np.any(r.rates * r.spreads > r.epsilon * (1 + 1e-12)) for r in all_records):
            findings.append(Finding("law", "rates are above epsilon over the spread", where))
        drawn = [[law for record in fit for law in _laws(record)] for fit in fits]
        least = np.log(alarm / (_N_TESTS * len(found)))
        for test, what in _TESTS:
            if test(drawn) < least:
                findings.append(Finding("noise", what, where))
    return findings


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
    laws = [law for fit in fits for law in fit]
    total = sum(law.own for law in laws)

    def bound(t: float) -> float:
        return sum(law.log_moment(t) for law in laws) - t * total

    return np.log(2.0) + min(_least(bound, 0.0, 20.0), _least(bound, -0.95, 0.0))


def _tail_of_places(fits: list[list[_Law]]) -> float:
    """The same of places among equals, each uniform, by the inequality of Hoeffding."""
    laws = [law for fit in fits for law in fit if law.n_alike > 1]
    if not laws:
        return 0.0
    off = sum((law.place + 0.5) / law.n_alike - 0.5 for law in laws)
    return float(np.log(2.0) - 2.0 * off**2 / len(laws))


def _tail_of_repeats(fits: list[list[_Law]]) -> float:
    """The same of the number of selections that are as in the fit before."""
    pairs = [
        pair
        for one, other in zip(fits[::2], fits[1::2], strict=False)
        for pair in zip(one, other, strict=False)
    ]
    chances = np.array([max(a.same(), b.same()) for a, b in pairs])
    n_same = sum(a.chosen == b.chosen for a, b in pairs)

    def bound(t: float) -> float:
        return float(np.log1p(chances * np.expm1(t)).sum()) - t * n_same

    return _least(bound, 0.0, 30.0) if len(pairs) else 0.0


def _least(bound: Callable[[float], float], low: float, high: float) -> float:
    """Any value of the bound holds; a small one says more."""
    best = minimize_scalar(bound, bounds=(low, high), method="bounded", options={"maxiter": 30})
    return min(0.0, float(best.fun))


_TESTS = (
    (_tail_of_weights, "what is selected has not the probabilities that are declared"),
    (_tail_of_places, "candidates of equal weight are not selected alike"),
    (_tail_of_repeats, "fits select the same too often"),
)
_N_TESTS = len(_TESTS)
