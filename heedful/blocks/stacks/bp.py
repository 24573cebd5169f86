"""BP-Transformer: near by tokens, far by spans that grow with the distance."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar, cast

import torch
from torch import Tensor, nn

from heedful.attention import Attention, Mask, Sight
from heedful.attention.card import Card
from heedful.blocks.stacks.nodes import WithNodes

LEVEL = 1 << 20  # nodes of each level stand beyond all positions of the one below


class Spans(Mask):
    """Positions of a tree over a sequence: level times LEVEL, and where the span begins; tokens are of level 0.

    A token sees itself and, on both sides, `size` nodes of each level, that of the tokens first: each level goes on
    where the one below it ended. A node that would lie half in what is seen already is seen as its other half, of the
    level below. So all that is not the token itself is seen once. A span sees its tokens and itself.
    """

    def __init__(self, size: int) -> None:
        self.size = size

    def sees(self, b: Tensor, h: Tensor, i: Tensor, j: Tensor) -> Tensor:
        i, j = i.clamp(min=0), j.clamp(min=0)
        level, other, start, begin = i // LEVEL, j // LEVEL, i % LEVEL, j % LEVEL
        node, below = begin >> other, 2 * self.size * ((1 << other) - 1)
        # The first node of the level below that is not seen yet, on the right and on the left; then of this level.
        after, before = (2 * start + 2 + below) >> other, (2 * start - 1 - below) >> other
        right, left = (after >> 1) + self.size, (before >> 1) - self.size
        near = (node >= (after + 1) >> 1) & (node < right + right % 2)
        near = near | ((node <= (before - 1) >> 1) & (node >= left + left % 2))
        inside = (other == 0) & (begin >> level == start >> level)
        return torch.where(level == 0, near | (i == j), inside | (i == j))


class BPTransformer(WithNodes):
    """A binary tree of spans over the sequence: a token sees what is near in detail and what is far as spans.

    Ye et al. (2019). What a token sees overlaps nowhere, and grows with the distance: `size` tokens on both sides, then
    as many spans of 2 positions, of 4, and so on. Spans begin as the mean of their tokens. Cost: T log T times size in
    the paper; T^2 here, by a mask. It cannot hide the future, which spans tell.
    """

    name = "bp"
    card: ClassVar = Card(
        "BP-Transformer: Modelling Long-Range Context via Binary Partitioning (Ye et al., 2019)",
        2019,
        "T^2",
        limits="never causal; no bias; no masks but padding; twice as many nodes as tokens",
        causal=False,
        ordered=True,
        tier="B",
    )

    def __init__(self, blocks: Iterable[nn.Module], norm: nn.Module | None = None, size: int = 2) -> None:
        super().__init__(blocks, norm)
        if size < 1:
            raise ValueError(f"size {size} leaves nothing to see; choose 1 or more")
        for block in self.blocks:
            looks = cast(Attention, block.attention).mechanism
            if looks.card.ordered:
                raise ValueError(
                    f"{looks.word} asks where everyone stands, and spans stand nowhere; use softmax, or another stack"
                )
        self.size = size

    def laid(self, x: Tensor, there: Tensor, sight: Sight) -> tuple[Tensor, Sight]:
        at, made, places = sight.rows, [x[:, :0]], [torch.where(there, sight.rows, -1)]
        level = 1
        while 1 << level < x.shape[1]:  # the span of the whole would be seen by nobody
            starts = torch.arange(0, x.shape[1], 1 << level, device=x.device)
            within = (at[:, None] >> level == starts[:, None] >> level) & there[:, None]  # B N T
            weight = within.to(x.dtype)
            made.append(weight @ x / weight.sum(-1, keepdim=True).clamp(min=1))
            places.insert(-1, torch.where(within.any(-1), level * LEVEL + starts, -1))
            level += 1
        everywhere = torch.cat(places, 1)
        return torch.cat(made, 1), Spans(self.size).over(everywhere, positions=everywhere)
