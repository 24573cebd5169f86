"""Skill of word vectors: how much better than a plain guess they predict which words stand near each other."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from heedful.metrics.metric import Metric
from heedful.metrics.perplexity import OfTokens, TokenSums
from heedful.metrics.skill import MEANING

Moments = tuple[float, ...]  # sums of weights, and of what is said and wanted by them, of their squares and product


@dataclass
class SkipGramSkill(OfTokens):
    """Skill: by how much the loss on pairs of words is below that of a guess that looks at neither word."""

    names: ClassVar[tuple[str, ...]] = ("skill",)
    share: ClassVar[bool] = True
    meaning: ClassVar[str] = MEANING

    negatives: int = 1

    def update(self, samples: Sequence[Any], seen: TokenSums, learned: Any) -> None:
        super().update(samples, seen, learned)
        self.negatives = learned.negatives

    def merge(self, other: Self) -> None:
        super().merge(other)
        self.negatives = max(self.negatives, other.negatives)  # of one task

    def compute(self) -> dict[str, float]:
        return {"skill": 1 - self.sums.mean / blind(self.negatives)}


@dataclass
class SkipGramLoss(OfTokens):
    """The mean loss of a pair of words that stand near each other."""

    names: ClassVar[tuple[str, ...]] = ("loss",)
    more_is_better: ClassVar[bool] = False

    def compute(self) -> dict[str, float]:
        return {"loss": self.sums.mean}


@dataclass
class CountSkill(Metric[Any]):
    """R^2, the share of how pairs differ in other texts that a line through what vectors say of them explains.

    A line, because these texts are of another length.
    """

    names: ClassVar[tuple[str, ...]] = ("skill",)
    share: ClassVar[bool] = True
    meaning: ClassVar[str] = MEANING

    sums: Moments = (0.0,) * 6

    def update(self, samples: Sequence[Any], seen: Moments, learned: Any) -> None:
        self.sums = tuple(one + more for one, more in zip(self.sums, seen, strict=True))

    def merge(self, other: Self) -> None:
        self.sums = tuple(one + more for one, more in zip(self.sums, other.sums, strict=True))

    def compute(self) -> dict[str, float]:
        weight = max(self.sums[0], 1e-12)
        said, wanted, both_said, both_wanted, both = (one / weight for one in self.sums[1:])
        spread = (both_said - said**2) * (both_wanted - wanted**2)
        return {"skill": (both - said * wanted) ** 2 / max(spread, 1e-12)}


def blind(negatives: int) -> float:
    """The loss of a guess that knows only how many words are drawn: one true neighbour beside so many random words."""
    return math.log(1 + negatives) + negatives * math.log(1 + 1 / negatives)
