"""Which word is likely to stand for which: IBM's Model 1 (Brown et al., 1993), and the alignments that it suggests."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from heedful.data.parallel_sample import Link
from heedful.errors import Refusal

Words = Sequence[str]
Pair = tuple[Words, Words]
Ids = NDArray[np.int64]
Real = NDArray[np.float64]
NOTHING, UNKNOWN = 0, -1  # what a word may come from beside the words of the source, and a word never seen
PAIRS, COUPLES = 50_000, 8_000_000  # at most so many pairs, and couples of their words, are learned from
SOME = 5_000  # pairs that tell whether the diagonal should be favoured
DIAGONAL, FROM_NOTHING = 4.0, 0.08  # how much it is, and the chance of nothing then, as fast_align has them
NEARER = (
    1e-9  # what distance takes of a chance: of equals (a word that comes twice, or a full stop and nothing) the nearer
)


@dataclass(frozen=True, eq=False)
class Couples:
    """Every target word of some pairs beside nothing and beside each source word of its pair: N couples."""

    source: Ids  # N
    target: Ids  # N
    starts: Ids  # where each target word's couples begin
    distance: Real  # N: from the diagonal, 0 to 1; nothing is as far as can be
    prior: Real  # N

    def sums(self, chances: Real) -> Real:
        """The chances (N) summed for each target word."""
        return np.add.reduceat(chances, self.starts)

    def normal(self, chances: Real) -> Real:
        """The chances (N) so that those of each target word sum to one."""
        return chances / np.repeat(self.sums(chances), np.diff(self.starts, append=len(chances)))


@dataclass(frozen=True, eq=False)
class Direction:
    """The chance of each target word, given a source word or nothing."""

    sources: dict[str, int]
    targets: dict[str, int]
    keys: Ids  # of the couples that were seen, ascending
    chances: Real
    diagonal: float
    fit: float  # the mean logarithm of a target word's chance, in what was learned from

    def chance(self, source: str | None, target: str) -> float:
        """The chance of a target word, given a source word, or given nothing."""
        at = NOTHING if source is None else self.sources.get(source, UNKNOWN)
        return float(self._look_up(np.array([at]), np.array([self.targets.get(target, UNKNOWN)]))[0])

    def links(self, source: Words, target: Words) -> list[Link]:
        """The source word that each target word most likely comes from; none where that is nothing or not known."""
        if not source or not target:
            return []
        couples = _couples([(_ids(source, self.sources), _ids(target, self.targets))], self.diagonal)
        chances = self._look_up(couples.source, couples.target) * couples.prior * (1 - NEARER * couples.distance)
        best = chances.reshape(len(target), -1).argmax(1)  # of T 1+S; nothing, the first, where all are 0
        return [(at - 1, place) for place, at in enumerate(best.tolist()) if at != NOTHING]

    def _look_up(self, source: Ids, target: Ids) -> Real:
        keys = source * len(self.targets) + target
        at = np.searchsorted(self.keys, keys).clip(max=len(self.keys) - 1)
        known = (self.keys[at] == keys) & (target != UNKNOWN)  # the key of an unknown source is below all others
        return np.where(known, self.chances[at], 0.0)


@dataclass(frozen=True, eq=False)
class Lexicon:
    """What source words say of target words, and target words of source words."""

    forward: Direction
    backward: Direction

    @property
    def fit(self) -> float:
        """How well what was learned from is explained; more is better."""
        return self.forward.fit + self.backward.fit

    def silver(self, pairs: Iterable[Pair]) -> list[list[Link]]:
        """The links of each pair on which both directions agree: few of them are wrong, some are missing."""
        made = []
        for source, target in pairs:
            there, back = self.forward.links(source, target), self.backward.links(target, source)
            made.append(sorted(set(there) & {(at, place) for place, at in back}))
        return made


def lexicon(pairs: Iterable[Pair], rounds: int = 5, diagonal: float | None = None) -> Lexicon:
    """A lexicon of both directions, learned from pairs of sentences, as words, by expectation and maximisation.

    With `diagonal` 0 it is Model 1; 4 favours words at like places, as fast_align does (Dyer et al., 2013), which is
    right for languages of like order. Where it is not given, that one of the two is taken that explains the pairs
    better. At most the first 50,000 pairs are learned from, or eight million couples of their words.
    """
    used = list(_first(pairs))
    if not used:
        raise Refusal("no pair has words on both sides; give at least one that has")
    if diagonal is None:
        diagonal = max((0.0, DIAGONAL), key=lambda one: _both(used[:SOME], rounds, one).fit)
    return _both(used, rounds, diagonal)


def _both(pairs: Sequence[Pair], rounds: int, diagonal: float) -> Lexicon:
    turned = [(target, source) for source, target in pairs]
    return Lexicon(_learn(pairs, rounds, diagonal), _learn(turned, rounds, diagonal))


def _first(pairs: Iterable[Pair]) -> Iterator[Pair]:
    room = COUPLES
    for source, target in islice(pairs, PAIRS):
        size = (len(source) + 1) * (len(target) + 1)
        if source and target and size <= room:
            room -= size
            yield source, target


def _learn(pairs: Sequence[Pair], rounds: int, diagonal: float) -> Direction:
    sources = _word_numbers((source for source, _ in pairs), first=NOTHING + 1)
    targets = _word_numbers((target for _, target in pairs), first=0)
    couples = _couples([(_ids(source, sources), _ids(target, targets)) for source, target in pairs], diagonal)
    keys, place = np.unique(couples.source * len(targets) + couples.target, return_inverse=True)
    source = keys // len(targets)
    chances = np.ones(len(keys))
    for _ in range(rounds):
        share = couples.normal(chances[place] * couples.prior)  # how much of each target word comes from each source
        counts = np.bincount(place, share, len(keys))
        chances = counts / np.bincount(source, counts)[source]
    fit = float(np.log(couples.sums(chances[place] * couples.prior)).mean())
    return Direction(sources, targets, keys, chances, diagonal, fit)


def _couples(pairs: Sequence[tuple[Ids, Ids]], diagonal: float) -> Couples:
    """The couples of pairs of ids: pair after pair, target word after target word, nothing first."""
    sources = np.concatenate([part for source, _ in pairs for part in ([NOTHING], source)])
    targets = np.concatenate([target for _, target in pairs])
    s = np.array([1 + len(source) for source, _ in pairs])
    t = np.array([len(target) for _, target in pairs])
    width = np.repeat(s, t)  # couples of each target word
    starts = np.concatenate(([0], np.cumsum(width)[:-1]))
    row = np.repeat(np.arange(len(targets)), width)
    i = np.arange(len(row)) - starts[row]  # 0 is nothing, 1 the first word
    j = np.arange(len(targets)) - np.repeat(np.cumsum(t) - t, t) + 1  # 1 is the first word
    source = sources[np.repeat(np.cumsum(s) - s, t)[row] + i]
    distance = np.where(i > 0, np.abs(i / np.maximum(1, width - 1)[row] - (j / np.repeat(t, t))[row]), 1.0)
    couples = Couples(source, targets[row], starts, distance, 1 / width[row])
    if not diagonal:
        return couples
    near = couples.normal(np.where(i > 0, np.exp(-diagonal * distance), 0.0))
    prior = np.where(i > 0, (1 - FROM_NOTHING) * near, FROM_NOTHING)
    return Couples(source, couples.target, starts, distance, prior)


def _word_numbers(sentences: Iterable[Words], first: int) -> dict[str, int]:
    return {word: at for at, word in enumerate(dict.fromkeys(w for words in sentences for w in words), first)}


def _ids(words: Words, numbers: dict[str, int]) -> Ids:
    return np.array([numbers.get(word, UNKNOWN) for word in words], dtype=np.int64)
