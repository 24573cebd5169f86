"""A decoder over numbers: predicts each next step of a series from the steps before it."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor, nn

from heedful.attention import Causal, Memory
from heedful.inputs import Vectors
from heedful.models import blueprint as parts
from heedful.models.family import Family, Model
from heedful.models.specs import Count, ReadsInOrder, Stacked


class ForecasterSpec(ReadsInOrder, Stacked):
    """Numbers and words of a forecaster."""

    family: Literal["forecaster"] = "forecaster"
    channels: Count
    """How many numbers each step has; filled in from the data."""


class Forecaster(Model):
    """Says of each step by how much the series will have moved at the next: B T C -> B T C, the next step."""

    mean: Tensor
    deviation: Tensor

    def __init__(self, spec: ForecasterSpec) -> None:
        super().__init__()
        s, b = spec, spec.blueprint
        self.spec = spec
        self.register_buffer("mean", torch.zeros(s.channels))  # of the training data, channel by channel
        self.register_buffer("deviation", torch.ones(s.channels))
        self.inputs = Vectors(s.channels, s.width, parts.position(b), s.dropout)
        self.decoder = parts.stack(b)
        self.mask = parts.mask(b)
        self.bias = parts.bias(b, both_ways=False)
        self.outputs = nn.Linear(s.width, s.channels)

    def forward(self, series: Tensor, memory: Memory | None = None) -> Tensor:
        sight = (Causal() & self.mask).over(series, memory, self.bias)
        x = self.inputs((series - self.mean) / self.deviation, sight)
        return series + self.outputs(self.decoder(x, sight, memory)) * self.deviation


FAMILY = Family(ForecasterSpec, Forecaster, {"channels": 3}, "heedful.models.cases:Forecasts")
