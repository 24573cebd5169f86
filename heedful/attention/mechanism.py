"""The base of attention mechanisms: `weights` is the definition, and `forward` the fast way to the same sum."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from typing import ClassVar

import torch
from torch import Tensor, nn

from heedful.attention.card import Card
from heedful.attention.kv_cache import Memory
from heedful.attention.sight import Sight


class Mechanism(nn.Module):
    """How weights are made and applied. The law: forward(q, k, v, sight) == weights(q, k, sight) @ v.

    q is B H T D, k is B G S D, v is B G S E, with G groups shared by H heads. A mechanism obeys every law under
    `tests/laws` or refuses at the call, in one sentence that names the cure.
    """

    card: ClassVar[Card]
    shares: ClassVar[bool] = False  # whether its keys are to be its queries, of one length
    sums: ClassVar[bool] = False  # whether what it remembers is a running sum, and no columns
    turns: ClassVar[bool] = True  # whether rotary positions may turn its keys
    length: int = sys.maxsize  # positions that it was made for

    @property
    def word(self) -> str:
        """Its name as words write it: `talking_heads`."""
        return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", type(self).__name__).lower()

    def weights(self, q: Tensor, k: Tensor, sight: Sight) -> Tensor:
        """The definition: how much each row takes of each column, B H T S."""
        raise NotImplementedError

    def rows(self, q: Tensor, k: Tensor, sight: Sight, rows: Tensor) -> Tensor:
        """The weights of a few rows, by index: B H R S."""
        return self.weights(q, k, sight)[:, :, rows]

    def forward(self, q: Tensor, k: Tensor, v: Tensor, sight: Sight) -> Tensor:
        """The sum that the weights make of the values: B H T E."""
        return self.weights(q, k, sight) @ repeat_kv(v, q.shape[1])

    def recall(self, q: Tensor, k: Tensor, v: Tensor, sight: Sight, memory: Memory) -> Tensor:
        """The same over all that the memory holds, into which the new keys and values are taken."""
        k, v = memory.keep(self, k, v)
        return self(q, k, v, sight)

    def follow(self, together: Callable[[Tensor], Tensor]) -> None:
        """Hears that a step was taken, for one that moves by what it saw; `together` sums over all processes."""
        return


def repeat_kv(k: Tensor, heads: int) -> Tensor:
    """Each group repeated for the heads that share it: B G S D -> B H S D."""
    return k if k.shape[1] == heads else k.repeat_interleave(heads // k.shape[1], 1)


def safe_softmax(scores: Tensor, sight: Sight) -> Tensor:
    """Softmax over what is seen. A row with nothing to see is zero, and so is its gradient."""
    hidden = ~sight.dense & ~sight.blind
    return scores.masked_fill(hidden, -torch.inf).softmax(-1).masked_fill(sight.blind, 0.0)
