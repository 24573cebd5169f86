"""ETC: a long input beside a short global one, which is learned here."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

import torch
from torch import Tensor, nn

from heedful.attention.card import Card
from heedful.blocks.stacks.nodes import WithGlobal


class ETC(WithGlobal):
    """Global tokens of their own, `everywhere` of them, see all and are seen by all; others see `size` near ones.

    Extended Transformer Construction (Ainslie et al., 2020). The paper gives global tokens the structure of the input
    and every pair a label; here they are learned and the same for all. Cost: T. It cannot hide the future.
    """

    name = "etc"
    card: ClassVar = Card(
        "ETC: Encoding Long and Structured Inputs in Transformers (Ainslie et al., 2020)",
        2020,
        "T",
        limits="never causal; no bias; no masks but padding; global tokens know nothing of the input's structure",
        causal=False,
        ordered=True,
        tier="B",
    )

    def __init__(
        self,
        blocks: Iterable[nn.Module],
        norm: nn.Module | None = None,
        width: int = 1,
        size: int = 64,
        everywhere: int = 8,
    ) -> None:
        super().__init__(blocks, norm)
        if size < 1 or everywhere < 1:
            raise ValueError(f"size {size} and everywhere {everywhere} leave nothing to see; choose 1 or more of both")
        self.size, self.tokens = size, nn.Parameter(torch.randn(everywhere, width))

    def nodes(self, x: Tensor, there: Tensor) -> Tensor:
        return self.tokens.to(x.dtype).expand(len(x), -1, -1)
