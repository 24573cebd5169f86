"""Ids of many texts, held in as few bytes as they need."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from itertools import accumulate, chain
from typing import Any

import numpy as np
from numpy.typing import NDArray


class Row:
    """Numbers that come one after the other, and are held once."""

    def __init__(self, kind: np.dtype[Any]) -> None:
        self.kind, self.data = kind, bytearray()

    def __len__(self) -> int:
        return len(self.data) // self.kind.itemsize

    def add(self, numbers: Sequence[int] | NDArray[Any]) -> None:
        """Takes some more."""
        self.data += np.asarray(numbers, self.kind).tobytes()

    def array(self) -> NDArray[Any]:
        """All of them."""
        return np.frombuffer(self.data, self.kind)


class Rows:
    """The ids of texts, which are handed out one by one."""

    def __init__(self, vocab: int) -> None:
        self.ids, self.ends = Row(np.min_scalar_type(max(vocab - 1, 0))), array("q", [0])

    def add(self, many: Sequence[Sequence[int] | NDArray[Any]]) -> None:
        """Takes those of some texts."""
        self.ids.add(list(chain.from_iterable(many)))
        self.ends.extend(accumulate(map(len, many), initial=self.ends.pop()))

    def __getitem__(self, at: int) -> list[int]:
        return self.ids.array()[self.ends[at] : self.ends[at + 1]].tolist()
