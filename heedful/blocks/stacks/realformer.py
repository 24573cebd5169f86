"""RealFormer: scores are handed on from layer to layer, as states are."""

from __future__ import annotations

from typing import Any, ClassVar

from torch import Tensor

from heedful.attention import Attention, Memory, Sight
from heedful.attention.card import Card
from heedful.attention.carried_scores import Carrying
from heedful.attention.mechanism import repeat_kv
from heedful.blocks.stacks.exchange import Exchange, scoring


class RealFormer(Exchange):
    """Each layer adds the scores of the layer before to its own before softmax (He et al., 2021).

    Cost: T^2 in time and memory, for scores must be there to be handed on. With mechanisms that make scores alone.
    """

    card: ClassVar = Card(
        "RealFormer: Transformer Likes Residual Attention (He et al., 2021)",
        2021,
        "T^2",
        limits="T x S numbers for every head; softmax and its kin alone",
        tier="B",
    )

    def attend(
        self, number: int, attention: Attention, x: Tensor, sight: Sight, memory: Memory | None, told: dict[str, Any]
    ) -> Tensor:
        mechanism = scoring(attention, "realformer")
        q, k, v = attention.project(x, sight)
        k, v = (k, v) if memory is None else memory.keep(mechanism, k, v)
        before = told.get("scores")
        y = mechanism(q, k, v, sight if before is None else Carrying(sight, before))
        own = mechanism.placed(q, repeat_kv(k, q.shape[1]), sight)
        told["scores"] = own if before is None else own + before
        return attention.join(y)
