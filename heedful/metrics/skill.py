"""Skill of forecasts: how much less the squared error is than that of repeating the last value."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from heedful.metrics.metric import Metric
from heedful.results import Series

MEANING = "less error than the plainest guess"


@dataclass
class ForecastErrors(Metric[Any]):
    """The errors of forecasts, kept until all are there: samples have a past and a future, results their steps."""

    ours: list[NDArray[np.float32]] = field(default_factory=list)
    naive: list[NDArray[np.float32]] = field(default_factory=list)
    deviation: tuple[float, ...] = ()

    def update(self, samples: Sequence[Any], seen: Sequence[Series], learned: Any) -> None:
        future = np.stack([sample.future for sample in samples])
        self.ours.append(future - np.array([one.steps for one in seen], dtype=np.float32))
        self.naive.append(future - np.stack([sample.past[-1:] for sample in samples]))
        self.deviation = learned.deviation

    def merge(self, other: Self) -> None:
        self.ours, self.naive = self.ours + other.ours, self.naive + other.naive

    def mean_square(self, errors: list[NDArray[np.float32]]) -> float:
        """The mean of squared errors, in deviations of each channel."""
        return float(np.square(np.concatenate(errors) / np.array(self.deviation)).mean())


@dataclass
class Skill(ForecastErrors):
    """Skill: 1 where nothing is missed, 0 where the last value says as much."""

    names: ClassVar[tuple[str, ...]] = ("skill",)
    share: ClassVar[bool] = True
    meaning: ClassVar[str] = MEANING

    def compute(self) -> dict[str, float]:
        return {"skill": 1 - self.mean_square(self.ours) / max(self.mean_square(self.naive), 1e-12)}


@dataclass
class MeanAbsoluteError(ForecastErrors):
    """The mean absolute error of forecasts, in the numbers of the series."""

    names: ClassVar[tuple[str, ...]] = ("mean_absolute_error",)
    more_is_better: ClassVar[bool] = False

    def compute(self) -> dict[str, float]:
        return {"mean_absolute_error": float(np.abs(np.concatenate(self.ours)).mean())}


Pair = tuple[float, float]  # the error of what was made, and that of a plain guess


def skill_of(pairs: Sequence[Pair]) -> float:
    """Skill: the share by which the errors are smaller than those of plain guesses."""
    return 1 - sum(made for made, _ in pairs) / max(1e-12, sum(plain for _, plain in pairs))


@dataclass
class ReconstructionSkill(Metric[Any]):
    """Skill of reconstructions: each sample comes with the error of what was made of it, and of a plain guess."""

    names: ClassVar[tuple[str, ...]] = ("skill",)
    share: ClassVar[bool] = True
    meaning: ClassVar[str] = MEANING

    pairs: list[Pair] = field(default_factory=list)

    def update(self, samples: Sequence[Any], seen: Sequence[Pair], learned: Any) -> None:
        self.pairs = [*self.pairs, *seen]

    def merge(self, other: Self) -> None:
        self.pairs = self.pairs + other.pairs

    def compute(self) -> dict[str, float]:
        return {"skill": skill_of(self.pairs)}
