"""The recurrent predictor: reads a sequence to its end, and its last state says of which class that is."""

from __future__ import annotations

from typing import Literal

from torch import Tensor, nn

from heedful.blocks.block import Dropout
from heedful.models.family import Family
from heedful.models.specs import PAD, Count
from heedful.models.text.recurrent_encoder import ReadsSource, SourceReader


class RecurrentPredictorSpec(ReadsSource):
    """Numbers and words of a recurrent predictor."""

    family: Literal["recurrent_predictor"] = "recurrent_predictor"
    both_ways: bool = False
    """Whether the source is read from both its ends (bidirectional)."""
    classes: Count
    """The number of classes."""


class RecurrentPredictor(nn.Module):
    """Recurrent classifier (Elman, 1990): all that it knows of a sequence is its state behind the last token."""

    def __init__(self, spec: RecurrentPredictorSpec) -> None:
        super().__init__()
        self.spec, self.reader, self.drop = spec, SourceReader(spec), Dropout(spec.dropout)
        self.outputs = nn.Linear(spec.width, spec.classes)

    def forward(self, tokens: Tensor, lengths: Tensor | None = None) -> Tensor:  # B T -> B K
        lengths = (tokens != PAD).sum(-1) if lengths is None else lengths
        _, last = self.reader(tokens, lengths)
        ways = 1 + self.spec.both_ways
        return self.outputs(self.drop(last[:, 0, -ways:].flatten(1)))


FAMILY = Family(
    RecurrentPredictorSpec,
    RecurrentPredictor,
    {"vocab": 11, "classes": 3, "width": 8},
    "heedful.models.cases:Sequences",
    tasks=("sequences", "names"),
)
