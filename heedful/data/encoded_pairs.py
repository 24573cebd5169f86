"""Pairs of texts as ids: what is read, what is written, and how both were spelt."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from heedful.data.collate import Ids, several
from heedful.data.id_rows import Rows
from heedful.data.lazy_samples import Made
from heedful.data.parallel_sample import Pair
from heedful.data.splits import Splits
from heedful.terminal import progress

TOGETHER = 10_000  # pairs that are encoded together


@dataclass(frozen=True)
class Encoded:
    """A source and its target as ids, without begin and end, and as they were written."""

    source: Ids
    target: Ids
    texts: Pair
    place: int = 0  # among the pairs that were opened with it


def encode_pairs(splits: Splits[Pair], ids: Callable[[Sequence[str]], Sequence[Ids]], vocab: int) -> Splits[Encoded]:
    """Pairs as ids of so large a vocabulary; those that stay in their files are made when they are asked for."""
    return Splits(*(encoded_pairs(pairs, ids, vocab) for pairs in (splits.train, splits.valid, splits.test)))


def encoded_pairs(
    pairs: Sequence[Pair], ids: Callable[[Sequence[str]], Sequence[Ids]], vocab: int
) -> Sequence[Encoded]:
    """The pairs of one split as ids."""
    with progress("pairs become tokens", len(pairs)) as heard:
        source, target = Rows(vocab), Rows(vocab)
        for some in several(pairs, TOGETHER):
            source.add(ids([pair.source for pair in some]))
            target.add(ids([pair.target for pair in some]))
            heard(len(some))
    made = Made(lambda at: Encoded(source[at], target[at], pairs[at], at), np.arange(len(pairs)))
    return made if isinstance(pairs, Made) else list(made)
