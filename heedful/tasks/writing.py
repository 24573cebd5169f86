"""Asking models that write and were learned elsewhere: what goes on behind a text, or what answers it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar, Self, cast

import torch
from torch import Tensor, nn

from heedful.decoding import Decoding, search, stream
from heedful.decoding.prompts import Asked
from heedful.decoding.writers import Speaker, Translator, translates
from heedful.looking import look
from heedful.looking.page import Example
from heedful.tasks.task import maps, read_all, several
from heedful.tasks.use import Use

AT_ONCE = 32  # inputs


class Writing(Use):
    """Goes on with a text, or answers it, token by token."""

    name: ClassVar[str] = "writing"
    input: ClassVar[str] = "a text"
    writes: ClassVar[bool] = True

    def predict(self, model: nn.Module, inputs: Iterable[str]) -> Iterator[str]:
        return (answers[0][0] for answers in self.best(model, inputs, self.decoding))

    def best(
        self, model: nn.Module, inputs: Iterable[str], decoding: Decoding, best: int = 1, seed: int = 0
    ) -> Iterator[list[tuple[str, float]]]:
        """The n best answers to each input, with their scores."""
        read_all(texts := list(inputs), lambda text: Asked(model, text))  # so that a bad one is told by its number
        for first, group in enumerate(several(texts, AT_ONCE)):
            asked = Asked(model, list(group))
            numbers = [AT_ONCE * first + at for at in range(len(group))]
            for answers in search(asked.writer, asked.source, decoding, best, seed, numbers):
                yield [(asked.tokenizer.decode(one.tokens), one.ranked(decoding.length_penalty)) for one in answers]

    def stream(self, model: nn.Module, text: str, decoding: Decoding, seed: int = 0, number: int = 0) -> Iterator[str]:
        """The answer to one input in pieces, as they are written; `number` is its place among several."""
        asked = Asked(model, text)
        found: Iterator[str] = asked.tokenizer.stream(stream(asked.writer, asked.source, decoding, seed, number))
        return found

    def look(self, model: nn.Module, text: str) -> Example:
        """One pass over the input and the model's own answer to it."""
        asked = Asked(model, text)
        [[answer]] = search(asked.writer, asked.source, self.decoding)
        model.eval()
        with torch.no_grad(), look(model) as seen:
            read, told = passed(asked, answer.tokens)
        source, written = asked.tokenizer.pieces(asked.source[0].tolist()), asked.tokenizer.pieces(read)

        def words(path: str) -> tuple[list[str], list[str]]:
            if path.startswith("encoder"):
                return source, source
            return (asked.tokenizer.pieces(told), source) if path.endswith("cross") else (written, written)

        return Example(f"{text} → {asked.tokenizer.decode(answer.tokens)}", maps(seen, words))

    @classmethod
    def read(cls, folder: Path, state: dict[str, Any]) -> Self:
        return cls()


def passed(asked: Asked, answer: Sequence[int]) -> tuple[list[int], list[int]]:
    """One pass over an answer: what was read, and what was told at each place of it."""
    if translates(asked.writer):
        model = cast(Translator, asked.writer)
        read = [model.special.begin, *answer]
        model.decode(asked.source.new_tensor([read]), model.encode(asked.source))
        return read, [*answer, model.special.end]
    whole: Tensor = torch.cat((asked.source, asked.source.new_tensor([list(answer)])), 1)
    cast(Speaker, asked.writer)(whole)
    return whole[0].tolist(), whole[0].tolist()
