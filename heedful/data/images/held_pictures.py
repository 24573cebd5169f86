"""Pictures that lie in memory: arrays, tensors, PIL's images and paths, as numbers of one size."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from PIL import Image
from torch import Tensor

from heedful.data.held_values import label_in_memory
from heedful.data.images import npy_pictures
from heedful.data.images.decode import CLEAR, MODES, Broken, Size, eight_bits, fit_array, open_image, upright
from heedful.data.images.gallery import Gallery, Picture, Pixels
from heedful.data.near_duplicates import Cut
from heedful.data.splits import Splits, divide_samples
from heedful.errors import Refusal

if TYPE_CHECKING:
    from heedful.inputs.image_input import Processor

KINDS = "an array, a tensor, an image of PIL's or a path"


class Arrays(Gallery):
    """Pictures of any sizes (C H W each), brought to one."""

    def __init__(self, each: Sequence[Pixels], size: Size, processor: Processor | None = None) -> None:
        super().__init__(np.stack([fit_array(one, size, processor) for one in each]))
        self.each = each


def hold_pictures(given: Sequence[Any], high_wide: Sequence[int] | None, channels: int | None) -> list[Picture]:
    """The pictures of samples, each an image and its label, or an image alone; the first says what is not told."""
    pairs = [one if isinstance(one, tuple | list) else (one, "") for one in given]
    each: list[Pixels] = []
    for at, (image, _) in enumerate(pairs):
        try:
            each.append(natural_pixels(image, channels or (len(each[0]) if each else None)))
        except Broken as broken:
            raise Refusal(f"image {at} of those in memory cannot be read: {broken}; give {KINDS}") from None
    if not each:
        return []
    gallery = Arrays(each, Size(len(each[0]), *(high_wide or each[0].shape[1:])))
    return [Picture(gallery, at, label_in_memory(label), f"image {at}") for at, (_, label) in enumerate(pairs)]


def held_splits(samples: Any, high_wide: Sequence[int] | None, channels: int | None, cut: Cut) -> Splits[Picture]:
    """Pictures to learn from, to choose by and to test on, given so or in one sequence."""
    parts = (samples.train, samples.valid, samples.test) if isinstance(samples, Splits) else (samples,)
    listed = [[part[at] for at in range(len(part))] for part in parts]
    made = hold_pictures([one for part in listed for one in part], high_wide, channels)
    if not isinstance(samples, Splits):
        return divide_samples(made, lambda one: one.content, "what lies in memory", cut)
    ends = np.cumsum([0, *map(len, listed)])
    return Splits(*(made[start:end] for start, end in pairwise(ends)))


def resize_held(splits: Splits[Picture], size: Size, processor: Processor | None) -> Splits[Picture]:
    """The same pictures at another size."""
    galleries: dict[int, Arrays] = {}

    def resized(one: Picture) -> Picture:
        old = one.gallery
        assert isinstance(old, Arrays)
        if id(old) not in galleries:
            galleries[id(old)] = Arrays(old.each, size, processor)
        return replace(one, gallery=galleries[id(old)])

    return Splits(*([resized(one) for one in part] for part in (splits.train, splits.valid, splits.test)))


def natural_pixels(given: Any, channels: int | None) -> Pixels:
    """An image at its own size: C H W, of as many channels as are asked for, or as it has."""
    if isinstance(given, str | Path):
        given = open_image(Path(given), None, channels in CLEAR)
    if isinstance(given, Image.Image):
        image = eight_bits(upright(given), channels in CLEAR)
        image = image.convert(MODES.get(channels or 0, image.mode))
        return np.ascontiguousarray(np.atleast_3d(np.asarray(image)).transpose(2, 0, 1))
    return pixels_of_array(given, channels)


def pixels_of_array(given: Any, channels: int | None) -> Pixels:
    """An array or a tensor as levels from 0 to 255: C H W; numbers with a dot go from 0 to 1."""
    if not isinstance(given, Tensor | np.ndarray):
        raise Broken(f"its type is {type(given).__name__}")
    numbers = given.detach().cpu().numpy() if isinstance(given, Tensor) else given
    if numbers.dtype.kind == "f":
        numbers = np.rint(numbers.clip(0, 1) * 255).astype(np.uint8)
    if numbers.dtype != np.uint8:
        raise Broken(f"its numbers are {numbers.dtype}, and should be whole ones of 8 bits, or those from 0 to 1")
    if channels is None:
        channels = 1 if numbers.ndim == 2 else next((n for n in numbers.shape[::2] if n in MODES), numbers.shape[0])
    return np.ascontiguousarray(npy_pictures.channels_first(numbers, channels))
