"""Shared parts of the losses on heads: the mean over real rows, and the cost of a loss that looks."""

from __future__ import annotations

from torch import Tensor

from heedful.attention import Sight
from heedful.attention.mechanisms.mask_support import present

LOOKS = "looks into every layer, so that no fused kernel's thrift is left while learning"


def mean_of_rows(x: Tensor, sight: Sight) -> Tensor:
    """The mean over rows (B T) that are no padding."""
    there = present(sight, sight.rows)[:, 0, :, 0].expand_as(x).to(x.dtype)
    return (x * there).sum() / there.sum().clamp(min=1)
