"""Long texts that stay in their files: what is looked at is read, so that memory is bounded however long they are."""

from __future__ import annotations

import codecs
import gzip
import os
import sys
import tempfile
import weakref
import zlib
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import IO, overload

import numpy as np

from heedful.data import line_files
from heedful.data.line_files import UTF8
from heedful.errors import Refusal
from heedful.safe.opening import amount, size_of
from heedful.terminal import note, progress
from heedful.tokenizers.chunks import by_lines

HELD = 1 << 24  # bytes of a file up to which its text is held as a string
FOLDED = 8  # times that a gzipped text may well be longer
BLOCK = 1 << 20  # bytes that are read at once
MARK = b"\xef\xbb\xbf"  # of UTF-8, at the beginning of some files


class File:
    """A text file in blocks that end between characters, and where each of them begins: its byte and its character."""

    def __init__(self, path: Path, packed: bool) -> None:
        encoding = line_files.ENCODING.get()
        self.path, self.file = path, open_unpacked(path, packed or encoding != UTF8)
        weakref.finalize(self, self.file.close)
        if packed or encoding != UTF8:
            unfold(path, self.file, packed, encoding)
        self.state = os.fstat(self.file.fileno())
        self.bytes, self.characters = [len(MARK) if self.raw(0, len(MARK)) == MARK else 0], [0]
        blank, size = True, self.state.st_size
        if size > line_files.TOLD:
            note(f"heedful: reading {path}, {amount(size)}")
        with progress(f"reading {path}", size) as heard:
            while self.bytes[-1] < size:
                self.bytes.append(self.end_of_block(size))
                text = self.block(len(self.bytes) - 2)
                self.characters.append(self.characters[-1] + len(text))
                blank = blank and not text.strip()
                heard(self.bytes[-1] - self.bytes[-2])
        if blank:
            raise Refusal(f"{path} is empty; it needs at least one line")

    def raw(self, start: int, end: int) -> bytes:
        """Some bytes of it."""
        return os.pread(self.file.fileno(), end - start, start)

    def end_of_block(self, size: int) -> int:
        """Where the block ends that begins behind the last: before a character, and not within the end of a line."""
        start = self.bytes[-1]
        data = self.raw(start, start + BLOCK)
        if start + len(data) >= size:
            return size
        cut = next((cut for cut in range(len(data) - 1, len(data) - 5, -1) if data[cut] & 0xC0 != 0x80), len(data))
        return start + cut - (data[cut - 1 : cut] == b"\r")

    def check(self) -> None:
        """Refuses a file that was written since it was opened."""
        now = os.fstat(self.file.fileno())
        if (now.st_size, now.st_mtime_ns) != (self.state.st_size, self.state.st_mtime_ns):
            raise Refusal(f"{self.path} changed while it was read; begin again")

    def block(self, at: int) -> str:
        """The text of a block, in which lines end in one sign."""
        self.check()
        try:
            return self.raw(self.bytes[at], self.bytes[at + 1]).decode("utf-8").replace("\r\n", "\n")
        except UnicodeDecodeError as error:
            before = sum(self.block(place).count("\n") for place in range(at))
            line = 1 + before + error.object.count(b"\n", 0, error.start)
            from heedful.data.text_encoding import not_text

            raise not_text(self.path, line, error.object) from None


class Stretch:
    """A stretch of a text file: it is cut as a string is, and read where its pieces are asked for."""

    def __init__(self, file: File, start: int, end: int) -> None:
        self.file, self.start, self.end = file, start, end

    def __len__(self) -> int:
        return self.end - self.start

    def __getitem__(self, places: slice) -> Stretch:
        start, end, _ = places.indices(len(self))
        return Stretch(self.file, self.start + start, self.start + max(start, end))

    def __iter__(self) -> Iterator[str]:
        """Its text, piece by piece."""
        begins = self.file.characters
        at = bisect_right(begins, self.start) - 1
        while at < len(begins) - 1 and begins[at] < self.end:
            yield self.file.block(at)[max(0, self.start - begins[at]) : self.end - begins[at]]
            at += 1

    def __str__(self) -> str:
        return "".join(self)


class Lines(Sequence[str]):
    """The lines of a text file without their ends, each read when it is asked for."""

    def __init__(self, path: str | Path) -> None:
        self.file = File(Path(path), is_packed(Path(path)))
        places = [np.array(self.file.bytes[:1])]
        for start, end in pairwise(self.file.bytes):
            places.append(start + 1 + np.flatnonzero(np.frombuffer(self.file.raw(start, end), np.uint8) == ord("\n")))
        self.starts = np.concatenate([*places, self.file.bytes[-1:]])
        if self.starts[-2] == self.starts[-1]:  # behind the last end
            self.starts = self.starts[:-1]

    def __len__(self) -> int:
        return len(self.starts) - 1

    @overload
    def __getitem__(self, at: int) -> str: ...

    @overload
    def __getitem__(self, at: slice) -> list[str]: ...

    def __getitem__(self, at: int | slice) -> str | list[str]:
        if isinstance(at, slice):
            return [self[one] for one in range(*at.indices(len(self)))]
        self.file.check()
        line = self.file.raw(int(self.starts[at]), int(self.starts[at + 1])).decode()
        return line.removesuffix("\n").removesuffix("\r")

    def __iter__(self) -> Iterator[str]:
        for block in by_lines(map(self.file.block, range(len(self.file.bytes) - 1)), long=sys.maxsize):
            yield from block.split("\n")


Whole = str | Stretch  # a text, in memory or in its file


def pieces(text: Whole) -> Iterator[str]:
    """A text, piece by piece."""
    return iter([text] if isinstance(text, str) else text)


@dataclass(frozen=True, slots=True)
class Text:
    """A text of its own, and where it was read."""

    text: Whole  # in its file, where that is a long one
    place: str

    def pieces(self) -> Iterator[str]:
        """The text, piece by piece."""
        return pieces(self.text)


def is_blank(text: Whole) -> bool:
    """Whether there is nothing to read in a text."""
    return not any(piece.strip() for piece in pieces(text))


def text_of(path: str | Path) -> Whole:
    """The text of a UTF-8 file, gzipped or plain; a long one stays in its file, or in one that it is unfolded to."""
    if not is_long(path):
        return line_files.text(path)
    found = File(Path(path), is_packed(Path(path)))
    return Stretch(found, 0, found.characters[-1])


def is_long(path: str | Path) -> bool:
    """Whether a file is too long to be held, and can be read in parts; not where something is wrong with it."""
    path = Path(path)
    try:
        return (HELD // FOLDED if is_packed(path) else HELD) < size_of(path) <= line_files.MOST
    except (OSError, ValueError):
        return False


def is_packed(path: Path) -> bool:
    """Whether a plain file is gzipped."""
    if path.is_dir() or not size_of(path):
        return False
    with path.open("rb") as file:
        return file.read(len(line_files.GZIP)) == line_files.GZIP


def open_unpacked(path: Path, packed: bool) -> IO[bytes]:
    """A file to read from, or where that is packed, an empty one without a name for what it unfolds to."""
    return tempfile.TemporaryFile() if packed else path.open("rb")


def unfold(path: Path, into: IO[bytes], packed: bool, encoding: str) -> None:
    """Writes what a file says, which is gzipped or in another encoding, into another file in UTF-8."""
    decoder, ends = codecs.getincrementaldecoder(encoding)(), 0
    try:
        with path.open("rb") as raw, progress(f"unfolding {path}", size_of(path)) as heard:
            source, before = gzip.GzipFile(fileobj=raw) if packed else raw, 0
            while data := source.read(BLOCK):
                into.write(data if encoding == UTF8 else decoder.decode(data).encode())
                ends += data.count(b"\n")
                if into.tell() > line_files.MOST:
                    raise Refusal(
                        f"{path} unfolds to more than {amount(line_files.MOST)}; divide it into several files"
                    )
                heard(raw.tell() - before)
                before = raw.tell()
    except UnicodeDecodeError as error:
        line = 1 + ends + error.object.count(b"\n", 0, error.start)
        from heedful.data.text_encoding import not_text

        raise not_text(path, line, error.object, encoding) from None
    except (OSError, EOFError, zlib.error) as error:
        raise Refusal(f"{path} is gzipped but not whole: {error}; copy or compress it again") from None
    into.flush()
