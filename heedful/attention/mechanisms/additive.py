"""Bahdanau's additive score: a small network on query and key, the first attention of all."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from heedful.attention.mechanisms.softmax import SoftmaxLike


class Additive(SoftmaxLike):
    """Scores a . tanh(q + k), a vector for each head (Bahdanau et al., 2015). Cost: T^2 D in time and memory."""

    def __init__(self, heads: int, width: int, dropout: float = 0.0) -> None:
        super().__init__(dropout)
        self.vector = nn.Parameter(torch.randn(heads, width, 1) / width**0.5)

    def scores(self, q: Tensor, k: Tensor) -> Tensor:
        together = (q.unsqueeze(-2) + k.unsqueeze(-3)).tanh()  # B H T S D
        return (together @ self.vector.to(q.dtype).unsqueeze(1)).squeeze(-1)
