"""Next-token prediction (language modelling): the cross-entropy of each token, given what stands before it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from torch import Tensor, nn

from heedful.data.collate import Batch
from heedful.data.sample_dice import draw
from heedful.models.specs import PAD, UNKNOWN
from heedful.models.writer import language_model
from heedful.objectives.cross_entropy import RDrop, cross_entropy
from heedful.objectives.objective import Loss, Objective, Share

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
class NextToken(Written, RDrop):
    """Language modelling; where data have noise, so many tokens that are read are unknown (Xie et al., 2017)."""

    def on_train_begin(self, model: nn.Module, learned: Any) -> None:
        language_model(model)
        super().on_train_begin(model, learned)

    def losses(self, model: nn.Module, batch: Batch, learned: Any) -> dict[str, Loss]:
        answer = batch["answer"].flatten()
        batch = self.passes({name: tensor for name, tensor in batch.items() if name != "answer"})
        logits = model(blank_out(batch, learned.noise), documents=batch.get("documents"))
        return self.judged(logits.flatten(0, 1), answer, PAD, self.smoothing)


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
