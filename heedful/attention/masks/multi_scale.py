"""Multi-Scale attention (Guo et al., 2020): a window of its own for each head."""

from __future__ import annotations

from typing import ClassVar

from heedful.attention.card import Card
from heedful.attention.masks.parts import Turns, least
from heedful.attention.masks.sparse import Window


class MultiScale(Turns):
    """Heads look within windows of unlike size: `size` for the first, and twice as much for each next one.

    Guo et al. (2020), who choose the sizes of each layer by hand. Cost: T times the largest window.
    """

    card: ClassVar = Card(
        "Multi-Scale Self-Attention for Text Classification (Guo et al., 2020)",
        2020,
        "T",
        limits="sees nothing farther than the window of its last head, a layer",
        ordered=True,
        tier="B",
    )

    def __init__(self, heads: int, size: int = 2) -> None:
        super().__init__(heads, *(Window(least("multiscale", size) * 2**head) for head in range(heads)))
