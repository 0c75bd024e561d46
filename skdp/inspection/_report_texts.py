"""Sentences of a report that follow from what it is about, and what its words mean."""

import math
from contextlib import suppress

import numpy as np

from skdp.exceptions import NoConversionError
from skdp.pipeline._wrappers import learner_of
from skdp.privacy import ApproxDP, user_guarantee

PRIORS = (0.01, 0.1, 0.5)
_GRID = 240  # points of a search for the best epsilon, each of which gives a valid bound


def largest_posterior(guarantee, prior, except_with=0.0):
    """Largest probability that a suspicion has after the release, and how rarely it is exceeded.

    Parameters
    ----------
    guarantee : Guarantee

    prior : float in (0, 1)
        Probability of the suspicion before, to somebody who knows all other units.

    except_with : float, default=0.0
        Probability with which the bound may fail. 0 is a bound that never does, and exists for
        pure guarantees only.

    Returns
    -------
    float
    """
    loss = excess_loss(guarantee, except_with)
    # Odds are multiplied by the ratio of the likelihoods, exp(loss) at most.
    odds = math.exp(min(loss, 700.0)) * prior / (1.0 - prior)
    return min(1.0, odds / (1.0 + odds) * (1.0 + 1e-12)) if odds < 1e300 else 1.0


def excess_loss(guarantee, probability):
    """Bound on the privacy loss that is exceeded with at most a given probability.

    Let ``L = log p/q`` be the loss between the laws ``p`` and ``q`` of the release for two
    neighbours, under ``p``. For every ``epsilon < t``

    ``delta(epsilon) >= E max(1 - exp(epsilon - L), 0) >= P[L > t] (1 - exp(epsilon - t))``,

    so that ``P[L > t] <= delta(epsilon) / (1 - exp(epsilon - t))``. That is ``probability`` for
    ``t = epsilon - log(1 - delta(epsilon) / probability)``, of which the least is taken over
    epsilon. Under ``q`` the event is rarer still, by a factor of at least ``exp(t)``. Mixtures of
    such laws, which are what somebody expects who does not know the record, have no larger
    profile.

    Parameters
    ----------
    guarantee : Guarantee

    probability : float
        0 asks for a bound that holds always.

    Returns
    -------
    float
        Infinite where there is none.
    """
    if probability == 0.0:
        return guarantee.epsilon_at(0.0)
    start = guarantee.epsilon_at(min(0.999 * probability, 1.0 - 1e-9))
    if math.isinf(start):
        return math.inf

    def losses(epsilons):
        deltas = np.minimum(guarantee.delta_at(epsilons) / probability, 1.0)
        with np.errstate(divide="ignore"):
            return epsilons - np.log1p(-deltas)

    # A larger epsilon has a smaller delta and pays less for the tail.
    least = _least(losses, start, max(4.0, start), 3.0)
    return min(least, guarantee.epsilon_at(0.0)) * (1.0 + 1e-12)


def _least(bound, low, width, reach, high=math.inf):
    """About the least of a bound over epsilons from ``low``; any one is valid."""
    coarse = low + np.linspace(0.0, 1.0, _GRID) ** 2 * width
    found = bound(coarse)
    best = coarse[int(np.argmin(found))]
    step = reach * math.sqrt(width * max(best - low, width / _GRID**2)) / _GRID
    fine = np.clip(best + step * np.linspace(-1.0, 1.0, _GRID), low, high)
    return float(min(found.min(), bound(fine).min()))


def best_guess(guarantee, prior):
    """Largest probability with which somebody says rightly whether the suspicion is true.

    Of all rules, that of the largest posterior: ``1 - p + p delta(log((1 - p) / p))`` for
    ``p <= 1/2``, as ``delta(epsilon)`` is the largest of ``P[S] - exp(epsilon) Q[S]``.

    Parameters
    ----------
    guarantee : Guarantee

    prior : float in (0, 1/2]

    Returns
    -------
    float
    """
    odds = math.log((1.0 - prior) / prior)
    gain = prior * guarantee.delta_at(max(odds * (1.0 - 1e-15), 0.0))
    return min(1.0, (1.0 - prior + gain) * (1.0 + 1e-15))


def power_of_tests(guarantee, level):
    """Largest power of a test at a level, of one value of a unit against another.

    For every epsilon the power is at most ``exp(epsilon) level + delta(epsilon)`` and, from the
    event that is not rejected, ``1 - exp(-epsilon) (1 - level - delta(epsilon))`` (Kairouz, Oh and
    Viswanath, 2015): the least of them over epsilon is what is returned.

    Parameters
    ----------
    guarantee : Guarantee

    level : float in (0, 1)

    Returns
    -------
    float
    """

    def powers(epsilons):
        deltas = guarantee.delta_at(epsilons)
        with np.errstate(over="ignore"):
            directly = np.exp(epsilons) * level + deltas
        others = 1.0 - np.exp(-epsilons) * np.maximum(1.0 - level - deltas, 0.0)
        return np.minimum(directly, others)

    most = min(guarantee.epsilon_at(0.0), -math.log(level) + 40.0)
    found = _least(powers, 0.0, most, 2.5, most)
    return min(max(found * (1.0 + 1e-12), level), 1.0)


def _entries(text):
    """Texts by name, of lines that begin with a name and a colon; further lines are indented."""
    lines = text.replace("\n    ", " ").strip().split("\n")
    return {name: words for name, _, words in (line.partition(": ") for line in lines)}


_SEEDED, _VOID = "random_state", "recorded"


def rounded_up(value, digits=4):
    """A number that must not look smaller than it is."""
    if value == 0.0 or not math.isfinite(value):
        return f"{value:g}"
    unit = 10.0 ** (math.floor(math.log10(abs(value))) - digits + 1)
    return f"{math.ceil(value / unit * (1 - 1e-12)) * unit:.{digits}g}"


def factor(loss):
    """exp of a bound on the loss, in words of numbers."""
    return f"more than {math.exp(30.0):,.0f}" if loss > 30.0 else _many(math.exp(loss))


def _many(count):
    return rounded_up(count, 3) if count < 1000.0 else f"{math.ceil(count):,}"


def percent(share):
    """A chance that must not look smaller than it is, with more digits where it is near 1."""
    return f"{rounded_up(100.0 * share, 3 if share < 0.99 else 5)} %"


def is_no_limit(share):
    """Whether a bound on a chance says nothing in as many digits as are written."""
    return percent(share) == "100 %"


def at_most(share):
    """A bound on a chance, or that it says nothing."""
    return "no limit" if is_no_limit(share) else percent(share)


def times_delta(rare, delta):
    """What the chance of an exception has to do with delta, which stands beside it."""
    return ", which is ten times delta" if delta and math.isclose(rare, 10.0 * delta) else ""


def one_in(chance):
    """A chance in words, which must not look smaller than it is."""
    if chance <= 0.0:
        return "0"
    if chance > 0.02:
        return f"{rounded_up(100.0 * chance, 3)} %"
    count = 1.0 / chance
    unit = 10.0 ** max(math.floor(math.log10(count)) - 2, 0)
    return f"1 in {math.floor(count / unit * (1 + 1e-12)) * unit:,.0f}"


def what_it_is(kind, holds_private_numbers):
    """The subject in a sentence; of what holds private numbers, that which it gives away."""
    if holds_private_numbers:
        return "all that this model has released"
    return {
        "evaluation": "these scores",
        "local": "what a user's device sends",
        "search": "the result of this search",
        "pipeline": "this pipeline",
    }.get(kind, "this model")


def is_void(caveats):
    """Whether a promise protects nobody as it stands."""
    return any(caveat.startswith((_SEEDED, _VOID)) for caveat in caveats)


def not_of_skdp(names):
    """The beginning of what is said of other programs, of which this one knows nothing."""
    if not names:
        return ""
    return f"{' and '.join(names)} {'is' if len(names) == 1 else 'are'} not part of skdp"


def headline(subject, epsilon, delta, attacker):
    """What a reader must know: how sure an attacker becomes, and under which conditions."""
    unit, what = subject.guarantee.unit, what_it_is(subject.kind, subject.holds_private_numbers)
    told = (
        f"Suppose that somebody sees {what}, knows everything about all other {unit}s, and thinks "
        f"a claim about one {unit} is 50:50. {_limit(what, epsilon, delta, attacker)}"
    )
    if is_void(subject.guarantee.caveats):
        reasons = "; ".join(subject.guarantee.caveats)
        return f"The promise below protects nobody as it stands ({reasons}). Otherwise: {told}"
    if subject.others:
        told = (
            f"{subject.others}, and nothing here checks the promise below. If it is kept: {told}"
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


def floating_point(subject, noises):
    """How the promise survives rounding.

    Parameters
    ----------
    subject : Subject

    noises : set of str
        Kinds of the noise that its account names; empty where nothing is known of it.
    """
    if subject.others:
        yield f"{subject.others}: how numbers are rounded there is not known."
        return
    yield (
        "In short: numbers in a computer are rounded, and this has broken such promises before. "
        "Here rounding was taken into account."
    )
    if noises != {"exponential"}:
        yield (
            "Noise is a whole number of steps of a public size, and what it is added to is "
            "rounded to the same steps first: the last digits of what was released tell nothing. "
            "Rounding is part of each sensitivity."
        )
    yield (
        "Random numbers are drawn from exactly the distribution that the theorem asks for: where "
        "usual arithmetic cannot tell how to round, further random bits and more digits do."
        + (
            " Shares of Gaussian noise differ from it by as little as the proof pays for."
            if "gaussian_shares" in noises
            else ""
        )
    )
    # Selections and counts are of whole numbers, and devices compute without rounding.
    if subject.kind != "local" and noises - {"exponential", "threshold"}:
        yield (
            "Sums and minimisers that are rounded while they are computed: a proven bound on that "
            "error is part of their sensitivities. Where none can be proven nothing is released."
        )


def randomness(subject):
    """Where the noise came from."""
    caveats = subject.guarantee.caveats
    is_recorded = any(caveat.startswith(_VOID) for caveat in caveats)
    if is_recorded:
        yield (
            "Releases were recorded while this was fitted: anyone who has the record has the "
            "exact answers, and nothing is promised."
        )
    if any(caveat.startswith(_SEEDED) for caveat in caveats):
        yield (
            "A seed was given (random_state): anyone who knows or guesses it can compute the "
            "noise and remove it. The numbers of this report hold only against those who cannot."
        )
        return
    if subject.others:
        yield (
            f"{subject.others}: where noise came from there, and whether a "
            "seed was used, is not known."
        )
        return
    record = "" if is_recorded else ", and exact answers were not recorded for an audit"
    yield (
        "Random bits came from the operating system's generator for cryptography. Where the "
        "package cryptography was installed, long draws came from AES-256 with a fresh key, which "
        "serves as a generator here and encrypts no data. No seed was used from which the noise "
        f"could be computed again{record}."
    )


_NOT_COVERED = _entries("""
someone who is in the data more than once: The promise is for one record, which is one row. With k
    rows epsilon is about k times as large, or more: the section on attackers has a table for some
    k. How many people have several rows this report cannot see.
a record that passes twice: Who gives a row to a further call of a stream gives one more record.
somebody under two names: Whose a row is, is what the caller said. Somebody with two ids is two
    {unit}s, and what others say of them is not theirs.
whether somebody takes part: Whoever receives what devices send sees which do.
whether somebody is in the data at all: How many {unit}s there are is public, and taking one away
    without another in its place is not what the promise is about. Where it must stay hidden that
    somebody is in the data, adjacency add-remove promises that, where a method offers it.
what other programs did: {others}. Nothing here checks the claims made there, whether bounds are
    enforced, or whether attributes and files hold private numbers. An audit (skdp.audit.replay)
    can look for faults.
other uses of the same data: Losses add up: earlier results, statistics, plots and other programs
    come on top, also for somebody who sees this result and those together. A ledger counts those
    that are charged to it.
time, memory and errors: How long the computation takes, how much memory it uses and whether it
    fails may depend on the data. Nobody who must not know the data should be able to watch it
    run; this report cannot tell who was.
what was declared public: Bounds, labels, columns and settings are listed above. If one of them
    was chosen by looking at these data, more was told of them than this report counts.{found}
a known seed or a record of the releases: Anyone who knows the noise can remove it{noise}
the fitted model itself, its copies and its files: It holds private numbers, rows or ids, to go on
    or to answer with. It must stay with whoever computes. The promise is about what it has
    released.
what others tell: Relatives and neighbours are alike: what they contribute may tell about a
    {unit}. The promise is about what one {unit} contributes.
the data themselves: Access to the machine, backups, logs, and whoever computes: they see the data
    as they are. The promise is about what was released.
what is true of everybody: A model that finds that smokers fall ill says so of smokers who were
    not in the data, too, and may well be right. Who did not know this before may conclude much
    about one {unit}, more than the numbers above say, but would conclude nearly the same without
    that {unit}. The promise bounds what is learned from taking part.
""")


def not_covered(subject):
    """What the promise does not speak of."""
    unit, kind, fitted = subject.guarantee.unit, subject.kind, subject.fitted
    is_listed = {
        "someone who is in the data more than once": unit == "record",
        "a record that passes twice": unit == "record" and kind in ("stream", "network", "local"),
        "somebody under two names": unit != "record",
        "whether somebody takes part": kind == "local",
        "whether somebody is in the data at all": kind != "local"
        and subject.guarantee.adjacency == "replace-one",
        "what other programs did": subject.others,
        "the fitted model itself, its copies and its files": subject.holds_private_numbers,
        "the data themselves": kind != "local",
    }
    found = ["columns"] if getattr(fitted, "n_features_in_", None) is not None else []
    if getattr(fitted, "classes_", None) is not None and not declares_classes(fitted):
        found.append("labels")
    read = f" Here {' and '.join(found)} were read from the data: see the warning above."
    told = {"unit": unit, "others": subject.others, "noise": _of_the_noise(subject)}
    told["found"] = read if found else ""
    for what, why in _NOT_COVERED.items():
        if is_listed.get(what, True):
            yield what, why.format(**told)


def declares_classes(fitted):
    """Whether labels were given to what learns them: an estimator, or the last of its steps.

    None where it could not be told any.
    """
    if hasattr(fitted, "classes"):
        return fitted.classes is not None
    last = getattr(fitted, "best_estimator_", None)
    steps = getattr(fitted, "steps_", getattr(fitted, "steps", None))
    if last is None and isinstance(steps, list) and steps:
        last = learner_of(steps[-1][1])
    return None if last is None else declares_classes(last)


def _of_the_noise(subject):
    if is_void(subject.guarantee.caveats):
        return ", and it is known here: see the caveats."
    if subject.others:
        return f". {subject.others}: whether its noise is known this report cannot tell."
    return (
        ". Here no seed was used and no exact answer was recorded for an audit. The ledger and "
        "this report hold no noise."
    )


def layers(subject, epsilon, *, names_theorems):
    """One line for each layer of the pyramid of NIST SP 800-226."""
    guarantee, kind = subject.guarantee, subject.kind
    of_whom = f"One {guarantee.unit}, {guarantee.adjacency}."
    own = "" if guarantee.unit != "record" else " Persons with several rows are not the unit."
    if subject.others:
        own += " This is claimed and was not checked."
    status = "partly" if subject.others else "covered"
    yield "unit of privacy and definition", status, of_whom + own
    yield _layer_of_epsilon(guarantee, epsilon)
    if subject.others:
        text = f"{subject.others}: %s were not checked."
        yield "algorithms", "not covered", text % "claims and bounds"
        yield _layer_of_utility(subject)
        yield "implementation", "not covered", text % "rounding and noise"
    else:
        yield _layer_of_algorithms(guarantee, kind, names_theorems)
        yield _layer_of_utility(subject)
        yield (
            "implementation",
            "partly",
            "Rounding and random bits are covered as told below. Time, memory and errors are not. "
            "Whether anybody outside has audited the program, this report does not know.",
        )
    yield (
        "data collection, security and access",
        "not covered",
        "How the data were gathered, who may read them, and how long they are kept: a program "
        "cannot see it.",
    )


def _layer_of_epsilon(guarantee, epsilon):
    if is_void(guarantee.caveats):
        return "epsilon", "not covered", "The noise is known, so that epsilon protects nobody."
    if epsilon is None:
        return "epsilon", "not covered", "No finite epsilon is proven."
    text = (
        f"Epsilon is {rounded_up(epsilon)}, and this report says what it means. Whether that is "
        "small enough is not for a report to say, but for whoever answers for the data, seeing "
        "what is at stake: therefore only partly."
    )
    return "epsilon", "partly", text


def _layer_of_algorithms(guarantee, kind, names_theorems):
    declared = any("public" in caveat for caveat in guarantee.caveats)
    each = "Each answer names its theorem" if names_theorems else "Some answers name no theorem"
    text = f"{each}. Bounds are enforced, not assumed: what exceeds one is clipped or refused."
    if kind == "local":
        text += " How many contributions a user makes is declared, and nothing can check it."
    stated = any(caveat.startswith("stated") for caveat in guarantee.caveats)
    if stated:
        text += " In how many calls a user comes is stated, and nothing checks it."
    if any(caveat.startswith("secure sums") for caveat in guarantee.caveats):
        text += " That no more nodes drop out or collude than is tolerated is assumed."
        stated = True
    if declared:
        text += " Steps that the caller has declared public are not checked."
    return "algorithms", "partly" if declared or stated or kind == "local" else "covered", text


def _layer_of_utility(subject):
    if subject.kind == "evaluation":
        lost = any(score.says_nothing for score in subject.fitted.values.values())
        told = "Some of these scores are lost in the noise. The others" if lost else "These scores"
        text = (
            f"{told} have intervals for noise and sampling. Whether small groups fare worse than "
            "others is not measured."
        )
        return "utility and bias", "partly", text
    text = (
        "How good the result is, and whether small groups fare worse than others under the noise, "
        "is not measured here. Measuring it on the same data is one more use of them, with a "
        "budget of its own."
    )
    return "utility and bias", "not covered", text


GLOSSARY = _entries("""
differential privacy: A promise about a computation with random noise: its result is almost
    equally likely, whatever one of those in the data contributes.
unit: Who or what is protected: one record is one row of the data; one user is all rows of one
    person or body.
adjacency: Which change the promise is about: replace-one is one unit with other values, while the
    number of units is public; add-remove is one unit that is there or not.
odds: How often something is so, against how often it is not: a chance of 10 % is odds of 1 to 9,
    or 0.11.
epsilon: Limits how much can be learned about one unit, by how far the odds of a suspicion can
    move. If delta is 0: by a factor of exp(epsilon) at most, always. exp(1) is 2.7, exp(2) is
    7.4, exp(3) is 20, exp(5) is 148.
delta: A small probability that the limit of epsilon leaves out: with a positive delta the odds
    can move a little further, and in rare cases without limit. It should be far below one over
    the number of units.
noise: Random numbers that are added, so that nobody can tell what one unit contributed.
seed: A number from which a program makes its random numbers, the same ones each time.
sensitivity: How far one unit can move an exact answer, by the bounds that are enforced.
scale: How large the noise is. Of Gaussian noise it is the standard deviation: about two thirds of
    all draws are smaller.
mu: Of Gaussian noise: how many scales one unit can move the answer. The squares of several
    answers add up.
rho: As mu, of zero-concentrated differential privacy: adds up over answers.
second moments: Sums of products of two columns: how much columns vary, and how they vary
    together.
gradient: How the data would change the model at some point. A descent follows noisy sums of
    gradients, step by step, to the model.
selection: Which of several public candidates suits the data, chosen at random. Its range limits
    what it tells, as epsilon does.
composition: What several answers from the same data cost together.
budget: What all results from one data set may cost together, as somebody decided.
ledger: A file that counts what all results from one data set cost, and refuses what exceeds the
    budget.
""")


DELTA = 1e-6  # where a guarantee names none
_LEVEL = 0.05
_ROWS = (1, 2, 5)  # of somebody who has several
_SUSPICION = 0.1  # of examples
_TIMES = 10.0  # an exception may be so many times as likely as delta, and costs log(10 / 9)
# Between delta and that probability: which one is meant where both stand in a report.
WHY_TEN_TIMES = (
    "Delta itself is not the probability that this limit fails. Epsilon and delta alone "
    "give no limit on confidence that fails as rarely as delta; this one fails at most ten times "
    "as often."
)
_YARDSTICK = (0.1, 1.0, 3.0, 10.0)


def delta_of(guarantee):
    """Delta at which epsilon is quoted: the one that is claimed, or one in a million."""
    if isinstance(guarantee, ApproxDP):
        return guarantee.delta
    return 0.0 if math.isfinite(guarantee.epsilon_at(0.0)) else DELTA


def finite(value):
    """A number, None for infinity."""
    return value if math.isfinite(value) else None


def attacker_of(subject):
    """Part of a report."""
    guarantee = subject.guarantee
    delta = delta_of(guarantee)
    rare = _rare(guarantee)
    loss = finite(excess_loss(guarantee, rare))
    return {
        "sentence": _sentence(subject),
        "exception": _exception(guarantee, rare, delta, loss),
        "largest_loss": loss,
        "posteriors": [
            {
                "prior": prior,
                "posterior": largest_posterior(guarantee, prior, rare),
                # The opposite is a suspicion, too, of which the same is proven.
                "at_least": max(0.0, 1.0 - largest_posterior(guarantee, 1.0 - prior, rare)),
                "except_with_probability": rare,
                "guess_right": best_guess(guarantee, prior),
            }
            for prior in PRIORS
        ],
        "test": {"level": _LEVEL, "power": power_of_tests(guarantee, _LEVEL)},
        "several_rows": list(_several(guarantee)),
    }


def _rare(guarantee):
    """Probability of the outcomes that no bound on odds holds for; 0 where there are none."""
    if math.isfinite(guarantee.epsilon_at(0.0)):
        return 0.0
    delta = delta_of(guarantee)
    return min(_TIMES * (delta or DELTA), 0.5 * (1.0 + delta))


def _sentence(subject):
    unit = subject.guarantee.unit
    told = (
        f"Assume the worst: an attacker who knows all other {unit}s, all settings, and this "
        "report. The numbers follow from the promise alone, for whatever is asked about one "
        f"{unit}, and for this result alone. Most attackers get less far."
    )
    if is_void(subject.guarantee.caveats):
        told += " They hold only against those who do not know the noise."
    return told


def _exception(guarantee, rare, delta, loss):
    unit = guarantee.unit
    if loss is None:
        return "No limit is proven."
    if all(is_no_limit(largest_posterior(guarantee, prior, rare)) for prior in PRIORS):
        return "So large an epsilon sets no limit: an attacker may become certain."
    if not rare:
        return (
            "There is no exception: whatever the result, the odds of a suspicion grow by a factor "
            f"of {factor(loss)} at most, which is exp(epsilon)."
        )
    times = times_delta(rare, delta)
    why = f" {WHY_TEN_TIMES}" if times else ""
    return (
        f"The exception has a probability of at most {one_in(rare)}{times}. "
        "Then nothing is promised, and an attacker may become certain. It lies in the noise of "
        f"this one result, and is there for each suspicion about each {unit}: of 100,000 {unit}s "
        "with one suspicion each it can be expected to happen to "
        f"{_many(1e5 * rare)} at most.{why} A looser limit fails less often. In "
        f"this table the odds of a suspicion grow by a factor of {factor(loss)} at most, and for "
        f"this limit the exception is proven. It is exp({rounded_up(loss)}): this number takes "
        "the place of epsilon here."
    )


def _several(guarantee):
    """How sure somebody with several rows may make an attacker."""
    if guarantee.unit != "record":
        return
    for rows in _ROWS:
        with suppress(NoConversionError):
            # One row is what the report is about; the promise for more follows from it.
            found = guarantee if rows == 1 else user_guarantee(guarantee, rows)
            delta = delta_of(found)
            yield {
                "rows": rows,
                "epsilon": finite(found.epsilon_at(delta)),
                "delta": delta,
                **how_sure(found),
            }


def how_sure(guarantee):
    """What a promise means for a suspicion of 10 %."""
    rare = _rare(guarantee)
    return {
        "prior": _SUSPICION,
        "posterior": largest_posterior(guarantee, _SUSPICION, rare),
        "except_with_probability": rare,
        "guess_right": best_guess(guarantee, _SUSPICION),
    }


def yardstick():
    """What some epsilons mean for the same suspicion, where delta is 0."""
    return [
        {"epsilon": epsilon, "factor": math.exp(epsilon), **how_sure(ApproxDP(epsilon))}
        for epsilon in _YARDSTICK
    ]
