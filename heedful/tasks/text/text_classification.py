"""Text classification: of which class a sentence, or a pair of them, is; by an encoder that is fitted to samples."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self, TypeVar

import torch
from torch import Tensor

from heedful.data.encoded_text import EncodedText
from heedful.data.formats.labelled_text import Sentence
from heedful.data.readers.labelled_texts import READERS
from heedful.data.splits import Splits
from heedful.errors import Refusal
from heedful.looking import confusion
from heedful.metrics.accuracy import Accuracy
from heedful.metrics.calibration_error import CalibrationError
from heedful.metrics.macro_f1 import MacroF1
from heedful.models import Spec
from heedful.objectives.text_answers import TextAnswers
from heedful.pipelines.text_classes import TextClasses, TextClassification
from heedful.tasks.task import Task
from heedful.tasks.text.fine_tuning import FAMILIES, Labelled, TextCollate
from heedful.tokenizers import Joined
from heedful.views.class_by_class import class_by_class
from heedful.views.labelled_samples import LabelledSamples
from heedful.views.members_worth import MembersWorth


@dataclass(frozen=True)
class ClassesOfTexts(Labelled, TextClasses):
    """The classes of texts to learn from, and how many texts a sample has."""

    @classmethod
    def fit(cls, splits: Splits[Sentence], reader: Any, seed: int) -> Self:
        """Learns of the texts to learn from."""
        labels = tuple(sorted({sample.label for sample in splits.train}))
        if len(labels) < 2:
            raise Refusal(f"all samples to learn from are of class {labels[0]!r}; add those of another")
        made = cls.of_texts(splits, reader, seed, labels=labels)
        return replace(made, many={made.task_of(one): len(one.texts) for one in reversed(splits.train)})

    def suited(self, spec: Spec) -> Self:
        made = super().suited(spec)
        if made.several:
            raise Refusal("model.multi_label=True: a model learns one class for each text here; leave it out")
        return made

    def describe_data(self, splits: Splits[EncodedText]) -> str:
        return confusion.balance((sample.label for sample in splits.train), "f1")

    def state(self) -> dict[str, Any]:
        return super().state() | {"texts": dict(self.many)}

    @classmethod
    def read(cls, folder: Path, state: dict[str, Any]) -> Self:
        many = state.get("texts", {})  # which older folders do not tell
        if not all(count in (1, 2) for count in many.values()):
            raise ValueError("an input should have one text or two")
        return replace(super().read(folder, state), many=many)


Kept = TypeVar("Kept", bound=ClassesOfTexts)


@dataclass(frozen=True)
class ClassCollate(TextCollate[Kept]):
    """Texts with the number of their class."""

    def judge(self, read: Sentence, joined: Joined, learned: Kept) -> int:
        if fault := learned.unlike(read):
            raise Refusal(f"{read.place}: {fault}; give every sample as many texts")
        if read.label not in learned.labels:
            known = ", ".join((*learned.labels[:9], "...") if len(learned.labels) > 10 else learned.labels)
            said = f"{read.place}: class {read.label!r} is not in the training data ({known})"
            raise Refusal(f"{said}; train on it or drop it")
        return learned.labels.index(read.label)

    def answers(self, samples: Sequence[EncodedText]) -> Tensor:
        return torch.tensor([sample.answer + 1 for sample in samples])


COLLATE = ClassCollate[ClassesOfTexts]()
PIPELINE = TextClassification[ClassesOfTexts]()
METRICS = (Accuracy(), MacroF1(), CalibrationError())
TABLE = LabelledSamples("Sentences it never saw", "text", lambda one, learned: " | ".join(one.read.texts), 2)
TASK = Task(
    name="classify",
    readers=READERS,
    fit=ClassesOfTexts.fit,
    learned=ClassesOfTexts,
    encode=COLLATE.encoded,
    collate=COLLATE,
    objective=TextAnswers(),
    metrics=METRICS,
    watch="accuracy",
    pipeline=PIPELINE,
    table=TABLE,
    views=(class_by_class, MembersWorth(PIPELINE, METRICS, "accuracy")),
    families=FAMILIES,
    inherits=True,
)
