"""Luna: a short second sequence that each layer packs the first into, and unpacks it from."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar, cast

import torch
from torch import Tensor, nn

from heedful.attention import Across, Attention, CrossAttention, Everything, Join, Memory, Sight
from heedful.attention.card import Card
from heedful.attention.mechanisms import Softmax
from heedful.attention.mechanisms.reading import read_itself
from heedful.blocks.stacks.exchange import Exchange


class Luna(Exchange):
    """Each layer packs the sequence into `memory` states and looks at those, then hands them on (Ma et al., 2021).

    Cost: T times memory. It cannot hide the future, for every packed state holds some of it, take a bias, or write
    token by token.
    """

    card: ClassVar = Card(
        "Luna: Linear Unified Nested Attention (Ma et al., 2021)",
        2021,
        "T",
        limits="never causal; no bias; no masks but padding",
        causal=False,
        tier="B",
    )

    def __init__(
        self,
        blocks: Iterable[nn.Module],
        norm: nn.Module | None = None,
        width: int = 1,
        heads: int = 1,
        memory: int = 16,
    ) -> None:
        super().__init__(blocks, norm)
        if memory < 1:
            raise ValueError(f"a memory of {memory} holds nothing; choose 1 or more")
        self.memory = nn.Parameter(torch.randn(memory, width))
        self.packs = nn.ModuleList(
            CrossAttention(Across(width, heads), Softmax(), Join(width, width)) for _ in self.blocks
        )
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in self.blocks)

    def attend(
        self, number: int, attention: Attention, x: Tensor, sight: Sight, memory: Memory | None, told: dict[str, Any]
    ) -> Tensor:
        read_itself(sight, "luna")
        packed = told.get("packed", self.memory.to(x.dtype).expand(len(x), -1, -1))
        here = sight.once("packed", lambda: Everything().over(packed))
        pack = cast(CrossAttention, self.packs[number])
        seen = sight.once("pack", lambda: Sight(sight.mask, here.rows, sight.columns, sight.batch))
        keys, values = pack.project.answers(x, seen)
        made = pack.join(pack.mechanism(pack.project.queries(packed, here), keys, values, seen))
        told["packed"] = packed = self.norms[number](packed + made)
        back = sight.once("unpack", lambda: Everything().across(packed, sight.rows))
        q = attention.project(x, sight)[0]
        _, k, v = attention.project(packed, here)
        return attention.join(attention.mechanism(q, k, v, back))
