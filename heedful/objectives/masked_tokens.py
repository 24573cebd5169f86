"""Masked language modelling: the cross-entropy of tokens that are hidden, from both sides of them (BERT)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from heedful.data.collate import Batch
from heedful.data.sample_dice import draw
from heedful.models.specs import BEGIN, END, PAD
from heedful.objectives.cross_entropy import cross_entropy
from heedful.objectives.objective import Loss, Objective, Share

CHOSEN, HOW, WHICH = 51, 52, 53  # purposes of dice
MASKED, OTHER = 0.8, 0.1  # shares of the chosen tokens that are masked, and that are another token; the rest stays


@dataclass(frozen=True)
class MaskedTokens(Objective[Any]):
    """Finding the tokens that are hidden in texts (BERT: Devlin et al., 2019).

    Of the tokens that are chosen, 80 % are masked, 10 % are others by chance, and 10 % stay. Which are chosen follows
    from the seed, the epoch and the crop.
    """

    smoothing: Share = 0.0
    """The strength of label smoothing (Szegedy et al., 2016)."""

    def losses(self, model: nn.Module, batch: Batch, learned: Any) -> dict[str, Loss]:
        tokens, answer = hide_as_learned(batch, learned)
        logits = model(*frame_crops(tokens))[:, 1:-1].flatten(0, 1)
        total = cross_entropy(logits, answer.flatten(), PAD, self.smoothing)
        return {"loss": Loss(total, (answer != PAD).sum())}


def frame_crops(tokens: Tensor) -> tuple[Tensor, Tensor]:
    """Crops (B T) as an encoder reads them, and where they stand: BEGIN before them, END behind, padding last."""
    there = tokens != PAD
    whole = torch.nn.functional.pad(tokens, (1, 1))
    whole[:, 0] = BEGIN
    whole.scatter_(1, there.sum(1, keepdim=True) + 1, END)
    places = torch.arange(whole.shape[1], device=tokens.device)
    return whole, torch.where(places <= there.sum(1, keepdim=True) + 1, places, -1)


def hide_as_learned(batch: Batch, learned: Any) -> tuple[Tensor, Tensor]:
    """The tokens of crops, as many of them hidden as was learned, and what these were, PAD where nothing is asked."""
    return mask_tokens(batch, learned.noise, learned.masking, len(learned.tokenizer))


def mask_tokens(batch: Batch, share: float, mask: int, vocab: int) -> tuple[Tensor, Tensor]:
    """The tokens of crops, some of them hidden, and what these were, PAD where nothing is asked: B T each.

    Where the words of tokens are told, those of a word are hidden together.
    """
    tokens, dice, length = batch["tokens"], batch["dice"], batch["tokens"].shape[1]
    numbers = batch["words"] - batch["words"][:, :1] if "words" in batch else None
    chance, how, which = (draw(dice, length, purpose) for purpose in (CHOSEN, HOW, WHICH))
    chance = chance if numbers is None else chance.gather(1, numbers.clamp(0, length - 1))
    chosen = (chance < share) & (tokens > END)
    other = mask + 1 + (which * (vocab - mask - 1)).long()  # any token of a text
    read = torch.where(how < MASKED, mask, torch.where(how < MASKED + OTHER, other, tokens))
    return torch.where(chosen, read, tokens), torch.where(chosen, tokens, PAD)
