"""Pictures of attention maps: one head, or every head of every layer in one grid.

matplotlib is imported when something is drawn: it was a sixth of what every verb waited for that loads torch.
"""

from __future__ import annotations

import functools
import io
import math
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from torch import Tensor

from heedful.data.formats.pharaoh import Link
from heedful.errors import Refusal
from heedful.looking import page
from heedful.looking.maps import Map, visible, write_json
from heedful.safe import outfile

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.colors import Colormap
    from matplotlib.figure import Figure
    from matplotlib.image import AxesImage

INK, QUIET, LINE = "#1c2430", "#5d6878", "#c9d0d8"
MARK = "#f2711c"  # seen on every shade of the ramp
LONGEST = 12  # signs of a word that are written on an axis
MOST = 40  # alignments in one picture
STYLE = {
    "font.sans-serif": ["DejaVu Sans"],  # comes with matplotlib, so that pictures are the same everywhere
    "svg.fonttype": "none",  # text stays text: searchable, and drawn with the reader's own fonts
    "svg.hashsalt": "heedful",
    "savefig.dpi": 160,
    "text.color": INK,
    "axes.edgecolor": LINE,
    "axes.linewidth": 0.6,
    "xtick.color": LINE,
    "ytick.color": LINE,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
}


@functools.cache
def ramp() -> Colormap:
    """Mako, from light to dark: even steps of lightness, told apart by every kind of colour vision."""
    from matplotlib.colors import LinearSegmentedColormap

    return LinearSegmentedColormap.from_list("heed", ["#f4faf7", "#60ceac", "#3497a9", "#395d9c", "#382a54"])


@dataclass(frozen=True)
class Scale:
    """How large things are drawn, in inches; the font in points."""

    cell: float
    least: float
    most: float
    font: float

    def side(self, words: int) -> float:
        """The length of an axis with so many words."""
        return min(max(self.cell * words, self.least), self.most)

    def every(self, words: int) -> int:
        """Which words of an axis are written: all (1), every second (2), ..."""
        return math.ceil(words * self.font * 1.2 / 72 / self.side(words))

    def length(self, words: Sequence[str]) -> float:
        """The room that the longest of the words takes."""
        return max(len(_short(word)) for word in words) * self.font * 0.6 / 72 + 0.06


SMALL = Scale(cell=0.105, least=1.3, most=2.8, font=6.0)
LARGE = Scale(cell=0.24, least=2.4, most=9.0, font=9.0)


@dataclass(frozen=True)
class Band:
    """One map's heads side by side, under the map's name."""

    map: Map
    heads: tuple[int, ...]
    scale: Scale

    @property
    def gap(self) -> float:
        """Inches between two heads."""
        return 2.6 * self.scale.font / 72

    @property
    def left(self) -> float:
        """Inches that the rows' words take."""
        return self.scale.length(self.map.rows) + 0.1

    @property
    def above(self) -> float:
        """Inches that the name and the columns' words take."""
        return self.scale.length(self.map.columns) + 3.6 * self.scale.font / 72

    @property
    def step(self) -> float:
        """Inches from one head to the next."""
        return self.scale.side(len(self.map.columns)) + self.gap

    @property
    def width(self) -> float:
        """Inches across, with room for the name."""
        name = len(self.map.title) * (self.scale.font + 3) * 0.7 / 72
        return self.left + max(len(self.heads) * self.step + 0.6, name)

    @property
    def height(self) -> float:
        """Inches from top to foot."""
        return self.above + self.scale.side(len(self.map.rows)) + 4.5 * self.scale.font / 72

    @property
    def span(self) -> tuple[float, float]:
        """The weights that the colours go from and to."""
        return self.map.span

    def draw(self, figure: Figure, left: float, top: float) -> None:
        """Draws the heads with their axes beginning at `left`, `top` inches above the figure's foot."""
        font, w, h = self.scale.font, self.scale.side(len(self.map.columns)), self.scale.side(len(self.map.rows))
        bottom = top - self.above - h
        for i, head in enumerate(self.heads):
            axes = _axes(figure, left + i * self.step, bottom, w, h)
            image = _heat(axes, self.map.weights[head], self.span)
            _words(axes, self.map, self.scale, rows=i == 0)
            axes.set_xlabel(self.mark(axes, head), fontsize=font + 1, color=QUIET, labelpad=font / 2)
        x, y = left / figure.get_figwidth(), (top - 0.8 * font / 72) / figure.get_figheight()
        figure.text(x, y, self.map.title, fontsize=font + 3, fontweight="bold", va="top", parse_math=False)
        bar = _axes(figure, left + len(self.heads) * self.step - self.gap / 2, bottom, 0.012 * font, h)
        figure.colorbar(image, cax=bar).ax.tick_params(labelsize=font, length=2, width=0.6)

    def mark(self, axes: Axes, head: int) -> str:
        """Draws over one head's picture what is known of it, and says what stands below."""
        return self.map.named(head)


@dataclass(frozen=True)
class Linked(Band):
    """An alignment: a map of words with a dot on every link that was found, and a square on every one given."""

    links: tuple[Link, ...]
    gold: tuple[Link, ...]

    def mark(self, axes: Axes, head: int) -> str:
        """Dots and squares, and what they mean."""
        w, h = self.scale.side(len(self.map.columns)), self.scale.side(len(self.map.rows))
        cell = 72 * min(w / len(self.map.columns), h / len(self.map.rows))  # points
        squares, dots = (self.gold, "s", 0.86, "none", MARK), (self.links, "o", 0.42, MARK, "white")
        for links, form, size, fill, edge in (squares, dots):
            source, target = [link[0] for link in links], [link[1] for link in links]
            place: dict[str, Any] = {"s": (size * cell) ** 2, "marker": form, "linewidths": min(1.2, cell / 12)}
            axes.scatter(source, target, **place, facecolors=fill, edgecolors=edge)
        return "●  linked" + "     □  given" * bool(self.gold)


@dataclass(frozen=True)
class Told(Band):
    """One picture of several that are compared, with what it shows below it."""

    told: str
    over: tuple[float, float]  # weights of all of them

    @property
    def span(self) -> tuple[float, float]:
        return self.over

    def mark(self, axes: Axes, head: int) -> str:
        """Nothing over it, and what it shows."""
        return self.told


def draw_heads(maps: Sequence[Map], what: str, path: str | Path) -> None:
    """Draws maps of one head each below each other as .png or .svg, in the same colours, with what each shows below."""
    spans = [map.span for map in maps]
    over = min(span[0] for span in spans), max(span[1] for span in spans)
    _draw([[Told(map, (0,), LARGE, what, over) for map in maps]], path)


def alignment(map: Map, links: Iterable[Link], path: str | Path, gold: Iterable[Link] = ()) -> None:
    """Draws the mean of a map's heads as .png or .svg: source words along the columns, target words along the rows."""
    mean = replace(map, weights=map.weights.mean(0, keepdim=True))
    alignments([(mean, links, gold)], path)


def alignments(examples: Sequence[tuple[Map, Iterable[Link], Iterable[Link]]], path: str | Path) -> None:
    """Draws alignments, each a map of one head, what was linked and what was given, below each other: .png or .svg."""
    if len(examples) > MOST:
        raise Refusal(f"{path}: {len(examples)} alignments are too many for a picture; choose {MOST}, or write .html")
    _draw([[Linked(map, (0,), LARGE, tuple(links), tuple(gold)) for map, links, gold in examples]], path)


def heatmap(map: Map, head: int, path: str | Path) -> None:
    """Draws one head of a map as .png or .svg."""
    if not 0 <= head < map.heads:
        raise Refusal(f"{map.path} has no head {head}; choose one of 0 to {map.heads - 1}")
    _draw([[Band(map, (head,), LARGE)]], path)


def grid(maps: Sequence[Map], path: str | Path) -> None:
    """Draws all heads of all maps as .png or .svg: a row of pictures for a map, maps below and beside each other."""
    _draw(_shelves([Band(m, tuple(range(m.heads)), SMALL) for m in maps]), path)


def check_path(path: str | Path, endings: Iterable[str] = ()) -> None:
    """Refuses a path whose ending is none of those that can be written, or at which no file can be made."""
    ending, endings = Path(path).suffix.lower(), tuple(endings or WRITERS)
    if ending not in endings:
        raise Refusal(f"{path}: the ending {ending or '(none)'} is not known; use one of {', '.join(endings)}")
    outfile.check(path)


def write(maps: Sequence[Map], path: str | Path, name: str = "", before: Sequence[page.Section] = ()) -> None:
    """Writes the maps as a picture, as exact numbers or as a page to explore; the ending of `path` says which.

    A page is headed by `name`, what was asked and answered, and opens at the last cross-attention where there is one;
    sections that come `before` the maps stand on a page alone.
    """
    check_path(path)
    if not maps:
        raise Refusal(f"{path}: there is no map to write; look at a model that attends")
    ending = Path(path).suffix.lower()
    if ending == ".html":
        _explore(maps, path, name, before)
    else:
        WRITERS[ending](maps, path)


def _explore(maps: Sequence[Map], path: str | Path, name: str = "", before: Sequence[page.Section] = ()) -> None:
    name = name or " ".join(visible(word) for word in maps[0].columns)
    example = page.Example(name, tuple(maps))
    page.write(path, "Where the model looks", [*before, page.Attention(name, (example,))])


WRITERS: dict[str, Callable[[Sequence[Map], str | Path], None]] = {
    ".png": grid,
    ".svg": grid,
    ".json": write_json,
    ".html": _explore,
}


def _shelves(bands: Sequence[Band]) -> list[list[Band]]:
    """Bands below each other, in as many shelves side by side as make the whole about as wide as tall."""
    height = sum(band.height for band in bands)
    strip = height / max(band.width for band in bands)
    count = int((1 + (1 + 4 * strip) ** 0.5) / 2)  # two from twice as tall as wide on, three from six times
    shelves: list[list[Band]] = [[]]
    for band in bands:
        full = sum(one.height for one in shelves[-1]) + band.height / 2 > height / count
        if full and shelves[-1] and len(shelves) < count:
            shelves.append([])
        shelves[-1].append(band)
    return shelves


def _draw(shelves: Sequence[Sequence[Band]], path: str | Path) -> None:
    from matplotlib.figure import Figure

    lefts = [max(band.left for band in bands) for bands in shelves]
    widths = [max(left - b.left + b.width for b in bands) for left, bands in zip(lefts, shelves, strict=True)]
    height, across = max(sum(band.height for band in bands) for bands in shelves), 0.0
    with style():
        figure = Figure(figsize=(sum(widths), height))
        for bands, left, width in zip(shelves, lefts, widths, strict=True):
            drawn = 0.0
            for band in bands:
                band.draw(figure, across + left, height - drawn)
                drawn += band.height
            across += width
        save(figure, path)


def save(figure: Figure, path: str | Path) -> None:
    """Writes a figure as .png or .svg, the same bytes at any time."""
    form, drawn = Path(path).suffix.lower()[1:], io.BytesIO()
    nothing = {"Software": None} if form == "png" else {"Date": None, "Creator": None}
    figure.savefig(drawn, format=form, bbox_inches="tight", pad_inches=0.2, metadata=nothing)
    outfile.write(path, drawn.getvalue())


@contextmanager
def style() -> Iterator[None]:
    """Our own style, whatever the reader's; a font without some sign draws a box and says nothing."""
    import matplotlib.style

    with matplotlib.style.context(["default", STYLE]), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from")
        warnings.filterwarnings("ignore", message="Matplotlib currently does not support")
        yield


def _axes(figure: Figure, left: float, bottom: float, width: float, height: float) -> Axes:
    w, h = figure.get_figwidth(), figure.get_figheight()
    return figure.add_axes((left / w, bottom / h, width / w, height / h))


def _heat(axes: Axes, weights: Tensor, span: tuple[float, float]) -> AxesImage:
    return axes.imshow(weights.detach().numpy(), cmap=ramp(), vmin=span[0], vmax=span[1], aspect="auto")  # T S


def _words(axes: Axes, map: Map, scale: Scale, rows: bool) -> None:
    """Writes the words as plain text; a tick for each would take longer than all the rest."""
    axes.set(xticks=[], yticks=[])
    above, beside = 1 + 0.03 / scale.side(len(map.rows)), -0.03 / scale.side(len(map.columns))
    for at, word in _some(map.columns, scale):
        place: dict[str, Any] = {"transform": axes.get_xaxis_transform(), "ha": "center", "va": "bottom"}
        axes.text(at, above, word, **place, rotation=90 * (len(word) > 1), fontsize=scale.font, parse_math=False)
    for at, word in _some(map.rows, scale) if rows else ():
        place = {"transform": axes.get_yaxis_transform(), "ha": "right", "va": "center_baseline"}
        axes.text(beside, at, word, **place, fontsize=scale.font, parse_math=False)


def _some(words: Sequence[str], scale: Scale) -> Iterator[tuple[int, str]]:
    every = scale.every(len(words))
    return ((at, _short(words[at])) for at in range(0, len(words), every))


def _short(word: str) -> str:
    word = visible(word)
    return word if len(word) <= LONGEST else word[: LONGEST - 1] + "…"
