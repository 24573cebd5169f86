"""Accuracy: the share of samples of which a model says the right class, or of what is hidden that it tells."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

from heedful.metrics.class_figures import Pairs, class_figures
from heedful.metrics.metric import Metric
from heedful.results import Label, Score


@dataclass
class Accuracy(Metric[Any]):
    """Accuracy of labels: each sample has a `label`, and each result a name."""

    names: ClassVar[tuple[str, ...]] = ("accuracy",)
    share: ClassVar[bool] = True
    counts_right: ClassVar[tuple[str, ...]] = ("accuracy",)

    pairs: Pairs = field(default_factory=Counter)
    labels: tuple[str, ...] = ()  # that were learned

    def update(self, samples: Sequence[Any], seen: Sequence[Label], learned: Any) -> None:
        self.pairs.update((one.label, said.name) for one, said in zip(samples, seen, strict=True))
        self.labels = tuple(getattr(learned, "labels", ()))

    def merge(self, other: Self) -> None:
        self.pairs, self.labels = self.pairs + other.pairs, self.labels or other.labels

    def compute(self) -> dict[str, float]:
        right = sum(count for (truth, said), count in self.pairs.items() if truth == said)
        return {"accuracy": right / max(1, self.pairs.total())}

    def details(self) -> dict[str, Any]:
        return class_figures(self.pairs, self.labels)


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
