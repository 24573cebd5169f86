"""Reformer: keys are sorted by a hash, so that like stands by like, and looked at in chunks."""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor
from torch.nn.functional import pad

from heedful.attention.card import Card
from heedful.attention.mechanism import Mechanism, repeat_kv
from heedful.attention.mechanisms.linear import divide_rows
from heedful.attention.mechanisms.mask_support import read_itself
from heedful.attention.mechanisms.nystromformer import hidden_softmax
from heedful.attention.mechanisms.running import exact, taken_by_head
from heedful.attention.sight import Sight

UNLIKED = -1e5  # the score of a position for itself: it is looked at only where nothing else can be


class Reformer(Mechanism):
    """Softmax among positions whose keys fall into the same chunk when sorted by hash (Kitaev et al., 2020).

    A hash is the direction, of `buckets`, that a random rotation turns a key nearest to; sorted by it, positions are
    cut into chunks of `size`, and each sees its own chunk and `back` before it. What `rounds` rotations see is taken
    together, and what several of them see counts once. Queries are to be the keys, so that a query falls where its
    like are; a position sees itself only where it sees nothing else. Cost: T times size and rounds, and a sort. It
    cannot hide the future, for where a chunk ends depends on all of it, look across, or take a bias.
    """

    directions: Tensor
    shares: ClassVar = True
    card: ClassVar = Card(
        "Reformer: The Efficient Transformer (Kitaev et al., 2020)",
        2020,
        "T log T",
        limits="never causal nor across; no bias; no masks but padding; queries are keys, without groups",
        causal=False,
        ordered=True,
    )

    def __init__(
        self, heads: int, width: int, buckets: int = 32, size: int = 64, rounds: int = 2, back: int = 1
    ) -> None:
        super().__init__()
        if min(buckets, size, rounds, back + 1) < 1:
            given = f"buckets {buckets}, size {size}, rounds {rounds} and back {back}"
            raise ValueError(f"{given} leave nothing to see; choose all of them above 0, and back 0 or more")
        self.size, self.back = size, back
        self.register_buffer("directions", torch.randn(rounds, heads, width, -(-buckets // 2)))

    def redraw(self, generator: torch.Generator | None = None) -> None:
        """Other rotations. Nothing else ever changes them."""
        self.directions.copy_(torch.randn(self.directions.shape, generator=generator))

    def orders(self, k: Tensor, there: Tensor) -> Tensor:
        """In each round, positions sorted by hash, padding last: R B H T."""
        with torch.autocast(k.device.type, enabled=False):  # in any precision the same
            turned = k.detach().float() @ self.directions.float().unsqueeze(1)  # R B H T D
        hashes = torch.cat((turned, -turned), -1).argmax(-1)
        last = 2 * self.directions.shape[-1]
        return torch.where(there.squeeze(-1), hashes, last).argsort(dim=-1, stable=True)

    def weights(self, q: Tensor, k: Tensor, sight: Sight) -> Tensor:
        there, k = read_itself(sight, "reformer"), repeat_kv(k, q.shape[1])
        chunk = self.orders(k, there).argsort(dim=-1) // self.size  # R B H T
        apart = chunk.unsqueeze(-1) - chunk.unsqueeze(-2)
        seen = ((apart >= 0) & (apart <= self.back)).any(0) & there.mT  # B H T T
        scores = q @ k.mT / q.shape[-1] ** 0.5
        scores = torch.where(torch.eye(q.shape[2], dtype=torch.bool, device=q.device), UNLIKED, scores)
        return hidden_softmax(scores, seen)

    def forward(self, q: Tensor, k: Tensor, v: Tensor, sight: Sight) -> Tensor:
        there, dtype = read_itself(sight, "reformer"), q.dtype
        with torch.autocast(q.device.type, enabled=False):
            q, k, v = (exact(repeat_kv(x, q.shape[1])) for x in (q, k, v))
            return self.looked(q, k, v, there).to(dtype)

    def looked(self, q: Tensor, k: Tensor, v: Tensor, there: Tensor) -> Tensor:
        """The output of `forward`: all rounds are measured by the greatest score that a row has in any of them."""
        orders = self.orders(k, there)
        chunk = (orders.argsort(dim=-1) // self.size).int().movedim(0, -1)  # B H T R
        there = there.expand(len(q), q.shape[1], -1, 1)
        rounds = []  # each with its scores, B H N C (back + 1)C
        for number, order in enumerate(orders):
            new = self.chunked(there, order), self.chunked(chunk[..., :number], order)
            rounds.append((order, self.scored(q, k, order).masked_fill(~self.seen(*new), -torch.inf)))
        most = torch.stack([self.home(scores.amax(-1, keepdim=True), order) for order, scores in rounds])
        most = most.amax(0).detach().clamp(min=torch.finfo(q.dtype).min)
        y, total = torch.zeros_like(v), torch.zeros_like(v[..., :1])
        for order, scores in rounds:
            weights = (scores - self.chunked(most, order)).exp()
            y = y + self.home(weights @ with_those_before(self.chunked(v, order), self.back), order)
            total = total + self.home(weights.sum(-1, keepdim=True), order)
        return divide_rows(y, total)

    def scored(self, q: Tensor, k: Tensor, order: Tensor) -> Tensor:
        """Scores of sorted positions for those in their chunk and in the chunks before it."""
        asked, keys = self.chunked(q, order), with_those_before(self.chunked(k, order), self.back)
        at = self.chunked(torch.arange(1, 1 + q.shape[2], device=q.device)[:, None].expand_as(q[..., :1]), order)
        whose = with_those_before(at, self.back)
        return (asked @ keys.mT / q.shape[-1] ** 0.5).masked_fill(at == whose.mT, UNLIKED)

    def seen(self, there: Tensor, before: Tensor) -> Tensor:
        """Which of them is there and was not seen in a round before, of the chunks there (B H N C R)."""
        apart = before.unsqueeze(4) - with_those_before(before, self.back).unsqueeze(3)  # B H N C (back + 1)C R
        return with_those_before(there, self.back).mT & ~((apart >= 0) & (apart <= self.back)).any(-1)

    def chunked(self, x: Tensor, order: Tensor) -> Tensor:
        """Sorted, and in chunks, the last of them filled up with zeros: B H T D -> B H N C D."""
        count = -(-x.shape[2] // self.size)
        beyond = (0, 0, 0, count * self.size - x.shape[2])
        return pad(taken_by_head(x, order), beyond).unflatten(2, (count, self.size))

    def home(self, x: Tensor, order: Tensor) -> Tensor:
        """The way back from `chunked`."""
        return taken_by_head(x.flatten(2, 3)[:, :, : order.shape[-1]], order.argsort(dim=-1))


def with_those_before(x: Tensor, back: int) -> Tensor:
    """Each chunk behind those before it, the first behind zeros: B H N C D -> B H N (back + 1)C D."""
    count = x.shape[2]
    return torch.cat([pad(x, (0, 0, 0, 0, n, 0))[:, :, :count] for n in range(back, -1, -1)], 3)
