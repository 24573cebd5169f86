"""Attention within windows of a grid, which every second layer shifts by half a window (Swin: Liu et al., 2021)."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import pad

from heedful.attention.attention import Attention
from heedful.attention.biases.swin_table import Table
from heedful.attention.grid.grid_sight import GridSight
from heedful.attention.kv_cache import Memory
from heedful.attention.mask_and_bias import Everything, Mask
from heedful.attention.mechanism import Mechanism
from heedful.attention.plain_masks import Documents
from heedful.attention.projections import Join, MultiHead
from heedful.attention.sight import Sight
from heedful.errors import Refusal


class WindowAttention(Attention):
    """Tokens of a grid look at those of their own window, with a learned number for each way from cell to cell.

    A shift moves the windows down and to the right by so many cells; what comes in from the far side is not seen.
    Grids that windows leave a rest of are filled up with zeros, which are looked at, as in the paper's own code. Where
    the smaller side of a grid is no larger than a window, windows are as large as that side and do not shift.
    """

    def __init__(self, project: MultiHead, mechanism: Mechanism, join: Join, window: int, shift: int = 0) -> None:
        super().__init__(project, mechanism, join)
        if not 0 <= shift < window:
            raise ValueError(f"a window of {window} cannot be shifted by {shift}; choose 0 up to {window - 1}")
        self.window, self.shift = window, shift
        self.bias = Table(project.heads, (window, window))

    def forward(self, x: Tensor, sight: Sight, memory: Memory | None = None) -> Tensor:  # B T M -> B T M
        if not isinstance(sight, GridSight) or sight.leading:
            raise Refusal("windows are parts of a grid, and this sequence is not a grid; use softmax")
        side = min(sight.shape)
        windows = Windows(side, 0) if side <= self.window else Windows(self.window, self.shift)
        cut = windows.cut(x.unflatten(1, sight.shape))
        seen = sight.once(("windows", windows.size, windows.shift), lambda: windows.seen(cut, sight.shape))
        bias = self.bias.within((windows.size, windows.size))
        return windows.joined(super().forward(cut, seen.plus(bias)), x.shape[0], sight.shape).flatten(1, 2)


class Windows:
    """The windows of a grid: how many cells they have along each side, and by how many they are shifted."""

    def __init__(self, size: int, shift: int) -> None:
        self.size, self.shift = size, shift

    def cut(self, grid: Tensor) -> Tensor:
        """The windows of a grid, each a sequence: B h w M -> (B windows) (window window) M."""
        size = self.size
        down, across = (-side % size for side in grid.shape[1:3])
        grid = pad(grid, (0, 0, 0, across, 0, down))
        if self.shift:
            grid = grid.roll((-self.shift, -self.shift), (1, 2))
        cells = grid.unflatten(2, (-1, size)).unflatten(1, (-1, size))  # B a p b p M
        return cells.transpose(2, 3).flatten(3, 4).flatten(0, 2)

    def joined(self, windows: Tensor, batch: int, shape: tuple[int, int]) -> Tensor:
        """The grid that was cut: (B windows) (window window) M -> B h w M."""
        size = self.size
        rows, columns = (-(-side // size) for side in shape)
        cells = windows.unflatten(1, (size, size)).unflatten(0, (batch, rows, columns))  # B a b p p M
        grid = cells.transpose(2, 3).flatten(3, 4).flatten(1, 2)
        if self.shift:
            grid = grid.roll((self.shift, self.shift), (1, 2))
        return grid[:, : shape[0], : shape[1]]

    def seen(self, windows: Tensor, shape: tuple[int, int]) -> Sight:
        """Who sees whom in each window: all, but for those that a shift brought in from the far side."""
        mask: Mask = Everything()
        if self.shift:
            sides = [-(-side // self.size) * self.size for side in shape]
            parts = [self.part(side, windows.device) for side in sides]
            ids = (parts[0][:, None] * 3 + parts[1])[None, :, :, None]  # 1 h w 1
            apart = self.cut(ids.roll((self.shift, self.shift), (1, 2))).squeeze(-1)
            mask = Documents(apart.repeat(len(windows) // len(apart), 1))
        return mask.over(windows)

    def part(self, side: int, device: torch.device) -> Tensor:
        """Which cells of a shifted side belong together: those before the last window, and its two parts."""
        at = torch.arange(side, device=device)
        return (at >= side - self.size).long() + (at >= side - self.shift).long()
