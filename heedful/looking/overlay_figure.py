"""Overlays as one figure (.png, .svg): photographs in grey under a perceptual colour map, as large as there is room."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from heedful.looking.figure_style import HEAT, INK, QUIET, save, style
from heedful.looking.overlay import Overlay, Panel, Pictures, Span, caption, grey, has_edges, is_segment

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SIDES = 3.4, 2.5, 1.9, 1.4  # inches: a picture's longer side, the largest that leaves all of them below the highest
WIDE, HIGHEST = 11.2, 40.0  # inches
GAP, TITLE, CAPTION, BELOW = 0.2, 0.3, 0.28, 0.2  # inches: beside a picture, over a part, over and under its pictures
BAR = 1.2, 0.09  # inches: of the scale beside a title
STRENGTH = 0.6  # of the colours over the photograph
Row = tuple[str, Overlay | Pictures, Sequence[Panel]]  # a title where a part begins, and some of its pictures


@dataclass(frozen=True)
class Sheet:
    """How pictures are laid out: their longer side in inches, and whether weights go over into each other."""

    side: float
    smooth: bool

    @property
    def along(self) -> int:
        """Pictures side by side."""
        return int(WIDE / (self.side + GAP))

    def rows(self, parts: Sequence[Overlay | Pictures]) -> Iterator[Row]:
        """All pictures, as many in a row as there is room for."""
        for part in parts:
            panels = part.panels()
            for at in range(0, len(panels), self.along):
                yield "" if at else part.title, part, panels[at : at + self.along]

    def size(self, panel: Panel) -> tuple[float, float]:
        """Inches across and up that a picture takes, its longer side always the same."""
        high, wide = panel[1].shape[:2]
        return self.side * wide / max(high, wide), self.side * high / max(high, wide)

    def height(self, row: Row) -> float:
        """Inches that a row takes, with its words."""
        title, _, panels = row
        return TITLE * bool(title) + CAPTION + max(self.size(panel)[1] for panel in panels) + BELOW


def draw(parts: Sequence[Overlay | Pictures], path: str | Path, smooth: bool = False) -> None:
    """Draws all parts below each other as .png or .svg."""
    with style():
        save(draw_parts(parts, smooth), path)


def draw_parts(parts: Sequence[Overlay | Pictures], smooth: bool = False) -> Figure:
    """All parts below each other, as large as leaves the whole not too high."""
    from matplotlib.figure import Figure

    sheets = [Sheet(side, smooth) for side in SIDES]
    fitting = (one for one in sheets if sum(map(one.height, one.rows(parts))) <= HIGHEST)
    sheet = next(fitting, sheets[-1])
    rows = list(sheet.rows(parts))
    height = sum(map(sheet.height, rows))
    figure, top = Figure(figsize=(sheet.along * (sheet.side + GAP), height)), height
    for row in rows:
        title, part, panels = row
        if title:
            place = 0.1 / figure.get_figwidth(), top / height
            figure.text(*place, title, fontsize=9, fontweight="bold", color=INK, va="top", parse_math=False)
        top -= sheet.height(row)
        highest = max(sheet.size(panel)[1] for panel in panels)
        if title and isinstance(part, Overlay) and one_scale(part):
            _scale(figure, top + BELOW + highest + CAPTION, part.span(part.weights[0][1]))
        for at, panel in enumerate(panels):
            _place(figure, sheet, (at * (sheet.side + GAP), top + BELOW + highest), part, panel)
    return figure


def one_scale(part: Overlay) -> bool:
    """Whether colours mean the same in all pictures of a part; segments need no scale."""
    return not part.own and bool(part.weights) and not all(is_segment(weights) for _, weights in part.weights)


def _scale(figure: Figure, bottom: float, span: Span) -> None:
    """The one scale of all pictures of a part, at the right end of its title, with its ends beside it."""
    axes = _axes(figure, figure.get_figwidth() - BAR[0] - 0.55, bottom + 0.05, *BAR)
    axes.imshow([[at / 255 for at in range(256)]], cmap=HEAT, aspect="auto")
    for side, at, value in (("right", -0.05, span[0]), ("left", 1.05, span[1])):
        axes.text(at, 0.4, f"{value:.2g}", transform=axes.transAxes, ha=side, va="center", fontsize=7, color=QUIET)


def _place(figure: Figure, sheet: Sheet, corner: tuple[float, float], part: Overlay | Pictures, panel: Panel) -> None:
    """Draws one picture below a corner, in the middle of its room, under its name and the ends of its weights."""
    (name, image, weights), (w, h), (left, top) = panel, sheet.size(panel), corner
    axes = _axes(figure, left + (sheet.side + GAP - w) / 2, top - h, w, h)
    high, wide = image.shape[:2]
    place: Any = {"extent": (0, wide, high, 0), "aspect": "auto"}
    if weights is None or not isinstance(part, Overlay):
        axes.imshow(image, **place)
    else:
        axes.imshow(grey(image), **place, cmap="gray", vmin=0, vmax=255)
        x0, y0, x1, y1 = part.frame
        low, high_end = (0.0, 1.0) if is_segment(weights) else part.span(weights)
        ends: Any = {"cmap": HEAT, "vmin": low, "vmax": high_end, "alpha": STRENGTH, "aspect": "auto"}
        within: Any = "bicubic" if sheet.smooth and not has_edges(weights) else "nearest"
        shown = weights.detach().float().cpu().numpy()
        axes.imshow(shown, **ends, extent=(x0 * wide, x1 * wide, y1 * high, y0 * high), interpolation=within)
        axes.set(xlim=(0, wide), ylim=(high, 0))
        name = caption(name, weights)
    axes.set_title(name, fontsize=7, color=QUIET, pad=3, parse_math=False)


def _axes(figure: Figure, left: float, bottom: float, width: float, height: float) -> Axes:
    w, h = figure.get_figwidth(), figure.get_figheight()
    axes = figure.add_axes((left / w, bottom / h, width / w, height / h))
    axes.set_axis_off()
    return axes
