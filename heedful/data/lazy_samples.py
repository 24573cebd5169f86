"""Samples that are made when they are asked for, where there are too many to be held."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar, overload

import numpy as np
from numpy.typing import NDArray

from heedful.errors import Refusal
from heedful.safe.opening import amount

MOST = 1 << 32  # bytes of what is made at once and held
Sample = TypeVar("Sample")


class Made(Sequence[Sample]):
    """Samples of some places; `make` gives the sample of a place."""

    def __init__(self, make: Callable[[int], Sample], places: NDArray[np.int64]) -> None:
        self.make, self.places = make, places

    def __len__(self) -> int:
        return len(self.places)

    @overload
    def __getitem__(self, at: int) -> Sample: ...

    @overload
    def __getitem__(self, at: slice) -> list[Sample]: ...

    def __getitem__(self, at: int | slice) -> Sample | list[Sample]:
        if isinstance(at, slice):
            return [self.make(int(place)) for place in self.places[at]]
        return self.make(int(self.places[at]))

    def chosen(self, places: NDArray[np.int64]) -> Made[Sample]:
        """Some of them, by where they stand among them."""
        return Made(self.make, self.places[places])


def check_size(data: Any, size: int) -> None:
    """Refuses samples that take more bytes than memory holds, before the first of them is made."""
    if size > MOST:
        given = f"data.samples={data.samples} and data.held_out={data.held_out}, of up to data.longest={data.longest}"
        raise Refusal(f"{given}, would take {amount(size)}, which is more than {amount(MOST)}; lower them")
