"""The base of stacks whose layers exchange something: they call the parts of their blocks' attention themselves."""

from __future__ import annotations

from functools import partial
from typing import Any, ClassVar

from torch import Tensor

from heedful.attention import Attention, Memory, Sight
from heedful.attention.card import Card
from heedful.attention.mechanisms.softmax import SoftmaxLike
from heedful.blocks.stack import Stack
from heedful.errors import Refusal

PLAIN = "model.stack=plain"  # which can what others refuse


class Exchange(Stack):
    """Blocks one after the other, each of which hears from those before it. A kind says what, in `attend`."""

    card: ClassVar[Card]

    def forward(self, x: Tensor, sight: Sight, *given: Any) -> Tensor:  # B T M -> B T M
        told: dict[str, Any] = {}  # of this forward
        for number, block in enumerate(self.blocks):
            here: Any = block
            x = here(x, sight, *given, attend=partial(self.attend, number, here.attention, told=told))
        return self.norm(x)

    def attend(
        self, number: int, attention: Attention, x: Tensor, sight: Sight, memory: Memory | None, told: dict[str, Any]
    ) -> Tensor:
        """What a block's attention gives, and what later ones are `told`: B T M -> B T M."""
        raise NotImplementedError


def scoring(attention: Attention, name: str) -> SoftmaxLike:
    """The mechanism of an attention, where it makes scores that can be handed on."""
    if not isinstance(attention.mechanism, SoftmaxLike):
        raise Refusal(f"{name} hands on scores, and {attention.mechanism.word} makes none; use softmax")
    return attention.mechanism
