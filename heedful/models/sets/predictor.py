"""The predictor on the encoder alone: one class for a sequence or set, or a label for each of its members."""

from __future__ import annotations

from typing import Literal, Self

import torch
from pydantic import model_validator
from torch import Tensor

from heedful.attention import Padding
from heedful.inputs import Tokens, Vectors
from heedful.models import blueprint as parts
from heedful.models import output_tables, part_words
from heedful.models.family import Family, Model
from heedful.models.specs import PAD, Count, ReadsInOrder, Stacked


class PredictorSpec(ReadsInOrder, Stacked):
    """Numbers and words of a predictor. It reads tokens of `vocab` or vectors of `channels`, one of the two."""

    family: Literal["predictor"] = "predictor"
    vocab: Count | None = None
    """The number of tokens, if the inputs are tokens; filled in from the data."""
    channels: Count | None = None
    """How many numbers each element has, if the inputs are vectors; filled in from the data."""
    classes: Count
    """The number of classes; filled in from the data."""
    pool: str = "mean"
    """How the elements become one answer: `mean`, `first` or `attention`; `each` gives a label to every element."""

    @model_validator(mode="after")
    def _reads_one_thing(self) -> Self:
        part_words.entry_named("pool", self.pool, output_tables.POOLS)
        if (self.vocab is None) == (self.channels is None):
            raise ValueError("a predictor reads tokens or vectors: give vocab or channels, one of the two")
        return self


class Predictor(Model):
    """Reads a sequence, or a set where it has no positions, and says of which class it is."""

    def __init__(self, spec: PredictorSpec) -> None:
        super().__init__()
        s, b = spec, spec.blueprint
        self.spec = spec
        self.inputs = (
            Tokens(s.vocab, s.width, parts.position(b), s.dropout)
            if s.vocab
            else Vectors(s.channels or 1, s.width, parts.position(b), s.dropout)
        )
        self.encoder = parts.stack(b)
        self.mask = parts.mask(b)
        self.bias = parts.bias(b)
        self.outputs = part_words.entry_named("pool", s.pool, output_tables.POOLS)(s.width, s.classes)

    def forward(self, x: Tensor, lengths: Tensor | None = None) -> Tensor:  # B T or B T C -> B K, or B T K
        lengths = self.lengths(x) if lengths is None else lengths
        sight = (Padding(lengths) & self.mask).over(x, bias=self.bias)
        return self.outputs(self.encoder(self.inputs(x, sight), sight), lengths)

    def lengths(self, x: Tensor) -> Tensor:
        """How many members each sequence has: tokens tell by their padding, vectors are taken to be all there."""
        return (x != PAD).sum(-1) if self.spec.vocab else torch.full(x.shape[:1], x.shape[1], device=x.device)


FAMILY = Family(PredictorSpec, Predictor, {"vocab": 11, "classes": 3}, "heedful.models.cases:Predictions")
