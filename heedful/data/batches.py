"""Which samples make which step: a pure function, so that a run can be resumed at any of them."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Generic, TypeVar

import numpy as np

from heedful.data.spec import DataSpec, Sides
from heedful.errors import Refusal, nearest

Sample = TypeVar("Sample")
POOL = 32  # batches among which samples are sorted by length


@dataclass(frozen=True)
class Splits(Generic[Sample]):
    """Samples to learn from, to choose by, and to report on."""

    train: Sequence[Sample]
    valid: Sequence[Sample]
    test: Sequence[Sample]


class Plan:
    """The batches of every epoch, of like lengths, as a pure function of (seed, epoch, lengths, batch)."""

    def __init__(self, lengths: Sequence[int], batch: int, seed: int) -> None:
        self.lengths, self.batch, self.seed = np.asarray(lengths), batch, seed
        self.steps = -(-len(self.lengths) // batch)  # in an epoch; the last batch may be smaller
        self._epoch = lru_cache(maxsize=2)(self._plan)

    def at(self, step: int) -> list[int]:
        """The samples of a step, counted from 0 over all epochs."""
        epoch, place = divmod(step, self.steps)
        return self._epoch(epoch)[place]

    def _plan(self, epoch: int) -> list[list[int]]:
        random = np.random.default_rng([self.seed, epoch])
        shuffled = random.permutation(len(self.lengths))
        pool = POOL * self.batch
        pools = [shuffled[start : start + pool] for start in range(0, len(shuffled), pool)]
        ordered = np.concatenate([part[np.argsort(self.lengths[part], kind="stable")] for part in pools])
        batches = [ordered[start : start + self.batch].tolist() for start in range(0, len(ordered), self.batch)]
        return [batches[place] for place in random.permutation(len(batches))]


def opened(
    data: DataSpec,
    read: Callable[[str | Sides], Any],
    divide: Callable[[Any, str], Splits[Any]],
    made: Iterable[str],
) -> Splits[Any]:
    """A user's own data: a file for each split, or one file that is divided; `made` are the sets that are no files."""
    if data.name != "files":
        if not Path(data.name).exists():
            known = ", ".join(sorted(made))
            meant = nearest(data.name, made)
            raise Refusal(f"data={data.name} does not exist{meant or ';'} check the path, or use one of: {known}")
        return divide(read(data.name), data.name)
    train, valid, test = (read(place) if place is not None else () for place in (data.train, data.valid, data.test))
    if data.train is None and data.valid is None and data.test is None:
        raise Refusal("data.train is not given; add data.train=FILE")
    if data.valid is None and data.test is None:
        return divide(train, "data.train")
    return Splits(train, valid, test)


def divided(samples: Sequence[Sample], key: Callable[[Sample], Any], what: str) -> Splits[Sample]:
    """Samples without files of their own for choosing and testing: a tenth each, the same key never on two sides.

    The side is a hash of the key, so that it stays the same when samples are added.
    """
    sides: list[list[Sample]] = [[], [], []]
    for sample in samples:
        share = int.from_bytes(hashlib.sha256(repr(key(sample)).encode()).digest()[:4], "big") % 10
        sides[max(0, share - 7)].append(sample)
    if not all(sides):
        raise Refusal(
            f"{what} has {len(samples)} samples, too few to hold some out; add more, or give data.valid and data.test"
        )
    return Splits(*sides)
