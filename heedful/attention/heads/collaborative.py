"""Collaborative heads (Cordonnier et al., 2020): queries and keys that all heads share, each in its own mixture."""

from __future__ import annotations

from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from heedful.attention.card import Card
from heedful.attention.projections import MultiHead, split
from heedful.attention.sight import Sight


class Collaborative(MultiHead):
    """All heads share one projection of queries and of keys, of which each takes its own mixture of channels.

    Cordonnier et al. (2020): a head's score is the sum over channels of q m k, where m is the head's. Keys are the
    same for all heads; how many channels there are is the width of a head (`model.key`). Cost: that of the mechanism.
    """

    card: ClassVar = Card(
        "Multi-Head Attention: Collaborate Instead of Concatenate (Cordonnier et al., 2020)",
        2020,
        "T^2",
        limits="no groups; queries and keys have no norms of their own",
        tier="B",
    )

    def __init__(self, width: int, heads: int, groups: int | None = None, **given: Any) -> None:
        if groups not in (None, heads):
            raise ValueError(
                f"collaborative heads share their keys, and {groups} groups are asked for; leave groups out"
            )
        if given.get("norm") is not None:
            raise ValueError("collaborative heads mix channels, which a norm would undo; leave key_norm out")
        super().__init__(width, heads, **given)
        key = self.parts[0] // heads
        self.parts = [key, key, self.parts[2]]
        self.to_qkv = nn.Linear(width, sum(self.parts), bias=given.get("bias", True))
        self.mixing = nn.Parameter(1 + torch.randn(heads, 1, key) / 4)

    def forward(self, x: Tensor, sight: Sight) -> tuple[Tensor, Tensor, Tensor]:
        q, k, v = self.to_qkv(x).split_with_sizes(self.parts, -1)
        q, k = q.unsqueeze(1) * self.mixing.to(q.dtype), k.unsqueeze(1)  # B H T D, B 1 T D
        if self.position is not None:
            q, k = (self.position(one, sight.rows, sight) for one in (q, k))
        return q, k.expand_as(q), split(v, self.heads)
