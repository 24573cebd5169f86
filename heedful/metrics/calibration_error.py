"""Expected calibration error: between how sure a model is of its classes and how often it is right."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

from heedful.looking import calibration
from heedful.metrics.metric import Metric
from heedful.results import Label


@dataclass
class CalibrationError(Metric[Any]):
    """Expected calibration error (Naeini et al., 2015) of labels, with the chance of each."""

    names: ClassVar[tuple[str, ...]] = ("calibration_error",)
    share: ClassVar[bool] = True
    more_is_better: ClassVar[bool] = False
    meaning: ClassVar[str] = "between how sure it is and how often right"

    chances: list[float] = field(default_factory=list)
    right: list[bool] = field(default_factory=list)

    def update(self, samples: Sequence[Any], seen: Sequence[Label], learned: Any) -> None:
        self.chances += [said.chance for said in seen]
        self.right += [one.label == said.name for one, said in zip(samples, seen, strict=True)]

    def merge(self, other: Self) -> None:
        self.chances, self.right = self.chances + other.chances, self.right + other.right

    def compute(self) -> dict[str, float]:
        return {"calibration_error": calibration.error(calibration.bins(self.chances, self.right))}
