"""Inputs of a file or a folder: lines, columns of a table, or files that a pipeline takes by their path."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from heedful.data.formats.class_folders import below
from heedful.data.formats.table_files import TableFile, TableRow, kind_of_table, read_table, values_of
from heedful.data.line_files import lines, read_as
from heedful.data.text_encoding import encoding_of
from heedful.errors import Refusal
from heedful.pipelines.pipeline import Pipeline
from heedful.results import Unread
from heedful.terminal import note


@dataclass(frozen=True)
class Inputs:
    """Inputs in order, what each is called, and the columns that stand beside its answer."""

    given: Sequence[Any]
    places: Sequence[str]
    columns: tuple[str, ...]
    rows: Sequence[dict[str, Any]]

    @property
    def texts(self) -> list[Any]:
        """The inputs that are texts."""
        return [one for one in self.given if isinstance(one, str | tuple)]

    @classmethod
    def of_words(cls, words: Sequence[str]) -> Inputs:
        """Inputs that were typed."""
        return cls(words, [f"input {at}" for at in range(1, len(words) + 1)], ("input",), [{"input": w} for w in words])


def inputs_of_file(path: Path, pipeline: Pipeline[Any], columns: Sequence[str], encoding: str) -> Inputs:
    """The inputs of a file or a folder, for a pipeline; `columns` of a table are those that it should read."""
    if path.is_dir():
        return inputs_of_folder(path, pipeline)
    if path.suffix.lower() in pipeline.endings and not columns:
        return Inputs([path], [str(path)], ("file",), [{"file": str(path)}])
    try:
        with read_as(encoding_of(encoding)):
            return inputs_of_text(path, pipeline, columns)
    except ValueError as refused:  # of files that a run reads, the key of its data is named
        raise Refusal(str(refused).replace("data.encoding=", "--encoding ")) from None


def inputs_of_text(path: Path, pipeline: Pipeline[Any], columns: Sequence[str]) -> Inputs:
    """The inputs of a table, or of lines."""
    if kind_of_table(path):
        names = [*columns, *(name for group in pipeline.column_names() for name in group)]
        return inputs_of_table(read_table(path, names), pipeline, columns)
    if columns:
        raise Refusal(f"{path} has lines and no columns; leave --columns out, or name a .csv, .tsv or .jsonl")
    read = lines(path)
    places = [f"{path}, line {number}" for number in range(1, len(read) + 1)]
    return Inputs(read, places, ("input",), [{"input": line} for line in read])


def inputs_of_folder(folder: Path, pipeline: Pipeline[Any]) -> Inputs:
    """The files below a folder that a pipeline takes by their path, in the order of their names."""
    if not pipeline.endings:
        raise Refusal(f"{folder} is a folder, and an input is {pipeline.input}; name a file of such")
    found = sorted(path for path in below(folder, lambda path: path.suffix.lower() in pipeline.endings))
    seen = [path for path in found if not any(part.startswith(".") for part in path.relative_to(folder).parts)]
    ours = [path for path in seen if path.suffix.lower() in pipeline.endings]
    if not ours:
        raise Refusal(f"{folder} holds no file that ends in {', '.join(pipeline.endings)}; name another folder")
    if others := Counter(path.suffix or path.name for path in seen if path.suffix.lower() not in pipeline.endings):
        kinds = ", ".join(f"{ending} {count:,}" for ending, count in others.most_common(5))
        note(f"heedful: {folder}: {others.total():,} files of other kinds are passed over: {kinds}")
    return Inputs(ours, [*map(str, ours)], ("file",), [{"file": str(path.relative_to(folder))} for path in ours])


def inputs_of_table(table: TableFile, pipeline: Pipeline[Any], asked: Sequence[str]) -> Inputs:
    """The inputs of a table: those of the columns that are asked for, or that are called as inputs are."""
    columns = table.named(asked, "--columns") if asked else table.likeliest(pipeline.column_names())
    columns = columns or ([table.columns[0]] if len(table.columns) == 1 else [])
    if not columns:
        known, there = " or ".join(pipeline.column_names()[0][:4]), ", ".join(table.columns)
        said = f"{table.path} has the columns {there}, and none is called {known}"
        raise Refusal(f"{said}; name those to read with --columns")

    def read(row: TableRow) -> Any:
        try:
            return pipeline.of_columns(values_of(row, columns), table.path.parent)
        except Refusal as refused:
            return Unread(str(refused))

    places = [f"{table.path}, line {row.line}" for row in table.rows]
    return Inputs([*map(read, table.rows)], places, table.columns, [row.fields for row in table.rows])
