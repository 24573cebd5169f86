"""Weights over the image that they are about: a picture for each head, or for each way to take them together."""

from __future__ import annotations

import base64
import io
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor

from heedful.looking.figure_style import INK, QUIET, save, style

if TYPE_CHECKING:
    from matplotlib.figure import Figure

HEAT = np.array([242, 113, 28], dtype=np.uint8)  # seen on most photographs
ALONG = 7  # pictures side by side
SIDE, STEP = 1.4, 1.6  # inches: a picture's longer side, and from one picture to the next
TITLE, CAPTION, BELOW = 0.22, 0.28, 0.2  # inches: over a part, over its pictures, and under them
Panel = tuple[str, NDArray[np.uint8], Tensor | None]  # its name, the image, and weights over it
SMALL = 96  # pixels along the side of a picture below which each pixel is shown as one


@dataclass(frozen=True, eq=False)
class Overlay:
    """An image, and weights over the patches of it, each with a name: rows x columns."""

    title: str
    image: NDArray[np.uint8]  # H W 3
    weights: tuple[tuple[str, Tensor], ...]  # not a number where nothing is told of a patch
    note: str = ""

    def html(self) -> str:
        """The image alone, then once under each of the weights."""
        note = f"<p>{escape(self.note)}</p>" if self.note else ""
        small = max(self.image.shape[:2]) < SMALL
        kind, photo = "small" * small, picture(self.image, "PNG" if small else "JPEG")
        image = f'<img alt="" class="{kind}" src="{photo}">'
        figures = f"<figure><div>{image}</div><figcaption>image</figcaption></figure>"
        for name, weights in self.weights:
            heat = f'<img alt="" class="heat{" small" * apart(weights)}" src="{picture(shade(weights))}">'
            words = escape(caption(name, weights)).replace("\n", "<br>")
            figures += f"<figure><div>{image}{heat}</div><figcaption>{words}</figcaption></figure>"
        return f'{note}<div class="overlays">{figures}</div>'

    def panels(self) -> list[Panel]:
        """The image alone, then once under each of the weights."""
        return [("image", self.image, None), *((name, self.image, weights) for name, weights in self.weights)]


@dataclass(frozen=True, eq=False)
class Pictures:
    """Images side by side, each with a few words; `along` of them in a row where they belong together."""

    title: str
    pictures: tuple[tuple[str, NDArray[np.uint8]], ...]  # H W 3
    note: str = ""
    along: int = 0  # 0: as many as there is room for

    def html(self) -> str:
        """A figure each."""
        note = f"<p>{escape(self.note)}</p>" if self.note else ""
        along = f' style="--along:{self.along}"' if self.along else ""
        return f'{note}<div class="overlays"{along}>{"".join(self._figure(*one) for one in self.pictures)}</div>'

    def panels(self) -> list[Panel]:
        """Each image."""
        return [(words, pixels, None) for words, pixels in self.pictures]

    def _figure(self, words: str, pixels: NDArray[np.uint8]) -> str:
        small = ' class="small"' if max(pixels.shape[:2]) < SMALL else ""
        image = f'<img alt=""{small} src="{picture(pixels)}">'
        return f"<figure><div>{image}</div><figcaption>{escape(words)}</figcaption></figure>"


def shade(weights: Tensor) -> NDArray[np.uint8]:
    """Weights (rows x columns) as a colour that lets the image through where they are small: rows columns 4."""
    numbers = weights.detach().float().cpu().numpy()
    low, high = float(np.nanmin(numbers)), float(np.nanmax(numbers))
    share = np.nan_to_num((numbers - low) / (high - low)) if high > low else np.zeros_like(numbers)
    made = np.empty((*numbers.shape, 4), dtype=np.uint8)
    made[..., :3], made[..., 3] = HEAT, (share * 217).astype(np.uint8)
    return made


def apart(weights: Tensor) -> bool:
    """Whether patches have edges: each is of a segment or not, or nothing is told of some."""
    return len(weights.unique()) <= 2 or bool(weights.isnan().any())


def picture(pixels: NDArray[np.uint8], form: str = "PNG") -> str:
    """Pixels (H W C) as an address that holds them."""
    stream = io.BytesIO()
    Image.fromarray(pixels).save(stream, form, quality=85)
    return f"data:image/{form.lower()};base64," + base64.b64encode(stream.getvalue()).decode("ascii")


def caption(name: str, weights: Tensor) -> str:
    """The name of weights, and below it what the colour goes from and to; of segments, which are 0 or 1, the name."""
    return name if set(weights.unique().tolist()) <= {0.0, 1.0} else f"{name}\n{span(weights)}"


def span(weights: Tensor) -> str:
    """The least and the greatest weight, in as few digits as tell them apart: 0.041 to 0.048."""
    known = weights[~weights.isnan()]
    low, high = known.min().item(), known.max().item()
    for digits in range(2, 7):
        least, greatest = f"{low:.{digits}g}", f"{high:.{digits}g}"
        if least != greatest:
            return f"{least} to {greatest}"
    return f"{low:.2g} everywhere"


def draw(parts: Sequence[Overlay | Pictures], path: str | Path) -> None:
    """Draws all parts below each other as .png or .svg."""
    with style():
        save(draw_parts(parts), path)


def draw_parts(parts: Sequence[Overlay | Pictures]) -> Figure:
    """All parts below each other, each row as high as its pictures and their words."""
    from matplotlib.figure import Figure

    rows = [(part.title if first == 0 else "", panels) for part in parts for first, panels in enumerate(_rows(part))]
    height = sum(_height(*row) for row in rows)
    figure, top = Figure(figsize=(STEP * ALONG, height)), height
    for title, panels in rows:
        figure.text(0.1 / figure.get_figwidth(), top / height, title, fontsize=8, color=INK, va="top", parse_math=False)
        bottom = top = top - _height(title, panels)
        for at, panel in enumerate(panels):
            _place(figure, at * STEP, bottom + BELOW, max(_size(image)[1] for _, image, _ in panels), panel)
    return figure


def _rows(part: Overlay | Pictures) -> list[list[Panel]]:
    panels = part.panels()
    return [panels[at : at + ALONG] for at in range(0, len(panels), ALONG)]


def _size(image: NDArray[np.uint8]) -> tuple[float, float]:
    """Inches across and up that a picture takes, its longer side always the same."""
    high, wide = image.shape[:2]
    return SIDE * wide / max(high, wide), SIDE * high / max(high, wide)


def _height(title: str, panels: Sequence[Panel]) -> float:
    return TITLE * bool(title) + CAPTION + max(_size(image)[1] for _, image, _ in panels) + BELOW


def _place(figure: Figure, left: float, bottom: float, highest: float, panel: Panel) -> None:
    """Draws one picture amid its room, under its name and the weights that the colour goes from and to."""
    (name, image, weights), (w, h) = panel, _size(panel[1])
    across, up = figure.get_figwidth(), figure.get_figheight()
    axes = figure.add_axes(((left + (STEP - w) / 2) / across, (bottom + highest - h) / up, w / across, h / up))
    axes.set_axis_off()
    place: Any = {"extent": (0, image.shape[1], image.shape[0], 0), "aspect": "auto"}
    axes.imshow(image, **place)
    if weights is not None:
        axes.imshow(shade(weights), **place, interpolation="nearest" if apart(weights) else "bilinear")
        name = caption(name, weights)
    axes.set_title(name, fontsize=7, color=QUIET, pad=3, parse_math=False)
