"""Which samples make which step: a pure function, so that a run can be resumed at any of them."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from heedful.data.near_duplicates import WHOLE, Content, Cut, by_side, digest, digests, held_together, side_of, thin_out
from heedful.data.parallel_sample import Sides
from heedful.errors import Refusal, nearest
from heedful.terminal import progress

Sample = TypeVar("Sample")
POOL = 32  # batches among which samples are sorted by length
SAVED = "dataset_dict.json"  # in a folder that `datasets` saved with several splits
WIDE = 128  # the same where batches are cut by tokens: two sides want more to choose from


@dataclass(frozen=True)
class Splits(Generic[Sample]):
    """Samples to learn from, to choose by, and to report on."""

    train: Sequence[Sample]
    valid: Sequence[Sample]
    test: Sequence[Sample]


class Plan:
    """The batches of every epoch, of like lengths, as a pure function of (seed, epoch, lengths, batch or tokens).

    `lengths` gives the lengths of an epoch: a number for each sample, or several, of its source and of its target. A
    batch has `batch` samples, or, where `tokens` is given, as many as leave the longest side of it, padding counted,
    within so many tokens.
    """

    def __init__(self, lengths: Callable[[int], Sequence[Any]], batch: int, seed: int, tokens: int = 0) -> None:
        self.of, self.batch, self.seed, self.tokens = lengths, batch, seed, tokens
        self.starts = [0]  # the first step of every epoch so far
        self._epoch = lru_cache(maxsize=2)(self._plan)

    def at(self, step: int) -> list[int]:
        """The samples of a step, counted from 0 over all epochs."""
        epoch = self.epoch(step)
        return self._epoch(epoch)[step - self.starts[epoch]]

    def epoch(self, step: int) -> int:
        """The epoch of a step; epochs may differ in how many steps they have."""
        while self.starts[-1] <= step:
            self.starts.append(self.starts[-1] + len(self._epoch(len(self.starts) - 1)))
        return bisect_right(self.starts, step) - 1

    @property
    def steps(self) -> int:
        """How many steps the first epoch has."""
        return len(self._epoch(0))

    @property
    def padding(self) -> float:
        """The share of places that hold no token, in the first epoch."""
        sides = self.sides(0)
        rooms = sum(len(batch) * int(sides[batch].max(0).sum()) for batch in self._epoch(0))
        return 1 - int(sides.sum()) / max(1, rooms)

    def sides(self, epoch: int) -> NDArray[np.int64]:
        """The lengths of an epoch: samples, sides."""
        lengths = np.asarray(self.of(epoch), dtype=np.int64)
        return lengths.reshape(len(lengths), -1)

    def _plan(self, epoch: int) -> list[list[int]]:
        with progress("batches are planned"):
            return self._planned(epoch)

    def _planned(self, epoch: int) -> list[list[int]]:
        random, sides = np.random.default_rng([self.seed, epoch]), self.sides(epoch)
        longest = sides.max(1)
        shuffled = random.permutation(len(sides))
        pool = WIDE * max(1, int(self.tokens / longest.mean())) if self.tokens else POOL * self.batch
        batches: list[list[int]] = []
        for start in range(0, len(shuffled), pool):
            part = shuffled[start : start + pool]
            # By the longest side, and among equals by the first, so that the other side is padded little too.
            ordered = part[np.lexsort((sides[part, 0], longest[part]))]
            batches += self._cut(ordered, longest[ordered])
        return [batches[place] for place in random.permutation(len(batches))]

    def _cut(self, ordered: NDArray[np.int64], lengths: NDArray[np.int64]) -> Iterator[list[int]]:
        if not self.tokens:
            yield from (ordered[at : at + self.batch].tolist() for at in range(0, len(ordered), self.batch))
            return
        start = 0
        for at, longest in enumerate(lengths.tolist()):  # ascending, so the newest is the longest
            if at > start and longest * (at + 1 - start) > self.tokens:
                yield ordered[start:at].tolist()
                start = at
        yield ordered[start:].tolist()


def open_splits(
    data: Any,
    read: Callable[[str | Sides], Any],
    divide: Callable[[Any, str], Splits[Any]],
    made: Iterable[str],
) -> Splits[Any]:
    """A user's own data: a file for each split, or one file that is divided; `made` are the sets that are no files.

    What has no file to choose by or to test on is cut from that to learn from.
    """
    if data.name != "files" and (Path(data.name) / SAVED).is_file():
        from heedful.data.arrow_files import saved_splits

        saved = {"name": "files", **saved_splits(Path(data.name))}
        return open_splits(data.model_copy(update=saved), read, divide, made)
    if data.name != "files":
        if not Path(data.name).exists():
            known = ", ".join(sorted(made))
            meant = nearest(data.name, made)
            raise Refusal(f"data={data.name} does not exist{meant or ';'} check the path, or use one of: {known}")
        return divide(read(data.name), data.name)
    train, valid, test = (read(place) if place is not None else () for place in (data.train, data.valid, data.test))
    if data.train is None and data.valid is None and data.test is None:
        raise Refusal("data.train is not given; add data.train=FILE")
    if data.train is not None and (data.valid is None or data.test is None):
        cut = divide(train, "data.train")
        return Splits(cut.train, cut.valid if data.valid is None else valid, cut.test if data.test is None else test)
    return Splits(train, valid, test)


def learn_unseen(
    splits: Splits[Sample], classes: Callable[[Sample], Iterable[str]], content: Callable[[Sample], Content], few: str
) -> Splits[Sample]:
    """The same, but what is of a class that none to learn from has is learned from: it could not be answered.

    Its near-duplicates go with it. Where nothing is left to choose by or to test on, that is refused, and `few` says
    of what there are too few.
    """
    seen = {label for sample in splits.train for label in classes(sample)}
    held = [*splits.valid, *splits.test]
    moved = {digest(content(sample)) for sample in held if not seen.issuperset(classes(sample))}
    if not moved:
        return splits
    rare, valid, test = (
        [sample for sample in side if (digest(content(sample)) in moved) is goes]
        for side, goes in ((held, True), (splits.valid, False), (splits.test, False))
    )
    if (splits.valid and not valid) or (splits.test and not test):
        raise Refusal(f"{few} to hold some out; add more, or give data.train, data.valid and data.test")
    return Splits([*splits.train, *rare], valid, test)


def divide_samples(
    samples: Sequence[Sample],
    key: Callable[[Sample], Any],
    what: str,
    cut: Cut = WHOLE,
    content: Callable[[Sample], Content] | None = None,
) -> Splits[Sample]:
    """Samples without files of their own for choosing and testing: a tenth each, near-duplicates never on two sides.

    The side is a hash of the seed and the key, so that it stays the same when samples are added; of near-duplicates,
    by their content (where none is given: by the key), it is that of the first. Where so many are more than are asked
    for, the rest is learned from.
    """
    found = digests(map(content or key, samples))
    with progress("samples are divided"):
        dealt = np.fromiter((side_of(cut.seed, key(sample)) for sample in samples), np.int64)
        dealt = thin_out(found, held_together(found, dealt), cut)
    sides = by_side(samples, dealt)
    if not all(side or not most for side, most in zip(sides, (1, *cut.wanted), strict=True)):
        kinds = len(np.unique(found))  # columns that were swapped show here
        alike = f", {kinds} of them different" if kinds < len(samples) else ""
        raise Refusal(f"{what} has {len(samples)} samples{alike}, too few to hold some out; {cut.cure}")
    return Splits(*sides)
