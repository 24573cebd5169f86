"""Where pictures lie: in one array, or in files that are decoded when they are asked for."""

from __future__ import annotations

import hashlib
import os
import warnings
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from heedful.data.images.decode import Broken, Size, as_text, fit_array, picture
from heedful.data.near_duplicates import digest
from heedful.errors import Refusal
from heedful.safe.sealed_folders import sum_of

if TYPE_CHECKING:
    from heedful.inputs.image_input import Processor

Pixels = NDArray[np.uint8]  # C H W, or N C H W
ROOM = 1 << 31  # bytes of decoded pictures that are kept; where there are more, files are decoded again and again
NAMED = 5  # broken files that a refusal tells by name


class Gallery:
    """Pictures of one size, by number: N C H W; a processor brings each to its own shape when it is asked for."""

    def __init__(self, pixels: Pixels, processor: Processor | None = None) -> None:
        self.pixels, self.processor = pixels, processor

    def take(self, places: Sequence[int]) -> Pixels:
        """The pictures at these places: B C H W."""
        found = self.pixels[np.asarray(places, dtype=np.int64)]
        if self.processor is None:
            return found
        size = Size(found.shape[1], *self.processor.shape)
        return np.stack([fit_array(one, size, self.processor) for one in found])

    def sums(self) -> list[str]:
        """The SHA-256 of all bytes that they are made of, a sum or several."""
        return [hashlib.sha256(np.ascontiguousarray(self.pixels).data).hexdigest()]

    def digest(self, at: int) -> int:
        """The digest of a picture's pixels, by which equal ones are known."""
        return digest(self.pixels[at].tobytes())


@dataclass(frozen=True, eq=False)
class Picture:
    """A picture of a gallery and what is said of it."""

    gallery: Gallery
    at: int
    label: str
    place: str  # its file, or the name of its set and its number there
    is_file: bool = False

    @property
    def pixels(self) -> Pixels:
        """C H W."""
        return self.gallery.take([self.at])[0]

    @property
    def content(self) -> bytes:
        """What is the same of equal pictures, however their files are written."""
        return self.gallery.digest(self.at).to_bytes(8, "big")

    @property
    def as_input(self) -> str:
        """The picture as `predict` and `look` take it: its file, or a text that holds it."""
        return self.place if self.is_file else as_text(self.gallery.pixels[self.at])

    @property
    def called(self) -> str:
        """What people call it: its file's name, or its set and its number there."""
        return Path(self.place).name if self.is_file else self.place


def pixels_of(pictures: Sequence[Picture]) -> Pixels:
    """Pictures as one array: B C H W."""
    gallery = pictures[0].gallery
    if all(one.gallery is gallery for one in pictures):
        return gallery.take([one.at for one in pictures])
    return np.stack([one.pixels for one in pictures])


class Files(Gallery):
    """Pictures that lie in files. All are decoded once, so that what is broken is known; those that fit are kept."""

    def __init__(self, paths: Sequence[Path], size: Size, processor: Processor | None = None) -> None:
        self.paths, self.size, self.processor = list(paths), size, processor
        self.kept: list[Pixels | None] = [None] * len(self.paths)
        self.broken: dict[int, str] = {}
        self.digests = np.zeros(len(self.paths), np.uint64)
        self.workers = ThreadPoolExecutor(os.cpu_count() or 1, "pictures")  # decoding lets go of Python's lock
        most = ROOM // (size.channels * size.high * size.wide)
        for at, (made, digested) in enumerate(self.workers.map(self.tried, self.paths)):
            self.digests[at] = digested
            if isinstance(made, str):
                self.broken[at] = made
            elif at < most:
                self.kept[at] = made

    def tried(self, path: Path) -> tuple[Pixels | str, int]:
        """The picture of a file and the digest of its pixels, or what is wrong with it."""
        try:
            made = picture(path, self.size, self.processor)
            return made, digest(made.tobytes())
        except Broken as broken:
            return str(broken), 0

    def digest(self, at: int) -> int:
        return int(self.digests[at])

    def take(self, places: Sequence[int]) -> Pixels:
        return np.stack([*self.workers.map(self.one, places)])

    def sums(self) -> list[str]:
        return [*self.workers.map(sum_of, self.paths)]

    def one(self, at: int) -> Pixels:
        """The picture of a place."""
        kept = self.kept[at]
        return picture(self.paths[at], self.size, self.processor) if kept is None else kept


def of_files(
    found: Sequence[tuple[Path, str]],
    size: Size,
    broken: Literal["refuse", "skip"],
    what: str,
    processor: Processor | None = None,
) -> list[Picture]:
    """The pictures of files with their labels; those that cannot be read are named, and refused or left out."""
    gallery = Files([path for path, _ in found], size, processor)
    if gallery.broken:
        names = [f"{gallery.paths[at]} ({why})" for at, why in gallery.broken.items()]
        said = f"{what}: {len(names):,} of {len(found):,} images cannot be read:"
        if broken == "refuse":
            more = f" and {len(names) - NAMED:,} more" if len(names) > NAMED else ""
            cure = "mend or remove them, or leave them out with data.broken=skip"
            raise Refusal(f"{said} {', '.join(names[:NAMED])}{more}; {cure}")
        warnings.warn(f"{said} {', '.join(names)}; left out", stacklevel=2)  # nowhere else are they told
    made = [
        Picture(gallery, at, label, str(path), is_file=True)
        for at, (path, label) in enumerate(found)
        if at not in gallery.broken
    ]
    if not made:
        raise Refusal(f"{what} holds no image that can be read; check the files")
    return made
