"""Perplexity: how many tokens a model is torn between on average, told the right beginning."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import torch
from torch import nn

from heedful.data.collate import alike, to
from heedful.data.collation import Collate
from heedful.metrics.metric import Heard, Metric
from heedful.models.numerics import device_of
from heedful.objectives.objective import Objective, primary

ROOM = 8192  # tokens of a batch that is read and not written


@dataclass(frozen=True)
class TokenLosses:
    """The sum of the losses of samples that are read and not written, and how many tokens there are."""

    objective: Objective[Any]
    collate: Collate[Any]

    @torch.no_grad()
    def __call__(self, model: nn.Module, samples: Sequence[Any], learned: Any, heard: Heard) -> tuple[float, int]:
        model.eval()
        total, count = 0.0, 0
        for places in alike([self.collate.length(sample, learned) for sample in samples], ROOM):
            batch = to(self.collate.batch([samples[at] for at in places], learned), device_of(model))
            found = primary(self.objective.losses(model, batch, learned))
            total, count = total + float(found.sum), count + int(found.count)
        return total, count


@dataclass
class Perplexity(Metric[Any]):
    """Perplexity, of what `TokenLosses` gives."""

    names: ClassVar[tuple[str, ...]] = ("perplexity",)
    more_is_better: ClassVar[bool] = False
    meaning: ClassVar[str] = "as if it chose among so many tokens"

    nats: float = 0.0
    count: int = 0

    def update(self, samples: Sequence[Any], seen: tuple[float, int], learned: Any) -> None:
        self.nats, self.count = self.nats + seen[0], self.count + seen[1]

    def merge(self, other: Self) -> None:
        self.nats, self.count = self.nats + other.nats, self.count + other.count

    def compute(self) -> dict[str, float]:
        return {"perplexity": math.exp(min(self.nats / max(1, self.count), 700.0))}
