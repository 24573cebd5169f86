"""Balanced accuracy (macro recall): the mean over classes of the share of each that is told right."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

from heedful.metrics.metric import Metric
from heedful.results import Label


@dataclass
class BalancedAccuracy(Metric[Any]):
    """Balanced accuracy of labels: each sample has a `label`, and each result a name; a rare class counts in full."""

    names: ClassVar[tuple[str, ...]] = ("balanced_accuracy",)
    share: ClassVar[bool] = True

    right: Counter[str] = field(default_factory=Counter)
    count: Counter[str] = field(default_factory=Counter)

    def update(self, samples: Sequence[Any], seen: Sequence[Label], learned: Any) -> None:
        self.count.update(one.label for one in samples)
        self.right.update(one.label for one, said in zip(samples, seen, strict=True) if one.label == said.name)

    def merge(self, other: Self) -> None:
        self.right, self.count = self.right + other.right, self.count + other.count

    def compute(self) -> dict[str, float]:
        shares = [self.right[label] / count for label, count in self.count.items()]
        return {"balanced_accuracy": sum(shares) / max(1, len(shares))}
