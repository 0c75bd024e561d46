"""What all views share: text that can steer nothing, tables that fit a telephone, one look.

A view is HTML without scripts. Colours are mixed from those of the page around it, so that it
can be read on a light one and on a dark one.
"""

import re
import unicodedata
from collections.abc import Iterable, Sequence
from html import escape

__all__ = ["STYLE", "card", "clean", "escaped", "fields", "note", "table"]

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
# named twice to weigh more than what notebooks say of all tables.
STYLE = """
.skdp-view{--line:color-mix(in srgb,currentColor 22%,transparent);
--faint:color-mix(in srgb,currentColor 6%,transparent);
container-type:inline-size;max-width:68rem;margin:.5em 0;font-size:.94em;line-height:1.45;
overflow-wrap:anywhere;text-align:left}
.skdp-view.skdp-view .skdp-title{font-weight:600;margin:0 0 .3em}
.skdp-view.skdp-view p{margin:.3em 0}
.skdp-view.skdp-view table{border-collapse:collapse;width:auto;max-width:100%;
min-width:min(100%,26rem);margin:.4em 0 .8em;table-layout:auto;
font-size:inherit;border:0}
.skdp-view.skdp-view caption{caption-side:top;text-align:left;font-weight:600;
padding:.2em 0;color:inherit}
.skdp-view.skdp-view tr,.skdp-view.skdp-view tbody tr:nth-child(odd){background:none}
.skdp-view.skdp-view th,.skdp-view.skdp-view td{text-align:left;vertical-align:top;
padding:.25em .8em .25em 0;
border:0;border-bottom:1px solid var(--line);white-space:normal;max-width:none;
font-size:inherit;overflow-wrap:break-word}
.skdp-view.skdp-view th{font-weight:600}
.skdp-view.skdp-view thead th{border-bottom-width:2px}
.skdp-view.skdp-view tbody th{white-space:nowrap;width:1%;padding-right:1.4em}
.skdp-view.skdp-view .skdp-n{text-align:right;white-space:nowrap;padding-right:1.8em;
font-variant-numeric:tabular-nums}
.skdp-view.skdp-view .skdp-warning{border-left:4px solid #c60;padding:.2em .7em;margin:.4em 0;
background:var(--faint)}
.skdp-view.skdp-view summary{cursor:pointer}
@container (max-width:40rem){
.skdp-view.skdp-view table:not(.skdp-small) thead{position:absolute;clip-path:inset(50%);width:1px;
height:1px;overflow:hidden}
.skdp-view.skdp-view table:not(.skdp-small),
.skdp-view.skdp-view table:not(.skdp-small)>:is(tbody,caption){display:block}
.skdp-view.skdp-view table:not(.skdp-small) tr{display:block;border-bottom:1px solid var(--line);
padding:.35em 0}
.skdp-view.skdp-view table:not(.skdp-small) :is(th,td){display:block;border:0;padding:.05em 0;
text-align:left;white-space:normal;width:auto}
.skdp-view.skdp-view table:not(.skdp-small) td[data-label]{display:grid;
grid-template-columns:8.5em minmax(0,1fr);column-gap:.6em}
.skdp-view.skdp-view table:not(.skdp-small) td[data-label]::before{
content:attr(data-label);opacity:.7}
.skdp-view.skdp-view table:not(.skdp-small) td:empty{display:none}
.skdp-view.skdp-view table:not(.skdp-small) td:first-child:not(.skdp-n){
display:block;font-weight:600}
.skdp-view.skdp-view table:not(.skdp-small) td:first-child:not(.skdp-n)::before{content:none}
.skdp-view.skdp-view table.skdp-fields tr{display:grid;grid-template-columns:8.5em minmax(0,1fr);
column-gap:.6em}
}
"""


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
    lines, cells_of = [], [list(row) for row in rows]
    for row in cells_of:
        cells = []
        for column, (name, cell) in enumerate(zip(head, row, strict=True)):
            kind = ' class="skdp-n"' if column in numbers else ""
            label = f' data-label="{escaped(name)}"' if clean(name) else ""
            cells.append(f"<td{kind}{label}>{escaped(cell)}</td>")
        lines.append(f"<tr>{''.join(cells)}</tr>")
    if not lines:
        return ""
    kinds = (' class="skdp-n"' if column in numbers else "" for column in range(len(head)))
    top = "".join(
        f'<th scope="col"{kind}>{escaped(name)}</th>'
        for kind, name in zip(kinds, head, strict=True)
    )
    title = f"<caption>{escaped(caption)}</caption>" if caption else ""
    small = ' class="skdp-small"' if _is_small(head, cells_of) else ""
    body = "".join(lines)
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
