"""Going on with a text: a decoder that was taught elsewhere says what comes next."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, ClassVar, Self

import torch
from torch import nn

from heedful.data.collate import several
from heedful.decoding import Decoding, search, stream
from heedful.decoding.prompts import Asked
from heedful.looking import look
from heedful.looking.maps_of_seen import maps
from heedful.looking.page import Example
from heedful.pipelines.reading_inputs import read_all
from heedful.results import Result, Text
from heedful.tasks.use import Use
from heedful.tokenizers import hf_folders

AT_ONCE = 32  # inputs


class Continuing(Use):
    """Has a decoder that was taught elsewhere go on with a text, token by token."""

    name: ClassVar[str] = "continuing"
    input: ClassVar[str] = "a text"
    writes: ClassVar[bool] = True

    def predict(self, model: nn.Module, inputs: Iterable[str]) -> Iterator[Result]:
        return (answers[0] for answers in self.best(model, inputs, self.decoding))

    def best(
        self, model: nn.Module, inputs: Iterable[str], decoding: Decoding, best: int = 1, seed: int = 0
    ) -> Iterator[list[Text]]:
        """The n best answers to each input, with their scores."""
        read_all(texts := list(inputs), lambda text: Asked(model, text))  # so that a bad one is told by its number
        for first, group in enumerate(several(texts, AT_ONCE)):
            asked = Asked(model, list(group))
            numbers = [AT_ONCE * first + at for at in range(len(group))]
            for answers in search(asked.writer, asked.batch, decoding, best, seed, numbers):
                yield [Text(asked.tokenizer.decode(one.tokens), one.ranked(decoding.length_penalty)) for one in answers]

    def stream(self, model: nn.Module, text: str, decoding: Decoding, seed: int = 0, number: int = 0) -> Iterator[str]:
        """The answer to one input in pieces, as they are written; `number` is its place among several."""
        asked = Asked(model, text)
        found: Iterator[str] = asked.tokenizer.stream(stream(asked.writer, asked.batch, decoding, seed, number))
        return found

    def look(self, model: nn.Module, text: str) -> Example:
        return self.looked(model, text, self.decoding)

    def looked(self, model: nn.Module, text: str, decoding: Decoding) -> Example:
        """One pass over the input and the model's own answer to it."""
        asked = Asked(model, text)
        [[answer]] = search(asked.writer, asked.batch, decoding)
        model.eval()
        whole = torch.tensor([[*asked.rows[0], *answer.tokens]], device=asked.device)
        with torch.no_grad(), look(model) as seen:
            model(whole)
        words = asked.tokenizer.pieces(whole[0].tolist())
        return Example(f"{text} → {asked.tokenizer.decode(answer.tokens)}", maps(seen, lambda path: (words, words)))

    @classmethod
    def read(cls, folder: Path, state: dict[str, Any]) -> Self:
        hf_folders.needed(folder)
        return cls()
