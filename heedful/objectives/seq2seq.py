"""Sequence-to-sequence loss: the cross-entropy of each token of a target behind the right ones before it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from torch import nn

from heedful.data.collate import Batch
from heedful.models.writer import teacher_forced
from heedful.objectives.cross_entropy import RDrop
from heedful.objectives.objective import Loss, Share


@dataclass(frozen=True)
class TeacherForcing(RDrop):
    """Teacher forcing: what a model says after each token of the right target is judged by the token that comes."""

    smoothing: Share = 0.0
    """The strength of label smoothing (Szegedy et al., 2016)."""

    def losses(self, model: nn.Module, batch: Batch, learned: Any) -> dict[str, Loss]:
        logits = teacher_forced(model, self.passes(batch)).flatten(0, 1)
        return self.judged(logits, batch["answer"].flatten(), learned.special.pad, self.smoothing)
