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
    grouped,
    times_of,
)
from skdp.inspection._report_first import first_page_of
from skdp.inspection._report_odds import attacker_of_page, yardstick_of_page
from skdp.inspection._report_special import special_of
from skdp.inspection._report_texts import (
    is_no_limit,
    not_of_skdp,
    one_in,
    percent,
    rounded_up,
)

__all__ = ["page_of"]

NEIGHBOURS = {
    "replace-one": "all that one {unit} contributes is replaced by anything else, even by "
    "another person's data",
    "add-remove": "all that one {unit} contributes is added or taken away",
}
PRESENCE = {
    "replace-one": "not promised: how many {unit}s there are is public. The promise is only "
    "that another {unit} in its place would have led to similar results",
    "add-remove": "yes: the result would be similar without them, and how many {unit}s there are "
    "is protected, too",
}
STATUS = {"covered": "covered", "partly": "partly", "not covered": "NOT COVERED"}
DECLARED = {
    "caller": "whoever ran the computation",
    "default": "nobody knows: the value equals the default",
    "data": "nobody: read from the data",
    "library": "a fixed rule of the program",
}


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
        _steps,
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
    blocks = [*first_page_of(data), Heading("Details", parts=True)]
    for part in parts:
        blocks += part(data)
    return blocks


def _steps(data):
    steps = data["subject"].get("steps") or ()
    if not steps:
        return
    yield Heading("What it is made of")
    text = (
        "A private step has learned from the data, under the promise. A public step has learned "
        "nothing from them, or somebody declared it public."
    )
    if any(step["role"] == "frozen" for step in steps):
        text += " A frozen step was fitted before; if it learned from the data, that counts, too."
    yield Text(text)
    rows = tuple((s["name"], s["type"], s.get("does") or "", s["role"]) for s in steps)
    yield Table(("step", "type", "what it is for", "role"), rows)


def _promise(data):
    told, subject = data["guarantee"], data["subject"]
    unit, held = told["unit"], told.get("caveats") or ()
    others = subject.get("third_party") or ()
    yield Heading("What is promised")
    yield Text(
        (
            f"{not_of_skdp(others)}. The promise, which nothing here checks, is this: "
            if others
            else ""
        )
        + "Random noise was added, so the result is almost equally likely whatever any one "
        f"{unit} contains. Two numbers, epsilon and delta, say how similar the chances are. “What "
        "an attacker can learn” explains them."
        + (" The caveats say why this does not hold as it stands." if held else "")
    )
    adjacency = told["adjacency"]
    neighbours = NEIGHBOURS.get(adjacency, adjacency).format(unit=unit)
    presence = PRESENCE.get(adjacency, "not told")
    if subject["kind"] == "local":
        presence = "no: whoever receives what devices send sees which do"
    yield Fields(
        (
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
            "promise does not cover what they tell. Confirm that they are no secret; otherwise "
            "epsilon understates the risk.",
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
    others = data["subject"].get("third_party") or ()
    if others:
        text = (
            f"{not_of_skdp(others)}. These are the answers that this report knows of. Whether "
            "anything else was given out, and to whom, it cannot see."
        )
    else:
        text = (
            "Besides what counts as public, the result is made of noisy answers about the data "
            "and of nothing else. Assume that whoever gets the result can work out these answers; "
            "the promise covers all of them. To whom they were given this report cannot see."
        )
    if releases and all(one.get("times") and one.get("size") for one in releases):
        answers, numbers = sum(n for n, _ in told), sum(n * size for n, size in told)
        text += f" There were {answers:,} answers with {numbers:,} numbers in all:"
    yield Text(text)
    yield Bullets(tuple(map(_purpose_of, grouped(releases, "step", "purpose", "size"))))


def _purpose_of(alike):
    """What answers were for, how many numbers each had, and how many there were."""
    one, times = alike[0], times_of(alike)
    size = one.get("size")
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
    but = ""
    if rare:
        but = (
            f", except with a probability of at most {one_in(rare)}, which is at most ten times "
            "the delta of the ledger"
        )
    limits = [
        f"no limit {when}" if is_no_limit(share) else f"at most {percent(share)} {when}"
        for share, when in (
            (spent["posterior"], "now"),
            (budget["posterior"], "when the whole budget is spent"),
        )
    ]
    yield Text(
        f"For somebody who sees all results in the ledger and was {percent(spent['prior'])} sure, "
        f"the limit on their confidence is: {' and '.join(limits)}{but}."
    )
    if is_no_limit(budget["posterior"]):
        yield Text("So large a budget promises nothing against such a reader.", warns=True)
    elif budget["posterior"] > 0.99:
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
    unit, others = data["guarantee"]["unit"], data["subject"].get("third_party") or ()
    if others:
        text = (
            f"{not_of_skdp(others)}, and its names, parameters and texts stand in this report: "
            f"whether they tell anything about a {unit} is not known."
        )
    else:
        text = (
            "What it shows about this result follows from public and released numbers alone. It "
            f"tells nothing about a {unit} that the promise does not cover, whether or not the "
            "result itself is published."
        )
    yield Text(
        f"{text} But everybody can then read what is listed as public, such as names of columns "
        f"and labels.{ledger} Whether law or secrecy of other kinds allows it this report cannot "
        "tell."
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
