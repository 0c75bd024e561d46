"""A privacy report as text, as Markdown and as a page of HTML."""

import re
from itertools import zip_longest
from textwrap import wrap

from skdp._views import STYLE, card, clean, escaped, fields, note, table
from skdp.inspection._report_blocks import Bullets, Fields, Heading, Table, Text
from skdp.inspection._report_first import title_of
from skdp.inspection._report_page import page_of

__all__ = ["as_fragment", "as_html", "as_markdown", "as_text"]

_WIDTH = 80  # of lines of text
_NARROW, _LONG = 14, 30  # of columns at least, without and with a long word


def as_text(data):
    """Render as plain text, in lines of at most 80 characters where words allow it.

    Parameters
    ----------
    data : dict
        As the schema of reports has it.

    Returns
    -------
    str
    """
    title = clean(title_of(data))
    parts = [f"{title}\n{'=' * min(len(title), _WIDTH)}"]
    return "\n\n".join([*parts, *_rendered(page_of(data), _TEXT)]) + "\n"


def as_markdown(data):
    """Render as Markdown with tables, as GitHub and notebooks show them.

    Parameters
    ----------
    data : dict
        As the schema of reports has it.

    Returns
    -------
    str
    """
    parts = [f"# {_marked(title_of(data))}", *_rendered(page_of(data), _MARKDOWN)]
    return "\n\n".join(parts) + "\n"


def as_html(data):
    """Render as a page that stands alone: one file, without scripts, to read, mail and print.

    Parameters
    ----------
    data : dict
        As the schema of reports has it.

    Returns
    -------
    str
    """
    title = escaped(title_of(data))
    body = "\n".join(_folded(page_of(data)))
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{title}</title>\n<style>{STYLE}{_PAGE}</style>\n</head>\n<body>\n"
        f'<main class="skdp-view skdp-report">\n<h1>{title}</h1>\n{body}\n</main>\n'
        "</body>\n</html>\n"
    )


def as_fragment(data):
    """Render as HTML for a cell of a notebook.

    Parameters
    ----------
    data : dict
        As the schema of reports has it.

    Returns
    -------
    str
    """
    style = f"<style>{_REPORT}</style>"
    return card("", style, f"<h2>{escaped(title_of(data))}</h2>", *_folded(page_of(data)))


def _rendered(blocks, ways):
    return [text for text in (ways[type(block)](block) for block in blocks) if text]


# Text


def _lines(text, indent="", first=None):
    begin = indent if first is None else first
    return wrap(
        clean(text),
        _WIDTH,
        initial_indent=begin,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )


def _text_heading(block):
    title = clean(block.text)
    return f"{title}\n{('=' if block.parts else '-') * len(title)}"


def _text_paragraph(block):
    return "\n".join(_lines(("! " if block.warns else "") + block.text))


def _text_bullets(block):
    return "\n".join("\n".join(_lines(item, "  ", "- ")) for item in block.items)


def _text_fields(block):
    pairs = [(clean(name), value) for name, value in block.pairs if clean(_shown(value))]
    margin = " " * (max((len(name) for name, _ in pairs), default=0) + 2)
    return "\n".join(
        "\n".join(_lines(value, margin, name.ljust(len(margin)))) for name, value in pairs
    )


def _text_table(block):
    rows = [tuple(map(clean, row)) for row in (block.head, *block.rows)]
    if len(rows) == 1:
        return ""
    widths = _fitted(list(zip(*rows, strict=True)))
    if widths is None:
        return "\n".join(_text_record(rows[0], row) for row in rows[1:])
    rule = "  ".join("-" * width for width in widths)
    head, *body = (_text_row(row, widths, block.numbers) for row in rows)
    return "\n".join([head, rule, *body])


def _fitted(columns):
    """Widths at which a row fits on a line, by wrapping its cells; None if they get too narrow."""
    widths = [max(map(len, column)) for column in columns]
    least = []
    for column in columns:
        word = max((len(word) for cell in column for word in cell.split()), default=0)
        least.append(max(_NARROW, min(word, _LONG)))
    room = _WIDTH - 2 * (len(widths) - 1)
    while sum(widths) > room:
        spare = [width - low for width, low in zip(widths, least, strict=True)]
        if max(spare) <= 0:
            return None
        widths[max(range(len(widths)), key=lambda k: (spare[k] > 0, widths[k]))] -= 1
    return widths


def _text_row(row, widths, numbers):
    pairs = zip(row, widths, strict=True)
    cells = [wrap(cell, width, break_on_hyphens=False) for cell, width in pairs]
    lines = []
    for parts in zip_longest(*cells, fillvalue=""):
        padded = [
            part.rjust(width) if column in numbers else part.ljust(width)
            for column, (part, width) in enumerate(zip(parts, widths, strict=True))
        ]
        lines.append("  ".join(padded).rstrip())
    return "\n".join(lines)


def _text_record(head, row):
    """A row that is too long for a line: a list of its cells."""
    lines = _lines(row[0] or "-", "  ", "* ")
    for name, cell in zip(head[1:], row[1:], strict=True):
        if cell:
            lines += _lines(f"{name}: {cell}", "      ", "    ")
    return "\n".join(lines)


# Markdown

_SPECIAL = re.compile(r"([\\`*_{}\[\]#|~$])")
_LIST = re.compile(r"^(\d+)([.)])|^([-+=])")


def _marked(text):
    """Clean text in which no character is markup."""
    text = _SPECIAL.sub(r"\\\1", clean(text))
    text = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return _LIST.sub(lambda m: f"{m[1]}\\{m[2]}" if m[1] else f"\\{m[3]}", text)


def _marked_paragraph(block):
    text = _marked(block.text)
    if block.warns:
        return f"> **{text}**"
    return f"**{text}**" if block.lead else text


def _marked_bullets(block):
    return "\n".join(f"- {_marked(item)}" for item in block.items)


def _marked_fields(block):
    rows = [(name, value) for name, value in block.pairs if clean(_shown(value))]
    return _marked_rows(("", ""), rows, ()) if rows else ""


def _marked_table(block):
    return _marked_rows(block.head, block.rows, block.numbers) if block.rows else ""


def _marked_rows(head, rows, numbers):
    rule = ["---:" if column in numbers else "---" for column in range(len(head))]
    lines = [" | ".join(_marked(cell) for cell in row) for row in rows]
    top = [" | ".join(map(_marked, head)), " | ".join(rule)]
    return "\n".join(f"| {line} |" for line in [*top, *lines])


# HTML

# The report in a notebook, and alone.
_REPORT = """
.skdp-view.skdp-view h2{font-size:1.15em;font-weight:600;margin:1.5em 0 .3em;line-height:1.25}
.skdp-view.skdp-view ul{margin:.3em 0;padding-left:1.3em}
.skdp-view.skdp-view h3{display:inline;font-size:1em;font-weight:600}
.skdp-view.skdp-view details{margin:.3em 0}
.skdp-view.skdp-view .skdp-unprinted{display:none}
@media print{
.skdp-view details::details-content{content-visibility:visible;block-size:auto}
@supports not selector(::details-content){.skdp-view.skdp-view .skdp-unprinted{display:block}}
}
.skdp-view.skdp-view .skdp-lead{font-size:1.08em;border-left:4px solid #36c;padding:.4em .9em;
background:var(--faint);margin:.6em 0}
"""
_PAGE = f"""{_REPORT}
:root{{color-scheme:light dark}}
body{{margin:0;padding:1.2rem;font-family:system-ui,sans-serif;background:Canvas;color:CanvasText}}
.skdp-report{{margin:0 auto;font-size:1rem}}
.skdp-report h1{{font-size:clamp(1.1rem,5.2vw,1.6rem);line-height:1.2;margin:.2em 0 .6em}}
.skdp-report>p,.skdp-report ul{{max-width:44rem}}
@media print{{
@page{{size:A4;margin:16mm}}
:root{{color-scheme:light}}
body{{padding:0;font-size:10pt}}
.skdp-report{{max-width:none;font-size:10pt}}
h2{{break-before:page}}
h2,summary{{break-after:avoid}}
tr,.skdp-lead{{break-inside:avoid}}
}}
"""


# Browsers that print no closed section say so on the paper.
_UNPRINTED = "This browser prints no section that is closed: open those that you need."


def _folded(blocks):
    """The first page as it is, and each section below it closed until somebody opens it."""
    parts, is_open = [], False
    for block in blocks:
        if is_open and isinstance(block, Heading):
            parts.append("</details>")
        parts.append(_HTML[type(block)](block))
        is_open = is_open or (isinstance(block, Heading) and not block.parts)
    return [part for part in (*parts, "</details>" if is_open else "") if part]


def _html_heading(block):
    if block.parts:
        return f'<h2>{escaped(block.text)}</h2><p class="skdp-unprinted">{_UNPRINTED}</p>'
    return f"<details><summary><h3>{escaped(block.text)}</h3></summary>"


def _html_paragraph(block):
    if block.lead:
        return f'<p class="skdp-lead">{escaped(block.text)}</p>'
    return note(block.text, warns=block.warns)


def _html_bullets(block):
    return f"<ul>{''.join(f'<li>{escaped(item)}</li>' for item in block.items)}</ul>"


def _shown(value):
    return "" if value is None else value


_TEXT = {
    Heading: _text_heading,
    Text: _text_paragraph,
    Bullets: _text_bullets,
    Fields: _text_fields,
    Table: _text_table,
}
_MARKDOWN = {
    Heading: lambda block: f"{'##' if block.parts else '###'} {_marked(block.text)}",
    Text: _marked_paragraph,
    Bullets: _marked_bullets,
    Fields: _marked_fields,
    Table: _marked_table,
}
_HTML = {
    Heading: _html_heading,
    Text: _html_paragraph,
    Bullets: _html_bullets,
    Fields: lambda block: fields((name, _shown(value)) for name, value in block.pairs),
    Table: lambda block: table(block.head, block.rows, numbers=block.numbers),
}
