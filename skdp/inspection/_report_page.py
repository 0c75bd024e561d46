"""The page of a privacy report: which words and tables stand on it, in which order.

What they look like is decided elsewhere, so that text, Markdown and HTML say the same.
"""

import math
from dataclasses import dataclass

from skdp.inspection._report_texts import one_in, percent, rounded_up

__all__ = ["Bullets", "Fields", "Heading", "Table", "Text", "page_of", "title_of"]


@dataclass(frozen=True)
class Heading:
    """Title of a section."""

    text: str


@dataclass(frozen=True)
class Text:
    """A paragraph; one that ``warns`` stands out, and the ``lead`` is what to read first."""

    text: str
    warns: bool = False
    lead: bool = False


@dataclass(frozen=True)
class Bullets:
    """A list."""

    items: tuple


@dataclass(frozen=True)
class Fields:
    """Names with values; those without a value are left out."""

    pairs: tuple


@dataclass(frozen=True)
class Table:
    """Rows under a head; ``numbers`` are columns that stand to the right."""

    head: tuple
    rows: tuple
    numbers: tuple = ()


NEIGHBOURS = {
    "replace-one": "all that one {unit} contributes is replaced by anything else, be it what "
    "somebody else would contribute; how many {unit}s there are is public",
    "add-remove": "all that one {unit} contributes is added or taken away; how many {unit}s "
    "there are is protected, too",
}
UNITS = {
    "record": "each record in the data, which is one row; a person with several rows is "
    "protected less",
    "user": "each user in the data, with all rows that are theirs",
}
_KINDS = {
    "approximate differential privacy": "approximate differential privacy, as it is called where "
    "delta is positive",
    "pure differential privacy": "pure differential privacy, as it is called where delta is 0",
}
_WAY = (
    "If you are not a specialist you can leave out “What was released”, “How the losses add up” "
    "and “Arithmetic and randomness”. “Words” explains terms."
)
STATUS = {"covered": "covered", "partly": "partly", "not covered": "NOT COVERED"}
DECLARED = {
    "caller": "whoever ran the fit",
    "default": "the library's default",
    "data": "read from the data, and treated as public",
    "library": "a public rule of the library",
}


def title_of(data):
    """Title of the page."""
    subject = data["subject"]
    name = subject.get("name") or ""
    quoted = f" “{name}”" if name and name != subject["type"] else ""
    return f"Privacy report: {subject['type']}{quoted}"


def page_of(data):
    """Blocks of the page.

    Parameters
    ----------
    data : dict
        As the schema of reports has it.

    Returns
    -------
    list of Heading, Text, Bullets, Fields and Table
    """
    parts = (
        _promise,
        _attacker,
        _public,
        _releases,
        _accounting,
        _ledger,
        _machine,
        _not_covered,
        _questions,
        _layers,
        _words,
    )
    made = data["made"]
    versions = ", ".join(f"{name} {made[name]}" for name in made if name != "date")
    blocks = [Text(data["headline"], lead=True), Text(_WAY)]
    for part in parts:
        blocks += part(data)
    end = (
        f"Made on {made['date']} by {versions}, from public and released numbers alone: beyond "
        "what is listed as public, this report tells nothing about the data that the releases do "
        "not tell. It may go wherever they may."
    )
    if data.get("ledger"):
        end += " It names other results, as their ledger does."
    return [*blocks, Text(end)]


def _promise(data):
    told = data["guarantee"]
    unit = told["unit"]
    yield Heading("What is promised")
    yield Text(
        f"Random noise was added, so that the result comes out with similar chances whatever one "
        f"{unit} says. Epsilon and delta say how similar. How sure of something about one {unit} "
        "somebody can get from this result, whatever they know of all others, is told under "
        "“What an attacker can learn”."
        + (" The caveats below say where this does not hold." if told.get("caveats") else "")
    )
    yield Fields(
        (
            ("Who is protected", UNITS.get(unit, f"each {unit} in the data")),
            ("Against what change", _neighbours(told)),
            ("In one sentence", told["sentence"]),
            ("Kind of promise", _KINDS.get(told["definition"], told["definition"])),
            ("epsilon", _epsilon(told["epsilon"])),
            ("delta", _delta(told["delta"])),
            ("Met by", told.get("mechanism")),
            ("Rests on", told.get("source")),
        )
    )
    for caveat in told.get("caveats") or ():
        yield Text(f"Caveat: {caveat}.", warns=True)
    curve = [point for point in told.get("curve") or () if point["epsilon"] is not None]
    if curve:
        yield Text(
            "The same promise in other numbers: at a smaller delta it has a larger epsilon. All "
            "of these hold at once, and any of them may be quoted."
        )
        rows = tuple((_delta(point["delta"]), rounded_up(point["epsilon"])) for point in curve)
        yield Table(("delta", "epsilon"), rows, (0, 1))
    others = told.get("conversions") or ()
    if others:
        yield Text("Further numbers that follow from the promise; mu and rho are for specialists:")
        rows = tuple((one["name"], _most(one["value"])) for one in others)
        yield Table(("what", "number"), rows, (1,))
    steps = data["subject"].get("steps") or ()
    if steps:
        yield Text(
            "The model is made of these steps. Private steps learned from the data, with noise; "
            "public ones count as knowing nothing of them; frozen ones were learned before."
        )
        of_steps = tuple((s["name"], s["type"], s["role"]) for s in steps)
        yield Table(("step", "what it is", "role"), of_steps)


def _neighbours(told):
    return NEIGHBOURS.get(told["adjacency"], told["adjacency"]).format(unit=told["unit"])


def _attacker(data):
    told, unit = data["attacker"], data["guarantee"]["unit"]
    yield Heading("What an attacker can learn")
    yield Text(told["sentence"])
    rows, excepted = [], any(p.get("except_with_probability") for p in told["posteriors"])
    for point in told["posteriors"]:
        prior, guess = point["prior"], point.get("guess_right")
        row = [percent(prior), percent(point["posterior"])]
        if excepted:
            row.append(percent(point.get("except_with_probability") or 0.0))
        # Without the release the best guess is what seems likelier.
        alone = "" if guess is None else percent(max(prior, 1.0 - prior))
        rows.append((*row, alone, "" if guess is None else percent(guess)))
    middle = ("except with chance",) if excepted else ()
    guesses = ("right guess before", "right guess after")
    head = ("sure before", "sure after", *middle, *guesses)
    if rows:
        yield Text(
            f"Take somebody who suspects something of one {unit}. “Sure” is how sure of it they "
            "are before they see the result, and at most after the most telling one that can "
            "come out, which is rare. “Right guess” is how often they are right if they guess "
            "what seems likelier: before, and at most after, over all results that can come out."
        )
        yield Table(head, tuple(rows), tuple(range(len(head))))
    test = told.get("test")
    if test:
        yield Text(
            "A test whether the suspicion is true, with a false alarm in "
            f"{percent(test['level'])} of the cases in which it is not, finds it in at most "
            f"{percent(test['power'])} of the cases in which it is; one that guesses blindly "
            f"finds it in {percent(test['level'])}."
        )


def _public(data):
    yield Heading("What counts as public, and who said so")
    yield Text(
        "Nothing protects what is listed here: it can be read off the result. Whoever ran the fit "
        "answers for what they declared, and for what was read from the data. Defaults are the "
        "same for all data, and rules of the library read public and released numbers alone."
    )
    rows = []
    for one in data["public"]:
        who = DECLARED.get(one["declared_by"], one["declared_by"])
        rows.append((one["what"], one["value"], who, one["note"]))
    yield Table(("what", "value", "declared by", "note"), tuple(rows))
    read = [one["what"] for one in data["public"] if one["declared_by"] == "data"]
    if read:
        yield Text(
            f"Read from these data, and not protected: {', '.join(read)}. If that is not known "
            "to everybody anyway, the promise does not hold for what it tells.",
            warns=True,
        )


def _releases(data):
    releases = data["releases"]
    yield Heading("What was released")
    yield Text(
        "Besides what is listed as public, only these answers about the data left the "
        "computation, each with random noise. The result was computed from them, and can tell no "
        "more. The scale says how large the noise is, the sensitivity how far one "
        f"{data['guarantee']['unit']} can move the answer before noise is added."
    )
    if math.fsum(one.get("share") or 0.0 for one in releases) > 1.0 + 1e-9:
        yield Text(
            "Some were made from different rows, so that the shares add up to more than 100 %: of "
            "such only those count that cost most."
        )
    has_steps = any(one.get("step") for one in releases)
    rows = []
    for one in releases:
        step = ((one.get("step") or ""),) if has_steps else ()
        rows.append(
            (*step, _purpose(one), _noise(one), one["guarantee"], _share(one), one["theorem"])
        )
    head = ("purpose", "noise", "guarantee", "share of the budget", "theorem")
    yield Table((("step",) if has_steps else ()) + head, tuple(rows), (3 + has_steps,))


def _purpose(one):
    times, size = one.get("times"), one.get("size")
    often = "" if times in (None, 1) else f", {times:,} times"
    numbers = "" if size is None else f" ({size:,} number{'' if size == 1 else 's'})"
    return f"{one['purpose']}{numbers}{often}"


def _noise(one):
    scale, sensitivity = one.get("scale"), one.get("sensitivity")
    text = one["noise"]
    if scale is not None:
        text += f", scale {scale:.3g}"
    if sensitivity is not None:
        text += f" for a sensitivity of {sensitivity:.3g}"
    return text


def _share(one):
    return "" if one.get("share") is None else f"{100 * one['share']:.3g} %"


def _accounting(data):
    told = data["accounting"]
    yield Heading("How the losses add up")
    yield Text(told["text"])
    slack = told.get("slack") or 0.0
    yield Fields(
        (
            ("Method", told["method"]),
            ("Total", told["total"]),
            ("Claimed, but not used", f"{slack:.3g} of epsilon" if slack > 1e-4 else None),
        )
    )


def _ledger(data):
    told = data.get("ledger")
    yield Heading("The budget of the data set")
    if not told:
        yield Text(
            "No ledger was given for this report. Other results from the same data may exist: "
            "their losses add to the one above, and nothing here counts them."
        )
        return
    yield Text(
        "A ledger counts what all results cost together that are charged to it, and refuses what "
        "would exceed the budget."
    )
    yield Fields(
        (
            ("Ledger", told["name"]),
            ("Counts", f"each {told['unit']}, {told['adjacency']}"),
            ("Budget", told["budget"]),
            ("Spent", told["spent"]),
        )
    )
    if told.get("sure"):
        spent, budget = map(_sure, told["sure"])
        yield Text(
            "Somebody who was 50 % sure of something, and sees all results that are charged, can "
            f"be {spent} sure at most; once the budget is spent, {budget}."
        )
    left = tuple((_delta(one["delta"]), _least(one["epsilon"])) for one in told["left"])
    if left:
        yield Text(
            "One more result could have at most what one of these lines says; several share it:"
        )
        yield Table(("at delta", "epsilon left"), left, (0, 1))
    if told["by_label"]:
        yield Text(
            "Spent by label and by day, each at the delta of the ledger. These numbers do not add "
            "up to what is spent: what several results cost together is computed from their noise."
        )
    for name, key in (("label", "by_label"), ("day", "by_day")):
        rows = tuple((one[name], f"{one['charges']:,}", one["guarantee"]) for one in told[key])
        if rows:
            yield Table((name, "charges", "together"), rows, (1,))


def _sure(one):
    rare = one["except_with_probability"]
    return percent(one["posterior"]) + (
        f" (except with a chance of {one_in(rare)})" if rare else ""
    )


def _machine(data):
    yield Heading("Arithmetic and randomness")
    yield Bullets((*data["floating_point"], *data["randomness"]))


def _not_covered(data):
    yield Heading("What this does not cover")
    rows = tuple((one["what"], one["why"]) for one in data["not_covered"])
    yield Table(("what", "why"), rows)


def _questions(data):
    unit = data["guarantee"]["unit"]
    several = " How many rows has somebody at most?" if unit == "record" else ""
    yield Heading("What to ask before you agree")
    yield Bullets(
        (
            f"Is one {unit} what you would protect: one person with all that is theirs, or less?"
            + several,
            "Is each thing that is listed as public known to everybody anyway? Whoever ran the "
            "fit should be able to say how.",
            "Are you content with how sure an attacker can get, seeing who may look at the "
            "result and what is at stake for those in the data?",
            "Is every other use of the same data charged to the same ledger?",
            "Is the result good enough for its purpose, for small groups as well? Who has "
            "measured that, on which data?",
            "Who is responsible for the data, what may they be used for, and who gets the result? "
            "This report knows none of that.",
            "Who may see the machine, its logs and the data themselves, or watch it run?",
        )
    )


def _layers(data):
    yield Heading("The layers of NIST SP 800-226")
    yield Text(
        "The US guideline for evaluating such promises asks about these layers; each rests on "
        "those below it. “Covered” means that this report says what there is to say, not that it "
        "is good; whoever answers for the data answers for what is not covered."
    )
    rows = tuple(
        (one["layer"], STATUS.get(one["status"], one["status"]), one["text"])
        for one in data["nist_sp_800_226"]
    )
    yield Table(("layer", "status", "what is known"), rows)


def _words(data):
    if data.get("glossary"):
        yield Heading("Words")
        yield Fields(tuple((one["term"], one["meaning"]) for one in data["glossary"]))


def _epsilon(value):
    if value is None:
        return "none: no finite number bounds what is learned"
    return f"{rounded_up(value)} (0 would tell nothing; the larger, the more can be learned)"


def _delta(value):
    if value is None:
        return ""
    if value == 0.0:
        return "0 (never)"
    return f"{value:.3g} ({one_in(value)})"


def _most(value):
    """What follows from a promise, and must not look smaller than it is."""
    if value is None:
        return "none"
    return rounded_up(value) if isinstance(value, int | float) else str(value)


def _least(value):
    """What is left, and must not look larger than it is."""
    return "none" if value is None else f"{-float(rounded_up(-value)):.4g}"
