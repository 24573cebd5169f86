"""What heads share, and how they come together again: projections and joins of papers, one class each."""

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


class Routed(nn.Module):
    """Heads vote for what each part of the output should be, and are heard as far as they agree (Li et al., 2019).

    Dynamic routing (Sabour et al., 2017): in `iterations` rounds a head's share in a part grows with how well its vote
    fits what the part came to; a part is squashed to a length below one. Then a matrix, as in a plain join. Cost: T
    times the square of the heads in each round, beside that of the mechanism.
    """

    card: ClassVar = Card(
        "Information Aggregation for Multi-Head Attention with Routing-by-Agreement (Li et al., 2019)",
        2019,
        "T heads^2",
        limits="a vote of every head for every part, beside what the mechanism costs",
        tier="B",
    )

    def __init__(self, heads: int, value: int, width: int, bias: bool = True, iterations: int = 3) -> None:
        super().__init__()
        if iterations < 1:
            raise ValueError(f"{iterations} iterations route nothing; choose 1 or more")
        self.iterations = iterations
        self.votes = nn.Parameter(torch.randn(heads, heads, value, value) / value**0.5)  # of each head, for each part
        self.matrix = nn.Linear(heads * value, width, bias=bias)

    def forward(self, y: Tensor) -> Tensor:  # B H T D -> B T M
        votes = torch.einsum("bhtd,hpde->bthpe", y, self.votes.to(y.dtype))
        agreed = torch.zeros_like(votes[..., 0])  # B T H P
        made = y
        for _ in range(self.iterations):
            made = squashed((agreed.softmax(-1).unsqueeze(-1) * votes).sum(2))  # B T P D
            agreed = agreed + (votes * made.unsqueeze(2)).sum(-1)
        return self.matrix(made.flatten(2))


def squashed(x: Tensor) -> Tensor:
    """The same direction, with a length that grows from 0 to 1."""
    square = x.square().sum(-1, keepdim=True)
    return x * square.clamp(min=1e-12).sqrt() / (1 + square)
