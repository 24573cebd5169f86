"""Pools: many positions become one vector, of which an answer is made."""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor, nn

from heedful.attention import Across, Context, CrossAttention, Everything, Join, Mask
from heedful.attention.mechanisms import Softmax

ALL = Everything()


class FirstPool(nn.Module):
    """The first position: the class token, which has gathered what it needs (Devlin et al., 2019)."""

    times: ClassVar[int] = 1  # the model's width that its vector has

    def __init__(self, width: int, heads: int, leading: int = 1) -> None:
        super().__init__()

    def forward(self, x: Tensor) -> Tensor:  # B T M -> B M
        return x[:, 0]


class MeanPool(FirstPool):
    """The mean over all positions but the `leading` ones."""

    def __init__(self, width: int, heads: int, leading: int = 0) -> None:
        super().__init__(width, heads)
        self.leading = leading

    def forward(self, x: Tensor) -> Tensor:  # B T M -> B M
        return x[:, self.leading :].mean(1)


class BothPool(MeanPool):
    """The first position, and beside it the mean of all that are no learned tokens (Oquab et al., 2024)."""

    times: ClassVar[int] = 2

    def forward(self, x: Tensor) -> Tensor:  # B T M -> B 2M
        return torch.cat((x[:, 0], super().forward(x)), -1)


class AttentionPool(FirstPool):
    """A learned query looks at all positions and takes what it needs (Lee et al., 2019; Zhai et al., 2022).

    Without the residual, the norms and the feed-forward that the Set Transformer has around it: what follows has them.
    """

    def __init__(self, width: int, heads: int, leading: int = 0) -> None:
        super().__init__(width, heads)
        self.query = nn.Parameter(torch.randn(1, width) * 0.02)
        self.cross = CrossAttention(Across(width, heads), Softmax(), Join(width, width))

    def forward(self, x: Tensor, mask: Mask = ALL) -> Tensor:  # B T M -> B M
        asking = self.query.to(x.dtype).expand(len(x), 1, -1)
        context = Context(x, mask)
        return self.cross(asking, context.sight(Everything().over(asking)), context).squeeze(1)
