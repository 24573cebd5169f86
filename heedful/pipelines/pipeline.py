"""Pipelines (inference): typed inputs become samples, and samples typed results, by a model and what it keeps."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

from torch import Tensor, nn

from heedful.errors import Refusal
from heedful.looking.page import Example
from heedful.pipelines.reading_inputs import read_all
from heedful.results import Result

if TYPE_CHECKING:
    from heedful.looking.alignment import Alignment

Kept = TypeVar("Kept")  # what was learned of the data
Heard = Callable[[int], object]  # hears how many more samples are answered
TOGETHER = 256  # inputs that are answered at once


def unheard(count: int) -> None:
    """Hears nothing."""


@dataclass(frozen=True)
class Pipeline(ABC, Generic[Kept]):
    """Pipeline: how a model is asked, whoever trained it. It holds no state of its own."""

    input: str  # what one input looks like, for help and errors
    writes: ClassVar[bool] = False  # token by token, so that answers are searched for

    @abstractmethod
    def accepts(self, given: Any, learned: Kept) -> Any:
        """An input as a sample; one that cannot be read is refused."""

    @abstractmethod
    def results(self, model: nn.Module, samples: Sequence[Any], learned: Kept, heard: Heard) -> Sequence[Result]:
        """The answer to each sample, in order."""

    def predict(
        self, model: nn.Module, inputs: Iterable[Any], learned: Kept, heard: Heard = unheard
    ) -> Iterator[Result]:
        """One answer for each input, in order; all are read before the first is answered."""
        samples = read_all(inputs, lambda given: self.accepts(given, learned))
        for start in range(0, len(samples), TOGETHER):
            yield from self.results(model, samples[start : start + TOGETHER], learned, heard)

    def vectors(self, model: nn.Module, inputs: Iterable[Any], learned: Kept, heard: Heard = unheard) -> Tensor:
        """Embeddings: the vectors of inputs, B M; refused where answers are no vectors."""
        raise Refusal("the answers of this model are no vectors that could be compared; leave --similar out")

    def align(self, model: nn.Module, pairs: Sequence[tuple[str, str | None]], learned: Kept) -> Iterator[Alignment]:
        """Word alignments: which words belong together in each pair; refused where nothing is translated."""
        raise Refusal("this model does not translate; give a model whose task is translation")

    def warning(self, given: str, learned: Kept) -> str | None:
        """Why an input may be answered badly, where that can be told beforehand."""
        return None

    @abstractmethod
    def look(self, model: nn.Module, given: Any, learned: Kept) -> Example:
        """Where every layer and head looks while the model answers one input."""
