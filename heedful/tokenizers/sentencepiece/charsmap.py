"""The maps of characters that SentencePiece models bring, such as NFKC: a double-array trie and what keys become."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from heedful.tokenizers.sentencepiece.proto import Kind, Type

LEAF, FAR, DEEP = 1 << 31, 1 << 9, 16


def sound(charsmap: bytes) -> bytes:
    """The map itself, where no step in its trie leads out of it; a ValueError where one does.

    Who follows such a trie does not look: a broken one would be read beyond its end.
    """
    size = int.from_bytes(charsmap[:4], "little")
    texts = charsmap[4 + size :]
    if len(charsmap) < 4 + size or size < 1024 or size % 1024 or texts[-1:] != b"\0":
        raise ValueError("its map of characters is cut short")
    units, steps, _ = trie(charsmap)
    leaves = units & LEAF != 0
    places = units[leaves] - LEAF
    if (places >= len(texts)).any() or ((steps[~leaves] | 255) >= len(units)).any():
        raise ValueError("its map of characters is damaged")
    if (np.frombuffer(texts, np.uint8)[places] & 0xC0 == 0x80).any() or not texts.decode("utf-8"):
        raise ValueError("its map of characters is damaged")  # a text begins within a character
    return charsmap


def trie(charsmap: bytes) -> tuple[NDArray[np.int64], NDArray[np.int64], bytes]:
    """The units of a map's trie, where the next unit is from each on, and the texts behind it."""
    size = int.from_bytes(charsmap[:4], "little")
    units = np.frombuffer(charsmap, "<u4", size // 4, 4).astype(np.int64)
    return units, np.arange(len(units)) ^ (units >> 10 << ((units & FAR) >> 6)), charsmap[4 + size :]


@lru_cache(maxsize=8)
def ratio(charsmap: bytes) -> float:
    """How many times as many bytes as a key the text in its place has, at most."""
    if not charsmap:
        return 1.0
    units, steps, texts = trie(sound(charsmap))
    inner = np.flatnonzero(units & LEAF == 0)
    depth = np.full(len(units), DEEP)
    depth[0] = 0
    for _ in range(DEEP):  # a trie that goes round is no deeper than this
        least = np.full(len(units), DEEP)
        np.minimum.at(least, steps[inner], depth[inner])
        depth[inner] = np.minimum(depth[inner], least[inner ^ (units[inner] & 255)] + 1)
    keys = inner[(units[inner] >> 8 & 1 == 1) & (units[steps[inner]] & LEAF != 0)]
    places = units[steps[keys]] - LEAF
    ends = np.flatnonzero(np.frombuffer(texts, np.uint8) == 0)
    lengths = ends[np.searchsorted(ends, places)] - places
    return float((lengths / depth[keys].clip(1)).max(initial=1))


def normaliser(
    charsmap: bytes, prefix: bool, single_blanks: bool, symbols: Iterable[str] = ()
) -> Callable[[list[str]], list[str]]:
    """SentencePiece's own normalisation, by the map that a model brings and how it treats blanks.

    User-defined symbols stay as they are, whatever the map says of them.
    """
    import sentencepiece

    pieces = [(b"<unk>", Type.UNKNOWN), *((text.encode(), Type.USER_DEFINED) for text in symbols)]
    rules = field(2, sound(charsmap)) if charsmap else b""
    rules += bytes([3 << 3, prefix, 4 << 3, single_blanks, 5 << 3, True])
    made = sentencepiece.SentencePieceProcessor(
        model_proto=b"".join(field(1, field(1, text) + bytes([3 << 3, kind])) for text, kind in pieces)
        + field(2, bytes([3 << 3, Kind.CHAR]))
        + field(3, rules)
    )
    return lambda texts: made.normalize(texts)


def field(number: int, data: bytes) -> bytes:
    """A text or a message within a message, as protocol buffers write it."""
    return varint(number << 3 | 2) + varint(len(data)) + data


def varint(number: int) -> bytes:
    """A number as protocol buffers write it: seven bits a byte, the lowest first."""
    parts = [number >> shift & 127 for shift in range(0, max(1, number.bit_length()), 7)]
    return bytes([part | 128 for part in parts[:-1]] + parts[-1:])
