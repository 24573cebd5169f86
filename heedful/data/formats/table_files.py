"""Tables of a user's own (CSV, TSV, JSONL): rows whose columns are asked for by name, gzipped or plain."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from heedful.data import line_files
from heedful.errors import Refusal, nearest

ENDINGS = {"csv": "csv", "tsv": "tsv", "tab": "tsv", "jsonl": "jsonl", "ndjson": "jsonl"}


@dataclass(frozen=True, slots=True)
class TableRow:
    """A row of a table: its line, its fields by the names of columns, or why it cannot be read."""

    line: int
    fields: dict[str, Any]
    fault: str = ""


@dataclass(frozen=True)
class TableFile:
    """A table: the names of its columns, or their numbers from 1 where the file does not name them, and its rows."""

    path: Path
    columns: tuple[str, ...]
    rows: tuple[TableRow, ...]

    def named(self, asked: Sequence[str], option: str) -> list[str]:
        """The columns of these names or numbers, whatever their capitals; one that is not there is refused."""
        there = {name.casefold(): name for name in self.columns}
        places = {str(at): name for at, name in enumerate(self.columns, 1)}
        for name in asked:
            if name.casefold() not in there and name not in places:
                known = f"{nearest(name, self.columns) or ';'} its columns are: {', '.join(self.columns)}"
                raise Refusal(f"{option}: {self.path} has no column {name!r}{known}")
        return [there.get(name.casefold()) or places[name] for name in asked]

    def likeliest(self, groups: Sequence[Sequence[str]]) -> list[str]:
        """The columns that are called as those of each group are, one of each, up to the first that is not there."""
        there, made = {name.casefold(): name for name in self.columns}, list[str]()
        for names in groups:
            found = next((there[name] for name in names if name in there and there[name] not in made), None)
            if found is None:
                break
            made.append(found)
        return made


def kind_of_table(path: Path) -> str:
    """The kind of table that a file is by its ending: csv, tsv, jsonl; nothing where it is none."""
    return ENDINGS.get(path.name.lower().removesuffix(".gz").rpartition(".")[2], "")


def read_table(path: Path, names: Collection[str]) -> TableFile:
    """The table of a file; its first row names columns where it holds one of `names`."""
    kind = kind_of_table(path)
    if kind == "jsonl":
        return read_objects(path)
    if kind == "csv":
        rows = list(line_files.rows(path))
    else:
        read = enumerate(line_files.lines(path), 1)
        rows = [(number, line.split("\t")) for number, line in read if line.strip()]
    head = [field.strip() for field in rows[0][1]]
    is_header = bool({name.casefold() for name in names} & {field.casefold() for field in head})
    columns = tuple(head if is_header else map(str, range(1, len(head) + 1)))
    if twice := next((name for name in columns if columns.count(name) > 1), None):
        raise Refusal(f"{path}, line {rows[0][0]}: {columns.count(twice)} columns are called {twice!r}; call one so")
    return check_rows(TableFile(path, columns, tuple(row_of(number, columns, row) for number, row in rows[is_header:])))


def row_of(number: int, columns: Sequence[str], row: Sequence[str]) -> TableRow:
    """A row by its columns; one of more or fewer fields cannot be read."""
    fault = "" if len(row) == len(columns) else f"{len(row)} fields, and there are {len(columns)} columns"
    return TableRow(number, dict(zip(columns, row, strict=False)), fault)


def read_objects(path: Path) -> TableFile:
    """The table of a file of JSON objects, one a line; its columns are all that any of them names."""
    read = enumerate(line_files.lines(path), 1)
    rows = tuple(object_row(line, path, number) for number, line in read if line.strip())
    return check_rows(TableFile(path, tuple(dict.fromkeys(name for row in rows for name in row.fields)), rows))


def object_row(line: str, path: Path, number: int) -> TableRow:
    """A line that holds a JSON object as a row."""
    try:
        found = line_files.object_of(line, path, number)
    except Refusal as refused:
        return TableRow(number, {}, str(refused).partition(f", line {number}: ")[2])
    return TableRow(number, found, "" if found else "it is no JSON object with names and values")


def check_rows(table: TableFile) -> TableFile:
    """The table itself, where it has rows."""
    if not table.rows:
        raise Refusal(f"{table.path} holds no rows below the names of its columns; add some")
    return table


def values_of(row: TableRow, columns: Sequence[str]) -> list[str]:
    """The values of a row in these columns as texts; one that is neither text nor numbers is refused."""
    if row.fault:
        raise Refusal(row.fault)
    return [text_of(row.fields.get(name), name) for name in columns]


def text_of(value: Any, column: str) -> str:
    """A value of a column as text: numbers with commas, and semicolons between rows of them."""
    if isinstance(value, str):
        return value
    if isinstance(value, list) and value:
        parts = [text_of(one, column) for one in value]
        return ("; " if isinstance(value[0], list) else ",").join(parts)
    if isinstance(value, int | float) and not isinstance(value, bool):
        return str(value)
    raise Refusal(f"the column {column} holds {'nothing' if value is None else 'neither text nor numbers'}; fill it")
