"""One text or a pair of them, as an encoder reads them: with the tokens around them, and what each token is of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import tokenizers


@dataclass(frozen=True)
class Joined:
    """The ids of one or two texts; of each the segment, which text it is of (-1: none) and where in that it stands."""

    ids: list[int]
    segments: list[int]
    sides: list[int]
    spans: list[tuple[int, int]]  # first character and the one behind the last
    texts: tuple[str, ...]  # as the spans count them


def joined(texts: tuple[str, ...], made: tokenizers.Encoding) -> Joined:
    """What the engine made of one or two texts."""
    sides = [-1 if side is None else side for side in made.sequence_ids]
    return Joined(made.ids, made.type_ids, sides, made.offsets, texts)


def given(texts: Sequence[tuple[str, ...]]) -> list[str | tuple[str, str]]:
    """One or two texts each, as the engine takes them."""
    return [one[0] if len(one) == 1 else (one[0], one[1]) for one in texts]
