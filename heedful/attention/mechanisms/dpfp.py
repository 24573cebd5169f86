"""Fast weights: what a key stood for is taken out before its new value is written, by the delta rule."""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor
from torch.linalg import solve, solve_triangular
from torch.nn.functional import pad

from heedful.attention.card import Card
from heedful.attention.mechanism import repeat_kv
from heedful.attention.mechanisms.mask_support import reading_of
from heedful.attention.mechanisms.running import Given, Running, chunks, earlier, exact
from heedful.attention.sight import Sight

CHUNK = 64  # keys that are written at once: their corrections of one another are one triangular system
FEW = 8  # chunks that a GPU goes through one by one; more are taken in pairs


class DPFP(Running):
    """A memory of F x E that is written by the delta rule, with features of its own (Schlag et al., 2021).

    Each key's old value is read and moved towards the new one by a share, which the last channel of the key says
    through a sigmoid. Features are products of neighbours among the signed channels, `order` times as many as those.
    Written in chunks (Yang et al., 2024), one after the other, or by pairs and pairs of pairs on a GPU. Cost: T, in
    time and memory; a new token costs the same however many came before. It writes in the order of time even where
    nothing is hidden. It takes no bias, and hides padding and the future alone. Models refuse rotary positions with it:
    they would turn the share too, which is no direction.
    """

    card: ClassVar = Card(
        paper="Linear Transformers Are Secretly Fast Weight Programmers (Schlag et al., 2021)",
        year=2021,
        cost="T",
        limits="reads in the order of time; no bias; no masks but padding and causal; not with rotary positions",
        ordered=True,
    )

    turns: ClassVar[bool] = False

    def __init__(self, width: int, order: int = 1) -> None:
        super().__init__()
        if width < 2 or not 0 < order < 2 * (width - 1):
            raise ValueError(
                f"a head of {width} channels has no products of order {order} beside its gate; widen it or choose 1"
            )
        self.order = order

    def features(self, x: Tensor) -> Tensor:
        """Products of channels relu(x, -x) with their neighbours, divided by their sum; the last channel is no part."""
        x = x[..., :-1]
        signed = torch.cat((x, -x), -1).relu()
        products = torch.cat([signed * signed.roll(n, -1) for n in range(1, self.order + 1)], -1)
        return products / (products.sum(-1, keepdim=True) + 1e-6)

    def share(self, k: Tensor) -> Tensor:
        """How far a key's value is moved: B G S 1."""
        return k[..., -1:].sigmoid()

    def weights(self, q: Tensor, k: Tensor, sight: Sight) -> Tensor:
        there, dtype = reading_of(sight, self.word).there, q.dtype
        q, k = exact(q), repeat_kv(exact(k), q.shape[1])
        asked, keys, share = self.features(q), self.features(k), self.share(k) * there
        one = torch.eye(k.shape[2], dtype=q.dtype, device=q.device)
        mended = solve(one + share * (keys @ keys.mT * earlier(sight.columns)), share * one)
        return (asked @ keys.mT * sight.dense @ mended).to(dtype)

    def given(self, q: Tensor, k: Tensor, v: Tensor, there: Tensor) -> Given:
        written = self.features(exact(k)), exact(v), self.share(exact(k)) * there
        return self.features(exact(q)), *(repeat_kv(x, q.shape[1]) for x in written)

    def added(self, given: Given, past: Tensor | None) -> Tensor:
        return self.passed(given, past)[-1]

    def written(self, given: Given) -> Tensor:
        return self.added(given, None)

    def run(self, given: Given, past: Tensor | None = None) -> tuple[Tensor, Tensor]:
        q, k, states, news, after = self.passed(given, past)
        y = q @ states + (q @ k.mT).tril() @ news
        return y.flatten(2, 3)[:, :, : given[0].shape[2]], after

    def passed(self, given: Given, past: Tensor | None) -> tuple[Tensor, ...]:
        """Queries and keys in chunks, the memory before each chunk, what it writes, and the memory after all of them.

        In pairs a chunk has a matrix F x F, and so is the longer the larger F is.
        """
        features, paired = given[1].shape[-1], pays_in_pairs(given[1])
        size = CHUNK * -(-features // (2 * CHUNK)) if paired else CHUNK
        q, k, v, share = (chunks(x, size) for x in given)
        one = torch.eye(k.shape[3], dtype=k.dtype, device=k.device)
        mended = one + (share * (k @ k.mT)).tril(-1)
        news = solve_triangular(mended, share * torch.cat((v, k), -1), upper=False, unitriangular=True)
        values, keys = news.split((v.shape[-1], features), -1)
        first = k.new_zeros(*k.shape[:2], features, v.shape[-1]) if past is None else past
        return q, k, *(in_pairs if paired else one_by_one)(k, values, keys, first)


def pays_in_pairs(k: Tensor) -> bool:
    """Whether chunks are many, and waited for one by one: a GPU is told each step of a loop anew."""
    return k.is_cuda and k.shape[2] > FEW * CHUNK


def one_by_one(k: Tensor, values: Tensor, keys: Tensor, state: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Each chunk (k, keys: B H N C F, values: B H N C E) writes into the memory (B H F E) that the last one left."""
    states, news = [], []
    # Unbound once, and not cut out one by one: the gradient of a cut is as large as what it was cut out of.
    for own, value, key in zip(*(x.unbind(2) for x in (k, values, keys)), strict=True):
        states.append(state)
        news.append(value - key @ state)
        state = state + own.mT @ news[-1]
    return torch.stack(states, 2), torch.stack(news, 2), state


def in_pairs(k: Tensor, values: Tensor, keys: Tensor, first: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The same in fewer and larger steps: a chunk turns the memory by a matrix F x F and adds to it."""
    turn, add = torch.eye(k.shape[-1], dtype=k.dtype, device=k.device) - k.mT @ keys, k.mT @ values
    states = before(turn, add, first)
    return states, values - keys @ states, turn[:, :, -1] @ states[:, :, -1] + add[:, :, -1]


def before(turn: Tensor, add: Tensor, first: Tensor) -> Tensor:
    """The memory before each step from it to turn @ memory + add: two of them are one such step (Blelloch, 1990)."""
    count = turn.shape[2]
    if count == 1:
        return first.unsqueeze(2)
    (turn, then), (add, more) = pairs(turn), pairs(add)
    even = before(then @ turn, then @ add + more, first)
    states = torch.stack((even, turn @ even + add), 3).flatten(2, 3)
    return states[:, :, :count] if count % 2 else states


def pairs(x: Tensor) -> tuple[Tensor, ...]:
    """The first and the second of every two: B H N F E, twice. The last may be alone; what follows it is not asked."""
    return (pad(x, (0, 0, 0, 0, 0, 1)) if x.shape[2] % 2 else x).unflatten(2, (-1, 2)).unbind(3)
