"""Tokens as inputs."""

from __future__ import annotations

import math

from torch import Tensor, nn

from heedful.attention import Sight
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
        self.position, self.drop = position, nn.Dropout(dropout)
        self.scale = math.sqrt(room) if scale is None else scale

    def forward(self, tokens: Tensor, sight: Sight) -> Tensor:
        return self.drop(self.position(self.table(tokens) * self.scale, sight.rows))
