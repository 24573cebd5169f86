"""Next-token prediction (language modelling): the cross-entropy of each token, given what stands before it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from heedful.data.collate import Batch
from heedful.data.sample_dice import draw
from heedful.models.specs import PAD, UNKNOWN
from heedful.objectives.cross_entropy import consistent, cross_entropy
from heedful.objectives.objective import Loss, Objective, Share, Weight

BLANKS = 50  # purpose of dice
NONE = -1  # what stands where nothing is learned


@dataclass(frozen=True)
class Written(Objective[Any]):
    """An objective of a decoder, whose tokenizer goes with it."""

    smoothing: Share = 0.0
    """The strength of label smoothing (Szegedy et al., 2016)."""

    def on_train_begin(self, model: nn.Module, learned: Any) -> None:
        vars(model)["tokenizer"] = learned.tokenizer  # as one that is loaded has it


@dataclass(frozen=True)
class NextToken(Written):
    """Language modelling; where data have noise, so many tokens that are read are unknown (Xie et al., 2017)."""

    consistency: Weight = 0.0
    """The weight of R-Drop: two passes with different dropout should agree (Liang et al., 2021)."""

    def losses(self, model: nn.Module, batch: Batch, learned: Any) -> dict[str, Loss]:
        answer = batch["answer"].flatten()
        batch = {name: tensor for name, tensor in batch.items() if name != "answer"}
        if self.consistency:
            batch = {name: torch.cat((tensor, tensor)) for name, tensor in batch.items()}
        logits = model(blank_out(batch, learned.noise), documents=batch.get("documents"))
        logits = logits.flatten(0, 1).unflatten(0, (-1, len(answer)))  # P N V
        if self.consistency:
            total = consistent(logits, answer, PAD, self.smoothing, self.consistency)
        else:
            total = cross_entropy(logits[0], answer, PAD, self.smoothing)
        return {"loss": Loss(total, (answer != PAD).sum())}


@dataclass(frozen=True)
class AnswerTokens(Written):
    """Chat: what is asked is read, and the tokens of answers are learned."""

    def losses(self, model: nn.Module, batch: Batch, learned: Any) -> dict[str, Loss]:
        answer = batch["answer"].flatten() - 1
        total = cross_entropy(model(batch["tokens"]).flatten(0, 1), answer, NONE, self.smoothing)
        return {"loss": Loss(total, (answer != NONE).sum())}


def blank_out(batch: Batch, noise: float) -> Tensor:
    """The tokens of a batch, some of them unknown where they have dice: B T."""
    tokens = batch["tokens"]
    if "dice" not in batch:
        return tokens
    return tokens.masked_fill(draw(batch["dice"], tokens.shape[1], BLANKS) < noise, UNKNOWN)
