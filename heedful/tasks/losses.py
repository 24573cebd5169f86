"""The losses of what an encoder-decoder writes."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from heedful.data.collate import Batch
from heedful.models.specs import PAD
from heedful.objectives.cross_entropy import consistent, cross_entropy
from heedful.tasks.closed import Terms


def written(model: nn.Module, batch: Batch, terms: Terms, pad: int = PAD) -> tuple[Tensor, Tensor]:
    """The sum of losses of an encoder-decoder that is told the right beginning, and how many tokens are judged."""
    answer = batch["answer"].flatten()
    if terms.consistency:
        batch = {name: torch.cat((tensor, tensor)) for name, tensor in batch.items()}
    logits = model(batch["source"], batch["target"]).flatten(0, 1).unflatten(0, (-1, len(answer)))  # P N V
    if terms.consistency:
        total = consistent(logits, answer, pad, terms.smoothing, terms.consistency)
    else:
        total = cross_entropy(logits[0], answer, pad, terms.smoothing)
    return total, (answer != pad).sum()
