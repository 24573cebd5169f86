"""Blocks of convolutions: what attention is measured against."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torch import Tensor, nn

from heedful.blocks.norms import over_all


class ChannelNorm(nn.BatchNorm2d):
    """Each channel by its mean and deviation over the batch and all pixels (Ioffe and Szegedy, 2015): B C H W.

    It does not count how many batches it has seen, which nothing depends on.
    """

    def __init__(self, channels: int) -> None:
        super().__init__(channels)
        self.num_batches_tracked = None

    def forward(self, x: Tensor) -> Tensor:
        made = over_all(self, x)
        return super().forward(x) if made is None else made

    def _load_from_state_dict(self, state: dict[str, Any], prefix: str, told: dict[str, Any], *rest: Any) -> None:
        """Says that the weights are of today's kind, lest torch look for a count in them."""
        super()._load_from_state_dict(state, prefix, {**told, "version": 2}, *rest)


class Convolved(nn.Module):
    """A convolution that keeps the size, or halves it, then a norm and, where asked for, a bend."""

    def __init__(self, before: int, after: int, side: int, stride: int = 1, bent: bool = True) -> None:
        super().__init__()
        self.kernel = nn.Conv2d(before, after, side, stride, side // 2, bias=False)
        self.norm, self.bend = ChannelNorm(after), nn.ReLU() if bent else nn.Identity()

    def forward(self, x: Tensor) -> Tensor:
        return self.bend(self.norm(self.kernel(x)))


class Residual(nn.Module):
    """What convolutions make of an image is added to it (He et al., 2016); where sizes differ it is brought to theirs.

    `steps` are the convolutions, each of so many channels, sides and strides, the last of which does not bend.
    """

    def __init__(self, before: int, steps: Sequence[tuple[int, int, int]]) -> None:
        super().__init__()
        after, stride, parts = steps[-1][0], 1, []
        channels = before
        for at, (width, side, by) in enumerate(steps, 1):
            parts.append(Convolved(channels, width, side, by, bent=at < len(steps)))
            channels, stride = width, stride * by
        self.steps = nn.Sequential(*parts)
        same = before == after and stride == 1
        self.shortcut = nn.Identity() if same else Convolved(before, after, 1, stride, bent=False)
        self.bend = nn.ReLU()

    def forward(self, x: Tensor) -> Tensor:
        return self.bend(self.steps(x) + self.shortcut(x))
