"""Bahdanau's additive score: a small network on query and key, the first attention of all."""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor, nn

from heedful.attention.card import Card
from heedful.attention.mechanisms.softmax import SoftmaxLike


class Additive(SoftmaxLike):
    """Scores a . tanh(q + k), a vector for each head (Bahdanau et al., 2015). Cost: T^2 D in time and memory."""

    card: ClassVar = Card(
        "Neural Machine Translation by Jointly Learning to Align and Translate (Bahdanau et al., 2015)",
        2015,
        "T^2",
        limits="no fused kernel: T x S x D numbers at once",
        tier="B",
    )

    def __init__(self, heads: int, width: int, dropout: float = 0.0) -> None:
        super().__init__(dropout)
        self.vector = nn.Parameter(torch.randn(heads, width, 1) / width**0.5)

    def scores(self, q: Tensor, k: Tensor) -> Tensor:
        q, k = q.mT.contiguous(), k.mT.contiguous()  # so that lanes run along S: half the time of B H T S D
        together = (q.unsqueeze(-1) + k.unsqueeze(-2)).tanh()  # B H D T S
        return (self.vector.to(q.dtype).mT @ together.flatten(-2)).view(*together.shape[:2], *together.shape[3:])
