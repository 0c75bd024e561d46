"""How sure a model of several classes is, held against how often it is right.

To check the claim: `release_sureness`, and ``solvers/hits.py`` for what it adds up. All constants
of the rule stand here; it was chosen on six sets of 3 to 26 classes, of 1,000 to 20,000 rows.
"""

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import softmax

from skdp._random import NoiseSource
from skdp._validation import plain_arguments
from skdp.mechanisms import NoiseLaw, release
from skdp.privacy import GaussianDP
from skdp.releases._moments import split_mu
from skdp.releases._score_model import factor_of_right
from skdp.solvers.feature_rows import ERROR_SHARE, certified
from skdp.solvers.hits import hits_and_chances
from skdp.solvers.rows import RowBlocks

__all__ = [
    "BLIND_FACTOR",
    "Sureness",
    "asked_for",
    "believed",
    "factor_of_sureness",
    "release_sureness",
    "split_for_check",
]

# Noise in a mean is a deviation of 0.03, unless that takes more than the most of the squared mu.
# Where noise is larger than the last number, nothing is released.
_NOISE, _LEAST_SHARE, _MOST_SHARE, _MOST_NOISE = 0.03, 0.002, 0.03, 0.06
# Powers of the factor that would make a model as sure as it is right on the rows that it was
# learned from: on others it is right less often, and the best log-loss asks for less.
_LONGER, _SHORTER = 0.65, 0.8
_LEAST, _MOST = 0.2, 3.0
# Where nothing is released. There noise makes scores long.
BLIND_FACTOR = 0.7
_SUREST = 0.999  # that a model is held to be


@dataclass(frozen=True)
class Sureness:
    """How often a model is right, and how often it claims to be.

    Parameters
    ----------
    right, claimed : float
        Released means over the rows.

    deviation : float
        Public standard deviation of the noise in each.
    """

    right: float
    claimed: float
    deviation: float


@plain_arguments
def split_for_check(
    guarantee: GaussianDP, *, n_samples: float
) -> tuple[GaussianDP | None, GaussianDP]:
    """Set a share aside, for `release_sureness`.

    Parameters
    ----------
    guarantee : GaussianDP
        Budget of a descent.

    n_samples : float
        Number of rows, public or released.

    Returns
    -------
    check, rest : GaussianDP
        ``check`` is None where noise would be all that it tells.
    """
    signal = min(max(guarantee.mu * n_samples, 1e-9), 1e12)
    share = min(max(2.0 / (_NOISE * signal) ** 2, _LEAST_SHARE), _MOST_SHARE)
    if math.sqrt(2.0 / share) / signal > _MOST_NOISE:
        return None, guarantee
    return split_mu(guarantee, share)


def release_sureness(
    data: RowBlocks,
    weights: np.ndarray,
    *,
    n_samples: float,
    guarantee: GaussianDP,
    noise: NoiseSource,
) -> Sureness:
    """Release how often a model is right, and how often it claims to be.

    Privacy: satisfies ``guarantee`` for released weights. A row adds two numbers between 0 and 1,
    and in place of another one it moves each of the sums by 1 at most.

    Parameters
    ----------
    data : RowBlocks
        Without users.

    weights : ndarray of shape (n_outputs, n_features)
        Released. Scores are logits.

    n_samples : float
        Number of rows, public or released.

    guarantee : GaussianDP

    noise : NoiseSource

    Returns
    -------
    Sureness
    """
    law = NoiseLaw.of("gaussian", guarantee)
    sensitivity = math.sqrt(2.0)
    released = release(
        certified(hits_and_chances(data, weights), ERROR_SHARE),
        law=law,
        sensitivity=sensitivity,
        error=ERROR_SHARE,
        random_state=noise,
        purpose="how often the model is right, and claims to be",
    )
    right, claimed = (float(value) / n_samples for value in released)
    return Sureness(right, claimed, law.scale * sensitivity / n_samples)


@plain_arguments
def factor_of_sureness(found: Sureness, *, n_outputs: int, n_samples: float) -> float:
    """Factor of scores, by what is released.

    Parameters
    ----------
    found : Sureness

    n_outputs : int
        At least 3.

    n_samples : float
        Number of rows, public or released.

    Returns
    -------
    float
        What makes a model whose scores are normal claim to be right as often as it is, tempered,
        within 0.2 and 3. Where it claims too much, for what noise does not explain of that, by the
        positive part of the estimator of James and Stein. Where it claims too little, for what is
        left after a deviation of the noise and after one over the root of the number of rows: so
        much a model gains on the rows of its own.
    """
    claimed, true = believed(found, least=1.0 / n_outputs + 1e-3, n_samples=n_samples)
    factor = asked_for(claimed, true, np.zeros(n_outputs))
    return min(max(factor ** (_LONGER if factor > 1.0 else _SHORTER), _LEAST), _MOST)


def believed(
    found: Sureness, *, least: float, n_samples: float, by_deviations: bool = False
) -> tuple[float, float]:
    """How often a model claims to be right, and how often it is, as far as noise does not explain.

    Parameters
    ----------
    found : Sureness

    least : float
        Of both.

    n_samples : float
        Number of rows, public or released.

    by_deviations : bool, default=False
        Whether a deviation of the noise is taken off what is claimed too much, in place of what
        the estimator of James and Stein takes.

    Returns
    -------
    claimed, true : float
    """
    noise, doubt = found.deviation, math.sqrt(2.0) * found.deviation
    claimed = min(max(found.claimed, least), _SUREST)
    surplus = found.right - claimed
    if surplus > 0.0:
        surplus = max(0.0, surplus - doubt - 1.0 / math.sqrt(n_samples))
        claimed = min(claimed + noise, _SUREST)  # from the least on it is a long way up
    elif by_deviations:
        surplus = min(0.0, surplus + doubt)
    else:
        surplus *= max(0.0, 1.0 - 2.0 * (noise / min(surplus, -1e-12)) ** 2)
    return claimed, min(max(claimed + surplus, least), _SUREST)


def asked_for(claimed: float, true: float, start: np.ndarray) -> float:
    """Spread of scores around a start that claim what is true, over that of those here.

    Parameters
    ----------
    claimed, true : float
        Mean probability of the likeliest class, as it is claimed and as it should be: both more
        than at the start.

    start : ndarray of shape (n_outputs,)

    Returns
    -------
    float
    """
    certain = float(softmax(start).max())
    spreads = [
        factor_of_right(chance - certain, start=start, spread=1.0, least=1e-3, most=1e3)
        for chance in (claimed, true)
    ]
    return spreads[1] / spreads[0]
