"""Routing by agreement (Li et al., 2019): heads are heard as far as they agree."""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor, nn

from heedful.attention.card import Card


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
            made = squash((agreed.softmax(-1).unsqueeze(-1) * votes).sum(2))  # B T P D
            agreed = agreed + (votes * made.unsqueeze(2)).sum(-1)
        return self.matrix(made.flatten(2))


def squash(x: Tensor) -> Tensor:
    """The same direction, with a length that grows from 0 to 1."""
    square = x.square().sum(-1, keepdim=True)
    return x * square.clamp(min=1e-12).sqrt() / (1 + square)
