"""Readers of questions and the texts that answer them: facts made on the fly, and a user's own files."""

from __future__ import annotations

from typing import Any

from heedful.data.formats.squad import Question, question_of, read_questions
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
    """Your own questions: SQuAD's JSON, or JSONL with context, question and answers; a text stays within one split."""

    def sample(self, given: Any) -> Question:
        """A question, a text, and the answers in it, each alone or with where it begins."""
        if isinstance(given, Question):
            return given
        question, context, answers = given
        if not isinstance(answers, str):
            answers = [one if isinstance(one, str) else {"text": one[0], "answer_start": one[1]} for one in answers]
        return question_of({"question": question, "context": context, "answers": answers}, "what lies in memory", 0)

    def read(self, seed: int) -> Splits[Question]:
        def divide(all: list[Question], what: str) -> Splits[Question]:
            return divide_samples(all, lambda one: one.context, what, self.cut)

        return open_splits(self, read_questions, divide, ("facts",))
