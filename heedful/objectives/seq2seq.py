"""Sequence-to-sequence loss: the cross-entropy of each token of a target behind the right ones before it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from heedful.data.collate import Batch
from heedful.models.writer import teacher_forced
from heedful.objectives.cross_entropy import consistent, cross_entropy
from heedful.objectives.objective import Loss, Objective, Share, Weight


@dataclass(frozen=True)
class TeacherForcing(Objective[Any]):
    """Teacher forcing: what a model says after each token of the right target is judged by the token that comes."""

    smoothing: Share = 0.0
    """The strength of label smoothing (Szegedy et al., 2016)."""
    consistency: Weight = 0.0
    """The weight of R-Drop: two passes with different dropout should agree (Liang et al., 2021)."""

    def losses(self, model: nn.Module, batch: Batch, learned: Any) -> dict[str, Loss]:
        answer, pad = batch["answer"].flatten(), learned.special.pad
        if self.consistency:
            batch = {name: torch.cat((tensor, tensor)) for name, tensor in batch.items()}
        logits = teacher_forced(model, batch).flatten(0, 1).unflatten(0, (-1, len(answer)))  # P N V
        if self.consistency:
            total = consistent(logits, answer, pad, self.smoothing, self.consistency)
        else:
            total = cross_entropy(logits[0], answer, pad, self.smoothing)
        return {"loss": Loss(total, (answer != pad).sum())}
