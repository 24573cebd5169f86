"""Text classification: the likeliest class of a sentence or a pair, by its name; or each class with its chance."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Self, TypeVar

import torch
from torch import Tensor, nn

from heedful.data.encoded_text import EncodedText
from heedful.data.formats.labelled_text import Sentence
from heedful.errors import Refusal
from heedful.models import Spec
from heedful.models.heads_asked import AskedSpec
from heedful.models.numerics import exact
from heedful.pipelines.encoder_text import EncoderText, TextLearned, outputs_of
from heedful.pipelines.pipeline import Heard
from heedful.pipelines.use import Usage
from heedful.results import Label, Labels, Result, Score
from heedful.tokenizers import Joined


@dataclass(frozen=True)
class TextClasses(TextLearned):
    """The classes of texts, whether several may hold at once, and how many texts an input has."""

    outputs: ClassVar[frozenset[str]] = frozenset({"classes"})

    several: bool = False
    many: Mapping[str, int] = field(default_factory=dict)  # texts of an input, by what is asked, where that is known

    def suited(self, spec: Spec) -> Self:
        return replace(super().suited(spec), several=isinstance(spec, AskedSpec) and spec.multi_label)

    def task_of(self, read: Sentence) -> str:
        """What is asked of a text, where that is told beside it."""
        return ""

    def unlike(self, read: Sentence) -> str:
        """What is wrong with texts that are more or fewer than were learned from; nothing where that is not known."""
        if len(read.texts) == self.many.get(self.task_of(read), len(read.texts)):
            return ""
        given, learned = ("one text", "pairs") if len(read.texts) == 1 else ("a pair", "single texts")
        return f"{given}, and {learned} were learned from"


Kept = TypeVar("Kept", bound=TextClasses)


@dataclass(frozen=True)
class TextClassification(EncoderText[Kept]):
    """Text classification; where there is one class alone, the answer is the number that it is given."""

    def seen(self, given: Any, learned: Kept) -> Sentence:
        return as_learned(super().seen(given, learned), learned)

    def results(
        self, model: nn.Module, samples: Sequence[EncodedText], learned: Kept, heard: Heard
    ) -> Sequence[Result]:
        given = outputs_of(model, [sample.joined for sample in samples], heard)
        if learned.several or len(learned.labels) == 1:
            return [self.answer(one.joined, said, learned) for one, said in zip(samples, given, strict=True)]
        chances = self.scores(torch.stack(given), [one.joined for one in samples], learned).softmax(-1).cpu()
        return [Label.among(learned.labels, row) for row in chances]

    def scores(self, given: Tensor, joined: Sequence[Joined], learned: Kept) -> Tensor:
        """Scores of classes: N C."""
        return exact(given)

    def answer(self, joined: Joined, given: Tensor, learned: Kept) -> Result:
        if learned.several:
            return Labels(tuple(zip(learned.labels, given.sigmoid().tolist(), strict=True)))
        if len(learned.labels) == 1:
            return Score(float(given))
        return Label.among(learned.labels, self.scores(given[None], [joined], learned)[0].softmax(-1))


def as_learned(read: Sentence, learned: TextClasses) -> Sentence:
    """The texts of an input themselves, where they are as many as were learned from."""
    if fault := learned.unlike(read):
        cure = "take the tab out" if len(read.texts) > 1 else "give two with a tab between them"
        raise Refusal(f"the input is {fault}; {cure}")
    return read


CLASSIFICATION = Usage(name="classification", pipeline=TextClassification[TextClasses](), learned=TextClasses)
