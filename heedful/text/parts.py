"""Long texts in parts, so that memory is bounded: they are cut where what is made of them stays the same."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from itertools import islice

BETWEEN = re.compile(r"(?<=\S) (?=\S)")  # a blank that parts two words and belongs to neither
LINE = re.compile(r"(?<=\S)\n(?=\S)")
LONG = 1 << 20  # characters of a part
NEAR = 1 << 10  # characters on either side of a cut, which say whether it changes anything
TRIES = 50  # blanks, and ends of lines, at which a cut is tried

Encode = Callable[[Sequence[str]], Sequence[Sequence[int]]]


def by_words(text: str, long: int = 16 * LONG) -> Iterator[str]:
    """A text in parts between which a blank was, so that it has the same words."""
    start = 0
    while len(text) - start > 2 * long and (found := BETWEEN.search(text, start + long)):
        yield text[start : found.start()]
        start = found.end()
    yield text[start:]


def by_tokens(text: str, encode: Encode, long: int = LONG) -> Iterator[str]:
    """A text in parts whose tokens, one after the other, are the tokens of the text: cut at blanks or ends of lines."""
    start = 0
    while len(text) - start > 2 * long and (seam := seam_of(text, start + long, encode)):
        yield text[start : seam[0]]
        start = seam[1]
    yield text[start:]


def seam_of(text: str, at: int, encode: Encode) -> tuple[int, int] | None:
    """Where a part can end and the next one begin, behind a place: what stands around it has the same tokens then.

    Most tokenizers put a blank before a text, so that one between two words goes; others keep it with the first.
    """
    for gap in (BETWEEN, LINE):
        for found in islice(gap.finditer(text, at), TRIES):
            for end, begin in ((found.start(), found.end()), (found.end(), found.end())):
                before, after = text[max(0, end - NEAR) : end], text[begin : begin + NEAR]
                whole, first, second = map(list, encode([before + text[end:begin] + after, before, after]))
                if whole == first + second:
                    return end, begin
    return None
