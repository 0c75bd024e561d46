"""The releases of a fit as a report tells them: from its account, or from what it states."""

import math

from skdp.privacy import ApproxDP, BoundedRangeDP, GaussianDP, Guarantee

__all__ = ["names_theorem", "releases_of", "stated", "with_shares"]

NOISES = {
    "laplace": "Laplace noise in each number, in whole steps of a public size",
    "k_norm": "K-norm noise (density falls with exp(-length / scale)), in whole public steps",
    "k_norm_pairs": "K-norm noise (density falls with exp(-length / scale) of the longest pair of "
    "a cosine and a sine), in whole public steps",
    "k_norm_rows": "K-norm noise in the row of each class, in whole public steps",
    "gaussian": "Gaussian noise in each number, in whole steps of a public size",
    "threshold": "Gaussian noise on counts, of which names above a public threshold leave",
    "exponential": "chosen at random, favouring better candidates (exponential mechanism)",
}
THEOREMS = {
    "laplace": "Dwork, McSherry, Nissim and Smith, TCC 2006, proposition 1",
    "k_norm": "Hardt and Talwar, STOC 2010, section 4",
    "k_norm_pairs": "Hardt and Talwar, STOC 2010, section 4; Awan and Slavkovic, JASA 2021",
    "k_norm_rows": "Hardt and Talwar, STOC 2010, section 4; Awan and Slavkovic, JASA 2021",
    "gaussian": "Balle and Wang, ICML 2018, theorem 8",
    "threshold": "Korolova, Kenthapadi, Mishra and Ntoulas, WWW 2009",
    "exponential": "McSherry and Talwar, FOCS 2007; Dong, Durfee and Rogers, ICML 2020",
}
_UNSAID = "a noisy answer"
_OF_EACH = "those of the mechanisms that these are made by"


def names_theorem(row):
    """Whether a row of a report names the theorem that it rests on."""
    return row["theorem"] != _OF_EACH


def releases_of(facts, guarantee, step=None):
    """Rows of a report for the account of a fit; one row for a fit that has none.

    Parameters
    ----------
    facts : tuple of Fact

    guarantee : Guarantee
        Of the whole fit.

    step : str, default=None

    Returns
    -------
    list of (dict, Guarantee or None)
        Each with the guarantee of one release.
    """
    rows = [_row(fact, guarantee, step) for fact in facts]
    return rows or [stated("all that was released", guarantee, step)]


def stated(purpose, guarantee, step=None, share=None):
    """Row for releases of which no more is known than what they satisfy together."""
    is_known = isinstance(guarantee, Guarantee)
    row = dict(
        step=step,
        purpose=purpose,
        times=None,
        noise="as its guarantee states",
        scale=None,
        sensitivity=None,
        size=None,
        guarantee=_claim(guarantee) if is_known else str(guarantee),
        share=share,
        theorem=(guarantee.source if is_known else "") or _OF_EACH,
    )
    return row, None


def _row(fact, guarantee, step):
    one = fact.guarantee
    if isinstance(one, float):
        one = BoundedRangeDP((one,), adjacency=guarantee.adjacency)
    noise = NOISES.get(fact.noise, fact.noise)
    scale, told = _one_number(fact.scales)
    if told:
        noise = f"{noise}; its scale goes from {told}"
    source = one.source if isinstance(one, Guarantee) else ""
    row = dict(
        step=step,
        purpose=fact.purpose or _UNSAID,
        times=fact.times,
        noise=noise,
        scale=scale,
        sensitivity=_one_number(fact.sensitivities)[0],
        size=fact.size,
        guarantee="" if one is None else _claim_of_one(one),
        share=None,
        theorem=source or THEOREMS.get(fact.noise, _OF_EACH),
    )
    if one is None:
        row["guarantee"] = "part of the whole"
    return row, one


def _one_number(bounds):
    """A number that was always the same, or the largest of several with a text of both ends."""
    if bounds is None:
        return None, ""
    low, high = bounds
    if high - low <= 1e-6 * abs(high):
        return high, ""
    return None, f"{low:.3g} to {high:.3g}"


def _claim_of_one(guarantee):
    if isinstance(guarantee, BoundedRangeDP) and len(guarantee.epsilons) == 1:
        (epsilon,) = guarantee.epsilons
        if guarantee.then is None:
            return f"{epsilon:.4g}-differential privacy; so is the range of its log-odds"
    return _claim(guarantee)


def _claim(guarantee):
    """A guarantee in words, without its unit, which the report has said."""
    return guarantee._claim()


def with_shares(rows, *, is_pure):
    """Rows with their shares of the whole: of epsilon, or of mu^2.

    Of a pure release ``mu^2`` is ``epsilon^2``, and a selection of range ``epsilon`` has a quarter
    of that: what they cost among many others. Where something has no size of its own, nothing has
    a share.

    Parameters
    ----------
    rows : list of (dict, Guarantee or None)

    is_pure : bool

    Returns
    -------
    list of dict
    """
    sizes = [_size(one, is_pure) for _, one in rows]
    told = [row["share"] is not None for row, _ in rows]
    if not any(told) and all(size is not None for size in sizes):
        weights = [size * row["times"] for size, (row, _) in zip(sizes, rows, strict=True)]
        total = math.fsum(weights)
        if total > 0.0:
            for weight, (row, _) in zip(weights, rows, strict=True):
                row["share"] = weight / total
    return [row for row, _ in rows]


def _size(guarantee, is_pure):
    if isinstance(guarantee, GaussianDP):
        return None if is_pure else guarantee.mu**2
    if isinstance(guarantee, BoundedRangeDP):
        epsilon = math.fsum(guarantee.epsilons)
        return epsilon if is_pure else epsilon**2 / 4.0
    if not isinstance(guarantee, Guarantee):
        return None
    epsilon = guarantee.epsilon_at(0.0)
    if math.isfinite(epsilon):
        return epsilon if is_pure else epsilon**2
    behind = guarantee.refined if isinstance(guarantee, ApproxDP) else None
    return None if is_pure or not isinstance(behind, GaussianDP) else behind.mu**2
