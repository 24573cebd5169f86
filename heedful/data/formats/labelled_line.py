"""A sequence of words with its class."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class Line:
    """A sequence, as places in a list of words (T), what is said of it, and where it was read."""

    places: NDArray[Any]
    label: str
    where: str = "a sample"
