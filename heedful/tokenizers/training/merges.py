"""Merges of byte pair encoding (Sennrich et al., 2016): of neighbours that may merge, those learnt first do first."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from itertools import pairwise
from typing import NamedTuple

from heedful.tokenizers.pieces import is_named_byte
from heedful.tokenizers.tokenizer_json import Layout


class Step(NamedTuple):
    """One merge: which of all it is, where it happens, and the ids after it."""

    rank: int
    place: int
    ids: tuple[int, ...]


class Merges:
    """The merges of a tokenizer in terms of ids: which pairs merge, when, and what they become."""

    def __init__(self, layout: Layout) -> None:
        self.prefix: str = layout.model.get("continuing_subword_prefix") or ""
        self.suffix: str = layout.model.get("end_of_word_suffix") or ""
        self.known, self.names = layout.known, {at: name for name, at in layout.known.items()}
        self.whole = frozenset(layout.special.values())
        self.into: dict[tuple[int, int], tuple[int, int]] = {}  # a pair's rank, and what it becomes
        for rank, (left, right) in enumerate(layout.model["merges"]):
            made = self.known[left + right[len(self.prefix) :]]
            self.into[self.known[left], self.known[right]] = rank, made
        self.letters = cache(self._letters)

    def _letters(self, at: int) -> tuple[int, ...]:
        """What a token is merged from: its characters; itself, where it is a byte or no text."""
        name = self.names[at]
        if at in self.whole or is_named_byte(name):
            return (at,)
        first = self.prefix if self.prefix and name.startswith(self.prefix) else ""
        last = self.suffix if self.suffix and name.endswith(self.suffix) else ""
        signs = [self.prefix + sign for sign in name.removeprefix(first).removesuffix(last)]
        if not signs:
            return (at,)
        signs[0] = first + signs[0].removeprefix(self.prefix)
        signs[-1] += last
        return tuple(self.known[sign] for sign in signs) if all(sign in self.known for sign in signs) else (at,)

    def steps(self, ids: Sequence[int]) -> Iterator[Step]:
        """How a word's letters merge, one after the other, until nothing is left to merge."""
        ids = tuple(ids)
        while True:
            pairs = ((*self.into[pair], place) for place, pair in enumerate(pairwise(ids)) if pair in self.into)
            best = min(pairs, key=lambda found: (found[0], found[2]), default=None)
            if best is None:
                return
            rank, made, place = best
            ids = (*ids[:place], made, *ids[place + 2 :])
            yield Step(rank, place, ids)


def group_by_word(ids: Sequence[int], words: Sequence[int | None]) -> Iterator[tuple[int, ...]]:
    """The ids of each word, by the number of the word that each id has."""
    start = 0
    for end in range(1, len(ids) + 1):
        if end == len(ids) or words[end] != words[start]:
            yield tuple(ids[start:end])
            start = end
