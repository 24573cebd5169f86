"""Poolingformer: near in detail, then farther through means of neighbours."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

import torch
from torch import Tensor, nn

from heedful.attention import Attention, Memory, Sight, Window
from heedful.attention.card import Card
from heedful.attention.mechanisms.mask_support import read_itself


class Poolingformer(nn.Module):
    """Attention within a window of `size`, and upon it one within `far`, over means of `stride` (Zhang et al., 2021).

    What the two give is added. Cost: T times size and far / stride in the paper; T^2 / stride here, where every row
    has a mask over all means. It cannot hide the future, for a mean holds some of it, take a bias, or write token by
    token.
    """

    card: ClassVar = Card(
        "Poolingformer: Long Document Modeling with Pooling Attention (Zhang et al., 2021)",
        2021,
        "T^2 / stride",
        limits="never causal; no bias; no masks but padding; means, where the paper also tries convolutions",
        causal=False,
        ordered=True,
        tier="B",
    )

    def __init__(self, attention: Callable[[], Attention], size: int = 16, far: int = 64, stride: int = 4) -> None:
        super().__init__()
        if stride < 1:
            raise ValueError(f"a stride of {stride} takes no mean; choose 1 or more")
        self.window, self.farther, self.stride = Window(size), Window(far), stride
        self.near, self.wide = attention(), attention()

    def forward(self, x: Tensor, sight: Sight, memory: Memory | None = None) -> Tensor:  # B T M -> B T M
        there = read_itself(sight, "poolingformer")[:, 0, :, 0]  # B|1 T
        seen = sight.once(("near", self.window.size), lambda: sight.within(self.window))
        close = self.near(x, seen)
        q, k, v = self.wide.project(close, sight)
        mean, at = self.means(sight.columns, there)
        far = Sight(self.farther, sight.rows, at, sight.batch)
        mean = mean.to(x.dtype).unsqueeze(1)  # B|1 1 N T
        return close + self.wide.join(self.wide.mechanism(q, mean @ k, mean @ v, far))

    def means(self, at: Tensor, there: Tensor) -> tuple[Tensor, Tensor]:
        """The mean of each group of those that are there, as a matrix (B|1 N T), and where it begins, -1 for none."""
        groups = torch.arange(max(1, -(-at.shape[-1] // self.stride)), device=at.device)
        within = (at[:, None] // self.stride == groups[:, None]) & there[:, None]
        count = within.sum(-1)
        return within / count.clamp(min=1).unsqueeze(-1), torch.where(count > 0, groups * self.stride, -1)
