"""Captioned images, drawn on the fly: two shapes, each of a colour, and how the one stands to the other."""

from itertools import product

import numpy as np

from heedful.data.images.gallery import Gallery, Picture
from heedful.data.readers.reader import Made, Tokenized
from heedful.data.splits import Splits
from heedful.data.toys.drawn_shapes import SHAPES

SIDE, FINE = 16, 3
COLOURS = {"red": (0.9, 0.2, 0.2), "green": (0.2, 0.8, 0.3), "blue": (0.3, 0.4, 1.0)}
KINDS = list(product(COLOURS, ("circle", "cross", "square")))
CAPTIONS = len(KINDS) ** 2 * 2  # as many as can be written


class DrawnCaptions(Tokenized, Made):
    """Two shapes on a dark ground, and a caption such as "a red circle left of a blue square"."""

    tokenizer: str = "words"

    def read(self, seed):
        counts = [self.held_out // 4, self.held_out, self.samples]  # those to learn from last: any number of them
        random = np.random.default_rng([seed, 11])
        made = [scene(random) for _ in range(sum(counts))]
        gallery = Gallery(np.stack([pixels for pixels, _ in made]))
        pictures = [Picture(gallery, at, caption, f"drawing {at}") for at, (_, caption) in enumerate(made)]
        return Splits(pictures[sum(counts[:2]) :], pictures[: counts[0]], pictures[counts[0] : sum(counts[:2])])


def scene(random):
    """An image (C H W), and its caption."""
    one, two = (KINDS[at] for at in random.integers(0, len(KINDS), 2))
    across = bool(random.integers(0, 2))
    near, far = random.uniform(3.2, 4.8), random.uniform(11.2, 12.8)  # along the side on which they stand apart
    aside = random.uniform(4, 12, 2)
    places = [(aside[0], near), (aside[1], far)] if across else [(near, aside[0]), (far, aside[1])]
    image = random.uniform(0, 0.15) + random.normal(0, 0.03, (3, SIDE, SIDE))
    points = (np.arange(SIDE * FINE) + 0.5) / FINE
    for (colour, shape), (down, along) in zip((one, two), places, strict=True):
        radius = random.uniform(2.6, 3.4)
        y, x = np.meshgrid((points - down) / radius, (points - along) / radius, indexing="ij")
        ink = SHAPES[shape](x, y).reshape(SIDE, FINE, SIDE, FINE).mean((1, 3))
        image = image * (1 - ink) + np.array(COLOURS[colour])[:, None, None] * ink
    caption = f"a {' '.join(one)} {'left of' if across else 'above'} a {' '.join(two)}"
    return (image.clip(0, 1) * 255).round().astype(np.uint8), caption
