"""Collation: samples become batches, tensors by name; rows of unequal length are padded at the end."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

Batch = dict[str, Tensor]
Ids = Sequence[int] | NDArray[np.int64]
Read = TypeVar("Read")


def several(inputs: Sequence[Read], size: int = 256) -> Iterator[Sequence[Read]]:
    """Inputs in groups of at most `size`, in order."""
    return (inputs[start : start + size] for start in range(0, len(inputs), size))


def alike(lengths: Sequence[int], room: int) -> Iterator[list[int]]:
    """The places of lengths above 0 in groups of like ones, the longest first; each, padded, is within the room."""
    group: list[int] = []
    for at in sorted(filter(lengths.__getitem__, range(len(lengths))), key=lambda at: -lengths[at]):
        if group and (len(group) + 1) * (lengths[group[0]] + 1) > room:
            yield group
            group = []
        group.append(at)
    if group:
        yield group


def to(batch: Batch, device: torch.device) -> Batch:
    """The batch on a device."""
    return {name: tensor.to(device, non_blocking=True) for name, tensor in batch.items()}


def pin(batch: Batch) -> Batch:
    """The batch where a GPU can fetch it while other work goes on."""
    return {name: tensor.pin_memory() for name, tensor in batch.items()}


def pick(samples: Sequence[Any], count: int) -> list[Any]:
    """A few samples, spread evenly over all."""
    step = max(1, len(samples) // count)
    return list(samples[::step][:count])


def stack(rows: Sequence[Ids], first: Sequence[int] = (), last: Sequence[int] = (), pad: int = 0) -> Tensor:
    """Rows of ids of unequal length, each between `first` and `last`, as one tensor, padded at the end: B T."""
    lengths = np.array([len(row) + len(first) + len(last) for row in rows], dtype=np.int64)[:, None]
    at = np.arange(int(lengths.max(initial=0)))
    made = np.full((len(rows), len(at)), pad, dtype=np.int64)
    if len(rows):
        made[(at >= len(first)) & (at < lengths - len(last))] = np.concatenate(rows)
        made[:, : len(first)] = first
        for place, token in enumerate(last):
            np.put_along_axis(made, lengths - len(last) + place, token, 1)
    return torch.from_numpy(made)
