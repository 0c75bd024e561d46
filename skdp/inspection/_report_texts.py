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
        f"Assume an attacker who sees {what}, knows all other {unit}s, and thinks a claim about "
        f"one {unit} is 50:50. {_limit(what, epsilon, delta, attacker)}"
    )
    if is_void(subject.guarantee.caveats):
        reasons = "; ".join(subject.guarantee.caveats)
        return f"The promise below protects nobody as it stands ({reasons}). Without this: {told}"
    if subject.others:
        told = (
            f"{subject.others}, so this report did not check the promise below. If it holds: "
            f"{told}"
        )
    if subject.guarantee.caveats:
        return f"{told} Conditions: {'; '.join(subject.guarantee.caveats)}."
    return told


def _limit(what, epsilon, delta, attacker):
    """How sure an attacker becomes who was 50 % sure."""
    even = attacker["posteriors"][-1]
    if is_no_limit(even["posterior"]):
        size = "No finite epsilon is proven: this"
        if epsilon is not None:
            size = f"Epsilon {rounded_up(epsilon)} is so large that it"
        return f"{size} promises nothing against this attacker, who may become certain."
    rare = even["except_with_probability"]
    but = f", except with a probability of at most {one_in(rare)}{times_delta(rare, delta)}"
    at = f" at delta {delta:g} ({one_in(delta)})" if delta else ", and delta is 0"
    size = "No finite epsilon is proven."
    if epsilon is not None:
        size = f"In technical terms this is epsilon {rounded_up(epsilon)}{at}."
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
        yield f"{subject.others}: this report does not know how it rounds numbers."
        return
    yield (
        "Computers round numbers, and rounding has broken such promises before. This program "
        "takes rounding into account."
    )
    if noises != {"exponential"}:
        yield (
            "The exact answer is first rounded to a grid with a public step, and the noise is a "
            "whole number of steps. The last digits of a released number therefore reveal "
            "nothing. The rounding is part of each sensitivity."
        )
    yield (
        "Random numbers have exactly the distribution that the theorem requires. Where "
        "floating-point numbers are not precise enough, the program draws more random bits and "
        "computes more digits."
        + (
            " Shares of Gaussian noise differ slightly from it, and the proof accounts for the "
            "difference."
            if "gaussian_shares" in noises
            else ""
        )
    )
    # Selections and counts are of whole numbers, and devices compute without rounding.
    if subject.kind != "local" and noises - {"exponential", "threshold"}:
        yield (
            "Sums and minimisers have rounding errors. A proven bound on this error is part of "
            "their sensitivity. If no bound can be proven, nothing is released."
        )


def randomness(subject):
    """Where the noise came from."""
    caveats = subject.guarantee.caveats
    is_recorded = any(caveat.startswith(_VOID) for caveat in caveats)
    if is_recorded:
        yield (
            "The exact answers were recorded for an audit. Anyone who has this record has the "
            "exact answers, so nothing is promised."
        )
    if any(caveat.startswith(_SEEDED) for caveat in caveats):
        yield (
            "A seed was given (random_state). Anyone who knows or guesses it can compute the "
            "noise and remove it. The numbers in this report hold only against attackers who "
            "cannot."
        )
        return
    if subject.others:
        yield (
            f"{subject.others}: this report does not know how it draws noise, nor whether a seed "
            "was used."
        )
        return
    record = "" if is_recorded else ", and the exact answers were not recorded for an audit"
    yield (
        "Random bits came from the operating system's cryptographic generator. If the package "
        "cryptography was installed, long draws came from AES-256 with a fresh key, used as a "
        f"generator. No seed was used, so the noise cannot be computed again{record}."
    )


_NOT_COVERED = _entries("""
someone who is in the data more than once: The promise is for one record, which is one row. For a
    person with k rows, epsilon is about k times as large, or more; the section on attackers has a
    table. This report cannot see how many people have several rows.
a record that passes twice: A row that is given to a second call of a stream counts as a second
    record.
a person with two ids: The caller states the owner of each row. A person with two ids counts as
    two {unit}s. Rows of other people about this person are not protected as theirs.
whether a person takes part: Whoever receives the messages sees which devices send them.
whether a person is in the data at all: The number of {unit}s is public. The promise compares data
    sets in which one {unit} is replaced, not removed. If presence in the data must stay hidden,
    use adjacency add-remove where a method offers it.
what other programs did: {others}. This report did not check their claims, whether they enforce
    bounds, or whether attributes and files hold private numbers. An audit (skdp.audit.replay) can
    look for faults.
other uses of the same data: Privacy losses add up. Earlier results, statistics and plots from the
    same data add to the cost of this one. A ledger counts the results that are charged to it.
time, memory and errors: The running time, the memory used and errors may depend on the data. Only
    people who may know the data should be able to watch the computation. This report cannot tell
    who could.
what was declared public: Bounds, labels, columns and settings are listed above. If one of them
    was chosen by looking at these data, the true privacy loss is larger than this report
    says.{found}
a known seed or a record of the exact answers: Anyone who knows the noise can remove it{noise}
the fitted model itself, its copies and its files: The model holds private numbers, rows or ids,
    which it needs to continue or to answer. Keep it where the data are. The promise is about what
    it has released.
what other people's data reveal: Relatives and neighbours resemble each other, so their data may
    reveal something about a {unit}. The promise is about the data of one {unit}.
accuracy and fairness: This report does not measure how good the result is, nor whether it is
    worse for small groups.
the data themselves: People with access to the machine, its backups or its logs can see the data.
    The promise is about what was released.
general facts: A model may find that smokers fall ill more often. This applies to every smoker,
    also to one who is not in the data. Such a fact can change confidence by more than the numbers
    above say, but it would do so without that {unit} in the data too. The promise limits what is
    learned because a {unit} takes part.
""")


def not_covered(subject):
    """What the promise does not speak of."""
    unit, kind, fitted = subject.guarantee.unit, subject.kind, subject.fitted
    is_listed = {
        "someone who is in the data more than once": unit == "record",
        "a record that passes twice": unit == "record" and kind in ("stream", "network", "local"),
        "a person with two ids": unit != "record",
        "whether a person takes part": kind == "local",
        "whether a person is in the data at all": kind != "local"
        and subject.guarantee.adjacency == "replace-one",
        "what other programs did": subject.others,
        "the fitted model itself, its copies and its files": subject.holds_private_numbers,
        "accuracy and fairness": kind != "evaluation",
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
        return f". {subject.others}: this report cannot tell whether its noise is known."
    return (
        ". Here no seed was used and no exact answer was recorded. The ledger and this report do "
        "not contain the noise."
    )


def layers(subject, epsilon, *, names_theorems):
    """One line for each layer of the pyramid of NIST SP 800-226."""
    guarantee, kind = subject.guarantee, subject.kind
    of_whom = f"One {guarantee.unit}, {guarantee.adjacency}."
    own = "" if guarantee.unit != "record" else " A person with several rows is not the unit."
    if subject.others:
        own += " This claim was not checked."
    status = "partly" if subject.others else "covered"
    yield "unit of privacy and definition", status, of_whom + own
    yield _layer_of_epsilon(guarantee, epsilon)
    if subject.others:
        text = f"{subject.others}: its %s were not checked."
        yield "algorithms", "not covered", text % "claims and bounds"
        yield _layer_of_utility(subject)
        yield "implementation", "not covered", text % "rounding and noise"
    else:
        yield _layer_of_algorithms(guarantee, kind, names_theorems)
        yield _layer_of_utility(subject)
        yield (
            "implementation",
            "partly",
            "Rounding and random bits are covered; see the last sections. Time, memory and errors "
            "are not. This report does not know whether the program was audited independently.",
        )
    yield (
        "data collection, security and access",
        "not covered",
        "A program cannot see how the data were collected, who may read them, and how long they "
        "are kept.",
    )


def _layer_of_epsilon(guarantee, epsilon):
    if is_void(guarantee.caveats):
        return "epsilon", "not covered", "The noise is known, so epsilon protects nobody."
    if epsilon is None:
        return "epsilon", "not covered", "No finite epsilon is proven."
    text = (
        f"Epsilon is {rounded_up(epsilon)}, and this report says what that means. The person "
        "responsible for the data must decide whether it is small enough."
    )
    return "epsilon", "partly", text


def _layer_of_algorithms(guarantee, kind, names_theorems):
    declared = any("public" in caveat for caveat in guarantee.caveats)
    each = "Each answer names its theorem" if names_theorems else "Some answers name no theorem"
    text = f"{each}. Bounds are enforced: values beyond a bound are clipped or refused."
    if kind == "local":
        text += " The number of contributions of a user is declared and cannot be checked."
    stated = any(caveat.startswith("stated") for caveat in guarantee.caveats)
    if stated:
        text += " The number of calls with data of one user is stated and is not checked."
    if any(caveat.startswith("secure sums") for caveat in guarantee.caveats):
        text += " It is assumed that no more nodes drop out or collude than the stated number."
        stated = True
    if declared:
        text += " Steps that the caller declared public are not checked."
    return "algorithms", "partly" if declared or stated or kind == "local" else "covered", text


def _layer_of_utility(subject):
    if subject.kind == "evaluation":
        lost = any(score.says_nothing for score in subject.fitted.values.values())
        told = "Some of these scores are hidden by noise. The others" if lost else "These scores"
        text = (
            f"{told} have confidence intervals for noise and sampling. This report does not "
            "measure whether results are worse for small groups."
        )
        return "utility and bias", "partly", text
    text = (
        "This report does not measure how good the result is, nor whether it is worse for small "
        "groups. Measuring this on the same data is another use of them and needs its own budget."
    )
    return "utility and bias", "not covered", text


GLOSSARY = _entries("""
differential privacy: A promise about a computation with random noise: its result is almost
    equally likely whatever the data of any one unit are.
unit: Who or what is protected. A record is one row of the data. A user is all rows of one person
    or organisation.
adjacency: The change that the promise hides. With replace-one, the values of one unit change, and
    the number of units is public. With add-remove, one unit is in the data or not.
odds: The probability of a claim divided by the probability of its opposite. A probability of 10 %
    is odds of 1 to 9, or 0.11.
epsilon: Limits how much can be learned about one unit: if delta is 0, the odds of any claim
    change by a factor of at most exp(epsilon). exp(1) is 2.7, exp(2) is 7.4, exp(3) is 20, exp(5)
    is 148.
delta: A small number, roughly the probability that the limit of epsilon fails. With a positive
    delta the odds can change a little more, and in rare cases without limit. Delta should be far
    below one divided by the number of units.
noise: Random numbers that are added to an answer, so that the data of one unit are hidden.
seed: A number from which a program computes its random numbers. The same seed gives the same
    numbers.
sensitivity: The largest change of an exact answer when the data of one unit change, given the
    enforced bounds.
scale: The size of the noise. For Gaussian noise it is the standard deviation: about two thirds of
    all draws are smaller.
mu: For Gaussian noise, the sensitivity divided by the scale. The squared mu of several answers
    add up.
rho: The parameter of zero-concentrated differential privacy. The rho of several answers add up.
second moments: Sums of products of two columns. They show how much columns vary, and how they
    vary together.
gradient: The direction in which the data would change the model. Gradient descent follows noisy
    sums of gradients, step by step.
selection: A random choice among public candidates that favours those that suit the data. Its
    range limits what it reveals, as epsilon does.
composition: The total cost of several answers from the same data.
budget: The largest total cost that is allowed for all results from one data set.
ledger: A file that adds up the cost of all results from one data set and refuses results that
    would exceed the budget.
""")


DELTA = 1e-6  # where a guarantee names none
_LEVEL = 0.05
_ROWS = (1, 2, 5)  # of somebody who has several
_SUSPICION = 0.1  # of examples
_TIMES = 10.0  # an exception may be so many times as likely as delta, and costs log(10 / 9)
# Between delta and that probability: which one is meant where both stand in a report.
WHY_TEN_TIMES = (
    "The limit fails with a probability of at most ten times delta, not of delta: from epsilon "
    "and delta alone, no limit on confidence can be proven that fails more rarely."
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
        f"This section assumes the worst: an attacker who knows all other {unit}s, all settings "
        f"and this report. The numbers follow from the promise, for any claim about one {unit}, "
        "and for this result alone. Most attackers learn less."
    )
    if is_void(subject.guarantee.caveats):
        told += " They hold only against attackers who do not know the noise."
    return told


def _exception(guarantee, rare, delta, loss):
    unit = guarantee.unit
    if loss is None:
        return "No limit is proven."
    if all(is_no_limit(largest_posterior(guarantee, prior, rare)) for prior in PRIORS):
        return "With such a large epsilon there is no limit: an attacker may become certain."
    if not rare:
        return (
            "There is no exception: for every result, the odds of a claim grow by a factor of at "
            f"most {factor(loss)}, which is exp(epsilon)."
        )
    times = times_delta(rare, delta)
    why = f" {WHY_TEN_TIMES}" if times else ""
    return (
        f"The exception has a probability of at most {one_in(rare)}{times}. If it happens, "
        "nothing is promised, and an attacker may become certain. The probability is for each "
        f"claim about each {unit}: with one claim about each of 100,000 {unit}s, the exception is "
        f"expected for at most {_many(1e5 * rare)} of them.{why} A looser limit fails less often. "
        f"In this table the odds of a claim grow by a factor of at most {factor(loss)}, which is "
        f"exp({rounded_up(loss)}): {rounded_up(loss)} replaces epsilon here."
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
