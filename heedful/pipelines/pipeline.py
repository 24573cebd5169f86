"""Pipelines (inference): typed inputs become samples, and samples typed results, by a model and what it keeps."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

from torch import Tensor, nn

from heedful.decoding.search_spec import Decoding
from heedful.errors import Refusal
from heedful.looking import attends
from heedful.looking.page import Example
from heedful.pipelines.learned import Learned
from heedful.results import Result, Text, Unread

if TYPE_CHECKING:
    from heedful.looking.alignment import Alignment

Given = TypeVar("Given")
Read = TypeVar("Read")
Kept = TypeVar("Kept")  # what was learned of the data
Columns = tuple[tuple[str, ...], ...]  # the names that each may have
Heard = Callable[[int], object]  # hears how many more samples are answered
TOGETHER = 250  # inputs that are answered at once


@dataclass(frozen=True)
class Search:
    """What is asked for: how many answers to each input, and of a model that writes how they are searched for."""

    best: int | None = None  # none: the answer alone
    decoding: Decoding = field(default_factory=Decoding)
    seed: int = 0


def unheard(count: int) -> None:
    """Hears nothing."""


@dataclass(frozen=True)
class Pipeline(ABC, Generic[Kept]):
    """Pipeline: how a model is asked, whoever trained it. It holds no state of its own."""

    input: str  # what one input looks like, for help and errors
    writes: ClassVar[bool] = False  # token by token, so that answers are searched for
    endings: ClassVar[tuple[str, ...]] = ()  # of files that are inputs by their path

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

    def column_names(self) -> Columns:
        """What the columns of a table are called that inputs are made of, in order."""
        return (text_columns(),)

    def of_columns(self, values: Sequence[str], folder: Path) -> Any:
        """The input that some columns of a table make, which lies in a folder."""
        return "\t".join(values)

    def sample(self, given: Any, model: nn.Module, learned: Kept) -> Any:
        """An input as a sample that this very model can answer; another one is refused."""
        return self.accepts(given, learned)

    def n_best(
        self, model: nn.Module, samples: Sequence[Any], learned: Kept, count: int, heard: Heard
    ) -> Sequence[Sequence[Result]]:
        """The likeliest answers to each sample (n-best list), at most `count`."""
        return [one.best(count) for one in self.results(model, samples, learned, heard)]

    def ask(
        self, model: nn.Module, inputs: Iterable[Any], learned: Kept, search: Search, heard: Heard = unheard
    ) -> Iterator[Sequence[Result]]:
        """The answers to each input, in order and batch by batch; to one that cannot be read, why (`Unread`)."""
        given = iter(inputs)
        while some := list(islice(given, TOGETHER)):
            read = [self.attempt(one, model, learned) for one in some]
            samples = [one for one in read if not isinstance(one, Unread)]
            if not samples:
                found: Sequence[Sequence[Result]] = ()
            elif search.best is None:
                found = [[one] for one in self.results(model, samples, learned, heard)]
            else:
                found = self.n_best(model, samples, learned, search.best, heard)
            yield from in_place(read, found)

    def attempt(self, given: Any, model: nn.Module, learned: Kept) -> Any:
        """An input as a sample, or why it cannot be read."""
        if isinstance(given, Unread):
            return given
        try:
            return self.sample(given, model, learned)
        except Refusal as refused:
            return Unread(str(refused))

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


def text_columns() -> tuple[str, ...]:
    """What a column of texts is called."""
    from heedful.data.formats.labelled_text import FIRST

    return ("input", *FIRST, "source", "prompt")


def in_place(read: Sequence[Any], found: Iterable[Sequence[Result]]) -> Iterator[Sequence[Result]]:
    """The answers of what was read, with what could not be in its place."""
    answers = iter(found)
    return ([one] if isinstance(one, Unread) else next(answers) for one in read)


def nonempty(text: str, what: str) -> str:
    """The input itself, or a refusal where it is empty."""
    if not text.strip():
        raise Refusal(f"the input is empty; give {what}")
    return text


def read_all(inputs: Iterable[Given], read: Callable[[Given], Read]) -> list[Read]:
    """Every input as `read` takes it, before the first is answered; one that is refused is told by its number."""
    made: list[Read] = []
    for text in inputs:
        try:
            made.append(read(text))
        except Refusal as refused:
            raise Refusal(f"input {len(made) + 1}: {refused}") from None
    return made


Writing = TypeVar("Writing", bound=Learned)


@dataclass(frozen=True)
class Generation(Pipeline[Writing]):
    """Pipeline of a model that writes token by token, so that its answers are searched for."""

    writes: ClassVar[bool] = True

    @abstractmethod
    def written(
        self,
        model: nn.Module,
        samples: Sequence[Any],
        learned: Writing,
        decoding: Decoding,
        best: int = 1,
        seed: int = 0,
        heard: Heard = unheard,
    ) -> Iterator[list[Text]]:
        """The n best answers to each sample (n-best list), with their scores."""

    def best(
        self,
        model: nn.Module,
        inputs: Iterable[Any],
        learned: Writing,
        decoding: Decoding,
        best: int = 1,
        seed: int = 0,
        heard: Heard = unheard,
    ) -> Iterator[list[Text]]:
        """The n best answers to each input, with their scores; all inputs are read first."""
        samples = read_all(inputs, lambda given: self.sample(given, model, learned))
        return self.written(model, samples, learned, decoding, best, seed, heard)

    def ask(
        self, model: nn.Module, inputs: Iterable[Any], learned: Writing, search: Search, heard: Heard = unheard
    ) -> Iterator[Sequence[Result]]:
        read = [self.attempt(given, model, learned) for given in inputs]
        samples = [one for one in read if not isinstance(one, Unread)]
        found = self.written(model, samples, learned, search.decoding, search.best or 1, search.seed, heard)
        return in_place(read, found)

    @abstractmethod
    def stream(
        self, model: nn.Module, given: Any, learned: Writing, decoding: Decoding, seed: int = 0, number: int = 0
    ) -> Iterator[str]:
        """The answer to one input in pieces, as they are written; `number` is its place among several."""

    def predict(
        self, model: nn.Module, inputs: Iterable[Any], learned: Writing, heard: Heard = unheard
    ) -> Iterator[Result]:
        return (found[0] for found in self.best(model, inputs, learned, learned.decoding, heard=heard))


def can_be_looked_into(model: nn.Module) -> None:
    """Refuses a model that has no attention."""
    if not attends(model):
        raise Refusal(f"a {model.spec.family} has no attention to look into; ask it with `heedful predict`")  # type: ignore[union-attr]
