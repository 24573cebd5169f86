"""What tasks of images share: how pictures are opened, put into batches, asked about and kept."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
import torch
from torch import Tensor, nn

from heedful.data.collate import Batch, pick
from heedful.data.data_spec import DataSpec
from heedful.data.images import Picture, Pixels, opened_pictures
from heedful.data.images.decode import INLINE, Broken, Size, picture, viewed, written
from heedful.data.near_duplicates import Content
from heedful.data.splits import Splits
from heedful.data.transforms import dice_of
from heedful.errors import Refusal
from heedful.inputs import Processor
from heedful.models import Spec
from heedful.models.vision.image_spec import ImageSpec, processor
from heedful.tasks.closed import Task
from heedful.tasks.variety import Variety

LARGE = 256  # pixels along the side of a picture that people look at
MEASURED = 10_000  # pictures of which the mean and the deviation are taken


class Varied(NamedTuple):
    """A picture as it is learned from in an epoch: with its dice, and another to be mixed with, where some are."""

    picture: Picture
    dice: int
    other: Picture
    other_dice: int


class Pictured(Task):
    """A task of pictures of one size, each with a label."""

    ordered: ClassVar[bool] = True
    even: ClassVar[bool] = True
    keys: ClassVar[frozenset[str]] = frozenset({"split_seed", "pixels", "channels", "broken", "augment"})
    input: ClassVar[str] = "the path of an image"

    def __init__(self, labels: Sequence[str], size: Size, variety: Variety | None = None) -> None:
        self.labels, self.size, self.variety = tuple(labels), size, variety or Variety(())
        self.teacher: nn.Module | None = None
        self.processor: Processor | None = None
        self.numbered = {label: at for at, label in enumerate(self.labels)}
        self.mean, self.deviation = [0.0] * size.channels, [1.0] * size.channels

    @classmethod
    def open(cls, data: DataSpec, seed: int) -> tuple[Self, Splits[Picture]]:
        splits = opened_pictures(data, seed)
        if not splits.train:
            raise Refusal("data.train is not given; add data.train=...")
        size = Size(*splits.train[0].pixels.shape)
        task = cls(sorted({one.label for one in splits.train}), size, Variety(data.augment, seed))
        task.variety.suits(size.channels)
        if "classes" in task.numbers() and len(task.labels) < 2:
            raise Refusal(f"all images to learn from are of class {task.labels[0]!r}; add those of another")
        levels = pixels_of(pick(splits.train, MEASURED)).astype(np.float64).transpose(1, 0, 2, 3).reshape(size[0], -1)
        task.mean = (levels.mean(1) / 255).tolist()
        task.deviation = np.maximum(levels.std(1) / 255, 1e-3).tolist()
        return task, task.checked(splits)

    def reopen(self, data: DataSpec, seed: int) -> Splits[Picture]:
        made = data.model_copy(update={"pixels": [self.size.high, self.size.wide], "channels": self.size.channels})
        return self.checked(opened_pictures(made, seed, self.processor))

    def contents(self, sample: Picture) -> dict[str, Content]:
        return {"images": sample.content}

    def checked(self, splits: Splits[Picture]) -> Splits[Picture]:
        """The same pictures, where all of them can be answered."""
        for one in (*splits.train, *splits.valid, *splits.test):
            if one.label not in self.numbered:
                known = ", ".join((*self.labels[:9], "...") if len(self.labels) > 10 else self.labels)
                raise Refusal(
                    f"{one.place}: label {one.label!r} is not one that is trained on ({known}); train on it or drop it"
                )
        return splits

    def sizes(self) -> dict[str, Any]:
        """What is said of the pictures alone: their shape and the scale of their pixels."""
        return {**self.size._asdict(), "mean": self.mean, "deviation": self.deviation, "processor": None}

    def adopt(self, spec: Spec) -> None:
        self.processor = processor(spec) if isinstance(spec, ImageSpec) else None
        if self.processor is not None:
            self.size = Size(self.size.channels, *self.processor.shape)

    def length(self, sample: Picture) -> int:
        return 1

    def place(self, sample: Picture) -> str:
        return sample.place

    # ------------------------------------------------------------------ learning

    def fresh(self, samples: Sequence[Picture], epoch: int) -> Sequence[Any]:
        if not self.variety:
            return samples
        dice = dice_of(self.variety.seed, epoch, [one.at for one in samples]).tolist()
        # Each is mixed with its neighbour in the step, however the step is dealt out among processes.
        return [Varied(one, dice[at], samples[at - 1], dice[at - 1]) for at, one in enumerate(samples)]

    def batch(self, samples: Sequence[Picture | Varied]) -> Batch:
        varied = [one for one in samples if isinstance(one, Varied)]
        shown = [one.picture if isinstance(one, Varied) else one for one in samples]
        made = self.shown(shown)
        if varied:
            made["dice"] = torch.tensor([one.dice for one in varied])
        if varied and self.variety.mixes:
            others = self.shown([one.other for one in varied])
            made |= {f"other_{name}": tensor for name, tensor in others.items()}
            made["other_dice"] = torch.tensor([one.other_dice for one in varied])
        return made

    def shown(self, pictures: Sequence[Picture]) -> Batch:
        """Pictures in levels from 0 to 255, and their answers."""
        answers = torch.tensor([self.numbered[one.label] for one in pictures])
        return {"images": torch.from_numpy(pixels_of(pictures)), "answer": answers}

    # ------------------------------------------------------------------ answering

    def known(self, text: str) -> Pixels:
        """The picture of an input: C H W."""
        if not text.strip():
            raise Refusal(f"the input is empty; give {self.input}")
        try:
            return picture(text if text.startswith(INLINE) else Path(text), self.size, self.processor)
        except Broken as broken:
            said = text if len(text) < 200 else f"{text[:40]}..."
            raise Refusal(f"{said} cannot be read: {broken}; give {self.input}") from None

    def called(self, text: str) -> str:
        """What a picture is called: its file's name, or its size where it has none."""
        return f"{self.size.high} x {self.size.wide} pixels" if text.startswith(INLINE) else Path(text).name

    def dice(self, first: int, count: int, device: torch.device) -> Tensor:
        """The dice of pictures that are scored or shown: the same every time."""
        return torch.from_numpy(dice_of(0, 0, range(first, first + count))).to(device)

    def large(self, text: str) -> Pixels:
        """The picture of an input as people see it, cut as the model has it: C H W."""
        times = max(1, LARGE // max(self.size.high, self.size.wide))
        size = Size(self.size.channels, times * self.size.high, times * self.size.wide)
        return viewed(text if text.startswith(INLINE) else Path(text), size, self.processor)

    # ------------------------------------------------------------------ keeping

    def write_input(self, sample: Picture) -> str:
        return sample.place if sample.is_file else written(sample.gallery.pixels[sample.at])

    def state(self) -> dict[str, Any]:
        return {"labels": list(self.labels), **self.size._asdict(), "mean": self.mean, "deviation": self.deviation}

    @classmethod
    def read(cls, folder: Path, state: dict[str, Any]) -> Self:
        if not all(isinstance(label, str) for label in state["labels"]):
            raise TypeError("labels should be words")
        size = Size(*(state[name] for name in Size._fields))
        if not all(type(number) is int and 0 < number <= 1 << 16 for number in size):
            raise TypeError(f"{size} is no size of an image")
        task = cls(state["labels"], size)
        task.mean, task.deviation = state["mean"], state["deviation"]
        return task


def pixels_of(pictures: Sequence[Picture | Pixels]) -> Pixels:
    """Pictures as one array: B C H W."""
    first = pictures[0]
    if isinstance(first, Picture) and all(
        isinstance(one, Picture) and one.gallery is first.gallery for one in pictures
    ):
        return first.gallery.take([one.at for one in pictures if isinstance(one, Picture)])
    return np.stack([one.pixels if isinstance(one, Picture) else one for one in pictures])


def levels(images: Tensor) -> Tensor:
    """Levels from 0 to 255 as numbers from 0 to 1."""
    return images.to(torch.float32) / 255
