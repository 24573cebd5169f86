"""Errors of in-context regression, by the number of examples before an input, beside least squares and nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from heedful.data.toys.linear_maps import Prompt, least_squares
from heedful.metrics.metric import Metric

Errors = dict[str, NDArray[np.float64]]


def errors_of(samples: Sequence[Prompt], said: NDArray[np.float64]) -> Errors:
    """The mean squared error by the number of examples before an input: of the model, least squares and nothing."""
    inputs, answers = (np.stack([getattr(one, name) for one in samples]) for name in ("inputs", "answers"))
    found = {"this decoder": said, "least squares": least_squares(inputs, answers)}
    return {name: np.square(one - answers).mean(0) for name, one in found.items()} | {
        "nothing learned": np.square(answers.astype(np.float64)).mean(0)
    }


@dataclass
class MapErrors(Metric[Any]):
    """Three figures of one pass: the skill after all examples, the error over all inputs, and that of least squares."""

    names: ClassVar[tuple[str, ...]] = ("skill", "error", "least_squares_error")

    samples: list[Prompt] = field(default_factory=list)
    said: list[NDArray[np.float64]] = field(default_factory=list)

    def update(self, samples: Sequence[Prompt], seen: Any, learned: Any) -> None:
        self.samples, self.said = [*self.samples, *samples], [*self.said, seen]

    def merge(self, other: Self) -> None:
        self.samples, self.said = self.samples + other.samples, self.said + other.said

    def compute(self) -> dict[str, float]:
        found = errors_of(self.samples, np.concatenate(self.said))
        ours, best, none = (found[name] for name in ("this decoder", "least squares", "nothing learned"))
        skill = 1 - float(ours[-1]) / max(float(none[-1]), 1e-12)
        return {"skill": skill, "error": float(ours.mean()), "least_squares_error": float(best.mean())}
