"""Scheduled sampling: a model that learns to write also reads some of its own words in the place of the right ones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

import torch
from torch import Tensor, nn

from heedful.data.collate import Batch
from heedful.models.writer import Writer
from heedful.objectives.objective import Loss, Share
from heedful.objectives.translation import GuidedTranslation
from heedful.pipelines.translation_pipeline import TranslationLearned


@dataclass(frozen=True)
class ScheduledSampling(GuidedTranslation):
    """Scheduled sampling (Bengio et al., 2015), for any model that writes: its words are drawn from its own chances.

    What is judged stays the right word at every step. The share is one for all steps: an objective knows a batch and
    the dice of its step, which are seeded anew at each, and so a run that goes on draws what it would have drawn.
    """

    sampling: Share = 0.25
    """The share of words after which the model reads a word of its own."""

    def losses(self, model: nn.Module, batch: Batch, learned: TranslationLearned) -> dict[str, Loss]:
        if self.sampling and model.training:
            batch = batch | {"target": mix_targets(cast(Writer, model), batch, self.sampling, learned.special.pad)}
        return super().losses(model, batch, learned)


@torch.no_grad()
def mix_targets(model: Writer, batch: Batch, share: float, pad: int) -> Tensor:
    """The targets of a batch (B T), a share of their words drawn by the model behind what it has read so far."""
    right, context, memory = batch["target"], model.begin(batch), model.memory()
    read = [right[:, :1]]
    for at in range(1, right.shape[1]):
        scores = model.decode(read[-1], context, memory)[:, -1]
        scores = scores.index_fill(-1, scores.new_tensor(model.special.never, dtype=torch.long), -torch.inf)
        drawn = scores.softmax(-1, dtype=torch.float32).multinomial(1)
        owns = (torch.rand(drawn.shape, device=drawn.device) < share) & (right[:, at : at + 1] != pad)
        read.append(torch.where(owns, drawn, right[:, at : at + 1]))
    return torch.cat(read, 1)
