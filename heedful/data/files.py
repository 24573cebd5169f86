"""Reading the user's files: every fault is named with file and line before training starts."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from pathlib import Path

from heedful.data.spec import Sides
from heedful.errors import Refusal

Pair = tuple[str, str]


def lines(path: str | Path) -> list[str]:
    """The lines of a UTF-8 file without their ends."""
    path = Path(path)
    if path.is_dir():
        raise Refusal(f"{path} is a folder; name a file in it")
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        raise Refusal(f"{path} does not exist; check the path") from None
    except OSError as error:
        raise Refusal(f"{path} cannot be read: {error.strerror}") from None
    if not data.strip():
        raise Refusal(f"{path} is empty; it needs at least one line")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise Refusal(f"{path}, line {line}: not UTF-8; convert the file, for instance with iconv -t UTF-8") from None
    return [line.removesuffix("\r") for line in text.removesuffix("\n").split("\n")]


def pairs(where: str | Sides) -> list[Pair]:
    """Pairs of source and target: a TSV with a pair a line, or two files that belong together line by line."""
    if isinstance(where, Sides):
        source, target = lines(where.source), lines(where.target)
        if len(source) != len(target):
            raise Refusal(
                f"{where.source} has {len(source)} lines and {where.target} has {len(target)}; "
                "each line of one must have its line in the other"
            )
        return list(zip(source, target, strict=True))
    return [_pair(where, number, line) for number, line in enumerate(lines(where), 1) if line.strip()]


def _pair(path: str, number: int, line: str) -> Pair:
    fields = line.split("\t")
    if len(fields) != 2:
        raise Refusal(f"{path}, line {number}: {len(fields)} fields, not two; write source, a tab and target")
    if not fields[0] or not fields[1]:
        raise Refusal(
            f"{path}, line {number}: the {'target' if fields[0] else 'source'} is empty; fill it or drop the line"
        )
    return fields[0], fields[1]


def numbers(path: str | Path, labelled: int = 0) -> Iterator[tuple[int, list[str], list[float]]]:
    """The rows of a CSV: line number, the first `labelled` fields as words, the rest as numbers; no header."""
    width = None
    for number, row in enumerate(csv.reader(io.StringIO("\n".join(lines(path)))), 1):
        if not any(field.strip() for field in row):
            continue
        words, rest = [field.strip() for field in row[:labelled]], row[labelled:]
        if number == 1 and not any(_is_number(field) for field in rest):
            continue
        if width is None:
            width = len(row)
        if len(row) != width or not rest:
            raise Refusal(f"{path}, line {number}: {len(row)} fields where {max(width, labelled + 1)} are needed")
        for place, field in enumerate(rest, labelled + 1):
            if not _is_number(field):
                raise Refusal(
                    f"{path}, line {number}: {field.strip()!r} in column {place} is no finite number; mend or drop it"
                )
        yield number, words, [float(field) for field in rest]


def _is_number(field: str) -> bool:
    try:
        return abs(float(field)) < float("inf")
    except ValueError:
        return False
