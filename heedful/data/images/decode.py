"""A file becomes a picture: JPEG, PNG, WebP and others, grey, transparent, 16-bit or turned, at one size."""

from __future__ import annotations

import base64
import binascii
import io
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageOps, UnidentifiedImageError

from heedful.checkpoints.opening import content
from heedful.errors import Refusal

FORMATS = ("JPEG", "PNG", "WEBP", "BMP", "GIF", "TIFF", "PPM")
ENDINGS = (".jpg", ".jpeg", ".jfif", ".png", ".webp", ".bmp", ".gif", ".tif", ".tiff", ".ppm", ".pgm", ".pbm")
LARGEST = 1 << 28  # bytes of a file
MOST = 1 << 26  # pixels that one may unfold to: a small file can say that it holds far more than any memory
SIDE = 1 << 16  # pixels along one side: far more rows than columns take as long as many of both
ALL = f", and {MOST:,} are the most, {SIDE:,} along a side"
CHANNELS = (1, 3)  # that are made of a file: grey, or red, green and blue
INLINE = "data:image/png;base64,"  # a picture within a text
DEEP = ("I", "I;16", "I;16B", "I;16L", "I;16N")  # grey of 16 bits


class Broken(ValueError):
    """A file that is no picture, or not a whole one: what is wrong with it."""


class Size(NamedTuple):
    """Of what shape pictures are made."""

    channels: int
    high: int
    wide: int


def picture(source: Path | str, size: Size) -> NDArray[np.uint8]:
    """The picture of a file, or of a text that holds one: C H W; what is beyond the shape is cut off evenly."""
    if size.channels not in CHANNELS:
        raise Refusal(f"the model wants {size.channels} channels, and images have 1 (grey) or 3 (colours); use another")
    return shaped(opened(source, (size.wide, size.high)), size)


def opened(source: Path | str, least: tuple[int, int]) -> Image.Image:
    """The image itself, upright and in grey or colour; decoded no larger than needed where it is far above `least`."""
    try:
        data = inline(source) if isinstance(source, str) else content(source, LARGEST)
        with Image.open(io.BytesIO(data), formats=FORMATS) as image:
            if image.width * image.height > MOST or max(image.size) > SIDE:
                raise Broken(f"it unfolds to {image.width} x {image.height} pixels{ALL}")
            if image.mode == "I" and image.format == "TIFF":
                raise Broken("its pixels are of 32 bits, and nobody says which is white; save it in 8 or 16 bits")
            side = 2 * max(least)
            image.draft(None, (side, side))  # a JPEG can be decoded at an eighth of its size
            image.load()
            return plain(ImageOps.exif_transpose(image))
    except Broken:
        raise
    except FileNotFoundError:
        raise Broken("it does not exist") from None
    except (Image.DecompressionBombWarning, Image.DecompressionBombError):
        raise Broken(f"it unfolds to far too many pixels{ALL}") from None
    except (OSError, ValueError, SyntaxError, ArithmeticError, LookupError) as error:
        known = "it is no image that can be read" if isinstance(error, UnidentifiedImageError) else ""
        raise Broken(known or (str(error).splitlines() or ["not whole"])[0][:120]) from None


def plain(image: Image.Image) -> Image.Image:
    """The image in 8 bits of grey or of red, green and blue; what is transparent is white."""
    if image.mode in DEEP:
        levels = np.clip(np.asarray(image).astype(np.int64), 0, 65535) >> 8
        return Image.fromarray(levels.astype(np.uint8))
    if image.mode == "F":
        raise Broken("its pixels are fractions; save it in 8 or 16 bits")
    if image.has_transparency_data:
        clear = image.convert("RGBA")
        return Image.alpha_composite(Image.new("RGBA", image.size, "white"), clear).convert("RGB")
    return image if image.mode in ("L", "RGB") else image.convert("L" if image.mode == "1" else "RGB")


def shaped(image: Image.Image, size: Size) -> NDArray[np.uint8]:
    """The image scaled to fill a shape, its middle kept: C H W."""
    image = image.convert("L" if size.channels == 1 else "RGB")
    if image.size != (size.wide, size.high):
        image = ImageOps.fit(image, (size.wide, size.high), Image.Resampling.BICUBIC)
    pixels = np.array(image, dtype=np.uint8).reshape(size.high, size.wide, size.channels)  # a copy of its own
    return np.ascontiguousarray(pixels.transpose(2, 0, 1))


def inline(text: str) -> bytes:
    """The bytes of a picture within a text."""
    try:
        return base64.b64decode(text.removeprefix(INLINE), validate=True)
    except binascii.Error as error:
        raise Broken(f"it is no base64: {error}") from None


def written(pixels: NDArray[np.uint8]) -> str:
    """A picture (C H W) as a text that `picture` reads, to the last bit."""
    stream = io.BytesIO()
    Image.fromarray(pixels[0] if len(pixels) == 1 else pixels.transpose(1, 2, 0)).save(stream, "PNG")
    return INLINE + base64.b64encode(stream.getvalue()).decode("ascii")
