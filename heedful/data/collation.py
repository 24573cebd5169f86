"""Collation (collate function): how long samples are, what of them is learned from in an epoch, and their batches."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, TypeVar

from heedful.data.collate import Batch
from heedful.data.near_duplicates import Content, Overlap, overlaps
from heedful.data.splits import Splits
from heedful.errors import Refusal

Kept = TypeVar("Kept")  # what was learned of the data


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
        raise Refusal("data.too_long=cut is nothing that this task knows; use refuse or drop")

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
