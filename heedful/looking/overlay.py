"""Weights over the image that they are about: a picture for each head, or for each way to take them together."""

from __future__ import annotations

import base64
import io
import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor

from heedful.looking.draw import INK, QUIET, style

HEAT = np.array([242, 113, 28], dtype=np.uint8)  # seen on most photographs
ALONG = 7  # pictures side by side
Panel = tuple[str, NDArray[np.uint8], Tensor | None]  # its name, the image, and weights over it
SMALL = 96  # pixels along the side of a picture below which each pixel is shown as one


@dataclass(frozen=True, eq=False)
class Overlay:
    """An image, and weights over the patches of it, each with a name: rows x columns."""

    title: str
    image: NDArray[np.uint8]  # H W 3
    weights: tuple[tuple[str, Tensor], ...]
    note: str = ""

    def html(self) -> str:
        """The image alone, then once under each of the weights."""
        note = f"<p>{escape(self.note)}</p>" if self.note else ""
        photo = picture(self.image, "JPEG")
        figures = f'<figure><div><img alt="" src="{photo}"></div><figcaption>image</figcaption></figure>'
        for name, weights in self.weights:
            heat = f'<img alt="" class="heat" src="{picture(shaded(weights))}">'
            caption = f"<figcaption>{escape(name)}</figcaption>"
            figures += f'<figure><div><img alt="" src="{photo}">{heat}</div>{caption}</figure>'
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


def shaded(weights: Tensor) -> NDArray[np.uint8]:
    """Weights (rows x columns) as a colour that lets the image through where they are small: rows columns 4."""
    numbers = weights.detach().float().cpu().numpy()
    low, high = float(numbers.min()), float(numbers.max())
    share = (numbers - low) / (high - low) if high > low else np.zeros_like(numbers)
    made = np.empty((*numbers.shape, 4), dtype=np.uint8)
    made[..., :3], made[..., 3] = HEAT, (share * 217).astype(np.uint8)
    return made


def picture(pixels: NDArray[np.uint8], form: str = "PNG") -> str:
    """Pixels (H W C) as an address that holds them."""
    stream = io.BytesIO()
    Image.fromarray(pixels).save(stream, form, quality=85)
    return f"data:image/{form.lower()};base64," + base64.b64encode(stream.getvalue()).decode("ascii")


def draw(parts: Sequence[Overlay | Pictures], path: str | Path) -> None:
    """Draws all parts below each other as .png or .svg."""
    from matplotlib.figure import Figure

    rows = sum(math.ceil(len(one.panels()) / ALONG) for one in parts)
    with style():
        figure = Figure(figsize=(1.6 * ALONG, 1.85 * rows + 0.3 * len(parts)))
        axes = figure.subplots(rows, ALONG, squeeze=False)
        for one in axes.flat:
            one.set_axis_off()
        first = 0
        for part in parts:
            shown = part.panels()
            for at, (name, image, weights) in enumerate(shown):
                high, wide = image.shape[:2]
                place = axes[first + at // ALONG, at % ALONG]
                place.imshow(image, extent=(0, wide, high, 0))
                if weights is not None:
                    way = "bilinear" if len(weights.unique()) > 2 else "nearest"  # a patch belongs to a segment or not
                    place.imshow(shaded(weights), extent=(0, wide, high, 0), interpolation=way)
                place.set_title(name, fontsize=7, color=QUIET, pad=3)
            left = axes[first, 0]
            left.text(0, 1.2, part.title, fontsize=8, color=INK, transform=left.transAxes)
            first += math.ceil(len(shown) / ALONG)
        nothing = {"Software": None} if Path(path).suffix.lower() == ".png" else {"Date": None, "Creator": None}
        figure.savefig(path, bbox_inches="tight", pad_inches=0.2, metadata=nothing)
