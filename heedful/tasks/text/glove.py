"""GloVe: products of vectors are the logarithms of how often words stand near each other (Pennington et al., 2014)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from heedful.data.collate import Batch, several, to
from heedful.data.readers.corpus import Neighbourly, readers_of_texts
from heedful.data.splits import Splits
from heedful.data.texts_on_disk import Text
from heedful.data.token_crops import Stream, Whole
from heedful.metrics.word_vector_skill import CountSkill, Moments
from heedful.models.numerics import device_of
from heedful.models.specs import UNKNOWN
from heedful.objectives.word_vector_losses import LogCounts, directions, log_counts, pair_weights
from heedful.pipelines.pipeline import Heard
from heedful.pipelines.word_neighbours import NearestWords
from heedful.tasks.task import Task
from heedful.tasks.text.cropping import streams
from heedful.tasks.text.word_counts import WordCollate, WordLearned
from heedful.views.nearest_words import nearest_words

CHUNK = 128  # pairs of a sample
SIZE = 64  # samples that are scored at once
CONTEXT = 24  # tokens, which stand beside the model and mean nothing to it


@dataclass(frozen=True, eq=False)
class Pairs:
    """Pairs of words that stand near each other, and how often, those nearer counting more."""

    words: Whole
    others: Whole
    counts: NDArray[np.float32]

    @classmethod
    def of(cls, stream: Stream, near: int, vocab: int) -> Pairs:
        """The pairs of a stream, in the order of their words."""
        keys, weights = [np.zeros(0, dtype=np.int64)], [np.zeros(0, dtype=np.float32)]
        ids, owners = stream.tokens(slice(stream.count)), stream.owners(np.arange(stream.count))
        for one, two in directions(stream.count, near):
            words, others = ids[one], ids[two]
            both = (words > UNKNOWN) & (others > UNKNOWN) & (owners[one] == owners[two])
            found, times = np.unique(words[both] * vocab + others[both], return_counts=True)
            keys.append(found)
            weights.append((times / abs(one.start - two.start)).astype(np.float32))
        every, place = np.unique(np.concatenate(keys), return_inverse=True)
        counts = np.bincount(place, np.concatenate(weights), minlength=len(every)).astype(np.float32)
        return cls(every // vocab, every % vocab, counts)


@dataclass(frozen=True)
class Chunk:
    """Some of the pairs of a stream, in the order of an epoch."""

    pairs: Pairs
    stream: Stream
    start: int
    epoch: int | None = None

    @property
    def first(self) -> list[int]:
        """The word of its first pair."""
        return self.pairs.words[self.start : self.start + 1].tolist()


@dataclass(frozen=True)
class CountsLearned(WordLearned):
    """The words of texts, and how far apart words are near each other."""

    biased: ClassVar[bool] = True


def fit(splits: Splits[Text], reader: Any, seed: int) -> CountsLearned:
    """Learns of texts which words there are."""
    return CountsLearned.of_words(splits, reader, seed, longest=CONTEXT)


def pair_words(splits: Splits[Text], learned: CountsLearned) -> Splits[Chunk]:
    """The pairs of words of each part, some at a time."""
    return Splits(*([] if one is None else chunks(one, learned) for one in streams(splits, learned)))


def chunks(stream: Stream, learned: WordLearned) -> list[Chunk]:
    """The pairs of a stream, some at a time."""
    pairs = Pairs.of(stream, learned.near, len(learned.tokenizer))
    return [Chunk(pairs, stream, start) for start in range(0, max(1, len(pairs.counts)), CHUNK)]


@dataclass(frozen=True)
class CountsCollate(WordCollate):
    """Pairs of words and their counts, in another order in each epoch."""

    def augmented(self, samples: Sequence[Chunk], epoch: int, learned: WordLearned) -> Sequence[Chunk]:
        return [replace(one, epoch=epoch) for one in samples]

    def batch(self, samples: Sequence[Chunk], learned: WordLearned) -> Batch:
        pairs = samples[0].pairs
        order = order_of_pairs(len(pairs.counts), learned.seed, samples[0].epoch)
        chosen = [order[one.start : one.start + CHUNK] for one in samples]
        made: dict[str, NDArray[Any]] = {"words": pairs.words, "others": pairs.others, "counts": pairs.counts}
        rows = {name: np.zeros((len(samples), CHUNK), dtype=array.dtype) for name, array in made.items()}
        for row, places in enumerate(chosen):
            for name, array in made.items():
                rows[name][row, : len(places)] = array[places]
        return {name: torch.from_numpy(array) for name, array in rows.items()}


COLLATE = CountsCollate()


@torch.no_grad()
def moments(model: nn.Module, samples: Sequence[Chunk], learned: WordLearned, heard: Heard) -> Moments:
    """Weighted sums of what vectors say of pairs and what the logarithms of their counts are."""
    model.eval()
    sums = torch.zeros(6, dtype=torch.float64)
    for some in several(samples, SIZE):
        batch = to(COLLATE.batch(some, learned), device_of(model))
        weights = pair_weights(batch["counts"]).double()
        told, wanted = model(batch["words"], batch["others"]).double(), log_counts(batch["counts"]).double()
        parts = (torch.ones_like(told), told, wanted, told.square(), wanted.square(), told * wanted)
        sums += torch.stack([(weights * part).sum() for part in parts]).cpu()
        heard(len(some))
    return tuple(sums.tolist())


@lru_cache(maxsize=4)
def order_of_pairs(count: int, seed: int, epoch: int | None) -> Whole:
    """The order of pairs in an epoch; of what is scored, their own."""
    return np.arange(count) if epoch is None else np.random.default_rng([seed, epoch, 7]).permutation(count)


TASK = Task(
    name="glove",
    readers=readers_of_texts(Neighbourly),
    fit=fit,
    learned=CountsLearned,
    encode=pair_words,
    collate=COLLATE,
    objective=LogCounts(),
    metrics=(CountSkill(source=moments),),
    watch="skill",
    pipeline=NearestWords(),
    table=nearest_words,
    families=("word_vectors",),
)
