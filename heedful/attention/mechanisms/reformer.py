"""Reformer: keys are sorted by a hash, so that like stands by like, and looked at in chunks."""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor
from torch.nn.functional import pad

from heedful.attention.card import Card
from heedful.attention.mechanisms.mechanism import Mechanism, shared
from heedful.attention.mechanisms.reading import read_itself
from heedful.attention.mechanisms.running import taken_by_head
from heedful.attention.sight import Sight

UNLIKED = -1e5  # the score of a position for itself: it is looked at only where nothing else can be


class Reformer(Mechanism):
    """Softmax among positions whose keys fall into the same chunk when sorted by hash (Kitaev et al., 2020).

    A hash is the direction, of `buckets`, that a random rotation turns a key nearest to; sorted by it, positions are
    cut into chunks of `size`, and each sees its own chunk and `back` before it. What `rounds` rotations see is taken
    together: what is seen twice counts twice. Queries are to be the keys, so that a query falls where its like are;
    a position sees itself only where it sees nothing else. Cost: T times size and rounds, and a sort. It cannot hide
    the future, for where a chunk ends depends on all of it, look across, or take a bias.
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
        turned = k.detach() @ self.directions.to(k.dtype).unsqueeze(1)  # R B H T D
        hashes = torch.cat((turned, -turned), -1).argmax(-1)
        last = 2 * self.directions.shape[-1]
        return torch.where(there.squeeze(-1), hashes, last).argsort(dim=-1, stable=True)

    def weights(self, q: Tensor, k: Tensor, sight: Sight) -> Tensor:
        there, k = read_itself(sight, "reformer"), shared(k, q.shape[1])
        chunk = self.orders(k, there).argsort(dim=-1) // self.size  # R B H T
        apart = chunk.unsqueeze(-1) - chunk.unsqueeze(-2)
        often = ((apart >= 0) & (apart <= self.back) & there.mT).sum(0)  # B H T T
        scores = q @ k.mT / q.shape[-1] ** 0.5
        scores = torch.where(torch.eye(q.shape[2], dtype=torch.bool, device=q.device), UNLIKED, scores)
        blind = ~often.any(-1, keepdim=True)
        scores = (scores + often.to(q.dtype).clamp(min=1).log()).masked_fill((often == 0) & ~blind, -torch.inf)
        return scores.softmax(-1).masked_fill(blind, 0.0)

    def forward(self, q: Tensor, k: Tensor, v: Tensor, sight: Sight) -> Tensor:
        there, (k, v) = read_itself(sight, "reformer"), (shared(x, q.shape[1]) for x in (k, v))
        sums, parts = [], []
        for order in self.orders(k, there):
            place = order.argsort(dim=-1)
            asked, keys, values = (taken_by_head(x, order) for x in (q, k, v))
            y, total = self.round(asked, keys, values, order, there)
            sums.append(taken_by_head(total, place))
            parts.append(taken_by_head(y, place))
        share = torch.stack(sums)
        blind = (share == -torch.inf).all(0)
        share = share.masked_fill(blind, 0.0).softmax(0)
        return (torch.stack(parts) * share).sum(0).masked_fill(blind, 0.0)

    def round(
        self, q: Tensor, k: Tensor, v: Tensor, order: Tensor, there: Tensor
    ) -> tuple[Tensor, Tensor]:  # B H T E, B H T 1
        """What sorted positions see in their chunks, and the logarithm of what their weights are divided by."""
        count = -(-q.shape[2] // self.size)
        beyond = count * self.size - q.shape[2]
        seen = taken_by_head(there.expand(len(q), q.shape[1], -1, 1), order)
        q, k, v, seen = (pad(x, (0, 0, 0, beyond)).unflatten(2, (count, self.size)) for x in (q, k, v, seen))
        at = pad(order, (0, beyond), value=-1).unflatten(2, (count, self.size)).unsqueeze(-1)
        near, of_them, seen, whose = (with_those_before(x, self.back) for x in (k, v, seen, at))
        scores = (
            (q @ near.mT / q.shape[-1] ** 0.5).masked_fill(at == whose.mT, UNLIKED).masked_fill(~seen.mT, -torch.inf)
        )
        total = scores.logsumexp(-1, keepdim=True)
        weights = (scores - total.masked_fill(total == -torch.inf, 0.0)).exp()
        y, total = (x.flatten(2, 3)[:, :, : order.shape[-1]] for x in (weights @ of_them, total))
        return y, total


def with_those_before(x: Tensor, back: int) -> Tensor:
    """Each chunk behind those before it, the first behind zeros: B H N C D -> B H N (back + 1)C D."""
    count = x.shape[2]
    return torch.cat([pad(x, (0, 0, 0, 0, n, 0))[:, :, :count] for n in range(back, -1, -1)], 3)
