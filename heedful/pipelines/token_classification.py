"""Token classification (tagging): a tag for each word, by its first token; words are what blanks part."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from heedful.data.formats.conll import OUTSIDE, spans
from heedful.data.formats.labelled_text import Sentence
from heedful.models.numerics import exact
from heedful.pipelines.encoder_text import EncoderText, TextLearned
from heedful.pipelines.use import Usage
from heedful.results import Entity, Tags
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
        return self.answers(joined, given, learned, 1)[0]

    def answers(self, joined: Joined, given: Tensor, learned: WordTags, count: int) -> Sequence[Tags]:
        """The likeliest rows of tags, with the probability of each row and of each entity in it."""
        places = first_tokens(joined)
        scores = exact(given[list(places.values())]).log_softmax(-1).cpu().numpy()
        rows = best_rows(scores, self.follows(learned), count)
        return [self.tags(joined, dict(zip(places, row, strict=True)), scores, learned) for row in rows]

    def tags(self, joined: Joined, row: Mapping[int, int], scores: NDArray[np.float64], learned: WordTags) -> Tags:
        """The tags of an input, of the number of each word's; words of which no token is left have none."""
        words = [(found[0], found.start(), found.end()) for found in re.finditer(r"\S+", joined.texts[0])]
        named = [learned.labels[row[at]] if at in row else OUTSIDE for at in range(len(words))]
        chances = {word: float(np.exp(scores[at, tag])) for at, (word, tag) in enumerate(row.items())}
        entities = []
        for kind, first, last in spans(named):
            begins, ends = words[first][1], words[last - 1][2]
            sure = math.prod(chances[at] for at in range(first, last))
            entities.append(Entity(kind, joined.texts[0][begins:ends], begins, ends, sure))
        return Tags(tuple(word for word, *_ in words), tuple(named), math.prod(chances.values()), tuple(entities))

    def follows(self, learned: WordTags) -> NDArray[np.bool_]:
        """Whether a tag (a column) may follow another (a row); the last row is what a sentence begins with."""
        return np.ones((len(learned.labels) + 1, len(learned.labels)), dtype=np.bool_)


def best_rows(chances: NDArray[np.float64], allowed: NDArray[np.bool_], count: int = 1) -> list[list[int]]:
    """The likeliest rows of tags (list Viterbi; Seshadri and Sundberg, 1994), at most `count`, the best first.

    `chances` are each word's log-chances (T C), and `allowed` says who may follow whom (C + 1, C).
    """
    if not len(chances):
        return [[]]
    barred = np.where(allowed, 0.0, -np.inf)
    best, back = (chances[0] + barred[-1])[None], []  # K C: the best ways to come to each tag
    for row in chances[1:]:
        ways = (best[:, :, None] + barred[None, :-1]).reshape(-1, len(row))  # K C, C
        order = ways.argmax(0)[None] if count == 1 else np.argsort(-ways, axis=0, kind="stable")[:count]
        back.append(order)
        best = np.take_along_axis(ways, order, 0) + row
    made = []
    for end in np.argsort(-best.ravel(), kind="stable")[:count]:
        if best.ravel()[end] > -np.inf:
            rank, tag = divmod(int(end), best.shape[1])
            path = [tag]
            for order in reversed(back):
                rank, tag = divmod(int(order[rank, tag]), best.shape[1])
                path.append(tag)
            made.append(path[::-1])
    return made


def first_tokens(joined: Joined) -> dict[int, int]:
    """Where the first token of each word stands; words of which no token is left are not among them."""
    words, places = goals_of(joined.texts[0]), dict[int, int]()
    for at, (side, (start, end)) in enumerate(zip(joined.sides, joined.spans, strict=True)):
        if side == 0 and joined.texts[0][start:end].strip():
            places.setdefault(words[start], at)
    return places


TAGGING = Usage(name="tagging", pipeline=TokenClassification(), learned=WordTags)
