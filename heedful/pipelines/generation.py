"""Generation: pipelines of models that write, which are asked for several answers, or for one as it is written."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar

from torch import nn

from heedful.decoding.search_spec import Decoding
from heedful.pipelines.learned import Learned
from heedful.pipelines.pipeline import Heard, Pipeline, unheard
from heedful.results import Result, Text

Kept = TypeVar("Kept", bound=Learned)


@dataclass(frozen=True)
class Generation(Pipeline[Kept]):
    """Pipeline of a model that writes token by token, so that its answers are searched for."""

    writes: ClassVar[bool] = True

    @abstractmethod
    def best(
        self,
        model: nn.Module,
        inputs: Iterable[Any],
        learned: Kept,
        decoding: Decoding,
        best: int = 1,
        seed: int = 0,
        heard: Heard = unheard,
    ) -> Iterator[list[Text]]:
        """The n best answers to each input (n-best list), with their scores; all inputs are read first."""

    @abstractmethod
    def stream(
        self, model: nn.Module, given: Any, learned: Kept, decoding: Decoding, seed: int = 0, number: int = 0
    ) -> Iterator[str]:
        """The answer to one input in pieces, as they are written; `number` is its place among several."""

    def predict(
        self, model: nn.Module, inputs: Iterable[Any], learned: Kept, heard: Heard = unheard
    ) -> Iterator[Result]:
        return (found[0] for found in self.best(model, inputs, learned, learned.decoding, heard=heard))
