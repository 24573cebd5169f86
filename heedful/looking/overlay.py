"""Weights over the photograph that they are about: a picture for each head, or for each way to take them together."""

from __future__ import annotations

import base64
import io
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor

from heedful.looking.page import island, paragraph

Panel = tuple[str, NDArray[np.uint8], Tensor | None]  # its name, the image, and weights over it
Span = tuple[float, float]  # the weights that the colours go from and to
READING = "The brighter a patch, the more it is looked at; the rest of the photograph is what the model does not see."
SMALL = 96  # pixels along the side of a picture below which each pixel is shown as one
LUMINANCE = np.array([0.2126, 0.7152, 0.0722])  # of red, green and blue


@dataclass(frozen=True, eq=False)
class Overlay:
    """An image, and weights over the patches of it, each with a name: rows x columns."""

    title: str
    image: NDArray[np.uint8]  # H W 3
    weights: tuple[tuple[str, Tensor], ...]  # not a number where nothing is told of a patch
    note: str = READING
    frame: tuple[float, float, float, float] = (0.0, 0.0, 1.0, 1.0)  # of the image, where patches lie: two corners
    own: bool = False  # each of the weights by a scale of its own, for they are of different kinds

    def html(self) -> str:
        """The note, and the data that the page's script draws, the image first."""
        small = max(self.image.shape[:2]) < SMALL
        told = {"image": picture(self.image, "PNG" if small else "JPEG"), "frame": self.frame, "own": self.own}
        each = [{"name": name, "binary": is_segment(w), "weights": told_weights(w)} for name, w in self.weights]
        return paragraph(self.note) + island("over", told | {"each": each})

    def panels(self) -> list[Panel]:
        """The image alone, then once under each of the weights."""
        return [("image", self.image, None), *((name, self.image, weights) for name, weights in self.weights)]

    def span(self, weights: Tensor) -> Span:
        """The weights that the colours of one of its pictures go from and to: those of all, where it is one scale."""
        return span_of([weights] if self.own else [one for _, one in self.weights])


@dataclass(frozen=True, eq=False)
class Pictures:
    """Images side by side, each with a few words; `along` of them in a row where they belong together."""

    title: str
    pictures: tuple[tuple[str, NDArray[np.uint8]], ...]  # H W 3
    note: str = ""
    along: int = 0  # 0: as many as there is room for

    def html(self) -> str:
        """A figure each."""
        along = f' style="--along:{self.along}"' if self.along else ""
        figures = "".join(self._figure(*one) for one in self.pictures)
        return f'{paragraph(self.note)}<div class="overlays"{along}>{figures}</div>'

    def panels(self) -> list[Panel]:
        """Each image."""
        return [(words, pixels, None) for words, pixels in self.pictures]

    def _figure(self, words: str, pixels: NDArray[np.uint8]) -> str:
        small = ' class="small"' if max(pixels.shape[:2]) < SMALL else ""
        image = f'<img alt=""{small} src="{picture(pixels)}">'
        return f"<figure><div>{image}</div><figcaption>{escape(words)}</figcaption></figure>"


def grey(image: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """A photograph (H W 3) without its colours and without its darkest shades, so that those of a map are read: H W."""
    light: NDArray[np.uint8] = (24 + 0.87 * (image @ LUMINANCE)).astype(np.uint8)
    return light


def told_weights(weights: Tensor) -> list[list[float | None]]:
    """Weights (rows x columns) as JSON has them, to five digits."""
    rows = weights.detach().float().cpu().tolist()
    return [[None if one != one else float(f"{one:.5g}") for one in row] for row in rows]


def is_segment(weights: Tensor) -> bool:
    """Whether a patch is either of a segment or not."""
    return set(weights.unique().tolist()) <= {0.0, 1.0}


def has_edges(weights: Tensor) -> bool:
    """Whether patches have edges, and cannot be smoothed: they are of a segment, or nothing is told of some."""
    return is_segment(weights) or bool(weights.isnan().any())


def span_of(all: Sequence[Tensor]) -> Span:
    """The least and the greatest of all weights; of one value alone, up to it."""
    known: list[Any] = [one.detach()[~one.isnan()] for one in all]
    low, high = min(float(one.min()) for one in known), max(float(one.max()) for one in known)
    return (low, high) if low < high else (low - 1.0, high)


def picture(pixels: NDArray[np.uint8], form: str = "PNG") -> str:
    """Pixels (H W C) as an address that holds them."""
    stream = io.BytesIO()
    Image.fromarray(pixels).save(stream, form, quality=85)
    return f"data:image/{form.lower()};base64," + base64.b64encode(stream.getvalue()).decode("ascii")


def caption(name: str, weights: Tensor) -> str:
    """The name of weights, and below it what they go from and to; of segments, which are 0 or 1, the name."""
    return name if is_segment(weights) else f"{name}\n{span(weights)}"


def span(weights: Tensor) -> str:
    """The least and the greatest weight, in as few digits as tell them apart: 0.041 to 0.048."""
    known = weights[~weights.isnan()]
    low, high = known.min().item(), known.max().item()
    for digits in range(2, 7):
        least, greatest = f"{low:.{digits}g}", f"{high:.{digits}g}"
        if least != greatest:
            return f"{least} to {greatest}"
    return f"{low:.2g} everywhere"
