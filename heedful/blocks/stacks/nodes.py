"""The base of stacks with global nodes: they stand before a sequence, and a rule says who sees them."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from heedful.attention import Longformer, Mask, Padding, Sight
from heedful.attention.mechanisms.mask_support import read_itself
from heedful.blocks.stacks.exchange import PLAIN, Exchange
from heedful.errors import Refusal


class WithNodes(Exchange):
    """Blocks over a sequence behind nodes that a kind makes of it; then the nodes are dropped."""

    name: str

    def laid(self, x: Tensor, there: Tensor, sight: Sight) -> tuple[Tensor, Sight]:
        """Nodes of a sequence (B T M), of which some are there (B T): B N M; and who sees whom, the nodes first."""
        raise NotImplementedError

    def forward(self, x: Tensor, sight: Sight, *given: Any) -> Tensor:
        there = read_itself(sight, self.name, PLAIN)[:, 0, :, 0].expand(len(x), -1)  # B T
        if any(one is not None for one in given):
            raise Refusal(f"{self.name} is for a sequence that looks at itself as a whole; use {PLAIN} elsewhere")
        made, seen = self.laid(x, there, sight)
        both = torch.cat((made, x), 1)
        for block in self.blocks:
            both = block(both, seen)
        return self.norm(both[:, made.shape[1] :])


class WithGlobal(WithNodes):
    """Nodes that see all and are seen by all; members see those less than `size` away too."""

    size: int

    def nodes(self, x: Tensor, there: Tensor) -> Tensor:
        """Nodes of a sequence (B T M), of which some are there (B T): B N M."""
        raise NotImplementedError

    def laid(self, x: Tensor, there: Tensor, sight: Sight) -> tuple[Tensor, Sight]:
        made = self.nodes(x, there)
        count = made.shape[1]
        mask: Mask = Longformer(self.size, everywhere=count)
        nodes = torch.arange(count, device=x.device).expand(len(x), -1)
        at = torch.cat((nodes, torch.where(there, sight.rows + count, -1)), 1)
        if not sight.counted:
            return made, mask.over(at, positions=at)
        for part in sight.mask.all_of():  # counted from the first node on, so that long ones need no T x T mask
            mask = mask & Padding(part.lengths + count) if isinstance(part, Padding) else mask
        return made, mask.over(at)
