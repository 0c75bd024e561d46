"""The number of runs of a private selection: an integer with exactly its law."""

import math
from decimal import Decimal
from typing import Any

from skdp._random._exact import Uniform, precision
from skdp._random._source import noise_source
from skdp._validation import plain_arguments
from skdp.privacy import random_runs_mean

__all__ = ["n_random_runs"]


@plain_arguments
def n_random_runs(*, eta: float, gamma: float, random_state: Any = None) -> int:
    """Draw how often a mechanism runs, of which only the best run is released.

    Privacy: the number must not be released, nor limited after it is drawn: the guarantee, a
    `~skdp.privacy.RandomRunsDP` with the same numbers, rests on its law. That is met exactly:
    digits of a uniform number are drawn until they tell the number, in multiple precision.

    Parameters
    ----------
    eta : float, larger than -1

    gamma : float in (0, 1)

    random_state : None, int, RandomState, Generator or NoiseSource, default=None
        None draws from the operating system; anything else is for tests.

    Returns
    -------
    int
        At least 1.

    References
    ----------
    Papernot and Steinke, "Hyperparameter tuning with Renyi differential privacy", ICLR 2022,
    definition 1: the truncated negative binomial law.

    Examples
    --------
    >>> from skdp.mechanisms import n_random_runs
    >>> n_random_runs(eta=0.0, gamma=0.02) >= 1
    True
    """
    random_runs_mean(eta, gamma)  # refuses what is no law
    uniform = noise_source(random_state).uniforms(1)[0]
    length = 64
    while True:
        uniform.to(length)
        found = _place(float(eta), float(gamma), uniform)
        if found is not None:
            return found
        length = 2 * uniform.length


def _place(eta: float, gamma: float, uniform: Uniform) -> int | None:
    """Number at which the running sum of probabilities exceeds the uniform number.

    None where its known digits do not tell.
    """
    spare = 96
    if eta != 0.0:  # the first probability cancels digits
        spare += max(0, math.ceil(-math.log2(abs(eta)) - math.log2(-math.log(gamma))))
    with precision(uniform.length + spare):
        least = Decimal(uniform.digits) / (1 << uniform.length)
        most = Decimal(uniform.digits + 1) / (1 << uniform.length)
        left, shape = 1 - Decimal(gamma), Decimal(eta)
        log = Decimal(gamma).ln()
        one = left / -log if eta == 0.0 else left * shape / ((-shape * log).exp() - 1)
        total, count = one, 1
        while True:
            # Each step errs by a few units of the last digit, of all that was summed.
            error = Decimal(16 * count + 64) / (1 << (uniform.length + 90))
            if most <= total - error:
                return count
            if least < total + error:
                return None
            one *= left * (count + shape) / (count + 1)
            total, count = total + one, count + 1
