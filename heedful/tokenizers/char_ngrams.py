"""Words by their letters: those that are spelt alike share n-grams, and so do words that nobody has seen before."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from heedful.tokenizers.encoding import Joined

LENGTHS = (3, 4, 5)  # letters of an n-gram, a word's ends counted
MOST = 24  # n-grams of a word, the short ones first: all of one of nine letters


@lru_cache(maxsize=1 << 17)
def grams(word: str, size: int) -> NDArray[np.int64]:
    """The n-grams of a word, by numbers from 1 to `size` that some of them share (Bojanowski et al., 2017)."""
    found = [word[at : at + length] for length in LENGTHS for at in range(len(word) - length + 1)][:MOST]
    numbers = [1 + crc32(gram.encode("utf-8", "surrogatepass")) % size for gram in found]
    return np.array(numbers + [0] * (MOST - len(numbers)))


def ngrams_of(texts: Sequence[Joined], size: int) -> NDArray[np.int64]:
    """The n-grams of every token of texts, filled up with zeros: B T K."""
    place: dict[str, int] = {"": 0}
    rows = np.zeros((len(texts), max(len(one.ids) for one in texts)), dtype=np.int64)
    for row, one in zip(rows, texts, strict=True):
        row[: len(one.ids)] = [place.setdefault(word, len(place)) for word in one.words]
    return np.stack([grams(word, size) for word in place])[rows]
