"""Multi-task learning: what is asked of a text is told beside it, and a class among that task's answers (CAMTL)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Self

import torch
from torch import Tensor

from heedful.data.encoded_text import EncodedText
from heedful.data.formats.labelled_text import SECOND, Sentence
from heedful.data.formats.labelled_text import TASK as TASK_COLUMN
from heedful.data.splits import Splits
from heedful.errors import Refusal
from heedful.metrics.accuracy_by_task import AccuracyByTask
from heedful.models.numerics import exact
from heedful.objectives.text_answers import TaskAnswers
from heedful.pipelines.pipeline import Columns, text_columns
from heedful.pipelines.text_classes import TextClassification, as_learned
from heedful.tasks.text import text_classification
from heedful.tasks.text.fine_tuning import FAMILIES
from heedful.tasks.text.text_classification import ClassCollate, ClassesOfTexts
from heedful.tokenizers import Joined
from heedful.views.class_by_class import class_by_class, task_by_task
from heedful.views.members_worth import MembersWorth

NEVER = -1e4  # the score of a class that answers another task
INPUT = "a task, a tab and a sentence, or two with a tab between them"
READ_WHOLE = FAMILIES[:5]  # those that read a text from both sides


@dataclass(frozen=True)
class ClassesOfTasks(ClassesOfTexts):
    """The classes of each task, by its name; all tasks share one encoder.

    A model with `model.bias=camtl` looks at a text as its task would have it (Pilault et al., 2021).
    """

    answers: Mapping[str, Sequence[str]] = field(default_factory=dict)

    @classmethod
    def fit(cls, splits: Splits[Sentence], reader: Any, seed: int) -> Self:
        for one in splits.train:
            if not one.task:
                raise Refusal(f"{one.place}: the task is missing; name a column `task`, and say in it what is asked")
        tasks = sorted({one.task for one in splits.train})
        answers = {task: sorted({one.label for one in splits.train if one.task == task}) for task in tasks}
        return replace(super().fit(splits, reader, seed), answers=answers)

    def task_of(self, read: Sentence) -> str:
        return read.task

    def number(self, read: Sentence) -> int:
        """The number of what is asked of a text, where that was learned."""
        if read.task not in self.answers:
            place = f"{read.place}: " if read.path else ""
            raise Refusal(f"{place}task {read.task!r} is not in the training data; known: {', '.join(self.answers)}")
        return list(self.answers).index(read.task)

    def join(self, read: Sequence[Sentence], longest: int | None = None) -> list[Joined]:
        """The tokens of texts, and the number of each one's task."""
        numbers = [self.number(one) for one in read]
        return [replace(one, task=at) for one, at in zip(super().join(read, longest), numbers, strict=True)]

    def among(self, given: Tensor, tasks: Tensor) -> Tensor:
        """Scores (... C) in which classes count for nothing that answer other tasks than these (...)."""
        rows = [[label not in answers for label in self.labels] for answers in self.answers.values()]
        return given.masked_fill(torch.tensor(rows, device=given.device)[tasks.to(given.device)], NEVER)

    def facts(self) -> dict[str, Any]:
        return super().facts() | {"tasks": len(self.answers)}

    def state(self) -> dict[str, Any]:
        return super().state() | {"answers": dict(self.answers)}

    @classmethod
    def read(cls, folder: Path, state: dict[str, Any]) -> Self:
        made, answers = super().read(folder, state), state["answers"]
        if not all(isinstance(row, list) and set(row) <= set(made.labels) for row in answers.values()):
            raise TypeError("the classes of tasks should be among all")
        return replace(made, answers=answers)


@dataclass(frozen=True)
class TaskCollate(ClassCollate[ClassesOfTasks]):
    """Texts with their task and the number of their class, which must be among its answers."""

    def judge(self, read: Sentence, joined: Joined, learned: ClassesOfTasks) -> int:
        if read.label not in learned.answers[read.task]:
            said = f"class {read.label!r} answers no task {read.task!r} that is trained on"
            raise Refusal(f"{read.place}: {said}; train on it or drop it")
        return super().judge(read, joined, learned)

    def as_input(self, sample: EncodedText, learned: ClassesOfTasks) -> str:
        return f"{sample.read.task}\t{sample.tabbed}"


@dataclass(frozen=True)
class ClassOfTask(TextClassification[ClassesOfTasks]):
    """Multi-task classification: a task and a text become the likeliest of the task's classes."""

    input: str = INPUT

    def column_names(self) -> Columns:
        return (TASK_COLUMN,), text_columns(), SECOND

    def seen(self, given: Any, learned: ClassesOfTasks) -> Sentence:
        parts = given.split("\t") if isinstance(given, str) else given
        if (tabs := len(parts) - 1) not in (1, 2):
            raise Refusal(f"the input has {tabs or 'no'} tab{'s' * (tabs != 0)}; give {self.input}")
        read = Sentence(self.texts("\t".join(parts[1:])), "", task=parts[0].strip())
        learned.number(read)
        return as_learned(read, learned)

    def scores(self, given: Tensor, joined: Sequence[Joined], learned: ClassesOfTasks) -> Tensor:
        return learned.among(exact(given), torch.tensor([one.task for one in joined]))


COLLATE = TaskCollate()
PIPELINE = ClassOfTask()
METRICS = (*text_classification.METRICS, AccuracyByTask())
TASK = replace(
    text_classification.TASK,
    name="classify-several",
    fit=ClassesOfTasks.fit,
    learned=ClassesOfTasks,
    encode=COLLATE.encoded,
    collate=COLLATE,
    objective=TaskAnswers(),
    metrics=METRICS,
    pipeline=PIPELINE,
    views=(class_by_class, task_by_task, MembersWorth(PIPELINE, METRICS, "accuracy")),
    families=READ_WHOLE,
)
