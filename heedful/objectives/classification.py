"""Classification: the cross-entropy of the class that a sample has, with label smoothing where it is asked for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from heedful.data.collate import Batch
from heedful.models.numerics import precise
from heedful.objectives.objective import Loss, Objective, Share


@dataclass(frozen=True)
class Classification(Objective[Any]):
    """Classification of what a model reads in the fields of a batch that are named."""

    reads: tuple[str, ...] = ()
    smoothing: Share = 0.0
    """The strength of label smoothing (Szegedy et al., 2016)."""

    def losses(self, model: nn.Module, batch: Batch, learned: Any) -> dict[str, Loss]:
        logits = precise(scores_of(model, batch, self.reads))
        total = cross_entropy(logits, batch["answer"], reduction="sum", label_smoothing=self.smoothing)
        return {"loss": Loss(total, torch.tensor(len(logits)))}


def scores_of(model: nn.Module, batch: Batch, reads: tuple[str, ...]) -> Tensor:
    """What a model gives for the fields of a batch that it reads: B C."""
    scores: Tensor = model(*(batch[name] for name in reads))
    return scores
