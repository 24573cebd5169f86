"""Writing: a text is read and another written, token by token, whoever taught the model to."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import ClassVar, cast

import torch
from torch import Tensor, nn

from heedful.data.collate import Ids, alike, stack
from heedful.decoding import search, stream
from heedful.decoding.generated_answer import Answer
from heedful.decoding.search_spec import Decoding
from heedful.looking import look
from heedful.looking.maps_of_seen import maps
from heedful.looking.page import Example
from heedful.models.numerics import device_of
from heedful.models.special_tokens import Special
from heedful.models.text.encoder_decoder import EncoderDecoder
from heedful.models.text.transformer import SPECIAL
from heedful.models.writer import longest
from heedful.pipelines.reading_inputs import nonempty, read_all
from heedful.results import Result, Text
from heedful.tasks.use import Use
from heedful.tokenizers import Tokenizer

WINDOW = 4096  # inputs that are read before the first is answered, so that those of like length go together
ROWS = 32_768  # tokens of sources, times beams, that are read at once


class Writes(Use):
    """How an encoder-decoder is asked: a source in ids, an end after it, and the answers that a search finds."""

    writes: ClassVar[bool] = True

    special: Special = SPECIAL
    longest = 0  # what the model takes

    def __init__(self, tokenizer: Tokenizer) -> None:
        self.tokenizer = tokenizer

    def sources(self, ids: Sequence[Ids]) -> Tensor:
        """Sources as the model reads them: an end after each, then padding."""
        return stack(ids, last=[self.special.end], pad=self.special.pad)

    def answers(self, model: nn.Module, sources: Sequence[Ids]) -> list[list[int]]:
        """What the model writes for each source."""
        return [list(found[0].tokens) for found in self.searched(model, sources, self.decoding)]

    def searched(
        self, model: nn.Module, sources: Sequence[Ids], decoding: Decoding, best: int = 1, seed: int = 0
    ) -> Iterator[list[Answer]]:
        """The best answers to each source; sources of like length are read together, order kept."""
        for first in range(0, len(sources), WINDOW):
            window = sources[first : first + WINDOW]
            made = {at: [Answer((), 0.0, True)] * best for at, ids in enumerate(window) if not len(ids)}
            for places in alike([len(ids) for ids in window], ROWS // max(decoding.beams, best)):
                batch = self.sources([window[at] for at in places]).to(device_of(model))
                numbers = [first + at for at in places]
                found = search(cast(EncoderDecoder, model), {"source": batch}, decoding, best, seed, numbers)
                made |= dict(zip(places, found, strict=True))
                self.tell(len(places))
            yield from (made[at] for at in range(len(window)))

    def predict(self, model: nn.Module, inputs: Iterable[str]) -> Iterator[Result]:
        return (answers[0] for answers in self.best(model, inputs, self.decoding))

    def best(
        self, model: nn.Module, inputs: Iterable[str], decoding: Decoding, best: int = 1, seed: int = 0
    ) -> Iterator[list[Text]]:
        """The n best answers to each input, with their scores."""
        sources = read_all(inputs, self.known)
        for ids, answers in zip(sources, self.searched(model, sources, decoding, best, seed), strict=True):
            yield [Text(self.said(ids, one.tokens), one.ranked(decoding.length_penalty)) for one in answers]

    def said(self, source: Ids, tokens: Sequence[int]) -> str:
        """What the tokens of an answer say to a source."""
        return self.tokenizer.decode(tokens)

    def stream(self, model: nn.Module, text: str, decoding: Decoding, seed: int = 0, number: int = 0) -> Iterator[str]:
        """The answer to one input in pieces, as they are written; `number` is its place among several."""
        if not (ids := self.known(text)):
            return iter(())
        source = self.sources([ids]).to(device_of(model))
        return self.tokenizer.stream(stream(cast(EncoderDecoder, model), {"source": source}, decoding, seed, number))

    def known(self, text: str) -> list[int]:
        """The ids of an input."""
        return self.tokenizer.encode(nonempty(text, self.input))

    def look(self, model: nn.Module, text: str) -> Example:
        """One teacher-forced pass over the input and the model's own answer to it."""
        ids = self.known(text)
        answer = self.answers(model, [ids])[0][: longest(model) - 1]  # BEGIN stands before it
        batch = self.sources([ids]).to(device_of(model))
        model.eval()
        end = self.special.end
        with torch.no_grad(), look(model) as seen:
            model(batch, stack([[self.special.begin, *answer]]).to(batch.device))
        source, written = self.tokenizer.pieces([*ids, end]), self.tokenizer.pieces([*answer, end])
        read = self.tokenizer.pieces([self.special.begin, *answer])

        def words(path: str) -> tuple[list[str], list[str]]:
            if path.startswith("encoder"):
                return source, source
            return written, source if path.endswith("cross") else read

        return Example(f"{text} → {self.said(ids, answer)}", maps(seen, words))
