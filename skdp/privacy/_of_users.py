"""User-level guarantees from record-level guarantees, by group privacy."""

import math
from contextlib import suppress
from dataclasses import replace
from functools import singledispatch
from typing import Any

import numpy as np

from skdp._validation import plain_arguments, positive_int, short_repr
from skdp.exceptions import NoConversionError
from skdp.privacy._bounded_range import BoundedRangeDP
from skdp.privacy._composition import ComposedDP, MutualInformationPrivacy, compose, counted
from skdp.privacy._guarantees import ZCDP, ApproxDP, GaussianDP, Guarantee, smallest_epsilon, union
from skdp.privacy._random_runs import RandomRunsDP

_UP = 1.0 + 1e-15  # above the rounding of a product
_FAR = 700.0  # exponents that floats have
_SOURCE = "group privacy: Dwork and Roth 2014, theorem 2.2; Dong, Roth and Su 2022"


@plain_arguments
def user_guarantee(guarantee: Guarantee, max_rows: int) -> Guarantee:
    """Convert a record-level guarantee to a user-level one, for a bounded number of rows each.

    This is the cost of :func:`~skdp.preprocessing.bound_contributions`: replacing all rows of a
    user is a chain of ``max_rows`` changes of one row.

    Parameters
    ----------
    guarantee : Guarantee
        Guarantee of any class for one record.

    max_rows : int
        Public maximum number of records per user.

    Returns
    -------
    Guarantee
        Guarantee with the unit "user" and the same adjacency. A pure epsilon, the mu of Gaussian
        noise and the ranges of selections are multiplied by ``max_rows``, the rho of
        zero-concentrated privacy by its square. A point ``(epsilon, delta)`` keeps its delta if
        its refined guarantee proves it at the larger epsilon. Otherwise delta is multiplied by
        ``1 + exp(epsilon) + ... + exp((max_rows - 1) epsilon)``.

    Raises
    ------
    NoConversionError
        If no guarantee is proven for ``max_rows`` rows.

    References
    ----------
    Dwork and Roth, "The algorithmic foundations of differential privacy", 2014, theorem 2.2; Bun
    and Steinke, "Concentrated differential privacy", TCC 2016, on group privacy; Dong, Roth and
    Su, "Gaussian differential privacy", JRSS-B 2022, on group privacy.

    Examples
    --------
    >>> from skdp.privacy import ApproxDP, GaussianDP, user_guarantee
    >>> user_guarantee(ApproxDP(0.5), 4).epsilon
    2.0
    >>> user_guarantee(GaussianDP(0.25), 4).mu
    1.0...
    >>> round(user_guarantee(ApproxDP(0.5, 1e-6), 2).delta, 8)
    2.65e-06
    """
    positive_int(max_rows=max_rows)
    if not isinstance(guarantee, Guarantee):
        raise ValueError(f"guarantee must be a Guarantee; got {short_repr(guarantee)}.")
    if guarantee.unit != "record":
        raise ValueError(f"guarantee must be for one record; got one for one {guarantee.unit}.")
    plain: Guarantee = guarantee._plain("user")
    source = guarantee.source
    if max_rows > 1:
        plain = _of_group(plain, max_rows)
        source = "; ".join(text for text in (source, _SOURCE) if text)
    caveats = union(guarantee.caveats, plain.caveats)
    return replace(plain, mechanism=guarantee.mechanism, source=source, caveats=caveats)


@singledispatch
def _of_group(guarantee: Any, k: int) -> Any:
    """Guarantee for neighbours that are k neighbours in one record apart."""
    # By what is proven of any pair of neighbours, whichever parts of the data they differ in.
    behind = None
    for convert in (guarantee.to_zcdp, guarantee.to_gdp):  # Gaussian says more
        with suppress(NoConversionError):
            behind = _of_group(convert(), k)
    pure = guarantee._pure_epsilon()
    if pure is not None:
        return ApproxDP(float(k * pure), refined=behind, **guarantee._context())
    if behind is None:
        raise NoConversionError(f"No guarantee is proven for {k} records: {guarantee}")
    return behind


@_of_group.register
def _(guarantee: GaussianDP, k: int) -> GaussianDP:
    return replace(guarantee, mu=k * guarantee.mu * _UP)


@_of_group.register
def _(guarantee: ZCDP, k: int) -> ZCDP:
    return replace(guarantee, rho=k**2 * guarantee.rho * _UP)


@_of_group.register
def _(guarantee: BoundedRangeDP, k: int) -> BoundedRangeDP:
    # Logarithms of the odds add up over the k pairs, outcome by outcome, and so do their ranges.
    epsilons = tuple(k * epsilon * _UP for epsilon in guarantee.epsilons)
    then = None if guarantee.then is None else _of_group(guarantee.then, k)
    return replace(guarantee, epsilons=epsilons, then=then)


@_of_group.register
def _(guarantee: ComposedDP, k: int) -> Guarantee:
    parts = ((_of_group(part._plain(guarantee.unit), k), n) for part, n in guarantee.parts)
    return compose(counted(parts))


@_of_group.register
def _(guarantee: RandomRunsDP, k: int) -> RandomRunsDP:
    return replace(guarantee, run=_of_group(guarantee.run, k))  # the number of runs has its law


@_of_group.register
def _(guarantee: MutualInformationPrivacy, k: int) -> Guarantee:
    return _of_group(guarantee.differential_privacy(), k)


@_of_group.register
def _(guarantee: ApproxDP, k: int) -> Guarantee:
    behind = None
    if guarantee.refined is not None:
        with suppress(NoConversionError):
            behind = _of_group(guarantee.refined, k)
    pure = guarantee._pure_epsilon()
    if pure is not None:
        return replace(guarantee, epsilon=float(k * pure), refined=behind)
    delta = guarantee.delta

    def holds(epsilon: float) -> bool:
        each = guarantee.delta_at(epsilon / k)
        return each == 0.0 or math.log(each) + _log_factor(epsilon, k) <= math.log(delta)

    epsilon = math.inf if guarantee.refined is None else smallest_epsilon(holds)
    if behind is not None:
        epsilon = min(epsilon, behind.epsilon_at(delta))
    if epsilon < math.inf:
        return replace(guarantee, epsilon=epsilon, refined=behind)
    epsilon = k * guarantee.epsilon * _UP
    log_delta = math.log(delta) + _log_factor(epsilon, k)
    if log_delta < math.log1p(-1e-9):
        delta = math.exp(log_delta) * (1.0 + 1e-12)
        return replace(guarantee, epsilon=epsilon, delta=delta, refined=behind)
    if behind is None:
        raise NoConversionError(f"No guarantee is proven for {k} records: {guarantee}")
    return behind


def _log_factor(epsilon: float, k: int) -> float:
    """Logarithm of ``1 + exp(epsilon/k) + ... + exp((k-1) epsilon/k)``, rounded up."""
    steps = np.arange(k) * (epsilon / k)
    most = float(steps[-1])
    return (most + math.log(float(np.exp(steps - most).sum()))) * _UP + 1e-12
