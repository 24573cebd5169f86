"""Tokens as people read them, and which word of a text each of them belongs to."""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable, Sequence
from typing import Any

from heedful.tokenizers.tokenizer_json import Layout

BYTE = re.compile(r"<0x([0-9A-F]{2})>")


def bytes_of_letters() -> dict[str, int]:
    """The byte that each letter of a byte-level vocabulary stands for (Radford et al., 2019)."""
    plain = [*range(ord("!"), ord("~") + 1), *range(ord("¡"), ord("¬") + 1), *range(ord("®"), ord("ÿ") + 1)]
    rest = [byte for byte in range(256) if byte not in plain]
    return {chr(byte): byte for byte in plain} | {chr(256 + at): byte for at, byte in enumerate(rest)}


BYTES = bytes_of_letters()
LETTERS = {byte: letter for letter, byte in BYTES.items()}


def name_bytes(error: UnicodeError) -> tuple[str, int]:
    """Bytes that are no whole character, by their names."""
    assert isinstance(error, UnicodeDecodeError)
    return "".join(f"<0x{byte:02X}>" for byte in error.object[error.start : error.end]), error.end


codecs.register_error("heedful.named", name_bytes)


def readable(layout: Layout) -> Callable[[str], str]:
    """How the tokens of a tokenizer are written for people: real characters, and blanks as blanks."""
    decoder = layout.parts["decoder"] or {}
    signs = {"▁": " "} if "▁" in str(decoder) else {}
    suffix: str = layout.model.get("end_of_word_suffix") or ""

    def letters(token: str) -> str:
        if all(letter in BYTES for letter in token):
            return bytes(BYTES[letter] for letter in token).decode("utf-8", "heedful.named")
        return token

    def plain(token: str) -> str:
        byte = BYTE.fullmatch(token)
        if byte and layout.model.get("byte_fallback"):
            return bytes([int(byte[1], 16)]).decode("utf-8", "heedful.named")
        for sign, text in signs.items():
            token = token.replace(sign, text)
        return f"{token.removesuffix(suffix)} " if suffix and token.endswith(suffix) else token

    return letters if layout.kind == "bpe" else plain


def words_of(texts: Sequence[str], kept: Sequence[bool]) -> tuple[list[str], list[int]]:
    """The words of the last of growing texts, and for each growth the place of the word it begins in; -1 if not kept.

    A blank belongs to the word behind it.
    """
    whole = texts[-1] if texts else ""
    words, goals = whole.split(), goals_of(whole)
    places: list[int] = []
    done = 0
    for text, keep in zip(texts, kept, strict=True):
        places.append(min(goals[done], len(words) - 1) if keep else -1)
        done = len(text) if whole.startswith(text) else done  # else of a character only some bytes are there yet
    return words, places


def goals_of(text: str) -> list[int]:
    """For each place in a text, its end among them, the number of the word that stands there or comes next."""
    goals: list[int] = []
    number, within = 0, False
    for sign in text:
        number += within and sign.isspace()
        within = not sign.isspace()
        goals.append(number)
    return [*goals, number]


def is_named_byte(token: Any) -> bool:
    """Whether a token is a byte by its name."""
    return BYTE.fullmatch(str(token)) is not None
