"""ALBERT: an encoder that uses the same block again and again, and a narrow table (Lan et al., 2020)."""

from __future__ import annotations

from typing import Any, ClassVar, Literal, Self

from pydantic import model_validator
from torch import nn

from heedful.blocks import Again, Stack
from heedful.inputs import Sentences
from heedful.models import specs as parts
from heedful.models.cases import Readings
from heedful.models.family import Family
from heedful.models.specs import Count, Id
from heedful.models.text.bert import Bert, EncoderSpec, output


class AlbertSpec(EncoderSpec):
    """Numbers and words of ALBERT."""

    lacking: ClassVar[tuple[str, ...]] = ("stack",)
    sizes: ClassVar[dict[str, dict[str, Any]]] = {
        "albert-base": {"depth": 12, "width": 768, "hidden": 3072, "heads": 12, "vocab": 30000},
        "albert-large": {"depth": 24, "width": 1024, "hidden": 4096, "heads": 16, "vocab": 30000},
        "albert-xlarge": {"depth": 24, "width": 2048, "hidden": 8192, "heads": 16, "vocab": 30000},
        "albert-xxlarge": {"depth": 12, "width": 4096, "hidden": 16384, "heads": 64, "vocab": 30000},
    }
    family: Literal["albert"] = "albert"
    feedforward: str = "gelu_tanh"
    transform: str = "gelu_tanh"
    begin: Id | None = 2
    end: Id | list[Id] | None = 3
    narrow: Count = 128  # the width of the tables
    distinct: Count = 1  # groups of blocks, each used depth / distinct times in a row
    inner: Count = 1  # blocks of a group

    @property
    def stacked(self) -> dict[str, int]:
        return {"distinct": self.distinct, "inner": self.inner}

    @model_validator(mode="after")
    def _every_group_is_used(self) -> Self:
        if self.stack != "plain":
            raise ValueError("model.stack is for blocks that are used once, and these are used again; leave it out")
        if self.distinct > self.depth:
            raise ValueError(
                f"model.distinct={self.distinct} is more than the {self.depth} layers; give as many or fewer"
            )
        return self


class Albert(Bert):
    """Reads a text as BERT does, with a tenth of its weights (Lan et al., 2020)."""

    def __init__(self, spec: AlbertSpec) -> None:
        nn.Module.__init__(self)
        s = self.spec = spec
        position, widen = parts.position(s.model_copy(update={"width": s.narrow})), nn.Linear(s.narrow, s.width)
        self.inputs = Sentences(s.vocab, s.narrow, position, s.segments, parts.norm(s), s.dropout, widen, s.letters)
        groups = (Stack(parts.block(s) for _ in range(s.inner)) for _ in range(s.distinct))
        self.encoder = Again(groups, s.depth, parts.last_norm(s))
        self.mask, self.bias = parts.mask(s), parts.bias(s)
        self.outputs = output(s, self.inputs.table)


FAMILY = Family(AlbertSpec, Albert, {"vocab": 11}, Readings)
