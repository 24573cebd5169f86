"""Errors of in-context regression, by the number of examples before an input, beside least squares and nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from heedful.data.toys.linear_maps import Prompt, least_squares
from heedful.metrics.metric import Metric
from heedful.metrics.skill import MEANING

Errors = dict[str, NDArray[np.float64]]


def errors_of(samples: Sequence[Prompt], said: NDArray[np.float64]) -> Errors:
    """The mean squared error by the number of examples before an input: of the model, least squares and nothing."""
    inputs, answers = (np.stack([getattr(one, name) for one in samples]) for name in ("inputs", "answers"))
    found = {"this decoder": said, "least squares": least_squares(inputs, answers)}
    return {name: np.square(one - answers).mean(0) for name, one in found.items()} | {
        "nothing learned": np.square(answers.astype(np.float64)).mean(0)
    }


@dataclass
class OfMaps(Metric[Any]):
    """Figures of one pass over maps: what a model said of each input is kept until all is there."""

    samples: list[Prompt] = field(default_factory=list)
    said: list[NDArray[np.float64]] = field(default_factory=list)

    def update(self, samples: Sequence[Prompt], seen: Any, learned: Any) -> None:
        self.samples, self.said = [*self.samples, *samples], [*self.said, seen]

    def merge(self, other: Self) -> None:
        self.samples, self.said = self.samples + other.samples, self.said + other.said


@dataclass
class MapSkill(OfMaps):
    """Skill after all examples: by how much less the error is than where nothing was learned."""

    names: ClassVar[tuple[str, ...]] = ("skill",)
    share: ClassVar[bool] = True
    meaning: ClassVar[str] = MEANING

    def compute(self) -> dict[str, float]:
        found = errors_of(self.samples, np.concatenate(self.said))
        none = float(found["nothing learned"][-1])
        return {"skill": 1 - float(found["this decoder"][-1]) / max(none, 1e-12)}


@dataclass
class MapErrors(OfMaps):
    """The error over all inputs, and that of least squares."""

    names: ClassVar[tuple[str, ...]] = ("error", "least_squares_error")
    more_is_better: ClassVar[bool] = False

    def compute(self) -> dict[str, float]:
        found = errors_of(self.samples, np.concatenate(self.said))
        ours, best = (float(found[name].mean()) for name in ("this decoder", "least squares"))
        return {"error": ours, "least_squares_error": best}
