"""Readers of texts and pairs of them, each with a class: opinions made on the fly, SST, and a user's own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Self

from pydantic import model_validator

from heedful.data.formats.class_folders import sides_of
from heedful.data.formats.labelled_text import Sentence, in_folders, read_sentences
from heedful.data.formats.sst import sst
from heedful.data.held_values import label_in_memory, text_in_memory
from heedful.data.parallel_sample import Column
from heedful.data.readers.reader import Bounded, Columns, Made, Reader, SampleFiles, Share, Tokenized
from heedful.data.splits import Splits, divide_samples, learn_unseen, open_splits
from heedful.data.toys import reviews


class EncoderTexts(Bounded, Tokenized):
    """The keys of texts that an encoder is fitted to."""

    noise: Share | None = None
    """The share of input tokens that are hidden in training, as regularisation; none if unset."""


class Opinions(EncoderTexts, Made):
    """Invented opinions of films, and whether they praise, blame or do neither."""

    def read(self, seed: int) -> Splits[Sentence]:
        return of_rows(reviews.opinions(self, seed))


class AskedOfOpinions(EncoderTexts, Made):
    """Such opinions, what is asked of each (the opinion, what it is of, whether it is over) and the answer."""

    def read(self, seed: int) -> Splits[Sentence]:
        return answerable(of_rows(reviews.questions_on_reviews(self, seed)), self.name)


class SST(EncoderTexts, Reader):
    """The Stanford Sentiment Treebank: sentences, phrases of them too, or as GLUE divides it."""

    form: str | None = None
    """Which version of SST-2 to read: `sentences`, `phrases` (the phrases of training sentences too) or `glue`."""

    def read(self, seed: int) -> Splits[Sentence]:
        return of_rows(sst(self.form or "phrases"))


class LabelledTexts(EncoderTexts, SampleFiles):
    """Your own labelled texts: TSV, CSV or JSONL of a text (or two) and a class, or a folder for each class."""

    text: Columns = None
    """The column of the texts, by name or number, or those of a pair: `[premise, hypothesis]`."""
    label: Column | None = None
    """The column of the classes, by name or number."""

    @model_validator(mode="after")
    def _columns_are_told_whole(self) -> Self:
        if (self.text is None) is not (self.label is None):
            told, other = ("text", "label") if self.label is None else ("label", "text")
            raise ValueError(f"data.{told} names a column and data.{other} none; give both, or neither")
        return self

    @property
    def columns(self) -> tuple[Column, ...]:
        """The columns of the texts and, last, of the class; none where they are known by their names."""
        texts = self.text if isinstance(self.text, list) else [self.text] if self.text is not None else []
        return (*texts, self.label) if self.label is not None else ()

    def sample(self, given: Any) -> Sentence:
        """A text, or two, and its class, last."""
        if isinstance(given, Sentence):
            return given
        *texts, label = given
        return Sentence(tuple(map(text_in_memory, texts)), label_in_memory(label))

    def read(self, seed: int) -> Splits[Sentence]:
        if self.name != "files" and (sides := sides_of(Path(self.name))):
            return of_halves(sides, self)

        def divide(all: list[Sentence], what: str) -> Splits[Sentence]:
            return answerable(divide_samples(all, lambda one: one.key, what, self.cut), what)

        read = partial(read_sentences, names=self.columns)
        return open_splits(self, read, divide, ("opinions", "asked-of-opinions", "sst"))


READERS: dict[str, type[Reader]] = {
    "opinions": Opinions,
    "asked-of-opinions": AskedOfOpinions,
    "sst": SST,
    "files": LabelledTexts,
}


def answerable(splits: Splits[Sentence], what: str) -> Splits[Sentence]:
    """The same, but a class that would be held out as a whole, as an answer to its task, is learned from."""
    few = f"{what} has too few texts of each class"
    return learn_unseen(splits, lambda one: [f"{one.task}\t{one.label}"], lambda one: one.key, few)


def of_rows(splits: Splits[tuple[str, ...]]) -> Splits[Sentence]:
    """Rows of a text, its class, and perhaps its task as sentences."""
    parts = (splits.train, splits.valid, splits.test)
    return Splits(*([Sentence((row[0],), row[1], task="".join(row[2:])) for row in part] for part in parts))


def of_halves(sides: Sequence[Path | None], reader: LabelledTexts) -> Splits[Sentence]:
    """The folders of `sides_of`, each with a folder for each class.

    Where there is but one beside that to learn from, whatever its name, it is tested on, and some of those to learn
    from are held out to choose by.
    """
    train, valid, test = (list(in_folders(place)) if place else [] for place in sides)
    if valid and test:
        return Splits(train, valid, test)
    parts = divide_samples(train, lambda one: one.key, reader.name, replace(reader.cut, test=False))
    return replace(answerable(parts, reader.name), test=valid or test)
