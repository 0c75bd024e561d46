"""Sections of a report on what an attacker can learn, and on what is much."""

import math

from skdp.inspection._report_blocks import Heading, Table, Text, chance_of
from skdp.inspection._report_texts import at_most, factor, is_no_limit, one_in, percent, rounded_up

__all__ = ["attacker_of_page", "yardstick_of_page"]


def attacker_of_page(data):
    """Blocks of the section on attackers.

    Parameters
    ----------
    data : dict
        As the schema of reports has it.

    Yields
    ------
    Heading, Text or Table
    """
    told, unit = data["attacker"], data["guarantee"]["unit"]
    yield Heading("What an attacker can learn")
    yield Text(told["sentence"])
    yield from _worst_result(told, unit)
    yield from _guesses(told["posteriors"])
    test = told.get("test")
    if test:
        level = _count(test["level"])
        yield Text(
            f"Third: how many do they find? Suppose that they accuse {level} of every 100 "
            f"{unit}s of which the suspicion is false. Then they find {_most(test['power'])} of "
            f"every 100 of which it is true. Without the result they find {level}."
        )
    yield from _several(told.get("several_rows") or ())


def _worst_result(told, unit):
    points = told["posteriors"]
    if not points:
        return
    has_limit = any(not is_no_limit(point["posterior"]) for point in points)
    is_below = has_limit and points[0].get("except_with_probability")
    below = " but for the exception below." if is_below else ""
    yield Text(
        f"First: how sure can one result make somebody? They suspect something of one {unit}. "
        "The table says how sure they are before they see the result, and how far it can lower or "
        "raise that. This is the worst result that can come out" + (f",{below}" if below else ".")
    )
    head = ("sure before", "down to at least", "up to at most")
    rows = tuple(
        (percent(p["prior"]), _percent_down(p.get("at_least")), at_most(p["posterior"]))
        for p in points
    )
    yield Table(head, rows, (0, 1, 2))
    yield Text(told.get("exception") or "")


def _guesses(points):
    points = [p for p in points if p.get("guess_right") is not None]
    if not points:
        return
    even = points[-1]
    # Without the release the best guess is what seems likelier.
    without = [max(p["prior"], 1.0 - p["prior"]) for p in points]
    yield Text(
        "Second: how often are they right? They always guess what seems likelier. This is an "
        "average over all results that can come out, in which likely ones count most. Results "
        "that make somebody very sure may be rare, so that less is gained on average. At "
        f"{percent(even['prior'])}: of 100 guesses {_count(without[-1])} are right without the "
        f"result, and {_most(even['guess_right'])} with it. The "
        "table has the same for other suspicions:"
    )
    rows = tuple(
        (percent(p["prior"]), percent(alone), at_most(p["guess_right"]))
        for p, alone in zip(points, without, strict=True)
    )
    head = ("sure before", "right without it", "with it, at most")
    yield Table(head, rows, (0, 1, 2))
    yield Text(
        "Use the first table where even one certainty could cause harm, and the second for how "
        "much a curious person gains on average."
    )


def _several(rows):
    if not rows:
        return
    deltas = {one["delta"] for one in rows}
    rares = {one["except_with_probability"] for one in rows}
    is_alike = len(deltas) == len(rares) == 1
    but = ""
    if is_alike and max(deltas):
        but = f" (at delta {one_in(max(deltas))}, with an exception of {one_in(max(rares))})"
    yield Text(
        "Somebody with several rows is protected less than somebody with one. For k rows "
        "epsilon is about k times as large, or more. A suspicion about what stands in these "
        f"rows rises from {percent(rows[0]['prior'])} to at most what the table says{but}, and at "
        "most this share of guesses about them is right."
        + (" The exception is ten times delta, or less." if max(rares) else "")
    )
    more = () if is_alike else ("at delta", "chance of the exception")
    head = ("rows", "epsilon", "up to", "right", *more)
    cells = tuple(
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
    yield Table(head, cells, tuple(range(len(head))))


def yardstick_of_page(data):
    """Blocks of the section that compares epsilons.

    Parameters
    ----------
    data : dict
        As the schema of reports has it.

    Yields
    ------
    Heading, Text or Table
    """
    points = data.get("yardstick") or ()
    if not points:
        return
    yield Heading("Is that a strong promise?")
    yield Text(
        "No law that this report knows of fixes a value of epsilon, and the report gives no "
        "verdict. For comparison: with delta 0, these values of epsilon let odds grow by at most "
        f"this factor, and raise a suspicion of {percent(points[0]['prior'])} to at most this:"
    )
    rows = [
        (f"{one['epsilon']:g}", factor(one["epsilon"]), at_most(one["posterior"]))
        for one in points
    ]
    told = data["attacker"]
    loss = told.get("largest_loss")
    own = [one for one in told["posteriors"] if one["prior"] == points[0]["prior"]]
    if loss is not None and own:
        rows.append((f"here: {rounded_up(loss)}", factor(loss), at_most(own[0]["posterior"])))
    yield Table(("epsilon", "factor", "up to"), tuple(rows), (0, 1, 2))
    if own and own[0].get("except_with_probability"):
        yield Text(
            "The last line is this result, with the number and the exception of the section "
            "before. It stands for epsilon and delta together."
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
