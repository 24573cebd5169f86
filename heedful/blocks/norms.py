"""Norms: what keeps the stream of states at one scale."""

from __future__ import annotations

from torch import Tensor, nn


class BatchNorm(nn.BatchNorm1d):
    """Each channel by its mean and deviation over the batch: the lectures' counter-example, which counts padding in."""

    def __init__(self, width: int, eps: float = 1e-5) -> None:
        super().__init__(width, eps)

    def forward(self, x: Tensor) -> Tensor:  # B T M -> B T M
        return super().forward(x.flatten(0, -2)).view_as(x)


class LayerNorm(nn.LayerNorm):
    """Each state by the mean and deviation of its channels (Ba et al., 2016)."""

    def __init__(self, width: int, eps: float = 1e-5) -> None:
        super().__init__(width, eps)


class RMSNorm(nn.RMSNorm):
    """Each state by the root of its mean square (Zhang and Sennrich, 2019); eps is the dtype's own where not given."""

    def __init__(self, width: int, eps: float | None = None) -> None:
        super().__init__(width, eps)

    def forward(self, x: Tensor) -> Tensor:  # B T M -> B T M
        exact = self.weight.dtype  # which autocast may have left behind; torch would warn, and go a slower way
        return super().forward(x) if x.dtype == exact else super().forward(x.to(exact)).to(x.dtype)
