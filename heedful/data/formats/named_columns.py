"""Tables with named columns (CSV, TSV, JSON lines, Parquet, Arrow, folders that `datasets` saved), row by row."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from heedful.data import line_files
from heedful.data.line_files import OBJECTS, ending_of, is_arrow
from heedful.data.parallel_sample import Column
from heedful.errors import Refusal, nearest

Row = tuple[int, dict[str, Any]]  # the line, and the values by the names of their columns


def named_rows(path: Path, wanted: Sequence[Column] = ()) -> Iterator[Row]:
    """The rows of a table by the names of its columns; by their numbers, as text, where only numbers are wanted."""
    if is_arrow(path):
        from heedful.data.arrow_files import arrow_rows

        yield from arrow_rows(path)
    elif ending_of(path) in OBJECTS:
        lines = enumerate(line_files.lines(path), 1)
        yield from ((number, line_files.object_of(line, path, number)) for number, line in lines if line.strip())
    else:
        yield from headed_rows(path, numbered=bool(wanted) and all(str(name).isdecimal() for name in wanted))


def headed_rows(path: Path, numbered: bool) -> Iterator[Row]:
    """The rows of a CSV, or else of a file with tabs, below a row of names."""
    rows = list(line_files.rows(path) if ending_of(path) == "csv" else tabbed_rows(path))
    if not rows:
        raise Refusal(f"{path} has no row that is not blank; fill it")
    first, head = rows[0][0], [field.strip() for field in rows[0][1]]
    if twice := next((name for name in head if not numbered and head.count(name) > 1), None):
        raise Refusal(f"{path}, line {first}: {head.count(twice)} columns are called {twice}; call one so")
    for number, row in rows if numbered else rows[1:]:
        if len(row) != len(head):
            raise Refusal(f"{path}, line {number}: {len(row)} fields and not {len(head)}; give every line as many")
        yield number, dict(zip(map(str, range(1, len(row) + 1)) if numbered else head, row, strict=True))


def tabbed_rows(path: Path) -> list[tuple[int, list[str]]]:
    """The rows of a file with tabs that are not empty, each with its line."""
    return [(number, line.split("\t")) for number, line in enumerate(line_files.lines(path), 1) if line.strip()]


def column(row: dict[str, Any], name: Column, path: Path, number: int) -> str:
    """The text of a column of a row: as it is, or a number as it is written."""
    found = value_of(row, name, path, number)
    if not isinstance(found, str | int | float) or (isinstance(found, float) and found != found):
        raise Refusal(f"{path}, line {number}: column {name} holds no text; fill it, or name another column")
    return str(found).strip()


def value_of(row: dict[str, Any], name: Column, path: Path, number: int) -> Any:
    """What a row has in a column, whatever it is; `a.b` is `b` of the object in the column `a`."""
    if (whole := str(name)) in row:
        return row[whole]
    first, _, rest = whole.partition(".")
    if rest and isinstance(row.get(first), dict) and rest in row[first]:
        return row[first][rest]
    known = ", ".join(map(str, row)) or "none"
    raise Refusal(f"{path}, line {number}: there is no column {whole}{nearest(whole, row) or ';'} there are: {known}")
