"""Typed inputs of vision pipelines: a path, a text that holds an image, an array or a tensor becomes a picture."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from heedful.data.images.decode import (
    INLINE,
    Broken,
    Frame,
    Size,
    fit_array,
    photograph,
    photograph_of_array,
    picture,
)
from heedful.data.images.gallery import Gallery, Picture, Pixels
from heedful.data.images.held_pictures import natural_pixels
from heedful.errors import Refusal
from heedful.pipelines.image_preprocessing import ImageLearned
from heedful.pipelines.pipeline import nonempty


def picture_of(given: Any, learned: ImageLearned, wanted: str) -> Picture:
    """The picture of an input; `wanted` says what one looks like."""
    try:
        pixels = pixels_at(given, learned.size, learned, wanted)
    except Broken as broken:
        said = str(given) if isinstance(given, str | Path) and len(str(given)) < 200 else f"{str(given)[:40]}..."
        raise Refusal(f"{said} cannot be read: {broken}; give {wanted}") from None
    return Picture(Gallery(pixels[None]), 0, "", picture_name(given, learned))


def pixels_at(given: Any, size: Size, learned: ImageLearned, wanted: str) -> Pixels:
    """The pixels of an input at a size: C H W."""
    if isinstance(given, str):
        return picture(source_of(nonempty(given, wanted)), size, learned.processor)
    if isinstance(given, Path):
        return picture(given, size, learned.processor)
    return fit_array(natural_pixels(given, size.channels), size, learned.processor)


def source_of(given: str | Path) -> str | Path:
    """A path, or the text that holds a picture itself."""
    return given if isinstance(given, str) and given.startswith(INLINE) else Path(given)


def picture_name(given: Any, learned: ImageLearned) -> str:
    """What a picture is called: its file's name, or its size where it has none."""
    if isinstance(given, str | Path) and isinstance(source := source_of(given), Path):
        return source.name
    return f"{learned.size.high} x {learned.size.wide} pixels"


def photograph_of(given: Any, learned: ImageLearned) -> tuple[Pixels, Frame]:
    """The photograph of an input as people see it (3 H W), and the part of it that the model sees."""
    if isinstance(given, str | Path):
        return photograph(source_of(given), learned.size, learned.processor)
    return photograph_of_array(natural_pixels(given, learned.size.channels), learned.size, learned.processor)
