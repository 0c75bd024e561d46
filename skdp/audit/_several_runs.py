"""Runs of which the best is released: is their number drawn as declared?"""

import math
from collections.abc import Sequence

import numpy as np
from scipy import stats

from skdp._recording import OneOfRuns
from skdp.audit._findings import Finding

__all__ = ["run_findings"]

_MOST = 10**6


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
    for n in range(1, min(most, _MOST) + 1):
        found.append(found[-1] + weight)
        weight *= (1.0 - gamma) * (n + eta) / (n + 1)
    return np.array(found)
