"""Name classification: of which language a name is, by its letters, such as a recurrent network reads one by one."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from torch import nn

from heedful.data.formats.labelled_line import Line
from heedful.data.readers.labelled_sequences import word_numbers
from heedful.data.readers.name_lists import READERS
from heedful.looking.page import Example
from heedful.metrics.accuracy import Accuracy
from heedful.metrics.balanced_accuracy import BalancedAccuracy
from heedful.pipelines.pipeline import nonempty
from heedful.tasks.text.sequence_classification import TASK as SEQUENCES
from heedful.tasks.text.sequence_classification import SequenceCollate, SequenceLearned, SequencePipeline, tokens_of
from heedful.views.class_by_class import class_by_class
from heedful.views.gradient_by_distance import GradientByDistance
from heedful.views.labelled_samples import LabelledSamples


@dataclass(frozen=True)
class LetterCollate(SequenceCollate):
    """Names as ids of their letters."""

    def as_input(self, sample: Line, learned: SequenceLearned) -> str:
        return "".join(learned.words[at] if at >= 0 else "?" for at in sample.places)


@dataclass(frozen=True)
class LetterPipeline(SequencePipeline):
    """Name classification: the letters of a name become its likeliest language."""

    def accepts(self, given: Any, learned: SequenceLearned) -> Line:
        return Line(word_numbers(nonempty(given, self.input).strip(), learned.number), "")

    def warning(self, given: str, learned: SequenceLearned) -> str | None:
        return super().warning(" ".join(given.strip().replace(" ", "")), learned)

    def look(self, model: nn.Module, given: Any, learned: SequenceLearned) -> Example:
        return super().look(model, " ".join(given.strip()), learned)


COLLATE = LetterCollate()
GRADIENT = GradientByDistance(tokens_of)
TASK = replace(
    SEQUENCES,
    name="names",
    readers=READERS,
    collate=COLLATE,
    metrics=(Accuracy(), BalancedAccuracy()),
    pipeline=LetterPipeline("a name: Satoshi"),
    table=LabelledSamples("Names it never saw", "name", COLLATE.as_input),
    views=(class_by_class, GRADIENT),
    families=("recurrent_predictor", "predictor"),
)
