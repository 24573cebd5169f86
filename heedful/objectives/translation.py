"""Translation loss: beside the cross-entropy, attention may learn from given alignments (guided alignment)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

from torch import nn

from heedful.data.collate import ROOM, Batch, alike, pick
from heedful.data.encoded_pairs import Encoded
from heedful.data.ibm_model1 import lexicon
from heedful.data.parallel_sample import Link
from heedful.data.splits import Splits
from heedful.errors import Refusal
from heedful.looking import look
from heedful.metrics.alignment_error import choose, crossings, looks_across
from heedful.models.numerics import precise
from heedful.objectives.objective import Loss, Weight
from heedful.objectives.seq2seq import TeacherForcing
from heedful.pipelines.translation_pipeline import TranslationCollate, TranslationLearned

LOOKED_AT = 500  # validation samples by which layer and head are chosen


@dataclass(frozen=True)
class GuidedTranslation(TeacherForcing):
    """Teacher forcing with guided alignment; once it has learned, the head is chosen that links words best."""

    guidance: Weight = 0.0
    """The weight of a loss that draws cross-attention to given word alignments (Chen et al., 2016)."""

    @property
    def names(self) -> tuple[str, ...]:
        return (*super().names, "guidance") if self.guidance else super().names

    def losses(self, model: nn.Module, batch: Batch, learned: TranslationLearned) -> dict[str, Loss]:
        if not self.guidance:
            return super().losses(model, batch, learned)
        with look(model) as seen:
            made = super().losses(model, batch, learned)
        layer = [path for path in seen.paths if path.endswith("cross")][-2:][0]  # last but one (Garg et al., 2019)
        weights = precise(seen.weights(layer, heads=[0])[:, 0])  # B T S, or twice as many with two passes
        wanted = batch["guide"].to(weights).repeat(len(weights) // len(batch["guide"]), 1, 1)
        missed = -(wanted * weights.clamp(min=1e-9).log()).sum() * len(batch["guide"]) / len(weights)
        return made | {"guidance": Loss(missed, made["loss"].count, self.guidance)}

    def on_train_begin(self, model: nn.Module, learned: TranslationLearned) -> None:
        if self.guidance and not looks_across(model):
            raise Refusal("objective.guidance needs a model with attention, and this one has none; leave it out")

    def configured(self, splits: Splits[Encoded], learned: TranslationLearned) -> tuple[Self, TranslationLearned]:
        if self.guidance and any(sample.texts.links is None for sample in splits.train):
            raise Refusal("objective.guidance learns from alignments; name them with data.train.alignment=FILE")
        return self, replace(learned, guided=bool(self.guidance))

    def calibrated(self, model: nn.Module, splits: Splits[Encoded], learned: TranslationLearned) -> TranslationLearned:
        if not looks_across(model):
            return learned
        some, collate = pick(splits.valid, LOOKED_AT), TranslationCollate()
        wanted = known_links(splits, some)
        groups = list(alike([collate.length(sample, learned) for sample in some], ROOM))
        gaze, _ = choose(
            [collate.batch([some[at] for at in group], learned) for group in groups],
            [[learned.words(some[at]) for at in group] for group in groups],
            [[wanted[at] for at in group] for group in groups],
            lambda batch: crossings(model, batch),
        )
        return replace(learned, gaze=gaze)


def known_links(splits: Splits[Encoded], some: list[Encoded]) -> list[list[Link]]:
    """The links of some samples: those that are given, or those of a lexicon of the data to learn from."""
    if all(sample.texts.links is not None for sample in some):
        return [sorted(sample.texts.links.sure) for sample in some if sample.texts.links]
    return lexicon(words_of(sample) for sample in splits.train).silver([words_of(sample) for sample in some])


def words_of(sample: Encoded) -> tuple[list[str], list[str]]:
    """The words of a sample's source and target."""
    return sample.texts.source.split(), sample.texts.target.split()
