"""What is done to images before they are learned from, told beforehand; and what of it may do harm."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from itertools import permutations
from statistics import median
from typing import TYPE_CHECKING, Any

import numpy as np

from heedful.data.collate import pick
from heedful.data.images.decode import Broken, size_of_image
from heedful.data.images.gallery import Files, Picture, pixels_of
from heedful.data.splits import Splits
from heedful.data.transforms import MIXES, VARIATIONS
from heedful.data.transforms.geometry import Flip

if TYPE_CHECKING:
    from heedful.pipelines.image_preprocessing import ImageLearned

ASKED = 100  # files whose sizes are looked up, and pictures of a class whose mean is taken
SHRUNK = 4  # times along a side, above which an image is warned of
EVEN = 16  # of which the size that is named is a multiple, as most patches divide it
FEWEST = 10  # pictures of a class from which on its mean says something
NEARER = 0.5  # of the squared distance, below which means are taken for mirror images
MIRRORED = (("left", "right"), ("west", "east"), ("clockwise", "counterclockwise"), ("clockwise", "anticlockwise"))
LETTERS = (("b", "d"), ("p", "q"))
CHANNELS = {1: "grey", 2: "grey with transparency", 3: "colours", 4: "colours with transparency"}


def describe_images(splits: Splits[Picture], learned: ImageLearned) -> str:
    """How images come to their size, and how they are varied while they are learned from."""
    size, first = learned.size, splits.train[0]
    way = "as they are"
    if isinstance(first.gallery, Files):
        middle = "resized and cropped as the model's own processor says" if learned.processor else "scaled to fill it"
        way = f"{middle}, what is beyond cut off evenly"
        if sizes := file_sizes(splits.train):
            wide, high = (median(sides) for sides in zip(*sizes, strict=True))
            way += f"; files have {wide:.0f} x {high:.0f} in the middle"
    colours = CHANNELS.get(size.channels, f"{size.channels} channels")
    lines = [f"images    {size.wide} x {size.high} pixels in {colours}, {way}"]
    known: dict[str, Any] = {**VARIATIONS, **MIXES}
    words = {kind: word for word, kind in known.items()}
    for one in (*learned.augment.variations, *learned.augment.mixes):
        what = (type(one).__doc__ or "").splitlines()[0].rstrip(".")
        given = ", ".join(f"{key}={value:g}" for key, value in vars(one).items() if isinstance(value, int | float))
        word = f"{words.get(type(one), type(one).__name__)}{f'({given})' if given else ''}"
        lines.append(f"varied    {word}: {what[:1].lower()}{what[1:]}")
    return "\n".join(lines)


def file_sizes(pictures: Sequence[Picture]) -> list[tuple[int, int]]:
    """The width and height of some files, as they lie there."""
    found = []
    for one in pick(pictures, ASKED):
        try:
            found.append(size_of_image(one.gallery.paths[one.at]))
        except Broken:
            continue
    return found


def warn_of_harm(splits: Splits[Picture], learned: ImageLearned) -> None:
    """Warns where images lose most of what they show, and where flips may turn one class into another."""
    size = learned.size
    if isinstance(splits.train[0].gallery, Files) and (sizes := file_sizes(splits.train)):
        times = median(min(wide / size.wide, high / size.high) for wide, high in sizes)
        if times > SHRUNK:
            side = EVEN * math.ceil(max(size.high, size.wide) * times / SHRUNK / EVEN)
            warnings.warn(
                f"images are shrunk {times:.1f} times along each side to {size.wide} x {size.high} pixels, and details "
                f"are lost; data.pixels={side} keeps more",
                stacklevel=2,
            )
    if any(isinstance(one, Flip) for one in learned.augment.variations) and (pair := mirrored_classes(splits, learned)):
        warnings.warn(
            f"data.augment flips images, and classes {pair[0]!r} and {pair[1]!r} may be mirror images of each other; "
            "leave flip out of data.augment if they are",
            stacklevel=2,
        )


def mirrored_classes(splits: Splits[Picture], learned: ImageLearned) -> tuple[str, str] | None:
    """Two classes that may be mirror images: by their names, or since the mean of one, mirrored, is the other's."""
    labels = {label.casefold(): label for label in learned.labels}
    for one, two in permutations(labels, 2):
        if (one, two) in LETTERS or any(a in one and one.replace(a, b) == two for a, b in MIRRORED):
            return labels[one], labels[two]
    means = {}
    for label in learned.labels[:ASKED]:
        some = [one for one in splits.train if one.label == label][:ASKED]
        if len(some) >= FEWEST:
            means[label] = pixels_of(some).astype(np.float64).mean(0)
    for one, two in permutations(means, 2):
        turned = means[one][..., ::-1]
        near, own = (float(np.square(turned - means[name]).sum()) for name in (two, one))
        if near < NEARER * min(own, float(np.square(means[one] - means[two]).sum())):
            return one, two
    return None
