"""The tokenizer of a model's folder, in whichever of the known files it lies."""

from __future__ import annotations

import os
from pathlib import Path

from heedful.checkpoints.opening import inside
from heedful.text.sentinels import Sentinels
from heedful.text.sides import SOURCE, Sides
from heedful.text.tokenizer import Tokenizer

KINDS: dict[str, type[Tokenizer]] = {  # by file; the first that is there tells
    "tokenizer.json": Tokenizer,
    SOURCE: Sides,
    "spiece.model": Sentinels,
    "sentencepiece.bpe.model": Tokenizer,
    "tokenizer.model": Tokenizer,
}


def holds(folder: Path) -> bool:
    """Whether a folder has a tokenizer."""
    return any(os.path.lexists(folder / name) for name in KINDS)


def read(folder: Path) -> Tokenizer:
    """The tokenizer of a folder that has one."""
    name = next(name for name in KINDS if os.path.lexists(folder / name))
    return KINDS[name].read(inside(folder / name))
