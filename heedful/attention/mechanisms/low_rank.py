"""Low-rank and locality-constrained attention: far away by a few channels, near by all of them."""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor, nn

from heedful.attention.card import Card
from heedful.attention.mechanism import Mechanism, repeat_kv
from heedful.attention.mechanisms.nystromformer import hidden_softmax
from heedful.attention.sight import Sight


class LowRank(Mechanism):
    """The mean of two softmaxes: over all by `rank` channels, and within a window of `size` by all (Guo et al., 2019).

    Most of what far positions say of one another has a low rank, the paper finds, and what is near needs the rest.
    Cost: T^2, as it is written here.
    """

    card: ClassVar = Card(
        "Low-Rank and Locality Constrained Self-Attention for Sequence Modeling (Guo et al., 2019)",
        2019,
        "T^2",
        limits="two attentions for one; half of the weight is always near",
        ordered=True,
        tier="B",
    )

    def __init__(self, heads: int, width: int, rank: int = 8, size: int = 16) -> None:
        super().__init__()
        if rank < 1 or size < 1:
            raise ValueError(f"rank {rank} and size {size} leave nothing to look at; choose 1 or more of both")
        self.size = size
        self.narrow = nn.Parameter(torch.randn(2, heads, width, rank) / width**0.5)  # of queries, of keys

    def narrowed(self, q: Tensor, k: Tensor) -> tuple[Tensor, Tensor]:
        """Queries and keys by a few channels: B H T R each."""
        of_queries, of_keys = self.narrow.to(q.dtype)
        return q @ of_queries, repeat_kv(k, q.shape[1]) @ of_keys

    def near(self, sight: Sight) -> Tensor:
        """What is seen and near: B|1 H|1 T S."""
        return sight.dense & ((sight.rows[:, None, :, None] - sight.columns[:, None, None]).abs() < self.size)

    def weights(self, q: Tensor, k: Tensor, sight: Sight) -> Tensor:
        near, both = sight.once(("near", self.size), lambda: self.near(sight)), []
        for asked, met, seen in ((*self.narrowed(q, k), sight.dense), (q, repeat_kv(k, q.shape[1]), near)):
            scores = asked @ met.mT / asked.shape[-1] ** 0.5
            scores = scores if sight.scores is None else scores + sight.scores.to(scores.dtype)
            both.append(hidden_softmax(scores, seen))
        return (both[0] + both[1]) / 2

    def rows(self, q: Tensor, k: Tensor, sight: Sight, rows: Tensor) -> Tensor:
        return self.weights(q[:, :, rows], k, sight.at(rows))
