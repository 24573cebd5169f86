"""Encoder pipelines: a model of text reads a sentence or a pair of them, and an answer is made of what it gives."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Self, TypeVar

import torch
from torch import Tensor, nn

from heedful.data.collate import alike, to
from heedful.data.encoded_text import EncodedText, batch_of
from heedful.data.formats.labelled_text import SECOND, Sentence
from heedful.errors import Refusal
from heedful.looking import look
from heedful.looking.maps import maps_of_seen
from heedful.looking.page import Example
from heedful.models import Spec
from heedful.models.encoder_call import encoder_output, letters_of
from heedful.models.heads_asked import AskedSpec, word_asked
from heedful.models.numerics import device_of, finite
from heedful.pipelines.learned import Learned
from heedful.pipelines.pipeline import Columns, Heard, Pipeline, nonempty, text_columns
from heedful.results import Result
from heedful.tokenizers import Joined, Tokenizer, hf_folders

ROOM = 8192  # tokens that are read at once
SENTENCES = "a sentence, or two with a tab between them"


@dataclass(frozen=True)
class TextLearned(Learned):
    """The tokenizer of an encoder, its labels, how many tokens it reads, and whether it knows how they are spelt."""

    outputs: ClassVar[frozenset[str]]  # of models that can be used so

    tokenizer: Tokenizer
    labels: tuple[str, ...] = ()
    longest: int = 0  # tokens that the model reads; more are left out
    letters: int = 0  # n-grams of them that the model has vectors for

    def suited(self, spec: Spec) -> Self:
        word = word_asked(spec)
        if not isinstance(spec, AskedSpec) or word not in self.outputs:
            known = " or ".join(sorted(self.outputs))
            raise Refusal(f"this use asks for model.output={known}, and this model's is {word}; use another task")
        if len(self.tokenizer) > spec.vocab:
            raise Refusal(f"the tokenizer has {len(self.tokenizer)} tokens and the model {spec.vocab}; copy both again")
        labels = self.labels or tuple(spec.labels or map(str, range(spec.classes or 0)))
        longest = min(self.longest or spec.length, spec.length)
        return replace(self, labels=labels, longest=longest, letters=letters_of(spec))

    def join(self, read: Sequence[Any], longest: int | None = None) -> list[Joined]:
        """The tokens of what was read, each with its `texts`, cut where they are longer than asked for."""
        return self.tokenizer.join([one.texts for one in read], longest)

    def pieces(self, joined: Joined) -> list[str]:
        """The tokens as maps name them; one that the model knows by its letters alone is told as it is spelt."""
        named = self.tokenizer.pieces(joined.ids)
        if not self.letters:
            return named
        blank = " " if any(piece[:1].isspace() for piece in named) else ""  # where it is told that words begin
        begun = ((word.removeprefix("<"), blank * word.startswith("<")) for word in joined.words)
        spelt = (before + word.removesuffix(">") for word, before in begun)
        rows = zip(joined.ids, named, spelt, strict=True)
        return [word if word and at == self.tokenizer.layout.unknown else piece for at, piece, word in rows]

    def write(self, folder: Path, name: str) -> None:
        super().write(folder, name)
        self.tokenizer.write(folder / "tokenizer.json")

    @classmethod
    def read(cls, folder: Path, state: dict[str, Any]) -> Self:
        longest = state.get("longest", 0)
        if type(longest) is not int or longest < 0:
            raise ValueError(f"longest is {longest!r}")
        return cls(hf_folders.read_needed(folder), longest=longest)


Kept = TypeVar("Kept", bound=TextLearned)


@dataclass(frozen=True)
class EncoderText(Pipeline[Kept]):
    """Pipeline of an encoder of text: a line with a tab between two texts, or the texts themselves, are an input."""

    input: str = SENTENCES

    def column_names(self) -> Columns:
        return text_columns(), SECOND

    def of_columns(self, values: Sequence[str], folder: Path) -> Any:
        return tuple(values)  # a tab within one parts nothing

    @abstractmethod
    def answer(self, joined: Joined, given: Tensor, learned: Kept) -> Result:
        """The answer to one input, of what the model gives for it: T ..., or what it gives for all of it."""

    def answers(self, joined: Joined, given: Tensor, learned: Kept, count: int) -> Sequence[Result]:
        """The likeliest answers to one input, at most so many."""
        return self.answer(joined, given, learned).best(count)

    def texts(self, given: str | Sequence[str]) -> tuple[str, ...]:
        """The sentence or sentences of an input."""
        found = tuple(given.split("\t")) if isinstance(given, str) else tuple(given)
        nonempty(" ".join(found), self.input)
        if len(found) > 2:
            raise Refusal(f"the input has {len(found) - 1} tabs; give {self.input}")
        return found

    def seen(self, given: Any, learned: Kept) -> Sentence:
        """What an input says, where it is looked into: all that can be read."""
        return Sentence(self.texts(given), "")

    def answerable(self, given: Any, learned: Kept) -> Sentence:
        """What an input says, where it can be answered."""
        return self.seen(given, learned)

    def accepts(self, given: Any, learned: Kept) -> EncodedText:
        return self.encoded(self.answerable(given, learned), learned)

    def encoded(self, read: Sentence, learned: Kept) -> EncodedText:
        """An input with its tokens, of which there must be some."""
        joined = learned.join([read], learned.longest)[0]
        if not joined.ids:  # where a tokenizer puts nothing around a text
            raise Refusal(f"{' '.join(joined.texts)!r} has no token that the model knows; give another text")
        return EncodedText(read, joined)

    def results(
        self, model: nn.Module, samples: Sequence[EncodedText], learned: Kept, heard: Heard
    ) -> Sequence[Result]:
        given = outputs_of(model, [sample.joined for sample in samples], heard)
        return [self.answer(one.joined, said, learned) for one, said in zip(samples, given, strict=True)]

    def n_best(
        self, model: nn.Module, samples: Sequence[EncodedText], learned: Kept, count: int, heard: Heard
    ) -> Sequence[Sequence[Result]]:
        given = outputs_of(model, [sample.joined for sample in samples], heard)
        return [self.answers(one.joined, said, learned, count) for one, said in zip(samples, given, strict=True)]

    def warning(self, given: str, learned: Kept) -> str | None:
        try:
            length = len(learned.join([self.seen(given, learned)])[0].ids)
        except Refusal:  # whoever answers will say so, and of which input
            return None
        if length <= learned.longest:
            return None
        return f"{given[:60]!r} and so on is {length:,} tokens long, and the model reads the first {learned.longest:,}"

    @torch.no_grad()
    def look(self, model: nn.Module, given: Any, learned: Kept) -> Example:
        model.eval()
        sample = self.encoded(self.seen(given, learned), learned)
        with look(model) as seen:
            said = output_of(model, [sample.joined])[0]
        pieces = learned.pieces(sample.joined)
        answer = self.answer(sample.joined, said, learned)
        return Example(self.titled(sample.read, answer.plain()), maps_of_seen(seen, lambda path: (pieces, pieces)))

    def titled(self, read: Sentence, answer: str) -> str:
        """What stands over a picture of one input."""
        return f"{' | '.join(filter(None, (read.task, *read.texts)))} → {answer}"


def output_of(model: nn.Module, joined: Sequence[Joined]) -> Tensor:
    """What an encoder gives for inputs that are read together: B T ..., or B ..."""
    batch = to(batch_of(joined, letters_of(model.spec)), device_of(model))
    return finite(encoder_output(model, batch).float())


@torch.no_grad()
def outputs_of(model: nn.Module, joined: Sequence[Joined], heard: Heard) -> list[Tensor]:
    """What a model gives for each of several inputs, in order; those of like length are read together."""
    model.eval()
    made: dict[int, Tensor] = {}
    for places in alike([len(one.ids) for one in joined], ROOM):
        group = [joined[at] for at in places]
        answer = output_of(model, group)
        rows = (row[: len(one.ids)] if answer.dim() > 2 else row for one, row in zip(group, answer, strict=True))
        made |= dict(zip(places, rows, strict=True))
        heard(len(places))
    return [made[at] for at in range(len(joined))]
