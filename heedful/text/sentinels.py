"""T5's tokenizer: a SentencePiece model, and tokens for what is left out of a text, `<extra_id_0>` and on."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Self

import tokenizers
from tokenizers import AddedToken

from heedful.checkpoints.opening import inside
from heedful.checkpoints.plain import json_of
from heedful.errors import Refusal
from heedful.text import reading
from heedful.text.layout import BLANK
from heedful.text.tokenizer import Tokenizer

SETTINGS = "tokenizer_config.json"
NAME = "<extra_id_{}>"


class Sentinels(Tokenizer):
    """Text to ids and back, sentinels among them; the blank before a sentinel belongs to it (Raffel et al., 2020)."""

    @classmethod
    def read(cls, path: str | Path) -> Self:
        """The tokenizer of a SentencePiece model, with as many sentinels as the settings beside it say."""
        count = counted(Path(path).with_name(SETTINGS))
        return reading.read(Path(path), cls, lambda data: marked(reading.opened(data)[0], count))

    def encode_all(self, texts: Sequence[str], longest: int | None = None) -> list[list[int]]:
        return [self.without_blanks(ids)[:longest] for ids in super().encode_all(texts)]

    def without_blanks(self, ids: list[int]) -> list[int]:
        """The ids without the blanks that stand before a sentinel."""
        blank, own = self._marks
        behind = [*ids, -1][1:]
        return [one for one, two in zip(ids, behind, strict=True) if one != blank or two not in own]

    @cached_property
    def _marks(self) -> tuple[int | None, frozenset[int]]:
        known = self.layout.known
        return known.get(BLANK), frozenset(at for name, at in known.items() if name.startswith("<extra_id_"))


def counted(path: Path) -> int:
    """How many sentinels settings tell of; none where there are no settings."""
    if not os.path.lexists(path):
        return 0
    try:
        said: Any = json_of(reading.content(inside(path)).decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise Refusal(f"{path} cannot be read as JSON: {reading.said(error)}") from None
    count = said.get("extra_ids") or 0 if isinstance(said, dict) else 0
    if type(count) is not int or not 0 <= count <= 10_000:
        raise Refusal(f"{path}: extra_ids is {str(count)[:30]!r}; it should be a whole number up to 10000")
    return count


def marked(engine: tokenizers.Tokenizer, count: int) -> tokenizers.Tokenizer:
    """The engine with sentinels behind its pieces, the first of them last."""
    names = [NAME.format(number) for number in reversed(range(count))]
    engine.add_special_tokens([AddedToken(name, special=True, normalized=False) for name in names])
    return engine
