"""Long texts in parts, so that memory is bounded: they are cut where what is made of them stays the same."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice

BETWEEN = re.compile(r"(?<=\S) (?=\S)")  # a blank that parts two words and belongs to neither
LINE = re.compile(r"(?<=\S)\n(?=\S)")
LONG = 1 << 20  # characters of a part
NEAR = 1 << 10  # characters on either side of a cut, which say whether it changes anything
TRIES = 50  # blanks, and ends of lines, at which a cut is tried

Encode = Callable[[Sequence[str]], Sequence[Sequence[int]]]


def by_lines(pieces: Iterable[str], long: int = 16 * LONG) -> Iterator[str]:
    """A text, given in pieces, in blocks of whole lines without the last end; a line beyond `long` ends with a word."""
    rest = ""
    for piece in pieces:
        before, rest = len(rest), rest + piece if rest else piece
        cut = rest.rfind("\n", before)
        if cut < 0 and len(rest) > long:
            cut = rest.rfind(" ")
        if cut >= 0:
            yield rest[:cut]
            rest = rest[cut + 1 :]
    if rest:
        yield rest


def by_words(pieces: Iterable[str], long: int = 4 * LONG) -> Iterator[str]:
    """A text, given in pieces, in parts between which a blank was, so that it has the same words."""
    return part_text(pieces, long, blank_of)


def by_tokens(pieces: Iterable[str], encode: Encode, long: int = LONG) -> Iterator[str]:
    """A text, given in pieces, in parts whose tokens, one after the other, are its tokens: cut at blanks or lines."""
    return part_text(pieces, long, lambda text, at: seam_of(text, at, encode))


def part_text(pieces: Iterable[str], long: int, cut: Callable[[str, int], tuple[int, int] | None]) -> Iterator[str]:
    """A text in parts of `long` characters or somewhat more, where there is a place to cut it: none is short."""
    rest = ""
    for piece in pieces:
        start, rest = 0, rest + piece if rest else piece
        while len(rest) - start > 2 * long and (seam := cut(rest, start + long)):
            yield rest[start : seam[0]]
            start = seam[1]
        rest = rest[start:]
    yield rest


def blank_of(text: str, at: int) -> tuple[int, int] | None:
    """Where a blank between two words begins and ends, behind a place."""
    found = BETWEEN.search(text, at)
    return found.span() if found else None


def seam_of(text: str, at: int, encode: Encode) -> tuple[int, int] | None:
    """Where a part can end and the next one begin, behind a place: what stands around it has the same tokens then.

    Most tokenizers put a blank before a text, so that one between two words goes; others keep it with the first.
    """
    for gap in (BETWEEN, LINE):
        for found in islice(gap.finditer(text, at), TRIES):
            for end, begin in ((found.start(), found.end()), (found.end(), found.end())):
                if begin > len(text) - NEAR:
                    break
                before, after = text[max(0, end - NEAR) : end], text[begin : begin + NEAR]
                whole, first, second = map(list, encode([before + text[end:begin] + after, before, after]))
                if whole == first + second:
                    return end, begin
    return None
