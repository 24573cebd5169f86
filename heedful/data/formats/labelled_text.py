"""Sentences and pairs of them with a class each: TSV, CSV, JSONL, or a folder for each class."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from heedful.data import line_files
from heedful.data.formats.class_folders import Classes
from heedful.data.formats.documents import is_text
from heedful.data.formats.named_columns import column, named_rows, tabbed_rows
from heedful.data.line_files import ending_of, is_table
from heedful.data.near_duplicates import same_spelling
from heedful.data.parallel_sample import Column, Sides
from heedful.errors import Refusal

FIRST = ("text", "sentence", "sentence1", "premise", "question1", "text1", "question", "review", "content")
SECOND = ("text2", "sentence2", "hypothesis", "question2", "pair")
LABEL = ("label", "class", "target", "category", "gold_label", "sentiment")
TASK = "task"  # the column of the task that a class answers
HOW = "write a text, a {between} and its class, or two texts and the class of the pair"
NAMES = {*FIRST, *SECOND, *LABEL, TASK}


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence, or a pair of them, its class, and where it was read."""

    texts: tuple[str, ...]
    label: str
    path: str = ""
    line: int = 0
    task: str = ""  # that the class answers, where several are told

    @property
    def place(self) -> str:
        """Where it stands."""
        if not self.path:
            return "a sample"
        return f"{self.path}, line {self.line}" if self.line else self.path

    @property
    def key(self) -> str:
        """Its texts as people would call them the same: whatever their blanks, case and Unicode form."""
        return same_spelling(*self.texts)


def read_sentences(place: str | Sides, names: Sequence[Column] = ()) -> list[Sentence]:
    """The sentences of a folder of folders or of a file: JSONL, CSV, Parquet, Arrow, or else lines with tabs.

    `names` are the columns of the texts and, last, of the class, where these are not called as others call them.
    """
    if isinstance(place, Sides):
        raise Refusal("sentences with a class are read from one file, not from a source and a target; give data=FILE")
    path = Path(place)
    if path.is_dir() and not is_table(path):
        return list(in_folders(path))
    if names or is_table(path):
        made = of_names(path, names) if names else of_objects(path)
    else:
        made = of_columns(path, ending_of(path) == "csv")
    found = [check_filled(one) for one in made]
    if not found:
        raise Refusal(f"{path} holds no samples below the names of its columns; add some")
    many: dict[str, int] = {}
    for one in found:  # a stray tab would make a pair of a sentence
        if len(one.texts) != (others := many.setdefault(one.task, len(one.texts))):
            said = "two texts where the others have one" if others == 1 else "one text where the others have two"
            raise Refusal(f"{one.place}: {said}; give every line as many")
    return found


def check_filled(one: Sentence) -> Sentence:
    """The sentence itself, where neither it nor its class is empty."""
    if not one.label or not all(text.strip() for text in one.texts):
        raise Refusal(f"{one.place}: the {'text' if one.label else 'class'} is empty; fill it or drop the line")
    return one


def in_folders(folder: Path) -> Iterator[Sentence]:
    """Each text file below a folder, and its class: the folder of the first level that it is in."""
    below = Classes.of(folder, "texts", is_text)
    if not below.found:
        raise Refusal(f"{folder} holds no texts; make a folder for each class, with a .txt file for each text")
    below.tell()
    for path, label in below.found:
        yield Sentence((" ".join(" ".join(line_files.lines(path)).split()),), label, str(path))


def of_columns(path: Path, commas: bool) -> Iterator[Sentence]:
    """The rows of a file with commas or tabs: by the names of its columns, or else the class last."""
    rows = list(line_files.rows(path)) if commas else tabbed_rows(path)
    head = [field.strip().lower() for field in rows[0][1]]
    named = {name: head.index(name) for name in head}
    places, told = columns(named, f"{path}, line {rows[0][0]}"), named.get(TASK)
    for name in (name for name, many in Counter(head).items() if places and many > 1 and name in NAMES):
        raise Refusal(f"{path}, line {rows[0][0]}: {head.count(name)} columns are called {name}; call one so")
    if not places and unlike_the_rest(rows):
        names = ", ".join(field.strip() for field in rows[0][1])
        raise Refusal(
            f"{path}, line {rows[0][0]}: {names} are names of columns; call them text and label, name two of "
            "them (data.text=NAME data.label=NAME), or drop them"
        )
    for number, row in rows[1:] if places else rows:
        at = places or list(range(len(row)))
        if not 2 <= len(at) <= 3 or len(row) <= max(at):
            many = "one field" if len(row) == 1 else f"{len(row)} fields"
            lacks = len(named) == 1 and head[0] in NAMES  # a name and no class below it
            other = "text" if head[0] in LABEL else "label"
            how = f"add a column called {other}" if lacks else HOW.format(between="comma" if commas else "tab")
            raise Refusal(f"{path}, line {number}: {many}; {how}")
        *texts, label = (row[place].strip() for place in at)
        task = row[told].strip() if places and told is not None and told < len(row) else ""
        yield Sentence(tuple(texts), label, str(path), number, task)


def unlike_the_rest(rows: Sequence[tuple[int, list[str]]]) -> bool:
    """Whether the first row is single words, the last of them a class that it has alone, though others share theirs.

    Names of columns that nobody knows are such, and would become a class of their own.
    """
    first, labels = [field.strip() for field in rows[0][1]], Counter(row[-1].strip() for _, row in rows)
    others = [count for label, count in labels.items() if label != first[-1]]
    words = len(first) > 1 and all(len(field.split()) == 1 for field in first)
    return words and labels[first[-1]] == 1 and len(others) > 1 and min(others) > 1


def of_names(path: Path, names: Sequence[Column]) -> Iterator[Sentence]:
    """The sentences of a table whose columns are named, or told by their numbers: the class last."""
    for number, row in named_rows(path, names):
        *texts, label = (column(row, name, path, number) for name in names)
        yield Sentence(tuple(texts), label, str(path), number, str(row.get(TASK, "")))


def columns(there: Mapping[str, Any], place: str) -> list[Any]:
    """What names of columns stand for the text, for a second one where there is one, and for the class.

    Where two could be the first and none is named as a second, they are a pair, as a question and a sentence are.
    """
    text, label = (next((there[name] for name in names if name in there), None) for names in (FIRST, LABEL))
    if text is None or label is None:
        return []
    second = [there[name] for name in SECOND if name in there]
    texts = [text, *second] if second else [there[name] for name in there if name in FIRST]
    if len(texts) > 2:
        raise Refusal(f"{place}: {len(texts)} columns are called as texts are; call one so, or the two of a pair")
    return [*texts, label]


def of_objects(path: Path) -> Iterator[Sentence]:
    """The sentences of a table of objects: of JSON, one a line, or of Arrow."""
    for number, row in named_rows(path):
        found = columns(row, f"{path}, line {number}")
        if not found or not all(isinstance(one, str) for one in found[:-1]) or not isinstance(found[-1], str | int):
            how = 'write {"text": "...", "label": "..."}, or name columns: data.text=NAME data.label=NAME'
            raise Refusal(f"{path}, line {number}: {how}")
        *texts, label = found
        yield Sentence(tuple(texts), str(label), str(path), number, str(row.get(TASK, "")))
