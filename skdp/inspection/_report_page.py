"""The page of a privacy report: which words and tables stand on it, in which order.

What they look like is decided elsewhere, so that text, Markdown and HTML say the same.
"""

from skdp.inspection._report_blocks import (
    Bullets,
    Fields,
    Heading,
    Table,
    Text,
    chance_of,
)
from skdp.inspection._report_odds import attacker_of_page, yardstick_of_page
from skdp.inspection._report_special import special_of
from skdp.inspection._report_texts import one_in, percent, rounded_up

__all__ = ["page_of", "title_of"]

NEIGHBOURS = {
    "replace-one": "all that one {unit} contributes is replaced by anything else, be it what "
    "somebody else would contribute",
    "add-remove": "all that one {unit} contributes is added or taken away",
}
PRESENCE = {
    "replace-one": "not promised: how many {unit}s there are is public. Promised is only that "
    "another {unit} in its place would have led to similar results",
    "add-remove": "yes: the result would be similar without them, and how many {unit}s there are "
    "is protected, too",
}
UNITS = {
    "record": "each record in the data, which is one row; a person with several rows is "
    "protected less",
    "user": "each user in the data, with all rows that are theirs, however many",
}
STATUS = {"covered": "covered", "partly": "partly", "not covered": "NOT COVERED"}
DECLARED = {
    "caller": "whoever ran the computation",
    "default": "nobody knows: the value equals the default",
    "data": "nobody: read from the data",
    "library": "a fixed rule of the program",
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
        _about,
        _promise,
        attacker_of_page,
        yardstick_of_page,
        _public,
        _released,
        _not_covered,
        _ledger,
        _publishing,
        _questions,
        _layers,
        special_of,
        _words,
    )
    made = data["made"]
    versions = ", ".join(f"{name} {made[name]}" for name in made if name != "date")
    blocks = [Text(data["headline"], lead=True)]
    for part in parts:
        blocks += part(data)
    end = f"Made on {made['date']} by {versions}, from public and released numbers alone."
    if "dev" in made.get("skdp", ""):
        end += " A version with dev in its number is under development."
    return [*blocks, Text(end)]


def _about(data):
    told, subject = data.get("stated") or {}, data["subject"]
    yield Heading("What this is about")
    does = subject.get("does") or ""
    yield Fields(
        (
            ("Data", told.get("dataset") or "not stated"),
            ("Purpose", told.get("purpose") or "not stated"),
            ("Who answers for it", told.get("responsible") or "not stated"),
            ("Result", f"{subject['type']}: {does}" if does else subject["type"]),
        )
    )
    steps = subject.get("steps") or ()
    if steps:
        yield Text(
            "It is made of these steps. A private step has learned something from the data, under "
            "the promise; the others learned nothing of them, or somebody declared them public."
        )
        rows = tuple((s["name"], s["type"], s.get("does") or "", s["role"]) for s in steps)
        yield Table(("step", "type", "what it is for", "role"), rows)
    yield Text(
        "Sections with (for specialists) in their title may be skipped: what matters of them is "
        "said before. Words that are not plain are explained at the end."
    )


def _promise(data):
    told = data["guarantee"]
    unit, held = told["unit"], told.get("caveats") or ()
    yield Heading("What is promised")
    for caveat in held:
        yield Text(f"Caveat: {caveat}.", warns=True)
    yield Text(
        f"Random noise was added, so that the result comes out with similar chances whatever one "
        f"{unit} says. Two numbers, epsilon and delta, say how similar. “What an "
        "attacker can learn” says what they mean."
        + (" The caveats say why this does not hold as it stands." if held else "")
    )
    adjacency = told["adjacency"]
    neighbours = NEIGHBOURS.get(adjacency, adjacency).format(unit=unit)
    presence = PRESENCE.get(adjacency, "not told")
    if data["subject"]["kind"] == "local":
        presence = "no: whoever receives what devices send sees which do"
    yield Fields(
        (
            ("Who is protected", UNITS.get(unit, f"each {unit} in the data")),
            ("Against what", f"that somebody can tell from the result whether {neighbours}"),
            ("Is it hidden that somebody is in the data?", presence.format(unit=unit)),
            ("epsilon", _epsilon(told["epsilon"])),
            ("delta", chance_of(told["delta"])),
        )
    )


def _public(data):
    yield Heading("What counts as public, and who said so")
    yield Text(
        "Nothing protects what is listed here: assume that it can be read off the result. A "
        "program cannot answer for any of it. Whoever ran the computation, or had it run, does: "
        "for each line, also for values that equal a default, and for what was read from the data."
    )
    found = [one["what"] for one in data["public"] if one["declared_by"] == "data"]
    if found:
        yield Text(
            f"Nobody declared these: {', '.join(found)}. They were read from the data, and the "
            "promise does not cover what they tell. Confirm that they are no secret, or "
            "epsilon is not the whole truth.",
            warns=True,
        )
    rows = tuple(
        (one["what"], one["value"], DECLARED.get(one["declared_by"], one["declared_by"]))
        + (one["note"],)
        for one in data["public"]
        if not one.get("technical")
    )
    yield Table(("what", "value", "who declared it", "note"), rows)


def _released(data):
    releases = data["releases"]
    told = [(one.get("times") or 1, one.get("size")) for one in releases]
    yield Heading("What was given out")
    text = (
        "Besides what counts as public, the result is made of noisy answers about the data and of "
        "nothing else. Assume that whoever gets the result can work out these answers; the "
        "promise covers all that was given out. To whom it was given this report cannot see."
    )
    if releases and all(one.get("times") and one.get("size") for one in releases):
        answers, numbers = sum(n for n, _ in told), sum(n * size for n, size in told)
        text += f" There were {answers:,} answers with {numbers:,} numbers in all:"
    yield Text(text)
    yield Bullets(tuple(purpose_of(one) for one in releases))


def purpose_of(one):
    """What an answer was for, how many numbers it had, and how often there was one."""
    times, size = one.get("times"), one.get("size")
    often = "" if times is None else ", once" if times == 1 else f", {times:,} times"
    numbers = "" if size is None else f" ({size:,} number{'' if size == 1 else 's'})"
    step = f"{one['step']}: " if one.get("step") else ""
    return f"{step}{one['purpose']}{numbers}{often}"


def _not_covered(data):
    yield Heading("What this does not cover")
    rows = tuple((one["what"], one["why"]) for one in data["not_covered"])
    yield Table(("what", "why"), rows)


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
        "would exceed the budget. Who set the budget it does not say. This section names other "
        "work than the result above."
    )
    yield Fields(
        (
            ("Ledger", told["name"]),
            ("Counts", f"each {told['unit']}, {told['adjacency']}"),
            ("Budget", told["budget"]),
            ("Spent", told["spent"]),
        )
    )
    yield from _meaning_of_the_ledger(told)
    left = tuple((chance_of(one["delta"]), _least(one["epsilon"])) for one in told["left"])
    if left:
        yield Text(
            "One more result could have at most what the line for its delta says. Several results "
            "share it: what one takes is no longer there for the next."
        )
        yield Table(("delta of the result", "epsilon left"), left, (0, 1))
    if told["by_label"] or told["by_day"]:
        yield Text(
            "A charge is one computation, under a label that somebody or the program gave it. Its "
            "purpose, and who has its result, the ledger does not know. The parts need not sum "
            "to what is spent: noise of several results is counted together, which is mostly less "
            "than the sum. All epsilons are at the delta of the ledger, so that a result may have "
            "another number here than at its own delta."
        )
    for name, key in (("label", "by_label"), ("day", "by_day")):
        rows = tuple((one[name], f"{one['charges']:,}", one["guarantee"]) for one in told[key])
        if rows:
            yield Table((name, "charges", "cost together"), rows, (1,))


def _meaning_of_the_ledger(told):
    means = {one["what"]: one for one in told.get("means") or ()}
    if not {"spent", "budget"} <= set(means):
        return
    spent, budget = means["spent"], means["budget"]
    rare = max(spent["except_with_probability"], budget["except_with_probability"])
    but = f", except with a chance of at most {one_in(rare)}" if rare else ""
    yield Text(
        f"For somebody who sees all results in the ledger and was {percent(spent['prior'])} sure: "
        f"they can be {percent(spent['posterior'])} sure now, and {percent(budget['posterior'])} "
        f"when the whole budget is spent, at most{but}."
    )
    if budget["posterior"] > 0.99:
        yield Text(
            "So large a budget hardly limits what can be learned in the worst case.", warns=True
        )


def _publishing(data):
    yield Heading("May this report be published?")
    ledger = (
        " The section on the budget is about other results: labels, days and costs. Read "
        "whether these may be known, or publish the report without that section."
        if data.get("ledger")
        else ""
    )
    yield Text(
        "As to the data: what it shows about this result follows from public and released numbers "
        f"alone. It tells nothing of a {data['guarantee']['unit']} that the promise does not "
        "cover, whether or not the result itself is published. But whatever is listed as public, "
        f"names of columns and labels among it, can then be read by everybody.{ledger} Whether "
        "law or secrecy of other kinds allows it this report cannot tell."
    )


def _questions(data):
    unit = data["guarantee"]["unit"]
    of_users = "Can somebody be in the data under two ids?"
    several = of_users if unit == "user" else f"How many people have several {unit}s?"
    yield Heading("What to ask before you agree")
    yield Bullets(
        (
            f"Is one {unit} what you would protect: one person with all that is theirs, or less? "
            f"{several}",
            "Is each thing that is listed as public known to everybody anyway? Who answers for "
            "that, by name?",
            "Are you content with how sure an attacker can get, seeing who may look at the "
            "result and what is at stake for those in the data?",
            "Must it stay hidden that somebody is in the data?",
            "Is every other use of the same data charged to the same ledger, who set its budget, "
            "and who can change it?",
            "Who may see the machine, its logs and the data themselves, or watch the computation "
            "run?",
            "How good is the result, and is it worse for small groups?",
            "What for, on which legal basis and for how long is the result used, and who gets it?",
        )
    )


def _layers(data):
    yield Heading("The layers of NIST SP 800-226")
    yield Text(
        "A guideline of the US National Institute of Standards and Technology asks about these "
        "layers. Each rests on those below it: where a lower one fails, those above protect less "
        "or nothing. Covered means that this report says what there is to say, partly that "
        "somebody has to add to it, and NOT COVERED that it says nothing, good or bad, and "
        "somebody else has to look. Nobody outside has checked these lines."
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


def _least(value):
    """What is left, and must not look larger than it is."""
    return "none" if value is None else f"{-float(rounded_up(-value)):.4g}"
