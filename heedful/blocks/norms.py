"""Norms: what keeps the stream of states at one scale."""

from __future__ import annotations

from torch import Tensor, nn


class BatchNorm(nn.BatchNorm1d):
    """Each channel by its mean and deviation over the batch: the lectures' counter-example, which counts padding in."""

    def forward(self, x: Tensor) -> Tensor:  # B T M -> B T M
        return super().forward(x.flatten(0, -2)).view_as(x)


LayerNorm = nn.LayerNorm
RMSNorm = nn.RMSNorm
