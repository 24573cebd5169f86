"""The bias of BEiT (Bao et al., 2022): learned numbers for the ways on a grid, whose first token is no cell."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.functional import interpolate

from heedful.attention.mask_and_bias import Bias


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
