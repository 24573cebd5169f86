"""Vectors as inputs: members of a set, or steps of a series."""

from __future__ import annotations

from torch import Tensor, nn

from heedful.attention import Sight
from heedful.blocks.block import Dropout
from heedful.inputs.positions import Position


class Vectors(nn.Module):
    """Numbers of `channels` channels, brought to the model's width by a matrix: B T C -> B T M."""

    def __init__(self, channels: int, width: int, position: Position, dropout: float = 0.0) -> None:
        super().__init__()
        self.matrix = nn.Linear(channels, width - position.room)
        self.position, self.drop = position, Dropout(dropout)

    def forward(self, vectors: Tensor, sight: Sight) -> Tensor:
        return self.drop(self.position(self.matrix(vectors.to(self.matrix.weight.dtype)), sight.rows))
