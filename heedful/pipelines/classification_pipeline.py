"""Classification pipeline: the likeliest class of a sample, with the chance of each."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar

import torch
from torch import Tensor, nn

from heedful.data.collate import Batch, several, to
from heedful.errors import Refusal
from heedful.models.numerics import device_of, finite, precise
from heedful.pipelines.learned import Learned
from heedful.pipelines.pipeline import Heard, Pipeline
from heedful.results import Label


@dataclass(frozen=True)
class Classes(Learned):
    """Labels: the classes that samples have, in order."""

    labels: tuple[str, ...]

    def check(self, label: str, where: str = "") -> None:
        """Refuses a label that was not learned."""
        if label not in self.labels:
            known = ", ".join((*self.labels[:9], "...") if len(self.labels) > 10 else self.labels)
            said = f"{where}label {label!r} is not one that is trained on ({known})"
            raise Refusal(f"{said}; train on it or drop it")

    @staticmethod
    def words_of(state: dict[str, Any], name: str) -> tuple[str, ...]:
        """Words as they are kept beside a model."""
        if not all(isinstance(word, str) for word in state[name]):
            raise TypeError(f"{name} should be words")
        return tuple(state[name])


Kept = TypeVar("Kept", bound=Classes)


@dataclass(frozen=True)
class Classifying(Pipeline[Kept]):
    """Pipeline of classes: what a model reads is a field of a batch, or several."""

    reads: ClassVar[tuple[str, ...]]
    at_once: ClassVar[int] = 500  # samples that are answered together

    @abstractmethod
    def inputs(self, samples: Sequence[Any], learned: Kept) -> Batch:
        """Samples as the model reads them, without their answers."""

    def scores(self, model: nn.Module, batch: Batch) -> Tensor:
        """What a model gives for each class: B C."""
        made: Tensor = model(*(batch[name] for name in self.reads))
        return made

    @torch.no_grad()
    def results(self, model: nn.Module, samples: Sequence[Any], learned: Kept, heard: Heard) -> list[Label]:
        model.eval()
        made: list[Label] = []
        for some in several(samples, self.at_once):
            batch = to(self.inputs(some, learned), device_of(model))
            chances = finite(precise(self.scores(model, batch))).softmax(-1).cpu()
            made += [Label.among(learned.labels, row) for row in chances]
            heard(len(chances))
        return made
