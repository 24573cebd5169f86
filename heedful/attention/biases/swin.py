"""The bias of Swin (Liu et al., 2021): learned numbers for the ways within a window."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from heedful.attention.seeing import Bias


class Table(Bias):
    """A learned number for each displacement on a grid of `shape`, read row by row (Swin: Liu et al., 2021)."""

    def __init__(self, heads: int, shape: tuple[int, ...]) -> None:
        super().__init__()
        self.heads, self.shape = heads, shape
        self.table = nn.Parameter(torch.randn(math.prod(2 * n - 1 for n in shape), heads) * 0.02)

    def adds(self, b: Tensor, h: Tensor, i: Tensor, j: Tensor) -> Tensor:
        place: Tensor | int = 0
        step = 1
        for n in reversed(self.shape):
            place = place + (i % n - j % n + n - 1) * step
            i, j, step = i // n, j // n, step * (2 * n - 1)
        return self.table[place, self.place(h)]
