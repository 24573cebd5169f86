"""Numerics of what a model gives: where it lies, in which precision it is judged, and whether it is a number at all."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.functional import normalize

from heedful.errors import Failure


def device_of(model: nn.Module) -> torch.device:
    """Where a model's weights lie."""
    return next(model.parameters()).device


def precise(x: Tensor) -> Tensor:
    """In float32 or better, as losses are summed."""
    return x.to(torch.promote_types(x.dtype, torch.float32))


def exact(x: Tensor) -> Tensor:
    """In float64, on the CPU where a device (Apple's GPUs) has none."""
    return (x.cpu() if x.device.type == "mps" else x).double()


def synchronize(device: torch.device) -> None:
    """Waits until all that was asked of a device is done."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    elif device.type == "mps":
        torch.mps.synchronize()


def finite(scores: Tensor) -> Tensor:
    """A model's scores as they are; not finite ones are a failure, for they would be answered as if all were well."""
    if not scores.isfinite().all():
        raise Failure("the model's scores are not numbers, so it has no answer; train it at a lower rate")
    return scores


def unit(vectors: Tensor) -> Tensor:
    """Vectors brought to a length of one, so that products are cosines; a length beyond all numbers is a failure."""
    finite(vectors.norm(dim=-1))
    return normalize(vectors, dim=-1)
