"""Collation (collate function): samples become batches, tensors by name, rows of unequal length padded at the end."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from heedful.data.near_duplicates import Content, Overlap, overlaps
from heedful.data.splits import Splits
from heedful.errors import Refusal

ROOM = 8192  # tokens of a batch that is read and not written
Batch = dict[str, Tensor]
Ids = Sequence[int] | NDArray[np.int64]
Read = TypeVar("Read")
Kept = TypeVar("Kept")  # what was learned of the data


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


@dataclass(frozen=True)
class Collate(ABC, Generic[Kept]):
    """Collation: samples become batches. It holds no state of its own."""

    even: ClassVar[bool] = False  # samples are all of one shape, so that no batch need be filled up
    filled: ClassVar[bool] = False  # zeros in a batch mean nothing to the loss, so that it can be filled up with them

    def fillable(self, learned: Kept) -> bool:
        """Whether a batch can be filled up with zeros, which mean nothing to the loss."""
        return self.filled

    @abstractmethod
    def batch(self, samples: Sequence[Any], learned: Kept) -> Batch:
        """Samples as tensors, padded at the end."""

    @abstractmethod
    def length(self, sample: Any, learned: Kept) -> int:
        """How long a sample is, to the model."""

    def lengths(self, samples: Sequence[Any], epoch: int, learned: Kept) -> Sequence[Any]:
        """How long samples to learn from are in an epoch: a number each, or several, one for each side."""
        return [self.length(sample, learned) for sample in samples]

    def augmented(self, samples: Sequence[Any], epoch: int, learned: Kept) -> Sequence[Any]:
        """Samples as they are learned from in an epoch: a pure function of the seed, the epoch and the sample."""
        return samples

    def shortened(self, sample: Any, longest: int, learned: Kept) -> Any:
        """A sample that is cut where it is longer than a model reads."""
        raise Refusal("data.too_long=cut does not exist for this task; use refuse or drop")

    def source_of(self, sample: Any) -> str:
        """Where a sample was read: its longest side's file and line, where it came from a file."""
        return "a sample"

    def contents(self, sample: Any) -> Mapping[str, Content]:
        """The parts of a sample, by name, whose near-duplicates should not be both learned from and tested on."""
        return {}

    def overlaps(self, splits: Splits[Any], learned: Kept) -> tuple[Overlap, ...]:
        """How much of what is held out has near-duplicates in what is learned from."""
        return overlaps(splits, self.contents)

    @abstractmethod
    def as_input(self, sample: Any, learned: Kept) -> str:
        """A sample's input as `predict` and `look` take it."""
