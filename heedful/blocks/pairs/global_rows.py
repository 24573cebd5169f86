"""Longformer as its paper has it: global rows look with projections of their own."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

import torch
from torch import Tensor, nn

from heedful.attention import Attention, Longformer, Memory, Sight
from heedful.attention.card import Card


class GlobalRows(nn.Module):
    """Longformer whose first `everywhere` rows have queries, keys and values of their own (Beltagy et al., 2020).

    All others see the `size` nearest on both sides and the global positions. Both share what brings heads together.
    Cost: T; as it is written here the global projections are made for all rows.
    """

    card: ClassVar = Card(
        "Longformer: The Long-Document Transformer (Beltagy et al., 2020)",
        2020,
        "T",
        limits="global positions are the first ones; all rows are asked twice",
        ordered=True,
        tier="B",
    )

    def __init__(self, attention: Callable[[], Attention], size: int, everywhere: int = 1) -> None:
        super().__init__()
        self.mask, self.everywhere = Longformer(size, everywhere), everywhere
        self.near, whole = attention(), attention()
        self.project, self.mechanism = whole.project, whole.mechanism

    def forward(self, x: Tensor, sight: Sight, memory: Memory | None = None) -> Tensor:  # B T M -> B T M
        seen = sight.once(("longformer", self.mask.window.size, self.everywhere), lambda: sight.within(self.mask))
        made = []
        for project, mechanism in ((self.near.project, self.near.mechanism), (self.project, self.mechanism)):
            q, k, v = project(x, seen)
            made.append(mechanism(q, k, v, seen) if memory is None else mechanism.recall(q, k, v, seen, memory))
        first = (sight.rows < self.everywhere)[:, None, :, None]
        return self.near.join(torch.where(first, made[1], made[0]))
