"""SentencePiece's `.model` files: the protocol buffer's wire format, as much of it as such a file needs."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import IntEnum


class Type(IntEnum):
    """The type of a piece, by the numbers of `sentencepiece_model.proto`."""

    NORMAL = 1
    UNKNOWN = 2
    CONTROL = 3
    USER_DEFINED = 4
    UNUSED = 5
    BYTE = 6


class Kind(IntEnum):
    """How a model splits text, by the numbers of `sentencepiece_model.proto`."""

    UNIGRAM = 1
    BPE = 2
    WORD = 3
    CHAR = 4


@dataclass(frozen=True)
class Piece:
    """A token of a model, with its score and what it is for."""

    text: str
    score: float = 0.0
    type: int = Type.NORMAL


@dataclass
class Model:
    """What a `.model` file says, with the defaults of what it leaves out."""

    pieces: list[Piece] = field(default_factory=list)
    kind: int = Kind.UNIGRAM
    byte_fallback: bool = False
    suffix: bool = False  # whether the sign of a blank stands behind a word
    charsmap: bytes = b""
    prefix: bool = True
    single_blanks: bool = True
    escape: bool = True


def short(score: float) -> float:
    """A single-precision number in as few digits as tell it from all others; longer ones the engine reads inexactly."""
    return float(f"{score:.9g}")


def parse(data: bytes) -> Model:
    """The model of a file's bytes; a ValueError where they are none."""
    model = Model()
    for number, value in messages(data):
        if number == 1:
            model.pieces.append(piece(value))
        elif number == 2:
            trainer(model, value)
        elif number == 3:
            normaliser(model, value)
    return model


def piece(data: bytes) -> Piece:
    """One token of a model."""
    values = dict(fields(data))
    text, score, kind = values.get(1, b""), values.get(2, bytes(4)), values.get(3, 1)
    if not (isinstance(text, bytes) and isinstance(score, bytes) and isinstance(kind, int) and len(score) == 4):
        raise ValueError("a piece has fields of the wrong kind")
    if not text:
        raise ValueError("a piece is empty")  # two bytes each: told here, before there are millions
    return Piece(text.decode("utf-8"), struct.unpack("<f", score)[0], kind)


def trainer(model: Model, data: bytes) -> None:
    """Takes from how the model was trained what matters for encoding."""
    for number, value in fields(data):
        if isinstance(value, int):
            if number == 3:
                model.kind = value
            elif number == 24:
                model.suffix = bool(value)
            elif number == 35:
                model.byte_fallback = bool(value)


def normaliser(model: Model, data: bytes) -> None:
    """Takes how text is made ready before it is split."""
    for number, value in fields(data):
        if isinstance(value, bytes):
            model.charsmap = value if number == 2 else model.charsmap
        elif number == 3:
            model.prefix = bool(value)
        elif number == 4:
            model.single_blanks = bool(value)
        elif number == 5:
            model.escape = bool(value)


def messages(data: bytes) -> Iterator[tuple[int, bytes]]:
    """The fields of a message that are messages or texts themselves."""
    for number, value in fields(data):
        if isinstance(value, bytes):
            yield number, value


def fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    """The fields of a message in order: numbers as int, all else as bytes."""
    at = 0
    while at < len(data):
        key, at = varint(data, at)
        if key & 7 == 0:
            value, at = varint(data, at)
            yield key >> 3, value
            continue
        if key & 7 == 2:
            size, at = varint(data, at)
        elif key & 7 in (1, 5):
            size = 8 if key & 7 == 1 else 4
        else:
            raise ValueError("it is no protocol buffer")
        if at + size > len(data):
            raise ValueError("it is cut short")
        yield key >> 3, data[at : at + size]
        at += size


def varint(data: bytes, at: int) -> tuple[int, int]:
    """A number of seven bits a byte, the lowest first, and where it ends."""
    value = 0
    for shift in range(0, 70, 7):
        if at >= len(data):
            raise ValueError("it is cut short")
        value |= (data[at] & 127) << shift
        at += 1
        if data[at - 1] < 128:
            return value, at
    raise ValueError("it is no protocol buffer")
