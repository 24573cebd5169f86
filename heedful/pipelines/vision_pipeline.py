"""Vision pipelines: an image becomes its likeliest class, or its vector, with what the model looks at over it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, TypeVar

import torch
from torch import Tensor, nn

from heedful.data.collate import Batch, several
from heedful.data.images import Picture, pixels_of
from heedful.data.images.decode import ENDINGS, INLINE
from heedful.data.images.sources import FILE
from heedful.data.transforms import levels
from heedful.decoding.steps import answering
from heedful.looking import look
from heedful.looking.page import Example
from heedful.models.numerics import device_of, finite, precise
from heedful.pipelines.attention_over_image import maps_of, over
from heedful.pipelines.classification_pipeline import Classifying
from heedful.pipelines.image_inputs import photograph_of, picture_name, picture_of
from heedful.pipelines.image_preprocessing import ImageLearned
from heedful.pipelines.pipeline import Columns, Heard, Pipeline, can_be_looked_into, unheard
from heedful.results import Label, Vector

INPUT = "the path of an image"
AT_ONCE = 250  # images that are answered together
Kept = TypeVar("Kept", bound=ImageLearned)


@dataclass(frozen=True)
class VisionPipeline(Pipeline[Kept]):
    """Pipeline of images: a path, a text that holds an image, an array or a tensor."""

    endings: ClassVar[tuple[str, ...]] = ENDINGS
    input: str = INPUT

    def column_names(self) -> Columns:
        return (FILE,)

    def of_columns(self, values: Sequence[str], folder: Path) -> Any:
        return values[0] if values[0].startswith(INLINE) else folder / values[0]

    def accepts(self, given: Any, learned: Kept) -> Picture:
        return picture_of(given, learned, self.input)

    def look(self, model: nn.Module, given: Any, learned: Kept) -> Example:
        return look_at(model, given, learned)


@dataclass(frozen=True)
class ImageClassifying(VisionPipeline[ImageLearned], Classifying[ImageLearned]):
    """Image classification: the likeliest class of an image, with the chance of each."""

    reads: ClassVar[tuple[str, ...]] = ("images",)

    def inputs(self, samples: Sequence[Picture], learned: ImageLearned) -> Batch:
        return {"images": torch.from_numpy(pixels_of(samples))}

    def scores(self, model: nn.Module, batch: Batch) -> Tensor:
        made: Tensor = model(levels(batch["images"]))
        return made

    def results(self, model: nn.Module, samples: Sequence[Picture], learned: ImageLearned, heard: Heard) -> list[Label]:
        with answering(model) as running:
            return super().results(running, samples, learned, heard)

    def look(self, model: nn.Module, given: Any, learned: ImageLearned) -> Example:
        can_be_looked_into(model)
        said = self.results(model, [self.accepts(given, learned)], learned, unheard)[0]
        return look_at(model, given, learned, called_class(said))


@dataclass(frozen=True)
class ImageVectors(VisionPipeline[ImageLearned]):
    """Image embedding: what a model makes of an image."""

    def results(
        self, model: nn.Module, samples: Sequence[Picture], learned: ImageLearned, heard: Heard
    ) -> list[Vector]:
        return [Vector(tuple(row)) for row in image_vectors(model, samples, learned, heard).tolist()]


@torch.no_grad()
def image_vectors(model: nn.Module, samples: Sequence[Picture], learned: ImageLearned, heard: Heard) -> Tensor:
    """What a model makes of pictures: B M."""
    model.eval()
    made = []
    for some in several(samples, AT_ONCE):
        made.append(model(images_of(some, model)))
        heard(len(some))
    return finite(precise(torch.cat(made)))


def images_of(samples: Sequence[Picture], model: nn.Module) -> Tensor:
    """Pictures as numbers from 0 to 1, where a model's weights lie: B C H W."""
    return levels(torch.from_numpy(pixels_of(samples)).to(device_of(model)))


@torch.no_grad()
def look_at(model: nn.Module, given: Any, learned: ImageLearned, said: str = "") -> Example:
    """Where a model looks in an image, over which it is shown; `said` tells what the model says of it."""
    can_be_looked_into(model)
    images = images_of([picture_of(given, learned, INPUT)], model)
    model.eval()
    with look(model) as seen:
        model(images)
    shown = maps_of(model, seen, images)
    parts = over(photograph_of(given, learned), shown, model, images)
    return Example(f"{picture_name(given, learned)}{said}", shown, sections=parts)


def called_class(said: Label) -> str:
    """A class as the title of an image says it."""
    return f" → {said.name} ({100 * said.chance:.0f} %)"
