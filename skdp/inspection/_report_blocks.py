"""What the page of a privacy report is made of, and how its numbers are written."""

from dataclasses import dataclass

from skdp.inspection._report_texts import one_in, rounded_up

__all__ = [
    "Bullets",
    "Fields",
    "Heading",
    "Table",
    "Text",
    "chance_of",
    "grouped",
    "times_of",
    "value_of",
]


@dataclass(frozen=True)
class Heading:
    """Title of a section; one ``for_specialists`` may be skipped, and says so.

    Sections are folded where a page can do that; what ``parts`` the page stands above them.
    """

    title: str
    for_specialists: bool = False
    parts: bool = False

    @property
    def text(self):
        """What is written."""
        return self.title + (" (for specialists)" if self.for_specialists else "")


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


def value_of(value):
    """A number that must not look smaller than it is, or a text."""
    if value is None:
        return "none"
    return rounded_up(value) if isinstance(value, int | float) else str(value)
