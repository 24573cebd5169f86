"""Shapes drawn on the fly: a picture of each, of any colour, size, place and turn, on a ground of another colour."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from heedful.data.images.decode import Size
from heedful.data.images.gallery import Gallery, Picture
from heedful.data.splits import Splits

if TYPE_CHECKING:
    from heedful.inputs.image_input import Processor

Floats = NDArray[np.float32]
FINE = 2  # points along the side of a pixel, so that edges are smooth
AT_ONCE = 1000  # pictures drawn together
NOISE = 0.04

SHAPES: dict[str, Callable[[Floats, Floats], NDArray[np.bool_]]] = {  # which points (x, y) of a shape's own are ink
    "circle": lambda x, y: x * x + y * y < 0.8,
    "cross": lambda x, y: (np.minimum(abs(x), abs(y)) < 0.3) & (np.maximum(abs(x), abs(y)) < 1),
    "ring": lambda x, y: abs(np.sqrt(x * x + y * y) - 0.75) < 0.25,
    "square": lambda x, y: np.maximum(abs(x), abs(y)) < 0.8,
    "triangle": lambda x, y: (y > -0.6) & (y + 1.8 * abs(x) < 1.1),
}


def shapes(samples: int, held_out: int, seed: int, size: Size, processor: Processor | None = None) -> Splits[Picture]:
    """Pictures of circles, crosses, rings, squares and triangles, as a pure function of the seed."""
    random = np.random.default_rng([seed, 3])
    counts = [max(held_out // 4, 1), held_out, samples]  # those to learn from last: any number of them
    labels = random.integers(0, len(SHAPES), sum(counts))
    drawn = [draw(labels[at : at + AT_ONCE], size, random) for at in range(0, len(labels), AT_ONCE)]
    gallery, names = Gallery(np.concatenate(drawn), processor), list(SHAPES)
    made = [Picture(gallery, at, names[label], f"shape {at}") for at, label in enumerate(labels.tolist())]
    return Splits(made[counts[0] + counts[1] :], made[: counts[0]], made[counts[0] : counts[0] + counts[1]])


def draw(labels: NDArray[np.int64], size: Size, random: np.random.Generator) -> NDArray[np.uint8]:
    """A picture for each label: N C H W."""
    count, side = len(labels), min(size.high, size.wide)
    radius, turn = random.uniform(0.22, 0.4, count) * side, random.uniform(0, 2 * np.pi, count)
    middle = random.uniform(radius, np.array([[size.high], [size.wide]]) - radius)  # 2 N
    down, across = np.meshgrid(points(size.high), points(size.wide), indexing="ij")
    apart = (down - middle[0, :, None, None], across - middle[1, :, None, None])
    y, x = ((one / radius[:, None, None]).astype(np.float32) for one in apart)
    cos, sin = (f(turn).astype(np.float32)[:, None, None] for f in (np.cos, np.sin))
    x, y = x * cos - y * sin, x * sin + y * cos
    ink = np.zeros(x.shape, dtype=np.float32)
    for label, inside in enumerate(SHAPES.values()):
        ink[labels == label] = inside(x[labels == label], y[labels == label])
    ink = ink.reshape(count, size.high, FINE, size.wide, FINE).mean((2, 4))[:, None]  # N 1 H W
    ground, colour = colours(count, size.channels, random)
    image = ground * (1 - ink) + colour * ink + random.normal(0, NOISE, (count, size.channels, size.high, size.wide))
    return (image.clip(0, 1) * 255).round().astype(np.uint8)


def points(side: int) -> NDArray[np.float64]:
    """The points at which a side is looked at, in pixels."""
    return (np.arange(side * FINE) + 0.5) / FINE


def colours(count: int, channels: int, random: np.random.Generator) -> tuple[Floats, Floats]:
    """A dark ground and a bright ink for each picture: N C 1 1 each."""
    ground, ink = (random.uniform(low, high, (count, channels, 1, 1)) for low, high in ((0, 0.4), (0.55, 1)))
    return ground.astype(np.float32), ink.astype(np.float32)
