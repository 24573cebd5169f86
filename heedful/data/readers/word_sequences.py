"""Readers of sequences of words, each with a class: ListOps, the pixels of CIFAR-10, and a user's own file."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from heedful.data.formats import parallel_text
from heedful.data.formats.labelled_line import Line
from heedful.data.held_values import label_in_memory, text_in_memory
from heedful.data.parallel_sample import Pair
from heedful.data.readers.labelled_images import PublicImages
from heedful.data.readers.labelled_sequences import LEVELS, MADE, PIXELS, each, grey, word_numbers
from heedful.data.readers.reader import Bounded, Divided, Made, Ranged, Reader, SampleFiles
from heedful.data.splits import Splits, divide_samples, open_splits
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


class WordSequences(Bounded, SampleFiles):
    """Your own sequences: a TSV with words separated by spaces, a tab and their class on each line."""

    def from_memory(self, samples: Any) -> WordSplits:
        """Sequences of words with blanks between them, each with its class."""
        return as_word_splits(super().from_memory(samples))

    def sample(self, given: Any) -> Pair:
        """A sequence and its class."""
        if isinstance(given, Pair):
            return given
        sequence, label = given
        return Pair(text_in_memory(sequence), label_in_memory(label))

    def read(self, seed: int) -> WordSplits:
        def divide(pairs: list[Pair], what: str) -> Splits[Pair]:
            return divide_samples(pairs, lambda one: one.source, what, self.cut)

        return as_word_splits(open_splits(self, parallel_text.read_pairs, divide, (MADE, PIXELS)))


def as_word_splits(read: Splits[Pair]) -> WordSplits:
    """Sequences of words and their classes, and all words that there are."""
    texts = [pair.source.split() for pair in (*read.train, *read.valid, *read.test)]
    words = tuple(sorted({word for text in texts for word in text}))
    number = {word: at for at, word in enumerate(words)}
    made = each(read, lambda one: Line(word_numbers(one.source.split(), number), one.target, one.where(0)))
    return WordSplits(made.train, made.valid, made.test, words)
