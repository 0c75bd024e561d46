"""The numbers and sentences of a report, as its schema has them."""

import math
import os
import platform
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

import sklearn

from skdp import __version__
from skdp._validation import shown
from skdp.exceptions import NoConversionError
from skdp.inspection._attacker import PRIORS, best_guess, largest_posterior, power_of_tests
from skdp.inspection._report_public import public_of
from skdp.inspection._report_releases import releases_of, stated, with_shares
from skdp.inspection._report_subject import leaves_of
from skdp.inspection._report_texts import (
    GLOSSARY,
    floating_point,
    is_void,
    layers,
    not_covered,
    one_in,
    percent,
    randomness,
    rounded_up,
    what_it_is,
)
from skdp.model_selection import DPEpsilonSearch
from skdp.privacy import (
    ZCDP,
    ApproxDP,
    BoundedRangeDP,
    BudgetLedger,
    ComposedDP,
    GaussianDP,
    JointLogisticDP,
    MutualInformationPrivacy,
    ParallelDP,
    RandomRunsDP,
    user_guarantee,
)

__all__ = ["report_of"]

_DELTA = 1e-6  # where a guarantee names none
_DELTAS = (1e-9, 1e-6, 1e-3)
_LEVEL = 0.05
_ROWS = (2, 5)  # of somebody who has several

_METHODS = (
    (BoundedRangeDP, "ranges of selections, composed as Dong, Durfee and Rogers do"),
    (ComposedDP, "composition of the distributions of privacy losses, rounded up"),
    (GaussianDP, "Gaussian noise, composed exactly: squares of mu add up"),
    (JointLogisticDP, "the joint law of the gradients of all classes"),
    (MutualInformationPrivacy, "nats of mutual information add up; so does the worst case"),
    (ParallelDP, "disjoint parts of the data: the largest loss of a part counts"),
    (RandomRunsDP, "the best of a secret random number of runs (Papernot and Steinke 2022)"),
    (ZCDP, "zero-concentrated differential privacy: rho adds up"),
)


def report_of(subject, ledger):
    """Data of a report.

    Parameters
    ----------
    subject : Subject

    ledger : BudgetLedger, path or None

    Returns
    -------
    dict
    """
    guarantee = subject.guarantee
    delta = _delta_of(guarantee)
    epsilon = _finite(guarantee.epsilon_at(delta))
    attacker = _attacker(subject, delta)
    return {
        "schema": "privacy_report",
        "version": "1.0",
        "made": {
            "skdp": __version__,
            "scikit-learn": sklearn.__version__,
            "python": platform.python_version(),
            "date": f"{datetime.now(UTC):%Y-%m-%d}",
        },
        "subject": subject.told(),
        "headline": _headline(subject, epsilon, delta, attacker),
        "guarantee": _guarantee(guarantee, epsilon, delta),
        "attacker": attacker,
        "public": public_of(subject),
        "releases": _releases(subject),
        "accounting": _accounting(subject),
        "ledger": _ledger(subject, ledger),
        "floating_point": list(floating_point(subject.kind)),
        "randomness": list(randomness(guarantee.caveats)),
        "not_covered": [dict(zip(("what", "why"), t, strict=True)) for t in not_covered(subject)],
        "nist_sp_800_226": [
            dict(zip(("layer", "status", "text"), told, strict=True))
            for told in layers(subject, epsilon)
        ],
        "glossary": [dict(zip(("term", "meaning"), told, strict=True)) for told in GLOSSARY],
    }


def _delta_of(guarantee):
    """Delta at which epsilon is quoted: the one that is claimed, or one in a million."""
    if isinstance(guarantee, ApproxDP):
        return guarantee.delta
    return 0.0 if math.isfinite(guarantee.epsilon_at(0.0)) else _DELTA


def _finite(value):
    return value if math.isfinite(value) else None


def _headline(subject, epsilon, delta, attacker):
    unit, what = subject.guarantee.unit, what_it_is(subject.kind, subject.is_kept)
    even = attacker["posteriors"][-1]
    rare = even["except_with_probability"]
    but = f" The chance that it is more is at most {one_in(rare)}." if rare else ""
    size = "no finite epsilon" if epsilon is None else f"epsilon {rounded_up(epsilon)}"
    size += f" at delta {delta:g}" if delta else ", delta 0"
    told = (
        f"Whoever sees {what} and knows everything about all other {unit}s can become at most "
        f"{percent(even['posterior'])} sure of something about one {unit} that was as likely as "
        f"not to them before.{but} In the usual numbers: {size}."
    )
    if is_void(subject.guarantee.caveats):
        reasons = "; ".join(subject.guarantee.caveats)
        return f"The promise below protects nobody as it stands ({reasons}). Otherwise: {told}"
    if subject.guarantee.caveats:
        return f"{told} This has conditions: {'; '.join(subject.guarantee.caveats)}."
    return told


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
        "curve": [{"delta": d, "epsilon": _finite(guarantee.epsilon_at(d))} for d in deltas],
        "conversions": list(_conversions(guarantee, delta)),
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


def _conversions(guarantee, delta):
    """The same promise in other currencies, and that for somebody with several rows."""
    if isinstance(guarantee, MutualInformationPrivacy):
        yield {"name": "mutual information in bits", "value": guarantee.bits}
    with suppress(NoConversionError):
        yield {"name": "mu of Gaussian differential privacy", "value": guarantee.to_gdp().mu}
    with suppress(NoConversionError):
        rho = guarantee.to_zcdp().rho
        yield {"name": "rho of zero-concentrated differential privacy", "value": rho}
    if guarantee.unit != "record":
        return
    for rows in _ROWS:
        with suppress(NoConversionError):
            found = user_guarantee(guarantee, rows)
            at = found.delta if isinstance(found, ApproxDP) else delta
            epsilon = _finite(found.epsilon_at(at))
            name = f"epsilon for somebody with {rows} rows"
            yield {"name": f"{name} (delta {at:.3g})" if at else name, "value": epsilon}
            rare = _exception(found, at)
            sure = percent(largest_posterior(found, 0.5, rare))
            but = f", except with a chance of {one_in(rare)}" if rare else ""
            yield {"name": f"how sure of them, from 50 %{but}", "value": sure}


def _exception(guarantee, delta):
    """Chance with which bounds on how sure somebody gets may fail; 0 where none does."""
    if math.isfinite(guarantee.epsilon_at(0.0)):
        return 0.0
    return min(10.0 * (delta or _DELTA), 0.5 * (1.0 + delta))


def _attacker(subject, delta):
    guarantee, unit = subject.guarantee, subject.guarantee.unit
    rare = _exception(guarantee, delta)
    posteriors = [
        {
            "prior": prior,
            "posterior": largest_posterior(guarantee, prior, rare),
            "except_with_probability": rare,
            "guess_right": best_guess(guarantee, prior),
        }
        for prior in PRIORS
    ]
    sentence = (
        f"Assume the worst: an attacker who knows all other {unit}s, the parameters, and this "
        f"report. The numbers follow from the promise alone, for whatever is asked about one "
        f"{unit}; most attackers get less far."
    )
    if rare:
        sentence += (
            " With a positive delta nothing bounds in every case how sure one can get: with a "
            "small chance the noise happens to hide less. The numbers hold except with a "
            f"chance of {one_in(rare)} for each {unit}, which is more than delta: the rarer the "
            "exception, the larger the numbers."
        )
    if is_void(guarantee.caveats):
        sentence += " They hold only against those who do not know the noise."
    test = {"level": _LEVEL, "power": power_of_tests(guarantee, _LEVEL)}
    return {"sentence": sentence, "posteriors": posteriors, "test": test}


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
    if behind is None:
        method = "one release, or releases whose epsilons add up"
        text = "Epsilon and delta are those of the proof; the epsilons of several releases add up."
    else:
        known = (text for kind, text in _METHODS if isinstance(behind, kind))
        method = next(known, "the privacy profile of the mechanism")
        claimed = "The proof says more than epsilon and delta" if is_point else "The promise is"
        text = (
            f"{claimed}: {_within(behind._claim())}. Losses of several releases are composed by "
            "their whole curves, not by a rule of thumb, and rounded up."
        )
        if is_point:
            slack = _finite(max(0.0, guarantee.epsilon - behind.epsilon_at(guarantee.delta)))
    of_few = _OF_FEW.get(subject.kind, "").format(unit=guarantee.unit)
    text = f"{text} {of_few}".strip()
    return {"method": method, "text": text, "total": str(guarantee), "slack": slack}


def _within(sentence):
    """A sentence that stands within another."""
    begins = ("A ", "At ", "The ")
    return sentence[0].lower() + sentence[1:] if sentence.startswith(begins) else sentence


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


def _ledger(subject, ledger):
    """What a ledger holds: the one that is given, or that of the estimator if it can be opened."""
    if ledger is None:
        with suppress(OSError, ValueError, RuntimeError):
            return _told(_opened(getattr(subject.fitted, "ledger", None)))
        return None
    return _told(_opened(ledger))


def _opened(ledger):
    if isinstance(ledger, str | os.PathLike):
        return BudgetLedger(ledger)
    if ledger is not None and not isinstance(ledger, BudgetLedger):
        raise ValueError(f"ledger must be a BudgetLedger, its path or None; got {shown(ledger)}.")
    return ledger


def _told(ledger):
    if ledger is None:
        return None
    told = ledger._summary()
    return {
        "name": Path(ledger.path).name if ledger.path else "in memory",
        "unit": told.spent.unit,
        "adjacency": told.spent.adjacency,
        "budget": _point(told.budget),
        "spent": _point(told.spent),
        "sure": [_sure("spent", told.spent), _sure("budget", told.budget)],
        "left": [{"delta": one.delta, "epsilon": one.epsilon} for one in told.left],
        "by_label": [_line("label", one) for one in told.by_label],
        "by_day": [_line("day", one) for one in told.by_day],
    }


def _sure(of, guarantee):
    rare = _exception(guarantee, guarantee.delta)
    sure = largest_posterior(guarantee, 0.5, rare)
    return {"of": of, "posterior": sure, "except_with_probability": rare}


def _line(name, line):
    return {name: line.name, "charges": line.charges, "guarantee": _point(line.guarantee)}


def _point(guarantee):
    at = f" at delta={guarantee.delta:.6g}" if guarantee.delta else ""
    return f"epsilon={rounded_up(guarantee.epsilon, 6)}{at}"
