"""The mask of the Longformer (Beltagy et al., 2020): a window, and positions that all see."""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor

from heedful.attention.card import Card
from heedful.attention.mask_and_bias import Mask
from heedful.attention.masks.parts import least, some
from heedful.attention.masks.sparse import Window


class Longformer(Mask):
    """The `size` nearest on both sides, and the first `everywhere` positions, which see all and are seen by all.

    Beltagy et al. (2020); their projections of its own for global rows are not part of a mask. Cost: T.
    """

    card: ClassVar = Card(
        "Longformer: The Long-Document Transformer (Beltagy et al., 2020)",
        2020,
        "T",
        limits="global positions are the first ones and share the projections of all others",
        ordered=True,
    )

    def __init__(self, size: int, everywhere: int = 1) -> None:
        self.window, self.everywhere = Window(least("longformer", size)), some("everywhere", everywhere)

    def sees(self, b: Tensor, h: Tensor, i: Tensor, j: Tensor) -> Tensor:
        return self.window.sees(b, h, i, j) | (i < self.everywhere) | (j < self.everywhere)

    def near(self, rows: Tensor, length: int) -> Tensor | None:
        near, first = self.window.near(rows, length), torch.arange(min(self.everywhere, length), device=rows.device)
        return None if near is None or int(rows.min()) < self.everywhere else torch.cat((first, near)).unique()
