"""What a model is used for: how it is asked and looked into. A task is a use that is learned too."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, ClassVar, Self

from torch import Tensor, nn

from heedful.decoding.search_spec import Decoding
from heedful.errors import Refusal
from heedful.looking.page import Example
from heedful.models import Spec
from heedful.results import Result, Text


class Use(ABC):
    """How a model is asked and looked into, and what is kept of that beside it."""

    name: ClassVar[str]
    input: ClassVar[str]  # what one input looks like, for help and errors
    writes: ClassVar[bool] = False  # token by token, so that answers are searched for

    decoding: Decoding = Decoding()  # how answers are searched for
    tell: Callable[[int], object] = staticmethod(lambda count: None)  # hears how many more samples are answered

    def numbers(self) -> dict[str, int]:
        """What it says of the model: the size of its vocabulary, how many channels."""
        return {}

    def suits(self, spec: Spec) -> None:
        """Refuses a model of the right family that cannot be used so all the same."""
        return

    def adopt(self, spec: Spec) -> None:
        """Hears from a trained model how its inputs are prepared, where a folder from elsewhere says it."""
        return

    @abstractmethod
    def predict(self, model: nn.Module, inputs: Iterable[str]) -> Iterator[Result]:
        """One answer for each input, in order."""

    def similar(self, model: nn.Module, inputs: Iterable[Any]) -> Tensor:
        """How near each input's vector is to each other's, where answers are vectors."""
        raise Refusal("the answers of this model are no vectors that could be compared; leave --similar out")

    def best(
        self, model: nn.Module, inputs: Iterable[str], decoding: Decoding, best: int = 1, seed: int = 0
    ) -> Iterator[list[Text]]:
        """The n best answers to each input, with their scores, of a model that writes."""
        raise NotImplementedError

    def stream(self, model: nn.Module, text: str, decoding: Decoding, seed: int = 0, number: int = 0) -> Iterator[str]:
        """The answer to one input in pieces, of a model that writes; `number` is its place among several."""
        raise NotImplementedError

    def doubt(self, text: str) -> str | None:
        """Why an input may be answered badly, where that can be told beforehand."""
        return None

    @abstractmethod
    def look(self, model: nn.Module, text: str) -> Example:
        """Where every layer and head looks while the model answers one input."""

    def state(self) -> dict[str, Any]:
        """What must be kept beside the weights, as JSON."""
        return {}

    def write(self, folder: Path) -> None:
        """Writes it beside a model."""
        text = json.dumps({"task": self.name, **self.state()}, indent=1, sort_keys=True, ensure_ascii=False)
        (folder / "task.json").write_text(text + "\n", encoding="utf-8")

    @classmethod
    @abstractmethod
    def read(cls, folder: Path, state: dict[str, Any]) -> Self:
        """It, as it was written beside a model."""
