"""Uses (inference on a trained model): a pipeline with what is kept beside the model, for whoever asks it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, cast

from torch import nn

from heedful.decoding.search_spec import Decoding
from heedful.looking.page import Example
from heedful.models import Spec
from heedful.pipelines.generation import Generation
from heedful.pipelines.learned import Learned
from heedful.pipelines.pipeline import Heard, Pipeline, unheard
from heedful.results import Result, Text


class Use:
    """What a model is used for: how it is asked and looked into, and what is kept of that beside it."""

    def __init__(self, name: str, pipeline: Pipeline[Any], learned: Learned) -> None:
        self.name, self.pipeline, self.learned = name, pipeline, learned
        self.tell: Heard = unheard  # hears how many more samples are answered

    @property
    def input(self) -> str:
        """What one input looks like."""
        return self.pipeline.input

    @property
    def writes(self) -> bool:
        """Whether answers are written token by token, and so searched for."""
        return self.pipeline.writes

    @property
    def decoding(self) -> Decoding:
        """How answers are searched for."""
        return self.learned.decoding

    @decoding.setter
    def decoding(self, decoding: Decoding) -> None:
        self.learned = self.learned.searched_by(decoding)

    def numbers(self) -> dict[str, Any]:
        """What the data say of the model."""
        return self.learned.facts()

    def suits(self, spec: Spec) -> None:
        """Hears of its model; one that cannot be used so is refused."""
        self.learned = self.learned.suited(spec)

    def adopt(self, spec: Spec) -> None:
        """Hears from a trained model how its inputs are prepared, where a folder from elsewhere says it."""
        self.learned = self.learned.adopted(spec)

    def predict(self, model: nn.Module, inputs: Iterable[Any]) -> Iterator[Result]:
        """One answer for each input, in order."""
        return self.pipeline.predict(model, inputs, self.learned, self.tell)

    def best(
        self, model: nn.Module, inputs: Iterable[Any], decoding: Decoding, best: int = 1, seed: int = 0
    ) -> Iterator[list[Text]]:
        """The n best answers to each input, of a model that writes."""
        pipeline = cast(Generation[Any], self.pipeline)
        return pipeline.best(model, inputs, self.learned, decoding, best, seed, self.tell)

    def stream(self, model: nn.Module, text: Any, decoding: Decoding, seed: int = 0, number: int = 0) -> Iterator[str]:
        """The answer to one input in pieces, as a model writes them."""
        return cast(Generation[Any], self.pipeline).stream(model, text, self.learned, decoding, seed, number)

    def doubt(self, text: str) -> str | None:
        """Why an input may be answered badly, where that can be told beforehand."""
        return self.pipeline.warning(text, self.learned)

    def look(self, model: nn.Module, text: Any) -> Example:
        """Where every layer and head looks while the model answers one input."""
        return self.pipeline.look(model, text, self.learned)

    def write(self, folder: Path) -> None:
        """Writes what is kept beside a model."""
        self.learned.write(folder, self.name)
