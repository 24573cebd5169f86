"""Words with a tag each, as CoNLL's files have them: a word a line, its tag last, an empty line between sentences."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from heedful.data import line_files
from heedful.data.parallel_sample import Sides
from heedful.errors import Refusal

OUTSIDE = "O"  # the tag of a word that belongs to no span
BEGINS, GOES_ON = frozenset("BS"), frozenset("IE")
DOCUMENT = "-DOCSTART-"  # a line that begins a text
Span = tuple[str, int, int]  # of which kind, its first word and the one behind its last


@dataclass(frozen=True, slots=True)
class Tagged:
    """The words of a sentence, the tag of each, and where it was read."""

    words: tuple[str, ...]
    tags: tuple[str, ...]
    path: str = ""
    line: int = 0

    @property
    def texts(self) -> tuple[str, ...]:
        """The sentence, a blank between words."""
        return (" ".join(self.words),)

    @property
    def place(self) -> str:
        """Where its first word stands."""
        return f"{self.path}, line {self.line}" if self.line else "a sample"


def read_tagged(place: str | Sides) -> list[Tagged]:
    """The sentences of a file."""
    if isinstance(place, Sides):
        raise Refusal("words and their tags are read from one file, not from a source and a target; give data=FILE")
    found = list(sentences(Path(place)))
    if not found:
        raise Refusal(f"{place} holds no words; write a word a line, a tab and its tag")
    return found


def sentences(path: Path) -> Iterator[Tagged]:
    """The sentences of a file, one after the other."""
    words: list[str] = []
    tags: list[str] = []
    width = 0
    for number, line in enumerate([*line_files.lines(path), ""], 1):
        fields = line.split("\t") if "\t" in line.strip() else line.split()
        if not line.strip() or fields[0] == DOCUMENT:
            if words:
                yield Tagged(tuple(words), tuple(tags), str(path), number - len(words))
            words, tags, width = [], [], 0
        elif words or not line.startswith("# ") or "\t" in line:  # else a remark, which stands before a sentence
            if len(fields) < 2 or not fields[0].strip() or not fields[-1].strip():
                raise Refusal(f"{path}, line {number}: {line[:40]!r} has no tag; write a word, a tab and its tag, or O")
            width = width or len(fields)
            if len(fields) != width:
                raise Refusal(f"{path}, line {number}: {len(fields)} columns and not {width}; give each as many")
            words.append("_".join(fields[0].split()))  # or one word would be read as two
            tags.append(check_tag(fields[-1].strip(), path, number))


def check_tag(tag: str, path: Path, number: int) -> str:
    """The tag itself, where it is one."""
    begins, dash, kind = tag.partition("-")
    if tag != OUTSIDE and not (begins in BEGINS | GOES_ON and dash and kind):
        raise Refusal(f"{path}, line {number}: {tag[:40]!r} is no tag; write O, or B-kind and I-kind of a span")
    return tag


def spans(tags: Sequence[str]) -> list[Span]:
    """The spans of a row of tags, as CoNLL's own program finds them: one that nothing begins begins by itself."""
    made: list[Span] = []
    kind, begun, closed = "", 0, True
    for at, tag in enumerate([*tags, OUTSIDE]):
        how, _, new = tag.partition("-")
        goes_on = how in GOES_ON and not closed and new == kind
        if kind and not goes_on:
            made.append((kind, begun, at))
        if not goes_on:
            kind, begun = ("" if how == OUTSIDE else new), at
        closed = how in ("E", "S", OUTSIDE)
    return made
