"""Image preprocessing that is learned: the size and the scale of pixels, labels, and how images are varied."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol, Self, runtime_checkable

import numpy as np

from heedful.data.collate import pick
from heedful.data.images.gallery import Picture, pixels_of
from heedful.data.images.limits import Size
from heedful.data.readers.labelled_images import ImageReader, Processed
from heedful.data.splits import Splits
from heedful.data.transforms import MIXES, VARIATIONS, Augmentation, Mix, Variation
from heedful.errors import Refusal
from heedful.inputs import Processor
from heedful.looking import confusion
from heedful.models import Spec, part_words
from heedful.models.vision.image_spec import ImageSpec, processor
from heedful.pipelines.classification_pipeline import Classes

MEASURED = 10_000  # pictures of which the mean and the deviation are taken
SHADES = (1, 3)  # channels that are shades: grey, or red, green and blue


@dataclass(frozen=True)
class ImageLearned(Classes):
    """What is known of images: their labels, size and scale; of a run, how they are varied."""

    size: Size
    mean: tuple[float, ...]
    deviation: tuple[float, ...]
    augment: Augmentation = field(default_factory=Augmentation)
    processor: Processor | None = None  # of a model from elsewhere

    @classmethod
    def unscaled(cls, labels: Sequence[str], size: Size) -> Self:
        """Images whose pixels stay as they are."""
        return cls(tuple(labels), size, (0.0,) * size.channels, (1.0,) * size.channels)

    @classmethod
    def fit(cls, splits: Splits[Picture], reader: ImageReader, seed: int) -> Self:
        """Learns of the pictures to learn from."""
        size = Size(*splits.train[0].pixels.shape)
        dice = seed if reader.augment else 0  # so that runs go on that hid patches of images which nothing varied
        augment = augmentation_of(reader.augment, dice, size.channels)
        whole = pixels_of(pick(splits.train, MEASURED)).astype(np.float64)
        levels = whole.transpose(1, 0, 2, 3).reshape(size[0], -1)
        mean, deviation = levels.mean(1) / 255, np.maximum(levels.std(1) / 255, 1e-3)
        labels = sorted({one.label for one in splits.train})
        return cls(tuple(labels), size, tuple(mean.tolist()), tuple(deviation.tolist()), augment)

    @cached_property
    def number(self) -> dict[str, int]:
        """The place of each label."""
        return {label: at for at, label in enumerate(self.labels)}

    def describe_data(self, splits: Splits[Picture]) -> str:
        from heedful.pipelines.image_notes import describe_images, warn_of_harm

        warn_of_harm(splits, self)
        return describe_images(splits, self)

    def facts(self) -> dict[str, Any]:
        scale = {"mean": list(self.mean), "deviation": list(self.deviation)}
        return {**self.size._asdict(), **scale, "processor": None}

    def adopted(self, spec: Spec) -> Self:
        own = processor(spec) if isinstance(spec, ImageSpec) else None
        size = self.size if own is None else Size(self.size.channels, *own.shape)
        return replace(self, processor=own, size=size)

    def state(self) -> dict[str, Any]:
        scale = {"mean": list(self.mean), "deviation": list(self.deviation)}
        return {"labels": list(self.labels), **self.size._asdict(), **scale}

    @classmethod
    def read(cls, folder: Path, state: dict[str, Any]) -> Self:
        size = Size(*(state[name] for name in Size._fields))
        if not all(type(number) is int and 0 < number <= 1 << 16 for number in size):
            raise TypeError(f"{size} is no size of an image")
        return cls(cls.words_of(state, "labels"), size, tuple(state["mean"]), tuple(state["deviation"]))


@runtime_checkable
class Searched(Protocol):
    """The spec of a model that may be many, to choose among."""

    @property
    def searched(self) -> bool:
        """Whether there is something to choose among."""


@dataclass(frozen=True)
class ImageClasses(ImageLearned):
    """Images of which a class is told: a model has an answer for each label."""

    @classmethod
    def fit(cls, splits: Splits[Picture], reader: ImageReader, seed: int) -> Self:
        made = super().fit(splits, reader, seed)
        if len(made.labels) < 2:
            raise Refusal(f"all images to learn from are of class {made.labels[0]!r}; add those of another")
        return made

    def facts(self) -> dict[str, Any]:
        return {**super().facts(), "classes": len(self.labels), "labels": list(self.labels)}

    def suited(self, spec: Spec) -> Self:
        if isinstance(spec, Searched) and spec.searched:
            raise Refusal(
                "model.widths, depths, many_heads and many_hidden are to choose among, and one model is learned here; "
                "leave them out, or choose with `heedful train autoformer`"
            )
        return self

    def describe_data(self, splits: Splits[Picture]) -> str:
        balance = confusion.balance((one.label for one in splits.train), "the report, class by class")
        return "\n".join(line for line in (super().describe_data(splits), balance) if line)


def augmentation_of(words: Sequence[str], seed: int = 0, channels: int = SHADES[-1]) -> Augmentation:
    """Data augmentation from words, such as ["flip", "mixup"], for images of so many channels."""
    known = {**VARIATIONS, **MIXES}
    made = [part_words.choose("augmentation", word, known) for word in words]
    variations = tuple(one for one in made if isinstance(one, Variation))
    for word, kind in VARIATIONS.items():
        if kind.shades and channels not in SHADES and any(type(one) is kind for one in variations):
            others = ", ".join([*(name for name, one in VARIATIONS.items() if not one.shades), *MIXES])
            said = f"{word} changes shades of grey or of red, green and blue, and images have {channels} channels"
            raise Refusal(f"data.augment: {said}; use some of {others}")
    return Augmentation(variations, tuple(one for one in made if isinstance(one, Mix)), seed)


def check_pictures(splits: Splits[Picture], learned: ImageLearned) -> Splits[Picture]:
    """The same pictures, where all of them can be answered."""
    for one in (*splits.train, *splits.valid, *splits.test):
        learned.check(one.label, f"{one.place}: ")
    return splits


def again(reader: ImageReader, learned: ImageLearned) -> tuple[Processed, ImageLearned]:
    """Other images are brought to the size of those that were learned from, as the model's own processor does it."""
    size = {"pixels": [learned.size.high, learned.size.wide], "channels": learned.size.channels}
    return Processed(reader.model_copy(update=size), learned.processor), learned
