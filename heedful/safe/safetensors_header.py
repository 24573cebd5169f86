"""The header of a safetensors file, checked before a number of its tensors is read."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from heedful.safe.opening import amount, size_of
from heedful.safe.plain_data import json_of

LARGEST = 1 << 24  # bytes of a header; a hundred thousand tensors take as many
DTYPES = {
    "F64": torch.float64,
    "F32": torch.float32,
    "F16": torch.float16,
    "BF16": torch.bfloat16,
    "I64": torch.int64,
    "I32": torch.int32,
    "I16": torch.int16,
    "I8": torch.int8,
    "U8": torch.uint8,
    "BOOL": torch.bool,
}


@dataclass(frozen=True)
class Entry:
    """A tensor as the header describes it: its dtype, its shape, and the byte at which its numbers begin."""

    dtype: torch.dtype
    shape: tuple[int, ...]
    start: int

    @property
    def size(self) -> int:
        """How many bytes its numbers take."""
        return math.prod(self.shape) * self.dtype.itemsize

    @property
    def empty(self) -> Tensor:
        """The tensor without its numbers."""
        return torch.empty(self.shape, dtype=self.dtype, device="meta")


def describe_tensors(path: Path) -> dict[str, Tensor]:
    """The tensors of a safetensors file by name, with shape and kind but without numbers; a ValueError at nonsense."""
    return {name: entry.empty for name, entry in entries(path).items()}


def entries(path: Path) -> dict[str, Entry]:
    """The tensors that a safetensors file describes; nonsense is a ValueError."""
    there = size_of(path) - 8
    with path.open("rb") as file:
        size = int.from_bytes(file.read(8), "little")
        if size > there:
            raise ValueError("its header is longer than the file")
        if size > LARGEST:
            raise ValueError(f"its header is larger than {amount(LARGEST)}")
        header = json_of(file.read(size).decode("utf-8"))
    if not isinstance(header, dict):
        raise ValueError("its header is no JSON object")
    told = {name: entry for name, entry in header.items() if name != "__metadata__"}
    return {name: check_entry(name, entry, 8 + size, there - size) for name, entry in told.items()}


def check_entry(name: str, entry: Any, first: int, there: int) -> Entry:
    """What a header says of a tensor, where it can lie in the bytes that there are from the `first` one on."""
    if not isinstance(entry, dict) or entry.keys() != {"dtype", "shape", "data_offsets"}:
        raise ValueError(f"tensor {name[:100]!r} is not told by dtype, shape and data_offsets alone")
    dtype, shape, offsets = entry["dtype"], entry["shape"], entry["data_offsets"]
    if not isinstance(dtype, str) or dtype not in DTYPES:
        raise ValueError(f"tensor {name[:100]!r} is of kind {str(dtype)[:30]!r}, not one of {', '.join(DTYPES)}")
    if not counts(shape) or not counts(offsets) or len(offsets) != 2 or len(shape) > 8:
        raise ValueError(f"tensor {name[:100]!r} has an invalid shape or offset")
    size = math.prod(shape) * DTYPES[dtype].itemsize
    if max(shape, default=0) > there or not offsets[0] + size == offsets[1] <= there:
        raise ValueError(f"tensor {name[:100]!r} does not lie within the file")
    return Entry(DTYPES[dtype], tuple(shape), first + offsets[0])


def counts(values: Any) -> bool:
    """Whether a value is a list of whole numbers from 0."""
    return isinstance(values, list) and all(type(value) is int and value >= 0 for value in values)
