"""Readers of words with a tag each: messages made on the fly, WNUT-17, and a user's own CoNLL files."""

from __future__ import annotations

from heedful.data.formats.conll import Tagged, read
from heedful.data.public import download
from heedful.data.readers.labelled_texts import EncoderTexts
from heedful.data.readers.reader import Divided, Files, Made, Reader
from heedful.data.splits import Splits, divided, opened, taught
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
        return Splits(*(read(str(download.there(home / f"{split}.conll"))) for split in ("train", "dev", "test")))


class TaggedWords(EncoderTexts, Divided, Files):
    """Sentences of a user's own: a word a line, its tag last, an empty line between two."""

    def read(self, seed: int) -> Splits[Tagged]:
        def divide(all: list[Tagged], what: str) -> Splits[Tagged]:
            parts = divided(all, lambda one: one.words, what, self.split_seed, lambda one: one.texts[0])
            few = f"{what} has too few sentences with each tag"
            return taught(parts, lambda one: one.tags, lambda one: one.texts[0], few)

        return opened(self, read, divide, ("mentions", "wnut17"))
