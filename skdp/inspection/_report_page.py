"""The page of a privacy report: which words and tables stand on it, in which order.

What they look like is decided elsewhere, so that text, Markdown and HTML say the same.
"""

import math
from importlib.resources import files
from operator import itemgetter

from skdp._views import STYLE, card, clean, escaped
from skdp.inspection._report_blocks import WIDTH, Bullets, Fields, Heading, Table, Text, marked
from skdp.inspection._report_texts import (
    WHY_TEN_TIMES,
    at_most,
    factor,
    is_no_limit,
    not_of_skdp,
    one_in,
    percent,
    rounded_up,
    times_delta,
)


def grouped(releases, *names):
    """Releases that are alike in these respects, in the order of the first of each kind."""
    kinds: dict = {}
    for one in releases:
        kinds.setdefault(tuple(one.get(name) for name in names), []).append(one)
    return list(kinds.values())


def times_of(releases):
    """How often there was one of them; None where that is not known of all."""
    times = [one.get("times") for one in releases]
    return None if None in times else sum(times)


def chance_of(value):
    """A delta as a number and in words."""
    if value is None:
        return ""
    return "0 (never)" if value == 0.0 else f"{value:.3g} ({one_in(value)})"


def _value(value):
    """A number that must not look smaller than it is, or a text."""
    if value is None:
        return "none"
    return rounded_up(value) if isinstance(value, int | float) else str(value)


def _special_promise(data):
    section = data["guarantee"]
    yield Heading("The promise in technical terms", for_specialists=True)
    yield Fields(
        ("In one sentence", section["sentence"]),
        ("Kind of promise", section["definition"]),
        ("Method", section.get("mechanism")),
        ("Rests on", section.get("source")),
    )
    if section["definition"].startswith("approximate"):
        yield Text("Approximate means that delta is not 0.")
    curve = [point for point in section.get("curve") or () if point["epsilon"] is not None]
    if curve:
        at = f" at delta {chance_of(section['delta'])}" if section["delta"] else ""
        quoted = section["epsilon"] is not None
        own = f" Quote epsilon {rounded_up(section['epsilon'])}{at}." if quoted else ""
        yield Text(
            "The same promise at other values of delta: a smaller delta has a larger epsilon. All "
            f"of them hold at once.{own}"
        )
        rows = ((chance_of(point["delta"]), rounded_up(point["epsilon"])) for point in curve)
        yield Table(("delta", "epsilon"), rows, (0, 1))
    if section.get("conversions"):
        yield Text("The same promise in other units:")
        rows = ((one["name"], _value(one["value"])) for one in section["conversions"])
        yield Table(("what", "number"), rows, (1,))


def _special_releases(data):
    releases = data["releases"]
    yield Heading("Each answer and its noise", for_specialists=True)
    yield Text(
        "The scale is the size of the noise in an answer. The sensitivity is the largest change "
        f"of the exact answer when one {data['guarantee']['unit']} changes. Where there were "
        "several answers, the guarantee is for one of them. Shares are rounded shares of the "
        "total cost."
    )
    has_steps = any(one.get("step") for one in releases)
    rows = []
    for alike in grouped(releases, "step", "purpose", "noise", "size", "theorem"):
        one = alike[0]
        step = ((one.get("step") or ""),) if has_steps else ()
        purpose = one["purpose"] + _often(times_of(alike))
        claims = list(dict.fromkeys(each["guarantee"] for each in alike))
        claim = claims[0] if len(claims) == 1 else f"from {claims[0]} to {claims[-1]}"
        rows.append((*step, purpose, _noise(alike), claim, _share(alike), one["theorem"]))
    if math.fsum(one.get("share") or 0.0 for one in releases) > 1.0 + 1e-9:
        yield Text(
            "Some answers were computed from different rows. The shares then add up to more than "
            "100 %, because only the most expensive of these answers counts."
        )
    head = ("answer", "noise", "guarantee of one", "share of the cost", "theorem")
    yield Table((("step",) if has_steps else ()) + head, rows, (3 + has_steps,))


def _often(times):
    return "" if times in (None, 1) else f", {times:,} times"


def _noise(alike):
    text = alike[0]["noise"]
    for name in ("scale", "sensitivity"):
        numbers = [one[name] for one in alike if one.get(name) is not None]
        if numbers:
            ends = dict.fromkeys(f"{end:.3g}" for end in (min(numbers), max(numbers)))
            text += f"; {name} {' to '.join(ends)}"
    return text


def _share(alike):
    shares = [one.get("share") for one in alike]
    return "" if None in shares else f"{100 * math.fsum(shares):.3g} %"


def _special_accounting(data):
    section = data["accounting"]
    yield Heading("How the losses add up", for_specialists=True)
    yield Text(f"{section['text']} The total is the promise at the top.")
    slack = section.get("slack") or 0.0
    yield Fields(
        ("Method", section["method"]),
        ("Total", section["total"]),
        ("Claimed, but not used", f"{slack:.3g} of epsilon" if slack > 1e-4 else None),
    )


def _settings(data):
    rows = [one for one in data["public"] if one.get("technical")]
    if not rows:
        return
    yield Heading("Further settings, which are public, too", for_specialists=True)
    yield Text(
        "These settings were not read from the data. They equal the defaults, or skdp computed "
        "them from public and released numbers."
    )
    yield Table(("what", "value", "note"), map(itemgetter("what", "value", "note"), rows))


def _machine(data):
    yield Heading("Arithmetic and randomness", for_specialists=True)
    yield Bullets(*data["floating_point"], *data["randomness"])


UNITS = {
    "record": "each record, which is one row of the data; a person with several rows is "
    "protected less",
    "user": "each user, with all rows of this user",
}


def title_of(data):
    """Title of the page."""
    subject = data["subject"]
    name = subject.get("name")
    quoted = f" “{name}”" if name and name != subject["type"] else ""
    return f"Privacy report: {subject['type']}{quoted}"


def first_page_of(data):
    """Blocks of the first page, all of which a reader must have seen."""
    section, subject = data["guarantee"], data["subject"]
    yield Text(data["headline"], lead=True)
    for caveat in section.get("caveats") or ():
        yield Text(f"Caveat: {caveat}.", warns=True)
    stated, does = data.get("stated") or {}, subject.get("does") or ""
    unit = section["unit"]
    yield Fields(
        ("Result", f"{subject['type']}: {does}" if does else subject["type"]),
        ("Data", stated.get("dataset") or "not stated"),
        ("Purpose", stated.get("purpose") or "not stated"),
        ("Who is protected", UNITS.get(unit, f"each {unit} in the data")),
        ("Cost of this result", _cost(section)),
        ("Ledger", _charged(data.get("ledger"))),
        ("Person responsible", stated.get("responsible") or f"not stated: {'_' * 30}"),
    )
    yield from _how_sure(data)
    found = [one["what"] for one in data["public"] if one["declared_by"] == "data"]
    if found:
        yield Text(
            f"Not protected: {', '.join(found)}. They were read from the data and nobody declared "
            "them public. Check the section on public values.",
            warns=True,
        )
    yield Text(
        "Details follow. Sections marked (for specialists) are optional. A glossary is at the "
        f"end. {_made(data)}"
    )


def _cost(section):
    if section["epsilon"] is None:
        return "no finite epsilon is proven"
    at = (
        f" at delta {section['delta']:g} ({one_in(section['delta'])})"
        if section["delta"]
        else ", delta 0"
    )
    return f"epsilon {rounded_up(section['epsilon'])}{at}; lower is more private"


def _charged(ledger):
    if not ledger:
        return "none was given: other results from these data add to the cost and are not counted"
    spent, budget = ledger["spent"], ledger["budget"]
    return f"{ledger['name']}: the total of all charges is {spent}; the budget is {budget}"


def _how_sure(section):
    """Numbers of the worst result; why two small probabilities stand on the page."""
    points, unit = section["attacker"]["posteriors"], section["guarantee"]["unit"]
    limits = [at_most(point["posterior"]) for point in points]
    if set(limits) <= {"no limit"}:
        return
    rare = max(point.get("except_with_probability") or 0.0 for point in points)
    but = f", except with a probability of at most {one_in(rare)}." if rare else "."
    yield Text(
        f"How confident can an attacker become of a claim about one {unit}? The table is for the "
        f"worst possible result{but}"
    )
    rows = zip((percent(point["prior"]) for point in points), limits, strict=True)
    yield Table(("confidence before", "confidence after, at most"), rows, (0, 1))
    alone = "These limits are for this result alone. Other results from the same data add to them."
    if times_delta(rare, section["guarantee"]["delta"]):
        alone = f"{alone} {WHY_TEN_TIMES}"
    yield Text(alone)


def _others(data):
    """What is said of third parties; empty where there are none."""
    return not_of_skdp(data["subject"].get("third_party") or ())


def _made(data):
    made = data["made"]
    versions = ", ".join(f"{name} {made[name]}" for name in made if name != "date")
    end = f"Made on {made['date']} by {versions}"
    others = _others(data)
    if others:
        return f"{end}. {others}."
    end += ", from public and released numbers only."
    if "dev" in made.get("skdp", ""):
        end += " A version number with dev is a development version."
    return end


def attacker_of_page(data):
    """Blocks of the section on attackers."""
    section, unit = data["attacker"], data["guarantee"]["unit"]
    yield Heading("What an attacker can learn")
    yield Text(section["sentence"])
    yield from _worst_result(section, unit)
    yield from _guesses(section["posteriors"])
    test = section.get("test")
    if test:
        level = _count(test["level"])
        yield Text(
            f"Third: how many true claims does a test find? At a false-positive rate of {level} % "
            f"({level} of 100 {unit}s for which the claim is false), the test finds "
            f"{_most(test['power'])} of 100 {unit}s for which it is true. Without the result it "
            f"finds {level}."
        )
    yield from _several_rows(section.get("several_rows") or ())


def _worst_result(section, unit):
    points = section["posteriors"]
    if not points:
        return
    has_limit = any(not is_no_limit(point["posterior"]) for point in points)
    is_below = has_limit and points[0].get("except_with_probability")
    below = " except for the exception below." if is_below else ""
    yield Text(
        "First: how confident can one result make an attacker? The attacker has a claim about one "
        f"{unit}. The table shows their confidence before they see the result, and the range of "
        "their confidence after it. It is for the worst possible result"
        + (f",{below}" if below else ".")
    )
    rows = (
        (percent(p["prior"]), _percent_down(p.get("at_least")), at_most(p["posterior"]))
        for p in points
    )
    yield Table(("confidence before", "at least after", "at most after"), rows, (0, 1, 2))
    yield Text(section.get("exception") or "")


def _guesses(points):
    points = [p for p in points if p.get("guess_right") is not None]
    if not points:
        return
    even = points[-1]
    # Without the release the best guess is what seems likelier.
    without = [max(p["prior"], 1.0 - p["prior"]) for p in points]
    yield Text(
        "Second: how often is the attacker right? The attacker guesses the likelier answer. This "
        "is an average over all possible results. Results that make an attacker very confident "
        f"may be rare, so the average gain is smaller. At {percent(even['prior'])}: "
        f"{_count(without[-1])} of 100 guesses are right without the result, and "
        f"{_most(even['guess_right'])} with it. The table has other prior probabilities:"
    )
    rows = (
        (percent(p["prior"]), percent(alone), at_most(p["guess_right"]))
        for p, alone in zip(points, without, strict=True)
    )
    head = ("confidence before", "right without it", "right with it, at most")
    yield Table(head, rows, (0, 1, 2))
    yield Text(
        "Use the first table if even one confident attacker could cause harm. Use the second for "
        "the average gain of a curious person."
    )


def _several_rows(rows):
    if not rows:
        return
    deltas = {one["delta"] for one in rows}
    rares = {one["except_with_probability"] for one in rows}
    is_alike = len(deltas) == len(rares) == 1
    but = ""
    if is_alike and max(deltas):
        but = f" (at delta {one_in(max(deltas))}, with an exception of {one_in(max(rares))})"
    yield Text(
        "A person with several rows is protected less than a person with one row. For k rows, "
        "epsilon is about k times as large, or more. The third column shows how far confidence in "
        f"a claim about these rows can rise from {percent(rows[0]['prior'])}{but}. The last "
        "column is the largest share of right guesses."
        + (" The exception is at most ten times delta." if max(rares) else "")
    )
    more = () if is_alike else ("at delta", "chance of the exception")
    head = ("rows", "epsilon", "up to", "right", *more)
    cells = (
        (
            str(one["rows"]),
            "none" if one["epsilon"] is None else rounded_up(one["epsilon"]),
            at_most(one["posterior"]),
            at_most(one["guess_right"]),
            chance_of(one["delta"]),
            one_in(one["except_with_probability"]),
        )[: len(head)]
        for one in rows
    )
    yield Table(head, cells, range(len(head)))


def yardstick_of_page(data):
    """Blocks of the section that compares epsilons."""
    points = data.get("yardstick") or ()
    if not points:
        return
    yield Heading("Is that a strong promise?")
    yield Text(
        "This report gives no verdict, and it knows of no law that fixes a value of epsilon. For "
        "comparison, with delta 0, the table shows the largest factor by which odds grow, and how "
        f"far confidence can rise from {percent(points[0]['prior'])}:"
    )
    rows = [
        (f"{one['epsilon']:g}", factor(one["epsilon"]), at_most(one["posterior"]))
        for one in points
    ]
    section = data["attacker"]
    loss = section.get("largest_loss")
    own = [one for one in section["posteriors"] if one["prior"] == points[0]["prior"]]
    if loss is not None and own:
        rows.append((f"here: {rounded_up(loss)}", factor(loss), at_most(own[0]["posterior"])))
    yield Table(("epsilon", "factor", "up to"), rows, (0, 1, 2))
    if own and own[0].get("except_with_probability"):
        yield Text(
            "The last line is this result, with the exception of the section above. It combines "
            "epsilon and delta."
        )


def _percent_down(share):
    """A chance that must not look larger than it is."""
    if share is None:
        return ""
    if share < 1e-5:
        return "0 %"
    unit = 10.0 ** (math.floor(math.log10(100.0 * share)) - 2)
    return f"{math.floor(100.0 * share / unit * (1 + 1e-12)) * unit:.3g} %"


def _count(share):
    """So many of 100."""
    return rounded_up(100.0 * share, 3)


def _most(share):
    """A bound on how many of 100, or that it says nothing."""
    count = _count(share)
    return "perhaps all" if count == "100" else f"at most {count}"


NEIGHBOURS = {
    "replace-one": "the data of one {unit} are replaced by any other data, even by another "
    "person's",
    "add-remove": "the data of one {unit} are added or removed",
}
PRESENCE = {
    "replace-one": "no: the number of {unit}s is public. The promise is that another {unit} in "
    "the same place would have given similar results",
    "add-remove": "yes: the result would be similar without them, and the number of {unit}s is "
    "protected too",
}
STATUS = {"covered": "covered", "partly": "partly", "not covered": "NOT COVERED"}
DECLARED = {
    "caller": "the person who ran the computation",
    "default": "unknown: the value equals the default",
    "data": "nobody: read from the data",
    "library": "a fixed rule of the program",
}


def page_of(data):
    """Blocks of the page."""
    blocks = [*first_page_of(data), Heading("Details", parts=True)]
    for part in (
        *(_steps, _promise, attacker_of_page, yardstick_of_page, _public, _released),
        *(_coefficients, _notes, _not_covered, _ledger, _publishing, _questions, _layers),
        *(_special_promise, _special_releases, _special_accounting, _settings, _machine, _words),
    ):
        blocks += part(data)
    return blocks


def _steps(data):
    steps = data["subject"].get("steps") or ()
    if not steps:
        return
    yield Heading("What it is made of")
    text = (
        "A private step learned from the data within the promise. A public step learned nothing "
        "from the data, or was declared public."
    )
    if any(step["role"] == "frozen" for step in steps):
        text += " A frozen step was fitted before. If it learned from the data, its cost is "
        "included."
    yield Text(text)
    rows = ((s["name"], s["type"], s.get("does") or "", s["role"]) for s in steps)
    yield Table(("step", "type", "what it is for", "role"), rows)


def _promise(data):
    section, subject = data["guarantee"], data["subject"]
    unit, held = section["unit"], section.get("caveats") or ()
    others = _others(data)
    yield Heading("What is promised")
    yield Text(
        (f"{others}, so this report did not check the promise. " if others else "")
        + f"Random noise was added, so the result is almost equally likely whatever one {unit} "
        "contains. Two numbers, epsilon and delta, say how similar the probabilities are. The "
        "section “What an attacker can learn” explains them."
        + (" The caveats say under which conditions this holds." if held else "")
    )
    adjacency = section["adjacency"]
    neighbours = NEIGHBOURS.get(adjacency, adjacency).format(unit=unit)
    presence = PRESENCE.get(adjacency, "not told")
    if subject["kind"] == "local":
        presence = "no: whoever receives the messages sees which devices send them"
    yield Fields(
        ("Protects against", f"that an attacker can tell from the result whether {neighbours}"),
        ("Is it hidden that a person is in the data?", presence.format(unit=unit)),
        ("epsilon", _epsilon(section["epsilon"])),
        ("delta", chance_of(section["delta"])),
    )


def _public(data):
    yield Heading("What counts as public, and who declared it")
    yield Text(
        "The values in this table are not protected: assume that they can be read from the "
        "result. A program cannot decide whether they are secret. The person responsible for the "
        "computation must check each line, including values that equal a default or were read "
        "from the data."
    )
    found = [one["what"] for one in data["public"] if one["declared_by"] == "data"]
    if found:
        yield Text(
            f"Nobody declared these: {', '.join(found)}. They were read from the data, and the "
            "promise does not cover what they reveal. Confirm that they are not secret; otherwise "
            "epsilon understates the risk.",
            warns=True,
        )
    rows = (
        (one["what"], one["value"], DECLARED.get(one["declared_by"], one["declared_by"]))
        + (one["note"],)
        for one in data["public"]
        if not one.get("technical")
    )
    yield Table(("what", "value", "who declared it", "note"), rows)


def _released(data):
    releases = data["releases"]
    section = [(one.get("times") or 1, one.get("size")) for one in releases]
    yield Heading("What was released")
    others = _others(data)
    if others:
        text = (
            f"{others}. These are the answers that this report knows of. It cannot see whether "
            "anything else was released, and to whom."
        )
    else:
        text = (
            "Apart from public values, the result depends only on the noisy answers listed here. "
            "Assume that anyone who gets the result can compute these answers; the promise covers "
            "all of them. This report cannot see who received them."
        )
    if releases and all(one.get("times") and one.get("size") for one in releases):
        answers, numbers = sum(n for n, _ in section), sum(n * size for n, size in section)
        text += f" There were {answers:,} answers with {numbers:,} numbers in total:"
    yield Text(text)
    yield Bullets(*map(_purpose_of, grouped(releases, "step", "purpose", "size")))


def _purpose_of(alike):
    """What answers were for, how many numbers each had, and how many there were."""
    one, times = alike[0], times_of(alike)
    size = one.get("size")
    often = "" if times is None else ", once" if times == 1 else f", {times:,} times"
    numbers = "" if size is None else f" ({size:,} number{'' if size == 1 else 's'})"
    step = f"{one['step']}: " if one.get("step") else ""
    return f"{step}{one['purpose']}{numbers}{often}"


def _notes(data):
    if notes := data.get("notes"):
        yield Heading("Notes of the learner")
        yield Bullets(*notes)


def _coefficients(data):
    section = data.get("coefficients")
    if not section:
        return
    yield Heading("Confidence intervals of the coefficients")
    yield Text(
        f"An interval contains the coefficient with probability {percent(section['level'])}; it "
        "includes noise and sampling. Where noise hides a coefficient there is no interval."
    )
    rows = []
    for one in section["rows"]:
        ends = f"{one['from']:.4g} to {one['to']:.4g}" if "from" in one else "cannot tell"
        p = f"{one['p']:.2g}" if "p" in one else ""
        cells = f"{one['estimate']:.4g}", f"{one['standard_error']:.3g}", ends, p
        rows.append((one["name"], *cells))
    yield Table(("coefficient", "estimate", "standard error", "interval", "p"), rows, (1, 2, 4))
    yield Bullets(*section["remarks"])


def _not_covered(data):
    yield Heading("What this does not cover")
    yield Table(("what", "why"), map(itemgetter("what", "why"), data["not_covered"]))


def _ledger(data):
    section = data.get("ledger")
    yield Heading("The budget of the data set")
    if not section:
        yield Text(
            "No ledger was given for this report. Other results from the same data may exist. "
            "Their cost adds to the cost above and is not counted here."
        )
        return
    yield Text(
        "A ledger adds up the cost of all results from this data set and refuses results that "
        "would exceed the budget. It does not say who set the budget. This section is also about "
        "results other than the one above."
    )
    yield Fields(
        ("Ledger", section["name"]),
        ("Counts", f"each {section['unit']}, {section['adjacency']}"),
        ("Budget", section["budget"]),
        ("Spent", section["spent"]),
    )
    yield from _meaning_of_the_ledger(section)
    left = [(chance_of(one["delta"]), _least(one["epsilon"])) for one in section["left"]]
    if left:
        yield Text(
            "The table shows the largest epsilon of one more result, by its delta. If there are "
            "several further results, they share it. A result with a larger delta is refused."
        )
        yield Table(("delta of the result", "epsilon left"), left, (0, 1))
    if section["by_label"] or section["by_day"]:
        yield Text(
            "A charge is one computation, with a label from the caller or the program. The ledger "
            "does not know its purpose or who has its result. The total is mostly less than the "
            "sum of the parts, because noise of several results is composed exactly. All "
            "epsilons are at the delta of the ledger, so a result may have a different epsilon "
            "here than at its own delta."
        )
    for name, key in (("label", "by_label"), ("day", "by_day")):
        rows = [(one[name], f"{one['charges']:,}", one["guarantee"]) for one in section[key]]
        if rows:
            yield Table((name, "charges", "cost together"), rows, (1,))


def _meaning_of_the_ledger(section):
    means = {one["what"]: one for one in section.get("means") or ()}
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
        f"For an attacker who sees all results in the ledger and was {percent(spent['prior'])} "
        f"confident before, the limit on their confidence is {' and '.join(limits)}{but}."
    )
    if is_no_limit(budget["posterior"]):
        yield Text(
            "With such a large budget, nothing is promised against this attacker.", warns=True
        )
    elif budget["posterior"] > 0.99:
        yield Text(
            "With such a large budget, there is almost no limit in the worst case.", warns=True
        )


def _publishing(data):
    yield Heading("May this report be published?")
    ledger = (
        " The section on the budget shows labels, days and costs of other results. Check whether "
        "these may be known, or publish the report without that section."
        if data.get("ledger")
        else ""
    )
    unit, others = data["guarantee"]["unit"], _others(data)
    if others:
        text = (
            f"{others}, and its names, parameters and texts appear in this report. It is not "
            f"known whether they reveal anything about a {unit}."
        )
    else:
        text = (
            "Yes, as far as the promise is concerned: this report uses public and released "
            "numbers only."
        )
    yield Text(
        f"{text} Readers then see what is listed as public, such as column names and "
        f"labels.{ledger} This report cannot tell whether the law or other confidentiality rules "
        "allow it."
    )


def _questions(data):
    unit = data["guarantee"]["unit"]
    of_users = "Can a person be in the data under two ids?"
    several = of_users if unit == "user" else f"How many people have several {unit}s?"
    yield Heading("What to ask before you agree")
    yield Bullets(
        f"Is one {unit} the right unit to protect: all data of one person, or less? {several}",
        "Is every value that is listed as public really public? Who is responsible for this "
        "decision, by name?",
        "Is the largest confidence of an attacker acceptable, given who will see the result and "
        "the possible harm?",
        "Must it stay hidden that a person is in the data?",
        "Is every other use of the same data charged to the same ledger? Who set its budget, and "
        "who can change it?",
        "Who has access to the machine, its logs and the data, or can watch the computation run?",
        "How good is the result, and is it worse for small groups?",
        "For which purpose, on which legal basis and for how long is the result used, and who "
        "gets it?",
    )


def _layers(data):
    yield Heading("The layers of NIST SP 800-226")
    yield Text(
        "A guideline of the US National Institute of Standards and Technology lists these layers. "
        "Each layer depends on those below it. Covered means that this report answers the "
        "question, partly that a person must add to the answer, and NOT COVERED that a person "
        "must check it. These lines were not checked independently."
    )
    rows = (
        (one["layer"], STATUS.get(one["status"], one["status"]), one["text"])
        for one in data["nist_sp_800_226"]
    )
    yield Table(("layer", "status", "what is known"), rows)


def _words(data):
    if data.get("glossary"):
        yield Heading("Glossary")
        yield Fields(*((one["term"], one["meaning"]) for one in data["glossary"]))


def _epsilon(value):
    if value is None:
        return "none: there is no finite limit"
    return f"{rounded_up(value)} (0 reveals nothing; a larger value reveals more)"


def _least(value):
    """What is left, and must not look larger than it is."""
    return "none" if value is None else f"{-float(rounded_up(-value)):.4g}"


def resource(name):
    """Text of a file that comes with the package."""
    return files("skdp.inspection").joinpath(name).read_text("utf-8")


# The report in a notebook, and what a page of its own adds.
_REPORT = "\n" + resource("privacy_report.css")
_PAGE = _REPORT + "\n" + resource("privacy_report_page.css")


def as_text(data):
    """Report as plain text, in lines of at most 80 characters where words allow it."""
    title = clean(title_of(data))
    return _joined(f"{title}\n{'=' * min(len(title), WIDTH)}", data, "as_text")


def as_markdown(data):
    """Report as Markdown with tables, as GitHub and notebooks show them."""
    return _joined(f"# {marked(title_of(data))}", data, "as_markdown")


def _joined(title, data, way):
    parts = [title, *(getattr(block, way)() for block in page_of(data))]
    return "\n\n".join(filter(None, parts)) + "\n"


def as_html(data):
    """Report as a page that stands alone: one file, without scripts, to read, mail and print."""
    title, body = escaped(title_of(data)), "\n".join(_folded(page_of(data)))
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{title}</title>\n<style>{STYLE}{_PAGE}</style>\n</head>\n<body>\n"
        f'<main class="skdp-view skdp-report">\n<h1>{title}</h1>\n{body}\n</main>\n'
        "</body>\n</html>\n"
    )


def as_fragment(data):
    """Report as HTML for a cell of a notebook."""
    style = f"<style>{_REPORT}</style>"
    return card("", style, f"<h2>{escaped(title_of(data))}</h2>", *_folded(page_of(data)))


def _folded(blocks):
    """The first page as it is, and each section below it closed until somebody opens it."""
    parts, is_open = [], False
    for block in blocks:
        if is_open and isinstance(block, Heading):
            parts.append("</details>")
        parts.append(block.as_html())
        is_open = is_open or (isinstance(block, Heading) and not block.parts)
    return [part for part in (*parts, "</details>" if is_open else "") if part]
