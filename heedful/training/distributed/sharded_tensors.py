"""Tensors that lie in parts over processes: the part that is here, the whole of it, and the way between."""

from __future__ import annotations

import torch
from torch import Tensor, nn


def local(tensor: Tensor) -> Tensor:
    """The part of a weight that lies in this process: all of it, where it is not in parts."""
    return tensor.to_local() if in_parts(tensor) else tensor  # type: ignore[attr-defined]


def in_parts(tensor: Tensor) -> bool:
    """Whether a weight lies in parts, one in each process."""
    if type(tensor) in (Tensor, nn.Parameter):  # nearly always, and what is imported below takes its time
        return False
    from torch.distributed.tensor import DTensor

    return isinstance(tensor, DTensor)


def gather_whole(tensor: Tensor) -> Tensor:
    """A weight in one piece; where it lies in parts, all processes must ask for it together."""
    return tensor.full_tensor() if in_parts(tensor) else tensor  # type: ignore[attr-defined]


def part_like(tensor: Tensor, like: Tensor) -> Tensor:
    """A tensor in one piece, in parts as those of a weight of its shape, where that lies in parts."""
    if not in_parts(like) or tensor.shape != like.shape:
        return tensor
    from torch.distributed.tensor import distribute_tensor

    return distribute_tensor(tensor, like.device_mesh, like.placements, src_data_rank=None)  # type: ignore[attr-defined]


def parted_all(tensors: dict[str, Tensor], like: dict[str, Tensor], device: torch.device) -> dict[str, Tensor]:
    """Tensors in one piece, each in parts as the weight of its name, on a device."""
    return {name: part_like(t.to(device), like[name]) if name in like else t for name, t in tensors.items()}


def together(tensors: dict[str, Tensor], first: bool) -> dict[str, Tensor]:
    """Tensors in one piece, on the first process; the others help and keep nothing."""
    made = {}
    for name, tensor in tensors.items():
        whole = gather_whole(tensor)
        if first:
            made[name] = whole
    return made
