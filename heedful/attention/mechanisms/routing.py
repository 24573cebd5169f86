"""Routing attention: queries and keys meet where they are near the same centre."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

import torch
from torch import Tensor
from torch.nn.functional import normalize, pad

from heedful.attention.card import Card
from heedful.attention.mechanism import Mechanism, repeat_kv
from heedful.attention.mechanisms.mask_support import read_itself
from heedful.attention.mechanisms.nystromformer import hidden_softmax
from heedful.attention.mechanisms.running import taken_by_head
from heedful.attention.sight import Sight

FINE = 4096  # steps in which nearness is told, so that equals are equals whatever else stands beside them


class Routing(Mechanism):
    """Softmax within `clusters`: each centre has the queries and the keys that are nearest to it (Roy et al., 2021).

    A centre has as many of each as are its share of the sequence's own length, and a query that several centres have
    takes the mean of what it sees there; one that none has takes nothing. As it learns, a centre follows the queries
    and keys that are nearer to it than to any other, of which it keeps a moving average (`kept` of it at a step). Cost:
    T^1.5 where clusters are about the root of T. It cannot hide the future, for who is nearest depends on all of it,
    look across, or take a bias.
    """

    centres: Tensor
    heard: Tensor
    card: ClassVar = Card(
        "Efficient Content-Based Sparse Attention with Routing Transformers (Roy et al., 2021)",
        2021,
        "T^2 / clusters",
        limits="never causal nor across; no bias; no masks but padding",
        causal=False,
        ordered=True,
    )

    def __init__(self, heads: int, width: int, clusters: int = 16, kept: float = 0.999) -> None:
        super().__init__()
        if clusters < 1:
            raise ValueError(f"{clusters} clusters hold no token; choose 1 or more")
        if not 0 <= kept <= 1:
            raise ValueError(f"kept={kept} is no share of a centre; choose 0 to 1, such as 0.999")
        self.kept = kept
        self.register_buffer("centres", normalize(torch.randn(heads, clusters, width), dim=-1))
        # The sum of the directions that were nearest to each centre since the last step, and their number.
        self.register_buffer("heard", torch.zeros(heads, clusters, width + 1), persistent=False)

    def redraw(self, generator: torch.Generator | None = None) -> None:
        """Other centres."""
        self.centres.copy_(normalize(torch.randn(self.centres.shape, generator=generator), dim=-1))

    @torch.no_grad()
    def follow(self, together: Callable[[Tensor], Tensor]) -> None:
        ways, count = together(self.heard).split((self.centres.shape[-1], 1), -1)
        moved = self.centres.lerp(normalize(ways, dim=-1), 1 - self.kept)
        self.centres.copy_(torch.where(count > 0, normalize(moved, dim=-1), self.centres))
        self.heard.zero_()

    @torch.no_grad()
    def alike(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Which way queries or keys point, B H T D, and how near that is to each centre, B H K T."""
        with torch.autocast(x.device.type, enabled=False):  # in any precision the same
            ways = normalize(x.float(), dim=-1)
            return ways, normalize(self.centres.float(), dim=-1) @ ways.mT

    @torch.no_grad()
    def hear(self, ways: Tensor, like: Tensor, there: Tensor) -> None:
        """Adds each way that is there to what its nearest centre has heard."""
        own = like == like.amax(2, keepdim=True) if ways.shape[2] else like.bool()
        with torch.autocast(ways.device.type, enabled=False):
            self.heard += ((own & there.mT).to(ways.dtype) @ pad(ways, (0, 1), value=1.0)).sum(0)

    def nearest(self, like: Tensor, there: Tensor) -> tuple[Tensor, Tensor]:
        """Whom each centre has, and which of them count: B H K W both. A shorter sequence has fewer that count."""
        length, least = like.shape[3], torch.iinfo(torch.long).min // 2
        steps = (like * FINE).round().long() * length - torch.arange(length, device=like.device)  # of equals the first
        most = -(-length // like.shape[2])
        whom = steps.masked_fill(~there.mT, least).topk(most, dim=-1).indices
        share = -(-there.sum(2, keepdim=True) // like.shape[2])  # B|1 1 1 1
        return whom, (torch.arange(most, device=like.device) < share).expand_as(whom)

    def met(self, x: Tensor, there: Tensor) -> tuple[Tensor, Tensor]:
        """The same of queries or keys, which the centres hear of while they learn."""
        ways, like = self.alike(x)
        if self.training:
            self.hear(ways, like, there)
        return self.nearest(like, there)

    def weights(self, q: Tensor, k: Tensor, sight: Sight) -> Tensor:
        there, k = read_itself(sight, "routing"), repeat_kv(k, q.shape[1])
        nobody = torch.zeros(*q.shape[:2], self.centres.shape[1], q.shape[2], dtype=torch.bool, device=q.device)
        asks = nobody.scatter(-1, *self.nearest(self.alike(q)[1], there)).unsqueeze(-1)  # B H K T 1
        met = nobody.scatter(-1, *self.nearest(self.alike(k)[1], there)).unsqueeze(-2)  # B H K 1 T
        scores = (q @ k.mT / q.shape[-1] ** 0.5).unsqueeze(2)
        within = hidden_softmax(scores, met) * asks  # B H K T T
        return within.sum(2) / asks.sum(2).clamp(min=1)

    def forward(self, q: Tensor, k: Tensor, v: Tensor, sight: Sight) -> Tensor:
        there, (k, v) = read_itself(sight, "routing"), (repeat_kv(x, q.shape[1]) for x in (k, v))
        (rows, asks), (columns, met) = self.met(q, there), self.met(k, there)
        asked, keys, values = gather_rows(q, rows), gather_rows(k, columns), gather_rows(v, columns)
        scores = asked @ keys.mT / q.shape[-1] ** 0.5  # B H K W W
        seen = hidden_softmax(scores, met.unsqueeze(-2)) @ values * asks.unsqueeze(-1)
        at = rows.flatten(2).unsqueeze(-1)
        y = torch.zeros_like(v).scatter_add(2, at.expand(-1, -1, -1, v.shape[-1]), seen.flatten(2, 3))
        often = torch.zeros_like(v[..., :1]).scatter_add(2, at, asks.flatten(2).unsqueeze(-1).to(v.dtype))
        return y / often.clamp(min=1)


def gather_rows(x: Tensor, at: Tensor) -> Tensor:
    """The rows of x (B H T D) that each centre has (B H K W): B H K W D."""
    return taken_by_head(x, at.flatten(2)).unflatten(2, at.shape[2:])
