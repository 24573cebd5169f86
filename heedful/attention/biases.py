"""Biases: what is added to a score by the distance of row and column."""

from __future__ import annotations

import math
from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn.functional import interpolate

from heedful.attention.card import Card
from heedful.attention.seeing import Bias


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


class Ways(Bias):
    """Numbers for each way from cell to cell of a grid, whose first token is no cell and has three more of its own.

    They are, last in the table: from it to a cell, from a cell to it, and to itself.
    """

    table: Tensor

    def __init__(self, table: Tensor, shape: tuple[int, int]) -> None:
        super().__init__()
        self.table, self.shape, self.heads = table, shape, table.shape[1]

    def adds(self, b: Tensor, h: Tensor, i: Tensor, j: Tensor) -> Tensor:
        rows, columns = self.shape
        down = (i - 1) // columns - (j - 1) // columns + rows - 1
        place = down * (2 * columns - 1) + (i - 1) % columns - (j - 1) % columns + columns - 1
        last = len(self.table)
        place = torch.where(j == 0, last - 2, torch.where(i == 0, last - 3, place))
        return self.table[torch.where((i == 0) & (j == 0), last - 1, place), self.place(h)]


class ClassTable(Bias):
    """Such numbers, learned for a grid of `shape` and resized to others (BEiT: Bao et al., 2022)."""

    def __init__(self, heads: int, shape: tuple[int, int]) -> None:
        super().__init__()
        self.heads, self.shape = heads, shape
        self.table = nn.Parameter(torch.randn((2 * shape[0] - 1) * (2 * shape[1] - 1) + 3, heads) * 0.02)

    def sized(self, shape: tuple[int, int]) -> Ways:
        """The numbers for a grid of another shape."""
        return Ways(self.table if shape == self.shape else self.resized(shape), shape)

    def fits(self, other: nn.Module) -> bool:
        """Whether another table, resized, could stand in the place of this one."""
        return isinstance(other, ClassTable) and self.heads == other.heads

    def resized(self, shape: tuple[int, int]) -> Tensor:
        """The table for a grid of another shape, between the numbers that were learned."""
        grid = self.table[:-3].T.unflatten(1, (2 * self.shape[0] - 1, 2 * self.shape[1] - 1))[None]
        made = interpolate(grid, size=(2 * shape[0] - 1, 2 * shape[1] - 1), mode="bilinear", align_corners=False)
        return torch.cat((made[0].flatten(1).T, self.table[-3:]))

    def adds(self, b: Tensor, h: Tensor, i: Tensor, j: Tensor) -> Tensor:
        return self.sized(self.shape).adds(b, h, i, j)
