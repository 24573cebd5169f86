"""Accuracy task by task, where one model learns several."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

import numpy as np

from heedful.metrics.metric import Metric
from heedful.results import Label


@dataclass
class AccuracyByTask(Metric[Any]):
    """The accuracy of each task of which there are samples: `accuracy_` and its name."""

    share: ClassVar[bool] = True

    right: dict[str, list[bool]] = field(default_factory=dict)  # by tasks, in the order in which they were learned

    def update(self, samples: Sequence[Any], seen: Sequence[Label], learned: Any) -> None:
        for task in learned.answers:
            self.right.setdefault(task, [])
        for one, said in zip(samples, seen, strict=True):
            self.right[one.read.task].append(one.label == said.name)

    def merge(self, other: Self) -> None:
        self.right = {
            task: self.right.get(task, []) + other.right.get(task, []) for task in (self.right or other.right)
        }

    def compute(self) -> dict[str, float]:
        return {f"accuracy_{task}": float(np.mean(right)) for task, right in self.right.items() if right}
