"""Limits of images: their shape, the size of a file, and the size that a file unfolds to."""

from __future__ import annotations

from typing import NamedTuple

LARGEST = 1 << 28  # bytes of a file
MOST = 1 << 26  # pixels that one may unfold to: a small file can say that it holds far more than any memory
SIDE = 1 << 16  # pixels along one side: far more rows than columns take as long as many of both
TOO_MANY = f", and {MOST:,} are the most, {SIDE:,} along a side"


class Broken(ValueError):
    """A file that is no picture, or not a whole one: what is wrong with it."""


class Size(NamedTuple):
    """Of what shape pictures are made."""

    channels: int
    high: int
    wide: int
