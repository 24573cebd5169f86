"""Pairs of texts as ids, in as few bytes as they need: what is read, what is written, and how both were spelt."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate, chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heedful.data.collate import Ids, several
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


class Row:
    """Numbers that come one after the other, and are held once."""

    def __init__(self, kind: np.dtype[Any]) -> None:
        self.kind, self.data = kind, bytearray()

    def __len__(self) -> int:
        return len(self.data) // self.kind.itemsize

    def add(self, numbers: Sequence[int] | NDArray[Any]) -> None:
        """Takes some more."""
        self.data += np.asarray(numbers, self.kind).tobytes()

    def array(self) -> NDArray[Any]:
        """All of them."""
        return np.frombuffer(self.data, self.kind)


class Rows:
    """The ids of texts, which are handed out one by one."""

    def __init__(self, vocab: int) -> None:
        self.ids, self.ends = Row(np.min_scalar_type(max(vocab - 1, 0))), array("q", [0])

    def add(self, many: Sequence[Sequence[int] | NDArray[Any]]) -> None:
        """Takes those of some texts."""
        self.ids.add(list(chain.from_iterable(many)))
        self.ends.extend(accumulate(map(len, many), initial=self.ends.pop()))

    def __getitem__(self, at: int) -> list[int]:
        return self.ids.array()[self.ends[at] : self.ends[at + 1]].tolist()


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
