"""The losses of tokens as what metrics are made of: samples that are read and not written, batch by batch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from heedful.data.collate import ROOM, Collate, alike, to
from heedful.metrics.metric import Heard
from heedful.metrics.perplexity import TokenSums
from heedful.models.numerics import device_of
from heedful.objectives.objective import Objective, combine, primary


@dataclass(frozen=True)
class TokenLosses:
    """The sum of the losses of samples that are read and not written, and how many tokens there are."""

    objective: Objective[Any]
    collate: Collate[Any]

    @torch.no_grad()
    def __call__(self, model: nn.Module, samples: Sequence[Any], learned: Any, heard: Heard) -> TokenSums:
        model.eval()
        sums = TokenSums()
        for places in alike([self.collate.length(sample, learned) for sample in samples], ROOM):
            batch = to(self.collate.batch([samples[at] for at in places], learned), device_of(model))
            losses = self.objective.losses(model, batch, learned)
            sums += TokenSums(float(combine(losses)), int(primary(losses).count))
        return sums
