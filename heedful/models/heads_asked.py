"""What is asked of a model of text: the token that comes next, a class, tags, a span that answers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Self

import torch
from pydantic import Field, model_validator
from torch import Tensor, nn

from heedful.attention import standing
from heedful.models import part_words
from heedful.models.specs import Count, LanguageSpec, Spec

MOST = 64  # members of a model
NEXT = "next"  # is asked of a model that writes
CHOICES = ("classes", "tags")  # are asked of a model that chooses


class AskedSpec(LanguageSpec):
    """What the specs of models share that can be asked several things. `output` says which."""

    output: str = NEXT
    """What the model answers: `next` (the next token), `classes`, `tags`, `answer`, `masked`, `states` or `pooled`."""
    classes: Count | None = None
    """The number of classes or tags; filled in from the data."""
    labels: list[str] | None = None
    """The names of the classes or tags; filled in from the data."""
    multi_label: bool = False
    """Whether a text may belong to several classes at once."""
    members: Annotated[int, Field(ge=1, le=MOST)] = 1
    """How many models are trained as one ensemble, whose mean answers (of the outputs `classes` and `tags`)."""

    @model_validator(mode="after")
    def _classes_are_told(self) -> Self:
        word = part_words.parse(self.output)[0]
        if word in CHOICES and self.classes is None:
            raise ValueError(f"model.output={self.output} needs to know among how many; give model.classes")
        if self.labels is not None and len(self.labels) != self.classes:
            raise ValueError(
                f"model.labels has {len(self.labels)} names and there are {self.classes} classes; name each"
            )
        if self.multi_label and word != "classes":
            raise ValueError(f"model.multi_label is of classes, and model.output={self.output}; leave one of them out")
        if self.members > 1 and word not in CHOICES:
            raise ValueError(f"model.members answer by classes or tags, and model.output={self.output}; leave them out")
        return self


def word_asked(spec: Spec) -> str:
    """The word of what a model is asked; those that cannot be asked several things write."""
    return part_words.parse(spec.output)[0] if isinstance(spec, AskedSpec) else NEXT


def output(spec: AskedSpec, known: Mapping[str, part_words.Part], **more: Any) -> nn.Module:
    """The part that answers, of those that are known."""
    given = {"width": spec.width, "classes": spec.classes, "dropout": spec.dropout}
    made: nn.Module = part_words.choose("output", spec.output, known, **given, **more)
    return made


def places(tokens: Tensor, pad: int | None) -> Tensor:
    """Where tokens stand, counted without padding, which may be on either side: B T -> B T."""
    return standing(torch.ones_like(tokens, dtype=torch.bool) if pad is None else tokens != pad)
