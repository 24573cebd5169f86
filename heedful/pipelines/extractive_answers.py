"""Extractive question answering: the span of a text that answers a question; nothing where the model finds none."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor

from heedful.data.formats.labelled_text import Sentence
from heedful.errors import Refusal
from heedful.pipelines.encoder_text import EncoderText, TextLearned
from heedful.pipelines.use import Usage
from heedful.results import Span
from heedful.tokenizers import Joined

FARTHEST = 30  # tokens of the longest answer


@dataclass(frozen=True)
class SpanLearned(TextLearned):
    """Whether every question has an answer."""

    outputs: ClassVar[frozenset[str]] = frozenset({"answer"})

    always: bool = False


@dataclass(frozen=True)
class ExtractiveAnswers(EncoderText[SpanLearned]):
    """Extractive question answering: the likeliest span, or none where the first token is likelier."""

    input: str = "a question and a text, with a tab between them"

    def seen(self, given: Any, learned: SpanLearned) -> Sentence:
        read = super().seen(given, learned)
        if len(read.texts) < 2:
            raise Refusal(f"the input has no tab; give {self.input}")
        return read

    def answer(self, joined: Joined, given: Tensor, learned: SpanLearned) -> Span:
        start, end = given.unbind(-1)
        read = torch.tensor([side == 1 for side in joined.sides])
        both = start[:, None] + end[None, :]  # T T: begins at a row, ends at a column
        near = torch.ones_like(both, dtype=torch.bool).triu() & ~torch.ones_like(both, dtype=torch.bool).triu(FARTHEST)
        scores = both.masked_fill(~(near & (read[:, None] & read[None, :]).to(near.device)), -torch.inf)
        best = float(scores.max()) if len(scores) else -torch.inf
        if best == -torch.inf or (not learned.always and best <= float(both[0, 0])):  # the first token stands for none
            return Span()
        first, last = divmod(int(scores.argmax()), len(scores))
        begins, ends = joined.spans[first][0], joined.spans[last][1]
        text = joined.texts[1][begins:ends]
        begins += len(text) - len(text.lstrip())
        return Span(text.strip(), begins, begins + len(text.strip()))


ANSWERING = Usage(name="answering", pipeline=ExtractiveAnswers(), learned=SpanLearned)
