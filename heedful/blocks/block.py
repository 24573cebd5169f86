"""Blocks: attention and feed-forward, each added to the stream. Norm orders are small classes of their own."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

from heedful.attention import Attention, Context, CrossAttention, Memory, Sight

Norm = Callable[[int], nn.Module]
Attend = Callable[[Tensor, Sight, Memory | None], Tensor]  # as a block attends to itself: B T M -> B T M


class Block(nn.Module):
    """Attention, then feed-forward, each on the normed stream and added to it: pre-norm (Xiong et al., 2020)."""

    def __init__(
        self, width: int, attention: Attention, feedforward: nn.Module, norm: Norm = nn.LayerNorm, dropout: float = 0.0
    ) -> None:
        super().__init__()
        self.attention, self.feedforward = attention, feedforward
        self.norm1, self.norm2 = norm(width), norm(width)
        self.drop = Dropout(dropout)

    def forward(self, x: Tensor, sight: Sight, memory: Memory | None = None, attend: Attend | None = None) -> Tensor:
        """B T M -> B T M. Stacks whose layers exchange something put another `attend` in the place of its attention."""
        x = x + self.drop((attend or self.attention)(self.norm1(x), sight, memory))
        return x + self.drop(self.feedforward(self.norm2(x)))


class PostNormBlock(Block):
    """The order of Vaswani et al. (2017): the stream is normed after each addition."""

    def forward(self, x: Tensor, sight: Sight, memory: Memory | None = None, attend: Attend | None = None) -> Tensor:
        x = self.norm1(x + self.drop((attend or self.attention)(x, sight, memory)))
        return self.norm2(x + self.drop(self.feedforward(x)))


class ScaledBlock(Block):
    """Pre-norm, and what each part adds is scaled channel by channel, by little at first (Touvron et al., 2021b)."""

    def __init__(
        self,
        width: int,
        attention: Attention,
        feedforward: nn.Module,
        norm: Norm = nn.LayerNorm,
        dropout: float = 0.0,
        first: float = 1e-5,
    ) -> None:
        super().__init__(width, attention, feedforward, norm, dropout)
        if not abs(first) < 1e30:
            raise ValueError(f"what a block adds cannot be scaled by {first}; give a number near 0, such as 1e-5")
        self.scale1, self.scale2 = (nn.Parameter(torch.full((width,), first)) for _ in range(2))

    def forward(self, x: Tensor, sight: Sight, memory: Memory | None = None, attend: Attend | None = None) -> Tensor:
        x = x + self.drop(self.scale1 * (attend or self.attention)(self.norm1(x), sight, memory))
        return x + self.drop(self.scale2 * self.feedforward(self.norm2(x)))


class CrossBlock(nn.Module):
    """A decoder's block: attention to what is written, to what is read, then feed-forward; pre-norm."""

    def __init__(
        self,
        width: int,
        attention: Attention,
        cross: CrossAttention,
        feedforward: nn.Module,
        norm: Norm = nn.LayerNorm,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.attention, self.cross, self.feedforward = attention, cross, feedforward
        self.norm1, self.norm2, self.norm3 = norm(width), norm(width), norm(width)
        self.drop = Dropout(dropout)

    def forward(
        self, x: Tensor, sight: Sight, context: Context, memory: Memory | None = None, attend: Attend | None = None
    ) -> Tensor:
        x = x + self.drop((attend or self.attention)(self.norm1(x), sight, memory))
        x = x + self.drop(self.cross(self.norm2(x), context.sight(sight), context))
        return x + self.drop(self.feedforward(self.norm3(x)))


class PostNormCrossBlock(CrossBlock):
    """A decoder's block in the order of Vaswani et al. (2017)."""

    def forward(
        self, x: Tensor, sight: Sight, context: Context, memory: Memory | None = None, attend: Attend | None = None
    ) -> Tensor:
        x = self.norm1(x + self.drop((attend or self.attention)(x, sight, memory)))
        x = self.norm2(x + self.drop(self.cross(x, context.sight(sight), context)))
        return self.norm3(x + self.drop(self.feedforward(x)))


class Dropout(nn.Dropout):
    """A share of all numbers is left out, others each time (Srivastava et al., 2014); who does not learn never asks."""

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x) if self.training else x
