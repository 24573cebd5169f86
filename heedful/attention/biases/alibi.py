"""ALiBi (Press et al., 2022): a penalty on distance."""

from __future__ import annotations

import math
from typing import ClassVar

import torch
from torch import Tensor

from heedful.attention.card import Card
from heedful.attention.mask_and_bias import Bias


class ALiBi(Bias):
    """A penalty that grows with distance, at another slope for each head (Press et al., 2022). Cost: T^2."""

    card: ClassVar = Card(
        "Train Short, Test Long: Attention with Linear Biases (Press et al., 2022)",
        2022,
        "T^2",
        limits="far away is never looked at sharply",
        ordered=True,
    )
    slopes: Tensor

    def __init__(self, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.register_buffer("slopes", slopes(heads), persistent=False)

    def adds(self, b: Tensor, h: Tensor, i: Tensor, j: Tensor) -> Tensor:
        slopes = self.slopes.to(torch.promote_types(self.slopes.dtype, torch.float32))  # bfloat16 cannot count so far
        return -slopes[self.place(h)] * (i - j).abs()


def slopes(heads: int) -> Tensor:
    """The paper's geometric slopes; where heads is no power of two, those of the next ones fill the gaps."""
    power = 2 ** math.floor(math.log2(heads))
    first = 2.0 ** (-8.0 * torch.arange(1, power + 1) / power)
    between = 2.0 ** (-4.0 * torch.arange(1, 2 * (heads - power) + 1, 2) / power)
    return torch.cat((first, between))[:heads]
