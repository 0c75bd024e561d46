"""A ledger as people see it: text that can neither steer a terminal nor turn a line around."""

import html

from skdp._views import clean
from skdp.privacy._ledger_record import LedgerRecord

__all__ = ["SHOWN", "as_html", "as_text"]

SHOWN = 20  # charges in a view


def as_text(title: str, records: list[LedgerRecord], n_earlier: int, balance: str) -> str:
    """Title, table of charges and balance, line by line.

    Parameters
    ----------
    title : str

    records : list of LedgerRecord
        The latest charges.

    n_earlier : int
        Number of charges before them.

    balance : str

    Returns
    -------
    str
    """
    rows = _rows(records, n_earlier)
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ("  ".join(map(str.ljust, row, widths)).rstrip() for row in rows)
    return "\n".join([clean(title), *lines, clean(balance)])


def as_html(title: str, records: list[LedgerRecord], n_earlier: int, balance: str) -> str:
    """As a table for notebooks; arguments as for `as_text`."""
    head, *rows = _rows(records, n_earlier)

    def line(row: tuple[str, ...], tag: str) -> str:
        return "".join(f"<{tag}>{html.escape(cell)}</{tag}>" for cell in row)

    body = "".join(f"<tr>{line(row, 'td')}</tr>" for row in rows)
    return (
        f"<table><caption>{html.escape(clean(title))}</caption>"
        f"<thead><tr>{line(head, 'th')}</tr></thead><tbody>{body}</tbody></table>"
        f"<p>{html.escape(clean(balance))}</p>"
    )


def _rows(records: list[LedgerRecord], n_earlier: int) -> list[tuple[str, ...]]:
    team = ("team",) if any(r.team for r in records) else ()
    rows = [("#", "UTC", *team, "label", "guarantee", "pid")]
    if n_earlier > 0:
        rows.append(("...", "", *("" for _ in team), f"{n_earlier} earlier", "", ""))
    for r in records:
        time = f"{r.time:%Y-%m-%d %H:%M:%S}"
        step = "" if r.stream is None else "(replaced) " if r.is_replaced else "(so far) "
        cells = (str(r.id), time, *(r.team for _ in team), r.label, f"{step}{r.guarantee}")
        rows.append((*map(clean, cells), str(r.pid)))
    return rows
