"""Noisy counts of which the names are released, over the names of two worlds."""

import math
from dataclasses import fields
from typing import Any

import numpy as np
from scipy.special import log_ndtr

from skdp._recording import Kept, Released
from skdp.audit._transcript import Transcript

__all__ = ["over_names_of_both", "public_size"]


def public_size(release: Released) -> Any:
    """Shape of what is released; of names, of which the number is private, the threshold."""
    return release.threshold if isinstance(release, Kept) else np.shape(release.asked)


def over_names_of_both(one: Transcript, other: Transcript) -> tuple[Transcript, Transcript, float]:
    """Counts of the same names in both, and what names of one alone may tell.

    Parameters
    ----------
    one, other : Transcript
        Of neighbours, with the same releases.

    Returns
    -------
    one, other : Transcript
        With plain releases of those counts that differ, two at least, for that is how many a
        record changes.

    escape : float
        Probability that a name is released which only one of them has; of the worse one.
    """
    if not any(isinstance(record, Kept) for record in one):
        return one, other, 0.0
    here, there = Transcript(), Transcript()
    unseen = np.zeros(2)  # logarithms
    for a, b in zip(one, other, strict=True):
        if not (isinstance(a, Kept) and isinstance(b, Kept)):
            here.append(a)
            there.append(b)
            continue
        mine, yours = (dict(zip(r.names, r.asked.tolist(), strict=True)) for r in (a, b))
        both = [name for name in mine if name in yours and mine[name] != yours[name]]
        pad = [0.0] * max(0, 2 - len(both))
        here.append(_plainly(a, [mine[name] for name in both] + pad))
        there.append(_plainly(b, [yours[name] for name in both] + pad))
        unseen += _log_unseen(a, mine, yours), _log_unseen(b, yours, mine)
    return here, there, -math.expm1(float(unseen.min()))


def _plainly(release: Kept, counts: list[float]) -> Released:
    counted = np.array(counts)
    values = {field.name: getattr(release, field.name) for field in fields(Released)}
    return Released(**{**values, "asked": counted, "released": counted})


def _log_unseen(release: Kept, counts: dict[Any, float], others: dict[Any, float]) -> float:
    """Logarithm of the probability that counts of own names stay below the threshold."""
    own = np.array([count for name, count in counts.items() if name not in others])
    far = (release.threshold - own - release.step / 2.0) / release.scale
    return float(log_ndtr(far).sum())
