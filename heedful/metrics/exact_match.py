"""Exact match: the share of answers that are the target token for token, and the share of tokens that are right."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from heedful.metrics.metric import Metric
from heedful.results import Text


@dataclass
class ExactMatch(Metric[Any]):
    """Exact match of what was written: each sample has the ids of a `target`, and each result its tokens."""

    names: ClassVar[tuple[str, ...]] = ("exact", "tokens")
    share: ClassVar[bool] = True
    counts_right: ClassVar[tuple[str, ...]] = ("exact",)

    exact: int = 0
    samples: int = 0
    right: int = 0
    written: int = 0

    def update(self, samples: Sequence[Any], seen: Sequence[Text], learned: Any) -> None:
        for sample, answer in zip(samples, seen, strict=True):
            target = tuple(sample.target)
            self.exact += answer.tokens == target
            self.right += sum(a == b for a, b in zip(answer.tokens, target, strict=False))
            self.written += max(len(answer.tokens), len(target))
        self.samples += len(samples)

    def merge(self, other: Self) -> None:
        self.exact, self.samples = self.exact + other.exact, self.samples + other.samples
        self.right, self.written = self.right + other.right, self.written + other.written

    def compute(self) -> dict[str, float]:
        return {"exact": self.exact / max(1, self.samples), "tokens": self.right / max(1, self.written)}
