"""What all families that read images share: the size and the scale of what they read."""

from __future__ import annotations

from typing import Self

from pydantic import model_validator
from torch import nn

from heedful.inputs import Processor, Standard
from heedful.models.part_words import choose
from heedful.models.specs import Count, Spec
from heedful.registry import Registry

PROCESSORS: Registry[type[Processor]] = Registry(
    "processor",
    "heedful.processors",
    {
        "transformers": "heedful.inputs.image_input:TransformersProcessor",
        "timm": "heedful.inputs.image_input:TimmProcessor",
    },
)


class ImageSpec(Spec):
    """Numbers and words of a model of images."""

    use = "images"
    channels: Count
    high: Count = 224  # pixels of the images it learns from; it may read others too
    wide: Count = 224
    mean: list[float] | None = None  # of the pixels of each channel, which are told from 0 to 1
    deviation: list[float] | None = None
    processor: str | None = None  # how a folder from elsewhere says that pictures come to their shape

    @model_validator(mode="after")
    def _each_channel_has_a_scale(self) -> Self:
        if (self.mean is None) != (self.deviation is None):
            raise ValueError("model.mean and model.deviation go together; give both or none")
        if self.mean is not None and not len(self.mean) == len(self.deviation or ()) == self.channels:
            raise ValueError(f"model.mean and model.deviation want a number for each of {self.channels} channels")
        processor(self)
        return self

    def head(self, width: int) -> nn.Module:
        """What answers of what was pooled, which is the answer itself where there are no classes."""
        return nn.Identity()


class ClassifierSpec(ImageSpec):
    """What image classifiers share: among how many classes they choose."""

    classes: Count | None = None  # where not given, what was pooled is the answer
    labels: list[str] | None = None  # their names

    @model_validator(mode="after")
    def _each_class_has_a_name(self) -> Self:
        if self.labels is not None and len(self.labels) != self.classes:
            raise ValueError(
                f"model.labels has {len(self.labels)} names and there are {self.classes} classes; name each"
            )
        return self

    def head(self, width: int) -> nn.Module:
        return nn.Linear(width, self.classes) if self.classes else nn.Identity()


def processor(spec: ImageSpec) -> Processor | None:
    """What brings pictures to the shape that a model from elsewhere reads; without one they are scaled to fill it."""
    if spec.processor is None:
        return None
    made: Processor = choose("processor", spec.processor, PROCESSORS)
    return made


def standard(spec: ImageSpec) -> Standard | None:
    """What brings all channels to one scale."""
    return Standard(spec.mean, spec.deviation) if spec.mean and spec.deviation else None
