"""The maps of characters that SentencePiece models bring, such as NFKC: a double-array trie and what keys become."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

LEAF, FAR = 1 << 31, 1 << 9


def sound(charsmap: bytes) -> bytes:
    """The map itself, where no step in its trie leads out of it; a ValueError where one does.

    Who follows such a trie does not look: a broken one would be read beyond its end.
    """
    size = int.from_bytes(charsmap[:4], "little")
    texts = charsmap[4 + size :]
    if len(charsmap) < 4 + size or size < 1024 or size % 1024 or texts[-1:] != b"\0":
        raise ValueError("its map of characters is cut short")
    units = np.frombuffer(charsmap, "<u4", size // 4, 4).astype(np.int64)
    leaves = units & LEAF != 0
    steps = np.arange(len(units)) ^ (units >> 10 << ((units & FAR) >> 6))
    places = units[leaves] - LEAF
    if (places >= len(texts)).any() or ((steps[~leaves] | 255) >= len(units)).any():
        raise ValueError("its map of characters is damaged")
    if (np.frombuffer(texts, np.uint8)[places] & 0xC0 == 0x80).any() or not texts.decode("utf-8"):
        raise ValueError("its map of characters is damaged")  # a text begins within a character
    return charsmap


def normaliser(charsmap: bytes, prefix: bool, single_blanks: bool) -> Callable[[list[str]], list[str]]:
    """SentencePiece's own way to make texts ready, by the map that a model brings and how it treats blanks."""
    import sentencepiece

    rules = b"\x12" + varint(len(charsmap)) + sound(charsmap) if charsmap else b""
    made = sentencepiece.SentencePieceNormalizer(
        model_proto=b"\x1a" + varint(len(rules)) + rules,
        add_dummy_prefix=prefix,
        remove_extra_whitespaces=single_blanks,
        escape_whitespaces=True,
    )
    return lambda texts: made.normalize(texts)


def varint(number: int) -> bytes:
    """A number as protocol buffers write it: seven bits a byte, the lowest first."""
    parts = [number >> shift & 127 for shift in range(0, max(1, number.bit_length()), 7)]
    return bytes([part | 128 for part in parts[:-1]] + parts[-1:])
