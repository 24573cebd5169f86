"""Text generation pipeline: a decoder goes on with a text, token by token, whoever trained it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self, TypeVar

import torch
from torch import nn

from heedful.data.collate import several
from heedful.decoding import Decoding, search, stream
from heedful.decoding.logits_rules import Rules
from heedful.decoding.prompts import Asked
from heedful.looking import look
from heedful.looking.maps import maps_of_seen
from heedful.looking.page import Example
from heedful.pipelines.pipeline import Generation, Heard, unheard
from heedful.pipelines.use import Usage
from heedful.pipelines.written_text import WrittenText
from heedful.results import Text
from heedful.tokenizers import hf_folders

AT_ONCE = 32  # inputs
One = str | list[int]  # a prompt: a text, or ids


@dataclass(frozen=True)
class DecoderLearned(WrittenText):
    """The tokenizer of a decoder, which lies beside it, and how its answers are searched for."""

    def write(self, folder: Path, name: str) -> None:
        super().write(folder, name)
        self.tokenizer.write(folder / "tokenizer.json")

    @classmethod
    def read(cls, folder: Path, state: dict[str, Any]) -> Self:
        return cls(hf_folders.read_needed(folder), search=Decoding.model_validate(state.get("decoding", {})))


Kept = TypeVar("Kept", bound=WrittenText)


@dataclass(frozen=True)
class TextGeneration(Generation[Kept]):
    """Text generation: a prompt becomes what a decoder writes behind it."""

    input: str = "a text"

    def accepts(self, given: Any, learned: Kept) -> One:
        """What a model reads of an input."""
        prompt: One = given
        return prompt

    def sample(self, given: Any, model: nn.Module, learned: Kept) -> One:
        prompt = self.accepts(given, learned)
        Asked(model, prompt)  # refuses what the model does not read
        return prompt

    def rules(self, decoding: Decoding, learned: Kept) -> Rules:
        """What may be written, and what ends it."""
        return decoding.rules

    def looked_at(self, model: nn.Module, prompt: One, learned: Kept) -> Decoding:
        """How the answer is searched for that is looked into."""
        return learned.decoding

    def results(self, model: nn.Module, samples: Sequence[Any], learned: Kept, heard: Heard) -> list[Text]:
        found = self.written(model, samples, learned, learned.decoding, heard=heard)
        return [answers[0] for answers in found]

    def written(
        self,
        model: nn.Module,
        samples: Sequence[One],
        learned: Kept,
        decoding: Decoding,
        best: int = 1,
        seed: int = 0,
        heard: Heard = unheard,
    ) -> Iterator[list[Text]]:
        rules = self.rules(decoding, learned)
        for first, group in enumerate(several(samples, AT_ONCE)):
            asked = Asked(model, list(group))  # type: ignore[arg-type]  # all texts, or all ids
            numbers = [AT_ONCE * first + at for at in range(len(group))]
            for answers in search(asked.writer, asked.batch, decoding, best, seed, numbers, rules=rules):
                said = ((learned.tokenizer.decode(one.tokens), one.ranked(decoding.length_penalty)) for one in answers)
                yield [Text(text, score) for text, score in said]
            heard(len(group))

    def stream(
        self, model: nn.Module, given: Any, learned: Kept, decoding: Decoding, seed: int = 0, number: int = 0
    ) -> Iterator[str]:
        asked, rules = Asked(model, self.accepts(given, learned)), self.rules(decoding, learned)
        return learned.tokenizer.stream(stream(asked.writer, asked.batch, decoding, seed, number, rules))

    def look(self, model: nn.Module, given: Any, learned: Kept) -> Example:
        """One pass over the input and the model's own answer to it."""
        prompt = self.accepts(given, learned)
        asked, decoding = Asked(model, prompt), self.looked_at(model, prompt, learned)
        [[answer]] = search(asked.writer, asked.batch, decoding, rules=self.rules(decoding, learned))
        model.eval()
        whole = torch.tensor([[*asked.rows[0], *answer.tokens]], device=asked.device)
        with torch.no_grad(), look(model) as seen:
            model(whole)
        words = learned.tokenizer.pieces(whole[0].tolist())
        return Example(
            f"{given} → {learned.tokenizer.decode(answer.tokens)}", maps_of_seen(seen, lambda path: (words, words))
        )


CONTINUING = Usage(name="text-generation", pipeline=TextGeneration(), learned=DecoderLearned)
