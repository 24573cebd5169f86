"""Word alignments in files: a line a sentence, `0-0 1-2`, as Pharaoh wrote them (Koehn, 2004)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from heedful.data.line_files import lines
from heedful.data.parallel_sample import Link, Links
from heedful.errors import Refusal

NOTATION = re.compile(r"([0-9]{1,9})([-?p])([0-9]{1,9})")
HOW = "write 3-4 for a link of source word 3 to target word 4, 3?4 or 3p4 for one that is only possible"


def read_links(path: str | Path, first: int = 0) -> list[Links]:
    """The links of each sentence of a file, gzipped or plain; a sentence that has none is an empty line.

    `3-4` is a sure link; `3?4` and `3p4` are possible ones: public gold files have the one or the other. `first` is the
    number of the first word in the file, 0 or 1.
    """
    return [_links(line, first, f"{path}, line {number}") for number, line in enumerate(lines(path), 1)]


def write(links: Iterable[Link]) -> str:
    """The links of a sentence as a line of such a file, in order."""
    return " ".join(f"{source}-{target}" for source, target in sorted(set(links)))


def check(links: Links, source: Sequence[str], target: Sequence[str], path: str | Path, line: int) -> None:
    """Refuses links to words that a sentence does not have; `line` is counted from 1."""
    for link in sorted(links.possible):
        for side, word, words in zip(("source", "target"), link, (source, target), strict=True):
            if word >= len(words):
                raise Refusal(
                    f"{path}, line {line}: {write([link])}, counted from 0, goes to {side} word {word}, and there are "
                    f"{len(words)}; check that the lines belong together and that the first word is 0"
                )


def _links(line: str, first: int, where: str) -> Links:
    sure, possible = set(), set()
    for text in line.split():
        found = NOTATION.fullmatch(text)
        if not found:
            raise Refusal(f"{where}: {text[:40]!r} is no link; {HOW}")
        link = int(found[1]) - first, int(found[3]) - first
        if min(link) < 0:
            raise Refusal(f"{where}: {text} goes to word 0, and words were to count from {first}; count them from 0")
        possible.add(link)
        if found[2] == "-":
            sure.add(link)
    return Links(frozenset(sure), frozenset(possible))
