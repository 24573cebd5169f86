"""Clustered attention: queries that are alike look alike, and only one of them is asked."""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor

from heedful.attention.card import Card
from heedful.attention.mechanism import Mechanism, repeat_kv
from heedful.attention.mechanisms.mask_support import read_itself
from heedful.attention.mechanisms.nystromformer import hidden_softmax
from heedful.attention.mechanisms.running import taken_by_head
from heedful.attention.sight import Sight


class Clustered(Mechanism):
    """Softmax of the means of `clusters` of queries; each takes what its cluster's mean takes (Vyas et al., 2020).

    Clusters are found anew in every call, by `rounds` of K-means over hashes: on which side of `bits` random planes a
    query lies. They begin with queries at even distances along the sequence. Cost: T times clusters. It cannot hide
    the future, for a mean holds some of it, look across, or take a bias.
    """

    directions: Tensor
    card: ClassVar = Card(
        "Fast Transformers with Clustered Attention (Vyas et al., 2020)",
        2020,
        "T",
        limits="never causal nor across; no bias; no masks but padding; queries of one cluster look alike",
        causal=False,
        tier="B",
        ordered=True,
    )

    def __init__(self, heads: int, width: int, clusters: int = 16, bits: int = 63, rounds: int = 10) -> None:
        super().__init__()
        if min(clusters, bits, rounds + 1) < 1:
            given = f"{clusters} clusters by {bits} bits in {rounds} rounds"
            raise ValueError(f"{given} hold no token; choose 1 or more of each, and 0 rounds or more")
        self.clusters, self.rounds = clusters, rounds
        self.register_buffer("directions", torch.randn(heads, width, bits))

    def redraw(self, generator: torch.Generator | None = None) -> None:
        """Other planes. Nothing else ever changes them."""
        self.directions.copy_(torch.randn(self.directions.shape, generator=generator))

    @torch.no_grad()
    def found(self, q: Tensor, there: Tensor) -> Tensor:
        """The cluster of each query: B H T."""
        if not q.shape[2]:
            return torch.zeros(q.shape[:3], dtype=torch.long, device=q.device)
        with torch.autocast(q.device.type, enabled=False):  # in any precision the same
            return self.by_means(torch.where(q.float() @ self.directions.float() < 0, -1.0, 1.0), there)

    def by_means(self, hashes: Tensor, there: Tensor) -> Tensor:
        """The same by K-means over hashes (B H T N, each -1 or 1), whose sums are whole numbers."""
        centres = taken_by_head(hashes, self.first(there).expand(*hashes.shape[:2], -1))  # B H K N
        near = self.nearest(hashes, centres)
        for _ in range(self.rounds):
            of_each = members(near, self.clusters, there).mT.to(hashes.dtype)
            more = of_each @ hashes  # above 0: most of a cluster's queries lie on that side
            centres = torch.where(of_each.any(-1, keepdim=True), torch.where(more < 0, -1.0, 1.0), centres)
            near = self.nearest(hashes, centres)
        return near

    def first(self, there: Tensor) -> Tensor:
        """The places of queries at even distances among those that are there: B|1 1 K."""
        order = (~there[:, :, :, 0]).byte().argsort(dim=-1, stable=True)
        steps = torch.arange(self.clusters, device=there.device) * there.sum(2) // self.clusters
        return order.gather(-1, steps)

    def nearest(self, hashes: Tensor, centres: Tensor) -> Tensor:
        """The centre that shares most sides with each hash, of equals the first: B H T."""
        count = centres.shape[2]
        return ((hashes @ centres.mT) * count - torch.arange(count, device=hashes.device)).argmax(-1)

    def parts(self, q: Tensor, k: Tensor, sight: Sight) -> tuple[Tensor, Tensor]:
        """The cluster of each query, B H T, and what the mean of each cluster looks at, B H K T."""
        there = read_itself(sight, "clustered")
        near = self.found(q, there)
        whose = members(near, self.clusters, there).to(q.dtype)
        mean = whose.mT @ q / whose.sum(2).clamp(min=1).unsqueeze(-1)
        scores = mean @ repeat_kv(k, q.shape[1]).mT / q.shape[-1] ** 0.5
        return near, hidden_softmax(scores, there.mT)

    def weights(self, q: Tensor, k: Tensor, sight: Sight) -> Tensor:
        near, looked = self.parts(q, k, sight)
        return taken_by_head(looked, near)

    def forward(self, q: Tensor, k: Tensor, v: Tensor, sight: Sight) -> Tensor:
        near, looked = self.parts(q, k, sight)
        return taken_by_head(looked @ repeat_kv(v, q.shape[1]), near)


def members(near: Tensor, clusters: int, there: Tensor) -> Tensor:
    """Which of the queries that are there belong to which cluster: B H T K."""
    return (near.unsqueeze(-1) == torch.arange(clusters, device=near.device)) & there
