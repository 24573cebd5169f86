"""LazyFormer: weights are made in some layers and used again in those above."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar

from torch import Tensor, nn

from heedful.attention import Attention, Memory, Sight
from heedful.attention.card import Card
from heedful.blocks.stacks.exchange import Exchange


class LazyFormer(Exchange):
    """Of `every` layers in a row the first says where all of them look (Ying et al., 2021).

    The others have its queries, keys and mechanism, and values of their own. Cost: that of the mechanism; the paper
    saves the work of making weights, which fused kernels do anyway. Any mechanism, and any mask.
    """

    card: ClassVar = Card(
        "LazyFormer: Self Attention with Lazy Update (Ying et al., 2021)",
        2021,
        "T^2",
        limits="queries and keys of the layers above are made and not used",
        tier="B",
    )

    def __init__(self, blocks: Iterable[nn.Module], norm: nn.Module | None = None, every: int = 2) -> None:
        super().__init__(blocks, norm)
        if every < 1:
            raise ValueError(f"every {every} layers means no layer; choose 1 or more")
        self.every = every

    def attend(
        self, number: int, attention: Attention, x: Tensor, sight: Sight, memory: Memory | None, told: dict[str, Any]
    ) -> Tensor:
        q, k, v = attention.project(x, sight)
        if number % self.every == 0:
            told["first"] = attention.mechanism, q, k
        mechanism, q, k = told["first"]
        y = mechanism(q, k, v, sight) if memory is None else mechanism.recall(q, k, v, sight, memory)
        return attention.join(y)
