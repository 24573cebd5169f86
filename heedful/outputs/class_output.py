"""Classes and numbers as answers: one for the whole sequence, or one for each of its members."""

from __future__ import annotations

import math
from typing import ClassVar

import torch
from torch import Tensor, nn

from heedful.attention import Padding
from heedful.attention.card import Card
from heedful.outputs.pools import AttentionPool

HEADS = 4  # of a pool by attention, or as many as divide the width


class Each(nn.Module):
    """An answer at every position: B T M -> B T C. `lengths` (B) says how many positions are no padding."""

    def __init__(self, width: int, size: int) -> None:
        super().__init__()
        self.matrix = nn.Linear(width, size)

    def forward(self, x: Tensor, lengths: Tensor) -> Tensor:
        return self.matrix(x)


class Mean(Each):
    """One answer of the mean over all positions, whatever their order: B T M -> B C."""

    def forward(self, x: Tensor, lengths: Tensor) -> Tensor:
        there = torch.arange(x.shape[1], device=x.device) < lengths[:, None]  # B T
        total = (x * there.unsqueeze(-1)).sum(1)
        return self.matrix(total / lengths[:, None].clamp(min=1).to(x.dtype))


class Attended(Each):
    """One answer of what a learned query takes of all positions: B T M -> B C (PMA: Lee et al., 2019). Cost: T."""

    card: ClassVar = Card(
        "Set Transformer: A Framework for Attention-based Permutation-Invariant Neural Networks (Lee et al., 2019)",
        2019,
        "T",
        limits="one query, and so one answer for the whole sequence; never causal",
        causal=False,
        tier="B",
    )

    def __init__(self, width: int, size: int) -> None:
        super().__init__(width, size)
        self.pool = AttentionPool(width, math.gcd(width, HEADS))

    def forward(self, x: Tensor, lengths: Tensor) -> Tensor:
        return self.matrix(self.pool(x, Padding(lengths)))


class First(Each):
    """One answer of the first position, as of a class token: B T M -> B C."""

    def forward(self, x: Tensor, lengths: Tensor) -> Tensor:
        return self.matrix(x[:, 0])
