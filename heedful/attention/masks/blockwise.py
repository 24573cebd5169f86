"""Blockwise attention (Qiu et al., 2020): blocks that see themselves."""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor

from heedful.attention.card import Card
from heedful.attention.mask_and_bias import Mask


class Blocks(Mask):
    """Blocks of `size` positions, each of which sees itself alone (Qiu et al., 2020). Cost: T.

    From Python a `layout` says which blocks see which: a boolean, blocks x blocks, True where the row's block may look.
    """

    card: ClassVar = Card(
        "Blockwise Self-Attention for Long Document Understanding (Qiu et al., 2020)",
        2020,
        "T",
        limits="sees nothing beyond its block",
        ordered=True,
    )

    def __init__(self, size: int, layout: Tensor | None = None) -> None:
        if size < 1:
            raise ValueError(f"a block of {size} positions sees nothing; give it a size of 1 or more")
        if layout is not None and (layout.dim() != 2 or layout.dtype != torch.bool):
            raise ValueError(f"a layout is a boolean, blocks x blocks, not {layout.dtype} with {layout.dim()} axes")
        self.size, self.layout = size, layout

    def sees(self, b: Tensor, h: Tensor, i: Tensor, j: Tensor) -> Tensor:
        i, j = i // self.size, j // self.size
        return i == j if self.layout is None else self.layout[i.clamp(min=0), j.clamp(min=0)]

    def near(self, rows: Tensor, length: int) -> Tensor | None:
        if self.layout is not None:
            return None
        first, last = int(rows.min()) // self.size, int(rows.max()) // self.size
        return torch.arange(first * self.size, min(length, (last + 1) * self.size), device=rows.device)
