"""Memory-compressed attention: keys and values in groups, each made one by a small kernel."""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor, nn

from heedful.attention.card import Card
from heedful.attention.mechanism import Mechanism, repeat_kv
from heedful.attention.mechanisms.mask_support import reading_of
from heedful.attention.mechanisms.nystromformer import hidden_softmax
from heedful.attention.sight import Sight


class MemoryCompressed(Mechanism):
    """Softmax over groups of `size` keys, each a mixture of its members, as is its value (Liu et al., 2018).

    The paper mixes by a strided convolution; here its kernel has a number for each head and place instead of a matrix,
    and starts as the mean, so that weights are weights of values. A group can be seen once all of it is past. Cost:
    T^2 / size. It cannot look at one member of a group, or at its own group where the future hides, and takes no bias.
    """

    card: ClassVar = Card(
        "Generating Wikipedia by Summarizing Long Sequences (Liu et al., 2018)",
        2018,
        "T^2 / size",
        limits="no bias; no masks but padding and causal; a causal row sees whole groups before it alone",
        ordered=True,
        tier="B",
    )

    def __init__(self, heads: int, size: int = 3) -> None:
        super().__init__()
        if size < 1:
            raise ValueError(f"groups of {size} hold nothing; choose 1 or more")
        self.size = size
        self.kernel = nn.Parameter(torch.full((2, heads, size), 1 / size))  # of keys, of values

    def mixtures(self, sight: Sight, dtype: torch.dtype) -> tuple[Tensor, Tensor, Tensor]:
        """How much of every column is in each group, of keys and of values, B|1 H T|1 N S, and which rows see it."""
        reading = reading_of(sight, "memory_compressed")
        at, there = sight.columns, reading.there.squeeze(1).squeeze(-1)  # B|1 S
        count = at.shape[-1] if sight.counted else int(at.max()) + 1
        groups = torch.arange(max(1, -(-count // self.size)), device=at.device)
        within = ((at.clamp(min=0)[:, None] // self.size == groups[:, None]) & there[:, None])[:, None, None]
        if sight.past is not None:  # rows of a tree have each their own
            within = within & sight.past.unsqueeze(3)
        of_keys, of_values = self.kernel.to(dtype)[:, :, at.clamp(min=0) % self.size].transpose(1, 2)  # B|1 H S
        seen = within.any(-1)  # B|1 1 T|1 N
        if reading.causal:
            seen = seen & ((groups + 1) * self.size - 1 <= sight.rows[:, None, :, None])
        return of_keys[:, :, None, None] * within, of_values[:, :, None, None] * within, seen

    def parts(self, q: Tensor, k: Tensor, sight: Sight) -> tuple[Tensor, Tensor]:
        """Weights of rows for groups, B H T 1 N, and what of each column is in a group's value, B|1 H T|1 N S."""
        of_keys, of_values, seen = self.mixtures(sight, q.dtype)
        groups = of_keys @ repeat_kv(k, q.shape[1]).unsqueeze(2)  # B H T|1 N D
        scores = q.unsqueeze(3) @ groups.mT / q.shape[-1] ** 0.5
        return hidden_softmax(scores, seen.unsqueeze(3)), of_values

    def weights(self, q: Tensor, k: Tensor, sight: Sight) -> Tensor:
        looked, of_values = self.parts(q, k, sight)
        return (looked @ of_values).squeeze(3)

    def forward(self, q: Tensor, k: Tensor, v: Tensor, sight: Sight) -> Tensor:
        looked, of_values = self.parts(q, k, sight)
        return (looked @ (of_values @ repeat_kv(v, q.shape[1]).unsqueeze(2))).squeeze(3)
