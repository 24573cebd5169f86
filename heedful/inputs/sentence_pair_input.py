"""Sentences as inputs, one or a pair of them: what an encoder of text reads."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn.functional import embedding_bag

from heedful.attention import Sight
from heedful.blocks.block import Dropout
from heedful.errors import Refusal
from heedful.inputs.positions import Position


class Sentences(nn.Module):
    """A vector for each token, for the segment it is of and for its place, normed: B T -> B T M (Devlin et al., 2019).

    A segment is a sentence of a pair, counted from 0; without `segments` the model cannot tell them apart. `widen`
    brings a narrow table to the model's width (Lan et al., 2020). Where there are `letters`, as many n-grams of them
    have vectors too, which are added to those of the tokens that are spelt with them (Bojanowski et al., 2017).
    """

    def __init__(
        self,
        vocab: int,
        width: int,
        position: Position,
        segments: int = 0,
        norm: Callable[[int], nn.Module] = nn.LayerNorm,
        dropout: float = 0.0,
        widen: nn.Module | None = None,
        letters: int = 0,
    ) -> None:
        super().__init__()
        room = width - position.room
        self.table = nn.Embedding(vocab, room)
        self.segments = nn.Embedding(segments, room) if segments else None
        self.letters = nn.Embedding(letters + 1, room) if letters else None
        for table in (self.table, self.segments or self.table, *([self.letters] if self.letters else [])):
            nn.init.normal_(table.weight, std=0.02)  # as the positions are drawn that are added to it
        self.position, self.norm, self.drop = position, norm(width), Dropout(dropout)
        self.widen = widen or nn.Identity()

    def forward(
        self, tokens: Tensor, sight: Sight, segments: Tensor | None = None, letters: Tensor | None = None
    ) -> Tensor:
        x = self.table(tokens)
        if letters is not None:
            x = x + self.spelt(letters)
        x = self.with_segments(x, torch.zeros_like(tokens), segments)
        return self.widen(self.drop(self.norm(self.position(x, sight.rows))))

    def with_segments(self, x: Tensor, first: Tensor, segments: Tensor | None) -> Tensor:
        """Tokens with the vectors of their segments added, of the first one where none are given: B T M."""
        if self.segments is not None:
            return x + self.segments(first if segments is None else segments)
        if segments is not None:
            raise Refusal("the model does not know segments; leave them out")
        return x

    def spelt(self, letters: Tensor) -> Tensor:
        """What the n-grams of tokens (B T K) tell, 0 being none: their vectors' sum, as long as one of them: B T M."""
        if self.letters is None:
            raise Refusal("the model does not know letters; leave them out")
        total = embedding_bag(letters.flatten(0, 1), self.letters.weight, mode="sum", padding_idx=0)
        count = (letters > 0).sum(-1, keepdim=True).clamp(min=1)
        return total.unflatten(0, letters.shape[:2]) / count.to(total.dtype).sqrt()
