"""A map's heads side by side as heat maps, with their words along the axes."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from torch import Tensor

from heedful.data.parallel_sample import Link
from heedful.looking.figure_style import MARK, QUIET, ramp
from heedful.looking.maps import Map, visible

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.image import AxesImage


LONGEST = 12  # signs of a word that are written on an axis


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
    over: tuple[float, float] | None = field(default=None, kw_only=True)  # weights of all that it is compared with

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
        return self.over or self.map.span

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

    def mark(self, axes: Axes, head: int) -> str:
        """Nothing over it, and what it shows."""
        return self.told


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
