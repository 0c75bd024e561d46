"""What all views share: text that can steer nothing, tables that fit a telephone, one look.

A view is HTML without scripts. Colours are mixed from those of the page around it, so that it
can be read on a light one and on a dark one.
"""

import re
import unicodedata
from collections.abc import Iterable, Sequence
from html import escape
from pathlib import Path

_ESCAPES = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(\x07|\x1b\\)?")
_JOINERS = "\u200c\u200d"  # some scripts need them


def clean(text: object) -> str:
    """Text on one line that can neither steer a terminal nor turn the line around."""
    kept = []
    for character in _ESCAPES.sub("", str(text)):
        category = unicodedata.category(character)
        if category in ("Cc", "Zl", "Zp"):
            kept.append(" ")
        elif category not in ("Cf", "Cs") or character in _JOINERS:
            kept.append(character)
    return " ".join("".join(kept).split())


def escaped(text: object) -> str:
    """Clean text as HTML, in an element or in an attribute."""
    return escape(clean(text))


# Cells stack where the view is narrow: each with the head of its column before it. The class is
# named twice there to weigh more than what notebooks say of all tables.
STYLE = "\n" + Path(__file__).with_name("_views.css").read_text(encoding="utf-8")


def table(
    head: Sequence[object],
    rows: Iterable[Sequence[object]],
    *,
    caption: object = "",
    numbers: Sequence[int] = (),
) -> str:
    """Table of clean text; nothing without rows.

    Parameters
    ----------
    head : sequence of str

    rows : iterable of sequences
        Cells, the first of which names the row where it is narrow.

    caption : str, default=""

    numbers : sequence of int, default=()
        Columns that stand to the right.

    Returns
    -------
    str
    """
    cells = [list(row) for row in rows]
    if not cells:
        return ""
    kinds = [' class="skdp-n"' if column in numbers else "" for column in range(len(head))]
    labels = [f' data-label="{escaped(name)}"' if clean(name) else "" for name in head]
    body = ""
    for row in cells:
        columns = zip(kinds, labels, row, strict=True)
        each = (f"<td{kind}{label}>{escaped(cell)}</td>" for kind, label, cell in columns)
        body += f"<tr>{''.join(each)}</tr>"
    top = "".join(
        f'<th scope="col"{kind}>{escaped(name)}</th>'
        for kind, name in zip(kinds, head, strict=True)
    )
    title = f"<caption>{escaped(caption)}</caption>" if caption else ""
    small = ' class="skdp-small"' if _is_small(head, cells) else ""
    return f"<table{small}>{title}<thead><tr>{top}</tr></thead><tbody>{body}</tbody></table>"


def _is_small(head: Sequence[object], rows: Iterable[Sequence[object]]) -> bool:
    """Whether rows fit on a telephone as they are."""
    columns = zip(head, *rows, strict=True)
    return sum(max(len(clean(cell)) for cell in column) + 2 for column in columns) <= 34


def fields(pairs: Iterable[tuple[object, object]], *, caption: object = "") -> str:
    """Names with their values, line by line; without those that have no value."""
    lines = "".join(
        f'<tr><th scope="row">{escaped(name)}</th><td>{escaped(value)}</td></tr>'
        for name, value in pairs
        if clean(value)
    )
    title = f"<caption>{escaped(caption)}</caption>" if caption else ""
    return f'<table class="skdp-fields">{title}<tbody>{lines}</tbody></table>' if lines else ""


def note(text: object, *, warns: bool = False) -> str:
    """A paragraph, one that stands out where it warns; nothing without text."""
    if not clean(text):
        return ""
    kind = ' class="skdp-warning"' if warns else ""
    return f"<p{kind}>{escaped(text)}</p>"


def card(title: object, *parts: str) -> str:
    """One view of several parts, which are HTML already.

    Parameters
    ----------
    title : str
        Text.

    *parts : str
        Of `table`, `fields` and `note`.

    Returns
    -------
    str
    """
    head = f'<p class="skdp-title">{escaped(title)}</p>' if clean(title) else ""
    return f'<div class="skdp-view"><style>{STYLE}</style>{head}{"".join(parts)}</div>'
