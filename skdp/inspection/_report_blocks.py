"""What a page is made of, and how each block looks as text, as Markdown and as HTML."""

import re
from dataclasses import dataclass
from itertools import zip_longest
from textwrap import wrap

from skdp._views import clean, escaped, fields, note, table

WIDTH = 80  # of lines of text
_NARROW, _LONG = 14, 30  # of columns at least, without and with a long word


@dataclass(frozen=True)
class Heading:
    """Title of a section; one ``for_specialists`` may be skipped, and says so.

    Sections are folded where a page can do that; what ``parts`` the page stands above them.
    """

    title: str
    for_specialists: bool = False
    parts: bool = False

    def __str__(self):
        return self.title + (" (for specialists)" if self.for_specialists else "")

    def as_text(self):
        """Plain text."""
        title = clean(self)
        return f"{title}\n{('=' if self.parts else '-') * len(title)}"

    def as_markdown(self):
        """Markdown."""
        return f"{'##' if self.parts else '###'} {marked(self)}"

    def as_html(self):
        """The title, and the beginning of the section."""
        if not self.parts:
            return f"<details><summary><h3>{escaped(self)}</h3></summary>"
        # Browsers that print no closed section say so on the paper.
        return (
            f'<h2>{escaped(self)}</h2><p class="skdp-unprinted">This browser prints no section '
            "that is closed: open those that you need.</p>"
        )


@dataclass(frozen=True)
class Text:
    """A paragraph; one that ``warns`` stands out, and the ``lead`` is what to read first."""

    text: str
    warns: bool = False
    lead: bool = False

    def as_text(self):
        """Plain text."""
        return _lines(self.text, first="! " if self.warns else "")

    def as_markdown(self):
        """Markdown."""
        text = f"**{marked(self.text)}**" if self.warns or self.lead else marked(self.text)
        return f"> {text}" if self.warns else text

    def as_html(self):
        """HTML."""
        if self.lead:
            return f'<p class="skdp-lead">{escaped(self.text)}</p>'
        return note(self.text, warns=self.warns)


class Bullets:
    """A list."""

    def __init__(self, *items):
        self.items = items

    def as_text(self):
        """Plain text."""
        return "\n".join(_lines(item, "  ", "- ") for item in self.items)

    def as_markdown(self):
        """Markdown."""
        return "\n".join(f"- {marked(item)}" for item in self.items)

    def as_html(self):
        """HTML."""
        return f"<ul>{''.join(f'<li>{escaped(item)}</li>' for item in self.items)}</ul>"


class Fields:
    """Names with values; those without a value are left out."""

    def __init__(self, *pairs):
        self.pairs = [(name, value) for name, value in pairs if value and clean(value)]

    def as_text(self):
        """Plain text."""
        names = [clean(name) for name, _ in self.pairs]
        margin = " " * (max(map(len, names), default=0) + 2)
        return "\n".join(
            _lines(value, margin, name.ljust(len(margin)))
            for name, (_, value) in zip(names, self.pairs, strict=True)
        )

    def as_markdown(self):
        """Markdown."""
        return Table(("", ""), self.pairs).as_markdown()

    def as_html(self):
        """HTML."""
        return fields(self.pairs)


class Table:
    """Rows under a head; ``numbers`` are columns that stand to the right."""

    def __init__(self, head, rows, numbers=()):
        self.head, self.rows, self.numbers = head, list(rows), numbers

    def as_text(self):
        """Plain text; rows that are too long for a line are lists of their cells."""
        if not self.rows:
            return ""
        head, *rows = (tuple(map(clean, row)) for row in (self.head, *self.rows))
        widths = _fitted(list(zip(head, *rows, strict=True)))
        if widths is None:
            return "\n".join(_record(head, row) for row in rows)
        rule = "  ".join("-" * width for width in widths)
        top, *lines = (self._text_row(row, widths) for row in (head, *rows))
        return "\n".join([top, rule, *lines])

    def _text_row(self, row, widths):
        cells = [
            wrap(cell, n, break_on_hyphens=False) for cell, n in zip(row, widths, strict=True)
        ]
        lines = []
        for parts in zip_longest(*cells, fillvalue=""):
            padded = [
                part.rjust(width) if column in self.numbers else part.ljust(width)
                for column, (part, width) in enumerate(zip(parts, widths, strict=True))
            ]
            lines.append("  ".join(padded).rstrip())
        return "\n".join(lines)

    def as_markdown(self):
        """Markdown."""
        if not self.rows:
            return ""
        rule = ["---:" if k in self.numbers else "---" for k in range(len(self.head))]
        head, *rows = (" | ".join(map(marked, row)) for row in (self.head, *self.rows))
        return "\n".join(f"| {line} |" for line in [head, " | ".join(rule), *rows])

    def as_html(self):
        """HTML."""
        return table(self.head, self.rows, numbers=self.numbers)


def _lines(text, indent="", first=""):
    lines = wrap(
        clean(text),
        WIDTH,
        initial_indent=first,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )
    return "\n".join(lines)


def _fitted(columns):
    """Widths at which a row fits on a line, by wrapping its cells; None if they get too narrow."""
    widths = [max(map(len, column)) for column in columns]
    least = []
    for column in columns:
        word = max((len(word) for cell in column for word in cell.split()), default=0)
        least.append(max(_NARROW, min(word, _LONG)))
    room = WIDTH - 2 * (len(widths) - 1)
    while sum(widths) > room:
        spare = [width - low for width, low in zip(widths, least, strict=True)]
        if max(spare) <= 0:
            return None
        widths[max(range(len(widths)), key=lambda k: (spare[k] > 0, widths[k]))] -= 1
    return widths


def _record(head, row):
    cells = [f"{name}: {cell}" for name, cell in zip(head[1:], row[1:], strict=True) if cell]
    first = _lines(row[0] or "-", "  ", "* ")
    return "\n".join([first, *(_lines(cell, "      ", "    ") for cell in cells)])


_SPECIAL = re.compile(r"([\\`*_{}\[\]#|~$])")
_LIST = re.compile(r"^(\d+)([.)])|^([-+=])")


def marked(text):
    """Clean text as Markdown, in which no character is markup."""
    text = _SPECIAL.sub(r"\\\1", clean(text))
    text = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return _LIST.sub(lambda m: f"{m[1]}\\{m[2]}" if m[1] else f"\\{m[3]}", text)
