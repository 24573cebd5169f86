"""Near-duplicates: samples that are equal but for case, blanks and punctuation, held on one side of a split or told.

One rule for all data. Contents are compared by digests of 8 bytes in arrays: a million samples take at most 80 MB while
they are held together and 24 MB while they are counted, however long they are, and long texts are read in pieces. Two
contents that differ have the same digest once in 10^19 pairs.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar
from unicodedata import category, normalize

import numpy as np
from numpy.typing import NDArray

from heedful.data.lazy_samples import Made
from heedful.terminal import progress

if TYPE_CHECKING:
    from heedful.data.splits import Splits
    from heedful.data.texts_on_disk import Whole

Sample = TypeVar("Sample")
Content: TypeAlias = "Whole | bytes"  # of a sample: bytes are near-duplicates where they are equal
Digests = NDArray[np.uint64]
PIECE = 1 << 20  # characters of a text that are looked at together
NAMES = ("train", "valid", "test")


class Letters(dict[int, int | None]):
    """Which characters are kept, as `str.translate` asks: letters and their marks, and numbers."""

    def __missing__(self, code: int) -> int | None:
        self[code] = code if category(chr(code))[0] in "LMN" else None
        return self[code]


LETTERS = Letters()


def same_spelling(*texts: str) -> str:
    """Texts as one key that is the same whatever their blanks, their case and their Unicode form."""
    return normalize("NFC", "\t".join(" ".join(text.split()).casefold() for text in texts))


def digest(content: Content) -> int:
    """The digest of a text without case, blanks and punctuation, where letters or digits are left; else as it is."""
    summed, left = hashlib.blake2b(digest_size=8), isinstance(content, bytes)
    for start in range(0, len(content), PIECE):
        piece = content[start : start + PIECE]
        if not isinstance(piece, bytes):
            piece = normalize("NFC", str(piece).casefold()).translate(LETTERS)
            left = left or any(map(str.isalnum, piece))
            piece = piece.encode("utf-8", "surrogatepass")
        summed.update(piece)
    return int.from_bytes(summed.digest(), "big") if left else digest(str(content).encode("utf-8", "surrogatepass"))


def digests(contents: Iterable[Content]) -> Digests:
    """The digest of each content."""
    with progress("near-duplicates are looked for"):
        return np.fromiter(map(digest, contents), np.uint64)


def side_of(seed: int, key: object) -> int:
    """The side that a key is dealt to, by a hash: 0 to learn from; 1 to choose by and 2 to test on, a tenth each."""
    share = int.from_bytes(hashlib.sha256(f"{seed} {key!r}".encode()).digest()[:4], "big") % 10
    return max(0, share - 7)


def held_together(
    found: Digests, sides: NDArray[np.int64], deal: Callable[[int], int] | None = None
) -> NDArray[np.int64]:
    """The side of each sample such that near-duplicates share one; whatever has none stays where it is.

    Those that would be parted go where the first of them is, or where `deal` puts their digest.
    """
    values, first, group = np.unique(found, return_index=True, return_inverse=True)
    homes = sides[first]
    if deal is not None:
        parted = np.unique(group[sides != homes[group]])
        homes[parted] = [deal(int(value)) for value in values[parted]]
    return homes[group]


def by_side(samples: Sequence[Sample], sides: NDArray[np.int64], count: int = len(NAMES)) -> list[Sequence[Sample]]:
    """The samples of each side, in their order."""
    places = [np.flatnonzero(sides == side) for side in range(count)]
    if isinstance(samples, Made):
        return list(map(samples.chosen, places))
    return [[samples[at] for at in some.tolist()] for some in places]


# ---------------------------------------------------------------------- what is not held together is told


@dataclass(frozen=True)
class Overlap:
    """How many samples of a held-out split have a near-duplicate among those to learn from, by one of their parts."""

    split: str  # valid or test
    part: str  # sources, targets, lines, ...
    count: int
    samples: int

    @property
    def share(self) -> float:
        """The share of the split."""
        return self.count / self.samples

    def __str__(self) -> str:
        return f"{100 * self.share:.1f} % of {self.split} {self.part}"


def overlap(part: str, found: Sequence[Digests]) -> tuple[Overlap, ...]:
    """What of the held-out splits is learned from too, of the digests of all three splits."""
    known = np.sort(found[0])
    counts = [int((known[np.searchsorted(known[:-1], each)] == each).sum()) for each in found[1:]]
    rows = zip(NAMES[1:], counts, map(len, found[1:]), strict=True)
    return tuple(Overlap(split, part, count, size) for split, count, size in rows if count)


def overlaps(splits: Splits[Any], contents: Callable[[Any], Mapping[str, Content]]) -> tuple[Overlap, ...]:
    """What of the held-out splits is learned from too, by every part of a sample that `contents` names."""
    parts = (splits.train, splits.valid, splits.test)
    names = contents(splits.train[0]) if len(splits.train) else ()
    return tuple(
        one
        for name in names
        for one in overlap(name, [digests(contents(sample)[name] for sample in part) for part in parts])
    )
