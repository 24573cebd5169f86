"""Reading tokenizers: `tokenizer.json`, whoever made it, and SentencePiece's `.model`."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import tokenizers

from heedful.errors import Refusal
from heedful.safe import opening
from heedful.safe.plain_data import json_of
from heedful.tokenizers import length_bounds
from heedful.tokenizers.from_sentencepiece import convert
from heedful.tokenizers.rust_engines import is_panic
from heedful.tokenizers.sentencepiece.charsmap import sound
from heedful.tokenizers.sentencepiece.proto import parse

T = TypeVar("T")
LARGEST = 1 << 26  # bytes; the largest tokenizer.json in use are about half of it
LARGEST_MODEL = 1 << 24  # bytes of a SentencePiece model; the largest in use are a third of it
MOST = 1 << 22  # ids; the largest vocabularies in use have a quarter of that


def read_file(path: Path, make: Callable[[tokenizers.Tokenizer, str | None], T]) -> T:
    """What is made of the engine that a file describes, and of the file's own text where it is a `tokenizer.json`."""
    data = content(path)
    return make_tokenizer(path, lambda: engine_and_text(data), make)


def make_tokenizer(
    path: Path,
    engine_of: Callable[[], tuple[tokenizers.Tokenizer, str | None]],
    make: Callable[[tokenizers.Tokenizer, str | None], T],
) -> T:
    """What is made of an engine; whatever goes wrong on the way is a refusal that names the path."""
    try:
        engine, text = engine_of()
        engine.no_padding()  # a file could ask for more of it than there is memory
        engine.no_truncation()
        length_bounds.check(engine)
        engine.encode_batch_fast(["", " a", "?\ufffd\U0001fae0"])  # some faults show only in use
        return make(engine, text)
    except (MemoryError, Refusal):
        raise
    except Exception as error:  # the engine raises plain Exceptions
        raise Refusal(f"{path} is no tokenizer: {error_line(error)}") from None
    except BaseException as error:
        if not is_panic(error):
            raise
        raise Refusal(f"{path} is no tokenizer: {error_line(error)}") from None


def engine_and_text(data: bytes) -> tuple[tokenizers.Tokenizer, str | None]:
    """The engine of a file's bytes, and its text where it is a `tokenizer.json`."""
    if data.lstrip(b"\xef\xbb\xbf \t\r\n")[:1] == b"{":
        text = data.decode("utf-8-sig")
        parts = json_of(text)
        check_ids(parts)
        check_names(parts)
        check_maps([parts.get("normalizer")])
        engine = tokenizers.Tokenizer.from_str(text)
        check_added(engine, parts)
        return engine, text
    if len(data) > LARGEST_MODEL:
        raise ValueError(f"it is no tokenizer.json, and larger than {opening.amount(LARGEST_MODEL)}")
    try:
        model = parse(data)
    except ValueError as error:
        raise ValueError(f"it is neither a tokenizer.json nor a SentencePiece model: {error_line(error)}") from None
    return convert(model), None


def check_maps(normalizers: Any) -> None:
    """Refuses broken maps of characters, at which the engine would not raise but panic."""
    for part in normalizers if isinstance(normalizers, list) else ():
        if isinstance(part, dict) and part.get("type") == "Precompiled":
            sound(base64.b64decode(str(part.get("precompiled_charsmap")), validate=True))
        elif isinstance(part, dict):
            check_maps(part.get("normalizers"))


def check_ids(parts: dict[str, Any]) -> None:
    """Refuses ids that stand for several tokens, or that no vocabulary is large enough for: a table of all is made."""
    model = parts.get("model")
    vocab = model.get("vocab") if isinstance(model, dict) else None
    found = list(vocab.values()) if isinstance(vocab, dict) else []
    if len({at for at in found if isinstance(at, int)}) < len(found):
        raise ValueError("an id of its vocabulary is no number or stands there twice")
    added = parts.get("added_tokens")
    found += [token.get("id") for token in added if isinstance(token, dict)] if isinstance(added, list) else []
    if any(isinstance(at, int) and at >= MOST for at in found):
        raise ValueError(f"an id is above {MOST}, which is more than any vocabulary has")


def check_added(engine: tokenizers.Tokenizer, parts: dict[str, Any]) -> None:
    """Refuses added tokens that the engine had to give other ids than the file does."""
    for token in parts.get("added_tokens") or ():
        if engine.token_to_id(token["content"]) != token["id"]:
            raise ValueError(f"the added token {token['content'][:60]!r} cannot have the id {token['id']}")


def check_names(parts: dict[str, Any]) -> None:
    """Refuses words that are absurdly long: a text could hold each many times."""
    patterns = 0
    for key, text in words(parts):
        patterns += len(text) if key == "Regex" else 0
        if len(text) > length_bounds.NAME and key not in ("Regex", "precompiled_charsmap"):
            raise ValueError(f"a word in it has more than {length_bounds.NAME} characters")
    if patterns > length_bounds.PATTERNS:
        raise ValueError(f"its patterns have more than {length_bounds.PATTERNS} characters")


def words(value: Any) -> Iterator[tuple[str, str]]:
    """All texts in a JSON value, each with the key that it stands at; keys are texts too."""
    left = [("", value)]
    while left:
        key, one = left.pop()
        if isinstance(one, str):
            yield key, one
        elif isinstance(one, dict):
            left += one.items()
            left += (("", name) for name in one)
        elif isinstance(one, list):
            left += ((key, inner) for inner in one)


def content(path: Path) -> bytes:
    """The bytes of a file, where it is one of a size that a tokenizer can have."""
    if path.is_dir():
        raise Refusal(f"{path} is a folder; name the tokenizer.json in it")
    try:
        data = opening.content(path, LARGEST)
    except OSError as error:
        raise Refusal(f"{path} is no tokenizer: {error.strerror}") from None
    except ValueError as error:
        raise Refusal(f"{path} is no tokenizer: {error}") from None
    if not data:
        raise Refusal(f"{path} is no tokenizer: it is empty")
    return data


def error_line(error: BaseException) -> str:
    """The message of an error, on one line."""
    return " ".join(str(error).split())[:200] or type(error).__name__
