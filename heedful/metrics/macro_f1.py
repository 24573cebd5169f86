"""Macro F1: the mean over classes of F1, the harmonic mean of precision and recall."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from heedful.looking.confusion import confusion_matrix
from heedful.metrics.metric import Metric
from heedful.results import Label


@dataclass
class MacroF1(Metric[Any]):
    """Macro F1 of labels: each sample has a `label`, each result a name; all `labels` were learned."""

    names: ClassVar[tuple[str, ...]] = ("f1",)
    share: ClassVar[bool] = True

    counts: NDArray[np.int64] | None = None  # how often each class (a row) was taken for each (a column)

    def update(self, samples: Sequence[Any], seen: Sequence[Label], learned: Any) -> None:
        self.add(confusion_matrix(learned.labels, [one.label for one in samples], [one.name for one in seen]))

    def merge(self, other: Self) -> None:
        if other.counts is not None:
            self.add(other.counts)

    def add(self, counts: NDArray[np.int64]) -> None:
        """Adds what was taken for what."""
        self.counts = counts if self.counts is None else self.counts + counts

    def compute(self) -> dict[str, float]:
        return {"f1": 0.0 if self.counts is None else f1(self.counts)}


def f1(counts: NDArray[np.int64]) -> float:
    """The mean over classes of F1 of a table of rows taken for columns."""
    both = counts.sum(0) + counts.sum(1)
    return float((2 * counts.diagonal() / np.maximum(1, both))[both > 0].mean())
