"""Reading tokenizers: `tokenizer.json`, whoever made it, and SentencePiece's `.model`."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import tokenizers

from heedful.errors import Refusal
from heedful.text.charsmap import sound
from heedful.text.converted import converted
from heedful.text.protobuf import parse

T = TypeVar("T")
LARGEST = 1 << 28  # bytes; the largest in use are a tenth of it


def read(path: Path, make: Callable[[tokenizers.Tokenizer, str | None], T]) -> T:
    """What is made of the engine that a file describes, and of the file's own text where it is a `tokenizer.json`."""
    data = content(path)
    try:
        engine, text = opened(data)
        engine.encode_batch_fast(["", " a", "?\ufffd\U0001fae0"])  # some faults show only in use
        return make(engine, text)
    except MemoryError:
        raise
    except Exception as error:  # the engine raises plain Exceptions
        raise Refusal(f"{path} is no tokenizer: {said(error)}") from None
    except BaseException as error:
        if type(error).__name__ != "PanicException":
            raise
        raise Refusal(f"{path} is no tokenizer: {said(error)}") from None


def opened(data: bytes) -> tuple[tokenizers.Tokenizer, str | None]:
    """The engine of a file's bytes, and its text where it is a `tokenizer.json`."""
    if data.lstrip(b"\xef\xbb\xbf \t\r\n")[:1] == b"{":
        text = data.decode("utf-8-sig")
        check_maps([json.loads(text).get("normalizer")])
        return tokenizers.Tokenizer.from_str(text), text
    try:
        model = parse(data)
    except ValueError as error:
        raise ValueError(f"it is neither a tokenizer.json nor a SentencePiece model: {said(error)}") from None
    return converted(model), None


def check_maps(normalizers: Any) -> None:
    """Refuses broken maps of characters, at which the engine would not raise but panic."""
    for part in normalizers if isinstance(normalizers, list) else ():
        if isinstance(part, dict) and part.get("type") == "Precompiled":
            sound(base64.b64decode(str(part.get("precompiled_charsmap")), validate=True))
        elif isinstance(part, dict):
            check_maps(part.get("normalizers"))


def content(path: Path) -> bytes:
    """The bytes of a file, where it is one of a size that a tokenizer can have."""
    if path.is_dir():
        raise Refusal(f"{path} is a folder; name the tokenizer.json in it")
    try:
        with path.open("rb") as file:
            data = file.read(LARGEST + 1)
    except OSError as error:
        raise Refusal(f"{path} is no tokenizer: {error.strerror}") from None
    if not data:
        raise Refusal(f"{path} is no tokenizer: it is empty")
    if len(data) > LARGEST:
        raise Refusal(f"{path} is no tokenizer: it is larger than {LARGEST >> 20} MB")
    return data


def said(error: BaseException) -> str:
    """What an error says, on one line."""
    return " ".join(str(error).split())[:200] or type(error).__name__
