"""Captioned images from outside: drawn on the fly, what is kept of them, and how a model reads them."""

from dataclasses import dataclass, replace
from itertools import product

import numpy as np
import torch

from heedful.data.collate import Ids
from heedful.data.formats.parallel_text import Pair
from heedful.data.images.decode import Size
from heedful.data.images.gallery import Gallery, Picture, pixels_of
from heedful.data.readers.reader import Made, Tokenized
from heedful.data.splits import Splits
from heedful.data.toys.drawn_shapes import SHAPES
from heedful.data.transforms import levels
from heedful.pipelines.choose_tokenizer import tokenizer_of
from heedful.pipelines.image_inputs import called, picture_of
from heedful.pipelines.image_learned import ImageLearned
from heedful.pipelines.seq2seq import Source
from heedful.pipelines.sequence_pairs import PairsLearned

SIDE, FINE = 16, 3
COLOURS = {"red": (0.9, 0.2, 0.2), "green": (0.2, 0.8, 0.3), "blue": (0.3, 0.4, 1.0)}
KINDS = list(product(COLOURS, ("circle", "cross", "square")))
CAPTIONS = len(KINDS) ** 2 * 2  # as many as can be written


@dataclass(frozen=True)
class Captioned:
    """An image and its caption, as ids and as it was written."""

    picture: Picture
    target: Ids
    texts: Pair


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


@dataclass(frozen=True)
class CaptionsLearned(PairsLearned):
    """The tokenizer of captions, and the size of the images that they are of."""

    images: ImageLearned | None = None

    @classmethod
    def fit(cls, splits, reader, seed):
        """What is learned of images whose captions are their labels."""
        images = ImageLearned.unscaled((), Size(*splits.train[0].pixels.shape))
        return cls(tokenizer_of(reader.tokenizer, (one.label for one in splits.train)), images=images)

    def facts(self):
        return super().facts() | self.images.facts()

    def state(self):
        return super().state() | {"images": self.images.state()}

    @classmethod
    def read(cls, folder, state):
        return replace(super().read(folder, state), images=ImageLearned.read(folder, state["images"]))


def encode(splits, learned):
    """Images with the ids of their captions."""

    def some(pictures):
        ids = learned.ids([one.label for one in pictures])
        return [Captioned(one, row, Pair(one.called, one.label)) for one, row in zip(pictures, ids, strict=True)]

    return Splits(some(splits.train), some(splits.valid), some(splits.test))


class ImageSource(Source):
    """Source image: its pixels from 0 to 1 in the field `image`."""

    def accepts(self, given, what, learned):
        return Captioned(picture_of(given, learned.images, what), [], Pair("", ""))

    def length(self, sample, learned):
        return 1  # all are of one size

    def batch(self, samples, learned):
        return {"image": levels(torch.from_numpy(pixels_of([one.picture for one in samples])))}

    def words(self, model, sample, learned):
        high, wide = model.cells(self.batch([sample], learned)["image"]).shape[2:]
        return [f"{row},{column}" for row in range(high) for column in range(wide)]

    def as_input(self, sample, learned):
        return sample.picture.as_input

    def called(self, given, learned):
        return called(given, learned.images)
