"""Sequences of words and what is said of each: expressions that are made, the pixels of pictures, a user's own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heedful.data.formats.labelled_line import Line
from heedful.data.images.gallery import Picture
from heedful.data.splits import Splits

MADE = "listops"
PIXELS = "cifar10-pixels"
LEVELS = tuple(map(str, range(256)))  # the words of a grey picture
BRIGHT = np.array([0.299, 0.587, 0.114])  # how bright red, green and blue are to people


def each(splits: Splits[Any], make: Any) -> Splits[Line]:
    """Every sample as a line."""
    return Splits(*([make(one) for one in split] for split in (splits.train, splits.valid, splits.test)))


def word_numbers(text: Sequence[str], number: dict[str, int]) -> NDArray[np.int32]:
    """Words by their places, -1 where a word is unknown."""
    return np.array([number.get(word, -1) for word in text], dtype=np.int32)


def renumber(splits: Splits[Line], words: Sequence[str], known: Sequence[str]) -> Splits[Line]:
    """The same sequences, their words told by their places among those that are `known`."""
    if tuple(words) == tuple(known):
        return splits
    number = {word: at for at, word in enumerate(known)}
    places = word_numbers(words, number)
    return each(splits, lambda line: replace(line, places=places[line.places]))


def grey(picture: Picture) -> Line:
    """A picture as the brightness of its pixels, row by row, in 256 levels, as Long Range Arena has CIFAR-10."""
    bright = np.tensordot(BRIGHT, picture.pixels.astype(np.float64), 1)
    return Line(bright.round().astype(np.uint8).reshape(-1), picture.label, picture.place)
