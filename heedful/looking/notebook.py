"""Notebooks (Jupyter): what is shown of an object, as a table that needs no script, or as a whole page in a frame."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from heedful.looking.page import Section, page

HIGH = 480  # pixels of a frame before its page says how high it is
CELL = "padding:2px 14px 2px 0;text-align:left;vertical-align:top;font-variant-numeric:tabular-nums"
BAR = "background:linear-gradient(90deg,#3497a9 {0:.0f}%,transparent {0:.0f}%) 0 100%/100% 3px no-repeat"
Row = tuple[str, str] | tuple[str, str, float]  # a name and what is said of it, and perhaps its share of a whole


def table(title: str, rows: Sequence[Row]) -> str:
    """A title over rows of names and values; a share is drawn as a line below its value."""
    body = "".join(f'<tr><td style="{CELL};opacity:.7">{escape(row[0])}</td>{_value(row)}</tr>' for row in rows)
    return f'<div><b>{escape(title)}</b><table style="border:0;margin:2px 0">{body}</table></div>'


def _value(row: Row) -> str:
    style = f"{CELL};{BAR.format(100 * row[2])};min-width:120px" if len(row) == 3 else CELL
    return f'<td style="{style}">{escape(row[1])}</td>'


def frame(title: str, sections: Sequence[Section]) -> str:
    """A page in a frame of its own, whose styles and script touch nothing else; it is as high as its page."""
    style = f"width:100%;height:{HIGH}px;border:0;color-scheme:normal"
    return f'<iframe title="{escape(title)}" style="{style}" srcdoc="{escape(page(title, sections))}"></iframe>'
