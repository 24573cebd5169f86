"""A file becomes a picture: JPEG, PNG, WebP and others, grey, transparent, 16-bit, turned, or arrays; at one size."""

from __future__ import annotations

import base64
import binascii
import io
import struct
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageOps, UnidentifiedImageError

from heedful.data.images import npy_pictures
from heedful.data.images.limits import LARGEST, MOST, SIDE, TOO_MANY, Broken, Size
from heedful.errors import Refusal
from heedful.safe.opening import content

if TYPE_CHECKING:
    from heedful.inputs.image_input import Processor

__all__ = ["ENDINGS", "INLINE", "MODES", "Broken", "Frame", "Size", "as_hwc", "as_rgb", "as_text", "picture"]

FORMATS = ("JPEG", "PNG", "WEBP", "BMP", "GIF", "TIFF", "PPM")
FILES = (".jpg", ".jpeg", ".jfif", ".png", ".webp", ".bmp", ".gif", ".tif", ".tiff", ".ppm", ".pgm", ".pbm")
ENDINGS = (*FILES, npy_pictures.ENDING)
MODES = {1: "L", 2: "LA", 3: "RGB", 4: "RGBA"}  # what is made of a file, by channels
CLEAR = (2, 4)  # channels of which the last says how much of a pixel is there
MEANT = "1 (grey), 3 (colours), or 2 and 4 (with transparency)"
INLINE = "data:image/png;base64,", "data:application/x-npy;base64,"  # a picture within a text begins with one of these
UPRIGHT = 0x0112  # the entry of EXIF that says how an image is held, from 1 to 8
TURNS = {  # what makes it upright
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}
Frame = tuple[float, float, float, float]  # what a model sees of a photograph: left, top, right, bottom, as shares
SHOWN = 800  # pixels along the longer side of a photograph that people look at
DEEP = ("I", "I;16", "I;16B", "I;16L", "I;16N")  # grey of 16 bits


def picture(source: Path | str, size: Size, processor: Processor | None = None) -> NDArray[np.uint8]:
    """The picture of a file, or of a text that holds one: C H W; what is beyond the shape is cut off evenly.

    A processor says how it comes to the shape, which may be several times as large as the processor's own.
    """
    if is_array(source):
        return fit_array(npy_pictures.array(bytes_of(source), size.channels), size, processor)
    if size.channels not in MODES:
        cure = f"give arrays ({npy_pictures.ENDING}) of rows x columns x {size.channels}"
        raise Refusal(f"{size.channels} channels are wanted, and images have {MEANT}; {cure}")
    least = None if processor else (size.wide, size.high)
    image = open_image(source, least, size.channels in CLEAR).convert(MODES[size.channels])
    pixels = np.array(shape_image(image, size, processor), dtype=np.uint8)  # a copy of its own
    return np.ascontiguousarray(pixels.reshape(size.high, size.wide, size.channels).transpose(2, 0, 1))


def photograph(source: Path | str, size: Size, processor: Processor | None = None) -> tuple[NDArray[np.uint8], Frame]:
    """The photograph as it was taken (3 H W), no larger than a screen needs, and the part that a model sees of it."""
    if is_array(source):
        return photograph_of_array(npy_pictures.array(bytes_of(source), size.channels), size, processor)
    image = open_image(source, None if processor else (SHOWN // 2, SHOWN // 2), clear=False).convert("RGB")
    return for_a_screen(image), frame_of(image.height, image.width, size, processor)


def photograph_of_array(
    pixels: NDArray[np.uint8], size: Size, processor: Processor | None = None
) -> tuple[NDArray[np.uint8], Frame]:
    """The same of an array (C H W)."""
    _, high, wide = pixels.shape
    return for_a_screen(Image.fromarray(as_hwc(pixels))), frame_of(high, wide, size, processor)


def for_a_screen(image: Image.Image) -> NDArray[np.uint8]:
    """An image no larger than a screen needs: 3 H W."""
    image.thumbnail((SHOWN, SHOWN), Image.Resampling.BICUBIC)
    return np.ascontiguousarray(np.asarray(image).transpose(2, 0, 1))


def frame_of(high: int, wide: int, size: Size, processor: Processor | None = None) -> Frame:
    """What is left of a photograph when it comes to a shape; a processor may add black around it, beyond 0 and 1."""
    if processor is None:
        kept = min(wide, high * size.wide / size.high), min(high, wide * size.high / size.wide)
        left, top = (wide - kept[0]) / 2 / wide, (high - kept[1]) / 2 / high
        return left, top, 1 - left, 1 - top
    sides = processor.resized(high, wide)
    top, left = (processor.before(side - kept) / side for side, kept in zip(sides, size[1:], strict=True))
    return left, top, left + size.wide / sides[1], top + size.high / sides[0]


def as_rgb(pixels: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """A picture (C H W) as people see it: what is transparent is white, and of many channels the first three; 3 H W."""
    count = len(pixels)
    shown = pixels[:3] if count > 2 else pixels[:1]
    if count in CLEAR:
        there = pixels[-1:].astype(np.uint16)
        shown = ((shown * there + 255 * (255 - there) + 127) // 255).astype(np.uint8)
    return np.ascontiguousarray(np.broadcast_to(shown, (3, *pixels.shape[1:])))


def is_array(source: Path | str) -> bool:
    """Whether a source is an array of NumPy's."""
    if isinstance(source, str):
        return source.startswith(INLINE[1])
    return source.suffix.lower() == npy_pictures.ENDING


def bytes_of(source: Path | str) -> bytes:
    """The bytes of a file, or of a picture within a text."""
    try:
        return inline(source) if isinstance(source, str) else content(source, LARGEST)
    except FileNotFoundError:
        raise Broken("it does not exist") from None
    except (OSError, ValueError) as error:
        raise Broken((str(error).splitlines() or ["not whole"])[0][:120]) from None


def size_of_image(source: Path) -> tuple[int, int]:
    """The width and height of a file's picture as people see it; of an image its head alone is read."""
    if is_array(source):
        shape = npy_pictures.array(bytes_of(source), 3).shape
        return shape[2], shape[1]
    try:
        with Image.open(io.BytesIO(bytes_of(source)), formats=FORMATS) as image:
            return (image.height, image.width) if image.getexif().get(UPRIGHT) in (5, 6, 7, 8) else image.size
    except (OSError, ValueError, SyntaxError, LookupError, TypeError, struct.error, Image.DecompressionBombError):
        raise Broken("its size cannot be told") from None


def open_image(source: Path | str, least: tuple[int, int] | None, clear: bool) -> Image.Image:
    """The image itself, upright and in grey or colour; decoded no larger than needed where it is far above `least`."""
    try:
        with Image.open(io.BytesIO(bytes_of(source)), formats=FORMATS) as image:
            if image.width * image.height > MOST or max(image.size) > SIDE:
                raise Broken(f"it unfolds to {image.width} x {image.height} pixels{TOO_MANY}")
            if image.mode == "I" and image.format == "TIFF":
                raise Broken("its pixels are of 32 bits, and nobody says which is white; save it in 8 or 16 bits")
            if least is not None:
                image.draft(None, (2 * max(least), 2 * max(least)))  # a JPEG can be decoded at an eighth of its size
            image.load()
            return eight_bits(upright(image), clear)
    except Broken:
        raise
    except (Image.DecompressionBombWarning, Image.DecompressionBombError):
        raise Broken(f"it unfolds to far too many pixels{TOO_MANY}") from None
    except (OSError, ValueError, SyntaxError, ArithmeticError, LookupError, TypeError, struct.error) as error:
        known = "it is no image that can be read" if isinstance(error, UnidentifiedImageError) else ""
        raise Broken(known or (str(error).splitlines() or ["not whole"])[0][:120]) from None


def upright(image: Image.Image) -> Image.Image:
    """The image as its EXIF says that it is held; ImageOps writes all of EXIF anew, and fails by an odd entry."""
    held = image.getexif().get(UPRIGHT)
    return image.transpose(TURNS[held]) if isinstance(held, int) and held in TURNS else image


def eight_bits(image: Image.Image, clear: bool = False) -> Image.Image:
    """The image in 8 bits of grey or of red, green and blue; what is transparent is white, or stays so (`clear`)."""
    if image.mode in DEEP:
        levels = np.clip(np.asarray(image).astype(np.int64), 0, 65535) >> 8
        return Image.fromarray(levels.astype(np.uint8))
    if image.mode == "F":
        raise Broken("its pixels are fractions; save it in 8 or 16 bits")
    if image.has_transparency_data:
        whole = image.convert("RGBA")
        white = Image.new("RGBA", image.size, "white")
        return whole if clear else Image.alpha_composite(white, whole).convert("RGB")
    return image if image.mode in ("L", "RGB") else image.convert("L" if image.mode == "1" else "RGB")


def shape_image(image: Image.Image, size: Size, processor: Processor | None = None) -> Image.Image:
    """The image scaled to fill a shape, its middle kept; or resized and cropped as a processor says."""
    if processor is None:
        same = image.size == (size.wide, size.high)
        return image if same else ImageOps.fit(image, (size.wide, size.high), Image.Resampling.BICUBIC)
    times = size.high // processor.shape[0]
    high, wide = (times * side for side in processor.resized(image.height, image.width))
    if not 0 < high * wide <= MOST:
        raise Broken(f"its {image.height} x {image.width} pixels would be resized to {high} x {wide}{TOO_MANY}")
    if times > 1 or image.size != (wide, high):
        image = image.resize((wide, high), processor.resample)
    top, left = (
        times * processor.before((side - kept) // times) for side, kept in ((high, size.high), (wide, size.wide))
    )
    return image.crop((left, top, left + size.wide, top + size.high))  # black where nothing is


def fit_array(pixels: NDArray[np.uint8], size: Size, processor: Processor | None = None) -> NDArray[np.uint8]:
    """Each channel of an array brought to a shape: C H W."""
    if processor is None and pixels.shape[1:] == (size.high, size.wide):
        return pixels
    return np.stack([np.asarray(shape_image(Image.fromarray(one), size, processor)) for one in pixels])


def inline(text: str) -> bytes:
    """The bytes of a picture within a text."""
    try:
        return base64.b64decode(text.partition(",")[2], validate=True)
    except binascii.Error as error:
        raise Broken(f"it is no base64: {error}") from None


def as_text(pixels: NDArray[np.uint8]) -> str:
    """A picture (C H W) as a text that `picture` reads, to the last bit."""
    if len(pixels) not in MODES:
        return INLINE[1] + base64.b64encode(npy_pictures.npy_bytes(pixels)).decode("ascii")
    stream = io.BytesIO()
    Image.fromarray(pixels[0] if len(pixels) == 1 else pixels.transpose(1, 2, 0)).save(stream, "PNG")
    return INLINE[0] + base64.b64encode(stream.getvalue()).decode("ascii")


def as_hwc(pixels: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """A picture (C H W) as people see it: H W 3."""
    return np.ascontiguousarray(as_rgb(pixels).transpose(1, 2, 0))
