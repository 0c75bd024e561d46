"""The numbers and sentences of a report, as its schema has them."""

import math
import platform
from contextlib import suppress
from datetime import UTC, datetime

import sklearn

from skdp import __version__
from skdp.exceptions import NoConversionError
from skdp.inspection._report_ledger import ledger_of
from skdp.inspection._report_meaning import attacker_of, delta_of, finite, yardstick
from skdp.inspection._report_public import public_of
from skdp.inspection._report_releases import names_theorem, releases_of, stated, with_shares
from skdp.inspection._report_subject import leaves_of
from skdp.inspection._report_texts import (
    GLOSSARY,
    floating_point,
    is_no_limit,
    is_void,
    layers,
    not_covered,
    not_of_skdp,
    one_in,
    percent,
    randomness,
    rounded_up,
    times_delta,
    what_it_is,
)
from skdp.model_selection import DPEpsilonSearch
from skdp.privacy import (
    ZCDP,
    ApproxDP,
    BoundedRangeDP,
    ComposedDP,
    GaussianDP,
    JointLogisticDP,
    MutualInformationPrivacy,
    ParallelDP,
    RandomRunsDP,
)

__all__ = ["report_of"]

_DELTAS = (1e-9, 1e-6, 1e-3)

_METHODS = (
    (BoundedRangeDP, "ranges of selections, composed as Dong, Durfee and Rogers do"),
    (ComposedDP, "composition of the distributions of privacy losses, rounded up"),
    (GaussianDP, "Gaussian noise, composed exactly: squares of mu add up"),
    (JointLogisticDP, "the joint distribution of the gradients of all classes"),
    (MutualInformationPrivacy, "nats of mutual information add up; so does the worst case"),
    (ParallelDP, "disjoint parts of the data: the largest loss of a part counts"),
    (RandomRunsDP, "the best of a secret random number of runs (Papernot and Steinke 2022)"),
    (ZCDP, "zero-concentrated differential privacy: rho adds up"),
)


def report_of(subject, ledger, about):
    """Data of a report.

    Parameters
    ----------
    subject : Subject

    ledger : BudgetLedger or path, default=None

    about : dict
        What the caller says of the data, of their use and of whoever answers for it.

    Returns
    -------
    dict
    """
    guarantee = subject.guarantee
    delta = delta_of(guarantee)
    epsilon = finite(guarantee.epsilon_at(delta))
    attacker = attacker_of(subject)
    releases = _releases(subject)
    return {
        "schema": "privacy_report",
        "version": "1.1",
        "made": {
            "skdp": __version__,
            "scikit-learn": sklearn.__version__,
            "python": platform.python_version(),
            "date": f"{datetime.now(UTC):%Y-%m-%d}",
        },
        "subject": subject.told(),
        "stated": about,
        "headline": _headline(subject, epsilon, delta, attacker),
        "guarantee": _guarantee(guarantee, epsilon, delta),
        "attacker": attacker,
        "yardstick": yardstick(),
        "public": public_of(subject),
        "releases": releases,
        "accounting": _accounting(subject),
        "ledger": ledger_of(subject.fitted, ledger),
        "floating_point": list(floating_point(subject, _noises(subject))),
        "randomness": list(randomness(subject)),
        "not_covered": [dict(zip(("what", "why"), t, strict=True)) for t in not_covered(subject)],
        "nist_sp_800_226": [
            dict(zip(("layer", "status", "text"), told, strict=True))
            for told in layers(subject, epsilon, names_theorems=all(map(names_theorem, releases)))
        ],
        "glossary": [dict(zip(("term", "meaning"), told, strict=True)) for told in GLOSSARY],
    }


def _headline(subject, epsilon, delta, attacker):
    unit, what = subject.guarantee.unit, what_it_is(subject.kind, subject.is_kept)
    told = (
        f"Suppose that somebody sees {what}, knows everything about all other {unit}s, and thinks "
        f"a claim about one {unit} is 50:50. {_limit(what, epsilon, delta, attacker)}"
    )
    if is_void(subject.guarantee.caveats):
        reasons = "; ".join(subject.guarantee.caveats)
        return f"The promise below protects nobody as it stands ({reasons}). Otherwise: {told}"
    if subject.third_party:
        told = (
            f"{not_of_skdp(subject.third_party)}, and nothing here checks the promise below. If "
            f"it is kept: {told}"
        )
    if subject.guarantee.caveats:
        return f"{told} This has conditions: {'; '.join(subject.guarantee.caveats)}."
    return told


def _limit(what, epsilon, delta, attacker):
    """How sure an attacker becomes who was 50 % sure."""
    even = attacker["posteriors"][-1]
    if is_no_limit(even["posterior"]):
        size = "No finite epsilon is proven: this"
        if epsilon is not None:
            size = f"Epsilon {rounded_up(epsilon)} is so large that it"
        return f"{size} promises nothing against such a reader: they may become certain."
    rare = even["except_with_probability"]
    but = f", except with a probability of at most {one_in(rare)}{times_delta(rare, delta)}"
    at = f" at delta {delta:g} ({one_in(delta)})" if delta else ", and delta is 0"
    size = "No finite epsilon is proven."
    if epsilon is not None:
        size = f"The technical name of this is epsilon {rounded_up(epsilon)}{at}."
    return (
        f"After seeing {what}, their confidence is at most {percent(even['posterior'])}"
        f"{but if rare else ''}. {size}"
    )


def _guarantee(guarantee, epsilon, delta):
    deltas = sorted({*_DELTAS, delta}, reverse=True)
    return {
        "unit": guarantee.unit,
        "adjacency": guarantee.adjacency,
        "epsilon": epsilon,
        "delta": delta,
        "definition": _definition(guarantee),
        "sentence": str(guarantee),
        "mechanism": guarantee.mechanism,
        "source": guarantee.source,
        "caveats": list(guarantee.caveats),
        "curve": [{"delta": d, "epsilon": finite(guarantee.epsilon_at(d))} for d in deltas],
        "conversions": list(_conversions(guarantee)),
    }


def _definition(guarantee):
    if isinstance(guarantee, ApproxDP):
        return (
            "approximate differential privacy" if guarantee.delta else "pure differential privacy"
        )
    kinds = (
        (GaussianDP, "Gaussian differential privacy"),
        (ZCDP, "zero-concentrated differential privacy"),
        (MutualInformationPrivacy, "local differential privacy, and bounded mutual information"),
    )
    told = (text for kind, text in kinds if isinstance(guarantee, kind))
    return next(told, "differential privacy with a proven privacy profile")


def _conversions(guarantee):
    """The same promise in other currencies."""
    if isinstance(guarantee, MutualInformationPrivacy):
        yield {"name": "mutual information in bits", "value": guarantee.bits}
    with suppress(NoConversionError):
        yield {"name": "mu of Gaussian differential privacy", "value": guarantee.to_gdp().mu}
    with suppress(NoConversionError):
        rho = guarantee.to_zcdp().rho
        yield {"name": "rho of zero-concentrated differential privacy", "value": rho}


def _noises(subject):
    """Kinds of the noise that accounts name."""
    steps = [getattr(step, "estimator", step) for _, step, _ in subject.steps]
    return {
        fact.noise for step in [subject.fitted, *steps] for fact in getattr(step, "_facts", ())
    }


def _releases(subject):
    is_pure = math.isfinite(subject.guarantee.epsilon_at(0.0))
    if subject.kind == "search":
        return _releases_of_search(subject, is_pure)
    rows = []
    for path, step, _ in (
        leaves_of(subject.fitted) if subject.steps else [("", subject.fitted, "")]
    ):
        step = getattr(step, "estimator", step)  # what is frozen was released, too
        guarantee = getattr(step, "guarantee_", subject.guarantee if not path else None)
        if guarantee is None or (path and guarantee.delta_at(0.0) == 0.0):
            continue
        rows += releases_of(getattr(step, "_facts", ()), guarantee, path or None)
    if not rows and subject.guarantee.delta_at(0.0) > 0.0:
        rows = [stated("all that was released", subject.guarantee)]
    return with_shares(rows, is_pure=is_pure)


def _releases_of_search(subject, is_pure):
    """By stages; of the choice, the score and the last fit there are accounts."""
    search, guarantee = subject.fitted, subject.guarantee
    own = getattr(search, "_facts", ())
    last: list = []
    for path, step, _ in subject.steps:
        facts = getattr(getattr(step, "estimator", step), "_facts", ())
        last += releases_of(facts, guarantee, path) if facts else []
    accounts = {
        "choice": releases_of([one for one in own if one.noise == "exponential"], guarantee, None),
        "score": releases_of([one for one in own if one.noise != "exponential"], guarantee, None),
        "refit": last,
    }
    if isinstance(search, DPEpsilonSearch):
        before = search.stages_[:-1]
        points = ", ".join(f"epsilon {stage.epsilon:.4g}" for stage in before)
        rows = [stated("fits of the stages before the last", points)] if before else []
        scores = releases_of(own, guarantee, "scores")
        return [row for row, _ in [*rows, *last, *scores]]
    stages = getattr(search, "division_", None)
    if stages is None:
        return [stated("all fits of the search", guarantee)[0], *(row for row, _ in last)]
    found = []
    for name, share, text in stages:
        known = accounts.get(name)
        if not known or known[0][0]["times"] is None:
            found.append(stated(_STAGES.get(name, name), text, name, _part(share))[0])
            continue
        for row in with_shares(known, is_pure=is_pure):
            row["step"] = row["step"] or name
            row["share"] = None if row["share"] is None else _part(row["share"] * share)
            found.append(row)
    return found


_STAGES = {
    "fits": "all fits that were compared",
    "fit of a run": "fit of one run; how many runs there were is secret",
    "score of a run": "score of one run, on rows that it has not learned from",
    "choice": "which of the candidates loses least",
    "score": "score of what was chosen",
    "refit": "last fit, to all rows",
}


def _part(share):
    return min(max(float(share), 0.0), 1.0)


def _accounting(subject):
    guarantee = subject.guarantee
    is_point = isinstance(guarantee, ApproxDP)
    behind = guarantee.refined if is_point else guarantee
    slack = None
    if subject.third_party:
        text = f"{not_of_skdp(subject.third_party)}: how its losses add up was not checked."
        total = str(guarantee)
        return {"method": "not known", "text": text, "total": total, "slack": slack}
    if behind is None:
        method = "one release, or releases whose epsilons add up"
        text = "Epsilon and delta are those of the proof; the epsilons of several releases add up."
    else:
        known = (text for kind, text in _METHODS if isinstance(behind, kind))
        method = next(known, "the privacy profile of the mechanism")
        claimed = "The proof says more than epsilon and delta" if is_point else "The promise is"
        text = (
            f"{claimed}: {_within(behind._claim())}. The losses of several "
            "answers are added up from all that is proven of each, and rounded up."
        )
        if is_point:
            slack = finite(max(0.0, guarantee.epsilon - behind.epsilon_at(guarantee.delta)))
    of_few = _OF_FEW.get(subject.kind, "").format(unit=guarantee.unit)
    text = f"{text} {of_few}".strip()
    return {"method": method, "text": text, "total": str(guarantee), "slack": slack}


def _within(sentence):
    """A sentence that stands within another."""
    begins = ("A ", "At ", "The ")
    within = sentence[0].lower() + sentence[1:] if sentence.startswith(begins) else sentence
    return within.replace(", followed by A ", ", followed by a ")


# Where one unit moves few of the releases that are listed.
_OF_FEW = {
    "network": "The times are those of all nodes of this process; what one {unit} tells is in the "
    "messages of its own node.",
    "stream": "The times are those of the whole stream, of which one {unit} moves some: the proof "
    "counts these.",
    "local": "The times are those of all who sent something; each is protected by the noise of "
    "what they sent themselves.",
    "search": "Shares of stages that read different rows do not add up: of such stages the one "
    "that costs most counts.",
}
