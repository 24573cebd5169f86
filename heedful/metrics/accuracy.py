"""Accuracy: the share of samples of which a model says the right class, or of what is hidden that it tells."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from heedful.metrics.metric import Metric
from heedful.results import Label, Score


@dataclass
class Accuracy(Metric[Any]):
    """Accuracy of labels: each sample has a `label`, and each result a name."""

    names: ClassVar[tuple[str, ...]] = ("accuracy",)
    share: ClassVar[bool] = True
    counts_right: ClassVar[tuple[str, ...]] = ("accuracy",)

    right: int = 0
    count: int = 0

    def update(self, samples: Sequence[Any], seen: Sequence[Label], learned: Any) -> None:
        self.right += sum(one.label == said.name for one, said in zip(samples, seen, strict=True))
        self.count += len(samples)

    def merge(self, other: Self) -> None:
        self.right, self.count = self.right + other.right, self.count + other.count

    def compute(self) -> dict[str, float]:
        return {"accuracy": self.right / max(1, self.count)}


@dataclass
class HiddenAccuracy(Metric[Any]):
    """Accuracy of what was hidden: each result is the share of a sample's own that was told right."""

    names: ClassVar[tuple[str, ...]] = ("accuracy",)
    share: ClassVar[bool] = True

    right: float = 0.0
    count: int = 0

    def update(self, samples: Sequence[Any], seen: Sequence[Score], learned: Any) -> None:
        self.right += sum(one.value for one in seen)
        self.count += len(seen)

    def merge(self, other: Self) -> None:
        self.right, self.count = self.right + other.right, self.count + other.count

    def compute(self) -> dict[str, float]:
        return {"accuracy": self.right / max(1, self.count)}
