"""Captioning from outside: what is kept of images and their captions, and how a model is asked for one."""

from dataclasses import dataclass, replace

import torch

from heedful.data.collate import Ids
from heedful.data.formats.parallel_text import Pair
from heedful.data.images import Picture, pixels_of
from heedful.data.images.decode import Size
from heedful.data.splits import Splits
from heedful.data.transforms import levels
from heedful.looking.overlay import Overlay
from heedful.models.numerics import device_of
from heedful.pipelines.choose_tokenizer import tokenizer_of
from heedful.pipelines.image_inputs import photograph_of, picture_name, picture_of
from heedful.pipelines.image_preprocessing import ImageLearned
from heedful.pipelines.pairs_learned import PairsLearned
from heedful.pipelines.seq2seq_pipeline import Seq2Seq, Source


@dataclass(frozen=True)
class Captioned:
    """An image and its caption, as ids and as it was written."""

    picture: Picture
    target: Ids
    texts: Pair


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
        high, wide = model.cells(self.batch([sample], learned)["image"].to(device_of(model))).shape[2:]
        return [f"{row},{column}" for row in range(high) for column in range(wide)]

    def as_input(self, sample, learned):
        return sample.picture.as_input

    def called(self, given, learned):
        return picture_name(given, learned.images)


class Captioning(Seq2Seq):
    """Captioning: each word of a caption shows where it looks, the mean of the heads of every cross-attention."""

    def look(self, model, given, learned):
        seen = super().look(model, given, learned)
        photo, frame = photograph_of(given, learned.images)
        image = photo.transpose(1, 2, 0)
        shape = tuple(1 + int(number) for number in seen.maps[-1].columns[-1].split(","))
        over = []
        for map in (one for one in seen.maps if one.path.endswith("cross")):
            words = zip(map.rows, map.weights.mean(0).unflatten(1, shape), strict=True)
            each = tuple((word.strip(), weights) for word, weights in words)
            over.append(Overlay(map.path, image, each, frame=frame))
        return replace(seen, sections=tuple(over))
