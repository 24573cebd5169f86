"""Of which class an image is."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
import torch
from torch import Tensor, nn

from heedful.attention import Attention
from heedful.data.augment import dice_of
from heedful.data.batches import Splits
from heedful.data.images import Picture, Pixels, opened_pictures
from heedful.data.images.decode import INLINE, Broken, Size, picture, viewed, written
from heedful.data.spec import DataSpec
from heedful.decoding.steps import answering
from heedful.errors import Refusal
from heedful.looking import attends, classes, look
from heedful.looking.calibration import bins
from heedful.looking.page import Example, Samples, Section
from heedful.models import Spec
from heedful.models.autoformer import AutoFormerSpec
from heedful.tasks.seen import learned, maps_of, mistakes, over, overlays
from heedful.tasks.task import (
    PLAIN,
    Batch,
    Finding,
    Task,
    Terms,
    device_of,
    pick,
    precise,
    read_all,
    several,
)
from heedful.tasks.teaching import judged, taught
from heedful.tasks.variety import Variety

LARGE = 256  # pixels along the side of a picture that people look at
MEASURED = 10_000  # pictures of which the mean and the deviation are taken
SHOWN = 3  # pictures of a report with what the model looks at


class Varied(NamedTuple):
    """A picture as it is learned from in an epoch: with its dice, and another to be mixed with, where some are."""

    picture: Picture
    dice: int
    other: Picture
    other_dice: int


class Images(Task):
    """Says of an image of which class it is; scored by the share that is right."""

    name: ClassVar[str] = "images"
    family: ClassVar[str] = "vit"
    also: ClassVar[tuple[str, ...]] = ("beit", "convit", "autoformer", "swin", "resnet", "lenet")
    watch: ClassVar[str] = "accuracy"
    terms: ClassVar[frozenset[str]] = frozenset({"smoothing"})
    ordered: ClassVar[bool] = True
    even: ClassVar[bool] = True
    input: ClassVar[str] = "the path of an image"

    def __init__(self, labels: Sequence[str], size: Size, variety: Variety | None = None) -> None:
        self.labels, self.size, self.variety = tuple(labels), size, variety or Variety(())
        self.teacher: nn.Module | None = None
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
        return self.checked(opened_pictures(made, seed))

    def checked(self, splits: Splits[Picture]) -> Splits[Picture]:
        """The same pictures, where all of them can be answered."""
        for one in (*splits.train, *splits.valid, *splits.test):
            if one.label not in self.numbered:
                known = ", ".join((*self.labels[:9], "...") if len(self.labels) > 10 else self.labels)
                raise Refusal(
                    f"{one.place}: label {one.label!r} is not one that is trained on ({known}); train on it or drop it"
                )
        return splits

    def numbers(self) -> dict[str, Any]:
        return {**self.sizes(), "classes": len(self.labels), "labels": list(self.labels)}

    def sizes(self) -> dict[str, Any]:
        """What is said of the pictures alone: their shape and the scale of their pixels."""
        return {**self.size._asdict(), "mean": self.mean, "deviation": self.deviation}

    def suits(self, spec: Spec) -> None:
        if isinstance(spec, AutoFormerSpec) and spec.searched:
            raise Refusal(
                "model.widths, depths, many_heads and many_hidden are to choose among, and one model is learned here; "
                "leave them out, or choose with `heedful train autoformer`"
            )

    def noted(self, splits: Splits[Picture]) -> str:
        if "classes" not in self.numbers():  # none is learned
            return ""
        return classes.balance((one.label for one in splits.train), "the report, class by class")

    def length(self, sample: Picture) -> int:
        return 1

    def place(self, sample: Picture) -> str:
        return sample.place

    # ------------------------------------------------------------------ learning

    def taught_by(self, teacher: nn.Module, task: Task, spec: Spec) -> None:
        if not getattr(spec, "distilled", False):
            raise Refusal("teacher wants a model with a token that is taught; set model.distilled=true (family vit)")
        same = isinstance(task, Images) and (task.labels, task.size) == (self.labels, self.size)
        if type(task) is not type(self) or not same:
            raise Refusal("teacher has learned other classes or sizes of images; train it on the same data")
        self.teacher = teacher

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

    def loss(self, model: nn.Module, batch: Batch, terms: Terms = PLAIN) -> tuple[Tensor, Tensor]:
        images, share = self.variety(batch)
        if self.teacher is None:
            losses = judged(precise(model(images)), batch, share, terms.smoothing)
        else:
            losses = taught(model, self.teacher, images, batch, share, terms.smoothing)
        return losses.sum(), torch.full((), len(images), device=images.device)

    # ------------------------------------------------------------------ answering

    def score(self, model: nn.Module, samples: Sequence[Picture]) -> dict[str, float]:
        right = [one.label == said for one, (said, _) in zip(samples, self.answers(model, samples), strict=True)]
        return {"accuracy": sum(right) / max(1, len(right))}

    def answers(
        self, model: nn.Module, pictures: Sequence[Picture | Pixels], size: int = 500
    ) -> list[tuple[str, float]]:
        """The likeliest class of each picture and its chance."""
        made: list[tuple[str, float]] = []
        with answering(model):
            for some in several(pictures, size):
                images = levels(torch.from_numpy(pixels_of(some)).to(device_of(model)))
                likeliest, places = precise(model(images)).softmax(-1).max(-1)
                made += zip([self.labels[at] for at in places.tolist()], likeliest.tolist(), strict=True)
                self.tell(len(places))
        return made

    def predict(self, model: nn.Module, inputs: Iterable[str]) -> Iterator[str]:
        for group in several(read_all(inputs, self.known)):
            yield from (label for label, _ in self.answers(model, group))

    def known(self, text: str) -> Pixels:
        """The picture of an input: C H W."""
        if not text.strip():
            raise Refusal(f"the input is empty; give {self.input}")
        try:
            return picture(text if text.startswith(INLINE) else Path(text), self.size)
        except Broken as broken:
            said = text if len(text) < 200 else f"{text[:40]}..."
            raise Refusal(f"{said} cannot be read: {broken}; give {self.input}") from None

    @torch.no_grad()
    def look(self, model: nn.Module, text: str) -> Example:
        if not attends(model):
            raise Refusal(f"a {model.spec.family} has no attention to look into; ask it with `heedful predict`")  # type: ignore[union-attr]
        label, chance = self.answers(model, [self.known(text)])[0]
        return self.looked(model, text, f" → {label} ({100 * chance:.0f} %)")

    @torch.no_grad()
    def looked(self, model: nn.Module, text: str, said: str = "") -> Example:
        """Where a model looks in a picture, and what it says of it."""
        images = levels(torch.from_numpy(self.known(text))[None].to(device_of(model)))
        model.eval()
        with look(model) as seen:
            model(images)
        shown = maps_of(model, seen)
        return Example(f"{self.called(text)}{said}", shown, sections=over(self.large(text), shown, model, images))

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
        return viewed(text if text.startswith(INLINE) else Path(text), size)

    def show(self, model: nn.Module, samples: Sequence[Picture]) -> Samples:
        answers = self.answers(model, samples)
        rows = tuple(
            (Path(one.place).name if one.is_file else one.place, one.label, answer, f"{chance:.2f}")
            for one, (answer, chance) in zip(samples, answers, strict=True)
        )
        right = tuple(label == answer for _, label, answer, _ in rows)
        return Samples("Images it never saw", ("image", "class", "said", "chance"), rows, right)

    def finding(self, model: nn.Module, samples: Sequence[Picture]) -> Finding | None:
        counts = np.zeros((len(self.labels), len(self.labels)), dtype=np.int64)
        answers = self.answers(model, samples)
        for one, (said, _) in zip(samples, answers, strict=True):
            counts[self.numbered[one.label], self.numbered[said]] += 1
        right = [one.label == said for one, (said, _) in zip(samples, answers, strict=True)]
        figures, table, diagram = classes.told(self.labels, counts, bins([chance for _, chance in answers], right))
        layer = ([""] + [path for path, part in model.named_modules() if isinstance(part, Attention)])[-1]
        examples = [self.look(model, self.write_input(one)) for one in pick(samples, SHOWN)] if attends(model) else []
        more: list[Section] = [table, diagram, *mistakes(samples, answers), *overlays(examples)]
        more += learned(model, [example.maps for example in examples])
        return Finding(figures, layer, "mean", tuple(more))

    # ------------------------------------------------------------------ keeping

    def write_input(self, sample: Picture) -> str:
        return sample.place if sample.is_file else written(sample.pixels)

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
