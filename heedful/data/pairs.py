"""Pairs of a source and a target: a file with tabs, or two files that belong together line by line."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from heedful.data import alignments
from heedful.data.alignments import Links
from heedful.data.files import lines
from heedful.data.spec import Sides
from heedful.errors import Refusal


@dataclass(frozen=True, slots=True)
class Pair:
    """A source and its target, where they were read, and which of their words belong together, where that is given."""

    source: str
    target: str
    paths: tuple[str, str] = ("", "")
    line: int = 0
    links: Links | None = None

    def where(self, side: int) -> str:
        """Where the source (0) or the target (1) stands."""
        return f"{self.paths[side]}, line {self.line}" if self.line else "a sample"


def read(where: str | Sides) -> list[Pair]:
    """Pairs of source and target: a TSV with a pair a line, or two files that belong together line by line."""
    made = both(where) if isinstance(where, Sides) else split(where)
    pairs = [filled(pair) for pair in made if pair.source.strip() or pair.target.strip()]
    if isinstance(where, Sides) and where.alignment is not None:
        return aligned(pairs, where)
    return pairs


def both(sides: Sides) -> Iterator[Pair]:
    """The pairs of two files."""
    source, target = lines(sides.source), lines(sides.target)
    if len(source) != len(target):
        raise Refusal(
            f"{sides.source} has {len(source)} lines and {sides.target} has {len(target)}; "
            "each line of one must have its line in the other"
        )
    paths = sides.source, sides.target
    return (Pair(*pair, paths, line) for line, pair in enumerate(zip(source, target, strict=True), 1))


def split(path: str) -> Iterator[Pair]:
    """The pairs of one file with tabs."""
    paths = path, path
    for line, text in enumerate(lines(path), 1):
        fields = text.split("\t")
        if text.strip() and len(fields) != 2:
            count = "one field" if len(fields) == 1 else f"{len(fields)} fields"
            raise Refusal(f"{path}, line {line}: {count}, not two; write source, a tab and target")
        if text.strip():
            yield Pair(fields[0], fields[1], paths, line)


def filled(pair: Pair) -> Pair:
    """The pair itself, where neither side is empty."""
    for side, text in enumerate((pair.source, pair.target)):
        if not text.strip():
            raise Refusal(f"{pair.where(side)}: the {('source', 'target')[side]} is empty; fill it or drop the line")
    return pair


def aligned(pairs: list[Pair], sides: Sides) -> list[Pair]:
    """The pairs with the links of their file of alignments, checked against their words."""
    path, count = str(sides.alignment), len(lines(sides.source))
    read = alignments.read(path)
    if len(read) != count:
        raise Refusal(f"{path} has {len(read)} lines and {sides.source} has {count}; give each pair its line of links")
    made = []
    for pair in pairs:
        links = read[pair.line - 1]
        alignments.check(links, pair.source.split(), pair.target.split(), path, pair.line)
        made.append(replace(pair, links=links))
    return made
