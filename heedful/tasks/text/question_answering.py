"""Question answering: where in a text the words begin and end that answer a question."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

import torch
from torch import Tensor

from heedful.data.collate import Batch
from heedful.data.encoded_text import EncodedText
from heedful.data.formats.squad import Question
from heedful.data.near_duplicates import Content
from heedful.data.readers.questions import Facts, Questions
from heedful.data.splits import Splits
from heedful.errors import Refusal
from heedful.metrics.exact_answers import ExactAnswers
from heedful.objectives.text_answers import SpanAnswers
from heedful.pipelines.extractive_answers import ExtractiveAnswers, SpanLearned
from heedful.tasks.task import Task
from heedful.tasks.text.fine_tuning import FAMILIES, FineTuned, TextCollate
from heedful.tokenizers import Joined
from heedful.views.answered_questions import answered_questions, with_and_without


@dataclass(frozen=True)
class AnswersInTexts(FineTuned, SpanLearned):
    """Whether every question to learn from has an answer."""

    @classmethod
    def fit(cls, splits: Splits[Question], reader: Any, seed: int) -> Self:
        """Learns of the questions to learn from."""
        if not any(sample.answers for sample in splits.train):
            raise Refusal(
                "no question to learn from has an answer, so that there is nothing to find; add some that have"
            )
        return cls.of_texts(splits, reader, seed, always=all(sample.answers for sample in splits.train))

    def describe_data(self, splits: Splits[EncodedText]) -> str:
        without = sum(not sample.read.answers for sample in splits.train)
        lost = sum(bool(sample.read.answers) and sample.answer == (0, 0) for sample in splits.train)
        cut = f"; the answer of {lost:,} was cut off" if lost else ""
        return f"questions {100 * without / len(splits.train):.1f} % without an answer{cut}"

    def state(self) -> dict[str, Any]:
        return {"always": self.always}

    @classmethod
    def read(cls, folder: Path, state: dict[str, Any]) -> Self:
        return replace(super().read(folder, state), always=bool(state["always"]))


@dataclass(frozen=True)
class QuestionCollate(TextCollate[AnswersInTexts]):
    """Questions and texts, with the first and the last token of the answer."""

    def judge(self, read: Question, joined: Joined, learned: AnswersInTexts) -> tuple[int, int]:
        """The first and the last token of the first answer; the first token of all where there is none, or no more."""
        for text, start in read.answers[:1]:
            inside = [
                at
                for at, (side, (first, last)) in enumerate(zip(joined.sides, joined.spans, strict=True))
                if side == 1 and first < start + len(text) and last > start
            ]
            if inside and joined.spans[inside[-1]][1] >= start + len(text):
                return inside[0], inside[-1]
        return 0, 0

    def answers(self, samples: Sequence[EncodedText]) -> Tensor:
        return torch.tensor([sample.answer[0] + 1 for sample in samples])

    def batch(self, samples: Sequence[EncodedText], learned: AnswersInTexts) -> Batch:
        last = torch.tensor([sample.answer[1] + 1 for sample in samples])
        return super().batch(samples, learned) | {"last": last}

    def contents(self, sample: EncodedText) -> dict[str, Content]:
        return {"contexts": sample.read.context}


COLLATE = QuestionCollate()
TASK = Task(
    name="answer",
    readers={"facts": Facts, "files": Questions},
    fit=AnswersInTexts.fit,
    learned=AnswersInTexts,
    encode=COLLATE.encoded,
    collate=COLLATE,
    objective=SpanAnswers(),
    metrics=(ExactAnswers(),),
    watch="f1",
    pipeline=ExtractiveAnswers(),
    table=answered_questions,
    views=(with_and_without,),
    families=FAMILIES,
    inherits=True,
)
