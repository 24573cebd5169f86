"""The bias of Swin (Liu et al., 2021): learned numbers for the ways within a window."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from heedful.attention.mask_and_bias import Bias


class Table(Bias):
    """A learned number for each displacement on a grid of `shape`, read row by row (Swin: Liu et al., 2021)."""

    def __init__(self, heads: int, shape: tuple[int, ...]) -> None:
        super().__init__()
        self.heads, self.shape = heads, shape
        self.table = nn.Parameter(torch.randn(math.prod(2 * n - 1 for n in shape), heads) * 0.02)

    def within(self, shape: tuple[int, ...]) -> Bias:
        """The numbers for the ways within a smaller grid, which are some of these."""
        return self if shape == self.shape else Within(self, shape)

    def adds(self, b: Tensor, h: Tensor, i: Tensor, j: Tensor) -> Tensor:
        return self.table[way(i, j, self.shape, self.shape), self.place(h)]


class Within(Bias):
    """The numbers of a table for the ways within a grid that is smaller than the table's own."""

    def __init__(self, whole: Table, shape: tuple[int, ...]) -> None:
        super().__init__()
        self.whole, self.shape, self.heads = whole, shape, whole.heads

    def adds(self, b: Tensor, h: Tensor, i: Tensor, j: Tensor) -> Tensor:
        return self.whole.table[way(i, j, self.shape, self.whole.shape), self.place(h)]


def way(i: Tensor, j: Tensor, shape: tuple[int, ...], whole: tuple[int, ...]) -> Tensor:
    """Where the way from j to i, two cells of a grid of `shape`, stands in a table for the larger grid `whole`."""
    place, step = torch.zeros_like(i), 1
    for n, most in zip(reversed(shape), reversed(whole), strict=True):
        place = place + (i % n - j % n + most - 1) * step
        i, j, step = i // n, j // n, step * (2 * most - 1)
    return place
