"""Sinkhorn attention: blocks of keys are sorted, softly, so that each block finds the one that it needs beside it."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn.functional import pad

from heedful.attention.card import Card
from heedful.attention.mechanism import Mechanism, repeat_kv
from heedful.attention.mechanisms.mask_support import read_itself
from heedful.attention.mechanisms.nystromformer import hidden_softmax
from heedful.attention.sight import Sight


class Sinkhorn(Mechanism):
    """Each block of `size` sees itself, and a mixture of all blocks that is nearly one of them (Tay et al., 2020).

    Scores between the means of blocks are made a matrix whose rows and columns sum to one, nearly a permutation, by
    dividing by rows and columns in turn (Sinkhorn, 1964); a learned matrix for each head says what is compared. Cost:
    T times size, and T^2 / size for the mixtures: T^1.5 where size is about the root of T. It cannot hide the future,
    for all blocks are sorted together, look across, or take a bias.
    """

    card: ClassVar = Card(
        "Sparse Sinkhorn Attention (Tay et al., 2020)",
        2020,
        "T size + T^2 / size",
        limits="never causal nor across; no bias; no masks but padding",
        causal=False,
        ordered=True,
    )

    def __init__(self, heads: int, width: int, size: int = 64, iterations: int = 5, temperature: float = 0.75) -> None:
        super().__init__()
        if size < 1 or iterations < 0 or not temperature > 0:
            raise ValueError(
                f"size {size}, iterations {iterations} and temperature {temperature} sort nothing; choose them above 0"
            )
        self.size, self.iterations, self.temperature = size, iterations, temperature
        self.compare = nn.Parameter(torch.eye(width).repeat(heads, 1, 1))

    def blocks(self, x: Tensor) -> Tensor:
        """B H T D -> B H N C D, the last block filled up with zeros."""
        return pad(x, (0, 0, 0, -x.shape[2] % self.size)).unflatten(2, (-(-x.shape[2] // self.size), self.size))

    def sorting(self, q: Tensor, k: Tensor, there: Tensor) -> Tensor:
        """How much of each block every block has beside it: B H N N, zero for blocks of padding alone."""
        count = there.sum(3).clamp(min=1)
        asked, met = ((x * there).sum(3) / count for x in (q, k))  # B H N D
        scores = asked @ self.compare.to(q.dtype) @ met.mT / (q.shape[-1] ** 0.5 * self.temperature)
        real = there.any(3)  # B|1 1 N 1
        mixed = hidden_softmax(scores, real.mT) * real
        for _ in range(self.iterations):
            for axis in (-2, -1):
                mixed = mixed / (total := mixed.sum(axis, keepdim=True)).masked_fill(total == 0, 1.0)
        return mixed

    def parts(self, q: Tensor, k: Tensor, there: Tensor) -> tuple[Tensor, Tensor]:
        """Weights of each block's rows for itself and for what stands beside it, B H N C 2C, and the sorting."""
        there = self.blocks(there)
        q, k = self.blocks(q), self.blocks(repeat_kv(k, q.shape[1])) * there
        mixed = self.sorting(q, k, there)
        beside = torch.einsum("bhnm,bhmcd->bhncd", mixed, k)
        scores = q @ torch.cat((k, beside), 3).mT / q.shape[-1] ** 0.5
        anywhere = (there.any(2, keepdim=True) & there.any(3, keepdim=True)).expand_as(there)
        return hidden_softmax(scores, torch.cat((there, anywhere), 3).mT), mixed

    def weights(self, q: Tensor, k: Tensor, sight: Sight) -> Tensor:
        there = read_itself(sight, "sinkhorn")
        turn, back = close_up(there, sight)
        weights, mixed = self.parts(turn(q), turn(k), turn(there))
        own, beside = weights.chunk(2, -1)
        count, length = mixed.shape[-1], q.shape[2]
        present = self.blocks(turn(there)).squeeze(-1)  # B|1 1 N C
        spread = torch.einsum("bhntc,bhnm->bhntmc", beside, mixed) * present[:, :, None, None]
        one = torch.eye(count, dtype=q.dtype, device=q.device)
        every = spread + torch.einsum("bhntc,nm->bhntmc", own, one)
        return back(back(every.flatten(4, 5).flatten(2, 3)[:, :, :length, :length]).mT).mT

    def forward(self, q: Tensor, k: Tensor, v: Tensor, sight: Sight) -> Tensor:
        there = read_itself(sight, "sinkhorn")
        turn, back = close_up(there, sight)
        weights, mixed = self.parts(turn(q), turn(k), turn(there))
        v = self.blocks(repeat_kv(turn(v), q.shape[1])) * self.blocks(turn(there))
        beside = torch.einsum("bhnm,bhmcd->bhncd", mixed, v)
        return back((weights @ torch.cat((v, beside), 3)).flatten(2, 3)[:, :, : q.shape[2]])


def close_up(there: Tensor, sight: Sight) -> tuple[Callable[[Tensor], Tensor], Callable[[Tensor], Tensor]]:
    """How rows (B H T D) close up, padding last, so that blocks are those of the sequence alone; and the way back."""
    if sight.counted:  # padding stands at the end
        return (lambda x: x), (lambda x: x)
    order = (~there).byte().argsort(dim=2, stable=True)  # B|1 1 T 1

    def along(index: Tensor) -> Callable[[Tensor], Tensor]:
        return lambda x: x.expand(len(index), *x.shape[1:]).gather(2, index.expand(-1, *x.shape[1:2], -1, x.shape[-1]))

    return along(order.expand(sight.batch, -1, -1, -1)), along(order.argsort(2).expand(sight.batch, -1, -1, -1))
