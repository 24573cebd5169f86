"""Nearest words (word analogies): the words nearest to one, or what is to one as another is to a third."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Protocol, TypeVar, cast

import torch
from torch import nn

from heedful.errors import Refusal, nearest
from heedful.looking.maps import Map
from heedful.looking.page import Example
from heedful.models.numerics import unit
from heedful.models.specs import UNKNOWN
from heedful.models.text.word_vectors import WordVectors
from heedful.pipelines.pipeline import Heard, Pipeline
from heedful.pipelines.written_text import WrittenText
from heedful.results import Neighbours
from heedful.tokenizers import Tokenizer

BEST = 5  # neighbours that are told
DRAWN = 15  # neighbours of a picture


class HasWords(Protocol):
    """A sample of texts, which a word of it stands for."""

    @property
    def first(self) -> Sequence[int]:
        """Its first tokens."""


Ids = list[int]  # of one word or three
Kept = TypeVar("Kept", bound=WrittenText)


@dataclass(frozen=True)
class NearestWords(Pipeline[Kept]):
    """Nearest words by the cosine of vectors; for samples of texts, those nearest to a word of each."""

    input: str = "a word, for those nearest; or three, for what is to the third as the second is to the first"

    def accepts(self, given: Any, learned: Kept) -> Ids:
        words = given.split()
        if len(words) not in (1, 3):
            raise Refusal(f"the input has {len(words)} words; give {self.input}")
        ids = [learned.tokenizer.encode(word) for word in words]
        for word, found in zip(words, ids, strict=True):
            if len(found) != 1 or found[0] <= UNKNOWN:
                meant = nearest(word, names_of(learned.tokenizer)[UNKNOWN + 1 :])
                raise Refusal(f"{word!r} is no word that was learned{meant or ';'} give one of the texts'")
        return [found[0] for found in ids]

    def results(
        self, model: nn.Module, samples: Sequence[Ids | HasWords], learned: Kept, heard: Heard
    ) -> list[Neighbours]:
        return [found[0] for found in self.n_best(model, samples, learned, BEST, heard)]

    def n_best(
        self, model: nn.Module, samples: Sequence[Ids | HasWords], learned: Kept, count: int, heard: Heard
    ) -> list[list[Neighbours]]:
        """The nearest words to each sample, as many as are asked for, in one answer."""
        names, made = names_of(learned.tokenizer), []
        for ids in asked_of(samples, names):
            made.append([Neighbours(tuple((names[at], alike) for at, alike in find_nearest(model, ids, count)))])
            heard(1)
        return made

    @torch.no_grad()
    def look(self, model: nn.Module, given: Any, learned: Kept) -> Example:
        """How near the words nearest to one are to each other: one picture, for nothing is attended to."""
        model = cast(WordVectors, model)
        ids, names = self.accepts(given, learned), names_of(learned.tokenizer)
        near = find_nearest(model, ids, DRAWN)
        shown = [*ids, *(at for at, _ in near)]
        vectors, words = unit(model.vectors[shown].float()), tuple(names[at] for at in shown)
        cosines = (vectors @ vectors.T).clamp(0, 1).cpu()[None]
        best = Neighbours(tuple((names[at], alike) for at, alike in near[:BEST]))
        return Example(f"{given} → {best.plain()}", (Map("cosine", cosines, words, words),))


@torch.no_grad()
def find_nearest(model: nn.Module, ids: Sequence[int], count: int) -> list[tuple[int, float]]:
    """The words nearest to one, or to the sum of the second and third less the first, by the cosine."""
    model = cast(WordVectors, model)
    vectors = unit(model.vectors.float())
    wanted = vectors[ids[0]] if len(ids) == 1 else vectors[ids[1]] - vectors[ids[0]] + vectors[ids[2]]
    alike = vectors @ unit(wanted)
    alike[[*range(UNKNOWN + 1), *ids]] = -torch.inf
    best = alike.topk(min(count, len(alike) - UNKNOWN - 1 - len(set(ids))))
    return list(zip(best.indices.tolist(), best.values.tolist(), strict=True))


@lru_cache(maxsize=4)
def names_of(tokenizer: Tokenizer) -> list[str]:
    """The words, by their ids."""
    return [piece.strip() for piece in tokenizer.pieces(range(len(tokenizer)))]


def asked_of(samples: Sequence[Ids | HasWords], names: Sequence[str]) -> Iterator[Ids]:
    """The words that are asked for, or one for each sample of texts, which no other one has, where there is one."""
    shown: Ids = []
    for sample in samples:
        ids = sample if isinstance(sample, list) else [word_of(sample, names, shown)]
        shown += ids
        yield ids


def word_of(sample: HasWords, names: Sequence[str], shown: Sequence[int] = ()) -> int:
    """The word that stands for a sample: the longest of its first, and one that was not shown, where there is one."""
    there = [int(at) for at in sample.first if at > UNKNOWN]
    return max(there, key=lambda at: (at not in shown, len(names[at])), default=UNKNOWN + 1)
