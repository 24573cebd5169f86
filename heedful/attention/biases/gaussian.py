"""The Gaussian Transformer (Guo et al., 2019): a penalty on the square of distance."""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor, nn

from heedful.attention.card import Card
from heedful.attention.mask_and_bias import Bias


class GaussianBias(Bias):
    """A penalty that grows with the square of the distance, -|w d^2 + b|, learned for each head (Guo et al., 2019).

    w is never below 0 and b never above it, so that a position can be let look a little away from itself. Cost: T^2.
    """

    card: ClassVar = Card(
        "Gaussian Transformer: A Lightweight Approach for Natural Language Inference (Guo et al., 2019)",
        2019,
        "T^2",
        limits="far away is never looked at sharply",
        ordered=True,
        tier="B",
    )

    def __init__(self, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.spread, self.away = nn.Parameter(torch.full((heads,), 0.1)), nn.Parameter(torch.full((heads,), 0.1))

    def adds(self, b: Tensor, h: Tensor, i: Tensor, j: Tensor) -> Tensor:
        w, shift = self.spread.square()[self.place(h)], -self.away.square()[self.place(h)]
        return -(w * (i - j).square() + shift).abs()
