"""Routing attention: queries and keys meet where they are near the same centre."""

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

FINE = 4096  # steps in which nearness is told, so that equals are equals whatever else stands beside them


class Routing(Mechanism):
    """Softmax within `clusters`: each centre has the queries and the keys that are nearest to it (Roy et al., 2021).

    A centre has as many of each as are its share of the sequence's own length, and a query that several centres have
    takes the mean of what it sees there; one that none has takes nothing. Centres are drawn once and stay; the paper
    moves them after the keys as it trains. Cost: T^1.5 where clusters are about the root of T. It cannot hide the
    future, for who is nearest depends on all of it, look across, or take a bias.
    """

    centres: Tensor
    card: ClassVar = Card(
        "Efficient Content-Based Sparse Attention with Routing Transformers (Roy et al., 2021)",
        2021,
        "T^2 / clusters",
        limits="never causal nor across; no bias; no masks but padding; centres stay where they were drawn",
        causal=False,
        ordered=True,
    )

    def __init__(self, heads: int, width: int, clusters: int = 16) -> None:
        super().__init__()
        if clusters < 1:
            raise ValueError(f"{clusters} clusters have nobody; choose 1 or more")
        self.register_buffer("centres", torch.randn(heads, clusters, width))

    def redraw(self, generator: torch.Generator | None = None) -> None:
        """Other centres. Nothing else ever changes them."""
        self.centres.copy_(torch.randn(self.centres.shape, generator=generator))

    def nearest(self, x: Tensor, there: Tensor) -> tuple[Tensor, Tensor]:
        """Whom each centre has, and which of them count: B H K W both. A shorter sequence has fewer that count."""
        with torch.autocast(x.device.type, enabled=False):  # in any precision the same
            like = normalize(self.centres.float(), dim=-1) @ normalize(x.detach().float(), dim=-1).mT  # B H K T
        length, least = like.shape[3], torch.iinfo(torch.long).min // 2
        steps = (like * FINE).round().long() * length - torch.arange(length, device=x.device)  # of equals the first
        most = -(-length // like.shape[2])
        whom = steps.masked_fill(~there.mT, least).topk(most, dim=-1).indices
        share = -(-there.sum(2, keepdim=True) // like.shape[2])  # B|1 1 1 1
        return whom, (torch.arange(most, device=x.device) < share).expand_as(whom)

    def weights(self, q: Tensor, k: Tensor, sight: Sight) -> Tensor:
        there, k = read_itself(sight, "routing"), shared(k, q.shape[1])
        nobody = torch.zeros(*q.shape[:2], self.centres.shape[1], q.shape[2], dtype=torch.bool, device=q.device)
        asks = nobody.scatter(-1, *self.nearest(q, there)).unsqueeze(-1)  # B H K T 1
        met = nobody.scatter(-1, *self.nearest(k, there)).unsqueeze(-2)  # B H K 1 T
        scores = (q @ k.mT / q.shape[-1] ** 0.5).unsqueeze(2)
        within = hidden_softmax(scores, met) * asks  # B H K T T
        return within.sum(2) / asks.sum(2).clamp(min=1)

    def forward(self, q: Tensor, k: Tensor, v: Tensor, sight: Sight) -> Tensor:
        there, (k, v) = read_itself(sight, "routing"), (shared(x, q.shape[1]) for x in (k, v))
        (rows, asks), (columns, met) = self.nearest(q, there), self.nearest(k, there)
        asked, keys, values = gathered(q, rows), gathered(k, columns), gathered(v, columns)
        scores = asked @ keys.mT / q.shape[-1] ** 0.5  # B H K W W
        seen = hidden_softmax(scores, met.unsqueeze(-2)) @ values * asks.unsqueeze(-1)
        at = rows.flatten(2).unsqueeze(-1)
        y = torch.zeros_like(v).scatter_add(2, at.expand(-1, -1, -1, v.shape[-1]), seen.flatten(2, 3))
        often = torch.zeros_like(v[..., :1]).scatter_add(2, at, asks.flatten(2).unsqueeze(-1).to(v.dtype))
        return y / often.clamp(min=1)


def gathered(x: Tensor, at: Tensor) -> Tensor:
    """The rows of x (B H T D) that each centre has (B H K W): B H K W D."""
    return taken_by_head(x, at.flatten(2)).unflatten(2, at.shape[2:])
