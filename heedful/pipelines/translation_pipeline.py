"""Translation pipeline: a sentence becomes another, and its words are linked to those that they were translated by."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Self

import torch
from torch import Tensor, nn

from heedful.data.collate import ROOM, Batch, Ids, alike
from heedful.data.encoded_pairs import Encoded, encoded_pairs
from heedful.data.parallel_sample import Pair
from heedful.data.readers.parallel_pairs import Scored
from heedful.errors import Refusal
from heedful.looking.alignment import Alignment, guide, links
from heedful.looking.page import Example
from heedful.metrics.alignment_error import Gaze, Words, crossings, looks_across, of_words
from heedful.pipelines.pairs_learned import PairCollate, PairsLearned
from heedful.pipelines.pipeline import nonempty, unheard
from heedful.pipelines.seq2seq_pipeline import Seq2Seq

TOGETHER = 500  # pairs that are aligned together


@dataclass(frozen=True)
class TranslationLearned(PairsLearned):
    """Beside the tokenizer: how BLEU splits words, and by which layer and head words are linked."""

    bleu: str = "13a"
    gaze: Gaze | None = None
    guided: bool = False  # whether attention learns from the alignments that are given

    def words(self, sample: Encoded) -> Words:
        """The word of each of a sample's sub-words."""
        pair = sample.texts
        return self.worded(sample.source, pair.source)[1], self.worded(sample.target, pair.target)[1]

    def worded(self, ids: Ids, text: str) -> tuple[list[str], list[int]]:
        """The words of a text, and the word of each of its ids; an id that is not known stands where it was read."""
        if self.tokenizer.layout.unknown in ids:
            return text.split(), self.tokenizer.placed(text)
        return self.tokenizer.words(tuple(ids))

    def state(self) -> dict[str, Any]:
        return super().state() | {"bleu": self.bleu, "gaze": asdict(self.gaze) if self.gaze else None}

    @classmethod
    def read(cls, folder: Path, state: dict[str, Any]) -> Self:
        gaze = Gaze.of(state["gaze"]) if state["gaze"] is not None else None
        return replace(super().read(folder, state), bleu=Scored(bleu=state["bleu"]).bleu, gaze=gaze)


@dataclass(frozen=True)
class TranslationCollate(PairCollate[TranslationLearned]):
    """Sentences and their translations, with where attention should look where it learns from alignments."""

    def batch(self, samples: Sequence[Encoded], learned: TranslationLearned) -> Batch:
        batch = super().batch(samples, learned)
        if learned.guided and all(sample.texts.links is not None for sample in samples):
            batch["guide"] = torch.zeros(*batch["answer"].shape, batch["source"].shape[1])  # B T S
            for at, sample in enumerate(samples):
                source, target = learned.words(sample)
                wanted = guide(sample.texts.links.sure if sample.texts.links else (), target, source)
                batch["guide"][at, : len(target), : len(source)] = wanted
        return batch


def align_words(model: nn.Module, samples: Sequence[Encoded], learned: TranslationLearned) -> Iterator[Alignment]:
    """Which words belong together in each sample, in order."""
    if not looks_across(model):
        raise Refusal("the model never looks back at its source, so that it links no words; train one with attention")
    made: dict[int, Alignment] = {}
    collate = TranslationCollate()
    for places in alike([collate.length(sample, learned) for sample in samples], ROOM):
        crossed = crossings(model, collate.batch([samples[at] for at in places], learned))
        gaze = learned.gaze or Gaze(list(crossed)[-1], None, read=False)
        if gaze.layer not in crossed or not 0 <= (gaze.head or 0) < crossed[gaze.layer].shape[1] - 1:
            raise Refusal(f"task.json: the model has no {gaze}; copy or train it again")
        for at, weights in zip(places, crossed[gaze.layer], strict=True):
            head = weights[-1:] if gaze.head is None else weights[gaze.head : gaze.head + 1]
            made[at] = alignment(samples[at], head, gaze.read, learned)
    yield from (made[at] for at in range(len(samples)))


def alignment(sample: Encoded, weights: Tensor, read: bool, learned: TranslationLearned) -> Alignment:
    """The alignment that one head's weights (1 T S) show."""
    source, of_source = learned.worded(sample.source, sample.texts.source)
    target, of_target = learned.worded(sample.target, sample.texts.target)
    matrix = of_words(weights, (of_source, of_target), read)[0]
    return Alignment(tuple(source), tuple(target), matrix, tuple(links(matrix)), sample.texts.links)


@dataclass(frozen=True)
class Translating(Seq2Seq[TranslationLearned]):
    """Translation: a sentence in, its translation out; and which word was translated by which."""

    def align(
        self, model: nn.Module, pairs: Sequence[tuple[str, str | None]], learned: TranslationLearned
    ) -> Iterator[Alignment]:
        """Which words belong together in each pair, in order; a source without a target is translated first."""
        sources = [self.accepts(source, learned) for source, target in pairs if target is None]
        written = iter(self.results(model, sources, learned, unheard))
        whole = [(source, next(written).text if target is None else target) for source, target in pairs]
        for start in range(0, len(whole), TOGETHER):
            some = [Pair(source, target) for source, target in whole[start : start + TOGETHER]]
            yield from align_words(model, encoded_pairs(some, learned.ids, len(learned.tokenizer)), learned)

    def look(self, model: nn.Module, given: Any, learned: TranslationLearned) -> Example:
        example = super().look(model, nonempty(given, self.input), learned)
        if not looks_across(model):
            return example
        found = next(self.align(model, [(given, None)], learned))
        if not found.source or not found.target:
            return example
        return replace(example, maps=(found.map, *example.maps), words=found)
