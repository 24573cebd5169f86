"""A stack strings blocks together. Kinds whose layers exchange something are stacks of their own."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from torch import Tensor, nn

from heedful.attention import Sight


class Stack(nn.Module):
    """Blocks one after the other, then a norm."""

    def __init__(self, blocks: Iterable[nn.Module], norm: nn.Module | None = None) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(blocks)
        self.norm = norm or nn.Identity()

    def forward(self, x: Tensor, sight: Sight, *given: Any) -> Tensor:  # B T M -> B T M
        for block in self.blocks:
            x = block(x, sight, *given)
        return self.norm(x)


class Again(nn.Module):
    """Groups of blocks, each used several times in a row, `depth` times in all, then a norm (Lan et al., 2020)."""

    def __init__(self, groups: Iterable[nn.Module], depth: int, norm: nn.Module | None = None) -> None:
        super().__init__()
        self.groups, self.depth = nn.ModuleList(groups), depth
        self.norm = norm or nn.Identity()

    def forward(self, x: Tensor, sight: Sight, *given: Any) -> Tensor:  # B T M -> B T M
        for layer in range(self.depth):
            x = self.groups[layer * len(self.groups) // self.depth](x, sight, *given)
        return self.norm(x)
