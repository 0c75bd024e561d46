"""Sentences of a report that follow from what it is about, and what its words mean."""

import math

__all__ = [
    "GLOSSARY",
    "floating_point",
    "layers",
    "not_covered",
    "one_in",
    "percent",
    "randomness",
    "rounded_up",
    "what_it_is",
]

_SEEDED, _VOID = "random_state", "recorded"
_UNKNOWN_NOISE = "Here no seed was given, and nothing recorded the exact answers."


def rounded_up(value, digits=4):
    """A number that must not look smaller than it is."""
    if value == 0.0 or not math.isfinite(value):
        return f"{value:g}"
    unit = 10.0 ** (math.floor(math.log10(abs(value))) - digits + 1)
    return f"{math.ceil(value / unit * (1 - 1e-12)) * unit:.{digits}g}"


def percent(share):
    """A chance that must not look smaller than it is, with more digits where it is near 1."""
    return f"{rounded_up(100.0 * share, 3 if share < 0.99 else 5)} %"


def one_in(chance):
    """A small chance in words."""
    return f"1 in {float(f'{1.0 / chance:.3g}'):,.0f}"


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


def floating_point(kind):
    """How the promise survives rounding."""
    yield (
        "Noise is a whole number of steps of a public lattice, and what it is added to is rounded "
        "to the same lattice first: the low digits of what leaves tell nothing. Rounding is part "
        "of each sensitivity."
    )
    yield (
        "Noise has exactly the law that the theorem asks for: where floating point cannot tell "
        "how to round, further random bits and multiple precision do."
    )
    if kind != "local":
        yield (
            "Sums and minimisers have certified bounds on their rounding errors, which are part "
            "of the sensitivities, too; where a bound cannot be certified nothing is released."
        )


def randomness(caveats):
    """Where the noise came from."""
    if any(caveat.startswith(_VOID) for caveat in caveats):
        yield (
            "Releases were recorded while this was fitted: whoever has the record has the exact "
            "answers, and nothing is promised."
        )
    if any(caveat.startswith(_SEEDED) for caveat in caveats):
        yield (
            "A seed was given (random_state): whoever knows or guesses it can compute the noise "
            "and take it off. The numbers of this report hold only against those who cannot."
        )
        return
    yield (
        "Random bits came from the operating system's generator for cryptography; long draws from "
        "AES-256 in counter mode with a fresh key of that generator. No seed was used."
    )


def not_covered(subject):
    """What the promise does not speak of."""
    unit, kind = subject.guarantee.unit, subject.kind
    yield from _other_rows(unit, kind)
    yield (
        "other uses of the same data",
        "Losses add up: earlier fits, statistics, plots and other programs come on top. A ledger "
        "counts those that are charged to it.",
    )
    yield (
        "time, memory and errors",
        "How long a fit takes, how much memory it uses and whether it fails may depend on the "
        "data. Nobody who must not know the data should be able to watch it run.",
    )
    yield (
        "what was declared public",
        "Bounds, labels, columns and parameters are listed above. What was read from these data, "
        "or chosen by looking at them, is a release that nothing here counts.",
    )
    yield (
        "a known seed or a record of the releases",
        "Whoever knows the noise can take it off. "
        + ("That is so here." if is_void(subject.guarantee.caveats) else _UNKNOWN_NOISE),
    )
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
    yield (
        "what is true of everybody",
        "A model that finds that smokers fall ill says so of smokers who were not in the data, "
        "too, and may well be right. The promise bounds what is learned from taking part.",
    )


def _other_rows(unit, kind):
    """Rows of somebody that the promise does not take together."""
    if unit == "record":
        yield (
            "someone who is in the data more than once",
            "The promise is for one record, which is one row. For somebody with several rows "
            "epsilon is as many times as large, or more: some numbers stand above.",
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


def layers(subject, epsilon):
    """One line for each layer of the pyramid of NIST SP 800-226."""
    guarantee, kind = subject.guarantee, subject.kind
    void, declared = is_void(guarantee.caveats), _has_declared(guarantee.caveats)
    of_whom = f"One {guarantee.unit}, {guarantee.adjacency}."
    own = "" if guarantee.unit != "record" else " Persons with several rows are not the unit."
    yield "unit of privacy and definition", "covered", of_whom + own
    if void:
        yield "epsilon", "not covered", "The noise is known, so that epsilon protects nobody."
    elif epsilon is None:
        yield "epsilon", "not covered", "No finite epsilon is proven."
    else:
        chosen = (
            "Whether that is small enough is for whoever answers for the data to say: by what an "
            "attacker can learn, and by what is at stake."
        )
        yield "epsilon", "covered", f"Epsilon is {rounded_up(epsilon)}. {chosen}"
    text = "Each release names its theorem; bounds are enforced by clipping, not assumed."
    if kind == "local":
        text += " How many contributions a user makes is declared, and nothing can check it."
    if declared:
        text += " Steps that the caller has declared public are not checked."
    is_checked = not declared and kind != "local"
    yield "algorithms", "covered" if is_checked else "partly", text
    if kind == "evaluation":
        text = (
            "These scores have intervals that hold noise and sampling. Whether small groups fare "
            "worse than others is not measured."
        )
        yield "utility and bias", "partly", text
    else:
        text = (
            "How good the result is, and whether small groups fare worse than others under the "
            "noise, is not measured here. Scores on private rows need a budget of their own."
        )
        yield "utility and bias", "not covered", text
    yield (
        "implementation",
        "partly",
        "Floating point and random bits are covered as told above. Time, memory and errors are "
        "not, and no outside audit is known to this report.",
    )
    yield (
        "data collection, security and access",
        "not covered",
        "How the data were gathered, who may read them, and how long they are kept is outside of "
        "what a library can see.",
    )


def _has_declared(caveats):
    return any("public" in caveat for caveat in caveats)


GLOSSARY = (
    (
        "differential privacy",
        "A promise about a computation with random noise: its result is nearly as likely, "
        "whatever one of those in the data says.",
    ),
    (
        "unit",
        "Who or what is protected: one record is one row of the data; one user is all rows of one "
        "person or body.",
    ),
    (
        "adjacency",
        "Which change the promise is about: replace-one is one unit that says something else; "
        "add-remove is one that is there or not.",
    ),
    (
        "epsilon",
        "How far the odds of a suspicion can move: by a factor of exp(epsilon). 0 tells nothing; "
        "the factor is 2.7 at 1, 7.4 at 2, and 148 at 5. It is never more where delta is 0, and "
        "otherwise with a small chance: the numbers about attackers have that in them.",
    ),
    (
        "delta",
        "How much probability epsilon leaves out, for each unit. It should be far below one over "
        "the number of units.",
    ),
    ("sensitivity", "How far one unit can move an exact answer, by the bounds that are enforced."),
    ("scale", "How large the noise is; for Gaussian noise the standard deviation of a number."),
    (
        "mu",
        "Of Gaussian noise: how many standard deviations one unit can move the answer. The "
        "squares of several releases add up.",
    ),
    (
        "rho",
        "As mu, of zero-concentrated differential privacy: adds up over releases.",
    ),
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
        "Which of several public candidates suits the data, drawn at random. Its range bounds "
        "what it tells, as epsilon does.",
    ),
    ("lattice", "Numbers that are whole multiples of a step, as those of a ruler are."),
    ("composition", "What several releases from the same data cost together."),
    (
        "ledger",
        "Counts what the releases cost that are charged to it, and refuses more than a budget.",
    ),
)
