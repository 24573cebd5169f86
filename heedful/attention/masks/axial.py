"""Axial attention (Ho et al., 2019): along the rows of a grid, and along its columns."""

from __future__ import annotations

from typing import ClassVar

from heedful.attention.card import Card
from heedful.attention.masks.image import Local
from heedful.attention.masks.parts import Every, Turns, least, merge_turns


class Axial(Turns):
    """Positions on a grid with rows of `size`: half of the heads look along the row, half along the column.

    Ho et al. (2019), whose layers take turns where heads do here. One head alone looks along both, by a mask of
    T^2. Cost: T^1.5 on a square. Two layers of it reach every position.
    """

    card: ClassVar = Card(
        "Axial Attention in Multidimensional Transformers (Ho et al., 2019)",
        2019,
        "T^1.5",
        limits="for sequences that are grids with rows of one size",
        ordered=True,
    )

    def __init__(self, heads: int, size: int) -> None:
        super().__init__(heads, *merge_turns(heads, Local(least("axial", size), memory=0), Every(size)))
