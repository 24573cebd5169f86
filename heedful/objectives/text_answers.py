"""Cross-entropy of what an encoder answers to texts: a class, a tag for each word, or a span; R-Drop where asked."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch import Tensor, nn

from heedful.data.collate import Batch
from heedful.models.encoder_call import encoder_output
from heedful.objectives.cross_entropy import RDrop
from heedful.objectives.objective import Loss, Share

NONE = -1  # an answer that counts for nothing: that of padding
HIDDEN = -1e4  # the score of a token that is none: as good as never, and no gradient is lost

Scores = Callable[[Tensor, Batch], Tensor]  # of what may be answered, last, of what a model gives for a batch


@dataclass(frozen=True)
class Answers(RDrop):
    """Cross-entropy of what an encoder answers to a batch."""

    def answered(
        self, model: nn.Module, batch: Batch, wanted: Tensor, scores: Scores, smoothing: float = 0.0
    ) -> dict[str, Loss]:
        """The losses of what a model answers to a batch, by the numbers of what is wanted (N)."""
        batch = self.passes(batch)
        given = encoder_output(model, batch, 2 if self.consistency else 1)
        return self.judged(scores(given, batch).flatten(0, -2), wanted, NONE, smoothing)


@dataclass(frozen=True)
class TextAnswers(Answers):
    """Cross-entropy of the class of a text, or of the tags of its words."""

    smoothing: Share = 0.0
    """The strength of label smoothing (Szegedy et al., 2016)."""

    def losses(self, model: nn.Module, batch: Batch, learned: Any) -> dict[str, Loss]:
        wanted = batch["answer"].flatten() - 1
        return self.answered(model, batch, wanted, lambda given, batch: given, self.smoothing)


@dataclass(frozen=True)
class SpanAnswers(Answers):
    """Cross-entropy of the first and of the last token of an answer, among those of the text."""

    smoothing: Share = 0.0
    """The strength of label smoothing (Szegedy et al., 2016)."""

    def losses(self, model: nn.Module, batch: Batch, learned: Any) -> dict[str, Loss]:
        def scores(given: Tensor, batch: Batch) -> Tensor:
            there = torch.arange(given.shape[1], device=given.device) < batch["lengths"][:, None]
            return given.masked_fill(~there.unsqueeze(-1), HIDDEN).mT  # B 2 T

        wanted = torch.stack((batch["answer"], batch["last"]), 1).flatten() - 1
        return self.answered(model, batch, wanted, scores, self.smoothing)


class Among(Protocol):
    """What is learned of several tasks, each with classes of its own."""

    def among(self, given: Tensor, tasks: Tensor) -> Tensor:
        """Scores (... C) in which classes count for nothing that answer other tasks than these (...)."""


@dataclass(frozen=True)
class TaskAnswers(Answers):
    """Cross-entropy of classes among those of a text's task; smoothing would give to classes of other tasks."""

    def losses(self, model: nn.Module, batch: Batch, learned: Among) -> dict[str, Loss]:
        def scores(given: Tensor, batch: Batch) -> Tensor:
            return learned.among(given, batch["tasks"])

        return self.answered(model, batch, batch["answer"].flatten() - 1, scores)
