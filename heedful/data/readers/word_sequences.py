"""Readers of sequences of words, each with a class: ListOps, the pixels of CIFAR-10, and a user's own file."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from heedful.data.formats import parallel_text
from heedful.data.formats.labelled_line import Line
from heedful.data.parallel_sample import Pair
from heedful.data.readers.labelled_images import PublicImages
from heedful.data.readers.labelled_sequences import LEVELS, MADE, PIXELS, each, grey, numbered
from heedful.data.readers.reader import Bounded, Divided, Files, Made, Ranged, Reader
from heedful.data.splits import Splits, divided, opened
from heedful.data.toys import listops


@dataclass(frozen=True)
class WordSplits(Splits[Line]):
    """Sequences, and the words that they are made of."""

    words: tuple[str, ...] = ()


class ListOps(Bounded, Ranged, Made):
    """Nested lists, and what each comes to: made on the fly."""

    def read(self, seed: int) -> WordSplits:
        made = listops.listops(self, seed)
        return WordSplits(made.train, made.valid, made.test, listops.WORDS)


class Pixels(Bounded, Divided, Reader):
    """Pictures as sequences: the brightness of their pixels, row by row, as Long Range Arena has CIFAR-10."""

    def read(self, seed: int) -> WordSplits:
        made = each(PublicImages(name="cifar10", split_seed=self.split_seed).read(seed), grey)
        return WordSplits(made.train, made.valid, made.test, LEVELS)


class WordSequences(Bounded, Divided, Files):
    """Sequences of a user's own file: words, a tab, and their class."""

    def from_memory(self, samples: Any) -> WordSplits:
        """Sequences of words with blanks between them, each with its class."""
        return worded(super().from_memory(samples))

    def sample(self, given: Any) -> Pair:
        """A sequence and its class."""
        return given if isinstance(given, Pair) else Pair(*given)

    def read(self, seed: int) -> WordSplits:
        def divide(pairs: list[Pair], what: str) -> Splits[Pair]:
            return divided(pairs, lambda one: one.source, what, self.split_seed)

        return worded(opened(self, parallel_text.read, divide, (MADE, PIXELS)))


def worded(read: Splits[Pair]) -> WordSplits:
    """Sequences of words and their classes, and all words that there are."""
    texts = [pair.source.split() for pair in (*read.train, *read.valid, *read.test)]
    words = tuple(sorted({word for text in texts for word in text}))
    number = {word: at for at, word in enumerate(words)}
    made = each(read, lambda one: Line(numbered(one.source.split(), number), one.target, one.where(0)))
    return WordSplits(made.train, made.valid, made.test, words)
