"""BERT's own tokenizer of older folders: a `vocab.txt`, a token a line, and what `tokenizer_config.json` says of it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import tokenizers
from tokenizers import AddedToken, decoders, models, normalizers, pre_tokenizers, processors

from heedful.checkpoints import opening
from heedful.checkpoints.plain import json_of

NAME, SETTINGS = "vocab.txt", "tokenizer_config.json"
LARGEST = 1 << 20  # bytes of the settings
SPECIAL = {"pad": "[PAD]", "unk": "[UNK]", "cls": "[CLS]", "sep": "[SEP]", "mask": "[MASK]"}


def opened(data: bytes, path: Path) -> tokenizers.Tokenizer:
    """The engine of a vocabulary's bytes and of the settings beside it; a ValueError at nonsense."""
    said = settings(path.with_name(SETTINGS))
    lines = data.decode("utf-8-sig").replace("\r\n", "\n").removesuffix("\n").split("\n")
    known = {token: at for at, token in enumerate(lines)}
    if len(known) < len(lines):
        raise ValueError("a token stands there twice")
    names = {role: named(said.get(f"{role}_token"), usual) for role, usual in SPECIAL.items()}
    for role in ("unk", "cls", "sep"):
        if names[role] not in known:
            raise ValueError(f"{names[role]!r} is not among its tokens")
    return engine(known, names, said)


def engine(known: dict[str, int], names: dict[str, str], said: dict[str, Any]) -> tokenizers.Tokenizer:
    """The engine of a vocabulary, whose special tokens are named."""
    made = tokenizers.Tokenizer(models.WordPiece(known, unk_token=names["unk"]))
    made.normalizer = normalizers.BertNormalizer(
        handle_chinese_chars=bool(said.get("tokenize_chinese_chars", True)),
        strip_accents=said.get("strip_accents"),
        lowercase=bool(said.get("do_lower_case", True)),
    )
    made.pre_tokenizer, made.decoder = pre_tokenizers.BertPreTokenizer(), decoders.WordPiece()
    made.add_special_tokens(
        [AddedToken(name, special=True, normalized=False) for name in names.values() if name in known]
    )
    cls, sep = names["cls"], names["sep"]
    made.post_processor = processors.TemplateProcessing(
        single=f"{cls}:0 $A:0 {sep}:0",
        pair=f"{cls}:0 $A:0 {sep}:0 $B:1 {sep}:1",
        special_tokens=[(cls, known[cls]), (sep, known[sep])],
    )
    return made


def settings(path: Path) -> dict[str, Any]:
    """What lies beside a vocabulary, where something does."""
    if not os.path.lexists(path):
        return {}
    said = json_of(opening.content(opening.inside(path), LARGEST).decode("utf-8"))
    return said if isinstance(said, dict) else {}


def named(token: Any, usual: str) -> str:
    """The name of a special token, which older files tell with its ways."""
    given = token.get("content") if isinstance(token, dict) else token
    return given if isinstance(given, str) and given else usual
