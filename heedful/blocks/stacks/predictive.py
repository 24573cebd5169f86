"""Predictive attention: a convolution of the last layer's scores foretells where the next one looks."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.nn.functional import conv2d

from heedful.attention import Attention, Causal, Everything, Memory, Padding, Sight
from heedful.attention.card import Card
from heedful.attention.carried_scores import Carrying
from heedful.attention.mechanism import repeat_kv
from heedful.attention.mechanisms.mask_support import present
from heedful.blocks.stacks.exchange import Exchange, scoring
from heedful.errors import Refusal


class Predictive(Exchange):
    """Scores are mixed with the convolved scores of the layer before, half and half at first (Wang et al., 2021).

    The convolution is of 3 x 3 rows and columns, over all heads; its share is learned. Cost: T^2 in time and memory.
    It cannot hide the future, for a row's scores are made of those of the next row too, nor write token by token.
    """

    card: ClassVar = Card(
        "Predictive Attention Transformer: Improving Transformer with Attention Map Prediction (Wang et al., 2021)",
        2021,
        "T^2",
        limits="never causal; no masks but padding; T x S numbers for every head; softmax and its kin alone",
        causal=False,
        ordered=True,
        tier="B",
    )

    def __init__(self, blocks: Iterable[nn.Module], norm: nn.Module | None = None, heads: int = 1) -> None:
        super().__init__(blocks, norm)
        later = max(0, len(self.blocks) - 1)
        self.kernel = nn.Parameter(torch.randn(later, heads, heads, 3, 3) / (9 * heads) ** 0.5)
        self.share = nn.Parameter(torch.full((later,), 0.5))

    def attend(
        self, number: int, attention: Attention, x: Tensor, sight: Sight, memory: Memory | None, told: dict[str, Any]
    ) -> Tensor:
        if memory is not None or any(type(part) is Causal for part in sight.mask.all_of()):
            raise Refusal("predictive convolves scores over rows, the future too; use realformer where that hides")
        if any(type(part) not in (Everything, Padding) for part in sight.mask.all_of()):
            raise Refusal("predictive convolves scores over rows, hidden ones too; use realformer where masks hide")
        mechanism = scoring(attention, "predictive")
        q, k, v = attention.project(x, sight)
        own = mechanism.placed(q, repeat_kv(k, q.shape[1]), sight)
        given = self.foretold(number, told["scores"], own, sight) if number else torch.zeros_like(own)
        told["scores"] = own + given
        return attention.join(mechanism(q, k, v, Carrying(sight, given)))

    def foretold(self, number: int, before: Tensor, own: Tensor, sight: Sight) -> Tensor:
        """The scores that turn a layer's own into a mixture when they are added: B H T S."""
        seen = before.masked_fill(~(sight.dense & present(sight, sight.rows)), 0.0)
        share = self.share[number - 1].to(own.dtype)
        return share * (conv2d(seen, self.kernel[number - 1].to(own.dtype), padding=1) - own)
