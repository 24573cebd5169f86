"""BLEU and chrF of whole texts, as sacrebleu has them (Papineni et al., 2002; Popovic, 2015; Post, 2018)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

import sacrebleu

from heedful.metrics.metric import Metric
from heedful.results import Text


@dataclass
class CorpusScore(Metric[Any]):
    """Texts that were written and their references, kept until all are there: each sample has a target in `texts`."""

    written: list[str] = field(default_factory=list)
    references: list[str] = field(default_factory=list)
    split: str = "13a"  # how words are split, as was learned

    def update(self, samples: Sequence[Any], seen: Sequence[Text], learned: Any) -> None:
        self.written = [*self.written, *(one.text for one in seen)]
        self.references = [*self.references, *(sample.texts.target for sample in samples)]
        self.split = learned.bleu

    def merge(self, other: Self) -> None:
        self.written, self.references = self.written + other.written, self.references + other.references


@dataclass
class Bleu(CorpusScore):
    """BLEU: how many rows of up to four words stand in the reference too, from 0 to 100."""

    names: ClassVar[tuple[str, ...]] = ("bleu",)

    def compute(self) -> dict[str, float]:
        found = sacrebleu.corpus_bleu(self.written, [self.references], tokenize=self.split, force=True)
        return {"bleu": found.score}


@dataclass
class ChrF(CorpusScore):
    """chrF: how many rows of up to six characters stand in the reference too, from 0 to 100."""

    names: ClassVar[tuple[str, ...]] = ("chrf",)

    def compute(self) -> dict[str, float]:
        return {"chrf": sacrebleu.corpus_chrf(self.written, [self.references]).score}
