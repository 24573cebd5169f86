"""Denoising (span corruption): texts get gaps, and what is missing, or the whole text, is to be written."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from heedful.data.collate import Ids
from heedful.data.token_crops import Whole
from heedful.errors import Refusal

SPAN = 3  # tokens of a gap, on average

Gaps = list[tuple[int, int]]  # where each begins, and where the text goes on
Corrupted = tuple[Whole, Whole, NDArray[np.bool_]]


@dataclass(frozen=True)
class Corruption(ABC):
    """Corruption of texts of at most so many tokens, of which a share is hidden behind marks."""

    window: int
    noise: float
    marks: tuple[int, ...]  # the ids of what stands for a gap

    @abstractmethod
    def gaps(self, length: int, random: np.random.Generator) -> Gaps:
        """Where a text of so many tokens has gaps, in order; they do not touch."""

    @abstractmethod
    def made_of(self, ids: Whole, gaps: Gaps) -> Corrupted:
        """The source and the target of a corrupted text, and which tokens of the target were hidden."""

    @property
    @abstractmethod
    def room(self) -> tuple[int, int]:
        """How many tokens are read and written at most, END counted."""

    def of(self, ids: Whole, seed: int) -> Corrupted:
        """A text as it is read and written, with gaps that a seed tells."""
        return self.made_of(ids, self.gaps(len(ids), np.random.default_rng(seed)))

    def whole(self, source: Ids, tokens: Sequence[int]) -> Sequence[int]:
        """The text that what was written to a source makes whole."""
        return tokens


@dataclass(frozen=True)
class TextInfilling(Corruption):
    """Text infilling: a text is written anew of which spans are masked, none or many tokens each (BART).

    Lewis et al., 2020.
    """

    @property
    def room(self) -> tuple[int, int]:
        return self.window + 1, self.window + 1

    def gaps(self, length: int, random: np.random.Generator) -> Gaps:
        """Spans whose lengths are Poisson's, at places by chance, until enough tokens are hidden."""
        wanted, read, found = round(self.noise * length), length, []
        free = np.ones(length + 1, dtype=bool)
        for _ in range(length):
            if wanted <= 0:
                break
            size = min(int(random.poisson(SPAN)), wanted)
            at = int(random.integers(0, length - size + 1))
            room = size > 0 or read < self.window  # a gap of no token makes what is read longer
            if room and free[max(0, at - 1) : at + size + 1].all():
                free[at : at + max(1, size)] = False
                found.append((at, at + size))
                wanted -= max(1, size)
                read += 1 - size
        return sorted(found)

    def made_of(self, ids: Whole, gaps: Gaps) -> Corrupted:
        mask = np.array(self.marks)
        hidden = np.zeros(len(ids), dtype=bool)
        for start, end in gaps:
            hidden[start:end] = True
        return np.concatenate([*between(ids, gaps, [mask] * len(gaps))]), ids, hidden


@dataclass(frozen=True)
class SpanCorruption(Corruption):
    """Span corruption: the spans that are missing in a text are written, each behind the mark of its gap (T5).

    Raffel et al., 2020.
    """

    @property
    def room(self) -> tuple[int, int]:
        hidden, gaps = self.counts(self.window)
        return self.window + 1, hidden + gaps + 2

    def counts(self, length: int) -> tuple[int, int]:
        """How many tokens of a text are hidden, and in how many gaps."""
        hidden = min(max(1, round(self.noise * length)), length - 1)
        gaps = max(1, min(round(hidden / SPAN), length - hidden))
        if gaps >= len(self.marks):
            raise Refusal(f"{gaps} gaps in {length} tokens are more than the {len(self.marks)} marks; lower data.noise")
        return hidden, gaps

    def gaps(self, length: int, random: np.random.Generator) -> Gaps:
        """As many tokens are hidden in as many gaps, whatever the dice say: a text has one shape."""
        if length < 2:
            return []
        hidden, gaps = self.counts(length)
        kept, veiled = parts(length - hidden, gaps, random), parts(hidden, gaps, random)
        ends = np.cumsum(np.stack((kept, veiled), 1).ravel())
        return [(int(ends[2 * at]), int(ends[2 * at + 1])) for at in range(gaps)]

    def made_of(self, ids: Whole, gaps: Gaps) -> Corrupted:
        marks = [np.array([mark]) for mark in self.marks[: len(gaps) + 1]]
        read = np.concatenate([*between(ids, gaps, marks[: len(gaps)])])
        spans = [part for (start, end), mark in zip(gaps, marks, strict=False) for part in (mark, ids[start:end])]
        write = np.concatenate([*spans, marks[-1]])
        return read, write, ~np.isin(write, np.concatenate(marks))

    def whole(self, source: Ids, tokens: Sequence[int]) -> Sequence[int]:
        """The text with what was written in its gaps."""
        spans: dict[int, list[int]] = {}
        mark = -1
        for at in tokens:
            mark = at if at in self.marks else mark
            spans.setdefault(mark, []).append(at)
        return [one for at in map(int, source) for one in spans.get(at, [at])]


def between(ids: Whole, gaps: Gaps, marks: Sequence[Whole]) -> Iterator[Whole]:
    """The text around the gaps, with a mark in the place of each."""
    last = 0
    for (start, end), mark in zip(gaps, marks, strict=True):
        yield ids[last:start]
        yield mark
        last = end
    yield ids[last:]


def parts(total: int, count: int, random: np.random.Generator) -> NDArray[np.int64]:
    """So many numbers of 1 or more by chance that sum to a total."""
    cuts = np.sort(random.choice(total - 1, count - 1, replace=False)) + 1
    return np.diff(np.concatenate(([0], cuts, [total])))
