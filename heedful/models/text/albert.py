"""ALBERT: an encoder that uses the same block again and again, and a narrow table (Lan et al., 2020)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar, Literal, Self

from pydantic import model_validator
from torch import nn

from heedful.blocks import Again, Stack
from heedful.inputs import Sentences
from heedful.models import blueprint as parts
from heedful.models.family import Family
from heedful.models.specs import Count, Id
from heedful.models.text.bert import Bert, EncoderSpec, output


class AlbertSpec(EncoderSpec):
    """Numbers and words of ALBERT."""

    sizes: ClassVar[dict[str, dict[str, Any]]] = {
        "albert-base": {"depth": 12, "width": 768, "hidden": 3072, "heads": 12, "vocab": 30000},
        "albert-large": {"depth": 24, "width": 1024, "hidden": 4096, "heads": 16, "vocab": 30000},
        "albert-xlarge": {"depth": 24, "width": 2048, "hidden": 8192, "heads": 16, "vocab": 30000},
        "albert-xxlarge": {"depth": 12, "width": 4096, "hidden": 16384, "heads": 64, "vocab": 30000},
    }
    family: Literal["albert"] = "albert"
    feedforward: str = "gelu_tanh"
    transform: str = "gelu_tanh"
    """The activation that states pass through before masked tokens are predicted."""
    begin: Id | None = 2
    end: Id | list[Id] | None = 3
    embedding_size: Count = 128
    """The width of the embedding tables."""
    hidden_groups: Count = 1
    """How many groups of blocks have weights of their own; each is used depth / hidden_groups times in a row."""
    inner_group: Count = 1
    """The number of blocks in a group."""

    @property
    def stacked(self) -> dict[str, int]:
        return {"hidden_groups": self.hidden_groups, "inner_group": self.inner_group}

    @model_validator(mode="after")
    def _every_group_is_used(self) -> Self:
        if self.hidden_groups > self.depth:
            raise ValueError(
                f"model.hidden_groups={self.hidden_groups} is more than the {self.depth} layers; give as many or fewer"
            )
        return self


class Albert(Bert):
    """Reads a text as BERT does, with a tenth of its weights (Lan et al., 2020)."""

    def __init__(self, spec: AlbertSpec) -> None:
        nn.Module.__init__(self)
        s, b = spec, spec.blueprint
        self.spec = spec
        position, widen = parts.position(replace(b, width=s.embedding_size)), nn.Linear(s.embedding_size, s.width)
        norm = parts.norm(s.norm)
        self.inputs = Sentences(s.vocab, s.embedding_size, position, s.segments, norm, s.dropout, widen, s.letters)
        groups = (Stack(parts.block(b) for _ in range(s.inner_group)) for _ in range(s.hidden_groups))
        self.encoder = Again(groups, s.depth, parts.last_norm(b))
        self.mask, self.bias = parts.mask(b), parts.bias(b)
        self.outputs = output(s, self.inputs.table)


FAMILY = Family(AlbertSpec, Albert, {"vocab": 11}, "heedful.models.cases:Readings")
