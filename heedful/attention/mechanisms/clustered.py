"""Clustered attention: queries that are alike look alike, and only one of them is asked."""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor
from torch.nn.functional import normalize

from heedful.attention.card import Card
from heedful.attention.mechanisms.mechanism import Mechanism, shared
from heedful.attention.mechanisms.nystromformer import hidden_softmax
from heedful.attention.mechanisms.reading import read_itself
from heedful.attention.mechanisms.running import taken_by_head
from heedful.attention.sight import Sight


class Clustered(Mechanism):
    """Softmax of the means of `clusters` of queries; each takes what its cluster's mean takes (Vyas et al., 2020).

    A query belongs to the nearest of directions that are drawn once; the paper finds clusters anew in every layer, by
    hashes and a few rounds of K-means. Cost: T times clusters. It cannot hide the future, for a mean holds some of it,
    look across, or take a bias.
    """

    centres: Tensor
    card: ClassVar = Card(
        "Fast Transformers with Clustered Attention (Vyas et al., 2020)",
        2020,
        "T",
        limits="never causal nor across; no bias; no masks but padding; clusters by directions that stay",
        causal=False,
        tier="B",
    )

    def __init__(self, heads: int, width: int, clusters: int = 16) -> None:
        super().__init__()
        if clusters < 1:
            raise ValueError(f"{clusters} clusters have nobody; choose 1 or more")
        self.register_buffer("centres", torch.randn(heads, clusters, width))

    def redraw(self, generator: torch.Generator | None = None) -> None:
        """Other directions. Nothing else ever changes them."""
        self.centres.copy_(torch.randn(self.centres.shape, generator=generator))

    def parts(self, q: Tensor, k: Tensor, sight: Sight) -> tuple[Tensor, Tensor]:
        """The cluster of each query, B H T, and what the mean of each cluster looks at, B H K T."""
        there = read_itself(sight, "clustered")
        with torch.autocast(q.device.type, enabled=False):  # in any precision the same
            near = (q.detach().float() @ normalize(self.centres.float(), dim=-1).mT).argmax(-1)
        whose = torch.zeros(*q.shape[:3], self.centres.shape[1], dtype=q.dtype, device=q.device)
        whose = whose.scatter(-1, near.unsqueeze(-1), 1.0) * there
        mean = whose.mT @ q / whose.sum(2).clamp(min=1).unsqueeze(-1)
        scores = mean @ shared(k, q.shape[1]).mT / q.shape[-1] ** 0.5
        return near, hidden_softmax(scores, there.mT)

    def weights(self, q: Tensor, k: Tensor, sight: Sight) -> Tensor:
        near, looked = self.parts(q, k, sight)
        return taken_by_head(looked, near)

    def forward(self, q: Tensor, k: Tensor, v: Tensor, sight: Sight) -> Tensor:
        near, looked = self.parts(q, k, sight)
        return taken_by_head(looked @ shared(v, q.shape[1]), near)
