"""The Sparse Transformer (Child et al., 2019): a window, and two ways to see beyond it."""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor

from heedful.attention.block_masks import SIDE
from heedful.attention.card import Card
from heedful.attention.mask_and_bias import Mask
from heedful.attention.masks.parts import Every, Turns, least, merge_turns

FEW = 2048  # columns: it takes less time to look at so many in vain than to put keys and values in order


class Window(Mask):
    """The `size` positions up to one's own, and as many after it where nothing else forbids (Child et al., 2019).

    Cost: T. It sees nothing farther than its size, a layer.
    """

    card: ClassVar = Card(
        "Generating Long Sequences with Sparse Transformers (Child et al., 2019)",
        2019,
        "T",
        limits="sees nothing farther than its size, a layer",
        ordered=True,
    )

    def __init__(self, size: int) -> None:
        if size < 1:
            raise ValueError(f"a window of {size} sees nothing; give it a size of 1 or more")
        self.size = size

    def sees(self, b: Tensor, h: Tensor, i: Tensor, j: Tensor) -> Tensor:
        return (i - j).abs() < self.size

    def near(self, rows: Tensor, length: int) -> Tensor | None:
        first, last = int(rows.min()) - self.size + 1, int(rows.max()) + self.size
        return torch.arange(max(0, first), min(length, last), device=rows.device)


class Strided(Turns):
    """Half of the heads see the last `size` positions, half every `size`-th (Child et al., 2019).

    One head alone sees both, as the paper's merged head does, by a mask of T^2. Cost: T^1.5 where size is about the
    root of T. Two layers of it reach every position.
    """

    card: ClassVar = Card(
        "Generating Long Sequences with Sparse Transformers (Child et al., 2019)",
        2019,
        "T^1.5",
        limits="made for data with a period, such as images and music",
        ordered=True,
    )

    def __init__(self, heads: int, size: int) -> None:
        super().__init__(heads, *merge_turns(heads, Window(least("strided", size)), Every(size)))


class Fixed(Mask):
    """The own block of `size` positions, and the last `summary` of every block (Child et al., 2019).

    Cost: T^1.5 where size is about the root of T. What is no summary of its block is seen within the block alone.
    """

    card: ClassVar = Card(
        "Generating Long Sequences with Sparse Transformers (Child et al., 2019)",
        2019,
        "T^1.5",
        limits="beyond its block a position is seen through the summaries alone",
        ordered=True,
    )

    def __init__(self, size: int, summary: int = 1) -> None:
        self.size, self.summary = least("fixed", size), least("a summary", summary)
        if summary > size:
            raise ValueError(f"a summary of {summary} is more than a block of {size}; make it less")

    def sees(self, b: Tensor, h: Tensor, i: Tensor, j: Tensor) -> Tensor:
        return (i // self.size == j // self.size) | (j % self.size >= self.size - self.summary)

    def near(self, rows: Tensor, length: int) -> Tensor | None:
        own = (rows // self.size).unique()[:, None] * self.size + torch.arange(self.size, device=rows.device)
        starts = torch.arange(0, length, self.size, device=rows.device)[:, None]
        summaries = starts + torch.arange(self.size - self.summary, self.size, device=rows.device)
        at = torch.cat((own.flatten(), summaries.flatten())).unique()
        return at[at < length]

    def gathered(self, length: int) -> Tensor | None:
        spans = length // self.size
        if min(length, spans * (self.summary + SIDE)) - spans * self.summary < FEW:
            return None
        at = torch.arange(length)
        summary = at % self.size >= self.size - self.summary
        return torch.cat((at[summary], at[~summary]))
