"""Words broken at random places, so that a model meets each in many ways (BPE-dropout: Provilkov et al., 2020)."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from heedful.errors import Refusal
from heedful.tokenizers.merges import Merges
from heedful.tokenizers.tokenizer import Tokenizer

Ids = NDArray[np.int64]
WAYS = 32  # in which each word is broken, once and for all; epochs choose among them
AT_ONCE = 4096  # words that are broken together
NEVER = np.iinfo(np.int64).max


class Broken:
    """Texts as ids, each merge left out with probability `share`: another time other ones, always the same by seed."""

    def __init__(self, tokenizer: Tokenizer, texts: Sequence[str], share: float, seed: int) -> None:
        if tokenizer.kind not in ("bpe", "bpe_characters"):
            raise Refusal(f"a tokenizer of {tokenizer.kind} has no merges to leave out; use one of bpe")
        if not 0 <= share <= 1:
            raise Refusal(f"a share of {share} of the merges cannot be left out; give a number from 0 to 1")
        self.seed = seed
        known: dict[tuple[int, ...], int] = {}
        rows = [[known.setdefault(word, len(known)) for word in words] for words in tokenizer.by_words(texts)]
        self.words = np.fromiter(chain.from_iterable(rows), np.int64)  # of all texts
        self.counts = np.array([len(row) for row in rows], dtype=np.int64)  # words of each text
        self.ends = np.cumsum(self.counts)
        flat = list(chain.from_iterable(ways(Table(Merges(tokenizer.layout)), list(known), share, seed)))
        self.sizes = np.array([len(ids) for ids in flat], dtype=np.int64)  # ids of each way of each word
        self.starts = np.cumsum(self.sizes) - self.sizes
        self.ids = np.fromiter(chain.from_iterable(flat), np.int64)

    def __len__(self) -> int:
        return len(self.counts)

    def at(self, index: int, epoch: int) -> list[int]:
        """The ids of a text as they are in an epoch."""
        return [int(at) for at in self.many([index], epoch)[0]]

    def many(self, indices: Sequence[int], epoch: int) -> list[Ids]:
        """The ids of texts as they are in an epoch."""
        places = np.asarray(indices, dtype=np.int64)
        counts = self.counts[places]
        chosen = self._chosen(spans(self.ends[places] - counts, counts), epoch)
        ends = np.concatenate(([0], np.cumsum(self.sizes[chosen])))[np.cumsum(counts)]
        return np.split(self.ids[spans(self.starts[chosen], self.sizes[chosen])], ends[:-1])

    def lengths(self, epoch: int) -> Ids:
        """How many ids each text has in an epoch."""
        ends = np.concatenate(([0], np.cumsum(self.sizes[self._chosen(np.arange(len(self.words)), epoch)])))
        return np.diff(ends[self.ends], prepend=0)

    def _chosen(self, at: Ids, epoch: int) -> Ids:
        """The way of each word, by its place among the words of all texts, in an epoch."""
        return self.words[at] * WAYS + (dice(self.seed, epoch, at) % np.uint64(WAYS)).astype(np.int64)


def spans(starts: Ids, counts: Ids) -> Ids:
    """The places from each start on, as many as each count says, one span behind the other."""
    ends = np.cumsum(counts)
    return np.repeat(starts - (ends - counts), counts) + np.arange(ends[-1] if len(ends) else 0)


def dice(seed: int, epoch: int, at: Ids) -> NDArray[np.uint64]:
    """A number for each place that follows from the seed, the epoch and the place (SplitMix64: Steele et al., 2014)."""
    start = int.from_bytes(hashlib.shake_128(f"{seed} {epoch}".encode()).digest(8), "little")
    mixed = at.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(start)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
    return mixed ^ (mixed >> np.uint64(31))


class Table:
    """Merges as arrays, to look up many pairs at once."""

    def __init__(self, merges: Merges) -> None:
        self.letters = merges.letters
        self.size = max(merges.known.values()) + 1
        found = sorted((left * self.size + right, *into) for (left, right), into in merges.into.items())
        self.pairs, self.ranks, made = np.array([*found, (NEVER, NEVER, 0)], dtype=np.int64).T.copy()
        self.made = np.zeros(len(found) + 1, dtype=np.int64)
        self.made[self.ranks[:-1]] = made[:-1]

    def rank(self, left: Ids, right: Ids) -> Ids:
        """When pairs merge among all merges; `NEVER` where they do not."""
        pairs = left * self.size + right
        places = np.searchsorted(self.pairs, pairs)
        return np.where(self.pairs[places] == pairs, self.ranks[places], NEVER)


def ways(table: Table, words: Sequence[tuple[int, ...]], share: float, seed: int) -> list[list[tuple[int, ...]]]:
    """The ways in which each word is broken; a word that is no sum of merges stays as it is."""
    made = [[word] * WAYS for word in words]
    if share == 0:
        return made
    start = int.from_bytes(hashlib.shake_128(f"broken {seed}".encode()).digest(16), "little")
    dice = np.random.PCG64(start)  # raw, since only these numbers stay the same in every version
    same: dict[tuple[int, ...], tuple[int, ...]] = {}  # equal ways are kept once
    for places, letters in alike(table, words):
        whole = dict(merge_rows(table, letters, 0.0, dice))
        sound = [at for at, place in enumerate(places) if whole[at] == words[place]]
        for at, ids in merge_rows(table, np.repeat(letters[sound], WAYS, axis=0), share, dice):
            made[places[sound[at // WAYS]]][at % WAYS] = same.setdefault(ids, ids)
    return made


def alike(table: Table, words: Sequence[tuple[int, ...]]) -> Iterator[tuple[list[int], Ids]]:
    """The letters of words that can be broken, those of like length together, with the words' places."""
    spelt = [tuple(chain.from_iterable(map(table.letters, word))) for word in words]
    for length in sorted({len(letters) for letters in spelt} - {0, 1}):
        places = [at for at, letters in enumerate(spelt) if len(letters) == length]
        for start in range(0, len(places), AT_ONCE):
            some = places[start : start + AT_ONCE]
            yield some, np.array([spelt[at] for at in some], dtype=np.int64)


def merge_rows(table: Table, ids: Ids, share: float, dice: np.random.PCG64) -> Iterable[tuple[int, tuple[int, ...]]]:
    """The merged tokens of rows of letters, with the number of each row.

    At each step every pair that could merge is left out by chance; of the rest the first in rank merges, the leftmost
    of equals; a row with nothing left to merge is done. So all rows that go on are of one length.
    """
    rows, ranks = np.arange(len(ids)), table.rank(ids[:, :-1], ids[:, 1:])
    while ranks.shape[1] and len(rows):
        left = np.where(throw(dice, ranks.shape) < share, NEVER, ranks) if share else ranks
        place = left.argmin(1)
        best = left[np.arange(len(rows)), place]
        on = best < NEVER
        yield from zip(rows[~on].tolist(), map(tuple, ids[~on].tolist()), strict=True)
        rows, place = rows[on], place[on, None]
        ids = without(ids[on], place + 1)
        np.put_along_axis(ids, place, table.made[best[on], None], axis=1)
        ranks = without(ranks[on], place)
        for beside in (place - 1, place):  # the two pairs that the new piece is part of
            beside = beside.clip(0, max(0, ranks.shape[1] - 1))
            if ranks.shape[1]:
                new = table.rank(np.take_along_axis(ids, beside, 1), np.take_along_axis(ids, beside + 1, 1))
                np.put_along_axis(ranks, beside, new, axis=1)
    yield from zip(rows.tolist(), map(tuple, ids.tolist()), strict=True)


def without(values: Ids, place: Ids) -> Ids:
    """Rows without the value at one place each."""
    columns = np.arange(values.shape[1] - 1)[None]
    return np.take_along_axis(values, columns + (columns >= place), axis=1)


def throw(dice: np.random.PCG64, shape: tuple[int, ...]) -> NDArray[np.float64]:
    """Numbers from 0 to 1, two of each raw number."""
    count = shape[0] * shape[1]
    raw = dice.random_raw((count + 1) // 2).view(np.uint32)[:count]
    return (raw / 2.0**32).reshape(shape)
