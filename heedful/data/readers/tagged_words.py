"""Readers of words with a tag each: messages made on the fly, WNUT-17, and a user's own CoNLL files."""

from __future__ import annotations

from typing import Any

from heedful.data.formats.conll import Tagged, read_tagged
from heedful.data.held_values import label_in_memory, text_in_memory
from heedful.data.public import download
from heedful.data.readers.labelled_texts import EncoderTexts
from heedful.data.readers.reader import Made, Reader, SampleFiles
from heedful.data.splits import Splits, divide_samples, learn_unseen, open_splits
from heedful.data.toys.entities import mentions


class Mentions(EncoderTexts, Made):
    """Invented messages with names in them: who, where and which firm."""

    def read(self, seed: int) -> Splits[Tagged]:
        made = mentions(self, seed)
        return Splits(*([Tagged(*row) for row in part] for part in (made.train, made.valid, made.test)))


class WNUT17(EncoderTexts, Reader):
    """Names on the web that nobody saw before (Derczynski et al., 2017), as it is divided."""

    def read(self, seed: int) -> Splits[Tagged]:
        home = download.home("wnut17")
        return Splits(
            *(read_tagged(str(download.there(home / f"{split}.conll"))) for split in ("train", "dev", "test"))
        )


class TaggedWords(EncoderTexts, SampleFiles):
    """Your own tagged sentences (CoNLL): a word and its tag on each line, and an empty line after each sentence."""

    def sample(self, given: Any) -> Tagged:
        """Words, and a tag for each."""
        if isinstance(given, Tagged):
            return given
        pairs = [(text_in_memory(word), label_in_memory(tag)) for word, tag in zip(*given, strict=True)]
        return Tagged(tuple(word for word, _ in pairs), tuple(tag for _, tag in pairs))

    def read(self, seed: int) -> Splits[Tagged]:
        def divide(all: list[Tagged], what: str) -> Splits[Tagged]:
            parts = divide_samples(all, lambda one: one.words, what, self.cut, lambda one: one.texts[0])
            few = f"{what} has too few sentences with each tag"
            return learn_unseen(parts, lambda one: one.tags, lambda one: one.texts[0], few)

        return open_splits(self, read_tagged, divide, ("mentions", "wnut17"))
