"""GloVe: products of vectors are the logarithms of how often words stand near each other (Pennington et al., 2014)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from heedful.data.collate import Batch, several, to
from heedful.data.crops import Stream, Whole
from heedful.models.numerics import device_of
from heedful.models.specs import UNKNOWN
from heedful.tasks.closed import PLAIN, Terms
from heedful.tasks.skip_gram import directions
from heedful.tasks.words import Words

MOST, POWER = 100.0, 0.75  # counts from which on all weigh the same, and how weights grow up to there
CHUNK = 128  # pairs of a sample
SIZE = 64  # samples that are scored at once


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


class Glove(Words):
    """Learns how often words stand near each other; scored by how much of that, weighted, the vectors explain."""

    name: ClassVar[str] = "glove"
    keys: ClassVar[frozenset[str]] = Words.keys - {"longest", "stride"} | {"near"}
    biased: ClassVar[bool] = True

    def crops(self, stream: Stream | None, step: int) -> Sequence[Any]:
        if stream is None:
            return []
        pairs = Pairs.of(stream, self.near, len(self.tokenizer))
        return [Chunk(pairs, stream, start) for start in range(0, max(1, len(pairs.counts)), CHUNK)]

    def fresh(self, samples: Sequence[Chunk], epoch: int) -> Sequence[Chunk]:
        return [replace(one, epoch=epoch) for one in samples]

    def batch(self, samples: Sequence[Chunk]) -> Batch:
        pairs = samples[0].pairs
        order = ordered(len(pairs.counts), self.seed, samples[0].epoch)
        chosen = [order[one.start : one.start + CHUNK] for one in samples]
        made: dict[str, NDArray[Any]] = {"words": pairs.words, "others": pairs.others, "counts": pairs.counts}
        rows = {name: np.zeros((len(samples), CHUNK), dtype=array.dtype) for name, array in made.items()}
        for row, places in enumerate(chosen):
            for name, array in made.items():
                rows[name][row, : len(places)] = array[places]
        return {name: torch.from_numpy(array) for name, array in rows.items()}

    def loss(self, model: nn.Module, batch: Batch, terms: Terms = PLAIN) -> tuple[Tensor, Tensor]:
        weights = weighed(batch["counts"])
        error = model(batch["words"], batch["others"]) - logged(batch["counts"])
        return (weights * error.square()).sum(), weights.sum()

    @torch.no_grad()
    def score(self, model: nn.Module, samples: Sequence[Chunk]) -> dict[str, float]:
        """The share of how pairs differ in other texts that a line through what the vectors say explains.

        A line, because these texts are of another length.
        """
        model.eval()
        sums = torch.zeros(6, dtype=torch.float64)
        for some in several(samples, SIZE):
            batch = to(self.batch(some), device_of(model))
            weights = weighed(batch["counts"]).double()
            told, wanted = model(batch["words"], batch["others"]).double(), logged(batch["counts"]).double()
            parts = (torch.ones_like(told), told, wanted, told.square(), wanted.square(), told * wanted)
            sums += torch.stack([(weights * part).sum() for part in parts]).cpu()
            self.tell(len(some))
        told, wanted, both_told, both_wanted, both = (sums[1:] / sums[0].clamp(min=1e-12)).tolist()
        spread = (both_told - told**2) * (both_wanted - wanted**2)
        skill = (both - told * wanted) ** 2 / max(spread, 1e-12)
        return {"skill": skill}

    def standing(self, sample: Chunk) -> list[int]:
        return sample.pairs.words[sample.start : sample.start + 1].tolist()


def weighed(counts: Tensor) -> Tensor:
    """How much pairs weigh by how often they stand near each other: nothing where there is none."""
    return (counts / MOST).clamp(max=1).pow(POWER)


def logged(counts: Tensor) -> Tensor:
    """The logarithms of counts."""
    return counts.clamp(min=1e-6).log()


@lru_cache(maxsize=4)
def ordered(count: int, seed: int, epoch: int | None) -> Whole:
    """The order of pairs in an epoch; of what is scored, their own."""
    return np.arange(count) if epoch is None else np.random.default_rng([seed, epoch, 7]).permutation(count)
