"""Uses (inference on a trained model): a pipeline with what is kept beside the model, for whoever asks it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from torch import Tensor, nn

from heedful.decoding.search_spec import Decoding
from heedful.errors import Refusal
from heedful.looking.page import Example
from heedful.models import Spec
from heedful.models.numerics import unit
from heedful.pipelines.learned import Learned
from heedful.pipelines.pipeline import Generation, Heard, Pipeline, Search, unheard
from heedful.results import Result, Text

if TYPE_CHECKING:
    from heedful.looking.alignment import Alignment


@dataclass(frozen=True, eq=False)
class Use:
    """What a model is used for: how it is asked and looked into, and what is kept of that beside it.

    It is never changed: what it hears of a model or of other data is told to another one, which it gives.
    """

    record: Any  # a task, or a use of models from elsewhere: its name and its pipeline
    learned: Any  # of the kind that the record names
    tell: Heard = unheard  # hears how many more samples are answered

    @property
    def name(self) -> str:
        """What the record is called."""
        return str(self.record.name)

    @property
    def pipeline(self) -> Pipeline[Any]:
        """How a model is asked."""
        pipeline: Pipeline[Any] = self.record.pipeline
        return pipeline

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
        decoding: Decoding = self.learned.decoding
        return decoding

    def searched_by(self, decoding: Decoding) -> Self:
        """The same, with answers searched for in another way."""
        return replace(self, learned=self.learned.searched_by(decoding))

    def facts(self) -> dict[str, Any]:
        """What the data say of the model."""
        facts: dict[str, Any] = self.learned.facts()
        return facts

    def suited(self, spec: Spec) -> Self:
        """The same, for a model; one that cannot be used so is refused."""
        return replace(self, learned=self.learned.suited(spec))

    def adopted(self, spec: Spec) -> Self:
        """The same, with inputs prepared as a trained model does it, where a folder from elsewhere says how."""
        return replace(self, learned=self.learned.adopted(spec))

    def predict(self, model: nn.Module, inputs: Iterable[Any]) -> Iterator[Result]:
        """One answer for each input, in order."""
        return self.pipeline.predict(model, inputs, self.learned, self.tell)

    def ask(self, model: nn.Module, inputs: Iterable[Any], search: Search | None = None) -> Iterator[Sequence[Result]]:
        """The answers to each input, in order; to one that cannot be read, why."""
        return self.pipeline.ask(model, inputs, self.learned, search or Search(decoding=self.decoding), self.tell)

    def attempt(self, model: nn.Module, given: Any) -> Any:
        """An input as a sample, or why it cannot be read (`Unread`)."""
        return self.pipeline.attempt(given, model, self.learned)

    def vectors(self, model: nn.Module, inputs: Iterable[Any]) -> Tensor:
        """The vectors of inputs, B M, where answers are vectors."""
        return self.pipeline.vectors(model, inputs, self.learned, self.tell)

    def similar(self, model: nn.Module, inputs: Iterable[Any]) -> Tensor:
        """How near each input's vector is to each other's: the cosine of the angle between them, B B."""
        made = unit(self.vectors(model, inputs))
        return (made @ made.T).clamp(-1.0, 1.0)

    def align(self, model: nn.Module, pairs: Sequence[tuple[str, str | None]]) -> Iterator[Alignment]:
        """Which words belong together in each pair, of a model that translates; a source alone is translated first."""
        return self.pipeline.align(model, pairs, self.learned)

    def best(
        self, model: nn.Module, inputs: Iterable[Any], decoding: Decoding, best: int = 1, seed: int = 0
    ) -> Iterator[list[Text]]:
        """The n best answers to each input, of a model that writes."""
        return self.generation.best(model, inputs, self.learned, decoding, best, seed, self.tell)

    def stream(self, model: nn.Module, given: Any, decoding: Decoding, seed: int = 0, number: int = 0) -> Iterator[str]:
        """The answer to one input in pieces, of a model that writes."""
        return self.generation.stream(model, given, self.learned, decoding, seed, number)

    @property
    def generation(self) -> Generation[Any]:
        """How a model that writes is asked; one that does not is refused."""
        if not isinstance(self.pipeline, Generation):
            raise Refusal(f"answers are searched for in models that write, and this one's task is {self.name}")
        return self.pipeline

    @property
    def tokenizer(self) -> Any:
        """The tokenizer of texts; none where no text is read or written."""
        return getattr(self.learned, "tokenizer", None)

    def warning(self, text: str) -> str | None:
        """Why an input may be answered badly, where that can be told beforehand."""
        return self.pipeline.warning(text, self.learned)

    def look(self, model: nn.Module, text: Any) -> Example:
        """Where every layer and head looks while the model answers one input."""
        return self.pipeline.look(model, text, self.learned)

    def write(self, folder: Path) -> None:
        """Writes what is kept beside a model."""
        self.learned.write(folder, self.name)


@dataclass(frozen=True, kw_only=True)
class Usage:
    """Use of models from elsewhere: a record of how they are asked and what is kept beside them."""

    name: str
    pipeline: Pipeline[Any]
    learned: type[Learned]

    def read(self, folder: Path, state: dict[str, Any]) -> Use:
        """The use as it was written beside a model."""
        return Use(self, self.learned.read(folder, state))

    def of(self, folder: Path, spec: Spec) -> Use:
        """The use of a folder that does not say how it was used before."""
        return Use(self, self.learned.of(folder))
