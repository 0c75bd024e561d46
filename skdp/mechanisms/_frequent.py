"""Names of what is frequent: noisy counts above a public threshold."""

from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np
from scipy.special import ndtr

from skdp._facts import note
from skdp._grid import UP
from skdp._random._source import NoiseSource, noise_source
from skdp._recording import kept
from skdp._validation import plain_arguments, shown
from skdp.mechanisms._lattice import Lattice
from skdp.mechanisms._law import NoiseLaw

__all__ = ["escape_probability", "frequent_names"]

_NDTR = 1.0 + 1e-12  # far above the error of the normal tail that scipy states


@plain_arguments
def escape_probability(threshold: float, *, law: NoiseLaw, lattice: Lattice) -> float:
    """Probability, rounded up, that a count of 1 reaches the threshold.

    Parameters
    ----------
    threshold : float
        Multiple of the step of the lattice, above 1.

    law : NoiseLaw
        Gaussian.

    lattice : Lattice

    Returns
    -------
    float
    """
    # Noise that is rounded to the lattice passes a step by half of it.
    far = (threshold - 1.0 - lattice.step / 2.0) / (law.scale * lattice.sensitivity * UP)
    return float(ndtr(-far * (1.0 - 1e-15))) * _NDTR + 5e-324


@plain_arguments
def frequent_names(
    counts: Mapping[Hashable, int],
    *,
    law: NoiseLaw,
    lattice: Lattice,
    threshold: float,
    random_state: NoiseSource | Any = None,
    purpose: str = "",
) -> tuple[Any, ...]:
    """Release the names whose noisy counts reach a threshold, and nothing else of the counts.

    Privacy: a name is released only if the data have it. Where neighbours have the same names, the
    result satisfies ``law.guarantee`` if their counts differ by at most ``lattice.sensitivity`` in
    l2 norm. A name that one of them alone has, once, is released with a probability of at most
    `escape_probability`. The caller must ensure the bound on counts, and an order of the result
    that does not depend on the data.

    Parameters
    ----------
    counts : mapping of hashable to int
        How often each name is in the data, at least once.

    law : NoiseLaw
        Gaussian.

    lattice : Lattice
        With a step of at most 1, so that counts are on it.

    threshold : float
        Multiple of the step, above 1. Public.

    random_state : None, int, RandomState, Generator or NoiseSource, default=None
        None draws from the operating system; anything else is for tests.

    purpose : str, default=""
        What the names are, in words, for the account of the fit. Public.

    Returns
    -------
    tuple
        In the order of ``counts``, which may be private.

    References
    ----------
    Korolova, Kenthapadi, Mishra and Ntoulas, "Releasing search queries and clicks privately",
    WWW 2009.
    """
    if law.kind != "gaussian":
        raise ValueError(f"law must be Gaussian; got {shown(law)}.")
    if not threshold > 1.0 or threshold % lattice.step or lattice.step > 1.0:
        raise ValueError(
            "threshold must be above 1, a multiple of the step of the lattice, which is at most "
            f"1; got {shown(threshold)}."
        )
    asked = np.fromiter(counts.values(), dtype=np.float64, count=len(counts))
    noise = law.draw(noise_source(random_state), 1, len(asked), lattice.sensitivity / lattice.step)
    bounds: dict[str, Any] = dict(
        scale=law.scale * lattice.sensitivity * UP, sensitivity=lattice.sensitivity
    )
    note(purpose, "threshold", None, law, **bounds)  # how many names there are is private
    return kept(
        tuple(counts),
        asked,
        lattice.release(asked, noise[0]),
        law=law,
        step=lattice.step,
        threshold=threshold,
        **bounds,
    )
