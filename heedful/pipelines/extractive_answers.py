"""Extractive question answering: the span of a text that answers a question; nothing where the model finds none."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor

from heedful.data.formats.labelled_text import Sentence
from heedful.errors import Refusal
from heedful.models.numerics import exact
from heedful.pipelines.encoder_text import EncoderText, TextLearned
from heedful.pipelines.pipeline import Columns
from heedful.pipelines.use import Usage
from heedful.results import Span
from heedful.tokenizers import Joined

CONTEXT = ("context", "passage", "paragraph", "text")  # names of a column
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

    def column_names(self) -> Columns:
        return ("question",), CONTEXT

    def seen(self, given: Any, learned: SpanLearned) -> Sentence:
        read = super().seen(given, learned)
        if len(read.texts) < 2:
            raise Refusal(f"the input has no tab; give {self.input}")
        return read

    def answer(self, joined: Joined, given: Tensor, learned: SpanLearned) -> Span:
        return self.answers(joined, given, learned, 1)[0]

    def answers(self, joined: Joined, given: Tensor, learned: SpanLearned, count: int) -> Sequence[Span]:
        """The likeliest spans, with the probability of each among all that could answer; none may be among them."""
        start, end = exact(given).unbind(-1)
        read = torch.tensor([side == 1 for side in joined.sides], device=start.device)
        both = start[:, None] + end[None, :]  # T T: begins at a row, ends at a column
        near = torch.ones_like(both, dtype=torch.bool).triu() & ~torch.ones_like(both, dtype=torch.bool).triu(FARTHEST)
        scores = both.masked_fill(~(near & read[:, None] & read[None, :]), -torch.inf).flatten()
        none = both[:1, 0] if not learned.always else scores.new_empty(0)  # the first token stands for none
        chances = torch.cat((none, scores)).softmax(-1)  # of equals, none comes first
        order = chances.argsort(descending=True, stable=True)[:count].tolist()
        best = [(float(chances[at]), at - len(none)) for at in order]
        made = [self.span(joined, divmod(at, len(start)), chance) for chance, at in best if chance > 0]
        return made or [Span()]

    def span(self, joined: Joined, tokens: tuple[int, int], chance: float) -> Span:
        """The answer from one token to another; a first one below 0 stands for none."""
        first, last = tokens
        if first < 0:
            return Span(chance=chance)
        begins, ends = joined.spans[first][0], joined.spans[last][1]
        text = joined.texts[1][begins:ends]
        begins += len(text) - len(text.lstrip())
        return Span(text.strip(), begins, begins + len(text.strip()), chance)


ANSWERING = Usage(name="answering", pipeline=ExtractiveAnswers(), learned=SpanLearned)
