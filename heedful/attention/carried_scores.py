"""A sight that carries the scores of a layer before: what it saw is added to what the next one sees."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torch import Tensor

if TYPE_CHECKING:
    pass
from heedful.attention.sight import Sight


class Carrying(Sight):
    """A sight that adds scores which another layer has made, beside what its bias adds: B H T S."""

    def __init__(self, sight: Sight, given: Tensor) -> None:
        super().__init__(sight.mask, sight.rows, sight.columns, sight.batch, sight.bias, counted=sight.counted)
        self.below, self.given, self.seeing, self.past = sight, given, sight.seeing, sight.past
        self._made = sight._made  # of mask and positions, which are the same

    @property
    def is_causal(self) -> bool:
        return False

    @property
    def is_open(self) -> bool:
        return False

    @property
    def pays_in_blocks(self) -> bool:
        return False

    @property
    def pays_in_parts(self) -> bool:
        return False

    @property
    def scores(self) -> Tensor | None:
        below = self.below.scores
        return self.given if below is None else self.given + below.to(self.given.dtype)

    def afresh(self) -> Sight:
        return Carrying(self.below.afresh(), self.given)

    def at(self, rows: Tensor) -> Sight:
        return Carrying(self.below.at(rows), self.given[:, :, rows])
