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
    """The number of colour channels; filled in from the data."""
    high: Count = 224
    """The height of training images in pixels; filled in from the data."""
    wide: Count = 224
    """The width of training images in pixels; filled in from the data."""
    mean: list[float] | None = None
    """The mean of each channel, with values from 0 to 1; measured on the training images."""
    deviation: list[float] | None = None
    """The standard deviation of each channel; measured on the training images."""
    processor: str | None = None
    """How a model from elsewhere resizes and crops images: `transformers(...)` or `timm(...)`."""

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

    classes: Count | None = None
    """The number of classes, filled in from the data; without it the pooled vector is the answer."""
    labels: list[str] | None = None
    """The names of the classes; filled in from the data."""

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
