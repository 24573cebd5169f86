"""Token classification (tagging): a tag for each word, by its first token; words are what blanks part."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from torch import Tensor

from heedful.data.formats.conll import OUTSIDE
from heedful.data.formats.labelled_text import Sentence
from heedful.pipelines.encoder_text import EncoderText, TextLearned
from heedful.pipelines.use import Usage
from heedful.results import Tags
from heedful.tokenizers import Joined
from heedful.tokenizers.pieces import goals_of


@dataclass(frozen=True)
class WordTags(TextLearned):
    """The tags of words."""

    outputs: ClassVar[frozenset[str]] = frozenset({"tags"})


@dataclass(frozen=True)
class TokenClassification(EncoderText[WordTags]):
    """Token classification: the likeliest tag of each word; one of which no token is left has none."""

    input: str = "a sentence"

    def seen(self, given: Any, learned: WordTags) -> Sentence:
        text = given if isinstance(given, str) else " ".join(given)
        return super().seen(text.replace("\t", " "), learned)

    def answer(self, joined: Joined, given: Tensor, learned: WordTags) -> Tags:
        places = first_tokens(joined)
        row = dict(zip(places, self.tags(given[list(places.values())], learned), strict=True))
        words = tuple(joined.texts[0].split())
        return Tags(words, tuple(learned.labels[row[at]] if at in row else OUTSIDE for at in range(len(words))))

    def tags(self, scores: Tensor, learned: WordTags) -> list[int]:
        """The tags of words, of the scores that their first tokens have (W C)."""
        best: list[int] = scores.argmax(-1).tolist()
        return best


def first_tokens(joined: Joined) -> dict[int, int]:
    """Where the first token of each word stands; words of which no token is left are not among them."""
    words, places = goals_of(joined.texts[0]), dict[int, int]()
    for at, (side, (start, end)) in enumerate(zip(joined.sides, joined.spans, strict=True)):
        if side == 0 and joined.texts[0][start:end].strip():
            places.setdefault(words[start], at)
    return places


TAGGING = Usage(name="tagging", pipeline=TokenClassification(), learned=WordTags)
