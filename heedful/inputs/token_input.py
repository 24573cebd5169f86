"""Tokens as inputs."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from torch import Tensor, nn

from heedful.attention import Sight
from heedful.blocks.block import Dropout
from heedful.inputs.positions import Position


class Tokens(nn.Module):
    """A vector for each token of the vocabulary, and where it stands: B T -> B T M.

    Vectors are taken times `scale`, the root of their width where it is not given (Vaswani et al., 2017).
    """

    def __init__(
        self, vocab: int, width: int, position: Position, dropout: float = 0.0, scale: float | None = None
    ) -> None:
        super().__init__()
        room = width - position.room
        self.table = nn.Embedding(vocab, room)
        nn.init.normal_(self.table.weight, std=room**-0.5)
        self.position, self.drop = position, Dropout(dropout)
        self.scale = math.sqrt(room) if scale is None else scale

    def forward(self, tokens: Tensor, sight: Sight) -> Tensor:
        return self.drop(self.placed(tokens, sight))

    def placed(self, tokens: Tensor, sight: Sight) -> Tensor:
        """Vectors that know where they stand: B T M."""
        x = self.table(tokens)
        return self.position(x if self.scale == 1.0 else x * self.scale, sight.rows)


class NormedTokens(Tokens):
    """The same, normed before the first block sees them (BART: Lewis et al., 2020)."""

    def __init__(self, vocab: int, width: int, *given: Any, norm: Callable[[int], nn.Module]) -> None:
        super().__init__(vocab, width, *given)
        self.norm = norm(width)

    def forward(self, tokens: Tensor, sight: Sight) -> Tensor:
        return self.drop(self.norm(self.placed(tokens, sight)))
