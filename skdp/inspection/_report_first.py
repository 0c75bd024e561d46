"""The first page of a privacy report: what, for whom, how sure, at what cost, who answers."""

from skdp.inspection._report_blocks import Fields, Table, Text
from skdp.inspection._report_meaning import WHY_TEN_TIMES
from skdp.inspection._report_texts import (
    at_most,
    not_of_skdp,
    one_in,
    percent,
    rounded_up,
    times_delta,
)

__all__ = ["first_page_of", "title_of"]

UNITS = {
    "record": "each record in the data, which is one row; a person with several rows is "
    "protected less",
    "user": "each user in the data, with all rows that are theirs, however many",
}


def title_of(data):
    """Title of the page."""
    subject = data["subject"]
    name = subject.get("name") or ""
    quoted = f" “{name}”" if name and name != subject["type"] else ""
    return f"Privacy report: {subject['type']}{quoted}"


def first_page_of(data):
    """Blocks of the first page, all of which a reader must have seen.

    Parameters
    ----------
    data : dict
        As the schema of reports has it.

    Yields
    ------
    Text, Fields or Table
    """
    told, subject = data["guarantee"], data["subject"]
    yield Text(data["headline"], lead=True)
    for caveat in told.get("caveats") or ():
        yield Text(f"Caveat: {caveat}.", warns=True)
    stated, does = data.get("stated") or {}, subject.get("does") or ""
    unit = told["unit"]
    yield Fields(
        (
            ("Result", f"{subject['type']}: {does}" if does else subject["type"]),
            ("Data", stated.get("dataset") or "not stated"),
            ("Purpose", stated.get("purpose") or "not stated"),
            ("Who is protected", UNITS.get(unit, f"each {unit} in the data")),
            ("Cost of this result", _cost(told)),
            ("Ledger", _charged(data.get("ledger"))),
            ("Who answers for it", stated.get("responsible") or f"not stated: {'_' * 30}"),
        )
    )
    yield from _how_sure(data)
    found = [one["what"] for one in data["public"] if one["declared_by"] == "data"]
    if found:
        yield Text(
            f"Not protected: {', '.join(found)}. Nobody declared these public; they were read "
            "from the data. Check the list of what counts as public.",
            warns=True,
        )
    yield Text(
        "The details follow. Skip sections marked (for specialists) if you like; a glossary is at "
        f"the end. {_made(data)}"
    )


def _cost(told):
    if told["epsilon"] is None:
        return "no finite epsilon is proven"
    at = f" at delta {told['delta']:g} ({one_in(told['delta'])})" if told["delta"] else ", delta 0"
    return f"epsilon {rounded_up(told['epsilon'])}{at}; lower is more private"


def _charged(ledger):
    if not ledger:
        return "none was given: other results from these data add to the cost, uncounted"
    spent, budget = ledger["spent"], ledger["budget"]
    return f"{ledger['name']}: all charges together cost {spent}; the budget is {budget}"


def _how_sure(told):
    """Numbers of the worst result; why two small probabilities stand on the page."""
    points, unit = told["attacker"]["posteriors"], told["guarantee"]["unit"]
    limits = [at_most(point["posterior"]) for point in points]
    if set(limits) <= {"no limit"}:
        return
    rare = max(point.get("except_with_probability") or 0.0 for point in points)
    but = f", except with a probability of at most {one_in(rare)}." if rare else "."
    yield Text(
        f"How sure can an attacker become of a claim about one {unit}? This is the worst result "
        f"that can come out{but}"
    )
    rows = tuple(zip((percent(point["prior"]) for point in points), limits, strict=True))
    yield Table(("sure before", "sure after, at most"), rows, (0, 1))
    if times_delta(rare, told["guarantee"]["delta"]):
        yield Text(WHY_TEN_TIMES)


def _made(data):
    made = data["made"]
    versions = ", ".join(f"{name} {made[name]}" for name in made if name != "date")
    end = f"Made on {made['date']} by {versions}"
    others = data["subject"].get("third_party")
    if others:
        return f"{end}. {not_of_skdp(others)}."
    end += ", from public and released numbers alone."
    if "dev" in made.get("skdp", ""):
        end += " A version with dev in its number is under development."
    return end
