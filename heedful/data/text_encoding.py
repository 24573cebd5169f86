"""Text encodings (character sets): the names that are known, and the likeliest of bytes that are not UTF-8."""

from __future__ import annotations

import codecs
import re
from pathlib import Path

from heedful.data.line_files import UTF8
from heedful.errors import Refusal

SEEN = 1 << 16  # bytes around the first that is not UTF-8, by which its encoding is guessed
ALONE = re.compile(rb"(?<![\x80-\xff])[\x80-\xff](?![\x80-\xff])")  # a sign of its own, as accents in Latin letters are
HIGH = re.compile(rb"[\x80-\xff]")
CYRILLIC = re.compile(rb"[\xc0-\xff]")
ASIAN = ("shift_jis", "euc_jp", "euc_kr", "big5", "gb18030")  # in the order of how much each refuses


def encoding_of(word: str) -> str:
    """The name of a text encoding as it is always written; one that is unknown is refused."""
    try:
        found = codecs.lookup(word)
        "a".encode(word)
    except (LookupError, TypeError, ValueError):
        known = "utf-8, latin-1, cp1252, utf-16, ..."
        raise ValueError(f"data.encoding={word[:40]} is no text encoding; write {known}") from None
    return {"iso8859-1": "latin-1"}.get(found.name, found.name)


def likeliest(data: bytes) -> str:
    """The likeliest encoding of bytes that are not UTF-8, by their marks, and by how signs beyond ASCII stand."""
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    if data.count(0) > len(data) // 4:
        return "utf-16-le" if data[1::2].count(0) > data[::2].count(0) else "utf-16-be"
    high = len(HIGH.findall(data))
    if 2 * len(ALONE.findall(data)) >= high:
        windows = any(0x80 <= byte < 0xA0 for byte in data) and decodes(data, "cp1252")  # its quotes and dashes
        return "cp1252" if windows else "latin-1"
    if 10 * len(CYRILLIC.findall(data)) >= 9 * high and not any(decodes(data, name) for name in ASIAN[:2]):
        return "cp1251"
    return next((name for name in ASIAN if decodes(data, name)), "latin-1")


def decodes(data: bytes, name: str) -> bool:
    """Whether bytes are text in an encoding; a sign that is cut at their end is forgiven."""
    try:
        codecs.getincrementaldecoder(name)().decode(data)
    except UnicodeDecodeError:
        return False
    return True


def not_text(path: Path, line: int, data: bytes, encoding: str = UTF8) -> Refusal:
    """Refuse a file that is not text in its encoding; one that is not UTF-8 is told the likeliest."""
    if encoding != UTF8:
        return Refusal(f"{path}, line {line}: not {encoding}; give data.encoding=utf-8, or the one it was written in")
    found = likeliest(data[:SEEN] if HIGH.search(data[:SEEN]) else data)
    to = {"latin-1": "latin1", "cp1252": "windows-1252", "cp1251": "windows-1251"}.get(found, found)
    return Refusal(
        f"{path}, line {line}: not UTF-8, most likely {found}; give data.encoding={found}, or convert the file, "
        f"for instance with iconv -f {to} -t UTF-8"
    )
