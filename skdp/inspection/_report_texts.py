"""Sentences of a report that follow from what it is about, and what its words mean."""

import math

from skdp.pipeline._wrappers import learner_of

__all__ = [
    "GLOSSARY",
    "at_most",
    "declares_classes",
    "factor",
    "floating_point",
    "is_no_limit",
    "is_void",
    "layers",
    "not_covered",
    "not_of_skdp",
    "one_in",
    "percent",
    "randomness",
    "read_from_the_data",
    "rounded_up",
    "times_delta",
    "what_it_is",
]

_SEEDED, _VOID = "random_state", "recorded"


def rounded_up(value, digits=4):
    """A number that must not look smaller than it is."""
    if value == 0.0 or not math.isfinite(value):
        return f"{value:g}"
    unit = 10.0 ** (math.floor(math.log10(abs(value))) - digits + 1)
    return f"{math.ceil(value / unit * (1 - 1e-12)) * unit:.{digits}g}"


def factor(loss):
    """exp of a bound on the loss, in words of numbers."""
    if loss > 30.0:
        return f"more than {math.exp(30.0):,.0f}"
    found = math.exp(loss)
    return rounded_up(found, 3) if found < 1000.0 else f"{math.ceil(found):,}"


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


def what_it_is(kind, is_kept):
    """The subject in a sentence; of what holds private numbers, that which it gives away."""
    if is_kept:
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
    return f"{' and '.join(names)} {'is' if len(names) == 1 else 'are'} not part of skdp"


def floating_point(subject, noises):
    """How the promise survives rounding.

    Parameters
    ----------
    subject : Subject

    noises : set of str
        Kinds of the noise that its account names; empty where nothing is known of it.
    """
    if subject.third_party:
        yield f"{not_of_skdp(subject.third_party)}: how numbers are rounded there is not known."
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
    if subject.third_party:
        yield (
            f"{not_of_skdp(subject.third_party)}: where noise came from there, and whether a "
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


def not_covered(subject):
    """What the promise does not speak of."""
    unit, kind = subject.guarantee.unit, subject.kind
    yield from _other_rows(unit, kind)
    yield from _presence(subject)
    if subject.third_party:
        yield (
            "what other programs did",
            f"{not_of_skdp(subject.third_party)}. Nothing here checks the claims made there, "
            "whether bounds are enforced, or whether attributes and files hold private numbers. "
            "An audit (skdp.audit.replay) can look for faults.",
        )
    yield (
        "other uses of the same data",
        "Losses add up: earlier results, statistics, plots and other programs come on top, also "
        "for somebody who sees this result and those together. A ledger counts those that are "
        "charged to it.",
    )
    yield (
        "time, memory and errors",
        "How long the computation takes, how much memory it uses and whether it fails may depend "
        "on the data. Nobody who must not know the data should be able to watch it run; this "
        "report cannot tell who was.",
    )
    yield "what was declared public", _declared_public(subject)
    yield "a known seed or a record of the releases", _of_the_noise(subject)
    if subject.is_kept:
        yield (
            "the fitted model itself, its copies and its files",
            "It holds private numbers, rows or ids, to go on or to answer with. It must "
            "stay with whoever computes. The promise is about what it has released.",
        )
    yield (
        "what others tell",
        f"Relatives and neighbours are alike: what they contribute may tell about a {unit}. The "
        f"promise is about what one {unit} contributes.",
    )
    if kind != "local":
        yield (
            "the data themselves",
            "Access to the machine, backups, logs, and whoever computes: they see the data as "
            "they are. The promise is about what was released.",
        )
    yield "what is true of everybody", _EVERYBODY.format(unit=unit)


_EVERYBODY = (
    "A model that finds that smokers fall ill says so of smokers who were not in the data, too, "
    "and may well be right. Who did not know this before may conclude much about one {unit}, more "
    "than the numbers above say, but would conclude nearly the same without that {unit}. The "
    "promise bounds what is learned from taking part."
)


def _presence(subject):
    unit = subject.guarantee.unit
    if subject.kind == "local":
        yield "whether somebody takes part", "Whoever receives what devices send sees which do."
    elif subject.guarantee.adjacency == "replace-one":
        yield (
            "whether somebody is in the data at all",
            f"How many {unit}s there are is public, and taking one away without another in its "
            "place is not what the promise is about. Where it must stay hidden that somebody is "
            "in the data, adjacency add-remove promises that, where a method offers it.",
        )


def _declared_public(subject):
    text = (
        "Bounds, labels, columns and settings are listed above. If one of them was chosen by "
        "looking at these data, more was told of them than this report counts."
    )
    found = read_from_the_data(subject.fitted)
    if found:
        text += f" Here {' and '.join(found)} were read from the data: see the warning above."
    return text


def read_from_the_data(fitted):
    """What nobody declared, and what is nevertheless treated as public."""
    found = []
    if getattr(fitted, "n_features_in_", None) is not None:
        found.append("columns")
    if getattr(fitted, "classes_", None) is not None and not declares_classes(fitted):
        found.append("labels")
    return found


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
    told = "Anyone who knows the noise can remove it"
    if is_void(subject.guarantee.caveats):
        return f"{told}, and it is known here: see the caveats."
    if subject.third_party:
        others = not_of_skdp(subject.third_party)
        return f"{told}. {others}: whether its noise is known this report cannot tell."
    return (
        f"{told}. Here no seed was used and no exact answer was recorded for an audit. The ledger "
        "and this report hold no noise."
    )


def _other_rows(unit, kind):
    """Rows of somebody that the promise does not take together."""
    if unit == "record":
        yield (
            "someone who is in the data more than once",
            "The promise is for one record, which is one row. With k rows epsilon is about k "
            "times as large, or more: the section on attackers has a table for some k. "
            "How many people have several rows this report cannot see.",
        )
        if kind in ("stream", "network", "local"):
            yield (
                "a record that passes twice",
                "Who gives a row to a further call of a stream gives one more record.",
            )
    else:
        yield (
            "somebody under two names",
            f"Whose a row is, is what the caller said. Somebody with two ids is two {unit}s, and "
            "what others say of them is not theirs.",
        )


def layers(subject, epsilon, *, names_theorems):
    """One line for each layer of the pyramid of NIST SP 800-226."""
    guarantee, kind = subject.guarantee, subject.kind
    of_whom = f"One {guarantee.unit}, {guarantee.adjacency}."
    own = "" if guarantee.unit != "record" else " Persons with several rows are not the unit."
    if subject.third_party:
        own += " This is claimed and was not checked."
    status = "partly" if subject.third_party else "covered"
    yield "unit of privacy and definition", status, of_whom + own
    yield _layer_of_epsilon(guarantee, epsilon)
    if subject.third_party:
        unknown = f"{not_of_skdp(subject.third_party)}: "
        yield "algorithms", "not covered", f"{unknown}claims and bounds were not checked."
        yield _layer_of_utility(subject)
        yield "implementation", "not covered", f"{unknown}rounding and noise were not checked."
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
    if declared:
        text += " Steps that the caller has declared public are not checked."
    return "algorithms", "partly" if declared or kind == "local" else "covered", text


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


GLOSSARY = (
    (
        "differential privacy",
        "A promise about a computation with random noise: its result is almost equally likely, "
        "whatever one of those in the data contributes.",
    ),
    (
        "unit",
        "Who or what is protected: one record is one row of the data; one user is all rows of one "
        "person or body.",
    ),
    (
        "adjacency",
        "Which change the promise is about: replace-one is one unit with other values, while the "
        "number of units is public; add-remove is one unit that is there or not.",
    ),
    (
        "odds",
        "How often something is so, against how often it is not: a chance of 10 % is odds of 1 to "
        "9, or 0.11.",
    ),
    (
        "epsilon",
        "Limits how much can be learned about one unit, by how far the odds of a suspicion can "
        "move. If delta is 0: by a factor of exp(epsilon) at most, always. exp(1) is 2.7, exp(2) "
        "is 7.4, exp(3) is 20, exp(5) is 148.",
    ),
    (
        "delta",
        "A small probability that the limit of epsilon leaves out: with a positive delta the odds "
        "can move a little further, and in rare cases without limit. It should be far below one "
        "over the number of units.",
    ),
    ("noise", "Random numbers that are added, so that nobody can tell what one unit contributed."),
    ("seed", "A number from which a program makes its random numbers, the same ones each time."),
    ("sensitivity", "How far one unit can move an exact answer, by the bounds that are enforced."),
    (
        "scale",
        "How large the noise is. Of Gaussian noise it is the standard deviation: about two thirds "
        "of all draws are smaller.",
    ),
    (
        "mu",
        "Of Gaussian noise: how many scales one unit can move the answer. The squares of several "
        "answers add up.",
    ),
    ("rho", "As mu, of zero-concentrated differential privacy: adds up over answers."),
    (
        "second moments",
        "Sums of products of two columns: how much columns vary, and how they vary together.",
    ),
    (
        "gradient",
        "How the data would change the model at some point. A descent follows noisy sums of "
        "gradients, step by step, to the model.",
    ),
    (
        "selection",
        "Which of several public candidates suits the data, chosen at random. Its range limits "
        "what it tells, as epsilon does.",
    ),
    ("composition", "What several answers from the same data cost together."),
    ("budget", "What all results from one data set may cost together, as somebody decided."),
    (
        "ledger",
        "A file that counts what all results from one data set cost, and refuses what exceeds the "
        "budget.",
    ),
)
