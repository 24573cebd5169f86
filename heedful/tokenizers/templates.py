"""A tokenizer that is written for others to use: theirs put around each text what our models read around it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from heedful.safe import outfile
from heedful.tokenizers.tokenizer import Tokenizer

TEXT = {"Sequence": {"id": "A", "type_id": 0}}


class Ending:
    """A tokenizer of ours, in whose file a template says that each text ends in a token, and with which it begins."""

    def __init__(self, tokenizer: Tokenizer, end: int, begin: int | None = None) -> None:
        self.layout, self.theirs = tokenizer.layout, tokenizer.theirs
        names = {at: name for name, at in self.layout.known.items()}
        self.end, self.begin = names[end], [] if begin is None else [names[begin]]
        self.ids = {names[at]: at for at in (end, begin) if at is not None}

    def write(self, path: str | Path) -> None:
        """Writes it as a `tokenizer.json`."""
        parts: dict[str, Any] = json.loads(self.layout.text)
        before = parts.get("post_processor") or {}
        first = [{"SpecialToken": {"id": name, "type_id": 0}} for name in self.begin]
        last, second = ({"SpecialToken": {"id": self.end, "type_id": at}} for at in (0, len(self.begin)))
        told = {name: {"id": name, "ids": [at], "tokens": [name]} for name, at in self.ids.items()}
        parts["post_processor"] = {
            "type": "TemplateProcessing",
            "single": [*first, TEXT, last],
            "pair": [*first, TEXT, last, {"Sequence": {"id": "B", "type_id": 1}}, second],
            "special_tokens": before.get("special_tokens", {}) | told,
        }
        outfile.write(path, json.dumps(parts, ensure_ascii=False, indent=2))
