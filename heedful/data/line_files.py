"""Reading the user's files: every fault is named with file and line before training starts."""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import json
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from heedful.errors import RECODED, Refusal
from heedful.safe.opening import amount, content, size_of
from heedful.terminal import note

UTF8 = "utf-8"
SAMPLED = 1 << 20  # bytes by which an encoding is told
GZIP = b"\x1f\x8b"  # what every gzipped file begins with
MOST = 1 << 32  # bytes of a file that is read whole
TOLD = 1 << 26  # bytes from which on a file is told of, since reading it takes its time
LARGEST = 1e15  # sums of squares of such are still numbers in single precision
NO_NUMBER = f"no finite number below {LARGEST:g}"


def lines(path: str | Path, encoding: str = UTF8, option: str = "") -> list[str]:
    """The lines of a file, gzipped or plain, without their ends."""
    return [line.removesuffix("\r") for line in decode_text(path, encoding, option).removesuffix("\n").split("\n")]


def text(path: str | Path) -> str:
    """All of a UTF-8 file, gzipped or plain; lines end in one sign, whoever wrote them."""
    return decode_text(path).replace("\r\n", "\n")


def decode_text(path: str | Path, encoding: str = UTF8, option: str = "") -> str:
    """What a file says in an encoding, gzipped or plain; `option` is how another encoding is asked for."""
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
        return data.decode("utf-8-sig" if encoding == UTF8 else encoding).removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        if encoding != UTF8:
            raise Refusal(f"{path}, line {line}: not {encoding}; name another encoding") from None
        likeliest = f" but likeliest {(guess := likeliest_encoding(data))}; give {option}{guess}, or" if option else ";"
        convert = f"convert the file, for instance with {RECODED}"
        raise Refusal(f"{path}, line {line}: not UTF-8{likeliest} {convert}") from None


def known_encoding(name: str) -> str:
    """The name of an encoding of texts as Python calls it; one that it does not know is refused."""
    try:
        found = codecs.lookup(name)
        "".encode(found.name)  # some are of bytes alone
    except (LookupError, ValueError, TypeError):
        raise Refusal(f"unknown encoding {name!r}; known are, for instance, latin-1, cp1252 and utf-16") from None
    return found.name


def likeliest_encoding(data: bytes) -> str:
    """The likeliest encoding of a text that is not UTF-8."""
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    return "cp1252" if any(0x80 <= byte < 0xA0 for byte in data[:SAMPLED]) else "latin-1"


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


def rows(path: str | Path, encoding: str = UTF8, option: str = "") -> Iterator[tuple[int, list[str]]]:
    """The rows of a CSV that are not empty, each with its first line: a text in quotes may go over several."""
    read, first = lines(path, encoding, option), 1
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
