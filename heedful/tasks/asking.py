"""Asking encoders that have learned to answer: the class of a sentence, tags, a span that answers, masked tokens."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import ClassVar

import torch
from torch import Tensor

from heedful.errors import Refusal
from heedful.models import Spec
from heedful.models.heads_asked import AskedSpec
from heedful.results import Label, Labels, Result, Score, Span, Tags, Text
from heedful.tasks.reading import Reading
from heedful.tokenizers import Joined
from heedful.tokenizers.pieces import goals_of

NO_TAG = "O"  # of a word that was cut off, or of which no token is left
FARTHEST = 30  # tokens of the longest answer


class Classification(Reading):
    """The likeliest class of a sentence or pair, by its name; where there is one alone, the number it is given.

    Where several may hold at once, each of them with its chance.
    """

    name: ClassVar[str] = "classification"
    outputs: ClassVar[frozenset[str]] = frozenset({"classes"})

    several: bool = False
    many: Mapping[str, int] = MappingProxyType({})  # texts of an input, by what is asked, where that is known

    def suits(self, spec: Spec) -> None:
        super().suits(spec)
        self.several = isinstance(spec, AskedSpec) and spec.multi_label

    def known(self, text: str) -> tuple[str, ...]:
        return self.as_learned(super().known(text))

    def as_learned(self, texts: tuple[str, ...], task: str = "") -> tuple[str, ...]:
        """The texts of an input themselves, where they are as many as were learned from."""
        if fault := self.unlike(texts, task):
            cure = "take the tab out" if len(texts) > 1 else "give two with a tab between them"
            raise Refusal(f"the input is {fault}; {cure}")
        return texts

    def unlike(self, texts: Sequence[str], task: str = "") -> str:
        """What is wrong with texts that are more or fewer than were learned from; nothing where that is not known."""
        if len(texts) == self.many.get(task, len(texts)):
            return ""
        given, learned = ("one text", "pairs") if len(texts) == 1 else ("a pair", "single texts")
        return f"{given}, and {learned} were learned from"

    def answer(self, joined: Joined, given: Tensor) -> Result:
        if self.several:
            return Labels(tuple(zip(self.labels, given.sigmoid().tolist(), strict=True)))
        return Score(float(given)) if len(self.labels) == 1 else Label.among(self.labels, given.softmax(-1))


class Tagging(Reading):
    """The likeliest tag of each word, by its first token; words are what blanks part."""

    name: ClassVar[str] = "tagging"
    outputs: ClassVar[frozenset[str]] = frozenset({"tags"})
    input: ClassVar[str] = "a sentence"

    def known(self, text: str) -> tuple[str, ...]:
        return (super().known(text.replace("\t", " "))[0],)

    def answer(self, joined: Joined, given: Tensor) -> Tags:
        best, places = given.argmax(-1).tolist(), first_tokens(joined)
        words = tuple(joined.texts[0].split())
        found = (self.labels[best[places[at]]] if at in places else NO_TAG for at in range(len(words)))
        return Tags(words, tuple(found))


def first_tokens(joined: Joined) -> dict[int, int]:
    """Where the first token of each word stands; words of which no token is left are not among them."""
    words, places = goals_of(joined.texts[0]), dict[int, int]()
    for at, (side, (start, end)) in enumerate(zip(joined.sides, joined.spans, strict=True)):
        if side == 0 and joined.texts[0][start:end].strip():
            places.setdefault(words[start], at)
    return places


class Answering(Reading):
    """The span of a text that answers a question; nothing where the model finds none."""

    name: ClassVar[str] = "answering"
    outputs: ClassVar[frozenset[str]] = frozenset({"answer"})
    input: ClassVar[str] = "a question and a text, with a tab between them"

    always: bool = False  # whether every question has an answer

    def known(self, text: str) -> tuple[str, ...]:
        texts = super().known(text)
        if len(texts) < 2:
            raise Refusal(f"the input has no tab; give {self.input}")
        return texts

    def answer(self, joined: Joined, given: Tensor) -> Span:
        start, end = given.unbind(-1)
        read = torch.tensor([side == 1 for side in joined.sides])
        both = start[:, None] + end[None, :]  # T T: begins at a row, ends at a column
        near = torch.ones_like(both, dtype=torch.bool).triu() & ~torch.ones_like(both, dtype=torch.bool).triu(FARTHEST)
        scores = both.masked_fill(~(near & (read[:, None] & read[None, :]).to(near.device)), -torch.inf)
        best = float(scores.max()) if len(scores) else -torch.inf
        if best == -torch.inf or (not self.always and best <= float(both[0, 0])):  # the first token stands for none
            return Span()
        first, last = divmod(int(scores.argmax()), len(scores))
        begins, ends = joined.spans[first][0], joined.spans[last][1]
        text = joined.texts[1][begins:ends]
        begins += len(text) - len(text.lstrip())
        return Span(text.strip(), begins, begins + len(text.strip()))


class Filling(Reading):
    """The text with the likeliest token behind each mask."""

    name: ClassVar[str] = "filling"
    outputs: ClassVar[frozenset[str]] = frozenset({"masked"})

    @property
    def mask(self) -> tuple[str, int]:
        """The name of the token that stands for another, and its id."""
        for name, at in self.tokenizer.special.items():
            if "mask" in name.casefold():
                return name, at
        raise Refusal("the tokenizer has no token for a mask; use one that has")

    def known(self, text: str) -> tuple[str, ...]:
        name, _ = self.mask
        if name not in text:
            raise Refusal(f"the input has no {name}; put one where a token should be found")
        return super().known(text)

    def seen(self, text: str) -> tuple[str, ...]:
        return super().known(text)  # with a mask or without one

    def answer(self, joined: Joined, given: Tensor) -> Text:
        mask, best = self.mask[1], given.argmax(-1).tolist()
        ids = [new if at == mask else at for at, new in zip(joined.ids, best, strict=True)]
        return Text(self.tokenizer.decode(ids))
