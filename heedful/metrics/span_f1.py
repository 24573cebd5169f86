"""Span F1 (entity-level F1): spans of tags that are right to the word, as CoNLL's program scores them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

from heedful.data.formats.conll import OUTSIDE, Span, spans
from heedful.metrics.class_figures import Pairs, class_figures, figures, precision_recall_f1
from heedful.metrics.metric import Metric
from heedful.results import Tags


@dataclass
class SpanF1(Metric[Any]):
    """Precision, recall and F1 over whole spans, by their kinds: each sample's `read` has tags, and each result."""

    names: ClassVar[tuple[str, ...]] = ("precision", "recall", "f1")
    share: ClassVar[bool] = True

    hit: Counter[str] = field(default_factory=Counter)
    wrong: Counter[str] = field(default_factory=Counter)
    missed: Counter[str] = field(default_factory=Counter)
    words: Pairs = field(default_factory=Counter)  # the kind of each word, and the one that it was taken for

    def update(self, samples: Sequence[Any], seen: Sequence[Tags], learned: Any) -> None:
        self.count([spans(one.read.tags) for one in samples], [spans(said.tags) for said in seen])
        for one, said in zip(samples, seen, strict=True):
            self.words.update(
                (kind_of(truth), kind_of(tag)) for truth, tag in zip(one.read.tags, said.tags, strict=True)
            )

    def count(self, truth: Sequence[list[Span]], said: Sequence[list[Span]]) -> None:
        """Counts spans that were found to the word, that were said and are none, and that were missed."""
        for right, found in zip(truth, said, strict=True):
            self.hit.update(kind for kind, _, _ in {*right} & {*found})
            self.wrong.update(kind for kind, _, _ in {*found} - {*right})
            self.missed.update(kind for kind, _, _ in {*right} - {*found})

    def merge(self, other: Self) -> None:
        self.hit, self.wrong, self.missed = self.hit + other.hit, self.wrong + other.wrong, self.missed + other.missed
        self.words = self.words + other.words

    def compute(self) -> dict[str, float]:
        made = precision_recall_f1(self.hit.total(), self.wrong.total(), self.missed.total())
        return dict(zip(self.names, made, strict=True))

    def details(self) -> dict[str, Any]:
        kinds = sorted({*self.hit, *self.wrong, *self.missed})
        spans = {kind: figures(self.hit[kind], self.wrong[kind], self.missed[kind]) for kind in kinds}
        return class_figures(self.words, (OUTSIDE,)) | {"classes": spans}


def kind_of(tag: str) -> str:
    """The kind of span that a tag is of."""
    return tag.partition("-")[2] or OUTSIDE
