"""Sections of a report that only specialists need."""

import math

from skdp.inspection._report_blocks import (
    Bullets,
    Fields,
    Heading,
    Table,
    Text,
    chance_of,
    grouped,
    times_of,
    value_of,
)
from skdp.inspection._report_texts import rounded_up

__all__ = ["special_of"]


def special_of(data):
    """Blocks of these sections.

    Parameters
    ----------
    data : dict
        As the schema of reports has it.

    Yields
    ------
    Heading, Text, Bullets, Fields or Table
    """
    for part in (_promise, _releases, _accounting, _settings, _machine):
        yield from part(data)


def _promise(data):
    told = data["guarantee"]
    yield Heading("The promise in technical terms", for_specialists=True)
    yield Fields(
        (
            ("In one sentence", told["sentence"]),
            ("Kind of promise", told["definition"]),
            ("Method", told.get("mechanism")),
            ("Rests on", told.get("source")),
        )
    )
    if told["definition"].startswith("approximate"):
        yield Text("Approximate is the technical name of promises whose delta is not 0.")
    curve = [point for point in told.get("curve") or () if point["epsilon"] is not None]
    if curve:
        at = f" at delta {chance_of(told['delta'])}" if told["delta"] else ""
        own = (
            "" if told["epsilon"] is None else f" Quote epsilon {rounded_up(told['epsilon'])}{at}."
        )
        yield Text(
            "The same promise in other numbers: at a smaller delta it has a larger epsilon. All "
            f"of these hold at once.{own}"
        )
        rows = tuple((chance_of(point["delta"]), rounded_up(point["epsilon"])) for point in curve)
        yield Table(("delta", "epsilon"), rows, (0, 1))
    others = told.get("conversions") or ()
    if others:
        yield Text("Further numbers that follow from the promise:")
        rows = tuple((one["name"], value_of(one["value"])) for one in others)
        yield Table(("what", "number"), rows, (1,))


def _releases(data):
    releases = data["releases"]
    yield Heading("Each answer and its noise", for_specialists=True)
    yield Text(
        "The scale says how large the noise in an answer is. The sensitivity says how far one "
        f"{data['guarantee']['unit']} can move the exact answer. Guarantees are those of one "
        "answer, where there were several. Shares are of what all of them cost, and rounded."
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
            "Some were made from different rows, so that the shares add up to more than 100 %: of "
            "such only those count that cost most."
        )
    head = ("answer", "noise", "guarantee of one", "share of the cost", "theorem")
    yield Table((("step",) if has_steps else ()) + head, tuple(rows), (3 + has_steps,))


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


def _accounting(data):
    told = data["accounting"]
    yield Heading("How the losses add up", for_specialists=True)
    yield Text(f"{told['text']} What counts is the total, which is the promise at the top.")
    slack = told.get("slack") or 0.0
    yield Fields(
        (
            ("Method", told["method"]),
            ("Total", told["total"]),
            ("Claimed, but not used", f"{slack:.3g} of epsilon" if slack > 1e-4 else None),
        )
    )


def _settings(data):
    found = [one for one in data["public"] if one.get("technical")]
    if not found:
        return
    yield Heading("Further settings, which are public, too", for_specialists=True)
    yield Text(
        "These were not read from the data. They equal the defaults, or skdp computed them from "
        "public and from released numbers."
    )
    rows = tuple((one["what"], one["value"], one["note"]) for one in found)
    yield Table(("what", "value", "note"), rows)


def _machine(data):
    yield Heading("Arithmetic and randomness", for_specialists=True)
    yield Bullets((*data["floating_point"], *data["randomness"]))
