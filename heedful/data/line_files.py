"""Reading the user's files: every fault is named with file and line before training starts."""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import json
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any

from heedful.errors import Refusal
from heedful.safe.opening import amount, content, size_of
from heedful.terminal import note

OBJECTS = ("jsonl", "ndjson")  # endings of files with a JSON object a line
ARROW = ("parquet", "pq", "arrow", "feather")
UTF8 = "utf-8"
GZIP = b"\x1f\x8b"  # what every gzipped file begins with
MOST = 1 << 32  # bytes of a file that is read whole
TOLD = 1 << 26  # bytes from which on a file is told of, since reading it takes its time
LARGEST = 1e15  # sums of squares of such are still numbers in single precision
NO_NUMBER = f"no finite number below {LARGEST:g}"
ENCODING: ContextVar[str] = ContextVar("encoding", default=UTF8)  # of the files that are read now


@contextmanager
def read_as(encoding: str) -> Iterator[None]:
    """Within it, text files are read by an encoding: UTF-8, or what `data.encoding` says."""
    before = ENCODING.set(encoding)
    try:
        yield
    finally:
        ENCODING.reset(before)


def lines(path: str | Path) -> list[str]:
    """The lines of a text file, gzipped or plain, without their ends."""
    return [line.removesuffix("\r") for line in decode_text(path).removesuffix("\n").split("\n")]


def text(path: str | Path) -> str:
    """All of a text file, gzipped or plain; lines end in one sign, whoever wrote them."""
    return decode_text(path).replace("\r\n", "\n")


def decode_text(path: str | Path) -> str:
    """What a text file says, gzipped or plain, in UTF-8 or the encoding that it is read as."""
    path = Path(path)
    if path.is_dir():
        raise Refusal(f"{path} is a folder; name a file in it")
    try:
        if (size := size_of(path)) > TOLD:
            note(f"heedful: reading {path}, {amount(size)}")
        data = content(path, MOST)
    except FileNotFoundError:
        raise Refusal(f"{path} does not exist; check the path") from None
    except OSError as error:
        raise Refusal(f"{path} cannot be read: {error.strerror}; name another file") from None
    except ValueError as error:
        raise Refusal(f"{path} cannot be read: {error}; name another file") from None
    if data.startswith(GZIP):
        data = unzip(data, path)
    if not data.removeprefix(codecs.BOM_UTF8).strip():
        raise Refusal(f"{path} is empty; it needs at least one line")
    try:
        return data.decode("utf-8-sig" if ENCODING.get() == UTF8 else ENCODING.get())
    except UnicodeDecodeError as error:
        from heedful.data.text_encoding import not_text

        line = data.count(b"\n", 0, error.start) + 1
        raise not_text(path, line, data, ENCODING.get()) from None


def unzip(data: bytes, path: Path) -> bytes:
    """What a gzipped file holds."""
    try:
        whole = gzip.GzipFile(fileobj=io.BytesIO(data)).read(MOST + 1)
    except (OSError, EOFError, zlib.error) as error:
        raise Refusal(f"{path} is gzipped but not whole: {error}; copy or compress it again") from None
    if len(whole) > MOST:
        raise Refusal(f"{path} unfolds to more than {amount(MOST)}; divide it into several files")
    return whole


def numbers(path: str | Path, labelled: int = 0) -> Iterator[tuple[int, list[str], list[float]]]:
    """The rows of a CSV: line number, the first `labelled` fields as words, the rest as numbers; no header."""
    found = list(rows(path))
    if not found:
        raise Refusal(f"{path} has no row that is not blank; fill it")
    if not any(map(_reads, found[0][1][labelled:])):
        del found[0]  # a header
    width = max(len(found[0][1]), labelled + 1) if found else 0
    for number, row in found:
        fault = _fault(row, labelled, width)
        if fault:
            raise Refusal(f"{path}, line {number}: {fault}")
        yield number, [field.strip() for field in row[:labelled]], [float(field) for field in row[labelled:]]


def _fault(row: list[str], labelled: int, width: int) -> str:
    if len(row) != width:
        return f"{len(row)} fields and not {width}; give every line as many"
    for place, field in enumerate(row, 1):
        if place <= labelled and not field.strip():
            return f"column {place} is empty; fill it or drop the line"
        if place > labelled and not is_number(field):
            return f"{field.strip()!r} in column {place} is {NO_NUMBER}; mend or drop it"
    return ""


def rows(path: str | Path) -> Iterator[tuple[int, list[str]]]:
    """The rows of a CSV that are not empty, each with its first line: a text in quotes may go over several."""
    read, first = lines(path), 1
    reader = csv.reader(io.StringIO("\n".join(read)), strict=True)
    try:
        for row in reader:
            if any(field.strip() for field in row):
                yield first, row
            first = reader.line_num + 1
    except csv.Error as error:
        fault = f"cannot be read as CSV: {error}; mend or drop it"
        if read[first - 1].count('"') % 2:
            fault = "a quote is opened and not closed; close it, and write two for one within a text"
        raise Refusal(f"{path}, line {first}: {fault}") from None


def is_number(field: str) -> bool:
    """Whether a field is a finite number, and not so large that a model could not square it."""
    return _reads(field) and abs(float(field)) < LARGEST


def _reads(field: str) -> bool:
    try:
        float(field)
    except ValueError:
        return False
    return "_" not in field


def object_of(line: str, path: Path, number: int) -> dict[str, Any]:
    """The JSON object of a line; an empty one where it holds anything else."""
    try:
        row = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise Refusal(f"{path}, line {number}: cannot be read as JSON: {error}; mend or drop it") from None
    return row if isinstance(row, dict) else {}


def ending_of(path: Path) -> str:
    """How a file's name ends, whether it is gzipped or not."""
    return path.name.lower().removesuffix(".gz").rpartition(".")[2]


def is_table(path: Path) -> bool:
    """Whether the columns of a file or folder have names, whatever it holds: rows are objects there."""
    return ending_of(path) in OBJECTS or is_arrow(path)


def is_arrow(path: Path) -> bool:
    """Whether a path is a Parquet or an Arrow file, or a folder that `datasets` saved."""
    return path.suffix.lower().removeprefix(".") in ARROW or (path / "state.json").is_file()
