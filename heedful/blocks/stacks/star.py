"""Star-Transformer: neighbours, and a relay in the middle that hears from all."""

from __future__ import annotations

from typing import ClassVar

from torch import Tensor

from heedful.attention.card import Card
from heedful.blocks.stacks.nodes import WithGlobal


class StarTransformer(WithGlobal):
    """Each position sees itself, its two neighbours and a relay node, which sees all of them (Guo et al., 2019).

    The relay begins as the mean of the sequence. The paper lets positions see their first embedding too, and the relay
    hear after them in each layer; here both look at once. Cost: T. It cannot hide the future, which the relay tells.
    """

    name, size = "star", 2
    card: ClassVar = Card(
        "Star-Transformer (Guo et al., 2019)",
        2019,
        "T",
        limits="never causal; no bias; no masks but padding; all that is far goes through one relay",
        causal=False,
        ordered=True,
        tier="B",
    )

    def nodes(self, x: Tensor, there: Tensor) -> Tensor:
        weight = there.unsqueeze(-1).to(x.dtype)
        return (x * weight).sum(1, keepdim=True) / weight.sum(1, keepdim=True).clamp(min=1)
