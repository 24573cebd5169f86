"""Files of answers: lines, a column beside those of the inputs (CSV, TSV), or an object for each input (JSONL)."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from heedful.data.formats.table_files import kind_of_table
from heedful.pipelines.asked_files import Inputs
from heedful.results import Result, Unread


@dataclass(frozen=True)
class AnswerForm:
    """How answers are written: as people read them or as JSON, and whether several may be given to each input."""

    as_json: bool
    best: int | None

    def lines(self, answers: Sequence[Result]) -> list[str]:
        """The answers to one input, each in a line."""
        if self.as_json:
            return [as_json(one) for one in answers]
        return [one.plain() if self.best is None else one.scored() for one in answers]

    def value(self, answers: Sequence[Result]) -> Any:
        """The answers to one input as one value of JSON."""
        made = [one.json() for one in answers]
        return made[0] if self.best is None or isinstance(answers[0], Unread) else made


def as_json(answer: Result) -> str:
    """An answer as one line of JSON."""
    return json.dumps(answer.json(), ensure_ascii=False)


def answer_file(path: Path, inputs: Inputs, answers: Iterable[Sequence[Result]], how: AnswerForm) -> str:
    """What a file of answers holds, by the ending of its name."""
    kind = kind_of_table(path)
    if kind == "jsonl":
        return "".join(objects(inputs, answers, how))
    if kind:
        return table(inputs, answers, how, "," if kind == "csv" else "\t")
    return "".join(f"{in_one_line(line)}\n" for found in answers for line in how.lines(found))


def objects(inputs: Inputs, answers: Iterable[Sequence[Result]], how: AnswerForm) -> Iterator[str]:
    """A line of JSON for each input: its columns, and the answer."""
    name = free_name(inputs.columns)
    for row, found in zip(inputs.rows, answers, strict=True):
        yield json.dumps(row | {name: how.value(found)}, ensure_ascii=False) + "\n"


def table(inputs: Inputs, answers: Iterable[Sequence[Result]], how: AnswerForm, between: str) -> str:
    """The table of the inputs with the answers in columns of their own: as JSON, or with likelihoods beside them."""
    cells = [cells_of(found, how) for found in answers]
    name, count = free_name(inputs.columns), max(map(len, cells))
    likely = next((word for row in cells for _, word, _ in row if word), "")
    names = [name if at == 0 else f"{name}_{at + 1}" for at in range(count)]
    beside = [free_name(inputs.columns, likely) + one.removeprefix(name) if likely else "" for one in names]
    text = io.StringIO()
    writer = csv.writer(text, delimiter=between, lineterminator="\n")
    writer.writerow([*inputs.columns, *(one for pair in zip(names, beside, strict=True) for one in pair if one)])
    for row, found in zip(inputs.rows, cells, strict=True):
        padded = [*found, *[("", "", "")] * (count - len(found))]
        told = [field for plain, _, value in padded for field in ((plain, value) if likely else (plain,))]
        fields = [*map(field_of, (row.get(column) for column in inputs.columns)), *told]
        writer.writerow([in_one_line(field).replace("\t", " ") for field in fields] if between == "\t" else fields)
    return text.getvalue()


def cells_of(answers: Sequence[Result], how: AnswerForm) -> list[tuple[str, str, str]]:
    """Each answer, what its likelihood is called, and that."""
    if how.as_json:
        return [(json.dumps(how.value(answers), ensure_ascii=False), "", "")]
    return [(one.plain(), *likelihood(one)) for one in answers]


def likelihood(answer: Result) -> tuple[str, str]:
    """What the likelihood of an answer is called, and that; both are empty where none is known."""
    known = ((name, vars(answer)[name]) for name in ("chance", "score") if vars(answer).get(name) is not None)
    return next(((name, f"{value:.6g}") for name, value in known), ("", ""))


def free_name(columns: Sequence[str], name: str = "answer") -> str:
    """A name of a column that is not taken."""
    while name in columns:
        name = f"predicted_{name}"
    return name


def field_of(value: Any) -> str:
    """A value of a table as a field of it."""
    return value if isinstance(value, str) else "" if value is None else json.dumps(value, ensure_ascii=False)


def in_one_line(text: str) -> str:
    """A text without ends of lines within it, where these part answers."""
    return " ".join(text.splitlines())
