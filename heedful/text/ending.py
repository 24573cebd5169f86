"""A tokenizer that is written for others to use: theirs put behind each text what our models read behind it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from heedful.text.tokenizer import Tokenizer

TEXT = {"Sequence": {"id": "A", "type_id": 0}}


class Ending:
    """A tokenizer of ours, in whose file a template says that each text ends in a token."""

    def __init__(self, tokenizer: Tokenizer, end: int) -> None:
        self.layout, self.theirs = tokenizer.layout, tokenizer.theirs
        self.end = next(name for name, at in self.layout.known.items() if at == end)
        self.ids = {self.end: end}

    def write(self, path: str | Path) -> None:
        """Writes it as a `tokenizer.json`."""
        parts: dict[str, Any] = json.loads(self.layout.text)
        before = parts.get("post_processor") or {}
        last = {"SpecialToken": {"id": self.end, "type_id": 0}}
        told = {name: {"id": name, "ids": [at], "tokens": [name]} for name, at in self.ids.items()}
        parts["post_processor"] = {
            "type": "TemplateProcessing",
            "single": [TEXT, last],
            "pair": [TEXT, last, {"Sequence": {"id": "B", "type_id": 1}}, last],
            "special_tokens": before.get("special_tokens", {}) | told,
        }
        Path(path).write_text(json.dumps(parts, ensure_ascii=False, indent=2), encoding="utf-8", newline="\n")
