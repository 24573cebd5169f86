"""The files of a tokenizer's folder as others keep them, and what their settings say."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from heedful.errors import Refusal
from heedful.safe import opening
from heedful.safe.plain_data import json_of
from heedful.tokenizers import read_tokenizer

SETTINGS = ("special_tokens_map.json", "tokenizer_config.json")  # the later one is asked first


class Files:
    """The files of a folder, each opened under the rules for what others made."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def bytes(self, name: str) -> bytes:
        """The settings in a file."""
        return read_tokenizer.content(opening.inside(self.folder / name))

    def json(self, name: str) -> dict[str, Any]:
        """The object in a JSON file; an empty one where there is no such file."""
        if not os.path.lexists(self.folder / name):
            return {}
        try:
            value = json_of(self.bytes(name).decode("utf-8-sig"))
        except (ValueError, RecursionError) as error:
            raise Refusal(f"{self.folder / name} cannot be read as JSON: {read_tokenizer.error_line(error)}") from None
        if not isinstance(value, dict):
            raise Refusal(f"{self.folder / name} should hold one JSON object; copy it again")
        return value

    def setting(self, key: str, default: Any = None) -> Any:
        """What the settings of a tokenizer say."""
        for name in reversed(SETTINGS):
            value = self.json(name).get(key)
            if value is not None:
                return value
        return default

    def special(self, key: str, default: str | None = None) -> str | None:
        """The text of a special token, by its name in the settings."""
        value = self.setting(key, default)
        value = value.get("content") if isinstance(value, dict) else value
        return value if isinstance(value, str) and value else None

    def first(self, *names: str) -> str:
        """Whichever of these files is there; what should be there is named where none is."""
        for name in names:
            if os.path.lexists(self.folder / name):
                return name
        raise ValueError(f"{' or '.join(names)} is missing")
