"""The Image Transformer (Parmar et al., 2018): blocks with a memory, in one dimension and in two."""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor

from heedful.attention.card import Card
from heedful.attention.mask_and_bias import Mask
from heedful.attention.masks.parts import least, some


class Local(Mask):
    """The own block of `size` positions and `memory` before it, in one dimension (Parmar et al., 2018). Cost: T."""

    card: ClassVar = Card(
        "Image Transformer (Parmar et al., 2018)",
        2018,
        "T",
        limits="sees nothing farther than a block and its memory",
        ordered=True,
    )

    def __init__(self, size: int, memory: int | None = None) -> None:
        self.size, self.memory = least("local", size), size if memory is None else some("memory", memory)

    def sees(self, b: Tensor, h: Tensor, i: Tensor, j: Tensor) -> Tensor:
        start = i - i % self.size
        return (j >= start - self.memory) & (j < start + self.size)

    def near(self, rows: Tensor, length: int) -> Tensor | None:
        first, last = int(rows.min()) // self.size, int(rows.max()) // self.size
        return torch.arange(
            max(0, first * self.size - self.memory), min(length, (last + 1) * self.size), device=rows.device
        )


class Local2D(Mask):
    """On a grid with rows of `row`, the own square of `size` x `size` and `memory` around it (Parmar et al., 2018).

    The memory lies above and on both sides, as the paper's does. Cost: T.
    """

    card: ClassVar = Card(
        "Image Transformer (Parmar et al., 2018)",
        2018,
        "T",
        limits="for sequences that are grids with rows of one size; sees nothing farther than a square and its memory",
        ordered=True,
    )

    def __init__(self, size: int, row: int = 32, memory: int = 1) -> None:
        self.size, self.row, self.memory = least("local2d", size), least("a row", row), some("memory", memory)

    def sees(self, b: Tensor, h: Tensor, i: Tensor, j: Tensor) -> Tensor:
        down, right = (i // self.row) // self.size * self.size, (i % self.row) // self.size * self.size
        y, x = j // self.row - down, j % self.row - right
        return (y >= -self.memory) & (y < self.size) & (x >= -self.memory) & (x < self.size + self.memory)

    def near(self, rows: Tensor, length: int) -> Tensor | None:
        down, right = (at // self.size * self.size for at in (rows // self.row, rows % self.row))
        corner = (down * self.row + right).unique()[:, None, None]  # of each square that the rows stand in
        y = corner // self.row + torch.arange(-self.memory, self.size, device=rows.device)[:, None]
        x = corner % self.row + torch.arange(-self.memory, self.size + self.memory, device=rows.device)
        at = (y * self.row + x)[(y >= 0) & (x >= 0) & (x < self.row)].unique()
        return at[at < length]

    def order(self, length: int) -> Tensor | None:
        at = torch.arange(length)
        down, right = at // self.row // self.size, at % self.row // self.size
        return ((down * self.row + right) * length + at).argsort()
