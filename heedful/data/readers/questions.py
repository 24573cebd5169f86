"""Readers of questions and the texts that answer them: facts made on the fly, and a user's own files."""

from __future__ import annotations

from typing import Any

from heedful.data.formats.squad import Question, read_questions
from heedful.data.readers.labelled_texts import EncoderTexts
from heedful.data.readers.reader import Made, SampleFiles
from heedful.data.splits import Splits, divide_samples, open_splits
from heedful.data.toys.distinct import unlike
from heedful.data.toys.facts import fact


class Facts(EncoderTexts, Made):
    """Invented facts, and a question about each text of them."""

    def read(self, seed: int) -> Splits[Question]:
        return unlike(fact, lambda one: one.context, self, seed)


class Questions(EncoderTexts, SampleFiles):
    """Questions of a user's own: SQuAD's JSON, or a question a line; a text never stands on two sides."""

    def sample(self, given: Any) -> Question:
        """A question, a text, and the answers in it, each with where it begins."""
        return given if isinstance(given, Question) else Question(*given)

    def read(self, seed: int) -> Splits[Question]:
        def divide(all: list[Question], what: str) -> Splits[Question]:
            return divide_samples(all, lambda one: one.context, what, self.cut)

        return open_splits(self, read_questions, divide, ("facts",))
