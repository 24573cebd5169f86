"""Readers of texts as one stream of tokens (corpus): captions made on the fly, public sets, and a user's own files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated, Any, Literal, cast

from pydantic import BaseModel, Field, create_model

from heedful.data.formats import documents
from heedful.data.held_values import text_in_memory
from heedful.data.public import download
from heedful.data.readers.reader import FILES, Divided, Files, Made, Many, Reader, Share, Tokenized
from heedful.data.splits import Splits, open_splits
from heedful.data.texts_on_disk import Text

CAPTIONS = "captions"  # the name of texts that are made on the fly
Stride = Annotated[int, Field(ge=0, lt=2**31)]


class Cropped(BaseModel):
    """The keys of the crops that texts are cut into."""

    longest: Many = 24
    """The number of tokens in a crop: texts are cut into crops of this length."""
    stride: Stride = 0
    """The number of tokens between two crops that are scored; with 0 they do not overlap."""


class Noisy(BaseModel):
    """The key of how many tokens are hidden while learning."""

    noise: Share | None = None
    """The share of tokens that are hidden or replaced in training; if unset, the share that the task's paper uses."""


class Neighbourly(BaseModel):
    """The key of how far the neighbours of a word reach."""

    near: Annotated[int, Field(ge=1, le=100)] = 5
    """How many words on either side of a word count as its neighbours."""


class OfDocuments(BaseModel):
    """The key of what is a text of its own."""

    document: Literal["file", "paragraph", "line"] = "file"
    """What counts as a text of its own: a whole file, a paragraph or a line."""


class Captions(Tokenized, Made):
    """Captions in English, each a text of its own."""

    def read(self, seed: int) -> Splits[Text]:
        from heedful.data.toys.invented_language import captions

        return captions(self, seed)


class TextSets(OfDocuments, Tokenized, Reader):
    """Public texts, divided as others divide them."""

    def read(self, seed: int) -> Splits[Text]:
        return documents.documents(documents.SETS[self.name](download.home(self.name)), self.document)


class TextFiles(OfDocuments, Tokenized, Divided, Files):
    """Your own texts: a text file, or a folder of text files, plain or gzipped."""

    divide: Literal["auto", "file", "share"] = "auto"
    """How a single path is split: by `file` (`auto` does so from 20 files on), or each text by `share`."""

    def sample(self, given: Any) -> Text:
        """A text of its own."""
        return given if isinstance(given, Text) else Text(text_in_memory(given), "what lies in memory")

    def read(self, seed: int) -> Splits[Text]:
        cut = replace(self.cut, seed=self.split_seed)

        def divide(found: Sequence[Text], what: str) -> Splits[Text]:
            divided = documents.divide_texts(found, what, self.divide, cut)
            made = documents.documents(divided, self.document)
            running = self.document == "file" and not documents.by_file(found, self.divide)
            # ends of texts have no duplicates
            return made if running else documents.regroup(made, what, cut)

        opened = open_splits(self, documents.read_texts, divide, (CAPTIONS, *documents.SETS))
        return documents.documents(opened, self.document)


def readers_of_texts(*keys: type[BaseModel]) -> dict[str, type[Reader]]:
    """The readers of texts by the names of data, each with the keys of a task beside its own."""
    made, public, files = (
        cast(type[Reader], create_model(kind.__name__, __base__=(*keys, kind), __doc__=kind.__doc__))
        for kind in (Captions, TextSets, TextFiles)
    )
    return {CAPTIONS: made, **dict.fromkeys(documents.SETS, public), FILES: files}
