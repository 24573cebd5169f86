"""The bias of T5 (Raffel et al., 2020): learned numbers for buckets of distances."""

from __future__ import annotations

import math
from typing import ClassVar

import torch
from torch import Tensor, nn

from heedful.attention.card import Card
from heedful.attention.mask_and_bias import Bias


class Buckets(Bias):
    """A learned number for each bucket of distances, exact if near, logarithmic if far (T5: Raffel et al., 2020).

    Cost: T^2. Distances beyond the farthest are all alike to it.
    """

    card: ClassVar = Card(
        "Exploring the Limits of Transfer Learning with a Unified Text-to-Text Transformer (Raffel et al., 2020)",
        2020,
        "T^2",
        limits="distances beyond the farthest are all alike",
        ordered=True,
    )

    def __init__(self, heads: int, buckets: int = 32, farthest: int = 128, both_ways: bool = True) -> None:
        super().__init__()
        exact = (buckets // 2 if both_ways else buckets) // 2
        if exact < 1:
            raise ValueError(f"{buckets} buckets are too few; choose {4 if both_ways else 2} or more")
        if farthest <= exact:
            raise ValueError(f"the nearest {exact} distances have buckets of their own; choose farthest above {exact}")
        self.heads, self.buckets, self.farthest, self.both_ways = heads, buckets, farthest, both_ways
        self.table = nn.Parameter(torch.randn(buckets, heads) * 0.02)

    def bucket(self, back: Tensor) -> Tensor:
        """The bucket of a distance `back` = i - j; what lies ahead has buckets of its own, or shares that of 0."""
        count, start = self.buckets, torch.zeros_like(back)
        if self.both_ways:
            count //= 2
            start, back = (back < 0) * count, back.abs()
        back = back.clamp(min=0)
        exact = count // 2
        far = (back.clamp(min=1).float() / exact).log() / math.log(self.farthest / exact) * (count - exact)
        return start + torch.where(back < exact, back, (exact + far.long()).clamp(max=count - 1))

    def adds(self, b: Tensor, h: Tensor, i: Tensor, j: Tensor) -> Tensor:
        return self.table[self.bucket(i - j), self.place(h)]
