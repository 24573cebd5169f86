"""Norms: what keeps the stream of states at one scale."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import batch_norm
from torch.nn.modules.batchnorm import _BatchNorm


class Total(torch.autograd.Function):
    """The sum of a tensor over all processes, and on the way back that of its gradients."""

    @staticmethod
    def forward(context: Any, x: Tensor) -> Tensor:
        """The sum."""
        total = x.clone()
        torch.distributed.all_reduce(total)
        return total

    @staticmethod
    def backward(context: Any, gradient: Tensor) -> Tensor:
        """What each process learns of it, summed."""
        return Total.forward(context, gradient)


def sum_over_processes(x: Tensor) -> Tensor:
    """The sum of a tensor over all processes, which gradients find their way back through."""
    total: Tensor = Total.apply(x)  # type: ignore[no-untyped-call]
    return total


def over_all(norm: _BatchNorm, x: Tensor) -> Tensor | None:
    """What a batch norm makes of x (B C ...) by the mean and deviation over the samples of all processes.

    Nothing where there is one process, or nothing is learned: then torch's own does. One value of each channel has no
    deviation, and is told by those that were met before.
    """
    several = torch.distributed.is_available() and torch.distributed.is_initialized()
    if not (norm.training and several and torch.distributed.get_world_size() > 1):
        if norm.training and x.numel() == x.shape[1]:
            return batch_norm(x, norm.running_mean, norm.running_var, norm.weight, norm.bias, eps=norm.eps)
        return None
    exact = x.to(torch.promote_types(x.dtype, torch.float32))
    axes, shape = [0, *range(2, x.dim())], [-1, *[1] * (x.dim() - 2)]
    total = sum_over_processes(torch.cat((exact.sum(axes), exact.new_full((1,), x.numel() // x.shape[1]))))
    mean, count = total[:-1] / total[-1], total[-1]
    centred = exact - mean.view(shape)
    variance = sum_over_processes(centred.square().sum(axes)) / count
    with torch.no_grad():
        for kept, now in ((norm.running_mean, mean), (norm.running_var, variance * count / (count - 1))):
            if kept is not None:
                kept.lerp_(now.to(kept.dtype), norm.momentum or 0.0)
    made = centred * (variance + norm.eps).rsqrt().view(shape)
    return (made * norm.weight.view(shape) + norm.bias.view(shape)).to(x.dtype)


class BatchNorm(nn.BatchNorm1d):
    """Each channel by its mean and deviation over the batch: the lectures' counter-example, which counts padding in."""

    def __init__(self, width: int, eps: float = 1e-5) -> None:
        super().__init__(width, eps)

    def forward(self, x: Tensor) -> Tensor:  # B T M -> B T M
        rows = x.flatten(0, -2)
        made = over_all(self, rows)
        return (super().forward(rows) if made is None else made).view_as(x)


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
