"""Positions of the cells of a grid, such as the patches of an image, added to them; any size and shape will do."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.functional import interpolate

from heedful.inputs.positions import frequencies

Shape = tuple[int, int]  # rows and columns


class GridPosition(nn.Module):
    """Tells tokens (B T M) where they stand: the last rows x columns of them are a grid's cells, row by row."""

    def forward(self, x: Tensor, shape: Shape) -> Tensor:
        raise NotImplementedError


class NoGridPosition(GridPosition):
    """Nothing: what follows takes the cells for a set."""

    def forward(self, x: Tensor, shape: Shape) -> Tensor:
        return x


class LearnedGrid(GridPosition):
    """A vector learned for each cell and each token before them; for other sizes the table of cells is resized.

    As the vision transformer has it (Dosovitskiy et al., 2021): by bicubic interpolation on the grid.
    """

    def __init__(self, shape: Shape, width: int, leading: int = 0) -> None:
        super().__init__()
        self.shape, self.leading = shape, leading
        self.table = nn.Parameter(torch.randn(leading + shape[0] * shape[1], width) * 0.02)

    def forward(self, x: Tensor, shape: Shape) -> Tensor:
        return x + (self.table if shape == self.shape else self.resized(shape))

    def fits(self, other: nn.Module) -> bool:
        """Whether another table, resized, could stand in the place of this one."""
        if not isinstance(other, LearnedGrid):
            return False
        return self.leading == other.leading and self.table.shape[1] == other.table.shape[1]

    def resized(self, shape: Shape) -> Tensor:
        """The table for a grid of another shape: T M."""
        first, cells = self.table[: self.leading], self.table[self.leading :]
        image = cells.T.unflatten(1, self.shape)[None]  # 1 M rows columns
        made = interpolate(image, size=shape, mode="bicubic", align_corners=False)
        return torch.cat((first, made[0].flatten(1).T))


class SineGrid(GridPosition):
    """Sines and cosines of the column in the first half of the channels, of the row in the second, added.

    In the order of He et al. (2022); tokens that stand nowhere on the grid get nothing.
    """

    def __init__(self, width: int) -> None:
        super().__init__()
        if width % 4:
            raise ValueError(f"sines of rows and columns want a width that 4 divides, and it is {width}; make it one")
        self.width = width

    def forward(self, x: Tensor, shape: Shape) -> Tensor:
        rows, columns = (torch.arange(n, device=x.device) for n in shape)
        exact = torch.promote_types(x.dtype, torch.float32)
        halves = [waves_apart(at, self.width // 2, exact) for at in (columns, rows)]
        across, down = halves[0][None].expand(*shape, -1), halves[1][:, None].expand(*shape, -1)
        cells = torch.cat((across, down), -1).flatten(0, 1).to(x.dtype)
        return x + torch.cat((cells.new_zeros(x.shape[1] - len(cells), self.width), cells))


def waves_apart(at: Tensor, width: int, dtype: torch.dtype) -> Tensor:
    """Sines of falling frequency, then cosines: T -> T width."""
    angle = at[:, None] * frequencies(width, dtype, at.device)
    return torch.cat((angle.sin(), angle.cos()), -1)
