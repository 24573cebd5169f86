"""Text files of any size, plain or gzipped, a block at a time; every fault is named with file and line."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, cast

from heedful.errors import RECODED, Refusal
from heedful.safe import outfile

BLOCK = 1 << 20  # bytes that are read at once
GZIPPED = b"\x1f\x8b"


def lines_of(path: Path, heard: Callable[[int], object] = lambda read: None) -> Iterator[str]:
    """The text of a file in blocks of whole lines; a line longer than a block is cut where a word ends.

    `heard` is told how many bytes of the file have been read since it was last told.
    """
    number, blank = 1, True
    for block in blocks(path, heard):
        try:
            text = block.decode("utf-8")
        except UnicodeDecodeError as error:
            line = number + block.count(b"\n", 0, error.start)
            cure = f"convert the file, for instance with {RECODED}"
            raise Refusal(f"{path}, line {line}: not UTF-8; {cure}") from None
        if number == 1 and blank:
            text = text.removeprefix("\ufeff")
        number += block.count(b"\n")
        blank = blank and not text.strip()
        yield text.replace("\r\n", "\n").removesuffix("\n")
    if blank:
        raise Refusal(f"{path} is empty; it needs at least one line")


def blocks(path: Path, heard: Callable[[int], object]) -> Iterator[bytes]:
    """The bytes of a file, cut behind the ends of lines, else before blanks, else between characters."""
    with open_text(path) as (file, raw):
        rest, before = b"", 0
        while data := file.read(BLOCK):
            now = raw.tell() if raw.seekable() else before + len(data)  # a pipe has no place to tell
            heard(now - before)
            before = now
            rest += data
            line, word = rest.rfind(b"\n") + 1, rest.rfind(b" ")
            if line:
                block, rest = rest[:line], rest[line:]
            elif len(rest) < BLOCK:
                continue
            elif word > 0:
                block, rest = rest[:word], rest[word + 1 :]
            else:
                cut = between_characters(rest)
                block, rest = rest[:cut], rest[cut:]
            yield block
        if rest:
            yield rest


def between_characters(data: bytes) -> int:
    """The last place where UTF-8 can be cut: before the last byte that begins a character."""
    last = next((back for back in range(1, 5) if data[-back] & 0xC0 != 0x80), 4)
    return len(data) - last or len(data)


@contextmanager
def open_text(path: Path) -> Iterator[tuple[IO[bytes], IO[bytes]]]:
    """A file to read from, unpacked where it is gzipped, and the file as it lies on the disk."""
    if path.is_dir():
        raise Refusal(f"{path} is a folder; name a file in it")
    if outfile.stream(path) is None and path.exists():  # what a shell hands over, as in <(zcat *.gz), comes as it comes
        if not path.is_file():
            raise Refusal(f"{path} is no plain file; name another, or hand over what it gives by <(command)")
        if not path.stat().st_size:  # a file of the system's own (/proc) may have no end
            raise Refusal(f"{path} is empty; it needs at least one line")
    try:
        with path.open("rb") as raw:
            packed = raw.peek(2)[:2] == GZIPPED
            yield (cast(IO[bytes], gzip.GzipFile(fileobj=raw)) if packed else raw), raw
    except FileNotFoundError:
        raise Refusal(f"{path} does not exist; check the path") from None
    except (gzip.BadGzipFile, EOFError, zlib.error):
        raise Refusal(f"{path} is gzipped and damaged or cut short; copy or pack it again") from None
    except OSError as error:
        raise Refusal(f"{path} cannot be read: {error.strerror}; name another file") from None
