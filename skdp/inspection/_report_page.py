"""The page of a privacy report: which words and tables stand on it, in which order.

What they look like is decided elsewhere, so that text, Markdown and HTML say the same.
"""

import math
from dataclasses import dataclass

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
    "replace-one": "all that one {unit} contributes is replaced by anything else; how many "
    "{unit}s there are is public",
    "add-remove": "all that one {unit} contributes is added or taken away; how many {unit}s "
    "there are is protected, too",
}
UNITS = {
    "record": "each record in the data, which is one row; a person with several rows is "
    "protected less",
    "user": "each user in the data, with all rows that are theirs",
}
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
    blocks = [Text(data["headline"], lead=True)]
    for part in parts:
        blocks += part(data)
    end = (
        f"Made on {made['date']} by {versions}, from public and released numbers alone: this "
        "report tells nothing about the data that the result does not tell."
    )
    return [*blocks, Text(end)]


def _promise(data):
    told = data["guarantee"]
    unit = told["unit"]
    yield Heading("What is promised")
    yield Text(
        f"Random noise was added, so that the result comes out with similar chances whatever one "
        f"{unit} says. How similar they are is what epsilon and delta say: whoever sees the "
        f"result, and whatever else they know, gets no surer about one {unit} than the next "
        "section tells."
        + (" The caveats say why this does not hold as it stands." if told.get("caveats") else "")
    )
    yield Fields(
        (
            ("Who is protected", UNITS.get(unit, f"each {unit} in the data")),
            ("Against what change", _neighbours(told)),
            ("In one sentence", told["sentence"]),
            ("Kind of promise", told["definition"]),
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
            "The same promise in other numbers: at a smaller delta it has a larger epsilon, and "
            "all of these hold at once."
        )
        rows = tuple((_delta(point["delta"]), _up(point["epsilon"])) for point in curve)
        yield Table(("delta", "epsilon"), rows, (0, 1))
    others = told.get("conversions") or ()
    if others:
        yield Text("Further numbers that follow from the promise:")
        rows = tuple((one["name"], _value(one["value"])) for one in others)
        yield Table(("what", "number"), rows, (1,))
    steps = data["subject"].get("steps") or ()
    if steps:
        yield Text("The model is made of these steps, of which the private ones read the data:")
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
        row = [_percent(prior), _percent(point["posterior"])]
        if excepted:
            row.append(_percent(point.get("except_with_probability") or 0.0))
        # Without the release the best guess is what seems likelier.
        alone = "" if guess is None else _percent(max(prior, 1.0 - prior))
        rows.append((*row, alone, "" if guess is None else _percent(guess)))
    middle = ("except with chance",) if excepted else ()
    guesses = ("right guess before", "right guess after")
    head = ("sure before", "sure after", *middle, *guesses)
    if rows:
        yield Text(
            f"Take somebody who suspects something of one {unit}. The table says how sure of it "
            "they are before they see the result, and how sure it can make them at most; then how "
            "often they are right if they guess what seems likelier, before, and after at most."
        )
        yield Table(head, tuple(rows), tuple(range(len(head))))
    test = told.get("test")
    if test:
        yield Text(
            f"A test that raises a false alarm in {_percent(test['level'])} of the cases finds "
            f"the truth in at most {_percent(test['power'])} of them; one that guesses blindly "
            f"finds it in {_percent(test['level'])}."
        )


def _public(data):
    yield Heading("What counts as public, and who said so")
    yield Text(
        "Nothing protects what is listed here: it can be read off the result. Whoever declared "
        "it answers for its being public."
    )
    rows = []
    for one in data["public"]:
        who = DECLARED.get(one["declared_by"], one["declared_by"])
        rows.append((one["what"], one["value"], who, one["note"]))
    yield Table(("what", "value", "declared by", "note"), tuple(rows))


def _releases(data):
    releases = data["releases"]
    yield Heading("What was released")
    yield Text(
        "Only these answers about the data left the computation, each with random noise. The "
        "scale says how large the noise is, the sensitivity how far one "
        f"{data['guarantee']['unit']} can move the answer without it."
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
            ("Claimed, but not used", f"{slack:.3g} of epsilon" if slack > 1e-6 else None),
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
        "A ledger counts what all results from this data set cost together, and refuses what "
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
    left = tuple((_delta(one["delta"]), _value(one["epsilon"])) for one in told["left"])
    if left:
        yield Text("One more result could have at most:")
        yield Table(("at delta", "epsilon left"), left, (0, 1))
    for name, key in (("label", "by_label"), ("day", "by_day")):
        rows = tuple((one[name], f"{one['charges']:,}", one["guarantee"]) for one in told[key])
        if rows:
            yield Table((name, "charges", "together"), rows, (1,))


def _machine(data):
    yield Heading("Arithmetic and randomness")
    yield Bullets((*data["floating_point"], *data["randomness"]))


def _not_covered(data):
    yield Heading("What this does not cover")
    rows = tuple((one["what"], one["why"]) for one in data["not_covered"])
    yield Table(("what", "why"), rows)


def _questions(data):
    unit = data["guarantee"]["unit"]
    yield Heading("What to ask before you agree")
    yield Bullets(
        (
            f"Is one {unit} what you would protect: one person with all that is theirs, or less?",
            "Is each thing that is listed as public known to everybody anyway? Whoever declared "
            "it should be able to say how.",
            "Are you content with how sure an attacker can get, seeing who may look at the "
            "result and what is at stake for those in the data?",
            "Is every other use of the same data charged to the same ledger?",
            "Who may see the machine, its logs and the data themselves? This report cannot tell.",
        )
    )


def _layers(data):
    yield Heading("The layers of NIST SP 800-226")
    yield Text(
        "The US guideline for evaluating such promises asks about these layers; each rests on "
        "those below it."
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
    return f"{_up(value)} (0 would tell nothing; the larger, the more can be learned)"


def _delta(value):
    if value is None:
        return ""
    if value == 0.0:
        return "0"
    return f"{value:.3g} (1 in {float(f'{1.0 / value:.3g}'):,.0f})"


def _up(value, digits=4):
    """A number that must not look smaller than it is, to so many digits."""
    if value == 0.0 or not math.isfinite(value):
        return f"{value:g}"
    unit = 10.0 ** (math.floor(math.log10(abs(value))) - digits + 1)
    return f"{math.ceil(value / unit * (1 - 1e-12)) * unit:.{digits}g}"


def _percent(share):
    if 0.999 < share < 1.0:
        return "more than 99.9 %"
    return f"{_up(100 * share, 3)} %"


def _value(value):
    if value is None:
        return "none"
    return f"{value:.4g}" if isinstance(value, int | float) else str(value)
