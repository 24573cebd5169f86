"""R-Drop: a batch is read twice with other dropout, and the two passes should agree (Liang et al., 2021)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from heedful.data.collate import Batch
from heedful.objectives.cross_entropy import consistent, cross_entropy
from heedful.objectives.objective import Loss, Objective, Weight


@dataclass(frozen=True)
class RDrop(Objective[Any]):
    """Cross-entropy with R-Drop where it is asked for: how far two passes disagree is a loss of its own."""

    consistency: Weight = 0.0
    """The weight of R-Drop: two passes with different dropout should agree (Liang et al., 2021)."""

    @property
    def names(self) -> tuple[str, ...]:
        return ("loss", "consistency") if self.consistency else ("loss",)

    def passes(self, batch: Batch) -> Batch:
        """The batch as the model reads it, twice for two passes."""
        return {name: torch.cat((one, one)) for name, one in batch.items()} if self.consistency else batch

    def judged(self, logits: Tensor, answer: Tensor, ignored: int, smoothing: float = 0.0) -> dict[str, Loss]:
        """The losses of all passes' scores, flat (PN V), for answers (N) of which the ignored ones count nothing."""
        logits, count = logits.unflatten(0, (-1, len(answer))), (answer != ignored).sum()
        if not self.consistency:
            return {"loss": Loss(cross_entropy(logits[0], answer, ignored, smoothing), count)}
        total, apart = consistent(logits, answer, ignored, smoothing)
        return {"loss": Loss(total, count), "consistency": Loss(apart, count, self.consistency)}
