"""Readers of questions and the texts that answer them: facts made on the fly, and a user's own files."""

from __future__ import annotations

from heedful.data.formats.squad import Question, read
from heedful.data.readers.labelled_texts import EncoderTexts
from heedful.data.readers.reader import Divided, Files, Made
from heedful.data.splits import Splits, divided, opened
from heedful.data.toys.distinct import unlike
from heedful.data.toys.facts import fact


class Facts(EncoderTexts, Made):
    """Invented facts, and a question about each text of them."""

    def read(self, seed: int) -> Splits[Question]:
        return unlike(fact, lambda one: one.context, self, seed)


class Questions(EncoderTexts, Divided, Files):
    """Questions of a user's own: SQuAD's JSON, or a question a line; a text never stands on two sides."""

    def read(self, seed: int) -> Splits[Question]:
        def divide(all: list[Question], what: str) -> Splits[Question]:
            return divided(all, lambda one: one.context, what, self.split_seed)

        return opened(self, read, divide, ("facts",))
