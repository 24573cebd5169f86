"""Luong's general score: a matrix between query and key."""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor, nn

from heedful.attention.card import Card
from heedful.attention.mechanisms.softmax import Softmax
from heedful.attention.sight import Sight


class General(Softmax):
    """Bilinear scores q W k, a matrix for each head (Luong et al., 2015). Cost: T^2, memory T, as W turns q first."""

    card: ClassVar = Card(
        "Effective Approaches to Attention-based Neural Machine Translation (Luong et al., 2015)", 2015, "T^2"
    )

    def __init__(self, heads: int, width: int, dropout: float = 0.0) -> None:
        super().__init__(dropout, scale=1.0)
        self.matrix = nn.Parameter(torch.eye(width).repeat(heads, 1, 1) / width**0.5)  # starts as scaled dot products

    def scores(self, q: Tensor, k: Tensor) -> Tensor:
        return self.turned(q) @ k.mT

    def turned(self, q: Tensor) -> Tensor:
        """The queries by the matrix: B H T D."""
        return q @ self.matrix.to(q.dtype)

    def forward(self, q: Tensor, k: Tensor, v: Tensor, sight: Sight) -> Tensor:
        return super().forward(self.turned(q), k, v, sight)
