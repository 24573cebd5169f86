"""What stacks share that put nodes of their own before a sequence, which see and are seen by a rule."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from heedful.attention import Mask, Sight
from heedful.attention.mechanisms.reading import read_itself
from heedful.blocks.stacks.exchange import Exchange


class WithNodes(Exchange):
    """Blocks over a sequence behind nodes that a kind makes of it, with the kind's mask; then the nodes are dropped."""

    name: str

    def nodes(self, x: Tensor, there: Tensor, at: Tensor) -> tuple[Tensor, Tensor]:
        """Nodes of a sequence (B T M), of which some are there (B T), and where they stand, -1 for none: B N M, B N.

        The sequence itself stands at `at` (B|1 T).
        """
        raise NotImplementedError

    def mask(self) -> Mask:
        """Who sees whom, by where they stand."""
        raise NotImplementedError

    def shifted(self, at: Tensor) -> Tensor:
        """Where the members of the sequence stand beside the nodes."""
        return at

    def forward(self, x: Tensor, sight: Sight, *given: Any) -> Tensor:
        there = read_itself(sight, self.name)[:, 0, :, 0].expand(len(x), -1)  # B T
        if any(one is not None for one in given):
            raise ValueError(f"{self.name} is for a sequence that looks at itself as a whole; use another stack here")
        made, at = self.nodes(x, there, sight.rows)
        places = torch.where(there, self.shifted(sight.rows), -1)
        both = torch.cat((made, x), 1)
        seen = self.mask().over(both, positions=torch.cat((at, places), 1))
        for block in self.blocks:
            both = block(both, seen)
        return self.norm(both[:, made.shape[1] :])


def mean_of(x: Tensor, there: Tensor) -> Tensor:
    """The mean of those that are there: B T M, B T -> B M."""
    weight = there.unsqueeze(-1).to(x.dtype)
    return (x * weight).sum(1) / weight.sum(1).clamp(min=1)
