"""Luna: a short second sequence that each layer packs the first into, and unpacks it from."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar, cast

import torch
from torch import Tensor, nn

from heedful.attention import Across, Attention, CrossAttention, Everything, Join, Memory, Sight
from heedful.attention.card import Card
from heedful.attention.mechanisms import Softmax
from heedful.attention.mechanisms.mask_support import read_itself
from heedful.blocks.stacks.exchange import PLAIN, Exchange


class Luna(Exchange):
    """Each layer packs the sequence into `memory` states, looks at what was packed, and hands it on (Ma et al., 2021).

    What is packed is added to the states and normed for the next layer. Cost: T times memory. It cannot hide the
    future, for every packed state holds some of it, take a bias, or write token by token.
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
        later = len(self.blocks) - 1  # what the last layer packs is handed to none
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(later))

    def attend(
        self, number: int, attention: Attention, x: Tensor, sight: Sight, memory: Memory | None, told: dict[str, Any]
    ) -> Tensor:
        read_itself(sight, "luna", PLAIN)
        states = told.get("memory", self.memory.to(x.dtype).expand(len(x), -1, -1))
        here = sight.once("packed", lambda: Everything().over(states))
        pack = cast(CrossAttention, self.packs[number])
        seen = sight.once("pack", lambda: Sight(sight.mask, here.rows, sight.columns, sight.batch))
        keys, values = pack.project.answers(x, seen)
        packed = pack.join(pack.mechanism(pack.project.queries(states, here), keys, values, seen))
        if number < len(self.norms):
            told["memory"] = self.norms[number](states + packed)
        back = sight.once("unpack", lambda: Everything().across(packed, sight.rows))
        return attention.across(x, packed, (sight, here), back)
