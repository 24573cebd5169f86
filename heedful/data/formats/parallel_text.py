"""Pairs of a source and a target: a file with tabs, or two files that belong together line by line."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from heedful.data.formats import pharaoh
from heedful.data.lazy_samples import Made
from heedful.data.line_files import ending_of, is_table, lines
from heedful.data.parallel_sample import Column, Pair, Sides
from heedful.data.texts_on_disk import Lines, is_long
from heedful.errors import Refusal
from heedful.terminal import progress


def read_pairs(where: str | Sides, names: Sequence[Column] = ()) -> Sequence[Pair]:
    """Pairs of source and target: a TSV with a pair a line, or two files that belong together line by line.

    `names` are the two columns of a table that has more, or that is no TSV. Pairs of long files stay there, where they
    have no alignments.
    """
    if isinstance(where, str) and (names or is_table(Path(where)) or ending_of(Path(where)) == "csv"):
        return [check_filled(pair) for pair in of_table(Path(where), names)]
    paths = (where.source, where.target) if isinstance(where, Sides) else (where,)
    if isinstance(where, Sides) and where.alignment is not None:
        return attach_links(list(of_lines(list(map(lines, paths)), paths)), where)
    if any(map(is_long, paths)):
        return in_files(paths)
    return list(of_lines(list(map(lines, paths)), paths))


def in_files(paths: Sequence[str]) -> Made[Pair]:
    """Pairs that stay in their files, each made when it is asked for."""
    found = [Lines(path) for path in paths]
    with progress(f"pairs are read in {' and '.join(paths)}"):
        places = np.fromiter((pair.line for pair in of_lines(found, paths)), np.int64)

    def make(line: int) -> Pair:
        texts = [one[line - 1] for one in found]
        source, target = texts if len(texts) > 1 else texts[0].split("\t")
        return Pair(source, target, (paths[0], paths[-1]), line)

    return Made(make, places)


def of_lines(found: Sequence[Sequence[str]], paths: Sequence[str]) -> Iterator[Pair]:
    """The pairs of the lines of one file or two."""
    made = both(found[0], found[1], paths[0], paths[1]) if len(paths) > 1 else split(found[0], paths[0])
    return (check_filled(pair) for pair in made if pair.source.strip() or pair.target.strip())


def of_table(path: Path, names: Sequence[Column]) -> Iterator[Pair]:
    """The pairs of a table: of the two columns that are named, or of the two that it has."""
    from heedful.data.formats.named_columns import column, named_rows

    for number, row in named_rows(path, names):
        if not names and len(row) != 2:
            there = ", ".join(row) or "none"
            raise Refusal(f"{path} has the columns {there}; name two: data.source=NAME data.target=NAME")
        source, target = (column(row, name, path, number) for name in names or row)
        yield Pair(source, target, (str(path), str(path)), number)


def both(source: Sequence[str], target: Sequence[str], first: str, second: str) -> Iterator[Pair]:
    """The pairs of two files."""
    if len(source) != len(target):
        raise Refusal(
            f"{first} has {len(source)} lines and {second} has {len(target)}; "
            "each line of one must have its line in the other"
        )
    return (Pair(*pair, (first, second), line) for line, pair in enumerate(zip(source, target, strict=True), 1))


def split(found: Iterable[str], path: str) -> Iterator[Pair]:
    """The pairs of one file with tabs."""
    for line, text in enumerate(found, 1):
        fields = text.split("\t")
        if text.strip() and len(fields) != 2:
            count = "one field" if len(fields) == 1 else f"{len(fields)} fields"
            raise Refusal(
                f"{path}, line {line}: {count}, not two; write source, a tab and target, or name "
                "two columns, as data.source=1 data.target=2"
            )
        if text.strip():
            yield Pair(fields[0], fields[1], (path, path), line)


def check_filled(pair: Pair) -> Pair:
    """The pair itself, where neither side is empty."""
    for side, text in enumerate((pair.source, pair.target)):
        if not text.strip():
            raise Refusal(f"{pair.where(side)}: the {('source', 'target')[side]} is empty; fill it or drop the line")
    return pair


def attach_links(pairs: list[Pair], sides: Sides) -> list[Pair]:
    """The pairs with the links of their file of alignments, checked against their words."""
    path, count = str(sides.alignment), len(lines(sides.source))
    read = pharaoh.read_links(path)
    if len(read) != count:
        raise Refusal(f"{path} has {len(read)} lines and {sides.source} has {count}; give each pair its line of links")
    made = []
    for pair in pairs:
        links = read[pair.line - 1]
        pharaoh.check(links, pair.source.split(), pair.target.split(), path, pair.line)
        made.append(replace(pair, links=links))
    return made
