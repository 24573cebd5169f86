"""One self-contained HTML page of text, figures, curves, samples, attention and alignments; it loads nothing."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from heedful.looking.maps import Map, visible
from heedful.safe import outfile

if TYPE_CHECKING:
    from heedful.looking import alignment


class Section(Protocol):
    """A titled part of the page."""

    @property
    def title(self) -> str:
        """The title of the section."""
        ...

    def html(self) -> str:
        """The text under the title."""
        ...


@dataclass(frozen=True)
class Text:
    """Paragraphs."""

    title: str
    paragraphs: tuple[str, ...]

    def html(self) -> str:
        """A paragraph each."""
        return "".join(f"<p>{escape(paragraph)}</p>" for paragraph in self.paragraphs)


@dataclass(frozen=True)
class Code:
    """Lines as they stand in a file."""

    title: str
    text: str

    def html(self) -> str:
        """As it stands, blanks and all."""
        return f'<pre tabindex="0">{escape(self.text)}</pre>'


@dataclass(frozen=True)
class Figures:
    """Numbers to be read at a glance: name, value, note."""

    title: str
    rows: tuple[tuple[str, str, str], ...]

    def html(self) -> str:
        """A card each."""
        return f'<dl class="figures">{"".join(self._card(*row) for row in self.rows)}</dl>'

    def _card(self, name: str, value: str, note: str) -> str:
        return f"<div><dt>{escape(name)}</dt><dd><b>{escape(value)}</b> <span>{escape(note)}</span></dd></div>"


@dataclass(frozen=True)
class Curve:
    """A line over the steps of a run; curves of one label share a chart."""

    name: str
    points: tuple[tuple[float, float], ...]
    label: str
    log: bool = False
    along: str = "step"

    def drawn(self) -> list[tuple[float, float]]:
        """The points that can be drawn, to six digits."""
        return [(x, float(f"{y:.6g}")) for x, y in self.points if math.isfinite(x) and math.isfinite(y)]


@dataclass(frozen=True)
class Curves:
    """Line charts that answer to the pointer."""

    title: str
    curves: tuple[Curve, ...]
    note: str = "Each line is one number as it changes; point at a chart to read its values."

    def html(self) -> str:
        """The note, and a chart for each label."""
        labels = dict.fromkeys(curve.label for curve in self.curves)
        return f'{paragraph(self.note)}<div class="charts">{"".join(self._chart(label) for label in labels)}</div>'

    def _chart(self, label: str) -> str:
        curves = [curve for curve in self.curves if curve.label == label]
        said = {"label": label, "along": curves[0].along, "log": any(one.log for one in curves)}
        return island("chart", said | {"curves": [{"name": one.name, "points": one.drawn()} for one in curves]})


@dataclass(frozen=True)
class Samples:
    """A table of inputs and answers; `right` says which rows are right, where that is known."""

    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    right: tuple[bool, ...] | None = None
    note: str = "Each row is one sample: what the model was given, what is right where that is known, and its answer."

    def __post_init__(self) -> None:
        if any(len(row) != len(self.header) for row in self.rows):
            raise ValueError(f"{self.title}: every row needs {len(self.header)} cells, one for each name in the header")
        if self.right is not None and len(self.right) != len(self.rows):
            raise ValueError(f"{self.title}: {len(self.rows)} rows but {len(self.right)} marks; give one mark a row")

    def html(self) -> str:
        """The note, and a table."""
        marks = self.right or (None,) * len(self.rows)
        head = "".join(f'<th scope="col">{escape(name)}</th>' for name in self.header)
        body = "".join(self._row(row, mark) for row, mark in zip(self.rows, marks, strict=True))
        first = '<th scope="col" class="mark"><span class="aside">Right or wrong</span></th>' if self.right else ""
        table = f"<table><thead><tr>{first}{head}</tr></thead><tbody>{body}</tbody></table>"
        return f'{paragraph(self.note)}<div class="samples">{table}</div>'

    def _row(self, row: tuple[str, ...], right: bool | None) -> str:
        named = zip(self.header, row, strict=True)
        cells = "".join(f'<td data-name="{escape(name)}"><bdi>{escape(cell)}</bdi></td>' for name, cell in named)
        if right is None:
            return f"<tr>{cells}</tr>"
        kind, sign = ("right", "✓") if right else ("wrong", "✗")
        return f'<tr class="{kind}"><td class="mark" aria-label="{kind}">{sign}</td>{cells}</tr>'


@dataclass(frozen=True)
class Example:
    """One input, and where every attention looked on it."""

    name: str
    maps: tuple[Map, ...]
    words: alignment.Alignment | None = None  # which belong together, where the input was translated
    sections: tuple[Section, ...] = ()  # what else there is to see of it, such as weights over an image

    def _repr_html_(self) -> str:
        from heedful.looking.drawn import draw

        return draw(self)._repr_html_()

    def __post_init__(self) -> None:
        if not self.maps:
            raise ValueError(f"example {self.name}: there is no map to show; look at a model that attends")


@dataclass(frozen=True)
class Attention:
    """The viewer: every layer and head of every example, one of them large, and word by word."""

    title: str
    examples: tuple[Example, ...]
    note: str = "Each row is a token that looks, each column what it looks at; the heads of a layer share one scale."
    start: str = ""  # shown first, "layer=decoder.blocks.1.cross&head=2"; else the last cross-attention there is
    together: bool = False  # all layers by one scale of colours, for they are compared

    def __post_init__(self) -> None:
        if not self.examples:
            raise ValueError(f"{self.title}: there is no example to show; give at least one")

    def html(self) -> str:
        """The note, and the data that the page's script draws."""
        examples = [{"name": example.name, "maps": [_compact(m) for m in example.maps]} for example in self.examples]
        cross = [map.path for map in self.examples[0].maps if map.path.endswith("cross")]
        start = self.start or (f"layer={cross[-1]}&head=mean" if cross else "")
        told = {"examples": examples, "start": start, "together": self.together}
        return paragraph(self.note) + island("viewer", told)


@dataclass(frozen=True)
class Alignment:
    """Source words above, target words below, lines between words that belong together; words answer to the pointer."""

    title: str
    examples: tuple[alignment.Alignment, ...]
    note: str = "A line joins two words that belong together; it is the stronger the more one looks at the other."

    def __post_init__(self) -> None:
        if not self.examples:
            raise ValueError(f"{self.title}: there is no example to show; give at least one")

    def html(self) -> str:
        """The note, and the data that the page's script draws."""
        return paragraph(self.note) + island("aligned", {"examples": [self._example(one) for one in self.examples]})

    def _example(self, one: alignment.Alignment) -> dict[str, Any]:
        words = {"source": [*map(visible, one.source)], "target": [*map(visible, one.target)]}
        weights = (one.matrix.detach() * 10_000).round().long().tolist()  # T S, in ten-thousandths
        gold = {"sure": sorted(one.gold.sure), "possible": sorted(one.gold.possible)} if one.gold else {}
        return {**words, "weights": weights, "links": sorted(set(one.links)), **gold}


def page(title: str, sections: Sequence[Section]) -> str:
    """The whole page as HTML."""
    template = files("heedful.looking").joinpath("page.html").read_text(encoding="utf-8")
    body = (f"<section><h2>{escape(one.title)}</h2>{one.html()}</section>\n" for one in sections)
    parts = {"{{title}}": escape(title), "{{sections}}": "".join(body)}
    whole = re.sub("|".join(map(re.escape, parts)), lambda found: parts[found[0]], template)
    return whole.encode("utf-8", "replace").decode("utf-8")  # half a surrogate pair becomes a question mark


def write(path: str | Path, title: str, sections: Sequence[Section]) -> None:
    """Writes the page in one step: a reader finds the old page or the new one, never a half."""
    outfile.write(path, page(title, sections))


def paragraph(note: str) -> str:
    """How a figure is read, over it; nothing where nothing is said."""
    return f"<p>{escape(note)}</p>" if note else ""


def island(kind: str, value: dict[str, Any]) -> str:
    """Data for the page's script, which draws it in this place."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for sign in "<>&":  # so that no word of a user's can end the script or begin a comment
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return f'<div class="{kind}"><script type="application/json">{text}</script></div>'


def _compact(map: Map) -> dict[str, Any]:
    """Weights in ten-thousandths, one flat list a head; words as they can be seen."""
    weights = (map.weights.detach() * 10_000).round().long().flatten(1)  # H TS
    words = {"rows": [visible(word) for word in map.rows], "columns": [visible(word) for word in map.columns]}
    return {"path": map.path, **map.said, **words, "weights": weights.tolist()}
