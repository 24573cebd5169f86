"""Data made on the fly: nothing to download, and nothing in the test that was in the training."""

from __future__ import annotations

import string
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heedful.data.lazy_samples import check_size
from heedful.data.parallel_sample import Links, Pair
from heedful.data.splits import Sample, Splits
from heedful.errors import Refusal

SYMBOLS = string.digits + string.ascii_lowercase
Numbers = NDArray[np.float32]


@dataclass(frozen=True)
class Labelled:
    """A set of vectors (T C) and what is said of it."""

    vectors: Numbers
    label: str


def reverse(data: Any, seed: int) -> Splits[Pair]:
    """Sequences of digits and letters, and the same backwards."""
    return _pairs(data, seed, lambda text: text[::-1])


def sort(data: Any, seed: int) -> Splits[Pair]:
    """Sequences of digits and letters, and the same in order."""
    return _pairs(data, seed, lambda text: "".join(sorted(text)))


def _pairs(data: Any, seed: int, answer: Callable[[str], str]) -> Splits[Pair]:
    random = np.random.default_rng([seed, 0])
    counts = _counts(data)
    check_size(data, 2 * data.longest * sum(counts))
    texts: dict[str, None] = {}  # in the order of making, each once: what is tested was never seen
    tries = 0
    while len(texts) < sum(counts) and tries < 20 * sum(counts):
        length = int(random.integers(data.shortest, data.longest + 1))
        texts["".join(SYMBOLS[place] for place in random.integers(0, len(SYMBOLS), length))] = None
        tries += 1
    if len(texts) < sum(counts):
        raise Refusal(
            f"only {len(texts):,} different sequences of {data.shortest} to {data.longest} signs were found, not "
            f"{sum(counts):,}; raise data.longest, or lower data.samples and data.held_out"
        )
    made = [Pair(text, answer(text)) for text in texts]
    return _cut(made, counts)


def invent_captions(data: Any, seed: int) -> Splits[Pair]:
    """Captions in English and in an invented language, and which of their words belong together."""
    from heedful.data.toys.invented_language import sentences

    counts, made = _counts(data), []
    for phrase in sentences(sum(counts), seed):
        links = frozenset(phrase.links)
        made.append(Pair(phrase.source, phrase.target, links=Links(links, links)))
    return _cut(made, counts)


def clouds(data: Any, seed: int) -> Splits[Labelled]:
    """Sets of points on a plane that lie in one to four heaps, and how many heaps there are."""
    random = np.random.default_rng([seed, 1])
    counts = _counts(data)
    check_size(data, 8 * data.longest * sum(counts))
    return _cut([_cloud(random, data) for _ in range(sum(counts))], counts)


def _cloud(random: np.random.Generator, data: Any) -> Labelled:
    size = int(random.integers(data.shortest, data.longest + 1))
    heaps = int(random.integers(1, min(4, size) + 1))
    centres: list[NDArray[np.float64]] = []
    while len(centres) < heaps:  # far enough apart that the count is beyond doubt
        centre = random.uniform(-1, 1, 2)
        if all(np.linalg.norm(centre - other) > 0.5 for other in centres):
            centres.append(centre)
    owner = np.concatenate([np.arange(heaps), random.integers(0, heaps, size - heaps)])  # every heap has a member
    points = np.stack(centres)[owner] + random.uniform(-0.1, 0.1, (size, 2))
    return Labelled(random.permutation(points).astype(np.float32), str(heaps))


def waves(data: Any, seed: int) -> Splits[Any]:
    """A series of two channels: a daily wave whose strength drifts, a weekly one, and a little noise (T C)."""
    random = np.random.default_rng([seed, 2])
    counts = [data.samples, max(data.held_out // 4, 4 * data.longest), max(data.held_out, 4 * data.longest)]
    check_size(data, 100 * sum(counts))  # while they are made
    at = np.arange(sum(counts))
    drift = 1 + 0.3 * np.sin(at[:, None] / np.array([97.0, 143.0]) + random.uniform(0, 6, 2))
    daily = np.sin(2 * np.pi * at[:, None] / 24 + random.uniform(0, 6, 2)) * drift
    weekly = np.sin(2 * np.pi * at[:, None] / 168 + random.uniform(0, 6, 2))
    series = (10 + 3 * daily + 2 * weekly + random.normal(0, 0.1, (len(at), 2))).astype(np.float32)
    train, valid, test = np.split(series, np.cumsum(counts)[:-1])
    return Splits(train, valid, test)  # type: ignore[arg-type]  # an array is a sequence of rows


def _counts(data: Any) -> list[int]:
    return [data.samples, max(data.held_out // 4, 1), data.held_out]


def _cut(made: list[Sample], counts: list[int]) -> Splits[Sample]:
    """Test and validation first, so that they are the same whatever the size of the training set."""
    valid, test = counts[1], counts[1] + counts[2]
    return Splits(made[test:], made[:valid], made[valid:test])
