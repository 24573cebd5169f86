"""word2vec: the vector of a word tells which words stand near it from words by chance (Mikolov et al., 2013)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, cast

import torch
from torch import nn

from heedful.data.collate import Batch, several, to
from heedful.data.readers.corpus import Cropped, Neighbourly, readers_of_texts
from heedful.data.splits import Splits
from heedful.data.texts_on_disk import Text
from heedful.data.token_crops import Crop
from heedful.metrics.perplexity import TokenSums
from heedful.metrics.word_vector_skill import SkipGramLoss, SkipGramSkill
from heedful.models.numerics import device_of
from heedful.models.text.word_vectors import WordVectors
from heedful.objectives.word_vector_losses import SkipGram, staying
from heedful.pipelines.pipeline import Heard
from heedful.pipelines.word_neighbours import NearestWords
from heedful.tasks.task import Task
from heedful.tasks.text.cropping import crop_texts, with_stride
from heedful.tasks.text.word_counts import Negatives, WordCollate, WordLearned
from heedful.views.nearest_words import nearest_words

SIZE = 64  # crops that are scored at once
DICE = 0.5  # any share: crops always have dice


@dataclass(frozen=True)
class SkipGramLearned(WordLearned):
    """The words of texts, and which of their neighbours are told from words by chance."""

    biased: ClassVar[bool] = False


def fit(splits: Splits[Text], reader: Any, seed: int) -> SkipGramLearned:
    """Learns of texts which words there are."""
    own = {"longest": reader.longest, "stride": reader.stride, "noise": DICE}
    negatives = {"negatives": reader.negatives, "frequent": reader.frequent}
    return SkipGramLearned.of_words(splits, reader, seed, **own, **negatives)


@dataclass(frozen=True)
class SkipGramCollate(WordCollate):
    """Crops with dice, and which of their words stay: frequent ones are left out now and then."""

    hides: ClassVar[bool] = True

    def batch(self, samples: Sequence[Crop], learned: WordLearned) -> Batch:
        made = self.rows(samples, learned.window, learned)
        assert learned.counts is not None
        return made | {"there": staying(made["tokens"], made["dice"], learned.counts, learned.frequent)}


COLLATE, OBJECTIVE = SkipGramCollate(), SkipGram()


@torch.no_grad()
def judge_pairs(model: nn.Module, samples: Sequence[Crop], learned: WordLearned, heard: Heard) -> TokenSums:
    """The losses of pairs of words in texts, by the counts of those that were learned from."""
    model = cast(WordVectors, model)
    model.eval()
    learned, sums = replace(learned, counts=model.counts.cpu()), TokenSums()
    for some in several(samples, SIZE):
        loss = OBJECTIVE.losses(model, to(COLLATE.batch(some, learned), device_of(model)), learned)["loss"]
        sums += TokenSums(float(loss.sum), int(loss.count))
        heard(len(some))
    return sums


class Keys(Cropped, Neighbourly, Negatives):
    """The keys of texts whose words are told from words by chance."""


TASK = Task(
    name="word2vec",
    readers=readers_of_texts(Keys),
    fit=fit,
    learned=SkipGramLearned,
    encode=crop_texts,
    again=with_stride,
    collate=COLLATE,
    objective=OBJECTIVE,
    metrics=(SkipGramSkill(source=judge_pairs), SkipGramLoss(source=judge_pairs)),
    watch="skill",
    pipeline=NearestWords(),
    table=nearest_words,
    families=("word_vectors",),
)
