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
MOST = 1_000  # samples to choose by where no number is given: more make a score slower, and hardly surer
ODD = 0x9E3779B97F4A7C15  # makes the order of groups another for each seed


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


# ---------------------------------------------------------------------- how much is held out


@dataclass(frozen=True)
class Cut:
    """How samples of one file are divided: a tenth to choose by and a tenth to test on, and of many not so many.

    What has a file of its own is not cut from this one.
    """

    seed: int = 0
    held_out: int | None = None  # samples to choose by, and as many to test on; none: tenths, `MOST` to choose by
    valid: bool = True
    test: bool = True

    @property
    def wanted(self) -> tuple[int, int]:
        """How many samples at most are chosen by, and tested on."""
        most = (MOST, 1 << 62) if self.held_out is None else (self.held_out, self.held_out)
        return most[0] * self.valid, most[1] * self.test

    def dealt(self, side: int) -> int:
        """The side itself where it is made, else that to learn from."""
        return side if (True, self.valid, self.test)[side] else 0

    @property
    def cure(self) -> str:
        """What can be done where there are too few samples."""
        given = [name for name, cut in (("data.valid", self.valid), ("data.test", self.test)) if cut]
        return f"add more, or give {' and '.join(given)}"


WHOLE = Cut()


def thin_out(found: Digests, sides: NDArray[np.int64], cut: Cut) -> NDArray[np.int64]:
    """The sides of samples with so many held out as a cut wants, near-duplicates, which share a digest, on one side.

    What is one too many goes to those to learn from. Where more than a tenth is asked for, they are taken from these.
    Groups are taken by a hash, so that no file that grows moves a sample that was learned from to the other sides.
    """
    values, first, group, sizes = np.unique(found, return_index=True, return_inverse=True, return_counts=True)
    homes, made = sides[first], np.zeros(len(values), np.int64)
    hashed = values * np.uint64(2 * cut.seed + 1 & 0xFFFFFFFFFFFFFFFF) ^ np.uint64(ODD)
    for side, most in enumerate(cut.wanted, 1):
        own = (homes == side) | ((homes == 0) & (made == 0) & (cut.held_out is not None))
        places = np.flatnonzero(own)
        ordered = places[np.lexsort((hashed[places], homes[places] != side))]  # those of a tenth come first
        before = np.cumsum(sizes[ordered])
        held = before <= most
        if most and not held.any() and len(ordered):
            held[0] = True
        made[ordered[held]] = side
    return made[group]


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
