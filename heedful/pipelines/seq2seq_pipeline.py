"""Sequence to sequence: a source is read and a text is written, whatever the source is."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar, cast

import torch
from torch import nn

from heedful.data.collate import Batch, Collate, Ids, alike, stack, to
from heedful.data.encoded_pairs import Encoded
from heedful.data.parallel_sample import Pair
from heedful.decoding import Answer, search
from heedful.decoding.search_spec import Decoding
from heedful.looking import look
from heedful.looking.maps import maps_of_seen
from heedful.looking.page import Example
from heedful.models.numerics import device_of
from heedful.models.specs import Special
from heedful.models.writer import Writer, longest, teacher_forced
from heedful.pipelines.pipeline import Generation, Heard, can_be_looked_into, nonempty, unheard
from heedful.pipelines.written_text import WrittenText
from heedful.results import Text

WINDOW = 4096  # inputs that are read before the first is answered, so that those of like length go together
ROWS = 32_768  # tokens of sources, times beams, that are read at once

Kept = TypeVar("Kept", bound=WrittenText)


@dataclass(frozen=True)
class Source(ABC, Generic[Kept]):
    """The source side of a model that reads and writes: how an input becomes a sample, and samples what is read."""

    @abstractmethod
    def accepts(self, given: Any, what: str, learned: Kept) -> Any:
        """An input as a sample of which nothing is known that should be written; `what` says what inputs look like."""

    @abstractmethod
    def length(self, sample: Any, learned: Kept) -> int:
        """How much there is to read: samples of like length are read together, and to nothing is nothing written."""

    @abstractmethod
    def batch(self, samples: Sequence[Any], learned: Kept) -> Batch:
        """The fields of a batch that the model reads (`Writer.reads`)."""

    @abstractmethod
    def words(self, model: nn.Module, sample: Any, learned: Kept) -> Sequence[str]:
        """What a model reads, in words, for the axes of attention maps: of an image, the cells that the model has."""

    @abstractmethod
    def as_input(self, sample: Any, learned: Kept) -> str:
        """A sample's source as `predict` and `look` take it."""

    def called(self, given: Any, learned: Kept) -> str:
        """What an input is called in the title of what is seen of it."""
        return str(given)

    def warning(self, given: Any, learned: Kept) -> str | None:
        """Why an input may be answered badly, where that can be told beforehand."""
        return None


@dataclass(frozen=True)
class TextSource(Source[WrittenText]):
    """Source text: its ids in the field `source`, with an END behind them."""

    blank: bool = False  # whether a blank line is answered by a blank line; else it is refused

    def accepts(self, given: Any, what: str, learned: WrittenText) -> Encoded:
        if self.blank and not given.strip():
            return Encoded([], [], Pair(given, ""))
        return Encoded(learned.ids([nonempty(given, what)])[0], [], Pair(given, ""))

    def length(self, sample: Encoded, learned: WrittenText) -> int:
        return len(sample.source)

    def batch(self, samples: Sequence[Encoded], learned: WrittenText) -> Batch:
        special = learned.special
        return {"source": stack([one.source for one in samples], last=[special.end], pad=special.pad)}

    def words(self, model: nn.Module, sample: Encoded, learned: WrittenText) -> Sequence[str]:
        return learned.tokenizer.pieces([*sample.source, learned.special.end])

    def as_input(self, sample: Encoded, learned: WrittenText) -> str:
        return sample.texts.source

    def warning(self, given: Any, learned: WrittenText) -> str | None:
        length = len(learned.ids([given])[0]) + 1
        if not 0 < learned.longest < length:
            return None
        return f"{given[:60]!r} and so on is {length:,} tokens long, and the model learned from {learned.longest:,}"


@dataclass(frozen=True)
class Seq2Seq(Generation[Kept]):
    """Sequence to sequence (translation, summarisation, captioning): the model begins with what its source says."""

    source: Source[Any] = field(default_factory=TextSource)

    def accepts(self, given: Any, learned: Kept) -> Any:
        return self.source.accepts(given, self.input, learned)

    def results(self, model: nn.Module, samples: Sequence[Any], learned: Kept, heard: Heard) -> list[Text]:
        return [found[0] for found in self.written(model, samples, learned, learned.decoding, heard=heard)]

    def written(
        self,
        model: nn.Module,
        samples: Sequence[Any],
        learned: Kept,
        decoding: Decoding,
        best: int = 1,
        seed: int = 0,
        heard: Heard = unheard,
    ) -> Iterator[list[Text]]:
        """The n best answers to each sample, in order."""
        found = self.searched(model, samples, learned, decoding, best, seed, heard)
        for sample, answers in zip(samples, found, strict=True):
            yield [self.text(sample, one, learned, decoding) for one in answers]

    def text(self, sample: Any, answer: Answer, learned: Kept, decoding: Decoding) -> Text:
        """An answer as people read it, with what the search scores it by."""
        return Text(self.said(sample, answer.tokens, learned), answer.ranked(decoding.length_penalty), answer.tokens)

    def said(self, sample: Any, tokens: Sequence[int], learned: Kept) -> str:
        """What the tokens of an answer say to a sample."""
        return learned.tokenizer.decode(tokens)

    def searched(
        self,
        model: nn.Module,
        samples: Sequence[Any],
        learned: Kept,
        decoding: Decoding,
        best: int = 1,
        seed: int = 0,
        heard: Heard = unheard,
    ) -> Iterator[list[Answer]]:
        """The best answers as tokens; samples of like length are read together, order kept."""
        for first in range(0, len(samples), WINDOW):
            window = samples[first : first + WINDOW]
            lengths = [self.source.length(one, learned) for one in window]
            made = {at: [Answer((), 0.0, True)] * best for at, length in enumerate(lengths) if not length}
            for places in alike(lengths, ROWS // max(decoding.beams, best)):
                batch = self.read_by(model, [window[at] for at in places], learned)
                numbers = [first + at for at in places]
                found = search(cast(Writer, model), batch, decoding, best, seed, numbers)
                made |= dict(zip(places, found, strict=True))
                heard(len(places))
            yield from (made[at] for at in range(len(window)))

    def read_by(self, model: nn.Module, samples: Sequence[Any], learned: Kept) -> Batch:
        """What a model reads of samples, where the model is."""
        return to(self.source.batch(samples, learned), device_of(model))

    def stream(
        self, model: nn.Module, given: Any, learned: Kept, decoding: Decoding, seed: int = 0, number: int = 0
    ) -> Iterator[str]:
        sample = self.accepts(given, learned)
        if not self.source.length(sample, learned):
            return iter(())
        batch = self.read_by(model, [sample], learned)
        from heedful.decoding import stream

        return learned.tokenizer.stream(stream(cast(Writer, model), batch, decoding, seed, number))

    def warning(self, given: Any, learned: Kept) -> str | None:
        return self.source.warning(given, learned)

    def look(self, model: nn.Module, given: Any, learned: Kept) -> Example:
        """One teacher-forced pass over the input and the model's own answer to it."""
        can_be_looked_into(model)
        sample, special = self.accepts(given, learned), learned.special
        [[answer]] = self.searched(model, [sample], learned, learned.decoding)
        tokens = answer.tokens[: longest(model) - 1]  # BEGIN stands before it
        batch = self.read_by(model, [sample], learned)
        batch["target"] = stack([[special.begin, *tokens]]).to(device_of(model))
        model.eval()
        with torch.no_grad(), look(model) as seen:
            teacher_forced(model, batch)
        source = self.source.words(model, sample, learned)
        written = learned.tokenizer.pieces([*tokens, special.end])
        read = learned.tokenizer.pieces([special.begin, *tokens])

        def words(path: str) -> tuple[Sequence[str], Sequence[str]]:
            if path.startswith("encoder"):
                return source, source
            return written, source if path.endswith("cross") else read

        title = f"{self.source.called(given, learned)} → {self.said(sample, tokens, learned)}"
        return Example(title, maps_of_seen(seen, words))


@dataclass(frozen=True)
class Seq2SeqCollate(Collate[Kept]):
    """Samples with a source and the ids of a `target`, as an encoder-decoder learns them, told the right beginning."""

    source: Source[Any] = field(default_factory=TextSource)

    def length(self, sample: Any, learned: Kept) -> int:
        return max(self.source.length(sample, learned), len(sample.target)) + 1  # with begin or end

    def fillable(self, learned: Kept) -> bool:
        return learned.special.pad == 0

    def batch(self, samples: Sequence[Any], learned: Kept) -> Batch:
        return self.source.batch(samples, learned) | targets([one.target for one in samples], learned.special)

    def as_input(self, sample: Any, learned: Kept) -> str:
        return self.source.as_input(sample, learned)


def targets(rows: Sequence[Ids], special: Special) -> Batch:
    """Targets behind their BEGIN, and what comes after each of their tokens: B T both."""
    return {
        "target": stack(rows, first=[special.begin], pad=special.pad),
        "answer": stack(rows, last=[special.end], pad=special.pad),
    }
