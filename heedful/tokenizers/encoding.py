"""One text or a pair of them, as an encoder reads them: with the tokens around them, and what each token is of."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from sys import intern

import tokenizers

from heedful.tokenizers.tokenizer_json import SPECIAL

BEGIN, END = SPECIAL.index("<begin>"), SPECIAL.index("<end>")


@dataclass(frozen=True)
class Joined:
    """The ids of one or two texts; of each the segment, which text it is of (-1: none) and where in that it stands."""

    ids: list[int]
    segments: list[int]
    sides: list[int]
    spans: list[tuple[int, int]]  # first character and the one behind the last
    texts: tuple[str, ...]  # as the spans count them
    task: int | None = None  # the number of the task that they are of, where there are several

    @cached_property
    def words(self) -> list[str]:
        """How each token is written, `<` before it where it begins a word and `>` where it ends one; "": no text."""
        there = zip(self.sides, self.spans, strict=True)
        return [intern(mark_words(self.texts[side], *span)) if side >= 0 else "" for side, span in there]


def mark_words(text: str, first: int, last: int) -> str:
    """A part of a text without the blanks around it, and marks where it begins and ends a word."""
    part = text[first:last]
    if not (bare := part.strip()):
        return ""
    first, last = last - len(part.lstrip()), first + len(part.rstrip())
    return f"{'' if inside_word(text, first) else '<'}{bare}{'' if inside_word(text, last) else '>'}"


def inside_word(text: str, at: int) -> bool:
    """Whether a word goes on between a character and the one before it."""
    return 0 < at < len(text) and text[at - 1].isalnum() and text[at].isalnum()


def join(texts: tuple[str, ...], made: tokenizers.Encoding) -> Joined:
    """The engine's encoding of one or two texts."""
    sides = [-1 if side is None else side for side in made.sequence_ids]
    return Joined(made.ids, made.type_ids, sides, made.offsets, texts)


def as_input(texts: Sequence[tuple[str, ...]]) -> list[str | tuple[str, str]]:
    """One or two texts each, as the engine takes them."""
    return [one[0] if len(one) == 1 else (one[0], one[1]) for one in texts]


def frame_texts(texts: tuple[str, ...], made: Sequence[tokenizers.Encoding], longest: int | None) -> Joined:
    """One or two texts in a tokenizer of ours, whose tokens around a text only a program sets: begin, text, end."""
    kept = lengths([len(one.ids) for one in made], None if longest is None else longest - 1 - len(made))
    ids, segments, sides, spans = [BEGIN], [0], [-1], [(0, 0)]
    for side, (one, count) in enumerate(zip(made, kept, strict=True)):
        ids += [*one.ids[:count], END]
        segments += [side] * (count + 1)
        sides += [*[side] * count, -1]
        spans += [*one.offsets[:count], (0, 0)]
    return Joined(ids, segments, sides, spans, texts)


def lengths(there: Sequence[int], room: int | None) -> list[int]:
    """How much of each of one or two texts is kept, so that both fit: the longer is cut first."""
    if room is None or sum(there) <= room:
        return list(there)
    if len(there) == 1:
        return [room]
    last = min(there[1], max(room // 2, room - there[0]))
    return [min(there[0], room - last), last]


def group_by_word(ids: Sequence[int], words: Sequence[int | None]) -> Iterator[tuple[int, ...]]:
    """The ids of each word, by the number of the word that each id has."""
    start = 0
    for end in range(1, len(ids) + 1):
        if end == len(ids) or words[end] != words[start]:
            yield tuple(ids[start:end])
            start = end
